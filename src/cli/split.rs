//! `jaxprism split`: one export in, one per platform out.

use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::{Files, Names, quoted};
use crate::passes::Changes;
use crate::split::OutputReport;
use crate::{Locations, Output, Platform, Split, SplitOptions};
use clap::Args;
use serde::Serialize;

use super::callback_options::{CallbackOpts, parse};
use super::emit::EmitOpts;
use super::io::{self, Input, is_dash};
use super::table::{Table, number};
use super::{errors, refuse_arguments};

const EXAMPLES: &str = "\
Examples:
  jaxprism split model.jax_exported                        model.cpu.jax_exported, … beside it
  jaxprism split model.jax_exported -p cuda -o out/        out/model.cuda.jax_exported
  jaxprism split model.jax_exported -o '{platform}/{stem}.bin'
  jaxprism split - -o 'served.{platform}.bin' < model      standard input has no name of its own
  jaxprism split model.jax_exported -p cpu -o - | …        one export to standard output
  jaxprism split model.jax_exported --report report.json   what was done, for programs

Either all files are written or none.";

/// Split an export into one export per platform
///
/// Resolves every use of the platform index, at every level of the vector-Jacobian products, and leaves everything else as it is. The outputs are ordinary
/// exports for a single platform.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Where to write: a directory, which is made if missing, or a name with `{platform}` and perhaps `{stem}`, the input's name without its
    /// extension. `-` is standard output, for a single platform. Default: beside the input
    #[arg(short, long, value_name = "DIR|TEMPLATE")]
    output: Option<PathBuf>,

    /// Write this platform only; may be repeated, or list several with commas
    #[arg(short, long = "platform", value_name = "PLATFORM", value_delimiter = ',', value_parser = platform)]
    platforms: Vec<Platform>,

    /// Make every source location unknown, which makes the output smaller as well; the program inside a custom call keeps its own
    #[arg(long, conflicts_with = "redact_paths")]
    strip_locations: bool,

    /// Take the directories from the file names in source locations; lines and scopes stay
    #[arg(long)]
    redact_paths: bool,

    #[command(flatten)]
    emit: EmitOpts,

    #[command(flatten)]
    callbacks: CallbackOpts,

    /// Write what hosts must know to bind the callbacks: JSON to a file `….json`, bincode to a file `….bincode`
    #[arg(long, value_name = "FILE", help_heading = "Callbacks")]
    manifest: Option<PathBuf>,

    /// Replace files that exist; never the input
    #[arg(long)]
    force: bool,

    /// Write what was done as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Do not print the table of outputs
    #[arg(short, long)]
    quiet: bool,
}

/// The report of the library, with what only the command line knows.
#[derive(Serialize)]
struct Report<'r> {
    input: Option<String>,
    input_bytes: u64,
    platforms: &'r [String],
    outputs: Vec<OutputWithPath<'r>>,
}

#[derive(Serialize)]
struct OutputWithPath<'r> {
    path: Option<String>,
    #[serde(flatten)]
    output: &'r OutputReport,
}

pub fn platform(name: &str) -> std::result::Result<Platform, String> {
    parse(name)
}

