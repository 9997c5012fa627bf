//! How StableHLO's versioned dialect `vhlo` is encoded, with the few attributes of `stablehlo` and `chlo` that stand beside it.
//!
//! Source: StableHLO's `VhloBytecode.cpp`, and `VhloOps.td`, `VhloAttrs.td`, `VhloEnums.td` and `VhloTypes.td` for the versions since when there is what,
//! up to VHLO 1.22.0. An operation ends where its next version begins.

use super::tables::Kind::{self, *};
use super::tables::{EntryRow, OpRow};

/// Codes that the rest of the crate looks at.
pub mod code {
    #![allow(missing_docs, reason = "the names are StableHLO's")]
    pub const ARRAY: u8 = 1;
    pub const BOOL: u8 = 2;
    pub const COMPARISON_DIRECTION: u8 = 3;
    pub const API_VERSION: u8 = 5;
    pub const DICT: u8 = 6;
    pub const FLOAT: u8 = 8;
    pub const INTEGER: u8 = 9;
    pub const OUTPUT_OPERAND_ALIAS: u8 = 10;
    pub const STRING: u8 = 14;
    pub const TENSOR: u8 = 15;
    pub const TYPE: u8 = 17;
    pub const RESULT_ACCURACY_MODE: u8 = 19;
    pub const RESULT_ACCURACY: u8 = 20;
    pub const REPLICA_GROUP_MESH_AXES: u8 = 23;

    pub const BOOL_TYPE: u8 = 0;
    pub const COMPLEX_TYPE: u8 = 1;
    pub const F64_TYPE: u8 = 5;
    pub const FUNCTION_TYPE: u8 = 8;
    pub const INDEX_TYPE: u8 = 9;
    pub const I4_TYPE: u8 = 10;
    pub const I8_TYPE: u8 = 11;
    pub const I16_TYPE: u8 = 12;
    pub const I32_TYPE: u8 = 13;
    pub const I64_TYPE: u8 = 14;
    pub const UI4_TYPE: u8 = 15;
    pub const UI8_TYPE: u8 = 16;
    pub const UI16_TYPE: u8 = 17;
    pub const UI32_TYPE: u8 = 18;
    pub const UI64_TYPE: u8 = 19;
    pub const TENSOR_TYPE: u8 = 20;
    pub const TENSOR_WITH_ENCODING_TYPE: u8 = 21;
    pub const TOKEN_TYPE: u8 = 22;
    pub const TUPLE_TYPE: u8 = 23;
    pub const BUFFER_TYPE: u8 = 41;
    pub const FUTURE_TYPE: u8 = 42;
    pub const QUANTIZED_TYPE: u8 = 24;
    pub const QUANTIZED_PER_AXIS_TYPE: u8 = 30;
    pub const I2_TYPE: u8 = 31;
    pub const UI2_TYPE: u8 = 32;
    pub const NONE_TYPE: u8 = 33;
    pub const F8E4M3FNUZ_TYPE: u8 = 27;
    pub const F8E8M0FNU_TYPE: u8 = 40;
}

const fn row(code: u8, name: &'static str, fields: &'static [Kind]) -> EntryRow {
    EntryRow::new(code, name, fields)
}

