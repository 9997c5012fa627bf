// The error lists those that there are.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.rng_bit_generator_v1"(%x) {rng_algorithm = #vhlo<rng_algorithm_v1 DICE>} : (!f32) -> !f32
  return %x : !f32
}
