//! Exports: read, written, read again.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::hostile::container("the input", bytes));
