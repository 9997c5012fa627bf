//! The `jaxprism` program: parse, run, exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    jaxprism::cli::main(std::env::args_os())
}
