//! Input and standard output.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{self, Error, Result};
use crate::files::{Origin, quoted};
use crate::reader::MAX_EXPORT_BYTES;
use crate::source::check_start;

use super::map::Map;

/// Bytes of a stream that are looked at before all of it is read.
const LOOKED_AT: u64 = 1 << 16;

/// The mapped inputs, for as long as the program runs: whatever goes wrong, they may be why. Those that are [opened](Input::open) are not among them.
static WATCHED: Mutex<Vec<Arc<Watched>>> = Mutex::new(Vec::new());

/// A file as it was when it was opened.
struct Watched {
    name: String,
    file: File,
    before: Metadata,
    /// Whether bytes were gone when they were read, once it is no longer mapped.
    was_shorter: AtomicBool,
}

/// Whether a path means standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file that was read, or standard input.
pub struct Input {
    path: Option<PathBuf>,
    bytes: Bytes,
}

enum Bytes {
    Mapped(Map, Arc<Watched>),
    Read(Vec<u8>),
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(bytes, _) => bytes,
            Bytes::Read(bytes) => bytes,
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Bytes::Mapped(map, watched) = &self.bytes {
            watched.was_shorter.store(map.is_shorter(), SeqCst);
        }
    }
}

impl Input {
    /// Reads a file; without a path, or from `-`, standard input.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        match path.filter(|path| !is_dash(path)) {
            Some(path) => {
                let input = Self::open(path)?;
                if let Bytes::Mapped(_, watched) = &input.bytes {
                    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(watched.clone());
                }
                Ok(input)
            }
            None if io::stdin().is_terminal() => {
                let error = Error::new(error::ErrorKind::Io, "no input: standard input is a terminal");
                Err(error.with_hint("name a file, or pipe an export into it"))
            }
            None => {
                let bytes = read_all(io::stdin().lock()).map_err(|error| error.context("cannot read standard input"))?;
                Ok(Self { path: None, bytes: Bytes::Read(bytes) })
            }
        }
    }

    /// Reads a file, one of many: what happens to it is told by [`Input::check`] and [`Input::judge`] alone.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = read_file(path).map_err(|error| error.context(format!("cannot read {}", quoted(path))))?;
        Ok(Self { path: Some(path.to_owned()), bytes })
    }

    /// Fails if the file is not what it was when it was opened. To be asked before anything that was made of it gets its name.
    pub fn check(&self) -> Result<()> {
        match &self.bytes {
            Bytes::Mapped(map, watched) => watched.changed(map.is_shorter()).map_or(Ok(()), Err),
            Bytes::Read(_) => Ok(()),
        }
    }

    /// What came of the file; if it did not stay the same, that is why.
    pub fn judge<T>(&self, result: Result<T>) -> Result<T> {
        self.check().and(result)
    }

    /// The file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The file that no output may be. Standard input may be one as well.
    pub fn source(&self) -> &Path {
        self.path().unwrap_or(Path::new("/dev/stdin"))
    }

    /// The file to copy from what is borrowed of its bytes.
    pub fn origin(&self) -> Option<Origin<'_>> {
        match &self.bytes {
            Bytes::Mapped(bytes, watched) => Some(Origin { file: &watched.file, bytes }),
            Bytes::Read(_) => None,
        }
    }

    /// What places in its text are called.
    pub fn file_name(&self) -> String {
        self.path().map_or_else(|| "<stdin>".to_owned(), |path| path.display().to_string())
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        self.path().map_or_else(|| "standard input".to_owned(), quoted)
    }
}

/// Fails if an input is not what it was when it was opened. To be asked before anything that was made of it gets its name.
pub fn check_input() -> Result<()> {
    changed_input().map_or(Ok(()), Err)
}

/// What happened to an input while it was read, if something did.
pub fn changed_input() -> Option<Error> {
    let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.iter().find_map(|watched| watched.changed(false))
}

impl Watched {
    fn changed(&self, is_shorter: bool) -> Option<Error> {
        let Self { name, file, before, was_shorter } = self;
        let now = file.metadata().ok()?;
        let what = if now.len() < before.len() || is_shorter || was_shorter.load(SeqCst) {
            "became shorter"
        } else if now.len() > before.len() {
            "became longer"
        } else if now.modified().ok() != before.modified().ok() {
            "was changed"
        } else {
            return None;
        };
        let error = Error::new(error::ErrorKind::Io, format!("{name} {what} while it was read"));
        Some(error.with_hint("run it again once the file is complete"))
    }
}

/// Reads a file of text.
pub fn read_text(path: &Path) -> Result<String> {
    let failed = || format!("cannot read {}", quoted(path));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_EXPORT_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| Error::io(failed(), &error))?;
    String::from_utf8(bytes).map_err(|error| Error::format(format!("it is no text: {}", error.utf8_error())).context(failed()))
}

