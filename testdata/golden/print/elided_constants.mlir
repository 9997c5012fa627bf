// Text with elided constants can be printed again.
// RUN[run]: print %
// RUN[stablehlo]: print % --stablehlo
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
func.func public @main() {
  %a = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<elided> : tensor<4xi32>>} : () -> !i32x4
  return
}
