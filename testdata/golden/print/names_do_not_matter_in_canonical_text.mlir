// Private functions are named and placed in the order in which they are first called.
// RUN[canonical]: print % --canonical
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func private @b(%x: !f32) -> !f32 {
  return %x : !f32
}
func.func private @a(%x: !f32) -> !f32 {
  %r = call @b(%x) : (!f32) -> !f32
  return %r : !f32
}
func.func public @main(%x: !f32) -> !f32 {
  %r = call @a(%x) : (!f32) -> !f32
  %s = call @b(%r) : (!f32) -> !f32
  return %s : !f32
}
