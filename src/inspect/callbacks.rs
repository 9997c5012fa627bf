//! The Python callbacks of a file: what they are, where they are called, and what each platform has for them.
//!
//! Slots are numbered as `split` numbers them: in each module from 0, by first appearance in textual order, that of `main` first. Everything here is
//! plain data that serializes; `docs/json.md` describes the JSON.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::sites::{self, Found, SiteKind, Texts};
use super::view::View;
use super::{FileFormat, config, module, types};
use crate::bytecode::{AttributeId, Bytecode, MAGIC, TypeId};
use crate::callbacks::{Alias, Kind, Lowering, Slot, Slots, Table};
use crate::container::{Exported, Platform};
use crate::error::{Error, Result};
use crate::source::{in_level, read_module};

/// The Python callbacks of a file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallbackReport {
    /// What the file is.
    pub format: FileFormat,
    /// The platforms of the export, in its order. For a module alone, which names none, those of the table.
    pub platforms: Vec<String>,
    /// The function itself, then its vector-Jacobian product, that one's, and so on. One for a module alone.
    pub levels: Vec<CallbackLevel>,
}

/// The callbacks of one function with its module.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallbackLevel {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// The name of the Python function. A module alone has none.
    pub function_name: Option<String>,
    /// Whether the effect is listed that makes JAX refuse lowered callbacks that nobody bound.
    pub guarded: bool,
    /// The callbacks that can be bound, by number.
    pub slots: Vec<CallbackSlot>,
    /// What works in no process but the one that wrote it, in the same order.
    pub bound: Vec<BoundCall>,
}

/// A callback that a placeholder stands for, or did before it was lowered.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallbackSlot {
    /// Its number in the module.
    pub slot: usize,
    /// Which of JAX's functions made it.
    pub kind: Kind,
    /// The name to bind it by.
    pub name: String,
    /// Whether the name is the same in every run.
    pub stable: bool,
    /// The Python function, as `module:qualname`.
    pub python_function: Option<String>,
    /// What a print prints.
    pub format: Option<String>,
    /// Whether its calls are ordered by a token, the first operand and result.
    pub ordered: bool,
    /// Whether it runs once for every shard.
    pub partitioned: bool,
    /// Whether a buffer callback can be recorded into a GPU's command buffer.
    pub command_buffer: bool,
    /// How `vmap` treats it, in JAX's words.
    pub vmap_method: Option<String>,
    /// What it was before it became a callback of the host: a buffer callback.
    pub was: Option<Kind>,
    /// The types of its operands as they were traced, without tokens: `float32[b,4]`.
    pub operands: Vec<String>,
    /// The types of its results.
    pub results: Vec<String>,
    /// Where it is called.
    pub calls: Vec<CallbackCall>,
    /// What it can be lowered to, for each platform.
    pub lowerings: Vec<PlatformLowering>,
}

/// A call of a callback.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallbackCall {
    /// The function of the module that it is in.
    pub function: String,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
    /// The target of its custom call, once it is lowered.
    pub target: Option<String>,
    /// The number that it is called by, once it is lowered.
    pub index: Option<u64>,
    /// Whether the operation says that it has side effects.
    pub has_side_effect: bool,
    /// The types of its operands, without tokens and those that say the shape of a result: `f32[?,4]`.
    pub operands: Vec<String>,
    /// The types of its results, without tokens.
    pub results: Vec<String>,
    /// Results in the memory of operands, each as `[operand, result]`.
    pub aliases: Vec<Alias>,
}

/// What a callback can be lowered to on one platform. One of the three.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlatformLowering {
    /// The platform.
    pub platform: String,
    /// The target of a custom call.
    pub target: Option<String>,
    /// Whether it stays a placeholder, which JAX lowers to host transfers as it loads the file.
    pub host_transfer: bool,
    /// Why it cannot be lowered.
    pub impossible: Option<String>,
}