impl Opts {
    /// Reads, splits, writes.
    pub fn run(&self) -> Result<ExitCode> {
        let is_to_stdout = self.output.as_deref().is_some_and(is_dash);
        let is_report_to_stdout = self.report.as_deref().is_some_and(is_dash);
        if is_to_stdout && is_report_to_stdout {
            refuse_arguments("the output and the report cannot both go to standard output");
        }
        if is_to_stdout {
            self.emit.check_terminal();
        }
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot split {}", input.name()));
        let options = SplitOptions::default().platforms(self.platforms.iter().cloned()).locations(self.locations());
        let options = options.callbacks(self.callbacks.options()?).output(self.emit.options());
        let split = crate::split(&input, &options).map_err(failed)?;
        if let [platform] = &split.report.platforms[..] {
            errors::note(&format!("{} was exported for one platform (`{platform}`)", input.name()));
        }
        let paths = if is_to_stdout { Vec::new() } else { self.paths(&input, &split).map_err(failed)? };
        let report = || io::to_json(&report(&input, &split, &paths));
        let manifest = self.manifest(&split)?;
        let mut files = self.prepare(&input, &paths)?;
        let contents = split.outputs.values().take(paths.len()).map(|output| self.emit.of(output)).collect::<Result<Vec<_>>>()?;
        files.write_pieces(&contents.iter().map(Deref::deref).collect::<Vec<_>>(), input.origin())?;
        let file_of_report = self.report.as_deref().filter(|_| !is_report_to_stdout);
        if file_of_report.is_some_and(|path| !is_special(path)) {
            let text = report()?;
            files.write(paths.len(), |file| file.write_all(&text))?;
        }
        if let Some(manifest) = manifest {
            files.write(files.len() - 1, |file| file.write_all(&manifest))?;
        }
        tell_replaced(&split);
        if is_to_stdout && !self.write_stdout(&split).map_err(failed)? {
            // Whoever reads did not want all of it, and knows; but an export was not delivered.
            return Ok(ExitCode::from(2));
        }
        io::check_input()?;
        // Whoever reads what is told may go on with the files at once; and where it cannot be told, the files go again.
        files.commit_and(|| match file_of_report {
            Some(path) if is_special(path) => {
                let text = report()?;
                let written = std::fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(&text));
                written.map_err(|error| Error::io(format!("cannot write {}", quoted(path)), &error))
            }
            _ if is_report_to_stdout => {
                let text = report()?;
                io::write_stdout(|stdout| stdout.write_all(&text)).map(drop)
            }
            _ if !self.quiet && !is_to_stdout => io::print(&table(&split, &paths)),
            _ => Ok(()),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The manifest, in the form that its name asks for.
    fn manifest(&self, split: &Split<'_>) -> Result<Option<Vec<u8>>> {
        let Some(path) = &self.manifest else { return Ok(None) };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => split.manifest.to_json().map(|text| Some(text.into_bytes())),
            Some("bincode") => split.manifest.to_bincode().map(Some),
            _ => refuse_arguments("the manifest is written to a file `….json` or `….bincode`"),
        }
    }

    fn locations(&self) -> Locations {
        match (self.strip_locations, self.redact_paths) {
            (true, _) => Locations::Stripped,
            (_, true) => Locations::Redacted,
            _ => Locations::Kept,
        }
    }

    fn paths(&self, input: &Input, split: &Split<'_>) -> Result<Vec<PathBuf>> {
        let mut names = Names::new(self.output.as_deref(), input.path())?;
        if let Some(extension) = self.emit.extension() {
            names = names.extension(extension);
        }
        split.outputs.keys().map(|platform| names.path(platform)).collect()
    }

    /// Checks every place that will be written to, before the first byte is written.
    fn prepare(&self, input: &Input, paths: &[PathBuf]) -> Result<Files> {
        // Standard input may be a file as well.
        let source = input.path().unwrap_or(Path::new("/dev/stdin"));
        let report = self.report.as_deref().filter(|path| !is_dash(path) && !is_special(path));
        let mut files = Files::default();
        for path in paths.iter().map(PathBuf::as_path).chain(report).chain(self.manifest.as_deref()) {
            files.add(path, self.force, Some(source))?;
        }
        Ok(files)
    }

    fn write_stdout(&self, split: &Split<'_>) -> Result<bool> {
        let outputs: Vec<&Output<'_>> = split.outputs.values().collect();
        let [output] = outputs[..] else {
            let list = split.outputs.keys().map(|platform| format!("`{platform}`")).collect::<Vec<_>>().join(", ");
            let error = Error::refused(format!("standard output takes one export, but there is one for each of {list}"));
            return Err(error.with_hint("choose one with `-p`"));
        };
        self.emit.write_stdout(output)
    }
}

/// Says which results are no longer what the program computed.
fn tell_replaced(split: &Split<'_>) {
    for output in &split.report.outputs {
        let callbacks = output.levels.iter().flat_map(|level| &level.callbacks);
        for callback in callbacks.filter(|callback| callback.replaces_results) {
            let (kind, name, policy) = (callback.kind, &callback.name, &callback.policy);
            errors::note(&format!("on `{}` the results of {kind} callback `{name}` are replaced (`{policy}`)", output.platform));
        }
    }
}

/// Whether a path is a pipe or a device, which has no name to be given to a finished file.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn report<'r>(input: &Input, split: &'r Split<'_>, paths: &[PathBuf]) -> Report<'r> {
    let mut paths = paths.iter();
    let output = |output| OutputWithPath { path: paths.next().map(|path| path.display().to_string()), output };
    Report {
        input: input.path().map(|path| path.display().to_string()),
        input_bytes: split.report.input_bytes,
        platforms: &split.report.platforms,
        outputs: split.report.outputs.iter().map(output).collect(),
    }
}

fn table(split: &Split<'_>, paths: &[PathBuf]) -> String {
    let saved = |output: &OutputReport| match output.location_bytes_saved {
        None => String::new(),
        Some(bytes) => format!("{}{}", if bytes < 0 { "-" } else { "" }, number(bytes.unsigned_abs())),
    };
    let is_saving = split.report.outputs.iter().any(|output| output.location_bytes_saved.is_some());
    let has_callbacks = split.report.outputs.iter().flat_map(|output| &output.levels).any(|level| !level.callbacks.is_empty());
    let mut table = Table::new(0, &[1, 3, 4, 5]);
    let saved_title = if is_saving { "saved on locations" } else { "" };
    let callbacks_title = if has_callbacks { "callbacks" } else { "" };
    table.row(["platform", "operations", "", "bytes", saved_title, "cases resolved", callbacks_title, "output"].map(str::to_owned));
    for (output, path) in split.report.outputs.iter().zip(paths) {
        let before: usize = output.levels.iter().map(|level| level.operations_before).sum();
        let after: usize = output.levels.iter().map(|level| level.operations).sum();
        let cases: usize = output.levels.iter().map(|level| level.changes.cases_resolved).sum();
        table.row([
            output.platform.clone(),
            number(after as u64),
            format!("of {}", number(before as u64)),
            number(output.bytes),
            saved(output),
            number(cases as u64),
            callbacks(output),
            path.display().to_string(),
        ]);
    }
    table.text()
}

/// How many calls of callbacks became what: `3 lowered, 1 stripped`.
fn callbacks(output: &OutputReport) -> String {
    let sum = |count: fn(&Changes) -> usize| output.levels.iter().map(|level| count(&level.changes)).sum::<usize>();
    let calls: usize = output.levels.iter().flat_map(|level| &level.callbacks).map(|callback| callback.calls).sum();
    let changed = [
        (sum(|changes| changes.callbacks_lowered), "lowered"),
        (sum(|changes| changes.callbacks_retargeted), "retargeted"),
        (sum(|changes| changes.callbacks_stripped), "stripped"),
        (sum(|changes| changes.callbacks_stubbed), "stubbed"),
    ];
    let kept = calls.saturating_sub(changed.iter().map(|(count, _)| count).sum());
    let counts = changed.into_iter().chain([(kept, "kept")]).filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{} {what}", number(count as u64))).collect::<Vec<_>>().join(", ")
}
