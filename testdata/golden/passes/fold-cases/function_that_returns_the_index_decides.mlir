// What a call returns is decided if its function returns what is decided.
// RUN[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
func.func public @main(%p: !i32, %x: !f32) -> !f32 {
  %q = func.call @same(%p) : (!i32) -> !i32
  %r = "vhlo.case_v1"(%q) ({
    %minus = "vhlo.negate_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%minus) : (!f32) -> ()
  }, {
    %size = "vhlo.abs_v1"(%x) : (!f32) -> !f32
    "vhlo.return_v1"(%size) : (!f32) -> ()
  }) : (!i32) -> !f32
  return %r : !f32
}
func.func private @same(%n: !i32) -> !i32 {
  return %n : !i32
}
