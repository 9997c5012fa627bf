// A composite takes what its decomposition takes.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.composite_v1"(%x, %x) {composite_attributes = #vhlo.dict_v1<{}>, decomposition = #vhlo.string_v1<"f">, name = #vhlo.string_v1<"my.op">, version = #vhlo.integer_v1<1 : i32>} : (!f32, !f32) -> !f32
  return %x : !f32
}
func.func private @f(%y: !f32) -> !f32 {
  return %y : !f32
}
