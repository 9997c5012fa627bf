// The results of a barrier are its operands; data stays behind it.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %q, %y = "vhlo.optimization_barrier_v1"(%p, %x) : (!i32, !f32) -> (!i32, !f32)
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
