//! What callbacks mean for the road: what is to be done in a module, and what the container and the manifest say afterwards.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use std::borrow::Cow;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::bytecode::{AttributeId, Bytecode, Bytes, Entry, Field, Operation, code, dialect};
use crate::callbacks::{
    Alias, GUARD_EFFECT, Kind, LOWERED_ATTRIBUTE, ManifestCall, ManifestLevel, ManifestSlot, PLACEHOLDER_TARGET, Policies, Policy, Slot,
    SlotKey,
};
use crate::container::{DisabledCheck, DisabledCheckKind, Effect, Exported};
use crate::error::{Error, Result};
use crate::ir::{Program, UNKNOWN_PLACE};
use crate::passes::placeholders::{Placeholder, fate, is_token, placeholders, slot_key};
use crate::passes::{self, Options, Pass};

/// What became of a callback, for people and for tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallbackReport {
    /// The name that it is bound by.
    pub name: String,
    /// Which of JAX's functions made it.
    pub kind: Kind,
    /// The policy.
    pub policy: String,
    /// How many calls it had.
    pub calls: usize,
    /// The target of its calls; none where they are gone.
    pub target: Option<String>,
    /// The index that its calls hold, once lowered.
    pub index: Option<u64>,
    /// Whether its results are used and were replaced, so that the program computes something else.
    pub replaces_results: bool,
}

/// A callback of one module, and what is to become of it.
#[derive(Debug)]
struct Planned {
    /// As it was, for the manifest.
    entry: ManifestSlot,
    /// What it will be found under.
    key: SlotKey,
    replaces_results: bool,
}

/// What is to be done about the callbacks of one module.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The passes to run.
    pub(super) passes: Vec<&'static Pass>,
    /// The numbers of the ordered effects that go with their callbacks.
    pub(super) dropped_tokens: Vec<usize>,
    dropped_effects: Vec<&'static str>,
    /// Whether buffer callbacks with side effects became io callbacks.
    adds_io: bool,
    /// The safety checks that functions turn off which are called instead of callbacks.
    added_checks: Vec<DisabledCheck<'static>>,
    slots: Vec<Planned>,
}

/// JAX's effect classes of callbacks.
const IO: &str = "IOEffect";
const ORDERED_IO: &str = "OrderedIOEffect";
const DEBUG: &str = "DebugEffect";
const ORDERED_DEBUG: &str = "OrderedDebugEffect";
const BUFFER: &str = "BufferCallbackEffect";

/// Whether a module holds callbacks that are not lowered.
pub(super) fn has_placeholders(bytecode: &Bytecode<'_>) -> bool {
    let name = Field::String(Bytes(Cow::Borrowed(PLACEHOLDER_TARGET.as_bytes())));
    bytecode.tables.find_attribute(&Entry::new(dialect::VHLO, code::vhlo::STRING, [name])).is_some()
}

/// Whether callbacks that were lowered before are treated like the others: beside others, whose numbers depend on them, and where no platform is meant,
/// because nothing may stay in a file that is stripped. A file for a platform in which all callbacks are lowered is done with.
pub(super) fn unlowers(bytecode: &Bytecode<'_>, has_platform: bool) -> bool {
    (!has_platform || has_placeholders(bytecode)) && holds_lowered(bytecode)
}

/// The names of the callbacks of a module that are to be treated.
pub(super) fn names(bytecode: &Bytecode<'_>, has_platform: bool) -> Result<Vec<String>> {
    let unlowers = unlowers(bytecode, has_platform);
    if !unlowers && !has_placeholders(bytecode) {
        return Ok(Vec::new());
    }
    let config = |call: CustomCall<'_>| match call.lowered {
        Some(was) => Some(was).filter(|_| unlowers),
        None => call.config.filter(|_| call.target == PLACEHOLDER_TARGET.as_bytes()),
    };
    custom_calls(bytecode).filter_map(config).map(|config| slot_key(&bytecode.tables, config).map(|key| key.name)).collect()
}

