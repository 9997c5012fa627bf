//! How many operands and results operations of vhlo have. No reader of MLIR looks at that before StableHLO takes them for granted: where they are not there, it
//! ends the process.
//!
//! Source: StableHLO's `VhloOps.td`, up to VHLO 1.22.0.

use Count::*;

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Any,
    Exactly(u32),
    AtLeast(u32),
    /// Two lists of one length, with something in them.
    Pairs,
    /// Two lists of one length, and one value between them.
    Odd,
}

/// The counts of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arity {
    pub operands: Count,
    pub results: Count,
}

impl Count {
    pub fn allows(self, count: u32) -> bool {
        match self {
            Any => true,
            Exactly(wanted) => count == wanted,
            AtLeast(least) => count >= least,
            Pairs => count > 0 && count.is_multiple_of(2),
            Odd => !count.is_multiple_of(2),
        }
    }

    /// What is expected, of `operand` or `result`.
    pub fn text(self, what: &str) -> String {
        let counted = |count: u32| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match self {
            Any => format!("any number of {what}s"),
            Exactly(0) => format!("no {what}s"),
            Exactly(count) => counted(count),
            AtLeast(count) => format!("at least {}", counted(count)),
            Pairs => format!("pairs of {what}s"),
            Odd => format!("an odd number of {what}s"),
        }
    }
}

/// The counts of the operation of that name without the dialect; `None` for one that is not known.
pub(super) fn arity(name: &[u8]) -> Option<Arity> {
    let row = ARITIES.iter().find(|(_, _, names)| names.iter().any(|known| known.as_bytes() == name));
    row.map(|&(operands, results, _)| Arity { operands, results })
}

/// Names by operands and results.
#[rustfmt::skip]
const ARITIES: [(Count, Count, &[&str]); 18] = [
    (Exactly(0), Exactly(0), &[
        "func_v1",
    ]),
    (Exactly(0), Exactly(1), &[
        "constant_v1", "create_token_v1", "iota_v1", "partition_id_v1", "replica_id_v1",
    ]),
    (Any, Exactly(0), &[
        "return_v1",
    ]),
    (Any, Any, &[
        "all_gather_v2", "all_reduce_v2", "all_to_all_v2", "call_v1", "collective_broadcast_v2", "collective_reduce_v1",
        "composite_v1", "composite_v2", "custom_call_v1", "custom_call_v2", "optimization_barrier_v1", "sort_v1", "while_v1",
    ]),
    (Any, Exactly(1), &[
        "after_all_v1", "async_start_v1", "concatenate_v1", "map_v1", "tuple_v1",
    ]),
    (Pairs, Any, &[
        "reduce_v1", "reduce_window_v1",
    ]),
    (Exactly(1), Any, &[
        "case_v1", "if_v1", "infeed_v1", "recv_v1", "recv_v2",
    ]),
    (Exactly(1), Exactly(1), &[
        "abs_v1", "all_gather_v1", "all_reduce_v1", "all_to_all_v1", "async_done_v1", "bitcast_convert_v1",
        "broadcast_in_dim_v1", "broadcast_v1", "cbrt_v1", "cbrt_v2", "ceil_v1", "cholesky_v1", "collective_broadcast_v1",
        "collective_permute_v1", "convert_v1", "cosine_v1", "cosine_v2", "count_leading_zeros_v1", "cross-replica-sum_v1",
        "dynamic_iota_v1", "exponential_minus_one_v1", "exponential_minus_one_v2", "exponential_v1", "exponential_v2",
        "fft_v1", "floor_v1", "get_dimension_size_v1", "get_tuple_element_v1", "imag_v1", "is_finite_v1", "log_plus_one_v1",
        "log_plus_one_v2", "log_v1", "log_v2", "logistic_v1", "logistic_v2", "negate_v1", "not_v1", "popcnt_v1", "real_v1",
        "reduce_precision_v1", "reduce_scatter_v1", "reshape_v1", "reverse_v1", "round_nearest_afz_v1",
        "round_nearest_even_v1", "rsqrt_v1", "rsqrt_v2", "sign_v1", "sine_v1", "sine_v2", "slice_v1", "sqrt_v1", "sqrt_v2",
        "tan_v1", "tan_v2", "tanh_v1", "tanh_v2", "transpose_v1", "unary_einsum_v1", "uniform_dequantize_v1",
        "uniform_quantize_v1",
    ]),
    (Exactly(1), Exactly(2), &[
        "rng_bit_generator_v1",
    ]),
    (AtLeast(1), Exactly(1), &[
        "dynamic_slice_v1", "outfeed_v1", "send_v1", "send_v2",
    ]),
    (Odd, Any, &[
        "scatter_v1", "scatter_v2",
    ]),
    (Exactly(2), Exactly(1), &[
        "add_v1", "and_v1", "atan2_v1", "compare_v1", "complex_v1", "convolution_v1", "divide_v1", "dot_general_v1",
        "dot_general_v2", "dot_v1", "dynamic_broadcast_in_dim_v1", "dynamic_reshape_v1", "einsum_v1", "gather_v1", "gather_v2",
        "maximum_v1", "minimum_v1", "multiply_v1", "or_v1", "pad_v1", "power_v1", "remainder_v1", "set_dimension_size_v1",
        "shift_left_v1", "shift_right_arithmetic_v1", "shift_right_logical_v1", "subtract_v1", "torch_index_select_v1",
        "triangular_solve_v1", "xor_v1",
    ]),
    (AtLeast(2), Exactly(1), &[
        "dynamic_update_slice_v1",
    ]),
    (Exactly(3), Exactly(1), &[
        "clamp_v1", "dynamic_conv_v1", "dynamic_conv_v2", "dynamic_gather_v1", "dynamic_gather_v2", "rng_v1",
        "select_and_scatter_v1", "select_v1",
    ]),
    (Exactly(3), Exactly(3), &[
        "batch_norm_training_v1",
    ]),
    (Exactly(4), Exactly(1), &[
        "real_dynamic_slice_v1",
    ]),
    (Exactly(5), Exactly(1), &[
        "batch_norm_inference_v1", "dynamic_pad_v1",
    ]),
    (Exactly(5), Exactly(3), &[
        "batch_norm_grad_v1",
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::vhlo;

    #[test]
    fn every_operation_is_in_one_row() {
        let mut names: Vec<&str> = ARITIES.iter().flat_map(|(_, _, names)| *names).copied().collect();
        names.sort_unstable();
        assert_eq!(names, vhlo::OPS.iter().map(|row| row.name).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_expected_is_said() {
        let found = |name: &str| arity(name.as_bytes()).map(|arity| (arity.operands.text("operand"), arity.results.text("result")));
        assert_eq!(found("abs_v1").unwrap(), ("1 operand".to_owned(), "1 result".to_owned()));
        assert_eq!(found("scatter_v2").unwrap(), ("an odd number of operands".to_owned(), "any number of results".to_owned()));
        assert_eq!(found("reduce_v1").unwrap().0, "pairs of operands");
        assert_eq!(found("dynamic_update_slice_v1").unwrap().0, "at least 2 operands");
        assert_eq!(found("abs"), None);
        assert!(
            Odd.allows(3)
                && !Odd.allows(2)
                && Pairs.allows(2)
                && !Pairs.allows(1)
                && !Pairs.allows(0)
                && AtLeast(2).allows(3)
                && !AtLeast(2).allows(1)
        );
    }
}
