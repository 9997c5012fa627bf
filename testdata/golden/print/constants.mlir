// Constants of more than 16 elements are elided, unless more or fewer are asked for; canonical text hashes them.
// RUN[usual]: print %
// RUN[none]: print % --constants none
// RUN[few]: print % --constants 2
// RUN[all]: print % --constants all
// RUN[canonical]: print % --canonical
// RUN[canonical_none]: print % --canonical --constants none
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!i32x4 = !vhlo.tensor_v1<4x!vhlo.i32_v1>
func.func public @main() {
  %a = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1.5> : tensor<f32>>} : () -> !f32
  %b = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[0, 1, 2, 3]> : tensor<4xi32>>} : () -> !i32x4
  %c = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<7> : tensor<4xi32>>} : () -> !i32x4
  %d = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<17xi32>>} : () -> !vhlo.tensor_v1<17x!vhlo.i32_v1>
  return
}
