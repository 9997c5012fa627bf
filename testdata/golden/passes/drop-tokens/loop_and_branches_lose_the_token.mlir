// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token, %b: !bool, %i: !i32) -> (!token, !bool) {
    %0:2 = "vhlo.while_v1"(%t, %b) ({
    ^bb0(%u: !token, %c: !bool):
      "vhlo.return_v1"(%c) : (!bool) -> ()
    }, {
    ^bb0(%u: !token, %c: !bool):
      %1 = "vhlo.case_v1"(%i) ({
        "vhlo.return_v1"(%u) : (!token) -> ()
      }, {
        "vhlo.return_v1"(%u) : (!token) -> ()
      }) : (!i32) -> !token
      "vhlo.return_v1"(%1, %c) : (!token, !bool) -> ()
    }) : (!token, !bool) -> (!token, !bool)
    func.return %0#0, %0#1 : !token, !bool
  }
}
