// Functions that call one another.
// FAIL[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %r = func.call @g(%p, %x) : (!i32, !f32) -> !f32
  return %r : !f32
}
func.func private @g(%q: !i32, %y: !f32) -> !f32 {
  %r = func.call @h(%q, %y) : (!i32, !f32) -> !f32
  return %r : !f32
}
func.func private @h(%q: !i32, %y: !f32) -> !f32 {
  %r = func.call @g(%q, %y) : (!i32, !f32) -> !f32
  return %r : !f32
}