/// An operation that works in no process but the one that wrote it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BoundCall {
    /// What it is: a callback that JAX lowered, a host transfer, or something else.
    pub kind: SiteKind,
    /// The target of a custom call, else `send` or `recv`.
    pub target: String,
    /// Why: `it holds …`.
    pub reason: String,
    /// The number in the process that wrote it, where it holds one.
    pub index: Option<u64>,
    /// The function of the module that it is in.
    pub function: String,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
}

/// The Python callbacks of an export, or of a module alone in MLIR bytecode, and what the table has for them.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): the input is malformed, or neither of the two, or a callback in it is malformed.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): the input is newer, or larger, than this version handles.
pub fn callbacks_of(input: &[u8], table: &Table) -> Result<CallbackReport> {
    if input.starts_with(MAGIC) {
        let platforms: Vec<_> = table.platforms().map(|name| Platform::new(name.to_owned())).collect();
        let mut describer = Describer::new(table, &platforms);
        let level = describer.level(0, None, &Bytecode::read(input, 0)?)?;
        return Ok(CallbackReport { format: FileFormat::Bytecode, platforms: names(&platforms), levels: vec![level] });
    }
    let exported = Exported::read(input)?;
    let platforms: Vec<_> = exported.platforms.iter().cloned().collect::<indexmap::IndexSet<_>>().into_iter().collect();
    let mut describer = Describer::new(table, &platforms);
    let read = |(number, level): (usize, &Exported<'_>)| {
        let bytecode = read_module(level, number, input)?;
        let described = describer.level(number, Some(level), &bytecode);
        described.map_err(|error| if number == 0 { error } else { error.context(in_level(number, "cannot read the callbacks")) })
    };
    let levels = exported.levels().enumerate().map(read).collect::<Result<_>>()?;
    Ok(CallbackReport { format: FileFormat::Export, platforms: names(&platforms), levels })
}

fn names(platforms: &[Platform]) -> Vec<String> {
    platforms.iter().map(ToString::to_string).collect()
}

struct Describer<'t> {
    table: &'t Table,
    platforms: &'t [Platform],
    texts: Texts,
}

impl<'t> Describer<'t> {
    fn new(table: &'t Table, platforms: &'t [Platform]) -> Self {
        Self { table, platforms, texts: Texts::new() }
    }

    fn level(&mut self, level: usize, exported: Option<&Exported<'_>>, bytecode: &Bytecode<'_>) -> Result<CallbackLevel> {
        let view = View::new(bytecode);
        let mut slots = Slots::default();
        let mut numbers: HashMap<AttributeId, usize> = HashMap::new();
        let mut calls: IndexMap<usize, Vec<CallbackCall>> = IndexMap::new();
        let mut bound = Vec::new();
        for found in sites::find(&view) {
            let is_slot = found.kind == SiteKind::Placeholder || found.config.is_some();
            if !is_slot {
                bound.extend(self.bound(&view, &found)?);
                continue;
            }
            let call = self.call(&view, &found, &mut slots, &mut numbers);
            let (number, call) = call.map_err(|error| error.context(whereabouts(&view, &found)))?;
            calls.entry(number).or_default().push(call);
        }
        let slots = slots.iter().enumerate();
        let slots = slots.map(|(number, slot)| self.slot(number, slot, calls.swap_remove(&number).unwrap_or_default()));
        Ok(CallbackLevel {
            level,
            function_name: exported.map(|exported| exported.function_name.clone().into_owned()),
            guarded: exported.is_some_and(sites::is_guarded),
            slots: slots.collect::<Result<_>>()?,
            bound,
        })
    }

