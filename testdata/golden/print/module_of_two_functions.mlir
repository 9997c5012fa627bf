// The forms in which a module is printed.
// RUN[vhlo]: print %
// RUN[stablehlo]: print % --stablehlo
// RUN[function]: print % --function scale
// RUN[canonical]: print % --canonical
// RUN[locations]: print % --locations --function main
// RUN[everything]: print % --constants all --locations
// RUN[canonical_stablehlo]: print % --canonical --stablehlo
// FAIL[missing_function]: print % --function missing
// FAIL[missing_level]: print % --level 1
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
module @two attributes {mhlo.num_partitions = 1 : i32} {
  "sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
  func.func public @main(%x: !f32x4 {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (!f32x4 {jax.result_info = #vhlo.string_v1<"result">}) {
    %r = func.call @scale(%x) : (!f32x4) -> !f32x4 loc("train.py":3:4)
    return %r : !f32x4 loc(callsite("jit(f)"("train.py":4:5) at "main.py":6:7))
  }
  func.func private @scale(%y: !f32x4) -> !f32x4 {
    %c = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[1.0, 2.0, 3.0, 4.5]> : tensor<4xf32>>} : () -> !f32x4
    %r = "vhlo.multiply_v1"(%y, %c) : (!f32x4, !f32x4) -> !f32x4
    return %r : !f32x4
  }
}
