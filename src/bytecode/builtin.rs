//! How the builtin dialect is encoded: MLIR's `BuiltinDialectBytecode`, with the codes that newer MLIR than ours writes.

use super::tables::Kind::{self, *};
use super::tables::{EntryRow, OpRow};

/// Codes that the rest of the crate looks at.
pub mod code {
    #![allow(missing_docs, reason = "the names are MLIR's")]
    pub const ARRAY: u8 = 0;
    pub const DICTIONARY: u8 = 1;
    pub const STRING: u8 = 2;
    pub const STRING_WITH_TYPE: u8 = 3;
    pub const FLAT_SYMBOL_REF: u8 = 4;
    pub const SYMBOL_REF: u8 = 5;
    pub const TYPE: u8 = 6;
    pub const UNIT: u8 = 7;
    pub const INTEGER: u8 = 8;
    pub const FLOAT: u8 = 9;
    pub const LOC_CALLSITE: u8 = 10;
    pub const LOC_FILE: u8 = 11;
    pub const LOC_FUSED: u8 = 12;
    pub const LOC_FUSED_METADATA: u8 = 13;
    pub const LOC_NAME: u8 = 14;
    pub const LOC_UNKNOWN: u8 = 15;
    pub const DENSE_ARRAY: u8 = 17;
    pub const DENSE_ELEMENTS: u8 = 18;
    pub const DISTINCT: u8 = 21;
    pub const LOC_FILE_RANGE: u8 = 22;

    pub const INTEGER_TYPE: u8 = 0;
    pub const INDEX_TYPE: u8 = 1;
    pub const FUNCTION_TYPE: u8 = 2;
    pub const BF16_TYPE: u8 = 3;
    pub const F16_TYPE: u8 = 4;
    pub const F32_TYPE: u8 = 5;
    pub const F64_TYPE: u8 = 6;
    pub const F80_TYPE: u8 = 7;
    pub const F128_TYPE: u8 = 8;
    pub const COMPLEX_TYPE: u8 = 9;
    pub const TENSOR_TYPE: u8 = 13;
    pub const TENSOR_WITH_ENCODING_TYPE: u8 = 14;
    pub const TF32_TYPE: u8 = 21;
    pub const TUPLE_TYPE: u8 = 15;
    pub const F8E8M0FNU_TYPE: u8 = 32;
}

const fn row(code: u8, name: &'static str, fields: &'static [Kind]) -> EntryRow {
    EntryRow::new(code, name, fields)
}

pub(super) const ATTRIBUTES: &[EntryRow] = &[
    row(0, "array", &[Attributes]),
    row(1, "dictionary", &[AttributePairs]),
    row(2, "string", &[String]),
    row(3, "string_with_type", &[String, Type]),
    row(4, "flat_symbol_ref", &[Attribute]),
    row(5, "symbol_ref", &[Attribute, Attributes]),
    row(6, "type", &[Type]),
    row(7, "unit", &[]),
    row(8, "integer", &[Type, Bits]),
    row(9, "float", &[Type, Bits]),
    row(10, "loc_callsite", &[Attribute, Attribute]),
    row(11, "loc_file", &[Attribute, Unsigned, Unsigned]),
    row(12, "loc_fused", &[Attributes]),
    row(13, "loc_fused_metadata", &[Attributes, Attribute]),
    row(14, "loc_name", &[Attribute, Attribute]),
    row(15, "loc_unknown", &[]),
    row(16, "dense_resource", &[Type, Resource]),
    row(17, "dense_array", &[Type, Unsigned, Blob]),
    row(18, "dense_elements", &[Type, Blob]),
    row(19, "dense_string_elements", &[Type, Unsigned, ElementStrings]),
    row(20, "sparse_elements", &[Type, Attribute, Attribute]),
    row(21, "distinct", &[Attribute]),
    row(22, "loc_file_range", &[Attribute, UnsignedList]),
    row(23, "affine_map", &[Rest]),
    row(24, "integer_set", &[Rest]),
    row(25, "strided_layout", &[Signed, SignedList]),
];

/// Upstream MLIR 22 stops at 20; the narrow floats are newer, and textual in older files.
pub(super) const TYPES: &[EntryRow] = &[
    row(0, "integer", &[Unsigned]),
    row(1, "index", &[]),
    row(2, "function", &[Types, Types]),
    row(3, "bf16", &[]),
    row(4, "f16", &[]),
    row(5, "f32", &[]),
    row(6, "f64", &[]),
    row(7, "f80", &[]),
    row(8, "f128", &[]),
    row(9, "complex", &[Type]),
    row(10, "memref", &[SignedList, Type, Attribute]),
    row(11, "memref_with_space", &[Attribute, SignedList, Type, Attribute]),
    row(12, "none", &[]),
    row(13, "tensor", &[SignedList, Type]),
    row(14, "tensor_with_encoding", &[Attribute, SignedList, Type]),
    row(15, "tuple", &[Types]),
    row(16, "unranked_memref", &[Type]),
    row(17, "unranked_memref_with_space", &[Attribute, Type]),
    row(18, "unranked_tensor", &[Type]),
    row(19, "vector", &[SignedList, Type]),
    row(20, "vector_scalable", &[ByteList, SignedList, Type]),
    row(21, "tf32", &[]),
    row(22, "f8E5M2", &[]),
    row(23, "f8E4M3", &[]),
    row(24, "f8E4M3FN", &[]),
    row(25, "f8E5M2FNUZ", &[]),
    row(26, "f8E4M3FNUZ", &[]),
    row(27, "f8E4M3B11FNUZ", &[]),
    row(28, "f8E3M4", &[]),
    row(29, "f4E2M1FN", &[]),
    row(30, "f6E2M3FN", &[]),
    row(31, "f6E3M2FN", &[]),
    row(32, "f8E8M0FNU", &[]),
];

pub(super) const OPS: &[OpRow] =
    &[OpRow::new("module", &["sym_name?", "sym_visibility?"], 1), OpRow::new("unrealized_conversion_cast", &[], 0)];
