//! Whether an export is another one for a single platform: what `jaxprism verify` proves.
//!
//! Nothing here knows how [`split`](crate::split()) works, and nothing of it is called: no pass, no MLIR. The original is walked on the platform, by
//! StableHLO's own rules, and the split beside it ([`walk`], [`pairs`]). What counts in the one must be in the other, in the same order: operations with
//! their attributes, types, regions, locations and operands, functions with their signatures, meshes, and every field of the container. What the platform
//! decides may be gone, or be a constant; what has no effect and is not used may be gone. Whatever else there is, or cannot be followed, is a difference.
//!
//! Callbacks that were lowered are made placeholders again first, on both sides. Their numbers and targets are compared with nothing but one another.

mod alive;
mod container;
mod integer;
mod module;
mod pairs;
mod same;
mod walk;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::bytecode::{AttributeId, Bytecode, ValueId};
use crate::callbacks::LOWERED_ATTRIBUTE;
use crate::container::{Exported, Platform};
use crate::error::Result;
use crate::opt::unlower;
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
}

impl VerifyOptions {
    /// Compares source locations, or does not.
    pub fn ignore_locations(mut self, ignore: bool) -> Self {
        self.ignore_locations = ignore;
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
        let (original_export, split_export) = (Exported::read(original)?, Exported::read(split)?);
        let mut verification = Verification {
            verified: false,
            platform: None,
            levels: 0,
            functions: 0,
            operations: 0,
            differences: Vec::new(),
            is_cut: false,
        };
        let holds = (holds_lowered(&original_export, original)?, holds_lowered(&split_export, split)?);
        if holds.1 {
            check_numbers(&split_export, split, &mut verification)?;
        }
        if holds.0 || holds.1 {
            let (original, split) = (unlower(original)?.to_vec(), unlower(split)?.to_vec());
            compare(&original, &split, options, &mut verification)?;
        } else {
            compare(original, split, options, &mut verification)?;
        }
        verification.verified = verification.differences.is_empty();
        verification.is_cut = verification.differences.len() > MOST_DIFFERENCES;
        verification.differences.truncate(MOST_DIFFERENCES);
        Ok(verification)
    })
}

fn compare(original: &[u8], split: &[u8], options: &VerifyOptions, verification: &mut Verification) -> Result<()> {
    let (ours, theirs) = (Exported::read(original)?, Exported::read(split)?);
    let platform = match &theirs.platforms[..] {
        [platform] => Some(platform.clone()),
        _ => None,
    };
    verification.platform = platform.as_ref().map(ToString::to_string);
    let mut levels = Vec::new();
    for (number, (ours, theirs)) in ours.levels().zip(theirs.levels()).enumerate() {
        let modules = (read_module(ours, number, original)?, read_module(theirs, number, split)?);
        levels.push((ours, theirs, modules));
    }
    let mut differences = Vec::new();
    for (number, (ours, theirs, modules)) in levels.iter().enumerate() {
        // What a platform index or a dimension needs goes with the last of them.
        let is_resolved = ours.platforms.len() > 1;
        let needs_constants = !is_resolved || modules.1.is_polymorphic();
        differences.extend(container::differences(ours, theirs, number, platform.as_ref(), ours.uses_global_constants && needs_constants));
    }
    let counts = (ours.levels().count(), theirs.levels().count());
    if counts.0 != counts.1 {
        differences.push(Difference {
            original: Some(counts.0.to_string()),
            split: Some(counts.1.to_string()),
            ..Difference::new(DifferenceKind::Container, levels.len().saturating_sub(1), "number of levels")
        });
    }
    verification.differences.extend(differences);
    for (number, (ours, theirs, modules)) in levels.iter().enumerate() {
        verification.levels += 1;
        let same_bytes = ours.module.as_borrowed().is_some_and(|bytes| theirs.module.as_borrowed() == Some(bytes));
        if ours.platforms.len() < 2 && same_bytes {
            verification.operations += modules.1.tree.operations.len();
            verification.functions += modules.1.functions().count();
            continue;
        }
        let index = match (&platform, ours.platforms.len()) {
            (_, 0 | 1) => Index::None,
            (Some(platform), _) => match ours.platforms.iter().position(|known| known == platform) {
                Some(index) => Index::Is(index),
                None => Index::Unknown,
            },
            (None, _) => Index::Unknown,
        };
        level(number, &modules.0, &modules.1, index, options, verification);
    }
    Ok(())
}

