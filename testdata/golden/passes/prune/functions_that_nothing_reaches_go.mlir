// Also those that only call one another.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = call @used(%x) : (!f32) -> !f32
  return %r : !f32
}
func.func private @used(%y: !f32) -> !f32 {
  %r = call @deeper(%y) : (!f32) -> !f32
  return %r : !f32
}
func.func private @deeper(%y: !f32) -> !f32 {
  return %y : !f32
}
func.func private @dead(%y: !f32) -> !f32 {
  %r = call @deeper(%y) : (!f32) -> !f32
  return %r : !f32
}
func.func private @circle(%y: !f32) -> !f32 {
  %r = call @round(%y) : (!f32) -> !f32
  return %r : !f32
}
func.func private @round(%y: !f32) -> !f32 {
  %r = call @circle(%y) : (!f32) -> !f32
  return %r : !f32
}
