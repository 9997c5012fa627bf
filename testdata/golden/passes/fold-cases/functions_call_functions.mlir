// Callers come first, so a value goes through any number of functions; copies call copies.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i32
  %q = "vhlo.minimum_v1"(%p, %zero) : (!i32, !i32) -> !i32
  %s = func.call @f(%p, %x) : (!i32, !f32) -> !f32
  %t = func.call @f(%q, %s) : (!i32, !f32) -> !f32
  return %t : !f32
}
func.func private @f(%q: !i32, %y: !f32) -> !f32 {
  %r = func.call @g(%q, %y) : (!i32, !f32) -> !f32
  return %r : !f32
}
func.func private @g(%q: !i32, %y: !f32) -> !f32 {
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%y) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
