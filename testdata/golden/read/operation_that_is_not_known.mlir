// A name that vhlo does not have.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.add_v9"(%x, %x) : (!f32, !f32) -> !f32
  return %x : !f32
}
