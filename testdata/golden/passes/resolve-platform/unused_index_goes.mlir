// A marker that nothing uses is left for `fold-cases` to take away.
// RUN[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  return %x : !f32
}
