// The sharding of the operand that goes cannot be told from the others'.
// FAIL[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%p: !i32, %x: !f32x8) -> tensor<8xf32> {
  %q = "builtin.unrealized_conversion_cast"(%p) : (!i32) -> tensor<i32>
  %y = "builtin.unrealized_conversion_cast"(%x) : (!f32x8) -> tensor<8xf32>
  %r = "sdy.manual_computation"(%q, %y) ({
  ^bb0(%n: tensor<i32>, %a: tensor<4xf32>):
    %m = "builtin.unrealized_conversion_cast"(%n) : (tensor<i32>) -> !i32
    %b = "builtin.unrealized_conversion_cast"(%a) : (tensor<4xf32>) -> !f32x4
    %c = "vhlo.case_v1"(%m) ({
      "vhlo.return_v1"(%b) : (!f32x4) -> ()
    }, {
      %d = "vhlo.negate_v1"(%b) : (!f32x4) -> !f32x4
      "vhlo.return_v1"(%d) : (!f32x4) -> ()
    }) : (!i32) -> !f32x4
    %e = "builtin.unrealized_conversion_cast"(%c) : (!f32x4) -> tensor<4xf32>
    "sdy.return"(%e) : (tensor<4xf32>) -> ()
  }) {in_shardings = "none", manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<i32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
