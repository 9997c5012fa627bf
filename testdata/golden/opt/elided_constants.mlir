// Passes run over text with elided constants, but it becomes no bytecode.
// RUN[text]: opt % --pass prune
// FAIL[bytecode]: opt % --emit mlirbc
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
func.func public @main() -> !i32x4 {
  %a = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<elided> : tensor<4xi32>>} : () -> !i32x4
  return %a : !i32x4
}
