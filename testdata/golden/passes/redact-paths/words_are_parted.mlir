// By white space, quotes, `=` and `,`: what is no Python file's path stays.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("q[files=/a/k.py,/b/l.py \"/c/m.py\" /d/n.txt]")) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("p[src='/a/k.py', path=/a/b]")
  return %r : !f32 loc(unknown)
} loc(unknown)
