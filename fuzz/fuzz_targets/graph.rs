//! Modules that are readable, with their graph changed: through MLIR and back.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::hostile::graph("the input", bytes));
