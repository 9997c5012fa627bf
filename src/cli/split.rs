//! `jaxprism split`: one export in, one per platform out.

mod told;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::callbacks::Manifest;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{Claims, Files, Names, STEM, quoted};
use crate::pieces::Pieces;
use crate::{Exported, Locations, Platform, Split, SplitOptions};
use clap::Args;

use super::callback_options::CallbackOpts;
use super::emit::EmitOpts;
use super::io::{self, Input, is_dash};
use super::many::{self, ManyOpts, Told};
use super::place::{refuse_placeholder, refuse_platform};
use super::progress::Progress;
use super::{errors, refuse_arguments, suggested};
use told::{Doing, Done, report, report_on_many, table, table_of_many};

const EXAMPLES: &str = "\
Examples:
  jaxprism split model.jax_exported                        model.cpu.jax_exported, … beside it
  jaxprism split model.jax_exported -p cuda -o out/        out/model.cuda.jax_exported
  jaxprism split model.jax_exported -o '{platform}/{stem}.bin'
  jaxprism split - -o 'served.{platform}.bin' < model      standard input has no name of its own
  jaxprism split model.jax_exported -p cpu -o - | …        one export to standard output
  jaxprism split model.jax_exported --report report.json   what was done, for programs
  jaxprism split *.jax_exported -o out/ -j 4               many exports, four at a time

Either all files of an export are written or none. Of several exports each is split on its own:
one that fails is told, and stops no other; the exit status is then 1.";

/// Split an export into one export per platform
///
/// Resolves every use of the platform index, at every level of the vector-Jacobian products, and leaves everything else as it is. The outputs are ordinary
/// exports for a single platform.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The exports; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    inputs: Vec<PathBuf>,

    /// Where to write: a directory, which is made if missing, or a name with `{platform}` and perhaps `{stem}`, the input's name without its
    /// extension. `-` is standard output, for a single platform. Default: beside the input
    #[arg(short, long, value_name = "DIR|TEMPLATE")]
    output: Option<PathBuf>,

    /// Write this platform only; may be repeated, or list several with commas
    #[arg(short, long = "platform", value_name = "PLATFORM", value_delimiter = ',', value_parser = suggested::platform(), hide_possible_values = true)]
    platforms: Vec<Platform>,

    /// Make every source location unknown, which makes the output smaller as well; the program inside a custom call keeps its own
    #[arg(long, conflicts_with = "redact_paths")]
    strip_locations: bool,

    /// Take the directories from the file names in source locations; lines and scopes stay
    #[arg(long)]
    redact_paths: bool,

    #[command(flatten)]
    many: ManyOpts,

    #[command(flatten)]
    emit: EmitOpts,

    #[command(flatten)]
    callbacks: CallbackOpts,

    /// Write what hosts must know to bind the callbacks: JSON to a file `….json`, bincode to a file `….bincode`. `{stem}`
    /// stands for the input's name without its extension
    #[arg(long, value_name = "FILE", help_heading = "Callbacks")]
    manifest: Option<PathBuf>,

    /// Replace files that exist; never the input
    #[arg(long)]
    force: bool,

    /// Write what was done as JSON; `-` is standard output. For one input `{stem}` stands for its name without its extension
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Do not print the table of outputs
    #[arg(short, long)]
    quiet: bool,
}

/// How a manifest is written.
enum Form {
    Json,
    Bincode,
}

fn form(manifest: &Path) -> Option<Form> {
    match manifest.extension()?.to_str()? {
        "json" => Some(Form::Json),
        "bincode" => Some(Form::Bincode),
        _ => None,
    }
}

