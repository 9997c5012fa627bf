//! `jaxprism merge`: one export per platform in, one for all of them out.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::{Files, STEM, shown};
use crate::visible::visible;
use crate::{MergeInput, MergeOptions, MergeReport, Platform};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;

use super::emit::EmitOpts;
use super::io::{self, Input, is_dash};
use super::place::{refuse_placeholder, refuse_platform};
use super::table::{counted, number};
use super::{errors, refuse_arguments};

const EXAMPLES: &str = "\
Examples:
  jaxprism merge model.cpu.jax_exported model.cuda.jax_exported -o model.jax_exported
  jaxprism merge cpu=a.jax_exported cuda=b.jax_exported -o model.jax_exported    fails if `a` is not for cpu
  jaxprism merge cpu=- cuda=b.jax_exported -o - < a.jax_exported | …
  jaxprism merge *.jax_exported -o model.jax_exported --json | jq '.levels[].undonated'

The JSON is described in docs/json.md. `jaxprism split` is the inverse.";

/// Merge exports for one platform each into one for all of them
///
/// Each platform keeps its code, at every level of the vector-Jacobian products; what is equal stands once. JAX calls the merged export on each of the platforms. Signatures
/// must be the same: the first difference is an error. An argument that is donated on some platforms only is donated on none.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The exports, in the order that the platforms are to have. With a PLATFORM, which ends at the first `=`, the export must be for it. `-` is standard input
    #[arg(value_name = "[PLATFORM=]IN", required = true, value_parser = OsStringValueParser::new().try_map(parse))]
    inputs: Vec<Named>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    emit: EmitOpts,

    /// Replace a file that exists; never an input
    #[arg(long)]
    force: bool,

    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// A file, and the platform that it must be for.
#[derive(Debug, Clone)]
struct Named {
    platform: Option<Platform>,
    path: PathBuf,
}

/// What stands before `=` is a platform if it could be one; a path with a `/` before it could not.
fn parse(given: OsString) -> std::result::Result<Named, String> {
    let name = given.as_encoded_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
    match (std::str::from_utf8(name), behind(&given, name.len())) {
        (Ok(name), Some(path)) if !name.contains(['/', '\\']) => match path.as_os_str().is_empty() {
            true => Err("there is no file behind the `=`".to_owned()),
            false => Ok(Named { platform: Some(super::callback_options::parse(name)?), path }),
        },
        _ => Ok(Named { platform: None, path: given.into() }),
    }
}

/// What stands behind a `=`, of which the place is known.
#[cfg(unix)]
fn behind(given: &OsStr, place: usize) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(given.as_bytes().get(place + 1..)?).into())
}

#[cfg(not(unix))]
fn behind(given: &OsStr, place: usize) -> Option<PathBuf> {
    given.to_str()?.get(place + 1..).map(PathBuf::from)
}

/// The report of the library, with what only the command line knows.
#[derive(Serialize)]
struct Json<'r> {
    inputs: Vec<Option<String>>,
    output: Option<String>,
    #[serde(flatten)]
    report: &'r MergeReport,
}

impl Opts {
    /// Reads, merges, writes.
    pub fn run(&self) -> Result<ExitCode> {
        refuse_platform(&self.output);
        refuse_placeholder(&self.output, STEM, "it is made of all inputs together");
        let is_to_stdout = is_dash(&self.output);
        if is_to_stdout && self.json {
            refuse_arguments("the output and the report cannot both go to standard output");
        }
        if is_to_stdout {
            self.emit.check_terminal();
        }
        if self.inputs.iter().filter(|input| is_dash(&input.path)).count() > 1 {
            refuse_arguments("standard input holds one export, and `-` is named more than once");
        }
        if self.inputs.len() < 2 {
            refuse_arguments("merging takes two exports or more");
        }
        let files = self.inputs.iter().map(|input| Input::read(Some(&input.path))).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<_> = files
            .iter()
            .zip(&self.inputs)
            .map(|(file, input)| MergeInput { platform: input.platform.clone(), ..MergeInput::new(file) })
            .collect();
        let names: Vec<_> = files.iter().map(Input::name).collect();
        let options = MergeOptions::default().output(self.emit.options());
        let failed = |error: Error| error.context(format!("cannot merge {}", names.join(", ")));
        let mut merged = crate::merge(&inputs, &options).map_err(failed)?;
        tell(&merged.report);
        if is_to_stdout {
            let is_whole = self.emit.write_stdout(&merged.output)?;
            return Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(2) });
        }
        let contents = self.emit.of(&merged.output)?;
        merged.report.bytes = contents.len();
        let mut outputs = Files::default();
        outputs.add(&self.output, self.force, files.iter().map(Input::source))?;
        outputs.write_pieces(&[&contents], None)?;
        io::check_input()?;
        outputs.commit_and(|| {
            if !self.json {
                return io::print(&text(&merged.report, &self.output));
            }
            let name = |path: &Path| path.display().to_string();
            let inputs = files.iter().map(|file| file.path().map(name)).collect();
            io::print_json(&Json { inputs, output: Some(name(&self.output)), report: &merged.report })
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Says what the export does otherwise than those that it was made of.
fn tell(report: &MergeReport) {
    for level in &report.levels {
        for path in &level.undonated {
            errors::note(&format!("{path} is donated on some platforms only, and now on none"));
        }
    }
    if report.levels.iter().any(|level| level.unlowered) {
        errors::note("callbacks that were lowered are placeholders again; `jaxprism split` lowers them");
    }
}

/// What was written, on one line.
fn text(report: &MergeReport, output: &Path) -> String {
    let sum = |count: fn(&crate::MergedLevel) -> usize| report.levels.iter().map(count).sum::<usize>();
    let (functions, shared) = (counted(sum(|level| level.functions), "function"), number(sum(|level| level.functions_shared) as u64));
    let platforms = visible(&report.platforms.join(", "));
    format!("{} for {platforms}: {} bytes, {functions}, {shared} shared\n", shown(output), number(report.bytes))
}
