//! Folding: each use of a pending marker is carried out or set aside.

use super::super::platform_value::{decided, is_platform_value, known, make, unmarked};
use super::{Folding, arithmetic};
use crate::error::{Error, Result};
use crate::ir::{Block, Definition, Op, Program, Value, constants};

impl<'s> Folding<'_, 's, '_> {
    /// Folds everything that the pending markers decide.
    pub(super) fn fold(&mut self) -> Result<()> {
        while let Some(marker) = self.markers.pending.pop() {
            // The same marker again, for the uses that stay.
            let mut aside = None;
            while let Some((user, position)) = marker.result(0).uses().next() {
                if self.fold_use(marker, user, position)? {
                    continue;
                }
                let kept = match aside {
                    Some(kept) => kept,
                    None => self.set_aside(marker)?,
                };
                aside = Some(kept);
                user.set_operand(position, kept.result(0));
                if user.is("vhlo.while_v1") {
                    // What one operand of a loop could not do, the others cannot either.
                    let same = user.operands().enumerate().filter(|(_, value)| *value == marker.result(0));
                    let positions: Vec<_> = same.map(|(position, _)| position).collect();
                    positions.into_iter().for_each(|position| user.set_operand(position, kept.result(0)));
                }
            }
            marker.erase();
        }
        Ok(())
    }

    fn set_aside(&mut self, marker: Op<'s>) -> Result<Op<'s>> {
        let result = marker.result(0);
        let kept = make(self.program, result.r#type(), value_of(marker)?, marker.operands().next(), marker)?;
        self.markers.aside.insert(kept);
        Ok(kept)
    }

    /// Puts a marker before `position` and has its uses looked at.
    pub(super) fn put(&mut self, replaced: Value<'s>, value: i64, beside: Option<Value<'s>>, position: Op<'s>) -> Result<()> {
        let marker = make(self.program, replaced.r#type(), value, beside, position)?;
        replaced.replace_uses(marker.result(0));
        self.markers.pending.insert(marker);
        Ok(())
    }

    /// Marks a value that an operation computes. Its other uses then use the marker.
    pub(super) fn mark(&mut self, value: Value<'s>, known: i64) -> Result<()> {
        let Definition::Result(operation, _) = value.definition() else {
            return Err(Error::bug("a marker beside a block argument"));
        };
        let next = operation.next().ok_or_else(|| Error::bug("a value of a terminator"))?;
        let marker = make(self.program, value.r#type(), known, Some(value), next)?;
        value.replace_uses_except(marker.result(0), marker);
        self.markers.pending.insert(marker);
        Ok(())
    }

    /// Carries one use of a marker out. Returns false if it stays.
    fn fold_use(&mut self, marker: Op<'s>, user: Op<'s>, position: usize) -> Result<bool> {
        match (user.name_str(), position) {
            ("vhlo.case_v1", 0) => {
                let index = value_of(marker)?;
                let last = user.region_count().checked_sub(1).ok_or_else(|| malformed(self.program, user, "has no branches"))?;
                // StableHLO: an index outside the range selects the last branch.
                let branch = usize::try_from(index).map_or(last, |index| index.min(last));
                self.inline_branch(user, branch)?;
                Ok(true)
            }
            ("vhlo.if_v1", 0) => {
                self.inline_branch(user, usize::from(value_of(marker)? == 0))?;
                Ok(true)
            }
            ("vhlo.select_v1", 0) => {
                let chosen = user.operand(if value_of(marker)? == 0 { 2 } else { 1 });
                let result = user.result(0);
                if chosen.r#type() != result.r#type() {
                    return Ok(false);
                }
                self.choose(result, chosen, user)?;
                user.erase();
                self.changes.operations_folded += 1;
                Ok(true)
            }
            ("vhlo.while_v1", _) => self.drop_from_loop(user),
            ("sdy.manual_computation", _) => self.drop_from_manual_computation(user),
            ("sdy.return", _) => self.drop_result_of_manual_computation(user, position),
            _ => {
                let found = arithmetic::fold(self.program, user, position);
                // The use itself stays, until the operation is pruned. A result that only markers use was found already, by way of another operand.
                if let Some((result, value)) = found.filter(|(result, _)| result.uses().any(|(user, _)| !is_platform_value(user))) {
                    self.mark(result, value)?;
                    self.changes.operations_folded += 1;
                }
                Ok(false)
            }
        }
    }

    /// Replaces a `case` or `if` by the operations of one of its branches.
    fn inline_branch(&mut self, case: Op<'s>, branch: usize) -> Result<()> {
        let block = if branch < case.region_count() { case.region(branch).first_block() } else { None };
        let block = block.ok_or_else(|| malformed(self.program, case, "has an empty branch"))?;
        let terminator = block.last().filter(|last| last.is("vhlo.return_v1") && last.operand_count() == case.result_count());
        let terminator = terminator.ok_or_else(|| malformed(self.program, case, "has a branch that does not return its results"))?;
        move_operations(block, terminator, case);
        for (result, value) in case.results().zip(terminator.operands()) {
            self.choose(result, value, case)?;
        }
        self.markers.erase(case);
        self.changes.cases_resolved += 1;
        Ok(())
    }

    /// Lets everything that uses `result` use `chosen`, which the platform chose. An integer constant that was chosen is itself decided by the platform.
    fn choose(&mut self, result: Value<'s>, chosen: Value<'s>, position: Op<'s>) -> Result<()> {
        if !result.has_uses() {
            return Ok(());
        }
        let Some(value) = known(self.program.session, chosen) else {
            result.replace_uses(chosen);
            return Ok(());
        };
        let beside = match chosen.defining_op().filter(|operation| is_platform_value(*operation)) {
            Some(marker) => self.beside(marker)?,
            None => Some(chosen),
        };
        self.put(result, value, beside, position)
    }

    /// What a new marker stands beside that takes the place of `marker`.
    fn beside(&self, marker: Op<'s>) -> Result<Option<Value<'s>>> {
        match marker.operands().next() {
            Some(beside) => Ok(Some(beside)),
            // Nothing, if a constant can be made where one is needed.
            None if constants::integer(self.program.session, marker.result(0).r#type()).is_some() => Ok(None),
            None => unmarked(self.program, marker).map(Some),
        }
    }
}

fn value_of(marker: Op<'_>) -> Result<i64> {
    decided(marker.result(0)).ok_or_else(|| Error::bug("a marker without a value"))
}

fn move_operations<'s>(block: Block<'s>, terminator: Op<'s>, before: Op<'s>) {
    let mut next = block.first();
    while let Some(operation) = next.filter(|operation| *operation != terminator) {
        next = operation.next();
        operation.move_before(before);
    }
}

pub(super) fn malformed(program: &Program<'_, '_>, operation: Op<'_>, what: &str) -> Error {
    Error::format(format!("`{}` at {} {what}", operation.name_str(), program.session.place(operation)))
}
