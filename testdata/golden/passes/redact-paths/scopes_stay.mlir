// The name of a location is a scope, and its slashes part scopes.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("train.py":1:1)) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("jit(f)/while/body/add"("/home/me/train.py":5:11))
  return %r : !f32 loc(unknown)
} loc(unknown)
