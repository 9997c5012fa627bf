//! The `jaxprism` program: parse, run, exit status.

#![cfg_attr(
    not(test),
    deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::todo, clippy::unreachable, clippy::unwrap_used)
)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
