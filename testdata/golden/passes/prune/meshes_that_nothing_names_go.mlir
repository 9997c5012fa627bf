// A mesh stays that a sharding names: of an argument, or of an operation that stays.
// RUN[run]: opt % --pass prune
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "of_argument"} : () -> ()
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "of_operation"} : () -> ()
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "of_nothing"} : () -> ()
func.func public @main(%x: !f32x8 {sdy.sharding = #sdy.sharding<@of_argument, [{"x"}]>}) -> !f32x8 {
  %a = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %b = "sdy.sharding_constraint"(%a) {sharding = #sdy.sharding<@of_operation, [{"x"}]>} : (tensor<8xf32>) -> tensor<8xf32>
  %r = "builtin.unrealized_conversion_cast"(%b) : (tensor<8xf32>) -> !f32x8
  return %r : !f32x8
}
