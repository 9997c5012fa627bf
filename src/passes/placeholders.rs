//! Callbacks in a program: their calls, and what is chosen for them.

use super::Options;
use crate::bytecode::{AttributeId, Bytes, Entry, Field, Tables, TypeId, code, dialect};
use crate::callbacks::{Alias, ConfigValue, LOWERED_ATTRIBUTE, Lowering, PLACEHOLDER_TARGET, Policy, Slot, SlotKey, Slots};
use crate::error::{Error, Result};
use crate::ir::{Attribute, Op, Program, Session, Type, Value, symbol_name};

/// The attribute that says what a placeholder stands for, or holds the index of a lowered callback.
const CONFIG: &str = "mhlo.backend_config";

/// A call of a callback that is not lowered.
pub struct Placeholder<'s> {
    /// The custom call.
    pub operation: Op<'s>,
    /// What it stands for.
    pub slot: Slot,
    /// The function it is in.
    pub function: String,
}

/// The placeholders of a program: those in `main` first, then in textual order.
pub fn placeholders<'s>(program: &Program<'s, '_>) -> Result<Vec<Placeholder<'s>>> {
    let mut found = Vec::new();
    for (function, operation) in custom_calls(program)? {
        if target(program, operation).as_deref() == Some(PLACEHOLDER_TARGET.as_bytes()) {
            let slot = slot(program.session, operation.attribute(CONFIG)).map_err(|error| {
                let place = program.session.place(operation);
                error.context(format!("bad placeholder at {place} (in `@{function}`)"))
            })?;
            found.push(Placeholder { operation, slot, function });
        }
    }
    Ok(found)
}

/// The callbacks that were lowered from placeholders, with what these said.
pub fn lowered<'s>(program: &Program<'s, '_>) -> Result<Vec<(Op<'s>, Attribute<'s>)>> {
    let calls = custom_calls(program)?.into_iter();
    Ok(calls.filter_map(|(_, operation)| Some((operation, operation.attribute(LOWERED_ATTRIBUTE)?))).collect())
}

/// The calls of callbacks, lowered or not, each with its number: that of its slot by first appearance.
pub fn numbered<'s>(program: &Program<'s, '_>) -> Result<Vec<(Op<'s>, u64)>> {
    let (session, mut slots, mut found) = (program.session, Slots::default(), Vec::new());
    for (_, operation) in custom_calls(program)? {
        let is_placeholder = || target(program, operation).as_deref() == Some(PLACEHOLDER_TARGET.as_bytes());
        let config = operation.attribute(LOWERED_ATTRIBUTE).or_else(|| operation.attribute(CONFIG).filter(|_| is_placeholder()));
        if let Some(config) = config {
            let id = session.attribute_id(config)?;
            let key = slot_key(&session.tables(), id)?;
            found.push((operation, slots.add(key)? as u64));
        }
    }
    Ok(found)
}

/// The custom calls of a program, each with the function it is in, those in `main` first.
fn custom_calls<'s>(program: &Program<'s, '_>) -> Result<Vec<(String, Op<'s>)>> {
    let mut functions = program.functions()?;
    // Stable: the others stay in order.
    functions.sort_by_key(|function| symbol_name(*function) != Some(b"main"));
    let mut found = Vec::new();
    for function in functions {
        let name = String::from_utf8_lossy(symbol_name(function).unwrap_or_default()).into_owned();
        Program::walk(function, |operation| {
            if operation.name().as_bytes().starts_with(b"vhlo.custom_call_v") {
                found.push((name.clone(), operation));
            }
        });
    }
    Ok(found)
}

/// What a custom call calls.
pub fn target(program: &Program<'_, '_>, operation: Op<'_>) -> Option<Vec<u8>> {
    let id = program.session.attribute_id(operation.attribute("call_target_name")?).ok()?;
    program.session.tables().string(id).map(<[u8]>::to_vec)
}

/// The slot that a placeholder's configuration names.
fn slot(session: &Session<'_>, config: Option<Attribute<'_>>) -> Result<Slot> {
    let config = config.ok_or_else(|| Error::format(format!("it has no `{CONFIG}`")))?;
    let id = session.attribute_id(config)?;
    Slot::new(slot_key(&session.tables(), id)?)
}

/// The key in a placeholder's `mhlo.backend_config`.
pub fn slot_key(tables: &Tables<'_>, config: AttributeId) -> Result<SlotKey> {
    let items = tables.dictionary(config).ok_or_else(|| Error::format(format!("its `{CONFIG}` is no dictionary")))?;
    let items: Vec<_> = items.map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value)).collect();
    let items: Vec<_> = items.iter().map(|(key, value)| (key.as_str(), config_value(tables, *value))).collect();
    SlotKey::read(&items)
}

