#![doc = "jaxprism"]
pub mod error;
pub mod reader;
pub mod pieces;
