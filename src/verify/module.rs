//! A module with what the checker looks up again and again. What operations do and whether they may go is written down here a second time, on purpose:
//! a mistake in the passes must not excuse itself.

#![allow(clippy::indexing_slicing, reason = "ids and spans are those of trees and tables that were checked when they were read")]

use rustc_hash::{FxHashMap, FxHashSet};

use super::integer::Integer;
use crate::bytecode::{AttributeId, Block, Bytecode, Code, Field, OpNameId, Operation, TypeId, ValueId, code, dialect};
use crate::callbacks::LOWERED_ATTRIBUTE;

/// Why something cannot be proved.
pub(super) type Unproved = String;

/// What an operation is to the checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Mesh,
    Return,
    Case,
    If,
    While,
    Manual,
    Call,
    CustomCall,
    Cast,
    Constant,
    Select,
    Barrier,
    /// Moves elements about, so that the result is a splat where the first operand is one.
    Move,
    Other,
}

/// What is known about operations of one name.
#[derive(Debug, Clone)]
struct Name {
    kind: Kind,
    /// The name without the dialect and the version of vhlo.
    short: String,
    is_pure: bool,
}

/// The operations of vhlo that do nothing but compute their results, apart from what stands in their regions. All others must stay.
const PURE: [&str; 100] = [
    "abs",
    "add",
    "after_all",
    "and",
    "atan2",
    "batch_norm_grad",
    "batch_norm_inference",
    "batch_norm_training",
    "bitcast_convert",
    "broadcast",
    "broadcast_in_dim",
    "case",
    "cbrt",
    "ceil",
    "cholesky",
    "clamp",
    "compare",
    "complex",
    "concatenate",
    "constant",
    "convert",
    "convolution",
    "cosine",
    "count_leading_zeros",
    "create_token",
    "divide",
    "dot",
    "dot_general",
    "dynamic_broadcast_in_dim",
    "dynamic_conv",
    "dynamic_gather",
    "dynamic_iota",
    "dynamic_pad",
    "dynamic_reshape",
    "dynamic_slice",
    "dynamic_update_slice",
    "einsum",
    "exponential",
    "exponential_minus_one",
    "fft",
    "floor",
    "gather",
    "get_dimension_size",
    "get_tuple_element",
    "if",
    "imag",
    "iota",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "map",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "optimization_barrier",
    "or",
    "pad",
    "partition_id",
    "popcnt",
    "power",
    "real",
    "real_dynamic_slice",
    "reduce",
    "reduce_precision",
    "reduce_window",
    "remainder",
    "replica_id",
    "reshape",
    "reverse",
    "rng_bit_generator",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "scatter",
    "select",
    "select_and_scatter",
    "set_dimension_size",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sine",
    "slice",
    "sort",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "torch_index_select",
    "transpose",
    "triangular_solve",
    "tuple",
    "unary_einsum",
    "uniform_dequantize",
    "uniform_quantize",
    "while",
    "xor",
];

impl Name {
    fn of(name: &str) -> Self {
        let (dialect, name) = name.split_once('.').unwrap_or(("", name));
        let short = match name.rsplit_once("_v") {
            Some((short, version)) if dialect == "vhlo" && version.parse::<u32>().is_ok() => short,
            _ => name,
        };
        let kind = match (dialect, short) {
            ("vhlo", "func") => Kind::Function,
            ("sdy", "mesh") => Kind::Mesh,
            ("vhlo" | "sdy", "return") => Kind::Return,
            ("vhlo", "case") => Kind::Case,
            ("vhlo", "if") => Kind::If,
            ("vhlo", "while") => Kind::While,
            ("sdy", "manual_computation") => Kind::Manual,
            ("vhlo", "call" | "composite") => Kind::Call,
            ("vhlo", "custom_call") => Kind::CustomCall,
            ("builtin", "unrealized_conversion_cast") => Kind::Cast,
            ("vhlo", "constant") => Kind::Constant,
            ("vhlo", "select") => Kind::Select,
            ("vhlo", "optimization_barrier") => Kind::Barrier,
            (
                "vhlo",
                "broadcast_in_dim"
                | "broadcast"
                | "reshape"
                | "transpose"
                | "reverse"
                | "slice"
                | "dynamic_broadcast_in_dim"
                | "dynamic_reshape",
            ) => Kind::Move,
            _ => Kind::Other,
        };
        let is_pure = match dialect {
            "vhlo" => PURE.contains(&short),
            "builtin" => kind == Kind::Cast,
            "sdy" => matches!(short, "reshard" | "constant" | "propagation_barrier" | "manual_computation" | "named_computation"),
            _ => false,
        };
        // Only vhlo's own arithmetic is ever computed.
        let short = if dialect == "vhlo" { short } else { "" };
        Self { kind, short: short.to_owned(), is_pure }
    }
}

