//! Files of any kind through every verb of the library.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::hostile::whole("the input", bytes));
