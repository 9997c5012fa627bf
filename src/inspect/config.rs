//! What the attributes of a callback's operation say, placeholder or lowered.

use super::view::View;
use crate::bytecode::{AttributeId, Bytecode, Code, Field, Operation, Tables, TypeId, code, dialect};
use crate::callbacks::{Alias, ConfigValue, Meta, SlotKey};
use crate::error::{Error, Result};

/// Reads what a placeholder's `mhlo.backend_config` says.
pub(super) fn slot_key(tables: &Tables<'_>, config: Option<AttributeId>) -> Result<SlotKey> {
    let nothing = || Error::format("a callback without `mhlo.backend_config`");
    let entry = tables.attribute(config.ok_or_else(nothing)?);
    if !entry.is(dialect::VHLO, code::vhlo::DICT) {
        return Err(Error::format("the configuration of a callback is no dictionary"));
    }
    let mut parts = entry.attributes();
    let mut items = Vec::new();
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        let key = tables.string(key).and_then(|key| std::str::from_utf8(key).ok());
        let key = key.ok_or_else(|| Error::format("the configuration of a callback has a key that is no text"))?;
        items.push((key, config_value(tables, value)));
    }
    SlotKey::read(&items)
}

fn config_value<'t>(tables: &'t Tables<'_>, value: AttributeId) -> ConfigValue<'t> {
    match tables.string(value).map(std::str::from_utf8) {
        Some(Ok(text)) => ConfigValue::Text(text),
        Some(Err(_)) => ConfigValue::Other,
        None => integer(tables, value, code::vhlo::I64_TYPE).map_or(ConfigValue::Other, |bits| ConfigValue::Integer(bits as i64)),
    }
}

/// The bits of an integer of that type.
fn integer(tables: &Tables<'_>, value: AttributeId, of: u8) -> Option<u64> {
    let entry = tables.attribute(value);
    match (entry.code, &entry.fields[..]) {
        (Code::Known(code::vhlo::INTEGER), [Field::Type(id), Field::Unsigned(bits)]) if entry.dialect == dialect::VHLO => {
            tables.r#type(*id).is(dialect::VHLO, of).then_some(*bits)
        }
        _ => None,
    }
}

/// The number that a lowered callback is called by.
pub(super) fn index(view: &View<'_, '_>, operation: &Operation) -> Option<u64> {
    let tables = &view.bytecode.tables;
    let config = view.discardable(operation, "mhlo.backend_config").or_else(|| view.bytecode.inherent(operation, "backend_config"));
    let index = tables.dictionary(config?)?.find(|(key, _)| *key == b"index")?;
    integer(tables, index.1, code::vhlo::UI64_TYPE)
}

/// Whether the operation says that it has side effects.
pub(super) fn has_side_effect(bytecode: &Bytecode<'_>, operation: &Operation) -> bool {
    let value = bytecode.inherent(operation, "has_side_effect").map(|id| bytecode.tables.attribute(id));
    value.is_some_and(|value| value.is(dialect::VHLO, code::vhlo::BOOL) && value.fields[..] == [Field::Unsigned(1)])
}

/// The operands and results of a callback that its metadata tells of.
pub(super) struct Signature<'b> {
    pub operands: Vec<TypeId>,
    pub results: &'b [TypeId],
}

/// The types of operands and results without tokens, which come first, and the operands that only say the shape of a result, which come last.
/// Fails if there are not as many as the metadata says.
pub(super) fn signature<'b>(view: &View<'b, '_>, operation: &Operation, meta: &Meta) -> Result<Signature<'b>> {
    let tree = &view.bytecode.tree;
    let tokens = meta.tokens as usize;
    let shapes = shape_operands(view, operation);
    let operands = tree.operands_of(operation);
    let results = tree.value_types.get(operation.results.range()).unwrap_or_default();
    let expected = (tokens + meta.args.len(), tokens + meta.results.len());
    let found = (operands.len() as u64).checked_sub(shapes);
    if found != Some(expected.0 as u64) || results.len() != expected.1 {
        let (without, results) = (operands.len().saturating_sub(usize::try_from(shapes).unwrap_or(usize::MAX)), results.len());
        return Err(Error::format(format!(
            "its metadata tells of {} operands and {} results, tokens included; the operation has {without} and {results}",
            expected.0, expected.1
        )));
    }
    let type_of = |value: &crate::bytecode::ValueId| tree.value_types.get(value.index()).copied();
    let operands = operands.iter().skip(tokens).take(meta.args.len()).filter_map(type_of).collect();
    Ok(Signature { operands, results: results.get(tokens..).unwrap_or_default() })
}

/// How many operands only say the shape of a result.
fn shape_operands(view: &View<'_, '_>, operation: &Operation) -> u64 {
    let tables = &view.bytecode.tables;
    let count = || {
        let of = tables.attribute(view.discardable(operation, "indices_of_shape_operands")?).types().next()?;
        match &tables.tensor(of)?.0[..] {
            [count] => u64::try_from(*count).ok(),
            _ => None,
        }
    };
    count().unwrap_or(0)
}

/// Which results lie in the memory of which operands, by numbers without tokens.
pub(super) fn aliases(view: &View<'_, '_>, operation: &Operation, meta: &Meta) -> Result<Vec<Alias>> {
    let tables = &view.bytecode.tables;
    let aliases = view.bytecode.inherent(operation, "output_operand_aliases").and_then(|id| tables.array(id));
    let alias = |id| alias(tables, id, meta).ok_or_else(|| Error::format("it has an alias of an operand or a result that is not there"));
    aliases.into_iter().flatten().map(alias).collect()
}

fn alias(tables: &Tables<'_>, id: AttributeId, meta: &Meta) -> Option<Alias> {
    let entry = tables.attribute(id);
    if !entry.is(dialect::VHLO, code::vhlo::OUTPUT_OPERAND_ALIAS) {
        return None;
    }
    let all_results = meta.results.len() as i64 + i64::from(meta.tokens);
    let (result, operand) = match &entry.fields[..] {
        // One result is no tuple.
        [Field::Count(0), Field::Signed(operand), Field::Count(0)] if all_results == 1 => (0, *operand),
        [Field::Count(1), Field::Signed(result), Field::Signed(operand), Field::Count(0)] => (*result, *operand),
        _ => return None,
    };
    let without_tokens = |number: i64, count: usize| {
        let number = number.checked_sub(i64::from(meta.tokens))?;
        u32::try_from(number).ok().filter(|number| (*number as usize) < count)
    };
    Some(Alias { operand: without_tokens(operand, meta.args.len())?, result: without_tokens(result, meta.results.len())? })
}
