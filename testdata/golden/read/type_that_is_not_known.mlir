// A type that vhlo does not have.
// FAIL[run]: opt %
func.func public @main(%x: !vhlo.f99_v1) -> !vhlo.f99_v1 {
  return %x : !vhlo.f99_v1
}
