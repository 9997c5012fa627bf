//! `jaxprism retarget`: other platforms for an export that does the same on all of them.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::{Names, PLATFORM, quoted};
use crate::retarget::check_platforms;
use crate::{Platform, Retarget, RetargetOptions, TargetsAllowed};
use clap::Args;

use super::emit::EmitOpts;
use super::io::{self, Input, is_dash};
use super::place::{place, refuse_platform};
use super::table::{Table, counted};
use super::{errors, refuse_arguments};

const EXAMPLES: &str = "\
Examples:
  jaxprism retarget model.jax_exported --platforms cuda,rocm -o model.gpu.jax_exported
  jaxprism retarget model.cuda.jax_exported --platforms cpu -o model.cpu.jax_exported
  jaxprism retarget model.cuda.jax_exported --platforms rocm --map-targets -o model.rocm.jax_exported
  jaxprism retarget model.jax_exported --platforms my_npu --allow my_kernel -o - | …
  jaxprism retarget model.jax_exported --platforms rocm --json -o model.rocm.jax_exported | jq '.bindings[].target'

Where the export is bound to its platforms, standard error says what binds it, and the exit status is 1. docs/retarget.md says what binds.";

/// Give an export other platforms, if it does the same on every platform
///
/// Writes the export for the platforms that are named, at every level of the vector-Jacobian products, if nothing in it is bound to the platforms it was made
/// for: no custom call that the new ones are not known to have, and no branch that the platform decides. Says what binds it and where if something does.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// The platforms that the output is for, in the order of their numbers
    #[arg(long, value_name = "PLATFORM,…", value_delimiter = ',', value_parser = super::suggested::platform(), hide_possible_values = true, required = true)]
    platforms: Vec<Platform>,

    /// Where to write; `-` is standard output. A directory, where the output has the input's name, or a name, perhaps with `{stem}`, the input's name without
    /// its extension, and for one platform with `{platform}`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// A custom call that the new platforms have, though jaxprism does not know it; `*` stands for any characters, `?` for one; may be repeated
    #[arg(long, value_name = "TARGET")]
    allow: Vec<String>,

    /// A file of such custom calls, as `check` takes it
    #[arg(long, value_name = "FILE")]
    targets_allowed: Option<PathBuf>,

    /// Rename custom calls from `cuda` to `rocm` or back where the handlers are the same in all but name
    #[arg(long)]
    map_targets: bool,

    #[command(flatten)]
    emit: EmitOpts,

    /// Replace a file that exists; never the input
    #[arg(long)]
    force: bool,

    /// Print what binds, or what was renamed, as JSON
    #[arg(long)]
    json: bool,
}

impl Opts {
    /// Reads, retargets, writes.
    pub fn run(&self) -> Result<ExitCode> {
        let is_to_stdout = is_dash(&self.output);
        if is_to_stdout && self.json {
            refuse_arguments("the output and the JSON cannot both go to standard output");
        }
        if is_to_stdout {
            self.emit.check_terminal();
        }
        if self.platforms.len() > 1 {
            refuse_platform(&self.output);
        }
        if let Err(error) = check_platforms(&self.platforms) {
            refuse_arguments(&error.to_string());
        }
        let options = RetargetOptions::default().platforms(self.platforms.iter().cloned()).targets_allowed(self.targets_allowed()?);
        let options = options.map_targets(self.map_targets).output(self.emit.options());
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot retarget {}", input.name()));
        let retarget = crate::retarget(&input, &options).map_err(failed)?;
        let Some(output) = &retarget.output else {
            if self.json {
                io::print_json(&retarget)?;
            }
            let (from, count) = (retarget.from.join(", "), counted(retarget.bindings.len(), "place"));
            let mut error = Error::refused(format!("{} is bound to {from} in {count}", input.name()));
            if let Some(hint) = retarget.hint() {
                error = error.with_hint(hint);
            }
            return Ok(errors::refuse(&error, &table(&retarget)));
        };
        let path = self.path(&input).map_err(failed)?;
        self.emit.write(output, &path, self.force, &input, || {
            for (from, to) in &retarget.targets_mapped {
                errors::note(&format!("custom call `{from}` became `{to}`"));
            }
            if self.json { io::print_json(&retarget) } else { Ok(()) }
        })
    }

    /// Where the output goes.
    fn path(&self, input: &Input) -> Result<PathBuf> {
        let emit = self.emit.kind();
        match &self.platforms[..] {
            [platform] if self.output.to_string_lossy().contains(PLATFORM) => {
                Names::new(Some(&self.output), input.path())?.extension(emit.extension()).path(platform)
            }
            _ => place(&self.output, input.path(), emit),
        }
    }

    fn targets_allowed(&self) -> Result<TargetsAllowed> {
        let mut lines = self.allow.clone();
        if let Some(path) = &self.targets_allowed {
            let text = io::read_text(path)?;
            text.parse::<TargetsAllowed>().map_err(|error| error.context(format!("cannot read {}", quoted(path))))?;
            lines.push(text);
        }
        lines.join("\n").parse().map_err(|error: Error| error.context("cannot allow these custom calls"))
    }
}

fn table(retarget: &Retarget<'_>) -> String {
    let mut table = Table::new(2, &[]);
    for binding in &retarget.bindings {
        let level = if binding.level == 0 { String::new() } else { format!("level {}", binding.level) };
        let function = binding.function.as_ref().map_or_else(String::new, |function| format!("@{function}"));
        table.row([binding.place.clone().unwrap_or_default(), function, level, binding.what()]);
    }
    table.text()
}
