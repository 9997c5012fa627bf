// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token, %x: !f32) -> (!token, !f32) {
    %0:2 = func.call @inner(%t, %x) : (!token, !f32) -> (!token, !f32)
    %1:2 = func.call @inner(%0#0, %0#1) : (!token, !f32) -> (!token, !f32)
    func.return %1#0, %1#1 : !token, !f32
  }
  func.func private @inner(%t: !token, %x: !f32) -> (!token, !f32) {
    func.return %t, %x : !token, !f32
  }
}
