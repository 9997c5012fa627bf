// Its body takes its operands.
// FAIL[run]: opt %
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %y = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %m = "sdy.manual_computation"(%y) ({
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    "sdy.return"(%a) : (tensor<8xf32>) -> ()
  }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %x : !f32x8
}
