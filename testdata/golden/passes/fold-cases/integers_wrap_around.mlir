// The index of cpu less one is 255 in eight bits, which is not below zero.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!ui8 = !vhlo.tensor_v1<!vhlo.ui8_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<ui8>>} : () -> !ui8
  %few = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<100> : tensor<ui8>>} : () -> !ui8
  %q = "vhlo.convert_v1"(%p) : (!i32) -> !ui8
  %m = "vhlo.subtract_v1"(%q, %one) : (!ui8, !ui8) -> !ui8
  %many = "vhlo.compare_v1"(%m, %few) {compare_type = #vhlo<comparison_type_v1 UNSIGNED>, comparison_direction = #vhlo<comparison_direction_v1 GT>} : (!ui8, !ui8) -> !bool
  %r = "vhlo.if_v1"(%many) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!bool) -> !f32
  return %r : !f32
}
