// RUN[go]: opt % --pass drop-tokens
!token = !vhlo.token_v1
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
module {
  func.func public @main(%t: !token, %u: !token, %i: !i32) -> !token {
    %0 = "vhlo.case_v1"(%i) ({
      "vhlo.return_v1"(%t) : (!token) -> ()
    }, {
      "vhlo.return_v1"(%u) : (!token) -> ()
    }) : (!i32) -> !token
    func.return %0 : !token
  }
}