pub(super) const ATTRIBUTES: &[EntryRow] = &[
    row(1, "array_v1", &[Attributes]),
    row(2, "bool_v1", &[Unsigned]),
    row(3, "comparison_direction_v1", &[Unsigned]),
    row(4, "comparison_type_v1", &[Unsigned]),
    row(5, "api_version_v1", &[Unsigned]),
    row(6, "dict_v1", &[AttributePairs]),
    row(7, "fft_type_v1", &[Unsigned]),
    row(8, "float_v1", &[Type, Bits]),
    row(9, "integer_v1", &[Type, Bits]),
    row(10, "output_operand_alias_v1", &[SignedList, Signed, SignedList]),
    row(11, "precision_v1", &[Unsigned]),
    row(12, "rng_algorithm_v1", &[Unsigned]),
    row(13, "rng_distribution_v1", &[Unsigned]),
    row(14, "string_v1", &[String]),
    row(15, "tensor_v1", &[Type, Blob]),
    row(16, "transpose_v1", &[Unsigned]),
    row(17, "type_v1", &[Type]),
    row(18, "type_extensions_v1", &[SignedList]),
    row(19, "result_accuracy_mode_v1", &[Unsigned]).since(1, 9),
    row(20, "result_accuracy_v1", &[Double, Double, Signed, Attribute]).since(1, 9),
    row(21, "sub_axis_info_v1", &[Signed, Signed]).since(1, 16),
    row(22, "axis_ref_v1", &[Attribute, PresentAttribute]).since(1, 16),
    row(23, "replica_group_mesh_axes_v1", &[Attribute, Attribute]).since(1, 16),
    row(24, "mesh_axis_v1", &[Attribute, Signed]).since(1, 16),
    row(25, "mesh_v1", &[Attribute, OptionalAttribute]).since(1, 16),
];

pub(super) const TYPES: &[EntryRow] = &[
    row(0, "bool_v1", &[]),
    row(1, "complex_v1", &[Type]),
    row(2, "bf16_v1", &[]),
    row(3, "f16_v1", &[]),
    row(4, "f32_v1", &[]),
    row(5, "f64_v1", &[]),
    row(6, "f8E4M3FN_v1", &[]),
    row(7, "f8E5M2_v1", &[]),
    row(8, "func_v1", &[Types, Types]),
    row(9, "index_v1", &[]),
    row(10, "i4_v1", &[]),
    row(11, "i8_v1", &[]),
    row(12, "i16_v1", &[]),
    row(13, "i32_v1", &[]),
    row(14, "i64_v1", &[]),
    row(15, "ui4_v1", &[]),
    row(16, "ui8_v1", &[]),
    row(17, "ui16_v1", &[]),
    row(18, "ui32_v1", &[]),
    row(19, "ui64_v1", &[]),
    row(20, "tensor_v1", &[SignedList, Type]),
    row(21, "tensor_v1_with_encoding", &[Attribute, SignedList, Type]),
    row(22, "token_v1", &[]),
    row(23, "tuple_v1", &[Types]),
    row(24, "quant_v1", &[Unsigned, Type, Type, Double, Signed, Signed, Signed]),
    row(25, "unranked_tensor_v1", &[Type]),
    row(26, "witness_v1", &[]),
    row(27, "f8E4M3FNUZ_v1", &[]).since(0, 10),
    row(28, "f8E5M2FNUZ_v1", &[]).since(0, 10),
    row(29, "f8E4M3B11FNUZ_v1", &[]).since(0, 11),
    row(30, "quant_per_axis_v1", &[Unsigned, Type, Type, Unsigned, Signed, Signed, DoubleList, SignedList]).since(0, 18),
    row(31, "i2_v1", &[]).since(1, 2),
    row(32, "ui2_v1", &[]).since(1, 2),
    row(33, "none_v1", &[]).since(1, 6),
    row(34, "tf31_v1", &[]).since(1, 6),
    row(35, "f8E4M3_v1", &[]).since(1, 7),
    row(36, "f8E3M4_v1", &[]).since(1, 7),
    row(37, "f4E2M1FN_v1", &[]).since(1, 8),
    row(38, "f6E2M3FN_v1", &[]).since(1, 8),
    row(39, "f6E3M2FN_v1", &[]).since(1, 8),
    row(40, "f8E8M0FNU_v1", &[]).since(1, 8),
    row(41, "buffer_v1", &[SignedList, Type]).since(1, 13),
    row(42, "future_v1", &[Types]).since(1, 15),
];

/// `stablehlo` attributes that occur as encodings of tensor types in mixed artifacts.
pub(super) const STABLEHLO_ATTRIBUTES: &[EntryRow] = &[row(13, "type_extensions", &[SignedList])];

pub(super) const CHLO_ATTRIBUTES: &[EntryRow] = &[row(0, "comparison_direction", &[Unsigned]), row(1, "comparison_type", &[Unsigned])];

