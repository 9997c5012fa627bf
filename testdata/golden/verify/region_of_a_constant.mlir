// A constant has no region.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %a = "vhlo.constant_v1"() ({
    "vhlo.return_v1"() : () -> ()
  }) {value = #vhlo.tensor_v1<dense<1.0> : tensor<f32>>} : () -> !f32
  return %x : !f32
}
