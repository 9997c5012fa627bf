// MLIR does not look at a return of vhlo's.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  "vhlo.return_v1"(%x, %x) : (!f32, !f32) -> ()
}
