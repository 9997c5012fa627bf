// The axis has size 1.
// RUN[run]: opt % --pass strip-sdy
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=1]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %a = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %b = "sdy.manual_computation"(%a) ({
  ^bb0(%i: tensor<8xf32>):
    %j = "builtin.unrealized_conversion_cast"(%i) : (tensor<8xf32>) -> !f32x8
    %k = "vhlo.negate_v1"(%j) : (!f32x8) -> !f32x8
    %l = "builtin.unrealized_conversion_cast"(%k) : (!f32x8) -> tensor<8xf32>
    "sdy.return"(%l) : (tensor<8xf32>) -> ()
  }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %r = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8
  return %r : !f32x8
}
