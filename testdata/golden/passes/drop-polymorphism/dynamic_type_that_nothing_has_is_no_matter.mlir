// The attribute of the function names a dynamic type, but no value has it.
// RUN[run]: opt % --pass drop-polymorphism
!f32x4 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
module attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%x: !f32x4) -> !f32x4 attributes {my.type = #vhlo.type_v1<!vhlo.tensor_v1<?x!vhlo.f32_v1>>} {
    return %x : !f32x4
  }
}
