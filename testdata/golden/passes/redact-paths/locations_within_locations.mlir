// Wherever in a location they stand.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("train.py":1:1)) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc(callsite("g"("/home/me/g.py":1:2) at fused["/home/me/f.py":3:4, "jit(f)"("/home/me/h.py":5:6)]))
  return %r : !f32 loc(unknown)
} loc(unknown)
