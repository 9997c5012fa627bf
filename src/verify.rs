//! Whether an export is another one for a single platform: what `jaxprism verify` proves.
//!
//! Nothing here knows how [`split`](crate::split()) works, and nothing of it is called: no pass, no MLIR. The original is walked on the platform, by
//! StableHLO's own rules, and the split beside it (`walk`, `pairs`). What counts in the one must be in the other, in the same order: operations with
//! their attributes, types, regions, locations and operands, functions with their signatures, meshes, and every field of the container. What the platform
//! decides may be gone, or be a constant; what has no effect and is not used may be gone. Whatever else there is, or cannot be followed, is a difference.
//!
//! Callbacks that were lowered are compared as the placeholders that they were; what they call instead must be what the table says.

mod alive;
mod container;
mod integer;
mod module;
mod pairs;
mod same;
mod walk;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::bytecode::{AttributeId, Bytecode, Bytes, Entry, Field, ValueId, code, dialect};
use crate::callbacks::{LOWERED_ATTRIBUTE, PLACEHOLDER_TARGET, Table};
use crate::container::{Exported, Platform};
use crate::error::Result;
use crate::inspect::callbacks_of;
use crate::source::read_module;
use crate::threads::on_deep_stack;
use integer::Integer;
use module::{Kind, Module, Unproved};
use pairs::Pairs;
use walk::{CarriesOut, Walker};

/// What [`verify`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Do not compare source locations, since they were stripped or redacted.
    pub ignore_locations: bool,
    /// What callbacks were lowered to.
    pub table: Table,
}

impl VerifyOptions {
    /// Compares source locations, or does not.
    pub fn ignore_locations(mut self, ignore: bool) -> Self {
        self.ignore_locations = ignore;
        self
    }

    /// Callbacks were lowered by this table.
    pub fn table(mut self, table: Table) -> Self {
        self.table = table;
        self
    }
}

/// What [`verify`] found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// Whether the split is proved to be the original for its platform.
    pub verified: bool,
    /// The platform of the split; none where it is not for exactly one.
    pub platform: Option<String>,
    /// How many levels were compared.
    pub levels: usize,
    /// How many functions of the split are the same as in the original, all levels together.
    pub functions: usize,
    /// How many operations in them are.
    pub operations: usize,
    /// What differs, or cannot be proved: of the container first, then by level, `main` first.
    pub differences: Vec<Difference>,
    /// Whether there were more differences than are listed.
    pub is_cut: bool,
}

/// What a difference is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DifferenceKind {
    /// A field of the container.
    Container,
    /// The module around its functions.
    Module,
    /// A function itself.
    Function,
    /// An operation in a function.
    Operation,
    /// Something that this version cannot follow.
    Unproved,
}

/// One thing in which a split is not its original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// What it is in.
    pub kind: DifferenceKind,
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// The function of the original's module.
    pub function: Option<String>,
    /// The name of the original's operation.
    pub operation: Option<String>,
    /// The place of that operation in the user's files, where one is known.
    pub place: Option<String>,
    /// What differs.
    pub what: String,
    /// What it is in the original.
    pub original: Option<String>,
    /// What it is in the split.
    pub split: Option<String>,
}

impl Difference {
    fn new(kind: DifferenceKind, level: usize, what: impl Into<String>) -> Self {
        Self { kind, level, function: None, operation: None, place: None, what: what.into(), original: None, split: None }
    }
}

/// Most differences that are listed.
const MOST_DIFFERENCES: usize = 100;

/// Compares an export for one platform with the one that it was split from.
///
/// The result says whether `split` is `original` specialised to the platform that `split` is for: not that both are the same bytes, but that they are the
/// same program, with the same signature, at every level. Whatever cannot be proved is a difference.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): one of them is malformed, or no export at all.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): one of them is newer, or nested deeper, than this version handles.
pub fn verify(original: &[u8], split: &[u8], options: &VerifyOptions) -> Result<Verification> {
    on_deep_stack(|| {
        let mut verification = compare(original, split, options)?;
        verification.verified = verification.differences.is_empty();
        verification.is_cut = verification.differences.len() > MOST_DIFFERENCES;
        verification.differences.truncate(MOST_DIFFERENCES);
        Ok(verification)
    })
}

/// One level of both.
struct Level<'e, 'a> {
    containers: (&'e Exported<'a>, &'e Exported<'a>),
    modules: (Bytecode<'a>, Bytecode<'a>),
    placeholder: (AttributeId, AttributeId),
}

