// RUN[noop]: opt % --pass call-callbacks
!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
module {
  func.func public @main(%x: !f32) -> !f32 {
    func.return %x : !f32
  }
}