/// Where the outputs of each input go.
type Planned = HashMap<PathBuf, Vec<PathBuf>>;

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
        if self.manifest.as_deref().is_some_and(|path| form(path).is_none()) {
            refuse_arguments("the manifest is written to a file `….json` or `….bincode`");
        }
        self.manifest.iter().chain(&self.report).for_each(|path| refuse_platform(path));
        if self.many.is_many(&self.inputs) {
            return self.run_many();
        }
        let input = Input::read(self.inputs.first().map(PathBuf::as_path))?;
        let failed = |error: Error| error.context(format!("cannot split {}", input.name()));
        let options = self.options()?;
        let mut split = {
            let progress = Progress::new(self.quiet);
            let doing = Doing::new(&input.name());
            crate::split::split_watched(&input, &options, &|step| progress.say(|| doing.text(step))).map_err(failed)?
        };
        let contents = self.emit.kind().of_split(&split.outputs, &mut split.report)?;
        notes(&input, &split, "").iter().for_each(|note| errors::note(note));
        let names = self.names(self.output.as_deref().filter(|_| !is_to_stdout), input.path()).map_err(failed)?;
        let paths = if is_to_stdout { Vec::new() } else { paths(&names, split.outputs.keys()).map_err(failed)? };
        let report = || io::to_json(&report(&input, &split, &paths));
        let report_file = self.report.as_deref().filter(|_| !is_report_to_stdout).map(|path| names.beside(path));
        let report_file = report_file.as_deref();
        let named_report = report_file.filter(|path| !is_special(path));
        let mut files = self.write(&input, &names, &split.manifest, (&paths, &contents), (named_report, None))?;
        if named_report.is_some() {
            let text = report()?;
            files.write(files.len() - 1, |file| file.write_all(&text))?;
        }
        if is_to_stdout && !write_stdout(&split, &contents).map_err(failed)? {
            // Whoever reads did not want all of it, and knows; but an export was not delivered.
            return Ok(ExitCode::from(2));
        }
        input.check()?;
        // Whoever reads what is told may go on with the files at once; and where it cannot be told, the files go again.
        files.commit_and(|| match report_file {
            Some(path) if is_special(path) => write_special(path, &report()?),
            _ if is_report_to_stdout => {
                let text = report()?;
                io::write_stdout(|stdout| stdout.write_all(&text)).map(drop)
            }
            _ if !self.quiet && !is_to_stdout => io::print(&table(&split, &paths)),
            _ => Ok(()),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Splits several inputs, each on its own. Before that, no two may want to write to one place.
    fn run_many(&self) -> Result<ExitCode> {
        if self.output.as_deref().is_some_and(is_dash) {
            refuse_arguments("standard output takes one export, and there are several");
        }
        if self.manifest.as_deref().is_some_and(|path| !path.to_string_lossy().contains(STEM)) {
            refuse_arguments("every input has a manifest of its own: its name needs `{stem}`");
        }
        if let Some(path) = &self.report {
            refuse_placeholder(path, STEM, "there is one report on all inputs");
        }
        let options = self.options()?.threads(self.many.threads_each(self.inputs.len()));
        let planned = self.plan(&options)?;
        let report_file = self.report.as_deref().filter(|path| !is_dash(path));
        let mut reports = Files::default();
        if let Some(path) = report_file.filter(|path| !is_special(path)) {
            reports.add(path, self.force, None)?;
        }
        let results = self.many.each(("splitting", "split"), &self.inputs, self.quiet, |input| self.one(input, &options, &planned))?;
        if self.report.is_some() {
            let text = io::to_json(&report_on_many(&self.inputs, &results))?;
            match report_file {
                None => drop(io::write_stdout(|stdout| stdout.write_all(&text))?),
                Some(path) if is_special(path) => write_special(path, &text)?,
                Some(_) => {
                    reports.write(0, |file| file.write_all(&text))?;
                    reports.commit()?;
                }
            }
        }
        if !self.quiet && !self.report.as_deref().is_some_and(is_dash) {
            io::print(&table_of_many(&results))?;
        }
        Ok(many::conclude("split", &results))
    }

    /// One of several inputs.
    fn one(&self, input: &Input, options: &SplitOptions, planned: &Planned) -> Result<Told<Done>> {
        let failed = |error: Error| error.context(format!("cannot split {}", input.name()));
        let mut split = crate::split(input, options).map_err(failed)?;
        let contents = self.emit.kind().of_split(&split.outputs, &mut split.report)?;
        let names = self.names(self.output.as_deref(), input.path()).map_err(failed)?;
        let paths = paths(&names, split.outputs.keys()).map_err(failed)?;
        if input.path().and_then(|path| planned.get(path)) != Some(&paths) {
            return Err(failed(Error::new(ErrorKind::Io, "it was changed since its outputs were named").with_hint("run it again")));
        }
        let files = self.write(input, &names, &split.manifest, (&paths, &contents), (None, options.threads))?;
        input.check()?;
        files.commit()?;
        Ok(Told { notes: notes(input, &split, &format!("{}: ", input.name())), value: Done { report: split.report, paths } })
    }

    /// Where all outputs go, before any is written. What cannot be read has none; that is told when it is its turn.
    fn plan(&self, options: &SplitOptions) -> Result<Planned> {
        let mut claims = Claims::new(&self.inputs)?;
        if let Some(path) = self.report.as_deref().filter(|path| !is_dash(path) && !is_special(path)) {
            claims.add(path, None)?;
        }
        let mut planned = Planned::new();
        for path in &self.inputs {
            let names = self.names(self.output.as_deref(), Some(path))?;
            let Ok(input) = many::open(path) else { continue };
            let platforms = Exported::read(&input).and_then(|exported| options.platforms_of(&exported));
            let Ok(paths) = platforms.and_then(|platforms| paths(&names, &platforms)) else { continue };
            for output in paths.iter().cloned().chain(self.manifest.as_deref().map(|manifest| names.beside(manifest))) {
                claims.add(&output, Some(path))?;
            }
            planned.insert(path.clone(), paths);
        }
        Ok(planned)
    }

    fn options(&self) -> Result<SplitOptions> {
        let options = SplitOptions::default().platforms(self.platforms.iter().cloned()).locations(self.locations());
        Ok(options.callbacks(self.callbacks.options()?).output(self.emit.options()))
    }

    /// The names of the outputs of an input, with the extension of what is written.
    fn names(&self, output: Option<&Path>, input: Option<&Path>) -> Result<Names> {
        Ok(Names::new(output, input)?.extension(self.emit.kind().extension()))
    }

    /// The manifest, in the form that its name asks for.
    fn manifest(&self, manifest: &Manifest) -> Result<Option<Vec<u8>>> {
        match self.manifest.as_deref().and_then(form) {
            None => Ok(None),
            Some(Form::Json) => manifest.to_json().map(|text| Some(text.into_bytes())),
            Some(Form::Bincode) => manifest.to_bincode().map(Some),
        }
    }

    fn locations(&self) -> Locations {
        match (self.strip_locations, self.redact_paths) {
            (true, _) => Locations::Stripped,
            (_, true) => Locations::Redacted,
            _ => Locations::Kept,
        }
    }

    /// Checks every place that will be written to, before the first byte is written; then writes outputs and manifest. A report's file comes last.
    fn write(
        &self,
        input: &Input,
        names: &Names,
        manifest: &Manifest,
        (paths, contents): (&[PathBuf], &[Cow<'_, Pieces<'_>>]),
        (report, threads): (Option<&Path>, Option<NonZeroUsize>),
    ) -> Result<Files> {
        let manifest = self.manifest(manifest)?.zip(self.manifest.as_deref().map(|path| names.beside(path)));
        let mut files = Files::in_threads(threads);
        let policies = self.callbacks.policies();
        let called = policies.called();
        let manifest_path = manifest.as_ref().map(|(_, path)| path.as_path());
        for path in paths.iter().map(PathBuf::as_path).chain(manifest_path).chain(report) {
            files.add(path, self.force, called.iter().map(Path::new).chain([input.source()]))?;
        }
        let contents: Vec<_> = contents.iter().take(paths.len()).map(Deref::deref).collect();
        files.write_pieces(&contents, input.origin())?;
        if let Some((manifest, _)) = manifest {
            files.write(paths.len(), |file| file.write_all(&manifest))?;
        }
        Ok(files)
    }
}

/// Writes the one output. The result says whether the reader took everything.
fn write_stdout(split: &Split<'_>, contents: &[Cow<'_, Pieces<'_>>]) -> Result<bool> {
    let [contents] = contents else {
        let list = split.outputs.keys().map(|platform| format!("`{platform}`")).collect::<Vec<_>>().join(", ");
        let error = Error::refused(format!("standard output takes one export, but there is one for each of {list}"));
        return Err(error.with_hint("choose one with `-p`"));
    };
    io::write_stdout(|stdout| contents.write_to(stdout))
}

/// What else there is to say: that there was nothing to split, and which results are no longer what the program computed.
fn notes(input: &Input, split: &Split<'_>, before: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let [platform] = &split.report.platforms[..] {
        notes.push(format!("{} was exported for one platform (`{platform}`)", input.name()));
    }
    for output in &split.report.outputs {
        let callbacks = output.levels.iter().flat_map(|level| &level.callbacks);
        for callback in callbacks.filter(|callback| callback.replaces_results) {
            let (platform, kind, name, policy) = (&output.platform, callback.kind, &callback.name, &callback.policy);
            notes.push(format!("{before}on `{platform}` the results of {kind} callback `{name}` are replaced (`{policy}`)"));
        }
    }
    notes
}

fn paths<'p>(names: &Names, platforms: impl IntoIterator<Item = &'p Platform>) -> Result<Vec<PathBuf>> {
    platforms.into_iter().map(|platform| names.path(platform)).collect()
}

/// Writes to a pipe or a device.
fn write_special(path: &Path, text: &[u8]) -> Result<()> {
    let written = std::fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text));
    written.map_err(|error| Error::io(format!("cannot write {}", quoted(path)), &error))
}

/// Whether a path is a pipe or a device, which has no name to be given to a finished file.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}
