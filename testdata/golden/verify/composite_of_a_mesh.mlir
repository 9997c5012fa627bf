// What is called is a function.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.composite_v1"(%x) {composite_attributes = #vhlo.dict_v1<{}>, decomposition = #vhlo.string_v1<"mesh">, name = #vhlo.string_v1<"my.op">, version = #vhlo.integer_v1<1 : i32>} : (!f32) -> !f32
  return %x : !f32
}
