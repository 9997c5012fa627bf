//! The operations of a module in one flat tree: in textual order, each operation followed by everything inside it.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use super::tables::{AttributeId, OpNameId, TypeId, id};

id!(
    /// A value: a result of an operation or an argument of a block, numbered over the whole module.
    ValueId
);

/// A stretch of one of the tree's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first position.
    pub start: u32,
    /// How many there are.
    pub len: u32,
}

impl Span {
    /// The stretch of `len` positions from `start`.
    pub fn new(start: usize, len: usize) -> Self {
        Self { start: start as u32, len: len as u32 }
    }

    /// The positions.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// One operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its name.
    pub name: OpNameId,
    /// Its location.
    pub location: AttributeId,
    /// Its dictionary: the discardable attributes, or all of them in bytecode before version 5.
    pub attributes: Option<AttributeId>,
    /// Its inherent attributes, in [`OpTree::properties`].
    pub properties: Option<Span>,
    /// Its results: consecutive values.
    pub results: Span,
    /// Its operands, in [`OpTree::operands`].
    pub operands: Span,
    /// Its successors, in [`OpTree::successors`].
    pub successors: Span,
    /// Its regions, in [`OpTree::regions`].
    pub regions: Span,
    /// The position in [`OpTree::operations`] after everything inside it.
    pub end: u32,
}

/// One region.
#[derive(Debug, Clone, Copy, Default)]
pub struct Region {
    /// The operation it belongs to.
    pub owner: u32,
    /// The values that its blocks define, without those of nested regions: consecutive.
    pub values: Span,
    /// Its blocks, in [`OpTree::blocks`].
    pub blocks: Span,
}

/// One block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    /// Its arguments: consecutive values.
    pub arguments: Span,
    /// Where the locations of its arguments begin in [`OpTree::argument_locations`].
    pub locations: u32,
    /// Its operations begin here in [`OpTree::operations`] …
    pub first: u32,
    /// … and end here, everything inside them included.
    pub end: u32,
}

/// A value whose uses stand in an order of their own in memory. It means nothing, but MLIR's writer keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseOrder {
    /// The value.
    pub value: ValueId,
    /// A permutation of its uses.
    pub order: Vec<u32>,
}

/// The operations of a module and the pools they point into.
#[derive(Debug, Clone, Default)]
pub struct OpTree {
    /// All operations in textual order.
    pub operations: Vec<Operation>,
    /// All regions; those of one operation are neighbours.
    pub regions: Vec<Region>,
    /// All blocks; those of one region are neighbours.
    pub blocks: Vec<Block>,
    /// The types of all values.
    pub value_types: Vec<TypeId>,
    /// Operands of all operations.
    pub operands: Vec<ValueId>,
    /// Successors of all operations: positions among the blocks of the region around them.
    pub successors: Vec<u32>,
    /// Inherent attributes of all operations.
    pub properties: Vec<Option<AttributeId>>,
    /// Locations of all block arguments.
    pub argument_locations: Vec<AttributeId>,
    /// Use-list orders, in the order of their values.
    pub use_orders: Vec<UseOrder>,
}

impl OpTree {
    /// The operands of an operation.
    pub fn operands_of(&self, operation: &Operation) -> &[ValueId] {
        &self.operands[operation.operands.range()]
    }

    /// The regions of an operation.
    pub fn regions_of(&self, operation: &Operation) -> &[Region] {
        &self.regions[operation.regions.range()]
    }

    /// The blocks of a region.
    pub fn blocks_of(&self, region: &Region) -> &[Block] {
        &self.blocks[region.blocks.range()]
    }

    /// The operations directly in a block, with their positions.
    pub fn operations_in(&self, block: &Block) -> impl Iterator<Item = (u32, &Operation)> {
        self.siblings(block.first, block.end)
    }

    /// The operations at the top: one, the module.
    pub fn top(&self) -> impl Iterator<Item = (u32, &Operation)> {
        self.siblings(0, self.operations.len() as u32)
    }

    fn siblings(&self, first: u32, end: u32) -> impl Iterator<Item = (u32, &Operation)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let at = next;
            let operation = self.operations.get(at as usize).filter(|_| at < end)?;
            next = operation.end;
            Some((at, operation))
        })
    }
}