fn config_value<'t>(tables: &'t Tables<'_>, id: AttributeId) -> ConfigValue<'t> {
    let entry = tables.attribute(id);
    if let Some(text) = tables.string(id) {
        return std::str::from_utf8(text).map_or(ConfigValue::Other, ConfigValue::Text);
    }
    match entry.fields[..] {
        [Field::Type(of), Field::Unsigned(bits)] if entry.is(dialect::VHLO, code::vhlo::INTEGER) => {
            let is_i64 = tables.r#type(of).is(dialect::VHLO, code::vhlo::I64_TYPE);
            if is_i64 { ConfigValue::Integer(bits as i64) } else { ConfigValue::Other }
        }
        _ => ConfigValue::Other,
    }
}

impl<'s> Placeholder<'s> {
    /// How many tokens stand before the other operands, and before the other results.
    pub fn tokens(&self) -> usize {
        self.slot.meta().tokens as usize
    }

    /// The operands of the Python function.
    pub fn arguments(&self) -> Vec<Value<'s>> {
        let count = self.slot.meta().args.len();
        self.operation.operands().skip(self.tokens()).take(count).collect()
    }

    /// The results of the Python function, each with its number among those of the operation.
    pub fn results(&self) -> Vec<(usize, Value<'s>)> {
        self.operation.results().enumerate().skip(self.tokens()).collect()
    }

    /// Checks that the operation has the operands and results that its slot speaks of.
    pub fn check(&self, program: &Program<'s, '_>) -> Result<()> {
        let (meta, tokens) = (self.slot.meta(), self.tokens());
        let are_tokens =
            |mut values: Box<dyn Iterator<Item = Value<'s>> + 's>| values.all(|value| is_token(program.session, value.r#type()));
        let (operands, results) = (self.operation.operand_count(), self.operation.result_count());
        let is_sound = operands >= tokens + meta.args.len()
            && results == tokens + meta.results.len()
            && are_tokens(Box::new(self.operation.operands().take(tokens)))
            && are_tokens(Box::new(self.operation.results().take(tokens)));
        if is_sound {
            return Ok(());
        }
        let says = format!("{tokens} tokens, {} operands and {} results", meta.args.len(), meta.results.len());
        Err(Error::format(format!("{} has {operands} operands and {results} results; its metadata says {says}", self.described(program))))
    }

    /// Whether the operation has a side effect.
    pub fn has_side_effect(&self, program: &Program<'s, '_>) -> bool {
        super::prune::has_side_effect(program, self.operation)
    }

    /// The operand that gives the shape of a result whose type does not say it. Results are counted with tokens.
    pub fn shape_operand(&self, program: &Program<'s, '_>, result: usize) -> Option<Value<'s>> {
        let session = program.session;
        let id = session.attribute_id(self.operation.attribute("indices_of_shape_operands")?).ok()?;
        let tables = session.tables();
        let entry = tables.attribute(id);
        let bytes = entry.bytes().filter(|_| entry.is(dialect::VHLO, code::vhlo::TENSOR))?;
        let (words, _) = bytes.0.as_chunks::<8>();
        let index = usize::try_from(i64::from_le_bytes(*words.get(result)?)).ok()?;
        (index < self.operation.operand_count()).then(|| self.operation.operand(index))
    }

    /// Results in the memory of operands, both counted with tokens.
    pub fn aliases(&self, program: &Program<'s, '_>) -> Vec<(usize, usize)> {
        let session = program.session;
        let id = self.operation.attribute("output_operand_aliases").map(|attribute| session.attribute_id(attribute));
        let Some(Ok(id)) = id else { return Vec::new() };
        let tables = session.tables();
        let alias = |id: AttributeId| match &tables.attribute(id).fields[..] {
            // A single result has no number.
            [Field::Count(0), Field::Signed(operand), ..] => Some((usize::try_from(*operand).ok()?, 0)),
            [Field::Count(1), Field::Signed(result), Field::Signed(operand), ..] => {
                Some((usize::try_from(*operand).ok()?, usize::try_from(*result).ok()?))
            }
            _ => None,
        };
        tables.array(id).into_iter().flatten().filter_map(alias).collect()
    }

    /// The same without tokens, as metadata has them.
    pub fn aliases_of_arrays(&self, program: &Program<'s, '_>) -> Vec<Alias> {
        let without = |index: usize| u32::try_from(index.checked_sub(self.tokens())?).ok();
        let alias = |(operand, result)| Some(Alias { operand: without(operand)?, result: without(result)? });
        self.aliases(program).into_iter().filter_map(alias).collect()
    }

    /// ``io callback `log` at train.py:41:8 (in `@main`)``.
    pub fn described(&self, program: &Program<'s, '_>) -> String {
        format!("{} {}", self.slot, self.place(program))
    }

    /// ``at train.py:41:8 (in `@main`, inside a while)``.
    pub fn place(&self, program: &Program<'s, '_>) -> String {
        let around = std::iter::successors(self.operation.parent(), |operation| operation.parent());
        let mut around = around.take_while(|operation| !operation.is("func.func")).map(|operation| operation.name_str());
        let inside = around.next().and_then(|name| name.strip_prefix("vhlo.")?.rsplit_once("_v").map(|(name, _)| name));
        let inside = inside.map_or_else(String::new, |name| format!(", inside a {name}"));
        format!("at {} (in `@{}`{inside})", program.session.place(self.operation), self.function)
    }

    /// Makes it stand for another slot.
    pub fn set_slot(&mut self, program: &Program<'s, '_>, slot: Slot) {
        let session = program.session;
        let of = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::I64_TYPE, [])));
        let mut fields = vec![Field::Count(4)];
        for (key, value) in slot.key().items() {
            let value = match value {
                ConfigValue::Text(text) => session.add_vhlo_string(text.as_bytes()),
                ConfigValue::Integer(number) => {
                    let of = of.as_ref().map_or(TypeId(0), |of| *of);
                    session
                        .add_attribute(Entry::new(dialect::VHLO, code::vhlo::INTEGER, [Field::Type(of), Field::Unsigned(number as u64)]))
                        .0
                }
                ConfigValue::Other => continue,
            };
            fields.extend([Field::Attribute(session.add_vhlo_string(key.as_bytes())), Field::Attribute(value)]);
        }
        let (_, config) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::DICT, fields));
        self.operation.set_attribute(CONFIG, config);
        self.slot = slot;
    }

    /// Makes it a call of a target with an index, and keeps what it was beside it.
    pub fn lower(&self, program: &Program<'s, '_>, target: &str, index: u64) -> Result<()> {
        let config = self.operation.attribute(CONFIG).ok_or_else(|| Error::bug("a placeholder without its configuration"))?;
        self.operation.set_attribute(LOWERED_ATTRIBUTE, config);
        set_target(program, self.operation, target);
        set_index(program, self.operation, index)
    }

    /// Makes it a call of a target that takes what the placeholder says.
    pub fn retarget(&self, program: &Program<'s, '_>, target: &str) {
        set_target(program, self.operation, target);
    }

    /// Takes the aliases away: only buffer callbacks have them.
    pub fn drop_aliases(&self, program: &Program<'s, '_>) {
        let (_, none) = program.session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::ARRAY, [Field::Count(0)]));
        self.operation.set_attribute("output_operand_aliases", none);
    }

    /// Replaces the operation: each result by a value.
    pub fn replace(self, values: &[Value<'s>]) {
        for (result, value) in self.operation.results().zip(values) {
            result.replace_uses(*value);
        }
        self.operation.erase();
    }
}

