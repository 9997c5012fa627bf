// `main` is for the caller of the module.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = call @main(%x) : (!f32) -> !f32
  return %x : !f32
}
