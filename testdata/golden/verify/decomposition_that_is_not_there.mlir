// A composite names a function of the module.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.composite_v1"(%x) {composite_attributes = #vhlo.dict_v1<{}>, decomposition = #vhlo.string_v1<"missing">, name = #vhlo.string_v1<"my.op">, version = #vhlo.integer_v1<1 : i32>} : (!f32) -> !f32
  return %x : !f32
}
