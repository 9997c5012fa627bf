//! The order in which the uses of a value stand in memory once StableHLO has written a module in an older version. It means nothing, but MLIR's writer keeps
//! it, and so do we: what we write are the bytes that StableHLO writes.
//!
//! StableHLO takes a module to its own version and back. Each operation that has a newer form is replaced on the way: its uses of other values come
//! to the front, and in the end its own results get the uses of the old ones one by one, each before the one that came before it. Operations of other dialects stay, and
//! their uses where they are; all others are made anew, in order.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use super::operations::has_newer;
use crate::bytecode::{Bytecode, OpNameId, UseOrder, ValueId, dialect};

/// The orders that are not the usual one, in the order of their values. Values of other dialects keep theirs.
pub(super) fn of(bytecode: &Bytecode<'_>) -> Vec<UseOrder> {
    let (tables, tree) = (&bytecode.tables, &bytecode.tree);
    let names = (0..tables.op_name_count() as u32).map(OpNameId);
    let is_replaced: Vec<bool> = names.map(|name| tables.op_row(name).is_some_and(has_newer)).collect();
    let mut values = vec![Uses::default(); tree.value_types.len()];
    for operation in &tree.operations {
        let is_replaced = is_replaced[operation.name.index()];
        let stays = tables.op_name(operation.name).dialect != dialect::VHLO;
        for value in tree.operands_of(operation) {
            values[value.index()].are_replaced.push(is_replaced);
            values[value.index()].stays |= stays;
        }
        for value in operation.results.range() {
            values[value].is_of_replaced = is_replaced;
            values[value].stays |= stays;
        }
    }
    let mut before = tree.use_orders.iter().peekable();
    let mut orders = Vec::new();
    for (uses, value) in values.iter().zip((0..).map(ValueId)) {
        let own = before.next_if(|order| order.value == value);
        let order = if uses.are_touched() { uses.order() } else { own.filter(|_| uses.stays).map(|own| own.order.clone()) };
        orders.extend(order.map(|order| UseOrder { value, order }));
    }
    orders
}

/// The uses of a value, in textual order.
#[derive(Debug, Clone, Default)]
struct Uses {
    /// Whether the value is a result of an operation that is replaced.
    is_of_replaced: bool,
    /// For each use, whether its operation is replaced.
    are_replaced: Vec<bool>,
    /// Whether an operation of another dialect makes or uses the value.
    stays: bool,
}

impl Uses {
    fn are_touched(&self) -> bool {
        self.is_of_replaced || self.are_replaced.contains(&true)
    }

    /// Where each use stands, the last one first. `None` if they stand so.
    fn order(&self) -> Option<Vec<u32>> {
        let count = self.are_replaced.len();
        let (replaced, others): (Vec<usize>, Vec<usize>) = (0..count).partition(|index| self.are_replaced[count - 1 - index]);
        let mut in_memory = [replaced, others].concat();
        if self.is_of_replaced {
            in_memory.reverse();
        }
        let mut order = vec![0; count];
        for (place, index) in in_memory.into_iter().enumerate() {
            order[index] = place as u32;
        }
        (!order.is_sorted()).then_some(order)
    }
}
