// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
module {
  func.func public @main(%t: !token {jax.token = #vhlo.bool_v1<true>}, %x: !f32) -> (!token {jax.token = #vhlo.bool_v1<true>}, !f32) {
    %0 = "vhlo.add_v1"(%x, %x) : (!f32, !f32) -> !f32
    %1:2 = func.call @_wrapped_jax_export_main(%t, %0) : (!token, !f32) -> (!token, !f32)
    func.return %1#0, %1#1 : !token, !f32
  }
  func.func private @_wrapped_jax_export_main(%t: !token, %x: !f32) -> (!token, !f32) {
    %0 = "vhlo.add_v1"(%x, %x) : (!f32, !f32) -> !f32
    func.return %t, %0 : !token, !f32
  }
}
