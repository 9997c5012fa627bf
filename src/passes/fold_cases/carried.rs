//! Values that the platform decides and that an operation carries into its regions: loops and manual computations.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::platform_value::{decided, has_constants, known};
use super::Folding;
use super::local::malformed;
use crate::bytecode::{Code, Entry, Field, code, dialect};
use crate::error::{Error, Result};
use crate::ir::functions::{self, rebuild_without, without};
use crate::ir::{Block, Definition, Op, Program, Value};

/// How often one loop is looked at in a round. JAX's loops carry a handful of values that the platform decides.
const MOST_LOOKS: usize = 64;

impl<'s> Folding<'_, 's, '_> {
    /// Drops what a `while` carries unchanged and the platform decides. Returns false if there is none.
    pub(super) fn drop_from_loop(&mut self, operation: Op<'s>) -> Result<bool> {
        let program = self.program;
        let looks = self.loop_looks.entry(operation).or_default();
        *looks += 1;
        if *looks > MOST_LOOKS {
            return Ok(false);
        }
        let blocks: Vec<_> = operation.regions().filter_map(|region| region.first_block()).collect();
        let [condition, body] = blocks[..] else {
            return Err(malformed(program, operation, "has no condition or no body"));
        };
        let terminator = body.last().filter(|last| last.operand_count() == operation.operand_count());
        let terminator = terminator.ok_or_else(|| malformed(program, operation, "has a body that does not return what it carries"))?;
        let unchanged = unchanged(program, operation, body, terminator);
        if unchanged.is_empty() {
            return Ok(false);
        }
        let positions: Vec<usize> = unchanged.iter().map(|(position, _)| *position).collect();
        for (position, value) in &unchanged {
            // What the marker outside stands beside can be seen from inside as well.
            let beside = operation.operand(*position).defining_op().and_then(|marker| marker.operands().next());
            for block in [condition, body] {
                self.replace_argument(block, *position, *value, beside)?;
            }
            self.replace_result(operation, *position, *value, beside)?;
        }
        terminator.set_operands(&without(terminator.operands().collect(), &positions));
        for block in [condition, body] {
            positions.iter().rev().for_each(|position| block.erase_argument(*position));
        }
        rebuild_without(program.session, operation, &positions, &positions)?;
        self.changes.arguments_dropped += positions.len();
        Ok(true)
    }

