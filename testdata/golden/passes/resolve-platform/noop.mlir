// It leaves no module as it is that it does not refuse: of one platform there is no index to resolve.
// FAIL[one_platform]: opt % --platforms cpu --pass resolve-platform=cpu
// FAIL[no_platforms]: opt % --pass resolve-platform=cpu
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  return %x : !f32
}
