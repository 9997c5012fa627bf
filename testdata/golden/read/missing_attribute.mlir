// Every attribute of an operation must be there.
// FAIL[run]: opt %
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.compare_v1"(%x, %x) {comparison_direction = #vhlo<comparison_direction_v1 EQ>} : (!f32, !f32) -> !bool
  return %x : !f32
}
