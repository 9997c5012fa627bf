// No sharding, nothing to do: placements in memory and collectives of one device stay.
// RUN[run]: opt % --pass strip-sdy
!f32x8 = !vhlo.tensor_v1<8x!vhlo.f32_v1>
func.func public @main(%x: !f32x8) -> !f32x8 {
  %a = "vhlo.custom_call_v1"(%x) {api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, backend_config = #vhlo.string_v1<"">, call_target_name = #vhlo.string_v1<"annotate_device_placement">, called_computations = #vhlo.array_v1<[]>, has_side_effect = #vhlo.bool_v1<true>, mhlo.frontend_attributes = #vhlo.dict_v1<{#vhlo.string_v1<"_xla_buffer_placement"> = #vhlo.string_v1<"pinned_host">}>, operand_layouts = #vhlo.array_v1<[]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[]>} : (!f32x8) -> !f32x8
  %n = "vhlo.partition_id_v1"() : () -> !vhlo.tensor_v1<!vhlo.ui32_v1>
  return %a : !f32x8
}
