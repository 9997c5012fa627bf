// The cast %c had a location of its own.
// RUN[run]: opt % --pass tidy-casts --locations
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %y = "vhlo.negate_v1"(%x) : (!f32x8) -> !f32x8 loc("model.py":1:1)
  %c = "builtin.unrealized_conversion_cast"(%y) : (!f32x8) -> tensor<8xf32> loc("model.py":2:2)
  %b = "sdy.reshard"(%c) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32> loc("model.py":3:3)
  %r = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8 loc("model.py":4:4)
  return %r : !f32x8 loc("model.py":4:4)
}
