// RUN[both]: opt % --pass strip-callbacks --callbacks strip
// FAIL[one]: opt % --pass strip-callbacks --callbacks strip --callback see=keep

!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
#none = #vhlo.array_v1<[]>
#empty = #vhlo.string_v1<"">
#original = #vhlo<api_version_v1 API_VERSION_ORIGINAL>
#placeholder = #vhlo.string_v1<"jaxprism_callback">
#log = #vhlo.dict_v1<{#vhlo.string_v1<"kind"> = #vhlo.string_v1<"io">, #vhlo.string_v1<"meta"> = #vhlo.string_v1<"{\22args\22:[[\22float32\22,[\224\22]]],\22kind\22:\22io\22,\22name\22:\22log\22,\22results\22:[[\22float32\22,[\224\22]]],\22v\22:1}">, #vhlo.string_v1<"name"> = #vhlo.string_v1<"log">, #vhlo.string_v1<"v"> = #vhlo.integer_v1<1 : i64>}>
#see = #vhlo.dict_v1<{#vhlo.string_v1<"kind"> = #vhlo.string_v1<"debug">, #vhlo.string_v1<"meta"> = #vhlo.string_v1<"{\22args\22:[[\22float32\22,[\224\22]]],\22kind\22:\22debug\22,\22name\22:\22see\22,\22results\22:[],\22v\22:1}">, #vhlo.string_v1<"name"> = #vhlo.string_v1<"see">, #vhlo.string_v1<"v"> = #vhlo.integer_v1<1 : i64>}>
module {
  func.func public @main(%x: !f32) -> !f32 {
    %0 = "vhlo.custom_call_v2"(%x) {call_target_name = #placeholder, mhlo.backend_config = #log, has_side_effect = #vhlo.bool_v1<true>, output_operand_aliases = #none, api_version = #original, backend_config = #empty, called_computations = #none, operand_layouts = #none, result_layouts = #none, result_tilings = #none} : (!f32) -> !f32
    %1 = "vhlo.add_v1"(%0, %0) : (!f32, !f32) -> !f32
    "vhlo.custom_call_v2"(%1) {call_target_name = #placeholder, mhlo.backend_config = #see, has_side_effect = #vhlo.bool_v1<true>, output_operand_aliases = #none, api_version = #original, backend_config = #empty, called_computations = #none, operand_layouts = #none, result_layouts = #none, result_tilings = #none} : (!f32) -> ()
    func.return %x : !f32
  }
}
