#![doc = include_str!("strip_callbacks.md")]

use super::placeholders::{Placeholder, fate, placeholders};
use super::prune::erase_dead;
use super::{Changes, Options, Pass};
use crate::callbacks::Policy;
use crate::error::{Error, Result};
use crate::ir::Program;

pub const PASS: Pass = Pass {
    name: "strip-callbacks",
    summary: "Erase the callbacks whose policy is `strip`",
    doc: include_str!("strip_callbacks.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let mut changes = Changes::default();
    loop {
        let mut pending = placeholders(program)?;
        pending.retain(|placeholder| *fate(options, &placeholder.slot).policy == Policy::Strip);
        changes.callbacks_stripped = changes.callbacks_stripped.max(pending.len());
        // A callback may see the result of one before it, so the last goes first.
        let (mut used, before) = (Vec::new(), pending.len());
        for placeholder in pending.into_iter().rev() {
            placeholder.check(program)?;
            if placeholder.results().iter().any(|(_, result)| result.has_uses()) { used.push(placeholder) } else { strip(placeholder) }
        }
        match used.last() {
            None => return Ok(changes),
            Some(first) if used.len() == before => return Err(refusal(program, first)),
            // What was computed for those that went may have been the only use.
            Some(_) => changes.operations_removed += erase_dead(program),
        }
    }
}

fn strip(placeholder: Placeholder<'_>) {
    let tokens: Vec<_> = placeholder.operation.operands().take(placeholder.tokens()).collect();
    placeholder.replace(&tokens);
}

fn refusal<'s>(program: &Program<'s, '_>, placeholder: &Placeholder<'s>) -> Error {
    let used = placeholder.results().into_iter().find(|(_, result)| result.has_uses());
    let number = used.map_or(0, |(position, _)| position - placeholder.tokens());
    let described = placeholder.described(program);
    let error = Error::refused(format!("result {number} of {described} is used, and `strip` leaves nothing in its place"));
    let name = placeholder.slot.name();
    error.with_hint(format!("`--callback '{name}=stub:zeros'` replaces the results, `stub:operand:0` passes an operand on"))
}
