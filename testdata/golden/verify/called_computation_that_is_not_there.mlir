// A custom call names functions of the module.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%x: !f32) -> !f32 {
  %r = "vhlo.custom_call_v1"(%x) {api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, backend_config = #vhlo.string_v1<"">, call_target_name = #vhlo.string_v1<"target">, called_computations = #vhlo.array_v1<[#vhlo.string_v1<"missing">]>, has_side_effect = #vhlo.bool_v1<true>, operand_layouts = #vhlo.array_v1<[]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[]>} : (!f32) -> !f32
  return %x : !f32
}
