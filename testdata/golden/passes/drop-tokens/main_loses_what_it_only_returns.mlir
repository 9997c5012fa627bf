// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token {jax.token = #vhlo.bool_v1<true>}, %x: !f32) -> (!token {jax.token = #vhlo.bool_v1<true>}, !f32) {
    func.return %t, %x : !token, !f32
  }
}
