// A loop has a condition and a body.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %w = "vhlo.while_v1"(%x) ({
  ^bb0(%a: !f32):
    "vhlo.return_v1"(%a) : (!f32) -> ()
  }) : (!f32) -> !f32
  return %x : !f32
}
