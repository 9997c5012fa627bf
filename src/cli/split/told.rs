//! What `split` tells: reports for programs, tables for people, and how far it is.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::Split;
use crate::error::Result;
use crate::passes::Changes;
use crate::split::{OutputReport, Step};
use indexmap::IndexMap;
use serde::Serialize;

use super::super::io::Input;
use super::super::many::JsonError;
use super::super::table::{Table, counted, number};

/// The report of the library, with what only the command line knows.
#[derive(Serialize)]
pub struct Report<'r> {
    input: Option<String>,
    input_bytes: u64,
    platforms: &'r [String],
    outputs: Vec<OutputWithPath<'r>>,
}

/// The report on several inputs.
#[derive(Serialize)]
pub struct ReportOnMany<'r> {
    failed: usize,
    inputs: Vec<OneOfMany<'r>>,
}

/// The report on one of several inputs. Fields without a value are there as well.
#[derive(Serialize)]
struct OneOfMany<'r> {
    input: String,
    input_bytes: Option<u64>,
    platforms: &'r [String],
    outputs: Vec<OutputWithPath<'r>>,
    error: Option<JsonError>,
}

/// What an input became.
pub struct Done {
    pub report: crate::Report,
    pub paths: Vec<PathBuf>,
}

#[derive(Serialize)]
struct OutputWithPath<'r> {
    path: Option<String>,
    #[serde(flatten)]
    output: &'r OutputReport,
}

pub fn report<'r>(input: &Input, split: &'r Split<'_>, paths: &[PathBuf]) -> Report<'r> {
    Report {
        input: input.path().map(|path| path.display().to_string()),
        input_bytes: split.report.input_bytes,
        platforms: &split.report.platforms,
        outputs: outputs_with_paths(&split.report, paths),
    }
}

fn outputs_with_paths<'r>(report: &'r crate::Report, paths: &[PathBuf]) -> Vec<OutputWithPath<'r>> {
    let mut paths = paths.iter();
    let output = |output| OutputWithPath { path: paths.next().map(|path| path.display().to_string()), output };
    report.outputs.iter().map(output).collect()
}

pub fn report_on_many<'r>(inputs: &[PathBuf], results: &'r [Result<Done>]) -> ReportOnMany<'r> {
    let one = |(path, result): (&PathBuf, &'r Result<Done>)| {
        let mut one = OneOfMany { input: path.display().to_string(), input_bytes: None, platforms: &[], outputs: Vec::new(), error: None };
        match result {
            Ok(Done { report, paths }) => {
                one.input_bytes = Some(report.input_bytes);
                one.platforms = &report.platforms;
                one.outputs = outputs_with_paths(report, paths);
            }
            Err(error) => one.error = Some(error.into()),
        }
        one
    };
    let failed = results.iter().filter(|result| result.is_err()).count();
    ReportOnMany { failed, inputs: inputs.iter().zip(results).map(one).collect() }
}

/// A line for each platform, and one for the whole.
pub fn table_of_many(results: &[Result<Done>]) -> String {
    let done: Vec<&Done> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    let mut platforms: IndexMap<&str, [u64; 4]> = IndexMap::new();
    for output in done.iter().flat_map(|done| &done.report.outputs) {
        let [outputs, before, after, bytes] = platforms.entry(&output.platform).or_default();
        *outputs += 1;
        *before += output.levels.iter().map(|level| level.operations_before as u64).sum::<u64>();
        *after += output.levels.iter().map(|level| level.operations as u64).sum::<u64>();
        *bytes += output.bytes;
    }
    let total = |column: usize| platforms.values().filter_map(|numbers| numbers.get(column)).sum::<u64>();
    let last = format!(
        "{}: {} split into {} of {} bytes, {} failed\n",
        counted(results.len(), "file"),
        number(done.len() as u64),
        counted(usize::try_from(total(0)).unwrap_or(usize::MAX), "output"),
        number(total(3)),
        number((results.len() - done.len()) as u64)
    );
    let mut table = Table::new(0, &[1, 2, 4]);
    table.row(["platform", "outputs", "operations", "", "bytes"].map(str::to_owned));
    for (platform, [outputs, before, after, bytes]) in &platforms {
        table.row([(*platform).to_owned(), number(*outputs), number(*after), format!("of {}", number(*before)), number(*bytes)]);
    }
    if platforms.is_empty() { last } else { table.text() + &last }
}

/// What each platform is at, for the line of progress.
pub struct Doing {
    name: String,
    platforms: Mutex<IndexMap<String, String>>,
}

impl Doing {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), platforms: Mutex::default() }
    }

    pub fn text(&self, step: &Step<'_>) -> String {
        let level = if step.level == 0 { String::new() } else { format!(" level {}", step.level) };
        let Some(platform) = step.platform else { return format!("splitting {}: {}{level}", self.name, step.what) };
        let mut platforms = self.platforms.lock().unwrap_or_else(PoisonError::into_inner);
        platforms.insert(platform.to_string(), format!("{platform}{level} {}", step.what));
        let platforms: Vec<&str> = platforms.values().map(String::as_str).collect();
        format!("splitting {}: {}", self.name, platforms.join(", "))
    }
}

pub fn table(split: &Split<'_>, paths: &[PathBuf]) -> String {
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
        (sum(|changes| changes.callbacks_called), "called"),
    ];
    let kept = calls.saturating_sub(changed.iter().map(|(count, _)| count).sum());
    let counts = changed.into_iter().chain([(kept, "kept")]).filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{} {what}", number(count as u64))).collect::<Vec<_>>().join(", ")
}
