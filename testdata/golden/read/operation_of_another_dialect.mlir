// A portable artifact holds vhlo, not StableHLO.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "stablehlo.add"(%x, %x) : (!f32, !f32) -> !f32
  return %x : !f32
}
