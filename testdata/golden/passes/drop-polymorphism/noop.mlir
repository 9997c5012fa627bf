// A module that does not say that it is polymorphic.
// RUN[run]: opt % --pass drop-polymorphism
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
module {
  func.func public @main(%x: !f32x4) -> !f32x4 {
    return %x : !f32x4
  }
}
