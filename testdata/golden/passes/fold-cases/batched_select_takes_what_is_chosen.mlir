// A batch of the index is the same number everywhere, so it decides as well.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
!boolx4 = !vhlo.tensor_v1<4x!vhlo.bool_v1>
func.func public @main(%p: !i32, %x: !f32x4) -> !f32x4 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<4xi32>>} : () -> !i32x4
  %q = "vhlo.broadcast_in_dim_v1"(%p) {broadcast_dimensions = #vhlo.tensor_v1<dense<> : tensor<0xi64>>} : (!i32) -> !i32x4
  %first = "vhlo.compare_v1"(%q, %zero) {compare_type = #vhlo<comparison_type_v1 SIGNED>, comparison_direction = #vhlo<comparison_direction_v1 EQ>} : (!i32x4, !i32x4) -> !boolx4
  %y = "vhlo.negate_v1"(%x) : (!f32x4) -> !f32x4
  %r = "vhlo.select_v1"(%first, %x, %y) : (!boolx4, !f32x4, !f32x4) -> !f32x4
  return %r : !f32x4
}
