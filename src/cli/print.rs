//! `jaxprism print`: a module as MLIR text.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::Source;
use crate::error::{Error, Result};
use crate::ir::text::write_text;
use crate::threads::on_deep_stack;
use clap::Args;

use super::io::{self, Input};
use super::text::TextOpts;

const EXAMPLES: &str = "\
Examples:
  jaxprism print model.jax_exported                         the module, as passes see it
  jaxprism print model.jax_exported --stablehlo | less      easier to read
  jaxprism print model.jax_exported --level 1               the vector-Jacobian product
  jaxprism print model.jax_exported --constants all --locations > model.mlir
                                                            all of it; `jaxprism opt model.mlir` reads it back
  jaxprism print model.jax_exported --canonical > golden.mlir
                                                            for comparing; see docs/golden-tests.md";

/// Print a module as MLIR text
///
/// Functions are `func.func`, other operations are written in MLIR's generic form, attributes and types as StableHLO and Shardy spell them. Constants of
/// more than 16 elements are elided. Modules that `split` refuses because it does not know everything in them are printed as far as they are known.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode or text; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Which module of an export: 0 is the function's own, 1 that of its vector-Jacobian product, and so on
    #[arg(long, value_name = "N", default_value_t = 0)]
    level: usize,

    #[command(flatten)]
    text: TextOpts,
}

impl Opts {
    /// Reads, prints.
    pub fn run(&self) -> Result<ExitCode> {
        let input = Input::read(self.input.as_deref())?;
        let options = self.text.options();
        let failed = |error: Error| error.context(format!("cannot print {}", input.name()));
        on_deep_stack(|| {
            let source = Source::read(&input, &input.file_name()).map_err(failed)?;
            let module = source.module(self.level, &input).map_err(failed)?;
            io::write_stdout_or(|stdout| write_text(&module, &options, stdout).map_err(failed))?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
