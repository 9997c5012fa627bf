//! `jaxprism strip`: an export without its callbacks.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::StripOptions;
use crate::callbacks::{Policies, Policy, Rule};
use crate::error::{Error, Result};
use clap::Args;

use super::callback_options::parse;
use super::emit::EmitOpts;
use super::errors;
use super::io::{Input, is_dash};

const EXAMPLES: &str = "\
Examples:
  jaxprism strip debug.jax_exported -o release.jax_exported
  jaxprism strip debug.jax_exported -o release.jax_exported --callback 'lookup=stub:zeros'
  jaxprism strip debug.jax_exported -o release.jax_exported --callback 'metrics.*=keep'";

/// Take the callbacks out of an export
///
/// Debug prints and other callbacks without results go, with the tokens that ordered them, the effects that the export lists for them, and what was computed
/// for them alone, at every level of the vector-Jacobian products. Platforms stay as they are. A callback whose results are used needs a policy of its own.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// The policy of the callbacks of that name; may be repeated. NAME may hold `*` and `?`. Policies: `strip`, `stub:zeros`, `stub:nan`, `stub:operand:K`,
    /// `stub:alias`, `keep`
    #[arg(long = "callback", value_name = "NAME=POLICY", value_parser = parse::<Rule>)]
    rules: Vec<Rule>,

    #[command(flatten)]
    emit: EmitOpts,

    /// Replace a file that exists; never the input
    #[arg(long)]
    force: bool,
}

impl Opts {
    /// Reads, strips, writes.
    pub fn run(&self) -> Result<ExitCode> {
        if is_dash(&self.output) {
            self.emit.check_terminal();
        }
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot strip {}", input.name()));
        let policies = Policies::default().otherwise(Policy::Strip).rules(self.rules.iter().cloned());
        let options = StripOptions::default().policies(policies).output(self.emit.options());
        let stripped = crate::strip(&input, &options).map_err(failed)?;
        if stripped.levels.iter().all(|level| level.callbacks.is_empty()) {
            errors::note(&format!("{} has no callbacks that can be stripped", input.name()));
        }
        for callback in stripped.levels.iter().flat_map(|level| &level.callbacks).filter(|callback| callback.replaces_results) {
            errors::note(&format!("the results of {} callback `{}` are replaced (`{}`)", callback.kind, callback.name, callback.policy));
        }
        self.emit.write(&stripped.output, &self.output, self.force, &input, || Ok(()))
    }
}
