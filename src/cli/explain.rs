//! `jaxprism explain`: the documentation of a pass.

use std::process::ExitCode;

use crate::error::Result;
use crate::passes::Pass;
use clap::Args;

use super::io;

const EXAMPLES: &str = "\
Examples:
  jaxprism explain fold-cases
  jaxprism opt --list-passes      all passes, a line each";

/// Show the documentation of a pass
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The pass
    #[arg(value_name = "PASS", value_parser = super::opt::pass)]
    pass: &'static Pass,
}

impl Opts {
    /// Prints.
    pub fn run(&self) -> Result<ExitCode> {
        io::print(self.pass.doc)?;
        Ok(ExitCode::SUCCESS)
    }
}
