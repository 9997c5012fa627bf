//! Functions of other exports that take the place of callbacks: they are read for the platform, and linked into the module before its callbacks are treated.

use std::collections::BTreeMap;

use super::callbacks::{has_placeholders, holds_lowered, placeholder_slots};
use super::{SplitOptions, split};
use crate::bytecode::{Bytecode, Operation, dialect};
use crate::callbacks::{Array, CallbackOptions, Policies, Policy, Table};
use crate::container::{Aval, DisabledCheck, Exported, Platform};
use crate::emit::OutputOptions;
use crate::error::{Error, Result};
use crate::link::Linker;
use crate::passes::placeholders::fate;
use crate::passes::{CalledFunction, Options};

/// Operations whose results depend on which devices take part.
const COLLECTIVES: [&str; 12] = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "collective_reduce",
    "cross-replica-sum",
    "partition_id",
    "recv",
    "reduce_scatter",
    "replica_id",
    "send",
];

/// A module with the functions that its callbacks are to call.
pub(super) struct WithFunctions<'a> {
    pub bytecode: Bytecode<'a>,
    pub functions: Vec<CalledFunction>,
    /// The safety checks that the exports of these functions turn off.
    pub disabled_checks: Vec<DisabledCheck<'static>>,
}

/// Links what the callbacks of a module call into it. `exported` is the level that the module is of.
pub(super) fn link<'a>(bytecode: Bytecode<'a>, options: &Options, exported: &Exported<'_>) -> Result<WithFunctions<'a>> {
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for slot in placeholder_slots(&bytecode)? {
        if let Policy::Call(name) = fate(options, &slot).policy {
            *calls.entry(name.clone()).or_default() += 1;
        }
    }
    if calls.is_empty() {
        return Ok(WithFunctions { bytecode, functions: Vec::new(), disabled_checks: Vec::new() });
    }
    let Some(platform) = &options.platform else { return Err(Error::refused("no platform to call functions on was given")) };
    let mut linker = Linker::onto(bytecode)?;
    let (mut functions, mut disabled_checks) = (Vec::new(), Vec::new());
    for (name, count) in calls {
        let linked = link_one(&mut linker, options, exported, platform, (&name, count));
        let (function, checks) = linked.map_err(|error| error.context(format!("cannot call `{name}`")))?;
        functions.push(function);
        disabled_checks.extend(checks);
    }
    Ok(WithFunctions { bytecode: linker.close()?, functions, disabled_checks })
}

fn link_one(
    linker: &mut Linker<'_>,
    options: &Options,
    caller: &Exported<'_>,
    platform: &Platform,
    (name, count): (&str, usize),
) -> Result<(CalledFunction, Vec<DisabledCheck<'static>>)> {
    let bytes = options.callbacks.exports.get(name).ok_or_else(|| {
        Error::refused(format!("there is no export `{name}`")).with_hint("`CallbackOptions::export` gives the exports that policies call")
    })?;
    let keep = CallbackOptions::new(Policies::default().otherwise(Policy::Keep), Table::default());
    let only = SplitOptions::default().platforms([platform.clone()]).callbacks(keep).output(OutputOptions::default().no_vjp(true));
    let split = split(bytes, &only)?;
    let output = split.outputs.get(platform).ok_or_else(|| Error::bug("an export was split for another platform"))?;
    let exported = &output.exported;
    let module = exported.module.to_vec();
    let module = Bytecode::read(&module, 0)?;
    check(exported, &module, caller)?;
    let kept = crate::merge::kept(exported)?;
    let named = |paths: Vec<String>, avals: Vec<&Aval<'_>>| paths.into_iter().zip(avals.into_iter().map(Array::from)).collect();
    let symbol: String =
        exported.function_name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect();
    let symbol = if symbol.is_empty() { "function".to_owned() } else { symbol };
    // Shapes are refined for one caller alone.
    let is_dynamic = module.is_polymorphic();
    let copies = if is_dynamic { count } else { 1 };
    let module = module.into_owned();
    let symbols = (0..copies).map(|_| linker.link(&module, &symbol).map(|linked| linked.main)).collect::<Result<_>>()?;
    let function = CalledFunction {
        name: name.to_owned(),
        symbols,
        is_dynamic,
        devices: exported.device_count(),
        kept,
        inputs: named(exported.input_paths(), exported.input_avals()),
        results: named(exported.output_paths(), exported.output_avals()),
    };
    let owned = |check: &DisabledCheck<'_>| DisabledCheck {
        kind: check.kind,
        custom_call_target: check.custom_call_target.as_ref().map(|target| target.to_string().into()),
    };
    Ok((function, exported.disabled_checks.iter().flatten().map(owned).collect()))
}

/// Refuses a function that does more than compute, and one for other devices.
fn check(exported: &Exported<'_>, module: &Bytecode<'_>, caller: &Exported<'_>) -> Result<()> {
    if has_placeholders(module) || holds_lowered(module) {
        return Err(Error::refused("it has Python callbacks of its own").with_hint("`jaxprism strip` takes them out"));
    }
    let effects = exported.ordered_effects.iter().chain(&exported.unordered_effects).flatten();
    if let Some(effect) = effects.into_iter().next() {
        let name = effect.type_name.as_deref().unwrap_or("one without a name");
        return Err(Error::refused(format!("it has effects of its own: {name}")));
    }
    let (own, others) = (exported.device_count(), caller.device_count());
    if own != 1 && own != others {
        return Err(Error::refused(format!("it is for {own} devices, and whoever calls it for {others}")));
    }
    // On one device it is alone, whatever it says to others.
    let talks = |operation: &&Operation| {
        let name = module.tables.op_name(operation.name);
        let name = std::str::from_utf8(&name.name).ok().filter(|_| name.dialect == dialect::VHLO);
        name.and_then(|name| name.rsplit_once("_v")).is_some_and(|(name, _)| COLLECTIVES.contains(&name))
    };
    if let Some(operation) = module.tree.operations.iter().find(talks).filter(|_| own != others) {
        let (name, place) = (module.op_name(operation), crate::ir::place(&module.tables, operation.location));
        return Err(Error::refused(format!("`{name}` at {place} is for one device, and whoever calls the function is for {others}")));
    }
    Ok(())
}