/// Whether it is a callback that was lowered from a placeholder.
pub fn is_lowered(operation: Op<'_>) -> bool {
    operation.attribute(LOWERED_ATTRIBUTE).is_some()
}

/// Gives a lowered callback its number.
pub fn set_index(program: &Program<'_, '_>, operation: Op<'_>, index: u64) -> Result<()> {
    let session = program.session;
    let of = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::UI64_TYPE, [])))?;
    let (index, _) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::INTEGER, [Field::Type(of), Field::Unsigned(index)]));
    let fields = [Field::Count(1), Field::Attribute(session.add_vhlo_string(b"index")), Field::Attribute(index)];
    let (_, indexed) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::DICT, fields));
    operation.set_attribute(CONFIG, indexed);
    Ok(())
}

/// Makes a lowered callback the placeholder that it was.
pub fn unlower<'s>(program: &Program<'s, '_>, operation: Op<'s>, config: Attribute<'s>) {
    operation.set_attribute(CONFIG, config);
    operation.remove_attribute(LOWERED_ATTRIBUTE);
    set_target(program, operation, PLACEHOLDER_TARGET);
}

fn set_target(program: &Program<'_, '_>, operation: Op<'_>, target: &str) {
    let session = program.session;
    let (_, name) =
        session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::STRING, [Field::String(Bytes(target.as_bytes().to_vec().into()))]));
    operation.set_attribute("call_target_name", name);
}

/// Whether a type is that of tokens.
pub fn is_token(session: &Session<'_>, of: Type<'_>) -> bool {
    session.type_id(of).is_ok_and(|id| session.tables().r#type(id).is(dialect::VHLO, code::vhlo::TOKEN_TYPE))
}

/// What was chosen for a slot.
pub struct Fate<'o> {
    /// What is to become of it.
    pub policy: &'o Policy,
    /// What it would be lowered to.
    pub lowering: Lowering,
}

/// Chooses for each slot of a program.
pub fn fate<'o>(options: &'o Options, slot: &Slot) -> Fate<'o> {
    let callbacks = &options.callbacks;
    let lowering = match &options.platform {
        Some(platform) => callbacks.table.lowering(slot, platform),
        // Where no platform is meant, none is in the way.
        None => Lowering::HostTransfer,
    };
    let chooser = callbacks.policies.chooser(&options.platforms, &callbacks.table);
    let policy = chooser.choose(slot.name(), options.platform.as_ref(), &lowering).policy;
    Fate { policy, lowering }
}