fn compare(original: &[u8], split: &[u8], options: &VerifyOptions) -> Result<Verification> {
    let (ours, theirs) = (Exported::read(original)?, Exported::read(split)?);
    let platform = match &theirs.platforms[..] {
        [platform] => Some(platform),
        _ => None,
    };
    let mut levels = Vec::new();
    for (number, (ours, theirs)) in ours.levels().zip(theirs.levels()).enumerate() {
        let mut modules = (read_module(ours, number, original)?, read_module(theirs, number, split)?);
        let placeholder = (placeholder(&mut modules.0), placeholder(&mut modules.1));
        levels.push(Level { containers: (ours, theirs), modules, placeholder });
    }
    let mut found = Verification {
        verified: false,
        platform: platform.map(ToString::to_string),
        levels: levels.len(),
        functions: 0,
        operations: 0,
        differences: Vec::new(),
        is_cut: false,
    };
    let has_lowered = levels.iter().any(|level| holds_lowered(&level.modules.1));
    for (number, level) in levels.iter().enumerate() {
        let (ours, theirs) = level.containers;
        // What a platform index or a dimension needs goes with the last of them.
        let needs_constants = ours.platforms.len() < 2 || level.modules.1.is_polymorphic();
        let uses_global_constants = platform.map(|_| ours.uses_global_constants && needs_constants);
        let expected = container::Expected { platform, uses_global_constants, has_lowered };
        found.differences.extend(container::differences(ours, theirs, number, &expected));
    }
    let counts = (ours.levels().count(), theirs.levels().count());
    if counts.0 != counts.1 {
        found.differences.push(Difference {
            original: Some(counts.0.to_string()),
            split: Some(counts.1.to_string()),
            ..Difference::new(DifferenceKind::Container, levels.len().saturating_sub(1), "vjp")
        });
    }
    for (number, level) in levels.iter().enumerate() {
        compare_level(number, level, platform, options, &mut found);
    }
    if let Some(platform) = platform.filter(|_| has_lowered) {
        check_lowered(split, platform, &options.table, &mut found.differences);
    }
    Ok(found)
}

fn compare_level(number: usize, level: &Level<'_, '_>, platform: Option<&Platform>, options: &VerifyOptions, found: &mut Verification) {
    let (ours, theirs) = level.containers;
    let index = match (&ours.platforms[..], platform) {
        ([] | [_], _) => None,
        (platforms, Some(platform)) => match platforms.iter().position(|known| known == platform) {
            Some(index) => Some(index),
            // The container says so.
            None => return,
        },
        (_, None) => return,
    };
    if index.is_none() && ours.module.as_borrowed().is_some_and(|bytes| theirs.module.as_borrowed() == Some(bytes)) {
        found.operations += level.modules.1.tree.operations.len();
        found.functions += level.modules.1.functions().count();
        return;
    }
    let unproved = |what: Unproved| Difference::new(DifferenceKind::Unproved, number, format!("cannot be proved: {what}"));
    let ours = readable(&level.modules.0, level.placeholder.0, "ORIGINAL");
    let (ours, theirs) = match ours.and_then(|ours| Ok((ours, readable(&level.modules.1, level.placeholder.1, "SPLIT")?))) {
        Ok(modules) => modules,
        Err(what) => return found.differences.push(unproved(what)),
    };
    let attempt = |carries_out| {
        let mut pairs = Pairs::new(&ours, &theirs, number, options.ignore_locations, carries_out);
        let done = compare_modules(&mut pairs, index);
        pairs.differences.extend(done.err().map(unproved));
        (pairs.operations, pairs.functions.len(), pairs.differences)
    };
    let mut compared = attempt(CarriesOut::Platform);
    if !compared.2.is_empty() {
        // A split may have left a choice of the platform whose outcome is certain. Then it is compared without such choices.
        compared = Some(attempt(CarriesOut::Everything)).filter(|again| again.2.is_empty()).unwrap_or(compared);
    }
    found.operations += compared.0;
    found.functions += compared.1;
    found.differences.extend(compared.2);
}

/// A module of which everything can be looked at.
fn readable<'b, 'a>(bytecode: &'b Bytecode<'a>, placeholder: AttributeId, name: &str) -> std::result::Result<Module<'b, 'a>, Unproved> {
    match &bytecode.unreadable {
        Some(what) => Err(format!("the module of {name} holds what is not known here: {what}")),
        None => Module::new(bytecode, placeholder).map_err(|what| format!("the module of {name}: {what}")),
    }
}