/// The platform index of a level.
enum Index {
    /// The original takes none.
    None,
    /// It is this number.
    Is(usize),
    /// The split is for no platform of the original. The container says so.
    Unknown,
}

fn level(
    number: usize,
    original: &Bytecode<'_>,
    split: &Bytecode<'_>,
    index: Index,
    options: &VerifyOptions,
    verification: &mut Verification,
) {
    let index = match index {
        Index::None => None,
        Index::Is(index) => Some(index),
        Index::Unknown => return,
    };
    let unproved = |what: Unproved| Difference::new(DifferenceKind::Unproved, number, format!("cannot be proved: {what}"));
    let modules = readable(original, "ORIGINAL").and_then(|ours| Ok((ours, readable(split, "SPLIT")?)));
    let (ours, theirs) = match &modules {
        Ok(modules) => (&modules.0, &modules.1),
        Err(what) => return verification.differences.push(unproved(what.clone())),
    };
    let attempt = |carries_out| {
        let mut pairs = Pairs::new(ours, theirs, number, options.ignore_locations, carries_out);
        let done = modules_same(&mut pairs, index);
        pairs.differences.extend(done.err().map(unproved));
        (pairs.operations, pairs.functions.len(), pairs.differences)
    };
    let mut found = attempt(CarriesOut::Platform);
    if !found.2.is_empty() {
        // A split may have left a choice whose outcome is certain. Then both are compared without such choices.
        found = Some(attempt(CarriesOut::Everything)).filter(|again| again.2.is_empty()).unwrap_or(found);
    }
    verification.operations += found.0;
    verification.functions += found.1;
    verification.differences.extend(found.2);
}

/// A module of which everything can be looked at.
fn readable<'b, 'a>(bytecode: &'b Bytecode<'a>, name: &str) -> std::result::Result<Module<'b, 'a>, Unproved> {
    match &bytecode.unreadable {
        Some(what) => Err(format!("the module of {name} holds what is not known here: {what}")),
        None => Module::new(bytecode).map_err(|what| format!("the module of {name}: {what}")),
    }
}

fn modules_same(pairs: &mut Pairs<'_, '_, '_>, index: Option<usize>) -> std::result::Result<(), Unproved> {
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

/// Whether an export holds Python callbacks that were lowered.
fn holds_lowered(exported: &Exported<'_>, bytes: &[u8]) -> Result<bool> {
    for (level, exported) in exported.levels().enumerate() {
        let bytecode = read_module(exported, level, bytes)?;
        if lowered(&bytecode).next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What each lowered callback was, with its target and its configuration.
fn lowered<'b>(bytecode: &'b Bytecode<'_>) -> impl Iterator<Item = (AttributeId, Option<AttributeId>, Option<AttributeId>)> + 'b {
    bytecode.tree.operations.iter().filter_map(|operation| {
        let find = |name: &str| {
            let mut items = bytecode.tables.dictionary(operation.attributes?)?;
            items.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
        };
        Some((find(LOWERED_ATTRIBUTE)?, bytecode.inherent(operation, "call_target_name"), find("mhlo.backend_config")))
    })
}

/// Callbacks that were lowered have one number each, and each number is one callback.
fn check_numbers(exported: &Exported<'_>, bytes: &[u8], verification: &mut Verification) -> Result<()> {
    for (level, exported) in exported.levels().enumerate() {
        let bytecode = read_module(exported, level, bytes)?;
        let (mut numbers, mut callbacks) = (FxHashMap::default(), FxHashMap::default());
        for (was, _, number) in lowered(&bytecode) {
            let is_one = *numbers.entry(was).or_insert(number) == number && *callbacks.entry(number).or_insert(was) == was;
            if !is_one || number.is_none() {
                let what = format!("number of the lowered callback {}", same::attribute_text(&bytecode, was));
                let difference = Difference::new(DifferenceKind::Operation, level, what);
                verification.differences.push(difference);
            }
        }
    }
    Ok(())
}

/// The platform that an export is for, as messages show it.
fn platforms_text(platforms: &[Platform]) -> String {
    platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