/// The callback of each placeholder in a module, in textual order.
pub(super) fn placeholder_slots(bytecode: &Bytecode<'_>) -> Result<Vec<Slot>> {
    let placeholders = custom_calls(bytecode).filter(|call| call.lowered.is_none() && call.target == PLACEHOLDER_TARGET.as_bytes());
    placeholders.filter_map(|call| call.config).map(|config| Slot::new(slot_key(&bytecode.tables, config)?)).collect()
}

/// A custom call in bytecode.
struct CustomCall<'b> {
    target: &'b [u8],
    config: Option<AttributeId>,
    /// What it was before it was lowered.
    lowered: Option<AttributeId>,
}

fn custom_calls<'b>(bytecode: &'b Bytecode<'_>) -> impl Iterator<Item = CustomCall<'b>> {
    let is_custom_call = |operation: &&Operation| {
        let name = bytecode.tables.op_name(operation.name);
        name.dialect == dialect::VHLO && name.name.starts_with(b"custom_call_v")
    };
    bytecode.tree.operations.iter().filter(is_custom_call).filter_map(|operation| {
        let target = bytecode.tables.string(bytecode.inherent(operation, "call_target_name")?)?;
        let attribute = |name: &str| {
            let mut items = bytecode.tables.dictionary(operation.attributes?)?;
            items.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
        };
        Some(CustomCall { target, config: attribute("mhlo.backend_config"), lowered: attribute(LOWERED_ATTRIBUTE) })
    })
}

/// Whether a module holds Python callbacks that were lowered.
pub(crate) fn holds_lowered(bytecode: &Bytecode<'_>) -> bool {
    custom_calls(bytecode).any(|call| call.lowered.is_some())
}

