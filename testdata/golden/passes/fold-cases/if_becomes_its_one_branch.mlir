// An `if` on what the platform decides is replaced like a `case`.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i32
  %first = "vhlo.compare_v1"(%p, %zero) {compare_type = #vhlo<comparison_type_v1 SIGNED>, comparison_direction = #vhlo<comparison_direction_v1 EQ>} : (!i32, !i32) -> !bool
  %r = "vhlo.if_v1"(%first) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!bool) -> !f32
  return %r : !f32
}
