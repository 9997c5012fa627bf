// The first argument is no scalar.
// FAIL[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
!i32x2 = !vhlo.tensor_v1<2x!vhlo.i32_v1>
func.func public @main(%x: !i32x2) -> !i32x2 {
  return %x : !i32x2
}
