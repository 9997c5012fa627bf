// A marker can be printed, but stands in no bytecode.
// RUN[text]: opt % --platforms cpu,cuda --pass resolve-platform=cuda
// FAIL[bytecode]: opt % --platforms cpu,cuda --pass resolve-platform=cuda --emit mlirbc
// RUN[hand]: opt % --platforms cpu,cuda --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %r = "vhlo.case_v1"(%p) ({
    "vhlo.return_v1"(%x) : (!f32) -> ()
  }, {
    %n = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%n) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
