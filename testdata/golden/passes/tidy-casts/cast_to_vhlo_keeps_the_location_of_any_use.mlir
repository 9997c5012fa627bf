// Here it has that of the second one.
// RUN[run]: opt % --pass tidy-casts --locations
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %a = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %b = "sdy.reshard"(%a) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32> loc("model.py":3:3)
  %c = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8 loc("model.py":6:6)
  %d = "vhlo.negate_v1"(%c) : (!f32x8) -> !f32x8 loc("model.py":5:5)
  %r = "vhlo.add_v1"(%c, %d) : (!f32x8, !f32x8) -> !f32x8 loc("model.py":6:6)
  return %r : !f32x8
}
