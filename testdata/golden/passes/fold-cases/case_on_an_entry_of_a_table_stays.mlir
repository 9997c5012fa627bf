// The table and the user use one constant; the platform decides by the table alone.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i32
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %q = "vhlo.case_v1"(%p) ({
    "vhlo.return_v1"(%one) : (!i32) -> ()
  }, {
    "vhlo.return_v1"(%zero) : (!i32) -> ()
  }) : (!i32) -> !i32
  %s = "vhlo.case_v1"(%zero) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%s) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%s) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
