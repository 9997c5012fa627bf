//! Folding inside one function: a worklist of markers, each of whose uses is carried out or set aside.

use indexmap::IndexSet;

use super::super::platform_value::{decided, is_platform_value, known, make, unmarked};
use super::{Changes, arithmetic, carried};
use crate::error::{Error, Result};
use crate::ir::{Block, Definition, Op, Program, Value, constants};

/// Markers whose uses are still to be looked at. A set, since a branch that goes takes its markers with it.
pub(super) type Worklist<'s> = IndexSet<Op<'s>>;

/// Folds everything that the platform decides in one function.
pub(super) fn fold<'s>(program: &Program<'s, '_>, function: Op<'s>) -> Result<Changes> {
    let mut changes = Changes::default();
    let mut worklist = Worklist::new();
    Program::walk(function, |operation| {
        if is_platform_value(operation) {
            worklist.insert(operation);
        }
    });
    while let Some(marker) = worklist.pop() {
        // The same marker again, for the uses that stay: those of calls, whose function is not known yet, and those that nothing can be done about.
        let mut aside = None;
        while let Some((user, position)) = marker.result(0).uses().next() {
            if !fold_use(program, marker, user, position, &mut worklist, &mut changes)? {
                let kept = match aside {
                    Some(kept) => kept,
                    None => set_aside(program, marker)?,
                };
                aside = Some(kept);
                user.set_operand(position, kept.result(0));
            }
        }
        marker.erase();
    }
    Ok(changes)
}

fn set_aside<'s>(program: &Program<'s, '_>, marker: Op<'s>) -> Result<Op<'s>> {
    let result = marker.result(0);
    let value = decided(result).ok_or_else(|| Error::bug("a marker without a value"))?;
    make(program, result.r#type(), value, marker.operands().next(), marker)
}

/// Marks a value that an operation computes. Its other uses then use the marker.
pub(super) fn mark<'s>(program: &Program<'s, '_>, value: Value<'s>, known: i64) -> Result<Op<'s>> {
    let Definition::Result(operation, _) = value.definition() else {
        return Err(Error::bug("a marker beside a block argument"));
    };
    let next = operation.next().ok_or_else(|| Error::bug("a value of a terminator"))?;
    let marker = make(program, value.r#type(), known, Some(value), next)?;
    value.replace_uses_except(marker.result(0), marker);
    Ok(marker)
}

/// Carries one use of a marker out. Returns false if it stays.
fn fold_use<'s>(
    program: &Program<'s, '_>,
    marker: Op<'s>,
    user: Op<'s>,
    position: usize,
    worklist: &mut Worklist<'s>,
    changes: &mut Changes,
) -> Result<bool> {
    match (user.name_str(), position) {
        ("vhlo.case_v1", 0) => {
            let index = decided(marker.result(0)).ok_or_else(|| Error::bug("a marker without a value"))?;
            let last = user.region_count().checked_sub(1).ok_or_else(|| malformed(program, user, "has no branches"))?;
            let branch = usize::try_from(index).map_or(last, |index| index.min(last));
            inline_branch(program, user, branch, worklist)?;
            changes.cases_resolved += 1;
            Ok(true)
        }
        ("vhlo.if_v1", 0) => {
            let branch = usize::from(decided(marker.result(0)) == Some(0));
            inline_branch(program, user, branch, worklist)?;
            changes.cases_resolved += 1;
            Ok(true)
        }
        ("vhlo.select_v1", 0) => {
            let chosen = user.operand(if decided(marker.result(0)) == Some(0) { 2 } else { 1 });
            let result = user.result(0);
            if chosen.r#type() != result.r#type() {
                return Ok(false);
            }
            choose(program, result, chosen, user, worklist)?;
            user.erase();
            changes.operations_folded += 1;
            Ok(true)
        }
        ("vhlo.while_v1", _) => carried::drop_from_loop(program, user, worklist, changes),
        ("sdy.manual_computation", _) => carried::drop_from_manual_computation(program, user, worklist, changes),
        ("sdy.return", _) => carried::drop_result_of_manual_computation(program, user, position, worklist, changes),
        _ => {
            let Some((result, value)) = arithmetic::fold(program, user, position) else { return Ok(false) };
            if !result.uses().any(|(user, _)| !is_platform_value(user)) {
                // Nobody asks, or it was found already by way of another operand.
                return Ok(false);
            }
            worklist.insert(mark(program, result, value)?);
            changes.operations_folded += 1;
            // The use itself stays, until the operation is pruned.
            Ok(false)
        }
    }
}

/// Replaces a `case` or `if` by the operations of one of its branches.
fn inline_branch<'s>(program: &Program<'s, '_>, case: Op<'s>, branch: usize, worklist: &mut Worklist<'s>) -> Result<()> {
    let block = if branch < case.region_count() { case.region(branch).first_block() } else { None };
    let block = block.ok_or_else(|| malformed(program, case, "has an empty branch"))?;
    let terminator = block.last().filter(|last| last.is("vhlo.return_v1") && last.operand_count() == case.result_count());
    let terminator = terminator.ok_or_else(|| malformed(program, case, "has a branch that does not return its results"))?;
    move_operations(block, terminator, case);
    for (result, value) in case.results().zip(terminator.operands()) {
        choose(program, result, value, case, worklist)?;
    }
    // Markers in the branches that go must not be looked at again.
    Program::walk(case, |operation| {
        worklist.swap_remove(&operation);
    });
    case.erase();
    Ok(())
}

fn move_operations<'s>(block: Block<'s>, terminator: Op<'s>, before: Op<'s>) {
    let mut next = block.first();
    while let Some(operation) = next.filter(|operation| *operation != terminator) {
        next = operation.next();
        operation.move_before(before);
    }
}

/// Lets everything that uses `result` use `chosen`, which the platform chose. An integer constant that was chosen is itself decided by the platform.
fn choose<'s>(
    program: &Program<'s, '_>,
    result: Value<'s>,
    chosen: Value<'s>,
    position: Op<'s>,
    worklist: &mut Worklist<'s>,
) -> Result<()> {
    if !result.has_uses() {
        return Ok(());
    }
    match known(program.session, chosen) {
        Some(value) => {
            let beside = if decided(chosen).is_some() { unmarked_operand(program, chosen)? } else { Some(chosen) };
            let marker = make(program, result.r#type(), value, beside, position)?;
            result.replace_uses(marker.result(0));
            worklist.insert(marker);
        }
        None => result.replace_uses(chosen),
    }
    Ok(())
}

/// What a marked value stands beside.
fn unmarked_operand<'s>(program: &Program<'s, '_>, value: Value<'s>) -> Result<Option<Value<'s>>> {
    let marker = value.defining_op().ok_or_else(|| Error::bug("a marked value without a marker"))?;
    Ok(match marker.operands().next() {
        Some(beside) => Some(beside),
        // A marker in place of an argument has nothing beside it, and the new one takes its place as well as any constant.
        None if constants::integer(program.session, value.r#type()).is_some() => None,
        None => Some(unmarked(program, marker)?),
    })
}

pub(super) fn malformed(program: &Program<'_, '_>, operation: Op<'_>, what: &str) -> Error {
    Error::format(format!("`{}` at {} {what}", operation.name_str(), program.session.place(operation)))
}
