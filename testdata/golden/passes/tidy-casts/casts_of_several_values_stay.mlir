// Which of them is used where is not told apart.
// RUN[run]: opt % --pass tidy-casts
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %y = "vhlo.negate_v1"(%x) : (!f32x8) -> !f32x8
  %a, %b = "builtin.unrealized_conversion_cast"(%x, %x) : (!f32x8, !f32x8) -> (tensor<8xf32>, tensor<8xf32>)
  %c = "sdy.reshard"(%b) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32>
  %d = "builtin.unrealized_conversion_cast"(%c) : (tensor<8xf32>) -> !f32x8
  %r = "vhlo.add_v1"(%y, %d) : (!f32x8, !f32x8) -> !f32x8
  return %r : !f32x8
}