    /// Drops what a manual computation takes and the platform decides. Returns false if there is none.
    pub(super) fn drop_from_manual_computation(&mut self, operation: Op<'s>) -> Result<bool> {
        let body = functions::body(operation);
        let body = body.filter(|body| body.argument_count() == operation.operand_count());
        let body = body.ok_or_else(|| malformed(self.program, operation, "has a body that does not take its operands"))?;
        let decided = operation.operands().enumerate().filter_map(|(position, operand)| Some((position, decided(operand)?)));
        let has_constants = |position: &usize| has_constants(self.program.session, body.argument(*position).r#type());
        let decided: Vec<(usize, i64)> = decided.filter(|(position, _)| has_constants(position)).collect();
        let positions: Vec<usize> = decided.iter().map(|(position, _)| *position).collect();
        if positions.is_empty() {
            return Ok(false);
        }
        for (position, value) in &decided {
            self.replace_argument(body, *position, *value, None)?;
        }
        drop_shardings(self.program, operation, "in_shardings", &positions)?;
        positions.iter().rev().for_each(|position| body.erase_argument(*position));
        rebuild_without(self.program.session, operation, &positions, &[])?;
        self.changes.arguments_dropped += positions.len();
        Ok(true)
    }

    /// Drops a result of a manual computation that the platform decides, given its `sdy.return`. Returns false if that belongs to something else.
    pub(super) fn drop_result_of_manual_computation(&mut self, terminator: Op<'s>, position: usize) -> Result<bool> {
        let Some(operation) = terminator.parent().filter(|parent| parent.is("sdy.manual_computation")) else { return Ok(false) };
        let value = decided(terminator.operand(position)).ok_or_else(|| Error::bug("a marker without a value"))?;
        if position >= operation.result_count() {
            return Err(malformed(self.program, operation, "returns more than its results"));
        }
        if !has_constants(self.program.session, operation.result(position).r#type()) {
            return Ok(false);
        }
        self.replace_result(operation, position, value, None)?;
        drop_shardings(self.program, operation, "out_shardings", &[position])?;
        terminator.set_operands(&without(terminator.operands().collect(), &[position]));
        rebuild_without(self.program.session, operation, &[], &[position])?;
        self.changes.arguments_dropped += 1;
        Ok(true)
    }

    /// Puts a marker at the start of a block in place of one of its arguments.
    fn replace_argument(&mut self, block: Block<'s>, position: usize, value: i64, beside: Option<Value<'s>>) -> Result<()> {
        if position >= block.argument_count() {
            return Err(Error::format("a region takes fewer arguments than its operation has operands"));
        }
        let argument = block.argument(position);
        if !argument.has_uses() {
            return Ok(());
        }
        let first = block.first().ok_or_else(|| Error::bug("a block without a terminator"))?;
        self.put(argument, value, beside, first)
    }

    /// Puts a marker before an operation in place of one of its results.
    fn replace_result(&mut self, operation: Op<'s>, position: usize, value: i64, beside: Option<Value<'s>>) -> Result<()> {
        let result = operation.result(position);
        if result.has_uses() { self.put(result, value, beside, operation) } else { Ok(()) }
    }
}

/// The positions that start with a decided value and keep it, each with the value.
fn unchanged<'s>(program: &Program<'s, '_>, operation: Op<'s>, body: Block<'s>, terminator: Op<'s>) -> Vec<(usize, i64)> {
    let start = operation.operands().enumerate().filter_map(|(position, operand)| Some((position, decided(operand)?)));
    let mut candidates: BTreeMap<usize, i64> = start.collect();
    // Which candidates each position is returned to; a candidate that goes takes those with it.
    let mut returned_to: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    let mut gone = Vec::new();
    for (position, value) in &candidates {
        let returned = origin(terminator.operand(*position));
        match returned.definition() {
            Definition::Argument(block, index) if block == body && candidates.get(&index) == Some(value) => {
                returned_to.entry(index).or_default().push(*position);
            }
            _ if known(program.session, returned) == Some(*value) => {}
            _ => gone.push(*position),
        }
    }
    while let Some(position) = gone.pop() {
        if candidates.remove(&position).is_some() {
            gone.extend(returned_to.remove(&position).unwrap_or_default());
        }
    }
    candidates.into_iter().collect()
}

/// Where a value comes from, through barriers and through inner loops that carry it unchanged.
fn origin(mut value: Value<'_>) -> Value<'_> {
    loop {
        let Definition::Result(operation, position) = value.definition() else { return value };
        match operation.name_str() {
            "vhlo.optimization_barrier_v1" => value = operation.operand(position),
            "vhlo.while_v1" => {
                let Some(body) = operation.regions().nth(1).and_then(|region| region.first_block()) else { return value };
                let returned = body.last().filter(|last| position < last.operand_count()).map(|last| last.operand(position));
                if returned.map(Value::definition) != Some(Definition::Argument(body, position)) {
                    return value;
                }
                value = operation.operand(position);
            }
            _ => return value,
        }
    }
}

/// Drops elements of a `sharding_per_value`, whichever of its two encodings it has.
fn drop_shardings(program: &Program<'_, '_>, operation: Op<'_>, name: &str, positions: &[usize]) -> Result<()> {
    use code::sdy::{SHARDING_PER_VALUE, SHARDING_PER_VALUE_UNREDUCED};
    let session = program.session;
    let wrong = || malformed(program, operation, &format!("has no `{name}` for its values"));
    let id = session.attribute_id(operation.attribute(name).ok_or_else(wrong)?)?;
    let entry = session.tables().attribute(id).clone();
    let (dialect::SDY, Code::Known(code @ (SHARDING_PER_VALUE | SHARDING_PER_VALUE_UNREDUCED))) = (entry.dialect, entry.code) else {
        return Err(wrong());
    };
    let left = without(entry.attributes().collect(), positions);
    let mut fields = vec![Field::Count(left.len() as u32)];
    fields.extend(left.into_iter().map(Field::Attribute));
    let (_, attribute) = session.add_attribute(Entry::new(dialect::SDY, code, fields));
    operation.set_attribute(name, attribute);
    Ok(())
}
