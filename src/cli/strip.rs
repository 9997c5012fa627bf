//! `jaxprism strip`: an export without its callbacks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::callbacks::{Policies, Policy, Rule};
use crate::error::{Error, Result};
use crate::files::{Claims, STEM};
use crate::{StripOptions, Stripped};
use clap::Args;

use super::callback_options::parse;
use super::emit::EmitOpts;
use super::io::{self, Input, is_dash};
use super::many::{self, ManyOpts, Told};
use super::place::{place, refuse_platform};
use super::table::{counted, number};
use super::{errors, refuse_arguments};

const EXAMPLES: &str = "\
Examples:
  jaxprism strip debug.jax_exported -o release.jax_exported
  jaxprism strip debug.jax_exported -o release.jax_exported --callback 'lookup=stub:zeros'
  jaxprism strip debug.jax_exported -o release.jax_exported --callback 'metrics.*=keep'
  jaxprism strip *.jax_exported -o release/               many exports, under their own names

Of several exports each is stripped on its own: one that fails is told, and stops no other;
the exit status is then 1.";

/// Take the callbacks out of an export
///
/// Debug prints and other callbacks without results go, with the tokens that ordered them, the effects that the export lists for them, and what was computed
/// for them alone, at every level of the vector-Jacobian products. Platforms stay as they are. A callback whose results are used needs a policy of its own.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The exports; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    inputs: Vec<PathBuf>,

    /// Where to write; `-` is standard output. A directory, where the output has the input's name, or a name, perhaps with `{stem}`, the input's name without
    /// its extension
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// The policy of the callbacks of that name; may be repeated. NAME may hold `*` and `?`. Policies: `strip`, `stub:zeros`, `stub:nan`, `stub:operand:K`,
    /// `stub:alias`, `keep`
    #[arg(long = "callback", value_name = "NAME=POLICY", value_parser = parse::<Rule>)]
    rules: Vec<Rule>,

    /// Replace a file that exists; never the input
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    many: ManyOpts,

    #[command(flatten)]
    emit: EmitOpts,
}

/// What an input became.
struct Done {
    before: u64,
    after: u64,
    callbacks: usize,
}

impl Opts {
    /// Reads, strips, writes.
    pub fn run(&self) -> Result<ExitCode> {
        refuse_platform(&self.output);
        let is_to_stdout = is_dash(&self.output);
        if is_to_stdout {
            self.emit.check_terminal();
        }
        if self.many.is_many(&self.inputs) {
            return self.run_many();
        }
        let input = Input::read(self.inputs.first().map(PathBuf::as_path))?;
        let stripped = self.strip(&input)?;
        notes(&input, &stripped, "").iter().for_each(|note| errors::note(note));
        let path = place(&self.output, input.path(), self.emit.kind())?;
        self.emit.write(&stripped.output, &path, self.force, &input, || Ok(()))
    }

    /// Strips several inputs, each on its own. Before that, no two may want to write to one place.
    fn run_many(&self) -> Result<ExitCode> {
        let mut claims = Claims::new(&self.inputs)?;
        for input in &self.inputs {
            claims.add(&self.path(input)?, Some(input))?;
        }
        let results = self.many.each(("stripping", "strip"), &self.inputs, false, |input| self.one(input))?;
        io::print(&summary(&results))?;
        Ok(many::conclude("strip", &results))
    }

    /// One of several inputs.
    fn one(&self, input: &Input) -> Result<Told<Done>> {
        let stripped = self.strip(input)?;
        let path = self.path(input.path().unwrap_or(Path::new("")))?;
        let after = self.emit.write_file(&stripped.output, &path, self.force, input, || Ok(()))?;
        let callbacks = stripped.levels.iter().map(|level| level.changes.callbacks_stripped + level.changes.callbacks_stubbed).sum();
        let value = Done { before: input.len() as u64, after, callbacks };
        Ok(Told { notes: notes(input, &stripped, &format!("{}: ", input.name())), value })
    }

    /// Where one of several inputs goes.
    fn path(&self, input: &Path) -> Result<PathBuf> {
        let text = self.output.to_string_lossy();
        if !self.output.is_dir() && !text.ends_with('/') && !text.contains(STEM) {
            refuse_arguments("for several inputs `-o` is a directory that exists or ends with `/`, or a name with `{stem}`");
        }
        place(&self.output, Some(input), self.emit.kind())
    }

    fn strip<'i>(&self, input: &'i Input) -> Result<Stripped<'i>> {
        let policies = Policies::default().otherwise(Policy::Strip).rules(self.rules.iter().cloned());
        let options = StripOptions::default().policies(policies).output(self.emit.options());
        crate::strip(input, &options).map_err(|error: Error| error.context(format!("cannot strip {}", input.name())))
    }
}

/// What else there is to say: that there was nothing to strip, and which results are no longer what the program computed.
fn notes(input: &Input, stripped: &Stripped<'_>, before: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if stripped.levels.iter().all(|level| level.callbacks.is_empty()) {
        notes.push(format!("{} has no callbacks that can be stripped", input.name()));
    }
    for callback in stripped.levels.iter().flat_map(|level| &level.callbacks).filter(|callback| callback.replaces_results) {
        let (kind, name, policy) = (callback.kind, &callback.name, &callback.policy);
        notes.push(format!("{before}the results of {kind} callback `{name}` are replaced (`{policy}`)"));
    }
    notes
}

fn summary(results: &[Result<Done>]) -> String {
    let done: Vec<&Done> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    format!(
        "{}: {} stripped of {}, {} bytes of {}, {} failed\n",
        counted(results.len(), "file"),
        number(done.len() as u64),
        counted(done.iter().map(|done| done.callbacks).sum(), "call"),
        number(done.iter().map(|done| done.after).sum::<u64>()),
        number(done.iter().map(|done| done.before).sum::<u64>()),
        number((results.len() - done.len()) as u64)
    )
}
