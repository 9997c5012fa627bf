//! A module as it is compared: its functions, meshes and what else stands at its top, and what operations name.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::collections::HashMap;

use crate::bytecode::{AttributeId, Bytecode, Operation, Span, ValueId, code, dialect};

/// Attributes whose strings name functions.
const NAMING: [&str; 3] = ["callee", "called_computations", "decomposition"];

/// A function at the top of a module.
pub(super) struct Function<'b> {
    pub(super) name: &'b [u8],
    pub(super) position: u32,
    pub(super) is_private: bool,
}

/// A mesh at the top of a module.
pub(super) struct Mesh<'b> {
    pub(super) name: &'b [u8],
    pub(super) position: u32,
    pub(super) value: Option<AttributeId>,
}

/// A module and what stands at its top.
pub(super) struct Module<'b, 'a> {
    pub(super) bytecode: &'b Bytecode<'a>,
    pub(super) functions: Vec<Function<'b>>,
    pub(super) meshes: Vec<Mesh<'b>>,
    /// Positions of what else stands at the top.
    pub(super) others: Vec<u32>,
    by_name: HashMap<&'b [u8], usize>,
}

impl<'b, 'a> Module<'b, 'a> {
    pub(super) fn new(bytecode: &'b Bytecode<'a>) -> Self {
        let mut module = Self { bytecode, functions: Vec::new(), meshes: Vec::new(), others: Vec::new(), by_name: HashMap::new() };
        let tree = &bytecode.tree;
        let blocks = tree.top().flat_map(|(_, top)| tree.regions_of(top)).flat_map(|region| tree.blocks_of(region));
        for (position, operation) in blocks.flat_map(|block| tree.operations_in(block)) {
            let string = |name| module.bytecode.tables.string(bytecode.inherent(operation, name)?);
            match (&bytecode.op_name(operation)[..], string("sym_name")) {
                ("vhlo.func_v1", Some(name)) => {
                    let number = module.functions.len();
                    // A second function of the name is never meant by it.
                    module.by_name.entry(name).or_insert(number);
                    let is_private = string("sym_visibility") == Some(b"private");
                    module.functions.push(Function { name, position, is_private });
                }
                ("sdy.mesh", Some(name)) => {
                    let value = bytecode.inherent(operation, "mesh");
                    module.meshes.push(Mesh { name, position, value });
                }
                _ => module.others.push(position),
            }
        }
        module
    }

    /// The module itself.
    pub(super) fn top(&self) -> Option<&'b Operation> {
        self.bytecode.tree.operations.first()
    }

    /// An operation; its position must be one of this module.
    pub(super) fn operation(&self, position: u32) -> &'b Operation {
        &self.bytecode.tree.operations[position as usize]
    }

    pub(super) fn operands(&self, operation: &Operation) -> &'b [ValueId] {
        self.bytecode.tree.operands_of(operation)
    }

    /// The number of the function of a name.
    pub(super) fn function(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether an attribute names functions by strings.
    pub(super) fn is_naming(&self, name: &[u8], value: AttributeId) -> bool {
        NAMING.iter().any(|naming| naming.as_bytes() == name) && self.strings(value).is_some()
    }

    /// The names that an operation names functions by, in order.
    pub(super) fn named(&self, operation: &Operation) -> Vec<&'b [u8]> {
        let values = NAMING.iter().filter_map(|name| self.bytecode.inherent(operation, name));
        values.filter_map(|value| self.strings(value)).flatten().collect()
    }

    /// A string, or those of an array.
    fn strings(&self, value: AttributeId) -> Option<Vec<&'b [u8]>> {
        let tables = &self.bytecode.tables;
        let string = |id: AttributeId| {
            let entry = tables.attribute(id);
            let is_symbol = entry.is(dialect::BUILTIN, code::builtin::FLAT_SYMBOL_REF);
            tables.string(if is_symbol { entry.attributes().next()? } else { id })
        };
        match tables.array(value) {
            Some(elements) => elements.map(string).collect(),
            None => Some(vec![string(value)?]),
        }
    }
}

/// The values of a span.
pub(super) fn values(span: Span) -> impl ExactSizeIterator<Item = ValueId> {
    span.range().map(|value| ValueId(value as u32))
}
