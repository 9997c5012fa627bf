// RUN[stay]: opt % --pass unlower-callbacks

!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
#none = #vhlo.array_v1<[]>
#empty = #vhlo.string_v1<"">
#original = #vhlo<api_version_v1 API_VERSION_ORIGINAL>
#lowered = #vhlo.string_v1<"xla_ffi_python_cpu_callback">
#index = #vhlo.dict_v1<{#vhlo.string_v1<"index"> = #vhlo.integer_v1<0 : ui64>}>
module {
  func.func public @main(%x: !f32) -> !f32 {
    "vhlo.custom_call_v2"(%x) {call_target_name = #lowered, mhlo.backend_config = #index, has_side_effect = #vhlo.bool_v1<true>, output_operand_aliases = #none, api_version = #original, backend_config = #empty, called_computations = #none, operand_layouts = #none, result_layouts = #none, result_tilings = #none} : (!f32) -> ()
    func.return %x : !f32
  }
}
