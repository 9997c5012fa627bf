// Others stay.
// RUN[run]: opt % --pass strip-sdy
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32x8 {jax.buffer_donor = #vhlo.bool_v1<true>, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %y: !f32x8 {mhlo.sharding = #vhlo.string_v1<"{replicated}">}) -> (!f32x8 {jax.result_info = #vhlo.string_v1<"result">, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %r = "vhlo.add_v1"(%x, %y) {mhlo.frontend_attributes = #vhlo.dict_v1<{#vhlo.string_v1<"a"> = #vhlo.string_v1<"b">, #vhlo.string_v1<"xla.sdy.sharding"> = #vhlo.string_v1<"c">}>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (!f32x8, !f32x8) -> !f32x8
  return %r : !f32x8
}
