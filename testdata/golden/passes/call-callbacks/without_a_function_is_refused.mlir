// FAIL[unlinked]: opt % --pass call-callbacks --callbacks call:%

!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
#none = #vhlo.array_v1<[]>
#empty = #vhlo.string_v1<"">
#original = #vhlo<api_version_v1 API_VERSION_ORIGINAL>
!i32 = !vhlo.tensor_v1<2x!vhlo.i32_v1>
#placeholder = #vhlo.string_v1<"jaxprism_callback">
#pure = #vhlo.dict_v1<{#vhlo.string_v1<"kind"> = #vhlo.string_v1<"pure">, #vhlo.string_v1<"meta"> = #vhlo.string_v1<"{\22args\22:[[\22float32\22,[\224\22]]],\22kind\22:\22pure\22,\22name\22:\22f\22,\22results\22:[[\22int32\22,[\222\22]]],\22v\22:1}">, #vhlo.string_v1<"name"> = #vhlo.string_v1<"f">, #vhlo.string_v1<"v"> = #vhlo.integer_v1<1 : i64>}>
module {
  func.func public @main(%x: !f32) -> !i32 {
    %0 = "vhlo.custom_call_v2"(%x) {call_target_name = #placeholder, mhlo.backend_config = #pure, has_side_effect = #vhlo.bool_v1<false>, output_operand_aliases = #none, api_version = #original, backend_config = #empty, called_computations = #none, operand_layouts = #none, result_layouts = #none, result_tilings = #none} : (!f32) -> !i32
    func.return %0 : !i32
  }
}
