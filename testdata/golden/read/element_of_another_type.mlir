// An integer is no fraction.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %c = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[1, 2, 3, 4.5]> : tensor<4xi32>>} : () -> !i32x4
  return %x : !f32
}
