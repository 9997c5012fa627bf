#![doc = include_str!("strip_callbacks.md")]

use super::placeholders::{Placeholder, fate, placeholders};
use super::{Changes, Options, Pass};
use crate::callbacks::Policy;
use crate::error::{Error, Result};
use crate::ir::{Program, Value};

pub const PASS: Pass = Pass {
    name: "strip-callbacks",
    summary: "Erase the callbacks whose policy is `strip`",
    doc: include_str!("strip_callbacks.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let mut changes = Changes::default();
    for placeholder in placeholders(program)? {
        if *fate(options, &placeholder.slot).policy == Policy::Strip {
            strip(program, placeholder)?;
            changes.callbacks_stripped += 1;
        }
    }
    Ok(changes)
}

fn strip<'s>(program: &Program<'s, '_>, placeholder: Placeholder<'s>) -> Result<()> {
    placeholder.check(program)?;
    if let Some((position, _)) = placeholder.results().into_iter().find(|(_, result)| result.has_uses()) {
        let number = position - placeholder.tokens();
        let error = Error::refused(format!(
            "result {number} of {} is used, and `strip` leaves nothing in its place",
            placeholder.described(program)
        ));
        let name = placeholder.slot.name();
        return Err(
            error.with_hint(format!("`--callback '{name}=stub:zeros'` replaces the results, `stub:operand:0` passes an operand on"))
        );
    }
    let tokens: Vec<Value<'s>> = placeholder.operation.operands().take(placeholder.tokens()).collect();
    placeholder.replace(&tokens);
    Ok(())
}
