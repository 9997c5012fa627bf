// A `case` has an index and branches.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.case_v1"() ({
    "vhlo.return_v1"(%x) : (!f32) -> ()
  }) : () -> !f32
  return %x : !f32
}
