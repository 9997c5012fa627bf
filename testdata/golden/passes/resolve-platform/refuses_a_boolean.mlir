// The first argument has neither 32 nor 64 bits.
// FAIL[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
func.func public @main(%x: !bool) -> !bool {
  return %x : !bool
}
