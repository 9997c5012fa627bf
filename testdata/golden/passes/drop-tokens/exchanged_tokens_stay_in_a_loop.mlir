// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token, %u: !token, %b: !bool) -> (!token, !token, !bool) {
    %0:3 = "vhlo.while_v1"(%t, %u, %b) ({
    ^bb0(%v: !token, %w: !token, %c: !bool):
      "vhlo.return_v1"(%c) : (!bool) -> ()
    }, {
    ^bb0(%v: !token, %w: !token, %c: !bool):
      "vhlo.return_v1"(%w, %v, %c) : (!token, !token, !bool) -> ()
    }) : (!token, !token, !bool) -> (!token, !token, !bool)
    func.return %0#0, %0#1, %0#2 : !token, !token, !bool
  }
}
