// There is no first argument.
// FAIL[cpu]: opt % --platforms cpu,cuda --pass resolve-platform=cpu
func.func public @main() {
  return
}