/// Chooses for every callback of a program, and finds the effects that go with them. `ordered` are the effects of the tokens of `main`.
pub(super) fn plan(program: &Program<'_, '_>, options: &Options, ordered: &[Effect<'_>]) -> Result<Plan> {
    let mut plan = Plan::default();
    let mut positions: FxHashMap<SlotKey, usize> = FxHashMap::default();
    // For each effect, how many calls go and how many stay.
    let mut effects: IndexMap<&'static str, (usize, usize)> = IndexMap::new();
    let (mut strips, mut stubs, mut calls, mut lowers) = (false, false, false, false);
    for placeholder in placeholders(program)? {
        placeholder.check(program)?;
        let fate = fate(options, &placeholder.slot);
        let goes = matches!(fate.policy, Policy::Strip | Policy::Stub(_) | Policy::Call(_));
        match fate.policy {
            Policy::Strip => strips = true,
            Policy::Stub(_) => stubs = true,
            Policy::Call(_) => calls = true,
            _ => lowers = true,
        }
        let is_host = *fate.policy == Policy::Host && placeholder.slot.kind() == Kind::Buffer;
        if let Some(effect) = effect_of(program, &placeholder) {
            let (gone, kept) = effects.entry(effect).or_default();
            *(if goes || is_host { gone } else { kept }) += 1;
            plan.adds_io |= is_host;
        }
        let key = placeholder.slot.key().clone();
        let position = *positions.entry(key).or_insert_with(|| {
            plan.slots.push(planned(program, &placeholder, fate.policy, plan.slots.len()));
            plan.slots.len() - 1
        });
        let planned = &mut plan.slots[position];
        planned.entry.calls.push(call(program, &placeholder));
        planned.replaces_results |=
            matches!(fate.policy, Policy::Stub(_)) && placeholder.results().iter().any(|(_, result)| result.has_uses());
    }
    let goes = |class: &str| effects.get(class).is_some_and(|(gone, kept)| *gone > 0 && *kept == 0);
    if token_count(program)? == ordered.len() {
        let numbers = ordered.iter().enumerate().filter(|(_, effect)| class_of(effect).is_some_and(goes));
        plan.dropped_tokens = numbers.map(|(number, _)| number).collect();
    }
    plan.dropped_effects = [IO, DEBUG, BUFFER].into_iter().filter(|class| goes(class)).collect();
    let removes = strips || stubs || calls;
    let rows = [
        ("strip-callbacks", strips),
        ("stub-callbacks", stubs),
        ("call-callbacks", calls),
        ("drop-tokens", removes),
        ("prune", removes),
        // After what was computed for callbacks alone: a cast has the location of a use.
        ("tidy-casts", removes),
        ("lower-callbacks", lowers && options.platform.is_some()),
        ("drop-polymorphism", removes),
    ];
    plan.passes = rows.into_iter().filter(|(_, is_needed)| *is_needed).filter_map(|(name, _)| passes::find(name)).collect();
    Ok(plan)
}

/// How many tokens `main` takes.
fn token_count(program: &Program<'_, '_>) -> Result<usize> {
    let body = crate::ir::functions::body(program.main()?);
    Ok(body.map_or(0, |body| body.arguments().filter(|argument| is_token(program.session, argument.r#type())).count()))
}

/// The class of JAX's effect that a call has.
fn effect_of(program: &Program<'_, '_>, placeholder: &Placeholder<'_>) -> Option<&'static str> {
    let is_ordered = placeholder.slot.meta().ordered;
    match placeholder.slot.kind() {
        Kind::Pure => None,
        Kind::Io => Some(if is_ordered { ORDERED_IO } else { IO }),
        Kind::Debug | Kind::Print => Some(if is_ordered { ORDERED_DEBUG } else { DEBUG }),
        Kind::Buffer => placeholder.has_side_effect(program).then_some(BUFFER),
    }
}

/// The class of an effect as the file names it, if it is one of JAX's: `<class 'jax._src.callback.IOEffect'>`.
fn class_of<'e>(effect: &'e Effect<'_>) -> Option<&'e str> {
    let path = effect.type_name.as_deref()?.strip_prefix("<class 'jax.")?.strip_suffix("'>")?;
    path.rsplit('.').next()
}

fn planned(program: &Program<'_, '_>, placeholder: &Placeholder<'_>, policy: &Policy, number: usize) -> Planned {
    let (slot, meta) = (&placeholder.slot, placeholder.slot.meta());
    let aliases: Vec<Alias> = placeholder.aliases_of_arrays(program);
    let adapted = match policy {
        Policy::Host => slot.to_host(placeholder.has_side_effect(program), &aliases).ok(),
        Policy::Unpartition => slot.to_unpartitioned().ok(),
        _ => None,
    };
    let entry = ManifestSlot {
        slot: number as u32,
        kind: slot.kind(),
        name: slot.name().to_owned(),
        policy: policy.to_string(),
        target: match policy {
            Policy::Ffi(target) => Some(target.clone()),
            _ => None,
        },
        index: None,
        ordered: meta.ordered,
        partitioned: meta.partitioned,
        operands: meta.args.iter().map(ToString::to_string).collect(),
        results: meta.results.iter().map(ToString::to_string).collect(),
        aliases,
        calls: Vec::new(),
    };
    Planned { entry, key: adapted.as_ref().unwrap_or(slot).key().clone(), replaces_results: false }
}

fn call(program: &Program<'_, '_>, placeholder: &Placeholder<'_>) -> ManifestCall {
    let place = program.session.place(placeholder.operation);
    ManifestCall { function: placeholder.function.clone(), location: (place != UNKNOWN_PLACE).then_some(place) }
}

impl Plan {
    /// Whether there are no callbacks.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Notes what the exports of functions say that are called instead of callbacks.
    pub(super) fn add_checks(&mut self, checks: Vec<DisabledCheck<'static>>) {
        self.added_checks = checks;
    }

    /// Looks up in the finished module what the callbacks became.
    pub(super) fn look_up(&mut self, bytecode: &Bytecode<'_>) -> Result<()> {
        let tables = &bytecode.tables;
        let mut found: FxHashMap<SlotKey, (String, Option<u64>)> = FxHashMap::default();
        for call in custom_calls(bytecode) {
            let target = String::from_utf8_lossy(call.target).into_owned();
            match (call.lowered, call.config) {
                (Some(was), config) => {
                    let index = config.and_then(|config| tables.dictionary(config)?.next()).map(|(_, index)| tables.attribute(index));
                    let index = index.and_then(|index| match index.fields[..] {
                        [_, Field::Unsigned(index)] => Some(index),
                        _ => None,
                    });
                    found.insert(slot_key(tables, was)?, (target, index));
                }
                (None, Some(config)) if target == PLACEHOLDER_TARGET => _ = found.insert(slot_key(tables, config)?, (target, None)),
                _ => {}
            }
        }
        for planned in &mut self.slots {
            if let Some((target, index)) = found.get(&planned.key) {
                (planned.entry.target, planned.entry.index) = (Some(target.clone()), *index);
            }
        }
        Ok(())
    }

    /// What was done.
    pub(super) fn report(&self) -> Vec<CallbackReport> {
        let report = |planned: &Planned| CallbackReport {
            name: planned.entry.name.clone(),
            kind: planned.entry.kind,
            policy: planned.entry.policy.clone(),
            calls: planned.entry.calls.len(),
            target: planned.entry.target.clone(),
            index: planned.entry.index,
            replaces_results: planned.replaces_results,
        };
        self.slots.iter().map(report).collect()
    }

    /// The callbacks of the module for the manifest.
    pub(super) fn manifest(self, level: usize) -> ManifestLevel {
        ManifestLevel { level: level as u32, slots: self.slots.into_iter().map(|planned| planned.entry).collect() }
    }

    /// Takes from a level the effects that went with their callbacks.
    pub(super) fn update(&self, exported: &mut Exported<'_>) {
        if let Some(ordered) = exported.ordered_effects.as_mut().filter(|_| !self.dropped_tokens.is_empty()) {
            let mut number = 0;
            ordered.retain(|_| {
                number += 1;
                !self.dropped_tokens.contains(&(number - 1))
            });
        }
        if let Some(unordered) = exported.unordered_effects.as_mut().filter(|_| !self.dropped_effects.is_empty()) {
            unordered.retain(|effect| class_of(effect).is_none_or(|class| !self.dropped_effects.contains(&class)));
        }
        for check in &self.added_checks {
            let checks = exported.disabled_checks.get_or_insert_default();
            if !checks.contains(check) {
                checks.push(check.clone());
            }
        }
        if self.adds_io {
            let unordered = exported.unordered_effects.get_or_insert_default();
            if !unordered.iter().any(|effect| class_of(effect) == Some(IO)) {
                unordered.push(Effect { type_name: Some("<class 'jax._src.callback.IOEffect'>".into()) });
            }
        }
    }
}

/// Lets every level of an export list the effect that makes stock JAX refuse it, or none.
pub(crate) fn guard(exported: &mut Exported<'_>, holds_lowered: bool) -> Result<()> {
    exported.for_each_level_mut(|_, exported| {
        if let Some(unordered) = &mut exported.unordered_effects {
            unordered.retain(|effect| effect.type_name.as_deref() != Some(GUARD_EFFECT));
        }
        if holds_lowered {
            let guard = Effect { type_name: Some(GUARD_EFFECT.into()) };
            exported.unordered_effects.get_or_insert_default().push(guard);
        }
        Ok(())
    })
}

/// Whether a module holds callbacks, lowered or not.
pub(super) fn are_left(bytecode: &Bytecode<'_>) -> bool {
    custom_calls(bytecode).any(|call| call.lowered.is_some() || call.target == PLACEHOLDER_TARGET.as_bytes())
}

/// Takes the safety check of placeholders from a level that needs it no more.
pub(super) fn drop_check(exported: &mut Exported<'_>) {
    if let Some(checks) = &mut exported.disabled_checks {
        let is_ours = |name: Option<&str>| name == Some(PLACEHOLDER_TARGET);
        checks.retain(|check| check.kind != DisabledCheckKind::CustomCall || !is_ours(check.custom_call_target.as_deref()));
    }
}

/// Refuses policies that need to know the platform.
pub(super) fn check_for_strip(policies: &Policies) -> Result<()> {
    let needs_platform = policies.all().find(|policy| !matches!(policy, Policy::Strip | Policy::Stub(_) | Policy::Keep));
    match needs_platform {
        Some(policy) => Err(Error::refused(format!("policy `{policy}` is not for `strip`, which makes nothing for a platform"))
            .with_hint("`strip` knows the policies `strip`, `stub:…` and `keep`; `split` knows all")),
        None => Ok(()),
    }
}
