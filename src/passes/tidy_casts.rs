//! `tidy-casts`
//!
//! # What it does
//! Puts the casts between vhlo and the builtin types of Shardy's operations where JAX's own writer puts them: right behind the definition of their
//! operand, one for each value, none that cancels another. A cast to builtin types has the location of that definition, a cast to vhlo that of a use.
//!
//! # Before, after
//! ```mlir
//! %1 = unrealized_conversion_cast %0 : tensor<4xf32> to !vhlo.tensor_v1<4x!vhlo.f32_v1>
//! %2 = unrealized_conversion_cast %1 : !vhlo.tensor_v1<4x!vhlo.f32_v1> to tensor<4xf32>
//! sdy.return %2
//!
//! sdy.return %0
//! ```
//!
//! # Leaves alone
//! Casts of several values at once, and everything else.
//!
//! # Refuses
//! Nothing.

use rustc_hash::FxHashMap;

use super::{Changes, Options, Pass};
use crate::bytecode::dialect;
use crate::error::Result;
use crate::ir::{Definition, Op, Program, Type, Value};

pub const PASS: Pass = Pass { name: "tidy-casts", summary: "Put conversion casts where JAX's writer puts them", run };

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let mut casts = Vec::new();
    Program::walk(program.module, |operation| {
        if is_cast(operation) {
            casts.push(operation);
        }
    });
    let mut changes = Changes::default();
    for cast in &casts {
        changes.casts_tidied += usize::from(cancel(*cast));
    }
    changes.casts_tidied += erase_unused(&mut casts);
    let mut firsts: FxHashMap<(Value<'_>, Type<'_>), Op<'_>> = FxHashMap::default();
    for cast in casts {
        let key = (cast.operand(0), cast.result(0).r#type());
        let first = *firsts.entry(key).or_insert(cast);
        if first == cast {
            changes.casts_tidied += usize::from(move_to_definition(cast));
        } else {
            cast.result(0).replace_uses(first.result(0));
            cast.erase();
            changes.casts_tidied += 1;
        }
    }
    for cast in firsts.into_values() {
        changes.casts_tidied += usize::from(locate(program, cast)?);
    }
    Ok(changes)
}

fn is_cast(operation: Op<'_>) -> bool {
    operation.is("builtin.unrealized_conversion_cast") && operation.operand_count() == 1 && operation.result_count() == 1
}

/// Lets what uses a cast of a cast use the value itself, if the two casts cancel.
fn cancel(cast: Op<'_>) -> bool {
    let Some(inner) = cast.operand(0).defining_op().filter(|inner| is_cast(*inner)) else { return false };
    let value = inner.operand(0);
    if value.r#type() != cast.result(0).r#type() || !cast.result(0).has_uses() {
        return false;
    }
    cast.result(0).replace_uses(value);
    true
}

/// Erases casts that nothing uses, the last first, since one may be the only use of another.
fn erase_unused(casts: &mut Vec<Op<'_>>) -> usize {
    let before = casts.len();
    casts.reverse();
    casts.retain(|cast| {
        let is_used = cast.result(0).has_uses();
        if !is_used {
            cast.erase();
        }
        is_used
    });
    casts.reverse();
    before - casts.len()
}

/// Moves a cast behind the definition of its operand, unless only other casts stand between.
fn move_to_definition(cast: Op<'_>) -> bool {
    let after = match cast.operand(0).definition() {
        Definition::Result(operation, _) => operation.next(),
        Definition::Argument(block, _) => block.first(),
    };
    let mut place = after;
    while let Some(operation) = place.filter(|operation| is_cast(*operation)) {
        if operation == cast {
            return false;
        }
        place = operation.next();
    }
    let Some(first) = after else { return false };
    cast.move_before(first);
    true
}

/// Gives a cast its location: that of the operand's definition, or of a use if the cast is to vhlo.
fn locate(program: &Program<'_, '_>, cast: Op<'_>) -> Result<bool> {
    let id = program.session.type_id(cast.result(0).r#type())?;
    let is_to_vhlo = program.session.tables().r#type(id).dialect == dialect::VHLO;
    let uses: Vec<_> = cast.result(0).uses().collect();
    let wanted = match cast.operand(0).definition() {
        _ if is_to_vhlo && uses.iter().any(|(user, _)| user.location() == cast.location()) => return Ok(false),
        _ if is_to_vhlo => uses.last().map(|(user, _)| user.location()),
        Definition::Result(operation, _) => Some(operation.location()),
        Definition::Argument(..) => Some(cast.operand(0).location()),
    };
    let Some(wanted) = wanted.filter(|wanted| *wanted != cast.location()) else { return Ok(false) };
    cast.set_location(wanted);
    Ok(true)
}
