//! How failures are told: `error:`, the numbered causes, a hint; and how a panic becomes one.

use std::io::{self, IsTerminal};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind};

use super::io::changed_input;
use super::progress::write_stderr;
use crate::visible::visible_lines;

/// What the latest panic said, of whichever thread.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program so that no panic reaches the user as one, and no signal of the system ends it where an error could be told.
pub fn guard(program: impl FnOnce() -> ExitCode) -> ExitCode {
    tell_instead_of_dying();
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let message = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = message.unwrap_or("no message");
        let place = info.location().map_or_else(String::new, |place| format!(" (at {place})"));
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{message}{place}"));
    }));
    panic::catch_unwind(AssertUnwindSafe(program)).unwrap_or_else(|_| {
        let message = take_panic().unwrap_or_else(|| "no message".to_owned());
        report(&Error::bug(format!("jaxprism panicked: {message}")))
    })
}

/// A write beyond the shell's limit of file sizes raises a signal that ends the program; ignored, the write fails and can be reported.
#[cfg(unix)]
#[allow(unsafe_code, reason = "there is no safe way to say it")]
fn tell_instead_of_dying() {
    // SAFETY: ignoring a signal installs no code of ours, and no other thread is running yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn tell_instead_of_dying() {}

fn take_panic() -> Option<String> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Tells an error, and returns the exit status it deserves.
pub fn report(error: &Error) -> ExitCode {
    // Whatever came of an input that did not stay the same, that is why.
    let changed = changed_input();
    let error = changed.as_ref().unwrap_or(error);
    write_stderr(&format!("{}\n", text(error)));
    exit_status(error.kind())
}

/// An error as it is told, without the last line's end.
pub fn text(error: &Error) -> String {
    let mut text = headline(error);
    let mut causes: Vec<String> = error.causes().map(|cause| visible_lines(&cause.to_string())).collect();
    // A panic in a thread of the library comes back as an error that does not know what it said.
    causes.extend(take_panic().filter(|_| error.kind() == ErrorKind::Bug).map(|panic| visible_lines(&panic)));
    if !causes.is_empty() {
        text.push_str("\n\nCaused by:");
        for (number, cause) in causes.iter().enumerate() {
            text.push_str(&format!("\n{number:>5}: {}", cause.replace('\n', "\n       ")));
        }
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!("\n\nhint: {}", visible_lines(hint)));
    }
    text
}

/// Tells an error with a table of what is in the way.
pub fn refuse(error: &Error, table: &str) -> ExitCode {
    let hint = error.hint().map_or_else(String::new, |hint| format!("\nhint: {}\n", visible_lines(hint)));
    write_stderr(&format!("{}\n{}{hint}", headline(error), visible_lines(table)));
    exit_status(error.kind())
}

/// Says something beside an error.
pub fn note(text: &str) {
    write_stderr(&note_text(text));
}

/// A note as it is told.
pub fn note_text(text: &str) -> String {
    format!("note: {}\n", visible_lines(text))
}

fn headline(error: &Error) -> String {
    let is_plain = !io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let (on, off) = if is_plain { ("", "") } else { ("\x1b[1m", "\x1b[0m") };
    format!("{on}error:{off} {}", visible_lines(&error.to_string()))
}

fn exit_status(kind: ErrorKind) -> ExitCode {
    match kind {
        ErrorKind::Format | ErrorKind::Unsupported | ErrorKind::Refused => ExitCode::from(1),
        _ => ExitCode::from(2),
    }
}
