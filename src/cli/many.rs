//! A verb over several inputs: some at a time, each on its own. What there is to tell is told in the order of the inputs, and one that fails stops no other.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::files::quoted;
use crate::threads::{in_threads, processors};
use clap::Args;
use serde::Serialize;

use super::errors;
use super::io::{Input, is_dash};
use super::progress::{Progress, write_stderr};
use super::refuse_arguments;
use super::table::{counted, number};

#[derive(Debug, Args)]
pub struct ManyOpts {
    /// Work on N inputs at a time [default: as many as there are processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// What came of one input, with the notes that there are on it.
pub struct Told<T> {
    pub notes: Vec<String>,
    pub value: T,
}

/// An error for programs.
#[derive(Serialize)]
pub struct JsonError {
    kind: &'static str,
    message: String,
    causes: Vec<String>,
    offset: Option<u64>,
    hint: Option<String>,
}

impl From<&Error> for JsonError {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind().name(),
            message: error.to_string(),
            causes: error.causes().map(ToString::to_string).collect(),
            offset: error.offset(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// What is to be told, until it is its turn.
#[derive(Default)]
struct Outbox {
    next: usize,
    waiting: BTreeMap<usize, String>,
    finished: usize,
    failed: usize,
}

impl Outbox {
    /// Takes what there is to tell of an input, and tells all that has waited for it.
    fn put(&mut self, position: usize, text: String) {
        self.waiting.insert(position, text);
        while let Some(text) = self.waiting.remove(&self.next) {
            self.next += 1;
            if !text.is_empty() {
                write_stderr(&text);
            }
        }
    }
}

impl ManyOpts {
    /// Whether there are several inputs, or there might have been.
    pub fn is_many(&self, inputs: &[PathBuf]) -> bool {
        let is_many = inputs.len() > 1 || self.jobs.is_some();
        if is_many && (inputs.is_empty() || inputs.iter().any(|path| is_dash(path))) {
            refuse_arguments("standard input is one export, and cannot be one of several");
        }
        is_many
    }

    /// How many inputs are worked on at a time. Inputs side by side are quicker than one with its platforms side by side, where each waits for the slowest.
    pub fn at_a_time(&self, inputs: usize) -> NonZeroUsize {
        let most = NonZeroUsize::new(inputs).unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(processors).min(most)
    }

    /// How many threads each input may have, so that all together have no more than there are processors.
    pub fn threads_each(&self, inputs: usize) -> NonZeroUsize {
        NonZeroUsize::new(processors().get() / self.at_a_time(inputs)).unwrap_or(NonZeroUsize::MIN)
    }

    /// Does the work on every input. `doing` and `to_do` name it: `splitting`, `split`.
    pub fn each<T: Send>(
        &self,
        (doing, to_do): (&str, &str),
        inputs: &[PathBuf],
        is_quiet: bool,
        work: impl Fn(&Input) -> Result<Told<T>> + Sync,
    ) -> Result<Vec<Result<T>>> {
        let progress = Progress::new(is_quiet);
        let outbox = Mutex::new(Outbox::default());
        let most = inputs.len();
        let items = inputs.iter().enumerate().collect();
        in_threads(self.at_a_time(most), items, |(position, path): (usize, &PathBuf)| {
            let attempt = catch_unwind(AssertUnwindSafe(|| open(path).and_then(|input| input.judge(work(&input)))));
            let result = attempt.unwrap_or_else(|_| Err(Error::bug(format!("cannot {to_do} {}", quoted(path)))));
            let (text, result) = match result {
                Ok(Told { notes, value }) => (notes.iter().map(|note| errors::note_text(note)).collect(), Ok(value)),
                Err(error) => (format!("{}\n\n", errors::text(&error)), Err(error)),
            };
            let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
            outbox.failed += usize::from(result.is_err());
            outbox.put(position, text);
            outbox.finished += 1;
            let failed = if outbox.failed == 0 { String::new() } else { format!(", {} failed", number(outbox.failed as u64)) };
            progress.say(|| format!("{doing}: {} of {}{failed}", number(outbox.finished as u64), counted(most, "file")));
            result
        })
    }
}

/// One of several inputs, which are looked at before they are read, and so must be there twice.
pub fn open(path: &Path) -> Result<Input> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let error = Error::refused("it is no ordinary file").with_hint("only one input alone may be a pipe");
        return Err(error.context(format!("cannot read {}", quoted(path))));
    }
    Input::open(path)
}

/// Says at the end how many inputs failed, and whose fault that was. Returns the exit status of the whole.
pub fn conclude<T>(to_do: &str, results: &[Result<T>]) -> ExitCode {
    let failures: Vec<ErrorKind> = results.iter().filter_map(|result| result.as_ref().err()).map(Error::kind).collect();
    if failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    let kinds = [ErrorKind::Format, ErrorKind::Unsupported, ErrorKind::Refused, ErrorKind::Io, ErrorKind::Bug];
    let counts = kinds.iter().filter_map(|kind| {
        let count = failures.iter().filter(|failure| *failure == kind).count();
        (count > 0).then(|| format!("{} {}", number(count as u64), kind.name()))
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let message = format!("cannot {to_do} {} of {} ({counts})", number(failures.len() as u64), counted(results.len(), "file"));
    errors::report(&Error::refused(message))
}
