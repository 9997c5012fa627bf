// A portable artifact holds attributes of vhlo, sdy and builtin.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.negate_v1"(%x) {my.attribute = #stablehlo.token<"x">} : (!f32) -> !f32
  return %x : !f32
}
