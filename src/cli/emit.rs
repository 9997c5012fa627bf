//! What is written, and how much of it: the options of every verb that writes exports, and the one output of those that write a single file.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use crate::error::Result;
use crate::files::Files;
use crate::pieces::Pieces;
use crate::{Emit, Output, OutputOptions, StablehloVersion};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::callback_options::parse;
use super::io::{self, Input, is_dash};
use super::refuse_arguments;

impl ValueEnum for Emit {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Export, Self::Mlirbc, Self::Mlir]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Export => PossibleValue::new("export").help("The export, with all its modules"),
            Self::Mlirbc => PossibleValue::new("mlirbc").help("One module in MLIR bytecode, a portable artifact"),
            Self::Mlir => PossibleValue::new("mlir").help("One module in MLIR text"),
        })
    }
}

#[derive(Debug, Args)]
pub struct EmitOpts {
    /// What to write; a module is that of the function itself
    #[arg(long, value_name = "KIND", default_value = "export", hide_default_value = true)]
    emit: Emit,

    /// Take the shardings out, so that the output is for one device; `jaxprism explain strip-sdy` says more
    #[arg(long)]
    strip_sdy: bool,

    #[command(flatten)]
    output: OutputOpts,
}

/// What `opt` has as well.
#[derive(Debug, Args)]
pub struct OutputOpts {
    /// Leave out the vector-Jacobian products, as if the export had been made with `vjp_order=0`
    #[arg(long)]
    no_vjp: bool,

    /// Write modules that readers of this version of StableHLO read, such as `1.9.0`: newer ones are rewritten, or refused if the version has not all that
    /// is in them
    #[arg(long, value_name = "VERSION", value_parser = parse::<StablehloVersion>)]
    target_version: Option<StablehloVersion>,
}

impl OutputOpts {
    /// What the library is asked for.
    pub fn options(&self) -> OutputOptions {
        OutputOptions::default().no_vjp(self.no_vjp).target_version(self.target_version)
    }
}

impl EmitOpts {
    /// What the library is asked for.
    pub fn options(&self) -> OutputOptions {
        self.output.options().strip_sdy(self.strip_sdy).emit(self.emit)
    }

    /// What is written.
    pub fn kind(&self) -> Emit {
        self.emit
    }

    /// The bytes to write.
    pub fn of<'o, 'a>(&self, output: &'o Output<'a>) -> Result<Cow<'o, Pieces<'a>>> {
        self.emit.of(output)
    }

    /// Leaves if the output would garble the terminal.
    pub fn check_terminal(&self) {
        if self.emit != Emit::Mlir && std::io::stdout().is_terminal() {
            let what = if self.emit == Emit::Export { "an export" } else { "MLIR bytecode" };
            refuse_arguments(&format!("{what} is binary and would garble the terminal; redirect standard output, or name a file"));
        }
    }

    /// Writes to standard output. The result says whether the reader took everything.
    pub fn write_stdout(&self, output: &Output<'_>) -> Result<bool> {
        let contents = self.of(output)?;
        io::write_stdout(|stdout| contents.write_to(stdout))
    }

    /// Writes the one output of a run to a file or to standard output, and then says what there is to say.
    pub fn write(
        &self,
        output: &Output<'_>,
        path: &Path,
        force: bool,
        input: &Input,
        tell: impl FnOnce() -> Result<()>,
    ) -> Result<ExitCode> {
        if is_dash(path) {
            io::check_input()?;
            let is_whole = self.write_stdout(output)?;
            return Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(2) });
        }
        self.write_file(output, path, force, input, tell)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the output of an input to a file, and then says what there is to say. Returns how many bytes the file has.
    pub fn write_file(
        &self,
        output: &Output<'_>,
        path: &Path,
        force: bool,
        input: &Input,
        tell: impl FnOnce() -> Result<()>,
    ) -> Result<u64> {
        let contents = self.of(output)?;
        let mut files = Files::default();
        files.add(path, force, Some(input.source()))?;
        files.write_pieces(&[&contents], input.origin())?;
        input.check()?;
        files.commit_and(tell)?;
        Ok(contents.len())
    }
}
