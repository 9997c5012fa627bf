// MLIR does not look at a return of vhlo's.
// FAIL[run]: opt %
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %n = "vhlo.convert_v1"(%x) : (!f32) -> !i32
  "vhlo.return_v1"(%n) : (!i32) -> ()
}
