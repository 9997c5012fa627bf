// Numbers are decimal where that says them exactly, else their bits.
// RUN[run]: print %
!ui8 = !vhlo.tensor_v1<!vhlo.ui8_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
func.func public @main() {
  %a = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[0.1, 1.0e+10, 0x7FC00000, 0xFF800000]> : tensor<4xf32>>} : () -> !f32x4
  %b = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<true> : tensor<i1>>} : () -> !bool
  %c = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<255> : tensor<ui8>>} : () -> !ui8
  %d = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<(1.0,-2.0)> : tensor<complex<f32>>>} : () -> !vhlo.tensor_v1<!vhlo.complex_v1<!vhlo.f32_v1>>
  return
}
