// Its only call goes with the branch.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %s = "vhlo.case_v1"(%p) ({
    %r = func.call @g(%p, %x) : (!i32, !f32) -> !f32
    "vhlo.return_v1"(%r) : (!f32) -> ()
  }, {
    "vhlo.return_v1"(%x) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %s : !f32
}
func.func private @g(%q: !i32, %y: !f32) -> !f32 {
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
