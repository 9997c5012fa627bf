// It says what devices send.
// FAIL[run]: opt % --pass strip-sdy
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8) -> !f32x8 {
  %a = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %b = "sdy.collective_permute"(%a) {out_sharding = #sdy.sharding<@mesh, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32> loc("model.py":3:3)
  %r = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8
  return %r : !f32x8
}
