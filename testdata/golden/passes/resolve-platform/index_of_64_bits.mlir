// With 64-bit integers enabled, JAX's index has 64 bits.
// RUN[cuda]: opt % --platforms cpu,cuda --pass resolve-platform=cuda
!i64 = !vhlo.tensor_v1<!vhlo.i64_v1>
func.func public @main(%p: !i64) -> !i64 {
  return %p : !i64
}
