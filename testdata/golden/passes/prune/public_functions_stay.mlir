// Others may call them, and what they call.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %a = "vhlo.abs_v1"(%x) : (!f32) -> !f32
  return %a : !f32
}
func.func public @f(%y: !f32) -> !f32 {
  %r = call @g(%y) : (!f32) -> !f32
  return %r : !f32
}
func.func private @g(%y: !f32) -> !f32 {
  return %y : !f32
}
