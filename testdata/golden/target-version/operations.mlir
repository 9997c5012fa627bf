// Operations that have a newer form get the older one, and lose the attributes that came with the newer one, if these say nothing.
// RUN[older]: opt % --target-version 0.19.0
// RUN[between]: opt % --target-version 1.9.0
// RUN[newest]: opt % --target-version 1.22.0
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!image = !vhlo.tensor_v1<1x4x4x1x!vhlo.f32_v1>
!kernel = !vhlo.tensor_v1<2x2x1x1x!vhlo.f32_v1>
!padding = !vhlo.tensor_v1<2x2x!vhlo.i64_v1>
func.func public @main(%x: !f32, %i: !image, %k: !kernel, %p: !padding) -> (!f32, !f32, !image) {
  %0 = "vhlo.tanh_v2"(%x) {result_accuracy = #vhlo.result_accuracy_v1<atol = 0.0, rtol = 0.0, ulps = 0, mode = #vhlo<result_accuracy_mode_v1 DEFAULT>>} : (!f32) -> !f32
  %1 = "vhlo.exponential_v2"(%0) {result_accuracy = #vhlo.result_accuracy_v1<atol = 0.0, rtol = 0.0, ulps = 0, mode = #vhlo<result_accuracy_mode_v1 DEFAULT>>} : (!f32) -> !f32
  %2 = "vhlo.custom_call_v2"(%1) {api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, backend_config = #vhlo.string_v1<"">, call_target_name = #vhlo.string_v1<"f">, called_computations = #vhlo.array_v1<[]>, has_side_effect = #vhlo.bool_v1<false>, mhlo.backend_config = #vhlo.dict_v1<{}>, operand_layouts = #vhlo.array_v1<[]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[]>, result_tilings = #vhlo.array_v1<[]>} : (!f32) -> !f32
  %3 = "vhlo.dynamic_conv_v2"(%i, %k, %p) {batch_group_count = #vhlo.integer_v1<1 : i64>, feature_group_count = #vhlo.integer_v1<1 : i64>, input_batch_dimension = #vhlo.integer_v1<0 : i64>, input_feature_dimension = #vhlo.integer_v1<3 : i64>, input_spatial_dimensions = #vhlo.tensor_v1<dense<[1, 2]> : tensor<2xi64>>, kernel_input_feature_dimension = #vhlo.integer_v1<2 : i64>, kernel_output_feature_dimension = #vhlo.integer_v1<3 : i64>, kernel_spatial_dimensions = #vhlo.tensor_v1<dense<[0, 1]> : tensor<2xi64>>, lhs_dilation = #vhlo.tensor_v1<dense<1> : tensor<2xi64>>, output_batch_dimension = #vhlo.integer_v1<0 : i64>, output_feature_dimension = #vhlo.integer_v1<3 : i64>, output_spatial_dimensions = #vhlo.tensor_v1<dense<[1, 2]> : tensor<2xi64>>, precision_config = #vhlo.array_v1<[]>, rhs_dilation = #vhlo.tensor_v1<dense<1> : tensor<2xi64>>, window_reversal = #vhlo.tensor_v1<dense<false> : tensor<2xi1>>, window_strides = #vhlo.tensor_v1<dense<1> : tensor<2xi64>>} : (!image, !kernel, !padding) -> !image
  return %0, %2, %3 : !f32, !f32, !image
}
