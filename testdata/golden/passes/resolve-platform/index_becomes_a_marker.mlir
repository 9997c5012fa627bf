// The argument of `main` becomes a marked value with the platform's number among those of the export.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu
// RUN[tpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=tpu
// RUN[option]: opt % --platforms cpu,cuda,tpu --platform cuda --pass resolve-platform
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
func.func public @main(%p: !i32, %x: !i32) -> !i32 {
  %r = "vhlo.add_v1"(%p, %x) : (!i32, !i32) -> !i32
  return %r : !i32
}
