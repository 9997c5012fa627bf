// MLIR says what it expected, and where.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.add_v1"(%x %x) : (!f32, !f32) -> !f32
  return %x : !f32
}
