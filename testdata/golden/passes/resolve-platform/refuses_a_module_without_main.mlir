// Another function's first argument is not the index.
// FAIL[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
func.func public @f(%x: !i32) -> !i32 {
  return %x : !i32
}
