//! The one error type: what happened, where, and what to do about it.

use std::fmt;

/// Whose fault an error is; it decides the exit status of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file could not be read or written.
    Io,
    /// The input is not what it claims to be: truncated, corrupted, or something else altogether.
    Format,
    /// The input is well formed, but newer or larger than this version handles.
    Unsupported,
    /// The request makes no sense for this input, or cannot be carried out safely.
    Refused,
    /// Our own invariant broke. Please report it.
    Bug,
}

impl ErrorKind {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Format => "format",
            Self::Unsupported => "unsupported",
            Self::Refused => "refused",
            Self::Bug => "bug",
        }
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its place, its causes and a hint.
///
/// `Display` gives the first line alone; [`Error::causes`] and [`Error::hint`] give the rest. The causes are also reachable through
/// [`std::error::Error::source`].
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    offset: Option<u64>,
    hint: Option<String>,
    cause: Option<Error>,
}

impl Error {
    /// An error of the given kind. Messages are lower case, without a full stop, with the user's own names in backquotes.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), offset: None, hint: None, cause: None }))
    }

    /// The input is malformed.
    pub fn format(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format, message)
    }

    /// The input is beyond what this version handles.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The request cannot be carried out on this input.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    /// An invariant of ours broke.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message).with_hint("this is a bug in jaxprism; please report it with the input")
    }

    /// A file operation failed.
    pub fn io(message: impl Into<String>, cause: &std::io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, message);
        error.0.cause = Some(Self::new(ErrorKind::Io, cause.to_string()));
        error
    }

    /// Adds the byte offset, counted in the file the user gave.
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds what the user can do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Wraps this error as the cause of a larger failure of the same kind.
    pub fn context(self, message: impl Into<String>) -> Self {
        let mut outer = Self::new(self.kind(), message);
        outer.0.cause = Some(self);
        outer
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the user can do: the hint of this error, or of the nearest cause that has one.
    pub fn hint(&self) -> Option<&str> {
        self.chain().find_map(|error| error.0.hint.as_deref())
    }

    /// The causes, outermost first, without this error itself.
    pub fn causes(&self) -> impl Iterator<Item = &Error> {
        self.chain().skip(1)
    }

    /// The offset in the user's file, where one is known.
    pub fn offset(&self) -> Option<u64> {
        self.chain().find_map(|error| error.0.offset)
    }

    fn chain(&self) -> impl Iterator<Item = &Error> {
        std::iter::successors(Some(self), |error| error.0.cause.as_ref())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match self.0.offset {
            Some(offset) => write!(f, " (at offset {offset:#x})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())?;
        for cause in self.causes() {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_ref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_and_offset_of_a_cause_are_found() {
        let error = Error::format("bad size").at(0x1c4).with_hint("copy the file again").context("cannot read `m`");
        assert_eq!(error.to_string(), "cannot read `m`");
        assert_eq!(error.causes().map(ToString::to_string).collect::<Vec<_>>(), ["bad size (at offset 0x1c4)"]);
        assert_eq!((error.kind(), error.hint(), error.offset()), (ErrorKind::Format, Some("copy the file again"), Some(0x1c4)));
    }
}
