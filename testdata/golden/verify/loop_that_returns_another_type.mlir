// A loop carries the same types everywhere.
// FAIL[run]: opt %
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %w = "vhlo.while_v1"(%x) ({
  ^bb0(%a: !f32):
    %go = "vhlo.compare_v1"(%a, %a) {compare_type = #vhlo<comparison_type_v1 FLOAT>, comparison_direction = #vhlo<comparison_direction_v1 LT>} : (!f32, !f32) -> !bool
    "vhlo.return_v1"(%go) : (!bool) -> ()
  }, {
  ^bb0(%a: !f32):
    %n = "vhlo.convert_v1"(%a) : (!f32) -> !i32
    "vhlo.return_v1"(%n) : (!i32) -> ()
  }) : (!f32) -> !f32
  return %x : !f32
}
