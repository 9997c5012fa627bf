// FAIL[value]: opt % --pass fold-cases

module {
  func.func public @main() {
    "jaxprism.platform_value"() {value = 1 : i64} : () -> ()
    func.return
  }
}
