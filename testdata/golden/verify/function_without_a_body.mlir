// Nothing outside the module defines it.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  return %x : !f32
}
func.func private @f(!f32) -> !f32
