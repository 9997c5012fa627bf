// MLIR's own constants have another encoding.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %c = "vhlo.constant_v1"() {value = dense<1> : tensor<4xi32>} : () -> !i32x4
  return %x : !f32
}