    /// Reads a call, and the slot if it is the first one of that.
    fn call(
        &mut self,
        view: &View<'_, '_>,
        found: &Found<'_>,
        slots: &mut Slots,
        numbers: &mut HashMap<AttributeId, usize>,
    ) -> Result<(usize, CallbackCall)> {
        let known = found.config.and_then(|config| numbers.get(&config).copied());
        let number = match known {
            Some(number) => number,
            None => slots.add(config::slot_key(&view.bytecode.tables, found.config)?)?,
        };
        numbers.extend(found.config.map(|config| (config, number)));
        let slot = slots.get(number).ok_or_else(|| Error::bug("a slot that was just added"))?;
        let operation = view.operation(found.position);
        let failed = |error: Error| error.context(format!("cannot read callback `{}`", slot.name()));
        let signature = config::signature(view, operation, slot.meta()).map_err(failed)?;
        let aliases = config::aliases(view, operation, slot.meta()).map_err(failed)?;
        let is_lowered = found.kind == SiteKind::LoweredCallback;
        let call = CallbackCall {
            function: self.texts.take(view.function_name(found.position))?,
            place: self.texts.take_some(view.place(operation))?,
            target: self.texts.take_some(is_lowered.then(|| module::text(found.target)))?,
            index: if is_lowered { config::index(view, operation) } else { None },
            has_side_effect: config::has_side_effect(view.bytecode, operation),
            operands: self.types(view, &signature.operands)?,
            results: self.types(view, signature.results)?,
            aliases,
        };
        Ok((number, call))
    }

    fn types(&mut self, view: &View<'_, '_>, ids: &[TypeId]) -> Result<Vec<String>> {
        ids.iter().map(|&id| self.texts.take(types::text(view.bytecode, id))).collect()
    }

    fn slot(&mut self, number: usize, slot: &Slot, calls: Vec<CallbackCall>) -> Result<CallbackSlot> {
        let meta = slot.meta();
        Ok(CallbackSlot {
            slot: number,
            kind: slot.kind(),
            name: self.texts.take(slot.name().to_owned())?,
            stable: meta.stable,
            python_function: self.texts.take_some(meta.function.clone())?,
            format: self.texts.take_some(meta.fmt.clone().filter(|_| slot.kind() == Kind::Print))?,
            ordered: meta.ordered,
            partitioned: meta.partitioned,
            command_buffer: meta.cmd_buffer,
            vmap_method: self.texts.take_some(meta.vmap_method.clone())?,
            was: meta.was,
            operands: meta.args.iter().map(|array| self.texts.take(array.to_string())).collect::<Result<_>>()?,
            results: meta.results.iter().map(|array| self.texts.take(array.to_string())).collect::<Result<_>>()?,
            calls,
            lowerings: self.platforms.iter().map(|platform| self.lowering(slot, platform)).collect::<Result<_>>()?,
        })
    }

    fn lowering(&mut self, slot: &Slot, platform: &Platform) -> Result<PlatformLowering> {
        let (target, host_transfer, impossible) = match self.table.lowering(slot, platform) {
            Lowering::Target(target) => (Some(target), false, None),
            Lowering::HostTransfer => (None, true, None),
            Lowering::Impossible(why) => (None, false, Some(why)),
        };
        Ok(PlatformLowering {
            platform: self.texts.take(platform.to_string())?,
            target: self.texts.take_some(target)?,
            host_transfer,
            impossible: self.texts.take_some(impossible)?,
        })
    }

    /// What is no slot, if it is bound to the process that wrote it. A user's table can have targets that look like anybody's.
    fn bound(&mut self, view: &View<'_, '_>, found: &Found<'_>) -> Result<Option<BoundCall>> {
        let target = module::text(found.target);
        let kind = match found.kind {
            SiteKind::Unknown | SiteKind::Retired if self.table.has_target(&target) => SiteKind::LoweredCallback,
            SiteKind::Unknown | SiteKind::Retired => return Ok(None),
            kind => kind,
        };
        let operation = view.operation(found.position);
        Ok(Some(BoundCall {
            kind,
            reason: self.texts.take(sites::reason(kind, &target).to_owned())?,
            target: self.texts.take(target)?,
            index: config::index(view, operation),
            function: self.texts.take(view.function_name(found.position))?,
            place: self.texts.take_some(view.place(operation))?,
        }))
    }
}

/// What could not be done, and where it stands.
fn whereabouts(view: &View<'_, '_>, found: &Found<'_>) -> String {
    let place = view.place(view.operation(found.position)).map_or_else(String::new, |place| format!(" at {place}"));
    format!("cannot read the callback{place} in `@{}`", view.function_name(found.position))
}
