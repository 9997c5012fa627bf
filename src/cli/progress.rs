//! A line that says how far the work is: on standard error, if that is a terminal, once the work takes longer than a moment, and gone when it is done.

use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::visible::visible;

/// What takes no longer needs no line.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(100);
/// Longest line: one that wraps cannot be taken back.
const WIDTH: usize = 78;

static LINE: Mutex<Line> = Mutex::new(Line { text: String::new(), shown: 0 });

struct Line {
    text: String,
    /// Characters on the terminal now.
    shown: usize,
}

/// The line, for as long as the work goes on.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// A line that will appear unless the user wants none, or is not there to see it.
    pub fn new(is_quiet: bool) -> Self {
        if is_quiet || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (sender, receiver) = mpsc::channel();
        let ticker = thread::Builder::new().spawn(move || {
            let mut wait = PATIENCE;
            while receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                aside(Line::show);
                wait = BETWEEN;
            }
        });
        // Without a thread there is no line, and nothing else is lost.
        Self(ticker.ok().map(|ticker| (sender, ticker)))
    }

    /// Says how far the work is.
    pub fn say(&self, text: impl FnOnce() -> String) {
        if self.0.is_some() {
            LINE.lock().unwrap_or_else(PoisonError::into_inner).text = visible(&text());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, ticker)) = self.0.take() {
            drop(sender);
            let _ = ticker.join();
            aside(Line::hide);
            LINE.lock().unwrap_or_else(PoisonError::into_inner).text.clear();
        }
    }
}

/// Writes to standard error where the line was; it comes back below.
pub fn write_stderr(text: &str) {
    aside(|line, stderr| {
        line.hide(stderr)?;
        stderr.write_all(text.as_bytes())
    });
}

/// Where standard error is closed, nobody is there to be told.
fn aside(write: impl FnOnce(&mut Line, &mut Stderr) -> io::Result<()>) {
    let _ = write(&mut LINE.lock().unwrap_or_else(PoisonError::into_inner), &mut io::stderr());
}

impl Line {
    fn show(&mut self, stderr: &mut Stderr) -> io::Result<()> {
        let text: String = self.text.chars().take(WIDTH).collect();
        let count = text.chars().count();
        let rest = " ".repeat(self.shown.saturating_sub(count));
        self.shown = count;
        write!(stderr, "\r{text}{rest}")
    }

    fn hide(&mut self, stderr: &mut Stderr) -> io::Result<()> {
        let shown = std::mem::take(&mut self.shown);
        if shown == 0 { Ok(()) } else { write!(stderr, "\r{}\r", " ".repeat(shown)) }
    }
}
