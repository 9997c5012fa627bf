// The platforms are those that were named, and one of them is to be chosen.
// FAIL[unknown]: opt % --platforms cpu,cuda --pass resolve-platform=tpu
// FAIL[none]: opt % --platforms cpu,cuda --pass resolve-platform
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  return %x : !f32
}
