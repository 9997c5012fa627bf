// Each result is what the branch returns for it.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32, %y: !f32) -> (!f32, !f32) {
  %r, %s = "vhlo.case_v1"(%p) ({
    "vhlo.return_v1"(%x, %y) : (!f32, !f32) -> ()
  }, {
    %a = "vhlo.add_v1"(%x, %y) : (!f32, !f32) -> !f32
    "vhlo.return_v1"(%a, %a) : (!f32, !f32) -> ()
  }) : (!i32) -> (!f32, !f32)
  return %s, %r : !f32, !f32
}
