//! The canonical numbering: what MLIR's own writer would number how, for the same module.
//!
//! The order is decided by how often a thing is used and when it is first seen, in a walk that takes the regions last in, first out. The rules, and
//! how each was found to matter, are in `docs/format.md`.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::collections::HashMap;

use super::tables::{AttributeId, DialectId, Entry, Field, OpNameId, TypeId, dialect};
use super::{Bytecode, builtin};
use crate::error::{Error, Result};

/// Positions in the file for everything that is written, and the orders they come from.
pub(super) struct Numbering {
    pub attributes: Vec<AttributeId>,
    pub types: Vec<TypeId>,
    pub op_names: Vec<OpNameId>,
    pub dialects: Vec<DialectId>,
    attribute_numbers: Vec<u32>,
    type_numbers: Vec<u32>,
    op_name_numbers: Vec<u32>,
    dialect_numbers: Vec<u32>,
    /// The id of each value within its isolation scope.
    pub values: Vec<u32>,
    /// For each operation: whether nothing inside its regions uses a value from outside.
    pub isolated: Vec<bool>,
}

impl Numbering {
    pub fn attribute(&self, id: AttributeId) -> u32 {
        self.attribute_numbers[id.index()]
    }

    pub fn r#type(&self, id: TypeId) -> u32 {
        self.type_numbers[id.index()]
    }

    pub fn op_name(&self, id: OpNameId) -> u32 {
        self.op_name_numbers[id.index()]
    }

    pub fn dialect(&self, id: DialectId) -> u32 {
        self.dialect_numbers[id.index()]
    }

    /// Numbers everything that the module's operations reach.
    pub fn new(bytecode: &Bytecode<'_>) -> Result<Self> {
        if let Some(what) = &bytecode.unreadable {
            return Err(Error::unsupported(format!("the module cannot be rewritten: it holds {what}")));
        }
        let isolated = isolation(bytecode);
        let mut walk = Walk::new(bytecode);
        let values = walk.module(&isolated);
        for (dialect, _) in &bytecode.resources.dialect {
            walk.dialects.see(dialect.index());
        }
        let tables = &bytecode.tables;
        let dialects = walk.dialects.numbers(tables.dialect_count());
        let order = |seen: &Seen, dialect_of: &dyn Fn(usize) -> DialectId| seen.canonical(|id| dialects[dialect_of(id).index()]);
        let attributes = order(&walk.attributes, &|id| tables.attribute(AttributeId(id as u32)).dialect);
        let types = order(&walk.types, &|id| tables.r#type(TypeId(id as u32)).dialect);
        let op_names = order(&walk.op_names, &|id| tables.op_name(OpNameId(id as u32)).dialect);
        Ok(Self {
            attribute_numbers: positions(&attributes, tables.attribute_count()),
            type_numbers: positions(&types, tables.type_count()),
            op_name_numbers: positions(&op_names, tables.op_name_count()),
            attributes: attributes.into_iter().map(AttributeId).collect(),
            types: types.into_iter().map(TypeId).collect(),
            op_names: op_names.into_iter().map(OpNameId).collect(),
            dialects: walk.dialects.order.iter().map(|id| DialectId(*id)).collect(),
            dialect_numbers: dialects,
            values,
            isolated,
        })
    }
}

fn positions(order: &[u32], length: usize) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; length];
    for (number, id) in order.iter().enumerate() {
        numbers[*id as usize] = number as u32;
    }
    numbers
}

/// Things seen in a walk: in which order first, and how often.
struct Seen {
    counts: Vec<u32>,
    order: Vec<u32>,
}

impl Seen {
    fn new(length: usize) -> Self {
        Self { counts: vec![0; length], order: Vec::new() }
    }

    /// Counts one sight. Returns whether it was the first.
    fn see(&mut self, id: usize) -> bool {
        self.counts[id] += 1;
        if self.counts[id] == 1 {
            self.order.push(id as u32);
        }
        self.counts[id] == 1
    }

    fn numbers(&self, length: usize) -> Vec<u32> {
        positions(&self.order, length)
    }

