// Each device computes something else.
// FAIL[run]: opt % --pass strip-sdy
module @jit_f attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: !vhlo.tensor_v1<!vhlo.ui32_v1> {mhlo.sharding = #vhlo.string_v1<"{replicated}">}) -> !vhlo.tensor_v1<!vhlo.ui32_v1> {
    %n = "vhlo.partition_id_v1"() : () -> !vhlo.tensor_v1<!vhlo.ui32_v1> loc("model.py":3:3)
    return %n : !vhlo.tensor_v1<!vhlo.ui32_v1>
  }
}
