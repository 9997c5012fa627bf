#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]
#![doc = include_str!("tidy_casts.md")]

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::{Changes, Options, Pass};
use crate::bytecode::dialect;
use crate::error::Result;
use crate::ir::{Definition, Op, Program, Type, Value};

pub const PASS: Pass = Pass {
    name: "tidy-casts",
    summary: "Put conversion casts where JAX's writer puts them",
    doc: include_str!("tidy_casts.md"),
    in_split: true,
    run,
};

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let mut casts = Vec::new();
    if program.session.tables().find_op_name(dialect::BUILTIN, b"unrealized_conversion_cast").is_none() {
        return Ok(Changes::default());
    }
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
    changes.casts_tidied += merge(&mut casts);
    changes.casts_tidied += place(program, &casts);
    for cast in casts {
        changes.casts_tidied += usize::from(locate(program, cast));
    }
    Ok(changes)
}

fn is_cast(operation: Op<'_>) -> bool {
    operation.is("builtin.unrealized_conversion_cast") && operation.operand_count() == 1 && operation.result_count() == 1
}

fn is_to_vhlo(program: &Program<'_, '_>, cast: Op<'_>) -> bool {
    let id = program.session.type_id(cast.result(0).r#type());
    id.is_ok_and(|id| program.session.tables().r#type(id).dialect == dialect::VHLO)
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

/// Lets one cast serve where several cast one value to one type. It moves to the definition of the value, from where all uses see it.
fn merge<'s>(casts: &mut Vec<Op<'s>>) -> usize {
    let before = casts.len();
    let mut firsts: FxHashMap<(Value<'s>, Type<'s>), Op<'s>> = FxHashMap::default();
    casts.retain(|cast| {
        let first = *firsts.entry((cast.operand(0), cast.result(0).r#type())).or_insert(*cast);
        if first != *cast {
            if let Some(start) = behind_definition(first) {
                first.move_before(start);
            }
            cast.result(0).replace_uses(first.result(0));
            cast.erase();
        }
        first == *cast
    });
    before - casts.len()
}

/// The operation that stands where casts of a cast's operand begin: behind its definition, or at the start of its block.
fn behind_definition(cast: Op<'_>) -> Option<Op<'_>> {
    match cast.operand(0).definition() {
        Definition::Result(operation, _) => operation.next(),
        Definition::Argument(block, _) => block.first(),
    }
}

/// Puts all casts behind the definitions of their operands. JAX's writer makes those to vhlo in the order of their first uses and those to builtin types
/// in the order of the values, each in front of the ones before.
fn place<'s>(program: &Program<'s, '_>, casts: &[Op<'s>]) -> usize {
    let mut positions: FxHashMap<Op<'s>, usize> = FxHashMap::default();
    if !casts.is_empty() {
        Program::walk(program.module, |operation| {
            let position = positions.len();
            positions.insert(operation, position);
        });
    }
    let order = |cast: Op<'s>| match cast.operand(0).definition() {
        Definition::Result(_, index) | Definition::Argument(_, index) if !is_to_vhlo(program, cast) => Some((Some(index), 0)),
        _ => cast.result(0).uses().map(|(user, operand)| (positions.get(&user).copied(), operand)).min(),
    };
    let mut groups: IndexMap<Definition<'s>, Vec<Op<'s>>> = IndexMap::new();
    for cast in casts {
        let group = match cast.operand(0).definition() {
            Definition::Result(operation, _) => Definition::Result(operation, 0),
            Definition::Argument(block, _) => Definition::Argument(block, 0),
        };
        groups.entry(group).or_default().push(*cast);
    }
    let mut moved = 0;
    for mut group in groups.into_values() {
        group.sort_by_key(|cast| order(*cast));
        let start = behind_definition(group[0]);
        let stands = std::iter::successors(start, |operation| operation.next()).take(group.len());
        if stands.eq(group.iter().rev().copied()) {
            continue;
        }
        for cast in group {
            if let Some(start) = behind_definition(cast).filter(|start| *start != cast) {
                cast.move_before(start);
            }
            moved += 1;
        }
    }
    moved
}

/// Gives a cast its location: that of the operand's definition, or of a use if the cast is to vhlo.
fn locate(program: &Program<'_, '_>, cast: Op<'_>) -> bool {
    let is_to_vhlo = is_to_vhlo(program, cast);
    let uses: Vec<_> = cast.result(0).uses().collect();
    let wanted = match cast.operand(0).definition() {
        _ if is_to_vhlo && uses.iter().any(|(user, _)| user.location() == cast.location()) => return false,
        _ if is_to_vhlo => uses.last().map(|(user, _)| user.location()),
        Definition::Result(operation, _) => Some(operation.location()),
        Definition::Argument(..) => Some(cast.operand(0).location()),
    };
    let Some(wanted) = wanted.filter(|wanted| *wanted != cast.location()) else { return false };
    cast.set_location(wanted);
    true
}
