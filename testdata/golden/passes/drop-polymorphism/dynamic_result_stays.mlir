// The result of an operation has a dynamic dimension, deep inside.
// RUN[run]: opt % --pass drop-polymorphism
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
!i32x1 = !vhlo.tensor_v1<1x!vhlo.i32_v1>
!dynamic = !vhlo.tensor_v1<?x!vhlo.f32_v1>
module attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%c: !bool, %n: !i32x1) {
    "vhlo.if_v1"(%c) ({
      %d = "vhlo.dynamic_iota_v1"(%n) {iota_dimension = #vhlo.integer_v1<0 : i64>} : (!i32x1) -> !dynamic
      "vhlo.return_v1"() : () -> ()
    }, {
      "vhlo.return_v1"() : () -> ()
    }) : (!bool) -> ()
    return
  }
}
