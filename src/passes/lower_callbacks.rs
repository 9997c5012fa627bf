#![doc = include_str!("lower_callbacks.md")]

use rustc_hash::FxHashMap;

use super::placeholders::{Placeholder, fate, is_lowered, numbered, placeholders, set_index};
use super::{Changes, Options, Pass};
use crate::callbacks::{Kind, Lowering, Policy};
use crate::error::{Error, Result};
use crate::ir::{Op, Program};

pub const PASS: Pass = Pass {
    name: "lower-callbacks",
    summary: "Make of callbacks what JAX would have emitted for the platform",
    doc: include_str!("lower_callbacks.md"),
    in_split: false,
    run,
};

/// Calls that an error lists.
const LISTED: usize = 10;

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let Some(platform) = &options.platform else {
        return Err(Error::refused("no platform to lower callbacks for was given"));
    };
    let mut changes = Changes::default();
    let mut refused = Vec::new();
    let mut targets: FxHashMap<Op<'_>, (Placeholder<'_>, String)> = FxHashMap::default();
    for mut placeholder in placeholders(program)? {
        let fate = fate(options, &placeholder.slot);
        let lowering = match fate.policy {
            Policy::Lower => fate.lowering,
            Policy::Host | Policy::Unpartition => {
                changes.callbacks_adapted += usize::from(adapt(program, &mut placeholder, fate.policy)?);
                options.callbacks.table.lowering(&placeholder.slot, platform)
            }
            Policy::Ffi(target) => {
                placeholder.retarget(program, target);
                changes.callbacks_retargeted += 1;
                continue;
            }
            Policy::Refuse => {
                let why = match fate.lowering {
                    Lowering::Impossible(why) => why,
                    _ => "its policy is `refuse`".to_owned(),
                };
                refused.push((placeholder, why));
                continue;
            }
            // They stay.
            _ => Lowering::HostTransfer,
        };
        match lowering {
            Lowering::Impossible(why) => refused.push((placeholder, why)),
            Lowering::Target(target) => _ = targets.insert(placeholder.operation, (placeholder, target)),
            Lowering::HostTransfer => {}
        }
    }
    if !refused.is_empty() {
        return Err(refusal(program, &refused, platform.as_str(), options.callbacks.table.has_platform(platform.as_str())));
    }
    if targets.is_empty() {
        return Ok(changes);
    }
    // Those that stay have numbers too, and those that were lowered before get theirs anew.
    for (operation, number) in numbered(program)? {
        if let Some((placeholder, target)) = targets.remove(&operation) {
            placeholder.check(program)?;
            placeholder.lower(program, &target, number)?;
            changes.callbacks_lowered += 1;
        } else if is_lowered(operation) {
            set_index(program, operation, number)?;
        }
    }
    Ok(changes)
}

/// Makes a callback one that more platforms run. Returns false if it is one already.
fn adapt<'s>(program: &Program<'s, '_>, placeholder: &mut Placeholder<'s>, policy: &Policy) -> Result<bool> {
    let slot = match policy {
        Policy::Host if placeholder.slot.kind() == Kind::Buffer => {
            let slot = placeholder.slot.to_host(placeholder.has_side_effect(program), &placeholder.aliases_of_arrays(program))?;
            placeholder.drop_aliases(program);
            slot
        }
        Policy::Unpartition if placeholder.slot.meta().partitioned => placeholder.slot.to_unpartitioned()?,
        _ => return Ok(false),
    };
    placeholder.set_slot(program, slot);
    Ok(true)
}

/// Names each call that was refused, and the ways out. `is_known`: the table has the platform.
fn refusal(program: &Program<'_, '_>, refused: &[(Placeholder<'_>, String)], platform: &str, is_known: bool) -> Error {
    let mut lines: Vec<String> = Vec::new();
    for (placeholder, why) in refused.iter().take(LISTED) {
        lines.push(format!("{}: {why}\n  {}", placeholder.slot, placeholder.place(program)));
    }
    if refused.len() > LISTED {
        lines.push(format!("and {} more", refused.len() - LISTED));
    }
    let slot = refused.first().map(|(placeholder, _)| &placeholder.slot);
    let name = slot.map_or("NAME", |slot| slot.name());
    let has_results = slot.is_some_and(|slot| !slot.meta().results.is_empty());
    let mut ways = Vec::new();
    match slot.map(|slot| (slot.kind(), slot.meta().partitioned)) {
        _ if !is_known => ways.push("`--table FILE` says what a platform has".to_owned()),
        Some((Kind::Buffer, _)) => ways.push(format!("`--callback '{platform}:{name}=host'` runs it as a host callback")),
        Some((_, true)) if !has_results => {
            ways.push(format!("`--callback '{platform}:{name}=unpartition'` runs it once for all shards"));
        }
        _ => {}
    }
    let removal = if has_results { "stub:zeros" } else { "strip" };
    let effect = if has_results { "replaces its results" } else { "removes it" };
    ways.push(format!("`--callback '{platform}:{name}={removal}'` {effect}"));
    ways.push("`keep` leaves it to be bound when the file is loaded".to_owned());
    Error::refused(lines.join("\n")).with_hint(ways.join(", "))
}
