// A portable artifact holds no memrefs.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %c = "builtin.unrealized_conversion_cast"(%x) : (!f32) -> memref<4xf32>
  return %x : !f32
}
