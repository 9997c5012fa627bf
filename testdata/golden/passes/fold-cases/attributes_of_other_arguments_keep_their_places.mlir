// The index goes with its attributes.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %r = func.call @g(%x, %p, %x) : (!f32, !i32, !f32) -> !f32
  return %r : !f32
}
func.func private @g(%y: !f32 {jax.first = #vhlo.string_v1<"first">}, %q: !i32 {jax.index = #vhlo.string_v1<"index">}, %z: !f32 {jax.last = #vhlo.string_v1<"last">}) -> !f32 {
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
