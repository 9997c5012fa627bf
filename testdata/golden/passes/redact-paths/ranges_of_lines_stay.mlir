// A location may reach from one place to another.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("/home/me/train.py":5:11 to :20)) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("/home/me/train.py":5:11 to 6:20)
  return %r : !f32 loc(unknown)
} loc(unknown)
