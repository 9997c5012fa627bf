// Whichever system the file was exported on.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("\\\\host\\share/train.py":4:8)) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("C:\\Users\\me\\train.py":5:11)
  return %r : !f32 loc(unknown)
} loc(unknown)
