// The module says on how many devices it runs.
// RUN[run]: opt % --pass strip-sdy
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: !vhlo.tensor_v1<8x!vhlo.f32_v1> {mhlo.sharding = #vhlo.string_v1<"{devices=[4]<=[4]}">}) -> !vhlo.tensor_v1<8x!vhlo.f32_v1> {
    return %x : !vhlo.tensor_v1<8x!vhlo.f32_v1>
  }
}
