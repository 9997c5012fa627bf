// Behind the loop its result is still the index.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i32
  %five = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<5> : tensor<i32>>} : () -> !i32
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %w0, %w1, %w2 = "vhlo.while_v1"(%zero, %x, %p) ({
  ^bb0(%ci: !i32, %ca: !f32, %cq: !i32):
    %go = "vhlo.compare_v1"(%ci, %five) {compare_type = #vhlo<comparison_type_v1 SIGNED>, comparison_direction = #vhlo<comparison_direction_v1 LT>} : (!i32, !i32) -> !bool
    "vhlo.return_v1"(%go) : (!bool) -> ()
  }, {
  ^bb0(%i: !i32, %a: !f32, %q: !i32):
    %j = "vhlo.add_v1"(%i, %one) : (!i32, !i32) -> !i32
    %r = "vhlo.negate_v1"(%a) : (!f32) -> !f32
    "vhlo.return_v1"(%j, %r, %q) : (!i32, !f32, !i32) -> ()
  }) : (!i32, !f32, !i32) -> (!i32, !f32, !i32)
  %z = "vhlo.case_v1"(%w2) ({
    %minus = "vhlo.negate_v1"(%w1) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%w1) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %z : !f32
}
