// The cast of a value from outside a region stands outside.
// RUN[run]: opt % --pass tidy-casts
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%p: !bool, %x: !f32x8) -> !f32x8 {
  %y = "vhlo.negate_v1"(%x) : (!f32x8) -> !f32x8
  %r = "vhlo.if_v1"(%p) ({
    %a = "builtin.unrealized_conversion_cast"(%y) : (!f32x8) -> tensor<8xf32>
    %b = "sdy.reshard"(%a) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32>
    %c = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8
    "vhlo.return_v1"(%c) : (!f32x8) -> ()
  }, {
    "vhlo.return_v1"(%y) : (!f32x8) -> ()
  }) : (!bool) -> !f32x8
  return %r : !f32x8
}
