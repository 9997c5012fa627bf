// The module says in which version it was written.
// FAIL[run]: opt %
module attributes {jaxprism.bytecode_version = 99 : i64} {
}
