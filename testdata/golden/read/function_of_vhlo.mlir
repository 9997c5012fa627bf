// Functions are `func.func`.
// FAIL[run]: opt %
"vhlo.func_v1"() ({
  "vhlo.return_v1"() : () -> ()
}) {sym_name = #vhlo.string_v1<"main">} : () -> ()
