// Inside a region that stays, too.
// RUN[run]: opt % --pass prune
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%c: !bool, %x: !f32) -> !f32 {
  %r = "vhlo.if_v1"(%c) ({
    %a = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%x) : (!f32) -> ()
  }, {
    %b = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%b) : (!f32) -> ()
  }) : (!bool) -> !f32
  return %r : !f32
}
