// A sharding names a mesh of the module.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 {sdy.sharding = #sdy.sharding<@missing, []>}) -> !f32 {
  return %x : !f32
}