    /// Most used first; then, within each range of ids that take the same number of bytes, by dialect, beginning with the dialect that ended the
    /// range before.
    fn canonical(&self, dialect_number: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut ids = self.order.clone();
        ids.sort_by_key(|id| std::cmp::Reverse(self.counts[*id as usize]));
        let (mut start, mut size, mut leading) = (0, 0u64, 0);
        for bytes in 1.. {
            size = (1u64 << (7 * bytes)) - size;
            let end = ids.len().min(start + size as usize);
            let range = &mut ids[start..end];
            range.sort_by_key(|id| {
                let number = dialect_number(*id as usize);
                (number != leading, number)
            });
            leading = range.last().map_or(leading, |id| dialect_number(*id as usize));
            start = end;
            if start == ids.len() {
                break;
            }
        }
        ids
    }
}

/// The walk that counts.
struct Walk<'b, 'a> {
    bytecode: &'b Bytecode<'a>,
    attributes: Seen,
    types: Seen,
    op_names: Seen,
    dialects: Seen,
}

/// An entry whose fields are still to be walked.
enum Node {
    Attribute(AttributeId),
    Type(TypeId),
}

impl<'b, 'a> Walk<'b, 'a> {
    fn new(bytecode: &'b Bytecode<'a>) -> Self {
        let tables = &bytecode.tables;
        Self {
            bytecode,
            attributes: Seen::new(tables.attribute_count()),
            types: Seen::new(tables.type_count()),
            op_names: Seen::new(tables.op_name_count()),
            dialects: Seen::new(tables.dialect_count()),
        }
    }

    /// Walks the module, regions last in, first out, and returns the ids of its values.
    fn module(&mut self, isolated: &[bool]) -> Vec<u32> {
        let tree = &self.bytecode.tree;
        let mut values = vec![0; tree.value_types.len()];
        // Regions to walk, each with the first free id of its scope.
        let mut work: Vec<(usize, u32)> = Vec::new();
        let push = |position: u32, next: u32, work: &mut Vec<(usize, u32)>| {
            let first = if isolated[position as usize] { 0 } else { next };
            work.extend(tree.operations[position as usize].regions.range().map(|region| (region, first)));
        };
        for (position, operation) in tree.top() {
            self.operation(operation);
            push(position, 0, &mut work);
        }
        while let Some((region, first)) = work.pop() {
            let region = &tree.regions[region];
            for (offset, value) in region.values.range().enumerate() {
                values[value] = first + offset as u32;
            }
            let next = first + region.values.len;
            for block in tree.blocks_of(region) {
                for (argument, value) in block.arguments.range().enumerate() {
                    self.attribute(tree.argument_locations[block.locations as usize + argument]);
                    self.r#type(tree.value_types[value]);
                }
                for (_, operation) in tree.operations_in(block) {
                    self.operation(operation);
                }
            }
            for block in tree.blocks_of(region) {
                for (position, _) in tree.operations_in(block) {
                    push(position, next, &mut work);
                }
            }
        }
        values
    }

    fn operation(&mut self, operation: &super::Operation) {
        let (bytecode, tree) = (self.bytecode, &self.bytecode.tree);
        if self.op_names.see(operation.name.index()) {
            self.dialects.see(bytecode.tables.op_name(operation.name).dialect.index());
        }
        for value in operation.results.range() {
            self.r#type(tree.value_types[value]);
        }
        if let Some(id) = operation.attributes.filter(|id| !bytecode.tables.is_empty_dictionary(*id)) {
            self.attribute(id);
        }
        for property in operation.properties.iter().flat_map(|span| &tree.properties[span.range()]) {
            property.iter().for_each(|id| self.attribute(*id));
        }
        self.attribute(operation.location);
    }

    fn attribute(&mut self, id: AttributeId) {
        self.entry(Node::Attribute(id));
    }

