// An argument of any function has a dynamic dimension.
// RUN[run]: opt % --pass drop-polymorphism
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
!dynamic = !vhlo.tensor_v1<?x!vhlo.f32_v1>
module attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%x: !f32x4) -> !f32x4 {
    return %x : !f32x4
  }
  func.func private @f(%x: !dynamic) {
    return
  }
}
