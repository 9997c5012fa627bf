// A block ends in its terminator.
// FAIL[run]: opt %
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%c: !bool, %x: !f32) -> !f32 {
  "vhlo.if_v1"(%c) ({
    %a = "vhlo.negate_v1"(%x) : (!f32) -> !f32
  }, {
    "vhlo.return_v1"() : () -> ()
  }) : (!bool) -> ()
  return %x : !f32
}
