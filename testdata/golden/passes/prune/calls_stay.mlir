// JAX's own writer does not look into functions either, so the functions stay as well.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = call @f(%x) : (!f32) -> !f32
  %s = "vhlo.composite_v1"(%x) {composite_attributes = #vhlo.dict_v1<{}>, decomposition = #vhlo.string_v1<"g">, name = #vhlo.string_v1<"my.op">, version = #vhlo.integer_v1<1 : i32>} : (!f32) -> !f32
  return %x : !f32
}
func.func private @f(%y: !f32) -> !f32 {
  return %y : !f32
}
func.func private @g(%y: !f32) -> !f32 {
  return %y : !f32
}
