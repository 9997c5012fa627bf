// The locations that were fused lose their directories. MLIR itself would make another location of this one.
// RUN[run]: opt % --pass redact-paths --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32 loc("train.py":1:1)) -> !f32 {
  %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc(fused<#jaxprism.entry<builtin.loc_fused_metadata, count 1, attribute #jaxprism.entry<builtin.loc_file, attribute "/home/me/train.py", unsigned 5, unsigned 11>, attribute "/home/me/notes">>[unknown])
  return %r : !f32 loc(unknown)
} loc(unknown)
