// Meshes and functions share their names.
// FAIL[run]: opt %
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "main"} : () -> ()
func.func public @main(%x: !f32) -> !f32 {
  return %x : !f32
}
