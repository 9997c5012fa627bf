// Everything is used or reached.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = call @f(%x) : (!f32) -> !f32
  return %r : !f32
}
func.func private @f(%y: !f32) -> !f32 {
  %r = "vhlo.negate_v1"(%y) : (!f32) -> !f32
  return %r : !f32
}
