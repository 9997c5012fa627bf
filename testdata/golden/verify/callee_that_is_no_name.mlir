// A call in a reduction names its callee by a string.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
func.func public @main(%x: !f32, %y: !f32x4) -> !f32 {
  %r = "vhlo.reduce_v1"(%y, %x) ({
  ^bb0(%u: !f32, %v: !f32):
    %s = "vhlo.call_v1"(%u) {callee = 1 : i32} : (!f32) -> !f32
    "vhlo.return_v1"(%s) : (!f32) -> ()
  }) {dimensions = #vhlo.tensor_v1<dense<0> : tensor<1xi64>>} : (!f32x4, !f32) -> !f32
  return %x : !f32
}