/// A module and its indexes. Positions are those of its operations in textual order.
pub(super) struct Module<'b, 'a> {
    pub(super) bytecode: &'b Bytecode<'a>,
    /// The target of callbacks before they are lowered.
    placeholder: AttributeId,
    /// What stands at the top, in textual order.
    pub(super) top: Vec<u32>,
    /// The functions by their names.
    pub(super) functions: FxHashMap<&'b [u8], u32>,
    names: Vec<Name>,
    integers: Vec<Option<Integer>>,
    /// The functions that each attribute names itself, other than as a callee.
    naming: FxHashMap<AttributeId, Vec<&'b [u8]>>,
    constants: FxHashSet<ValueId>,
    /// All functions that something names other than as a callee.
    pub(super) named_otherwise: FxHashSet<&'b [u8]>,
}

impl<'b, 'a> Module<'b, 'a> {
    pub(super) fn new(bytecode: &'b Bytecode<'a>, placeholder: AttributeId) -> Result<Self, Unproved> {
        let tables = &bytecode.tables;
        let names = (0..tables.op_name_count() as u32).map(|id| Name::of(&tables.op_name_text(OpNameId(id)))).collect();
        let integers = (0..tables.type_count() as u32).map(|id| Integer::of(tables, TypeId(id))).collect();
        let mut module = Self {
            bytecode,
            placeholder,
            top: Vec::new(),
            functions: FxHashMap::default(),
            names,
            integers,
            naming: FxHashMap::default(),
            constants: FxHashSet::default(),
            named_otherwise: FxHashSet::default(),
        };
        let tree = &bytecode.tree;
        let mut tops = tree.top();
        let (Some((_, top)), None) = (tops.next(), tops.next()) else { return Err("it is not one module".to_owned()) };
        let block = module.only_block(top).filter(|_| bytecode.op_name(top) == "builtin.module");
        let block = block.ok_or("it is not one module")?;
        module.top = tree.operations_in(block).map(|(position, _)| position).collect();
        for &position in &module.top {
            let operation = module.operation(position);
            if module.kind(operation) == Kind::Function {
                let name = module.symbol(operation).ok_or("a function has no name")?;
                if module.functions.insert(name, position).is_some() {
                    return Err(format!("two functions are named `{}`", String::from_utf8_lossy(name)));
                }
            }
        }
        let constants = tree.operations.iter().filter(|operation| module.kind(operation) == Kind::Constant);
        module.constants = constants.flat_map(|operation| values(operation.results)).collect();
        module.check_order()?;
        module.find_names();
        Ok(module)
    }

    /// Checks that every value is defined before it is used, where the use can see it.
    fn check_order(&self) -> Result<(), Unproved> {
        let tree = &self.bytecode.tree;
        let mut is_visible = vec![false; tree.value_types.len()];
        // Blocks by where they begin, and what ends where: an operation, whose results can be seen from there on, and a region, whose values cannot.
        let mut blocks: FxHashMap<u32, Vec<&Block>> = FxHashMap::default();
        for region in &tree.regions {
            for block in tree.blocks_of(region) {
                blocks.entry(block.first).or_default().push(block);
            }
        }
        let mut open: Vec<(u32, crate::bytecode::Span, bool)> = Vec::new();
        for (position, operation) in tree.operations.iter().enumerate() {
            let position = position as u32;
            close(&mut open, position, &mut is_visible);
            for block in blocks.get(&position).into_iter().flatten().filter(|block| block.end > block.first) {
                set(&mut is_visible, block.arguments, true);
            }
            if tree.operands_of(operation).iter().any(|operand| is_visible.get(operand.index()) != Some(&true)) {
                return Err(format!("an operand of `{}` is used before it is defined", self.name(operation)));
            }
            open.push((operation.end, operation.results, true));
            open.extend(tree.regions_of(operation).iter().rev().map(|region| {
                let end = tree.blocks_of(region).iter().map(|block| block.end).max().unwrap_or(position + 1);
                (end, region.values, false)
            }));
        }
        Ok(())
    }

