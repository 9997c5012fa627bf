// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token, %u: !token, %x: !f32) -> (!token, !token) {
    %0 = "vhlo.after_all_v1"(%t) : (!token) -> !token
    func.return %0, %u : !token, !token
  }
}
