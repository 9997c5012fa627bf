// Every function is called with twice as many values as the one before.
// FAIL[cuda]: opt % --platforms cpu,cuda,tpu --pass resolve-platform=cuda --pass fold-cases
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
func.func public @main(%p: !i32) {
  call @f(%p) : (!i32) -> ()
  return
}
func.func private @f(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @g(%even) : (!i32) -> ()
  call @g(%odd) : (!i32) -> ()
  return
}
func.func private @g(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @h(%even) : (!i32) -> ()
  call @h(%odd) : (!i32) -> ()
  return
}
func.func private @h(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @i(%even) : (!i32) -> ()
  call @i(%odd) : (!i32) -> ()
  return
}
func.func private @i(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @j(%even) : (!i32) -> ()
  call @j(%odd) : (!i32) -> ()
  return
}
func.func private @j(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @k(%even) : (!i32) -> ()
  call @k(%odd) : (!i32) -> ()
  return
}
func.func private @k(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @l(%even) : (!i32) -> ()
  call @l(%odd) : (!i32) -> ()
  return
}
func.func private @l(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @m(%even) : (!i32) -> ()
  call @m(%odd) : (!i32) -> ()
  return
}
func.func private @m(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @n(%even) : (!i32) -> ()
  call @n(%odd) : (!i32) -> ()
  return
}
func.func private @n(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @o(%even) : (!i32) -> ()
  call @o(%odd) : (!i32) -> ()
  return
}
func.func private @o(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @p(%even) : (!i32) -> ()
  call @p(%odd) : (!i32) -> ()
  return
}
func.func private @p(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @q(%even) : (!i32) -> ()
  call @q(%odd) : (!i32) -> ()
  return
}
func.func private @q(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @r(%even) : (!i32) -> ()
  call @r(%odd) : (!i32) -> ()
  return
}
func.func private @r(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @s(%even) : (!i32) -> ()
  call @s(%odd) : (!i32) -> ()
  return
}
func.func private @s(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @t(%even) : (!i32) -> ()
  call @t(%odd) : (!i32) -> ()
  return
}
func.func private @t(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @u(%even) : (!i32) -> ()
  call @u(%odd) : (!i32) -> ()
  return
}
func.func private @u(%q: !i32) {
  %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<1> : tensor<i32>>} : () -> !i32
  %even = "vhlo.add_v1"(%q, %q) : (!i32, !i32) -> !i32
  %odd = "vhlo.add_v1"(%even, %one) : (!i32, !i32) -> !i32
  call @v(%even) : (!i32) -> ()
  call @v(%odd) : (!i32) -> ()
  return
}
func.func private @v(%q: !i32) {
  return
}
