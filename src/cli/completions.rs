//! `jaxprism completions`: what a shell needs to complete command lines.

use std::process::ExitCode;

use crate::error::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, io};

const EXAMPLES: &str = "\
Examples:
  jaxprism completions bash > ~/.local/share/bash-completion/completions/jaxprism
  jaxprism completions zsh > ~/.zfunc/_jaxprism          with `fpath+=~/.zfunc` before `compinit`
  jaxprism completions fish > ~/.config/fish/completions/jaxprism.fish
  source <(jaxprism completions bash)                    for this shell alone";

/// Write a script of completions for a shell
///
/// With it the shell completes verbs and options, and the values of those that are platforms, policies and passes.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Opts {
    /// Prints.
    pub fn run(&self) -> Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "jaxprism", &mut script);
        io::write_stdout(|stdout| stdout.write_all(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