const fn op(name: &'static str, properties: &'static [&'static str], regions: u8) -> OpRow {
    OpRow::new(name, properties, regions)
}

pub(crate) const OPS: &[OpRow] = &[
    op("abs_v1", &[], 0),
    op("add_v1", &[], 0),
    op("after_all_v1", &[], 0),
    op("all_gather_v1", &["all_gather_dim", "channel_id", "replica_groups", "use_global_device_ids"], 0),
    op("all_gather_v2", &["all_gather_dim", "channel_id", "replica_groups", "use_global_device_ids"], 0).since(1, 5),
    op("all_reduce_v1", &["channel_id", "replica_groups", "use_global_device_ids"], 1),
    op("all_reduce_v2", &["channel_id", "replica_groups", "use_global_device_ids"], 1).since(1, 5),
    op("all_to_all_v1", &["channel_id", "concat_dimension", "replica_groups", "split_count", "split_dimension"], 0),
    op("all_to_all_v2", &["channel_id", "concat_dimension", "replica_groups", "split_count", "split_dimension"], 0).since(1, 5),
    op("and_v1", &[], 0),
    op("async_done_v1", &[], 0).since(1, 15),
    op("async_start_v1", &[], 1).since(1, 15),
    op("atan2_v1", &[], 0),
    op("batch_norm_grad_v1", &["epsilon", "feature_index"], 0),
    op("batch_norm_inference_v1", &["epsilon", "feature_index"], 0),
    op("batch_norm_training_v1", &["epsilon", "feature_index"], 0),
    op("bitcast_convert_v1", &[], 0),
    op("broadcast_in_dim_v1", &["broadcast_dimensions"], 0),
    op("broadcast_v1", &["broadcast_sizes"], 0),
    op("call_v1", &["callee"], 0),
    op("case_v1", &[], OpRow::VARIADIC),
    op("cbrt_v1", &[], 0),
    op("cbrt_v2", &["result_accuracy"], 0).since(1, 10),
    op("ceil_v1", &[], 0),
    op("cholesky_v1", &["lower"], 0),
    op("clamp_v1", &[], 0),
    op("collective_broadcast_v1", &["channel_id", "replica_groups"], 0).since(0, 16),
    op("collective_broadcast_v2", &["channel_id", "has_dynamic_root", "replica_groups"], 0).since(1, 20),
    op("collective_permute_v1", &["channel_id", "source_target_pairs"], 0),
    op("collective_reduce_v1", &["channel_id", "has_dynamic_root", "replica_groups", "use_global_device_ids"], 1).since(1, 19),
    op("compare_v1", &["compare_type", "comparison_direction"], 0),
    op("complex_v1", &[], 0),
    op("composite_v1", &["composite_attributes", "decomposition", "name", "version"], 0).since(0, 19),
    op("composite_v2", &["composite_attributes", "decomposition", "name", "version"], OpRow::VARIADIC).since(1, 14),
    op("concatenate_v1", &["dimension"], 0),
    op("constant_v1", &["value"], 0),
    op("convert_v1", &[], 0),
    op(
        "convolution_v1",
        &[
            "batch_group_count",
            "feature_group_count",
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "lhs_dilation",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
            "padding",
            "precision_config",
            "rhs_dilation",
            "window_reversal",
            "window_strides",
        ],
        0,
    ),
    op("cosine_v1", &[], 0),
    op("cosine_v2", &["result_accuracy"], 0).since(1, 10),
    op("count_leading_zeros_v1", &[], 0),
    op("create_token_v1", &[], 0),
    op("cross-replica-sum_v1", &["replica_groups"], 0),
    op(
        "custom_call_v1",
        &[
            "api_version",
            "backend_config",
            "call_target_name",
            "called_computations",
            "has_side_effect",
            "operand_layouts",
            "output_operand_aliases",
            "result_layouts",
        ],
        0,
    ),
    op(
        "custom_call_v2",
        &[
            "api_version",
            "backend_config",
            "call_target_name",
            "called_computations",
            "has_side_effect",
            "operand_layouts",
            "output_operand_aliases",
            "result_layouts",
            "result_tilings",
        ],
        0,
    )
    .since(1, 18),
    op("divide_v1", &[], 0),
    op(
        "dot_general_v1",
        &[
            "lhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "precision_config",
            "rhs_batching_dimensions",
            "rhs_contracting_dimensions",
        ],
        0,
    ),
    op(
        "dot_general_v2",
        &[
            "accumulation_type",
            "allow_imprecise_accumulation",
            "lhs_batching_dimensions",
            "lhs_component_count",
            "lhs_contracting_dimensions",
            "lhs_precision_type",
            "num_primitive_operations",
            "precision_config",
            "rhs_batching_dimensions",
            "rhs_component_count",
            "rhs_contracting_dimensions",
            "rhs_precision_type",
        ],
        0,
    )
    .since(1, 6),
    op("dot_v1", &["precision_config"], 0),
    op("dynamic_broadcast_in_dim_v1", &["broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"], 0),
    op(
        "dynamic_conv_v1",
        &[
            "batch_group_count",
            "feature_group_count",
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "lhs_dilation",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
            "padding",
            "precision_config",
            "rhs_dilation",
            "window_reversal",
            "window_strides",
        ],
        0,
    ),
    op(
        "dynamic_conv_v2",
        &[
            "batch_group_count",
            "feature_group_count",
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "lhs_dilation",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
            "precision_config",
            "rhs_dilation",
            "window_reversal",
            "window_strides",
        ],
        0,
    )
    .since(0, 20),
    op("dynamic_gather_v1", &["collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "start_index_map"], 0),
    op(
        "dynamic_gather_v2",
        &[
            "collapsed_slice_dims",
            "index_vector_dim",
            "indices_are_sorted",
            "offset_dims",
            "operand_batching_dims",
            "start_index_map",
            "start_indices_batching_dims",
        ],
        0,
    )
    .since(1, 1),
    op("dynamic_iota_v1", &["iota_dimension"], 0),
    op("dynamic_pad_v1", &[], 0),
    op("dynamic_reshape_v1", &[], 0),
    op("dynamic_slice_v1", &["slice_sizes"], 0),
    op("dynamic_update_slice_v1", &[], 0),
    op("einsum_v1", &["einsum_config"], 0),
    op("exponential_minus_one_v1", &[], 0),
    op("exponential_minus_one_v2", &["result_accuracy"], 0).since(1, 10),
    op("exponential_v1", &[], 0),
    op("exponential_v2", &["result_accuracy"], 0).since(1, 9),
    op("fft_v1", &["fft_length", "fft_type"], 0),
    op("floor_v1", &[], 0),
    op("func_v1", &["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"], 1),
    op(
        "gather_v1",
        &["collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "slice_sizes", "start_index_map"],
        0,
    ),
    op(
        "gather_v2",
        &[
            "collapsed_slice_dims",
            "index_vector_dim",
            "indices_are_sorted",
            "offset_dims",
            "operand_batching_dims",
            "slice_sizes",
            "start_index_map",
            "start_indices_batching_dims",
        ],
        0,
    )
    .since(1, 1),
    op("get_dimension_size_v1", &["dimension"], 0),
    op("get_tuple_element_v1", &["index"], 0),
    op("if_v1", &[], 2),
    op("imag_v1", &[], 0),
    op("infeed_v1", &["infeed_config", "layout"], 0),
    op("iota_v1", &["iota_dimension"], 0),
    op("is_finite_v1", &[], 0),
    op("log_plus_one_v1", &[], 0),
    op("log_plus_one_v2", &["result_accuracy"], 0).since(1, 10),
    op("log_v1", &[], 0),
    op("log_v2", &["result_accuracy"], 0).since(1, 10),
    op("logistic_v1", &[], 0),
    op("logistic_v2", &["result_accuracy"], 0).since(1, 10),
    op("map_v1", &["dimensions"], 1),
    op("maximum_v1", &[], 0),
    op("minimum_v1", &[], 0),
    op("multiply_v1", &[], 0),
    op("negate_v1", &[], 0),
    op("not_v1", &[], 0),
    op("optimization_barrier_v1", &[], 0),
    op("or_v1", &[], 0),
    op("outfeed_v1", &["outfeed_config"], 0),
    op("pad_v1", &["edge_padding_high", "edge_padding_low", "interior_padding"], 0),
    op("partition_id_v1", &[], 0),
    op("popcnt_v1", &[], 0),
    op("power_v1", &[], 0),
    op("real_dynamic_slice_v1", &[], 0),
    op("real_v1", &[], 0),
    op("recv_v1", &["channel_id", "channel_type", "is_host_transfer"], 0),
    op("recv_v2", &["channel_id", "channel_type", "is_host_transfer", "source_target_pairs"], 0).since(1, 12),
    op("reduce_precision_v1", &["exponent_bits", "mantissa_bits"], 0),
    op("reduce_scatter_v1", &["channel_id", "replica_groups", "scatter_dimension", "use_global_device_ids"], 1),
    op("reduce_v1", &["dimensions"], 1),
    op("reduce_window_v1", &["base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"], 1),
    op("remainder_v1", &[], 0),
    op("replica_id_v1", &[], 0),
    op("reshape_v1", &[], 0),
    op("return_v1", &[], 0),
    op("reverse_v1", &["dimensions"], 0),
    op("rng_bit_generator_v1", &["rng_algorithm"], 0),
    op("rng_v1", &["rng_distribution"], 0),
    op("round_nearest_afz_v1", &[], 0),
    op("round_nearest_even_v1", &[], 0),
    op("rsqrt_v1", &[], 0),
    op("rsqrt_v2", &["result_accuracy"], 0).since(1, 10),
    op(
        "scatter_v1",
        &[
            "index_vector_dim",
            "indices_are_sorted",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "unique_indices",
            "update_window_dims",
        ],
        1,
    ),
    op(
        "scatter_v2",
        &[
            "index_vector_dim",
            "indices_are_sorted",
            "input_batching_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "scatter_indices_batching_dims",
            "unique_indices",
            "update_window_dims",
        ],
        1,
    )
    .since(1, 1),
    op("select_and_scatter_v1", &["padding", "window_dimensions", "window_strides"], 2),
    op("select_v1", &[], 0),
    op("send_v1", &["channel_id", "channel_type", "is_host_transfer"], 0),
    op("send_v2", &["channel_id", "channel_type", "is_host_transfer", "source_target_pairs"], 0).since(1, 12),
    op("set_dimension_size_v1", &["dimension"], 0),
    op("shift_left_v1", &[], 0),
    op("shift_right_arithmetic_v1", &[], 0),
    op("shift_right_logical_v1", &[], 0),
    op("sign_v1", &[], 0),
    op("sine_v1", &[], 0),
    op("sine_v2", &["result_accuracy"], 0).since(1, 10),
    op("slice_v1", &["limit_indices", "start_indices", "strides"], 0),
    op("sort_v1", &["dimension", "is_stable"], 1),
    op("sqrt_v1", &[], 0),
    op("sqrt_v2", &["result_accuracy"], 0).since(1, 10),
    op("subtract_v1", &[], 0),
    op("tan_v1", &[], 0).since(1, 4),
    op("tan_v2", &["result_accuracy"], 0).since(1, 10),
    op("tanh_v1", &[], 0),
    op("tanh_v2", &["result_accuracy"], 0).since(1, 10),
    op("torch_index_select_v1", &["batch_dims", "dim"], 0),
    op("transpose_v1", &["permutation"], 0),
    op("triangular_solve_v1", &["left_side", "lower", "transpose_a", "unit_diagonal"], 0),
    op("tuple_v1", &[], 0),
    op("unary_einsum_v1", &["einsum_config"], 0),
    op("uniform_dequantize_v1", &[], 0),
    op("uniform_quantize_v1", &[], 0),
    op("while_v1", &[], 2),
    op("xor_v1", &[], 0),
];
