//! How Shardy's dialect `sdy` is encoded. It stands beside vhlo in the exports of JAX 0.7 and later.

use super::tables::Kind::{self, *};
use super::tables::{EntryRow, OpRow};

/// Codes that the rest of the crate looks at.
pub mod code {
    #![allow(missing_docs, reason = "the names are Shardy's")]
    pub const MANUAL_AXES: u8 = 0;
    pub const MESH_AXIS: u8 = 1;
    pub const MESH: u8 = 2;
    pub const SUB_AXIS_INFO: u8 = 3;
    pub const AXIS_REF: u8 = 4;
    pub const DIMENSION_SHARDING: u8 = 5;
    pub const SHARDING: u8 = 6;
    pub const SHARDING_PER_VALUE: u8 = 7;
    pub const SHARDING_UNREDUCED: u8 = 15;
    pub const SHARDING_PER_VALUE_UNREDUCED: u8 = 16;
    pub const SHARDING_REDUCTION: u8 = 17;
}

const fn row(code: u8, name: &'static str, fields: &'static [Kind]) -> EntryRow {
    EntryRow::new(code, name, fields)
}

pub(super) const ATTRIBUTES: &[EntryRow] = &[
    row(0, "manual_axes", &[Attributes]),
    row(1, "mesh_axis", &[String, Signed]),
    row(2, "mesh", &[Attributes, SignedList]),
    row(3, "sub_axis_info", &[Signed, Signed]),
    row(4, "axis_ref", &[String, OptionalAttribute]),
    row(5, "dimension_sharding", &[Attributes, Byte, OptionalUnsigned]),
    row(6, "sharding", &[Attribute, Attributes, Attributes]),
    row(7, "sharding_per_value", &[Attributes]),
    row(8, "dim_mapping", &[SignedList]),
    row(9, "tensor_mapping", &[Attributes]),
    row(10, "op_sharding_rule", &[SignedList, Attributes, Attributes, SignedList, SignedList, SignedList, SignedList, Byte]),
    row(11, "axis_ref_list", &[Attributes]),
    row(12, "list_of_axis_ref_lists", &[Attributes]),
    row(13, "all_to_all_param", &[Attributes, Signed, Signed]),
    row(14, "all_to_all_param_list", &[Attributes]),
    row(15, "sharding_unreduced", &[Attribute, Attributes, Attributes, Attributes]),
    row(16, "sharding_per_value_unreduced", &[Attributes]),
    row(17, "sharding_reduction", &[Attribute, Attributes, Attributes, Attributes, Signed]),
];

const fn op(name: &'static str, properties: &'static [&'static str], regions: u8) -> OpRow {
    OpRow::new(name, properties, regions)
}

pub(super) const OPS: &[OpRow] = &[
    op("all_gather", &["gathering_axes", "out_sharding"], 0),
    op("all_reduce", &["out_sharding", "reduction_axes", "reduction_op?"], 0),
    op("all_slice", &["out_sharding", "slicing_axes"], 0),
    op("all_to_all", &["out_sharding", "params"], 0),
    op("collective_permute", &["out_sharding"], 0),
    op("constant", &["value"], 0),
    op("data_flow_edge", &["sharding?"], 0),
    op("func_data_flow_edge", &[], 0),
    op("manual_computation", &["in_shardings", "manual_axes", "out_shardings"], 1),
    op("mesh", &["mesh", "sym_name"], 0),
    op("named_computation", &["in_shardings?", "name", "out_shardings?"], 1),
    op("propagation_barrier", &["allowed_direction"], 0),
    op("reduce_scatter", &["out_sharding", "reduce_scatter_axes", "reduction_op?"], 0),
    op("replicated_to_unreduced", &["axes", "out_sharding"], 0),
    op("reshard", &["sharding"], 0),
    op("return", &[], 0),
    op("sharded_to_unreduced", &["axes", "out_sharding"], 0),
    op("sharding_constraint", &["sharding"], 0),
    op("sharding_group", &["group_id"], 0),
];
