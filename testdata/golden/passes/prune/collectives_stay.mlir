// Other devices wait for them.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
!f32x2 = !vhlo.tensor_v1<2x!vhlo.f32_v1>
func.func public @main(%x: !f32x4) -> !f32x4 {
  %a = "vhlo.all_gather_v2"(%x) {all_gather_dim = #vhlo.integer_v1<0 : i64>, channel_id = #vhlo.integer_v1<1 : i64>, replica_groups = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>, use_global_device_ids = #vhlo.bool_v1<true>} : (!f32x4) -> !f32x8
  %b = "vhlo.all_reduce_v2"(%x) ({
  ^bb0(%u: !f32, %v: !f32):
    %s = "vhlo.add_v1"(%u, %v) : (!f32, !f32) -> !f32
    "vhlo.return_v1"(%s) : (!f32) -> ()
  }) {channel_id = #vhlo.integer_v1<1 : i64>, replica_groups = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>, use_global_device_ids = #vhlo.bool_v1<true>} : (!f32x4) -> !f32x4
  %c = "vhlo.all_to_all_v2"(%x) {channel_id = #vhlo.integer_v1<1 : i64>, concat_dimension = #vhlo.integer_v1<0 : i64>, replica_groups = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>, split_count = #vhlo.integer_v1<2 : i64>, split_dimension = #vhlo.integer_v1<0 : i64>} : (!f32x4) -> !f32x4
  %d = "vhlo.collective_broadcast_v1"(%x) {channel_id = #vhlo.integer_v1<1 : i64>, replica_groups = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>} : (!f32x4) -> !f32x4
  %e = "vhlo.collective_permute_v1"(%x) {channel_id = #vhlo.integer_v1<1 : i64>, source_target_pairs = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>} : (!f32x4) -> !f32x4
  %f = "vhlo.reduce_scatter_v1"(%x) ({
  ^bb0(%u: !f32, %v: !f32):
    %s = "vhlo.add_v1"(%u, %v) : (!f32, !f32) -> !f32
    "vhlo.return_v1"(%s) : (!f32) -> ()
  }) {channel_id = #vhlo.integer_v1<1 : i64>, replica_groups = #vhlo.tensor_v1<dense<[[0, 1]]> : tensor<1x2xi64>>, scatter_dimension = #vhlo.integer_v1<0 : i64>, use_global_device_ids = #vhlo.bool_v1<true>} : (!f32x4) -> !f32x2
  return %x : !f32x4
}
