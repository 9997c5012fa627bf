// MLIR does not look into attributes of dialects that it does not know, so aliases mean nothing there.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.negate_v1"(%x) {my.attribute = #vhlo.type_v1<!f32>} : (!f32) -> !f32
  return %x : !f32
}
