// Every location is unknown already.
// RUN[run]: opt % --pass strip-locations --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
module {
  func.func public @main(%x: !f32 loc(unknown)) -> !f32 {
    %r = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc(unknown)
    return %r : !f32 loc(unknown)
  } loc(unknown)
} loc(unknown)
