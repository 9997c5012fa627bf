// The index goes from the function, its type and its argument attributes.
// RUN[cuda]: opt % --platforms cpu,cuda --pass resolve-platform=cuda
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32 {jax.global_constant = #vhlo.string_v1<"_platform_index">}, %x: !f32, %y: !f32 {jax.last = #vhlo.string_v1<"last">}) -> !f32 {
  return %y : !f32
}
