#![doc = "jaxprism"]
pub mod bytecode;
pub mod error;
pub mod ir;
pub mod pieces;
pub mod reader;