fn compare_modules(pairs: &mut Pairs<'_, '_, '_>, index: Option<usize>) -> std::result::Result<(), Unproved> {
    let (original, split) = (pairs.original.module, pairs.split.module);
    container::encodings(original.bytecode, split.bytecode, pairs.level, &mut pairs.differences);
    pairs.module_attributes(index.map(|_| split.bytecode.is_polymorphic()));
    let names = public(original);
    walk_all(&mut pairs.original, &names, index)?;
    walk_all(&mut pairs.split, &public(split), None)?;
    let theirs = main_of(&mut pairs.split, None)?;
    let ours = main_of(&mut pairs.original, index)?;
    pairs.add((ours, theirs));
    let more = public(split).into_iter().filter(|name| !names.contains(name));
    for name in names.iter().copied().chain(more).filter(|name| *name != b"main") {
        pairs.add_named(name)?;
    }
    pairs.run()?;
    pairs.top_level();
    Ok(())
}

/// The functions that others may call, in textual order.
fn public<'b>(module: &Module<'b, '_>) -> Vec<&'b [u8]> {
    let functions = module.top.iter().filter(|&&position| module.kind(module.operation(position)) == Kind::Function);
    functions.filter(|&&position| !module.is_private(position)).filter_map(|&position| module.symbol(module.operation(position))).collect()
}

/// Walks `main` and the functions of these names, until it is clear which functions are named other than as callees.
fn walk_all(walker: &mut Walker<'_, '_, '_>, names: &[&[u8]], index: Option<usize>) -> std::result::Result<(), Unproved> {
    loop {
        main_of(walker, index)?;
        for function in names.iter().filter(|name| **name != b"main").filter_map(|name| walker.module.functions.get(name)) {
            walker.walk_any(*function)?;
        }
        if !walker.forget()? {
            return Ok(());
        }
    }
}

/// Walks `main`, with the number of the platform where it takes one.
fn main_of(walker: &mut Walker<'_, '_, '_>, index: Option<usize>) -> std::result::Result<usize, Unproved> {
    let module = walker.module;
    let main = module.functions.get(&b"main"[..]).copied().ok_or("there is no function `main`")?;
    let Some(index) = index else { return walker.walk_any(main) };
    let block = module.only_block(module.operation(main)).ok_or("`main` has no body of one block")?;
    let mut arguments = vec![None; block.arguments.len as usize];
    let is_index = block.arguments.len > 0 && module.integer(ValueId(block.arguments.start)).is_some_and(Integer::is_index);
    match arguments.first_mut().filter(|_| is_index) {
        Some(first) => *first = Some(index as i128),
        None => return Err("`main` of ORIGINAL takes no platform index".to_owned()),
    }
    walker.walk(main, arguments)
}

/// The name of the target that lowered callbacks had, where both modules can find it.
fn placeholder(bytecode: &mut Bytecode<'_>) -> AttributeId {
    let name = Field::String(Bytes(PLACEHOLDER_TARGET.as_bytes().into()));
    bytecode.tables.intern_attribute(Entry::new(dialect::VHLO, code::vhlo::STRING, [name]))
}

/// Whether a module holds Python callbacks that were lowered.
fn holds_lowered(bytecode: &Bytecode<'_>) -> bool {
    let mut dictionaries = bytecode.tree.operations.iter().filter_map(|operation| bytecode.tables.dictionary(operation.attributes?));
    dictionaries.any(|mut items| items.any(|(key, _)| key == LOWERED_ATTRIBUTE.as_bytes()))
}

/// Callbacks that were lowered call what the table says, by one number each that no other one has.
fn check_lowered(split: &[u8], platform: &Platform, table: &Table, differences: &mut Vec<Difference>) {
    let report = match callbacks_of(split, table) {
        Ok(report) => report,
        Err(error) => {
            let what = format!("cannot be proved: the callbacks of SPLIT: {error}");
            return differences.push(Difference::new(DifferenceKind::Unproved, 0, what));
        }
    };
    for level in report.levels {
        let mut numbers = FxHashMap::default();
        for slot in &level.slots {
            let lowering = slot.lowerings.iter().find(|lowering| lowering.platform == platform.as_str());
            let target = lowering.and_then(|lowering| lowering.target.clone());
            let mut own = None;
            for call in slot.calls.iter().filter(|call| call.target.is_some()) {
                let mut report = |what: &str, original: Option<String>, split: Option<String>| {
                    differences.push(Difference {
                        function: Some(call.function.clone()),
                        place: call.place.clone(),
                        original,
                        split,
                        ..Difference::new(DifferenceKind::Operation, level.level, format!("{what} of lowered callback `{}`", slot.name))
                    });
                };
                if target != call.target {
                    report("target", target.clone(), call.target.clone());
                }
                let is_own = *own.get_or_insert(call.index) == call.index;
                let is_free = call.index.is_some_and(|index| *numbers.entry(index).or_insert(slot.slot) == slot.slot);
                if !is_own || !is_free {
                    report("number", None, call.index.map(|index| index.to_string()));
                }
            }
        }
    }
}

/// The platform that an export is for, as messages show it.
fn platforms_text(platforms: &[Platform]) -> String {
    platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
