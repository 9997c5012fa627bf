// Branches take nothing.
// FAIL[run]: opt %
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32, %n: !i32) -> !f32 {
  %r = "vhlo.case_v1"(%n) ({
  ^bb0(%a: !f32):
    "vhlo.return_v1"(%a) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %x : !f32
}