    /// Finds what names functions other than as a callee.
    fn find_names(&mut self) {
        use code::builtin as b;
        let tables = &self.bytecode.tables;
        for id in (0..tables.attribute_count() as u32).map(AttributeId) {
            let entry = tables.attribute(id);
            let mut named = Vec::new();
            match (entry.dialect, entry.code, &entry.fields[..]) {
                (dialect::BUILTIN, Code::Known(b::FLAT_SYMBOL_REF | b::SYMBOL_REF), [Field::Attribute(name), ..]) => {
                    named.extend(tables.string(*name));
                }
                (_, Code::Text, [Field::String(text)]) => named.extend(symbols_in_text(&text.0)),
                _ => {}
            }
            named.retain(|name| self.functions.contains_key(name));
            if !named.is_empty() {
                self.named_otherwise.extend(&named);
                self.naming.insert(id, named);
            }
        }
        for operation in &self.bytecode.tree.operations {
            if self.kind(operation) == Kind::CustomCall {
                self.named_otherwise.extend(self.called_computations(operation));
            }
        }
    }

    /// An operation; its position must be one of this module.
    pub(super) fn operation(&self, position: u32) -> &'b Operation {
        &self.bytecode.tree.operations[position as usize]
    }

    pub(super) fn kind(&self, operation: &Operation) -> Kind {
        self.names[operation.name.index()].kind
    }

    /// The name without the dialect and the version, of operations of vhlo.
    pub(super) fn short_name(&self, operation: &Operation) -> &str {
        &self.names[operation.name.index()].short
    }

    pub(super) fn name(&self, operation: &Operation) -> String {
        self.bytecode.op_name(operation)
    }

    pub(super) fn operands(&self, operation: &Operation) -> &'b [ValueId] {
        self.bytecode.tree.operands_of(operation)
    }

    pub(super) fn type_of(&self, value: ValueId) -> TypeId {
        self.bytecode.tree.value_types[value.index()]
    }

    /// Whether a value is a constant as it stands.
    pub(super) fn is_constant(&self, value: ValueId) -> bool {
        self.constants.contains(&value)
    }

    /// The elements of a value, if they are integers.
    pub(super) fn integer(&self, value: ValueId) -> Option<Integer> {
        self.integers[self.type_of(value).index()]
    }

    /// The block of a region that an operation has, where there is exactly one.
    pub(super) fn only_block(&self, operation: &Operation) -> Option<&'b Block> {
        match self.bytecode.tree.regions_of(operation) {
            [region] => match self.bytecode.tree.blocks_of(region) {
                [block] => Some(block),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether an operation itself only computes its results. What stands in its regions is for the caller to ask.
    pub(super) fn is_pure(&self, operation: &Operation) -> bool {
        match self.kind(operation) {
            Kind::CustomCall => self.inherent(operation, "has_side_effect").is_some_and(|id| {
                let entry = self.bytecode.tables.attribute(id);
                entry.is(dialect::VHLO, code::vhlo::BOOL) && entry.fields[..] == [Field::Unsigned(0)]
            }),
            _ => self.names[operation.name.index()].is_pure,
        }
    }

    pub(super) fn inherent(&self, operation: &Operation, name: &str) -> Option<AttributeId> {
        self.bytecode.inherent(operation, name)
    }

    /// The attributes of an operation, inherent ones and others, by name. Those of a callback that was lowered are as they were before.
    pub(super) fn attributes(&self, operation: &Operation) -> Vec<(&'b [u8], AttributeId)> {
        let mut attributes = self.bytecode.attributes_of(operation);
        if self.kind(operation) == Kind::CustomCall
            && let Some(lowered) = attributes.iter().position(|item| item.0 == LOWERED_ATTRIBUTE.as_bytes())
        {
            let (_, was) = attributes.remove(lowered);
            for (name, id) in &mut attributes {
                match *name {
                    b"mhlo.backend_config" => *id = was,
                    b"call_target_name" => *id = self.placeholder,
                    _ => {}
                }
            }
        }
        attributes
    }

    /// The text of an inherent attribute that is a string, or a reference to a symbol.
    pub(super) fn text(&self, operation: &Operation, name: &str) -> Option<&'b [u8]> {
        let tables = &self.bytecode.tables;
        let id = self.bytecode.inherent(operation, name)?;
        let entry = tables.attribute(id);
        let is_symbol = entry.is(dialect::BUILTIN, code::builtin::FLAT_SYMBOL_REF);
        tables.string(if is_symbol { entry.attributes().next()? } else { id })
    }

    pub(super) fn symbol(&self, operation: &Operation) -> Option<&'b [u8]> {
        self.text(operation, "sym_name")
    }

    /// The name of a function for messages.
    pub(super) fn function_name(&self, position: u32) -> String {
        self.symbol(self.operation(position)).map_or_else(|| "?".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
    }

    /// The function that a call names.
    pub(super) fn callee(&self, call: &Operation) -> Option<u32> {
        self.functions.get(self.text(call, callee_attribute(self.short_name(call)))?).copied()
    }

    pub(super) fn called_computations(&self, operation: &Operation) -> Vec<&'b [u8]> {
        let tables = &self.bytecode.tables;
        let array = self.inherent(operation, "called_computations").and_then(|id| tables.array(id));
        let names = array.into_iter().flatten().filter_map(|id| tables.string(id));
        names.filter(|name| self.functions.contains_key(name)).collect()
    }

    pub(super) fn is_private(&self, function: u32) -> bool {
        self.text(self.operation(function), "sym_visibility") == Some(b"private")
    }

    /// The functions that an operation names other than as a callee.
    pub(super) fn named_by(&self, operation: &Operation) -> Vec<&'b [u8]> {
        let mut named = if self.kind(operation) == Kind::CustomCall { self.called_computations(operation) } else { Vec::new() };
        if !self.naming.is_empty() {
            named.extend(self.attributes(operation).into_iter().flat_map(|(_, id)| self.functions_in(id)));
        }
        named
    }

    /// The functions that an attribute names, anywhere inside it.
    pub(super) fn functions_in(&self, root: AttributeId) -> Vec<&'b [u8]> {
        if self.naming.is_empty() {
            return Vec::new();
        }
        let (mut found, mut work, mut seen) = (Vec::new(), vec![root], FxHashSet::default());
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                found.extend(self.naming.get(&id).into_iter().flatten());
                work.extend(self.bytecode.tables.attribute(id).attributes());
            }
        }
        found
    }
}

