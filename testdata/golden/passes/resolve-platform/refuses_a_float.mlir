// The first argument is no integer.
// FAIL[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  return %x : !f32
}
