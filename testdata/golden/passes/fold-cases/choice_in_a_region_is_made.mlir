// A region sees the index of the function around it.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32x4) -> !f32 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0.0> : tensor<f32>>} : () -> !f32
  %s = "vhlo.reduce_v1"(%x, %zero) ({
  ^bb0(%u: !f32, %v: !f32):
    %r = "vhlo.case_v1"(%p) ({
      %minus = "vhlo.negate_v1"(%u) : (!f32) -> !f32
      "vhlo.return_v1"(%minus) : (!f32) -> ()
    }, {
      %size = "vhlo.abs_v1"(%u) : (!f32) -> !f32
      "vhlo.return_v1"(%size) : (!f32) -> ()
    }) : (!i32) -> !f32
    "vhlo.return_v1"(%r) : (!f32) -> ()
  }) {dimensions = #vhlo.tensor_v1<dense<0> : tensor<1xi64>>} : (!f32x4, !f32) -> !f32
  return %s : !f32
}