/// The attribute of a call or a composite that names the function.
pub(super) fn callee_attribute(short_name: &str) -> &'static str {
    if short_name == "call" { "callee" } else { "decomposition" }
}

/// The results of an operation, or the arguments of a block.
pub(super) fn values(span: crate::bytecode::Span) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator {
    span.range().map(|value| ValueId(value as u32))
}

/// Ends what ends before a position, the innermost first.
fn close(open: &mut Vec<(u32, crate::bytecode::Span, bool)>, position: u32, is_visible: &mut [bool]) {
    while let Some((_, span, is_result)) = open.pop_if(|(end, ..)| *end <= position) {
        set(is_visible, span, is_result);
    }
}

fn set(is_visible: &mut [bool], span: crate::bytecode::Span, to: bool) {
    is_visible.get_mut(span.range()).into_iter().flatten().for_each(|value| *value = to);
}

/// Words behind an `@` in assembly text, plain or quoted.
fn symbols_in_text(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'@').skip(1).map(|part| match part {
        [b'"', quoted @ ..] => quoted.split(|byte| *byte == b'"').next().unwrap_or_default(),
        _ => {
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte);
            let end = part.iter().position(|byte| !is_word(byte)).unwrap_or(part.len());
            part.get(..end).unwrap_or_default()
        }
    })
}
