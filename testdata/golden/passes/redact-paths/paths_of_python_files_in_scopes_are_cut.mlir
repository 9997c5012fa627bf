// JAX 0.4.30 writes an operation's parameters into the scope.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("jit(f)/p[<f at proj/k.py:12:3>]")) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("jit(f)/pallas_call[name_and_src_info=kernel at C:\\Users\\me\\kernels.py:7]"("train.py":5:11))
  return %r : !f32 loc(unknown)
} loc(unknown)
