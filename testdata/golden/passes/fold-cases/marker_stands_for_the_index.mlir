// What `resolve-platform` puts in place of the index can be written by hand.
// RUN[run]: opt % --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %p = "jaxprism.platform_value"() {value = 1 : i64} : () -> !i32
  %r = "vhlo.case_v1"(%p) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
