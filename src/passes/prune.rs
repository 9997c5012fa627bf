#![doc = include_str!("prune.md")]

use super::{Changes, Options, Pass};
use crate::bytecode::{Field, code, dialect};
use crate::error::Result;
use crate::ir::{Calls, Op, Program};

pub const PASS: Pass = Pass {
    name: "prune",
    summary: "Erase dead operations and the functions and meshes that nothing reaches",
    doc: include_str!("prune.md"),
    in_split: true,
    run,
};

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    // Dead operations first: they may be the last to name a mesh.
    let operations_removed = erase_dead(program);
    let unreachable = Calls::of(program)?.unreachable(program);
    let symbols_removed = unreachable.len();
    unreachable.into_iter().for_each(Op::erase);
    Ok(Changes { operations_removed, symbols_removed, ..Changes::default() })
}

/// One walk backwards: whatever uses a value stands after it, so it was seen before.
pub(super) fn erase_dead(program: &Program<'_, '_>) -> usize {
    let mut operations = Vec::new();
    Program::walk(program.module, |operation| operations.push(operation));
    let mut erased = 0;
    for operation in operations.into_iter().rev() {
        let is_unused = operation.results().all(|result| !result.has_uses());
        if is_unused && is_removable(program, operation) {
            operation.erase();
            erased += 1;
        }
    }
    erased
}

/// Whether an operation goes when nothing uses its results.
pub(super) fn is_removable(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    let name = operation.name_str();
    match name.split_once('.') {
        Some(("builtin", "unrealized_conversion_cast")) => true,
        Some(("vhlo", name)) => match name.rsplit_once("_v").map_or(name, |(name, _)| name) {
            "return" => false,
            "all_gather"
            | "all_reduce"
            | "all_to_all"
            | "collective_broadcast"
            | "collective_permute"
            | "collective_reduce"
            | "cross-replica-sum"
            | "reduce_scatter"
            | "async_start"
            | "async_done" => false,
            "rng" | "infeed" | "outfeed" | "send" | "recv" | "call" | "composite" => false,
            "custom_call" => !has_side_effect(program, operation),
            _ => holds_only_removable(program, operation),
        },
        // Source: the traits in Shardy's `ops.td`.
        Some(("sdy", "reshard" | "constant" | "propagation_barrier")) => true,
        Some(("sdy", "manual_computation" | "named_computation")) => holds_only_removable(program, operation),
        _ => false,
    }
}

/// Whether no region of an operation holds anything with an effect.
fn holds_only_removable(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    let mut blocks = operation.regions().flat_map(|region| region.blocks());
    blocks.all(|block| {
        block.operations().all(|inner| {
            let is_terminator = inner.next().is_none();
            (is_terminator && matches!(inner.name_str(), "vhlo.return_v1" | "sdy.return")) || is_removable(program, inner)
        })
    })
}

pub(super) fn has_side_effect(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    let Some(attribute) = operation.attribute("has_side_effect") else { return true };
    let Ok(id) = program.session.attribute_id(attribute) else { return true };
    let tables = program.session.tables();
    let entry = tables.attribute(id);
    !(entry.is(dialect::VHLO, code::vhlo::BOOL) && entry.fields[..] == [Field::Unsigned(0)])
}
