// The function of a nested export has an index of its own, with the same attribute.
// RUN[cuda]: opt % --platforms cpu,cuda --pass resolve-platform=cuda
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %r = call @nested(%p, %x) : (!i32, !f32) -> !f32
  return %r : !f32
}
func.func private @nested(%q: !i32 {jax.global_constant = #vhlo.string_v1<"_platform_index">}, %y: !f32) -> !f32 {
  return %y : !f32
}
