// What a version has not is named with its places, and the version that has all of it.
// FAIL[oldest]: opt % --target-version 0.9.0
// FAIL[old]: opt % --target-version 1.5.0
// FAIL[newer]: opt % --target-version 1.9.0
// RUN[enough]: opt % --target-version 1.11.0
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!f8 = !vhlo.tensor_v1<!vhlo.f8E4M3_v1>
"sdy.mesh"() {mesh = #sdy.mesh<[], device_ids=[0]>, sym_name = "mesh"} : () -> ()
func.func public @main(%x: !f32) -> !f32 {
  %0 = "vhlo.tan_v1"(%x) : (!f32) -> !f32 loc("model.py":3:4)
  %1 = "vhlo.tan_v1"(%0) : (!f32) -> !f32 loc("model.py":4:4)
  %2 = "vhlo.tan_v1"(%1) : (!f32) -> !f32 loc("model.py":5:4)
  %3 = "vhlo.tan_v1"(%2) : (!f32) -> !f32 loc("model.py":6:4)
  %4 = "vhlo.tanh_v2"(%3) {result_accuracy = #vhlo.result_accuracy_v1<atol = 0.0, rtol = 0.0, ulps = 0, mode = #vhlo<result_accuracy_mode_v1 HIGHEST>>} : (!f32) -> !f32 loc("model.py":7:4)
  %5 = "vhlo.convert_v1"(%4) : (!f32) -> !f8 loc("model.py":8:4)
  %6 = call @narrow(%5) : (!f8) -> !f8
  %7 = "vhlo.convert_v1"(%6) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (!f8) -> !f32
  return %7 : !f32
}
func.func private @narrow(%x: !f8) -> !f8 {
  return %x : !f8
}