    fn r#type(&mut self, id: TypeId) {
        self.entry(Node::Type(id));
    }

    /// Counts an entry and, the first time, its fields, depth first.
    fn entry(&mut self, root: Node) {
        let bytecode = self.bytecode;
        let mut stack: Vec<&[Field<'a>]> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(node) = next.take() {
                let (is_new, entry): (bool, &Entry<'a>) = match node {
                    Node::Attribute(id) => (self.attributes.see(id.index()), bytecode.tables.attribute(id)),
                    Node::Type(id) => (self.types.see(id.index()), bytecode.tables.r#type(id)),
                };
                if is_new {
                    self.dialects.see(entry.dialect.index());
                    if !entry.fields.is_empty() {
                        stack.push(&entry.fields);
                    }
                }
            }
            let Some(fields) = stack.last_mut() else { return };
            match fields.split_first() {
                None => {
                    stack.pop();
                }
                Some((field, rest)) => {
                    *fields = rest;
                    next = match field {
                        Field::Attribute(id) => Some(Node::Attribute(*id)),
                        Field::Type(id) => Some(Node::Type(*id)),
                        _ => None,
                    };
                }
            }
        }
    }
}

/// Finds, for each operation, whether its regions use no value from outside.
fn isolation(bytecode: &Bytecode<'_>) -> Vec<bool> {
    let tree = &bytecode.tree;
    let mut owners = vec![u32::MAX; tree.value_types.len()];
    for region in &tree.regions {
        owners[region.values.range()].fill(region.owner);
    }
    let mut isolated = vec![true; tree.operations.len()];
    let mut ancestors: Vec<u32> = Vec::new();
    for (position, operation) in tree.operations.iter().enumerate() {
        while ancestors.last().is_some_and(|ancestor| tree.operations[*ancestor as usize].end <= position as u32) {
            ancestors.pop();
        }
        for value in tree.operands_of(operation) {
            // The operations between the use and the owner of the value's region have a capture.
            let owner = owners[value.index()];
            for ancestor in ancestors.iter().rev().take_while(|ancestor| **ancestor != owner) {
                isolated[*ancestor as usize] = false;
            }
        }
        if operation.end > position as u32 + 1 {
            ancestors.push(position as u32);
        }
    }
    isolated
}

/// Strings in the order of their first use.
#[derive(Default)]
pub(super) struct Strings<'t> {
    numbers: HashMap<&'t [u8], u32>,
    pub order: Vec<&'t [u8]>,
}

impl<'t> Strings<'t> {
    pub fn number(&mut self, text: &'t [u8]) -> u32 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.order.push(text);
            self.order.len() as u32 - 1
        })
    }
}

/// Whether an attribute is the unknown location, which block arguments do not write.
pub(super) fn is_unknown_location(bytecode: &Bytecode<'_>, id: AttributeId) -> bool {
    bytecode.tables.attribute(id).is(dialect::BUILTIN, builtin::code::LOC_UNKNOWN)
}

/// The order in which MLIR's writer meets values with a use-list order, as positions in `indices`, which ascend.
///
/// The writer collects them in an LLVM `DenseMap` from the number of the value among its siblings, so the order is that of its buckets: at least 64,
/// doubled at a load of three quarters, hashed by multiplication with 37, probed quadratically.
pub(super) fn hash_map_order(indices: &[u32]) -> Vec<usize> {
    let insert = |buckets: &mut Vec<Option<usize>>, position: usize| {
        let (mask, mut probe) = (buckets.len() - 1, 1);
        let mut bucket = indices[position].wrapping_mul(37) as usize & mask;
        while buckets[bucket].is_some() {
            bucket = (bucket + probe) & mask;
            probe += 1;
        }
        buckets[bucket] = Some(position);
    };
    let mut buckets = vec![None; 64];
    for position in 0..indices.len() {
        if (position + 1) * 4 >= buckets.len() * 3 {
            let larger = vec![None; 2 * buckets.len()];
            let old = std::mem::replace(&mut buckets, larger);
            old.into_iter().flatten().for_each(|position| insert(&mut buckets, position));
        }
        insert(&mut buckets, position);
    }
    buckets.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_list_orders_come_in_the_order_of_llvms_hash_map() {
        let indices: Vec<u32> = (1..13).collect();
        let order: Vec<u32> = hash_map_order(&indices).into_iter().map(|position| indices[position]).collect();
        // As stored in an export of JAX 0.4.38.
        assert_eq!(order, [7, 2, 9, 4, 11, 6, 1, 8, 3, 10, 5, 12]);
    }
}
