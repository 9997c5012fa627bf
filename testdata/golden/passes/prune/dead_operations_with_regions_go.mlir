// A loop without effects goes with its regions.
// RUN[run]: opt % --pass prune
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%i: !i32, %x: !f32) -> !f32 {
  %w0, %w1 = "vhlo.while_v1"(%i, %x) ({
  ^bb0(%a: !i32, %b: !f32):
    %go = "vhlo.compare_v1"(%a, %i) {compare_type = #vhlo<comparison_type_v1 SIGNED>, comparison_direction = #vhlo<comparison_direction_v1 LT>} : (!i32, !i32) -> !bool
    "vhlo.return_v1"(%go) : (!bool) -> ()
  }, {
  ^bb0(%c: !i32, %d: !f32):
    %e = "vhlo.negate_v1"(%d) : (!f32) -> !f32
    "vhlo.return_v1"(%c, %e) : (!i32, !f32) -> ()
  }) : (!i32, !f32) -> (!i32, !f32)
  return %x : !f32
}
