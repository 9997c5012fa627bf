// Integer operations on the index are computed; the operations stay, for `prune` to erase.
// RUN[cpu]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cpu --pass fold-cases
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %two = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<2> : tensor<i32>>} : () -> !i32
  %d = "vhlo.multiply_v1"(%p, %two) : (!i32, !i32) -> !i32
  %e = "vhlo.maximum_v1"(%d, %two) : (!i32, !i32) -> !i32
  %q = "vhlo.subtract_v1"(%e, %two) : (!i32, !i32) -> !i32
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
