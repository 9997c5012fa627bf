// They mean nothing, but are part of the bytecode.
// FAIL[run]: opt %
module attributes {jaxprism.use_orders = [[0, 5, 1]]} {
}