fn read_file(path: &Path) -> Result<Bytes> {
    let failed = |error: io::Error| Error::new(error::ErrorKind::Io, error.to_string());
    let file = File::open(path).map_err(failed)?;
    let before = file.metadata().map_err(failed)?;
    if before.is_dir() {
        return Err(Error::new(error::ErrorKind::Io, "it is a directory, not a file"));
    }
    // Files that are no files, such as those of /proc, claim to be empty.
    if before.is_file() && before.len() > 0 {
        if before.len() > MAX_EXPORT_BYTES {
            return Err(too_large());
        }
        if let Some(map) = Map::new(&file) {
            return Ok(Bytes::Mapped(map, Arc::new(Watched { name: quoted(path), file, before, was_shorter: AtomicBool::new(false) })));
        }
    }
    read_all(file).map(Bytes::Read)
}

/// Everything there is to read, as long as it could be an export. What cannot be one is not read to its end: it may have none.
fn read_all(mut reader: impl Read) -> Result<Vec<u8>> {
    let failed = |error: io::Error| Error::new(error::ErrorKind::Io, error.to_string());
    let mut bytes = Vec::new();
    reader.by_ref().take(LOOKED_AT).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == LOOKED_AT {
        check_start(&bytes)?;
        reader.take(MAX_EXPORT_BYTES + 1 - LOOKED_AT).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_EXPORT_BYTES { Err(too_large()) } else { Ok(bytes) }
}

fn too_large() -> Error {
    Error::unsupported(format!("it has more than {MAX_EXPORT_BYTES} bytes, the most an export can have"))
}

/// Writes to standard output. A reader that has seen enough is no error; the result says whether it took everything.
pub fn write_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // What is still in the buffer must not be tried again.
            let _ = stdout.into_parts();
            Ok(false)
        }
        Err(error) => {
            let _ = stdout.into_parts();
            Err(Error::io("cannot write to standard output", &error))
        }
    }
}

/// Writes to standard output what can fail in other ways too. The result says whether the reader took everything.
pub fn write_stdout_or(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<bool> {
    let mut failure = None;
    let is_whole = write_stdout(|stdout| {
        let mut stdout = Remembering { inner: stdout, failure: None };
        let written = write(&mut stdout);
        match stdout.failure {
            Some(error) => Err(error),
            None => {
                failure = written.err();
                Ok(())
            }
        }
    })?;
    failure.map_or(Ok(is_whole), Err)
}

/// A writer that keeps the error of the system, so that a closed pipe can be told from a full disk.
struct Remembering<'w> {
    inner: &'w mut dyn Write,
    failure: Option<io::Error>,
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Prints text for people.
pub fn print(text: &str) -> Result<()> {
    write_stdout(|stdout| stdout.write_all(text.as_bytes())).map(drop)
}

/// Prints JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = to_json(value)?;
    write_stdout(|stdout| stdout.write_all(&text)).map(drop)
}

/// JSON for files and for standard output: indented, with a line's end.
pub fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Error::bug(format!("no JSON for it: {error}")))?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn of_several_mapped_files_the_one_that_became_shorter_is_found_out() {
        let room = tempfile::tempdir().unwrap();
        let inputs = ["a", "b", "c"].map(|name| {
            let path = room.path().join(name);
            std::fs::write(&path, vec![1; 3 << 16]).unwrap();
            Input::open(&path).unwrap()
        });
        let [a, b, c] = &inputs;
        assert!(inputs.iter().all(|input| input.check().is_ok()));
        File::options().write(true).open(b.path().unwrap()).unwrap().set_len(5).unwrap();
        let sum = |input: &Input| input.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        // The rest of the page is the system's.
        assert_eq!((sum(a), sum(b), sum(c)), (3 << 16, 5, 3 << 16));
        assert!(a.check().is_ok() && c.check().is_ok());
        let error = b.judge(Ok(())).unwrap_err();
        assert!(error.to_string().ends_with("b` became shorter while it was read"), "{error}");
    }

    #[test]
    fn a_mapped_file_that_was_shorter_for_a_while_is_found_out() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("m");
        std::fs::write(&path, vec![1; 1 << 16]).unwrap();
        let input = Input::open(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(input[1 << 15], 0);
        file.set_len(1 << 16).unwrap();
        let Bytes::Mapped(_, watched) = &input.bytes else { panic!("it is mapped") };
        file.set_modified(watched.before.modified().unwrap()).unwrap();
        let watched = watched.clone();
        assert!(input.check().is_err());
        drop(input);
        assert!(watched.changed(false).is_some());
    }

    #[test]
    fn more_files_than_can_be_mapped_are_read() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("m");
        std::fs::write(&path, "some").unwrap();
        let inputs: Vec<Input> = (0..100).map(|_| Input::open(&path).unwrap()).collect();
        assert!(inputs.iter().all(|input| &input[..] == b"some"));
        assert!(matches!(inputs[99].bytes, Bytes::Read(_)));
    }
}
