// Where several cast one value, the first serves all.
// RUN[run]: opt % --pass tidy-casts
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %a = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %b = "sdy.reshard"(%a) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32>
  %c = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %d = "sdy.reshard"(%c) {sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32>
  %e = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8
  %f = "builtin.unrealized_conversion_cast"(%d) : (tensor<8xf32>) -> !f32x8
  %r = "vhlo.add_v1"(%e, %f) : (!f32x8, !f32x8) -> !f32x8
  return %r : !f32x8
}
