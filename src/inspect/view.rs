//! A module with what inspecting it looks up again and again: kinds of operations, functions by name, and where calls and custom calls stand.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::collections::HashMap;

use crate::bytecode::{AttributeId, Block, Bytecode, OpNameId, Operation, Region, ValueId, code, dialect};
use crate::ir::{UNKNOWN_PLACE, place};

/// What an operation is, as far as inspecting cares. Versions do not count: `case_v1` and a later one are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Call,
    Constant,
    CustomCall,
    /// `send` or `recv`.
    Transfer,
    Mesh,
    Case,
    If,
    While,
    Manual,
    /// Hands its operands on, one by one, in another type or shape.
    Forward,
    Compare,
    Select,
    Clamp,
    Maximum,
    Minimum,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        let Some((dialect, name)) = name.split_once('.') else { return Self::Other };
        let name = name.rsplit_once("_v").filter(|(_, version)| version.parse::<u32>().is_ok()).map_or(name, |(name, _)| name);
        match (dialect, name) {
            ("func", "func") | ("vhlo", "func") => Self::Function,
            ("func" | "vhlo", "call") | ("vhlo" | "stablehlo", "composite") => Self::Call,
            ("sdy", "mesh") => Self::Mesh,
            ("sdy", "manual_computation") => Self::Manual,
            ("builtin", "unrealized_conversion_cast") => Self::Forward,
            ("vhlo" | "stablehlo", name) => match name {
                "constant" => Self::Constant,
                "custom_call" => Self::CustomCall,
                "send" | "recv" => Self::Transfer,
                "case" => Self::Case,
                "if" => Self::If,
                "while" => Self::While,
                "convert" | "reshape" | "broadcast_in_dim" | "optimization_barrier" => Self::Forward,
                "compare" => Self::Compare,
                "select" => Self::Select,
                "clamp" => Self::Clamp,
                "maximum" => Self::Maximum,
                "minimum" => Self::Minimum,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// A module and its indexes. Positions are those of [`OpTree::operations`](crate::bytecode::OpTree::operations).
pub(crate) struct View<'b, 'a> {
    pub bytecode: &'b Bytecode<'a>,
    /// Positions of the functions, in textual order.
    pub functions: Vec<u32>,
    /// Position and callee of every call whose callee is here, in textual order.
    pub calls: Vec<(u32, u32)>,
    /// Position and target of every custom call, in textual order.
    pub custom_calls: Vec<(u32, &'b [u8])>,
    kinds: Vec<Kind>,
}

impl<'b, 'a> View<'b, 'a> {
    pub fn new(bytecode: &'b Bytecode<'a>) -> Self {
        let names = (0..bytecode.tables.op_name_count() as u32).map(OpNameId);
        let kinds = names.map(|id| Kind::of(&bytecode.tables.op_name_text(id))).collect();
        let mut view = Self { bytecode, functions: Vec::new(), calls: Vec::new(), custom_calls: Vec::new(), kinds };
        view.functions = view.positions(Kind::Function).collect();
        let by_name: HashMap<_, _> =
            view.functions.iter().filter_map(|&position| Some((view.symbol(view.operation(position), "sym_name")?, position))).collect();
        let callee = |position: u32| {
            let operation = view.operation(position);
            let name = view.symbol(operation, "callee").or_else(|| view.symbol(operation, "decomposition"))?;
            Some((position, *by_name.get(name)?))
        };
        view.calls = view.positions(Kind::Call).filter_map(callee).collect();
        let target = |position| (position, view.symbol(view.operation(position), "call_target_name").unwrap_or(b"?"));
        view.custom_calls = view.positions(Kind::CustomCall).map(target).collect();
        view
    }

    /// The operation at a position, which must be one of this module.
    pub fn operation(&self, position: u32) -> &'b Operation {
        &self.bytecode.tree.operations[position as usize]
    }

    pub fn kind(&self, operation: &Operation) -> Kind {
        self.kinds.get(operation.name.index()).copied().unwrap_or(Kind::Other)
    }

    /// Where the operations of that kind stand.
    pub fn positions(&self, kind: Kind) -> impl Iterator<Item = u32> {
        let operations = self.bytecode.tree.operations.iter().enumerate();
        operations.filter(move |(_, operation)| self.kind(operation) == kind).map(|(position, _)| position as u32)
    }

    /// `main`, where there is one.
    pub fn main(&self) -> Option<u32> {
        self.functions.iter().copied().find(|&function| self.symbol(self.operation(function), "sym_name") == Some(b"main"))
    }

    /// The name of the function at or around a position.
    pub fn function_name(&self, position: u32) -> String {
        let around = self.functions.partition_point(|&function| function <= position).checked_sub(1);
        let function = around.and_then(|index| self.functions.get(index)).map(|&function| self.operation(function));
        let name = function.filter(|function| position < function.end).and_then(|function| self.symbol(function, "sym_name"));
        name.map_or_else(|| "?".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
    }

    /// The function that the call at a position calls.
    pub fn callee(&self, position: u32) -> Option<u32> {
        let index = self.calls.binary_search_by_key(&position, |call| call.0).ok()?;
        self.calls.get(index).map(|call| call.1)
    }

    /// The functions that a custom call names beside its target.
    pub fn called_computations(&self, operation: &Operation) -> Vec<&'b [u8]> {
        let tables = &self.bytecode.tables;
        let array = self.bytecode.inherent(operation, "called_computations").and_then(|id| tables.array(id));
        array.into_iter().flatten().filter_map(|id| tables.string(self.named(id))).collect()
    }

    /// What a symbol reference names, or the attribute itself.
    fn named(&self, id: AttributeId) -> AttributeId {
        let entry = self.bytecode.tables.attribute(id);
        let named = if entry.is(dialect::BUILTIN, code::builtin::FLAT_SYMBOL_REF) { entry.attributes().next() } else { None };
        named.unwrap_or(id)
    }

    /// The text of an inherent attribute that is a string or a symbol reference.
    pub fn symbol(&self, operation: &Operation, name: &str) -> Option<&'b [u8]> {
        let bytecode = self.bytecode;
        bytecode.tables.string(self.named(bytecode.inherent(operation, name)?))
    }

    /// Whether a function can be called from outside of the module.
    pub fn is_public(&self, function: &Operation) -> bool {
        self.symbol(function, "sym_visibility").is_none_or(|visibility| matches!(visibility, b"" | b"public"))
    }

    /// A discardable attribute of an operation.
    pub fn discardable(&self, operation: &Operation, name: &str) -> Option<AttributeId> {
        self.bytecode.tables.dictionary(operation.attributes?)?.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
    }

    /// The place of an operation in the user's files, where one is known.
    pub fn place(&self, operation: &Operation) -> Option<String> {
        Some(place(&self.bytecode.tables, operation.location)).filter(|place| place != UNKNOWN_PLACE)
    }

    /// The block that a region begins with; regions of VHLO have one.
    pub fn entry(&self, region: &Region) -> Option<&'b Block> {
        self.bytecode.tree.blocks_of(region).first()
    }

    /// The operands of the terminator that ends a block.
    pub fn yielded(&self, block: &Block) -> &'b [ValueId] {
        let tree = &self.bytecode.tree;
        tree.operations_in(block).last().map_or(&[], |(_, operation)| tree.operands_of(operation))
    }
}

/// The target of every custom call, in textual order.
pub(crate) fn targets_of<'b>(bytecode: &'b Bytecode<'_>) -> impl Iterator<Item = &'b [u8]> {
    View::new(bytecode).custom_calls.into_iter().map(|(_, target)| target)
}
