// An operation goes when only dead ones use it.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %c = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1.0> : tensor<f32>>} : () -> !f32
  %a = "vhlo.add_v1"(%x, %c) : (!f32, !f32) -> !f32
  %b = "vhlo.negate_v1"(%a) : (!f32) -> !f32
  return %x : !f32
}
