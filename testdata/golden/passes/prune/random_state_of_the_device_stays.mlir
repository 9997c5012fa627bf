// `rng` changes the state of the device; `rng_bit_generator` returns its own, and goes.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!i64x1 = !vhlo.tensor_v1<1x!vhlo.i64_v1>
!f32x1 = !vhlo.tensor_v1<1x!vhlo.f32_v1>
!ui64x2 = !vhlo.tensor_v1<2x!vhlo.ui64_v1>
!ui32x4 = !vhlo.tensor_v1<4x!vhlo.ui32_v1>
func.func public @main(%x: !f32, %k: !ui64x2) -> !f32 {
  %s = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[1]> : tensor<1xi64>>} : () -> !i64x1
  %a = "vhlo.rng_v1"(%x, %x, %s) {rng_distribution = #vhlo<rng_distribution_v1 UNIFORM>} : (!f32, !f32, !i64x1) -> !f32x1
  %b, %c = "vhlo.rng_bit_generator_v1"(%k) {rng_algorithm = #vhlo<rng_algorithm_v1 THREE_FRY>} : (!ui64x2) -> (!ui64x2, !ui32x4)
  return %x : !f32
}
