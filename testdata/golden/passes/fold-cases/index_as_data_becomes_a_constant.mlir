// What uses the index and is nothing to decide uses its number.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %n = "vhlo.convert_v1"(%p) : (!i32) -> !f32
  %r = "vhlo.add_v1"(%x, %n) : (!f32, !f32) -> !f32
  return %r : !f32
}
