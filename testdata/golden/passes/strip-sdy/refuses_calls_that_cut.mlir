// An array becomes its shards.
// FAIL[run]: opt % --pass strip-sdy
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
func.func public @main(%x: !f32x8) -> !vhlo.tensor_v1<4x!vhlo.f32_v1> {
  %a = "vhlo.custom_call_v1"(%x) {api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, backend_config = #vhlo.string_v1<"">, call_target_name = #vhlo.string_v1<"SPMDFullToShardShape">, called_computations = #vhlo.array_v1<[]>, has_side_effect = #vhlo.bool_v1<false>, mhlo.sharding = #vhlo.string_v1<"{devices=[2]<=[2]}">, operand_layouts = #vhlo.array_v1<[]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[]>} : (!f32x8) -> !vhlo.tensor_v1<4x!vhlo.f32_v1>
  return %a : !vhlo.tensor_v1<4x!vhlo.f32_v1>
}
