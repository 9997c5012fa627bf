// Of operations, of arguments of blocks, of functions and of the module.
// RUN[run]: opt % --pass strip-locations --locations
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
module {
  func.func public @main(%x: !f32x4 loc("x"("/home/me/train.py":4:8))) -> !f32 {
    %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0.0> : tensor<f32>>} : () -> !f32
    %r = "vhlo.reduce_v1"(%x, %zero) ({
    ^bb0(%u: !f32 loc("train.py":5:5), %v: !f32 loc(unknown)):
      %s = "vhlo.add_v1"(%u, %v) : (!f32, !f32) -> !f32 loc(fused["jit(f)", "sum"])
      "vhlo.return_v1"(%s) : (!f32) -> () loc(callsite("train.py":5:6 at "main.py":7:8))
    }) {dimensions = #vhlo.tensor_v1<dense<0> : tensor<1xi64>>} : (!f32x4, !f32) -> !f32 loc("jit(f)/reduce")
    return %r : !f32
  } loc("main")
} loc("train.py":1:1)
