// `main` is called with %y, and `f` returns two values, of which one is used.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32, %y: !f32) -> !f32 {
  %r, %s = call @f(%x, %y) : (!f32, !f32) -> (!f32, !f32)
  return %r : !f32
}
func.func private @f(%a: !f32, %b: !f32) -> (!f32, !f32) {
  %r = "vhlo.negate_v1"(%a) : (!f32) -> !f32
  return %a, %r : !f32, !f32
}
