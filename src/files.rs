//! Output files, all or none.
//!
//! Every file is first written without its name; only when all are complete do they get their names, and directories that are missing are made. Until then
//! a failure leaves nothing behind, and after that it takes back what was done: new files go, replaced ones return.
//!
//! On Linux a file that is being written has no name at all (`O_TMPFILE`), so that no signal, not even SIGKILL, leaves one behind: the system forgets it
//! with the process. That is why no signal is handled here. Where the file system has no such files, a temporary name in the same directory stands in, and
//! a signal leaves it there; never is something incomplete under a name that was asked for.

mod claims;
mod copy;
mod names;

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, Result};
use crate::pieces::Pieces;
use crate::split::Output;
use crate::threads::{in_threads, processors};
use crate::visible::visible;

pub use claims::Claims;
pub use copy::Origin;
pub use names::{EXPORT, Names, PLATFORM, STEM};

const EXISTS: &str = "it exists";
const FORCE: &str = "`--force` replaces files that exist";

/// A path as messages show it.
pub fn quoted(path: &Path) -> String {
    format!("`{}`", shown(path))
}

/// A path on a line of its own, or in a table.
pub fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// Files that are to be written.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<Pending>,
    /// How many are written at a time at most; as many as there are processors if `None`.
    threads: Option<NonZeroUsize>,
}

#[derive(Debug)]
struct Pending {
    /// As the user knows it.
    path: PathBuf,
    /// Where it really goes: behind links.
    target: PathBuf,
    /// The nearest directory above the target that exists: its file system is the target's too.
    room: PathBuf,
    /// The permissions of the file that it replaces.
    replaced: Option<Permissions>,
    contents: Option<Contents>,
}

/// A complete file that waits for its name.
#[derive(Debug)]
enum Contents {
    /// Without a name.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// Under a temporary name, which goes with it.
    Named(NamedTempFile),
}

/// What was done so far for one run, to be taken back, the last step first, unless it is kept.
#[derive(Debug, Default)]
struct Done(Vec<Step>);

#[derive(Debug)]
enum Step {
    Directory(PathBuf),
    New(PathBuf),
    /// A file that was replaced; the old one has a temporary name, if its file system has hard links.
    Replaced(PathBuf, Option<TempPath>),
}

impl Files {
    /// No files yet, of which so many are written at a time at most.
    pub fn in_threads(threads: Option<NonZeroUsize>) -> Self {
        Self { files: Vec::new(), threads }
    }

    /// Adds a file. Refuses what exists unless `force`; inputs and other files of this run in any case.
    pub fn add<'p>(&mut self, path: &Path, force: bool, inputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let failed = |error: io::Error| Error::io(format!("cannot write {}", quoted(path)), &error);
        let refused = |why: String| Error::refused(why).context(format!("cannot write {}", quoted(path)));
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_directory) else { return Err(refused("it is no name of a file".to_owned())) };
        let (mut room, missing) = locate(directory).map_err(failed)?;
        let mut target = room.join(missing).join(name);
        let mut replaced = None;
        match fs::symlink_metadata(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(metadata) => {
                if metadata.is_symlink() {
                    target = target.canonicalize().map_err(|_| refused("it is a symbolic link that leads nowhere".to_owned()))?;
                    room = target.parent().map_or(room, Path::to_owned);
                }
                let metadata = fs::metadata(&target).map_err(failed)?;
                if inputs.into_iter().any(|input| is_same_file(input, &target)) {
                    return Err(refused("it is the input".to_owned()).with_hint("choose another name with `-o`"));
                }
                if metadata.is_dir() {
                    return Err(refused("it is a directory".to_owned()));
                }
                if !metadata.is_file() {
                    return Err(refused("it exists and is no ordinary file".to_owned()));
                }
                if !force {
                    return Err(refused(EXISTS.to_owned()).with_hint(FORCE));
                }
                replaced = Some(metadata.permissions());
            }
        }
        if self.files.iter().any(|file| file.target == target) {
            let hint = "give every output a name of its own, for instance with `{platform}` in it";
            return Err(refused("two outputs would have this name".to_owned()).with_hint(hint));
        }
        self.files.push(Pending { path: path.to_owned(), target, room, replaced, contents: None });
        Ok(())
    }

    /// How many files were added.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes the contents of a file that was added, without its name.
    pub fn write(&mut self, number: usize, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let Some(file) = self.files.get_mut(number) else { return Err(Error::bug("a file that was not added")) };
        file.write(|into| {
            let mut writer = BufWriter::new(into);
            write(&mut writer)?;
            writer.flush()
        })
    }

    /// Writes outputs into the files that were added first, as many at a time as there are processors.
    pub fn write_outputs(&mut self, outputs: &[&Output<'_>], origin: Option<Origin<'_>>) -> Result<()> {
        let pieces: Vec<_> = outputs.iter().map(|output| output.pieces()).collect();
        self.write_pieces(&pieces, origin)
    }

    /// Writes pieces into the files that were added first, as many at a time as there are processors.
    pub fn write_pieces(&mut self, contents: &[&Pieces<'_>], origin: Option<Origin<'_>>) -> Result<()> {
        if contents.len() > self.files.len() {
            return Err(Error::bug("an output without a file"));
        }
        let pairs: Vec<_> = self.files.iter_mut().zip(contents).collect();
        let written = in_threads(self.threads.unwrap_or_else(processors), pairs, |(file, pieces)| {
            file.write(|into| copy::write(pieces, into, origin))
        })?;
        written.into_iter().collect()
    }

    /// Gives all files their names.
    ///
    /// # Errors
    /// If one cannot have its name, none has: those that already have theirs go again, and what they replaced returns, unless its file system has no hard
    /// links.
    pub fn commit(self) -> Result<()> {
        self.commit_and(|| Ok(()))
    }

    /// Gives all files their names and does what must not fail either, such as telling so; if it does, everything is taken back.
    ///
    /// # Errors
    /// Those of [`Files::commit`] and of `then`.
    pub fn commit_and<T>(mut self, then: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut done = Done::default();
        for file in &mut self.files {
            let Some(contents) = file.contents.take() else { return Err(Error::bug("a file without contents")) };
            let named = match file.replaced {
                Some(_) => done.replace(contents, file),
                None => done.make(contents, file),
            };
            named.map_err(|error| {
                let what = format!("cannot write {}", quoted(&file.path));
                match error.kind() {
                    // Another program was quicker.
                    ErrorKind::AlreadyExists => Error::refused(EXISTS).with_hint(FORCE).context(what),
                    _ => Error::io(what, &error),
                }
            })?;
        }
        let value = then()?;
        done.keep();
        Ok(value)
    }
}

impl Pending {
    fn write(&mut self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let failed = |error: io::Error| Error::io(format!("cannot write {}", quoted(&self.path)), &error);
        let contents = Contents::create(&self.room).map_err(failed)?;
        write(contents.file()).map_err(failed)?;
        if let Some(permissions) = &self.replaced {
            contents.file().set_permissions(permissions.clone()).map_err(failed)?;
        }
        self.contents = Some(contents);
        Ok(())
    }
}

impl Contents {
    /// An empty file with the permissions that any new file gets.
    fn create(directory: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless(directory)? {
            return Ok(Self::Nameless(file));
        }
        let mut builder = temporary();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        builder.tempfile_in(directory).map(Self::Named)
    }

    fn file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Gives it a name that must be free.
    fn name(self, target: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => link(&file, target),
            Self::Named(file) => match file.persist_noclobber(target) {
                Ok(_) => Ok(()),
                // The file system cannot look and name in one step.
                Err(error) if error.error.kind() != ErrorKind::AlreadyExists && fs::symlink_metadata(target).is_err() => {
                    error.file.persist(target).map(drop).map_err(|error| error.error)
                }
                Err(error) => Err(error.error),
            },
        }
    }

    /// Gives it a name that another file has, which loses it in the same moment.
    fn replace(self, target: &Path) -> io::Result<()> {
        let temporary = match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => {
                temporary().make_in(target.parent().unwrap_or(Path::new("/")), |path| link(&file, path))?.into_temp_path()
            }
            Self::Named(file) => file.into_temp_path(),
        };
        temporary.persist(target).map_err(|error| error.error)
    }
}

impl Done {
    /// Makes a file, and the directories above it that are missing.
    fn make(&mut self, contents: Contents, file: &Pending) -> io::Result<()> {
        let missing = file.target.ancestors().skip(1).take_while(|directory| **directory != file.room);
        let missing: Vec<_> = missing.collect();
        for directory in missing.into_iter().rev() {
            match fs::create_dir(directory) {
                Ok(()) => self.0.push(Step::Directory(directory.to_owned())),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        contents.name(&file.target)?;
        self.0.push(Step::New(file.target.clone()));
        Ok(())
    }

    /// Replaces a file, and keeps the old one under another name for as long as it may have to return.
    fn replace(&mut self, contents: Contents, file: &Pending) -> io::Result<()> {
        let old = temporary().make_in(&file.room, |path| fs::hard_link(&file.target, path));
        contents.replace(&file.target)?;
        self.0.push(Step::Replaced(file.target.clone(), old.ok().map(NamedTempFile::into_temp_path)));
        Ok(())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        while let Some(step) = self.0.pop() {
            // An error is on its way already; there is nobody to tell of another.
            match step {
                Step::Directory(directory) => drop(fs::remove_dir(directory)),
                Step::New(target) => drop(fs::remove_file(target)),
                Step::Replaced(target, Some(old)) => drop(old.persist(target)),
                Step::Replaced(_, None) => {}
            }
        }
    }
}

/// Where a directory really is: what of it exists, behind links, and what of it must be made.
fn locate(directory: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let mut room = if directory.is_absolute() { PathBuf::new() } else { Path::new(".").canonicalize()? };
    let mut missing: Vec<OsString> = Vec::new();
    for component in directory.components() {
        match component {
            Component::CurDir => {}
            // What is to be made is no link, and what exists is not behind one any more.
            Component::ParentDir => drop(missing.pop().is_some() || room.pop()),
            Component::Normal(name) if missing.is_empty() => {
                let inner = room.join(name);
                match fs::symlink_metadata(&inner) {
                    Ok(_) => room = inner.canonicalize()?,
                    Err(error) if error.kind() == ErrorKind::NotFound => missing.push(name.to_owned()),
                    Err(error) => return Err(error),
                }
            }
            Component::Normal(name) => missing.push(name.to_owned()),
            Component::Prefix(_) | Component::RootDir => room.push(component),
        }
    }
    if room.is_dir() { Ok((room, missing.iter().collect())) } else { Err(ErrorKind::NotADirectory.into()) }
}

/// Where a file of that name would really go: behind links.
fn target(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (room, missing) = locate(directory)?;
    let target = room.join(missing).join(path.file_name().ok_or(ErrorKind::InvalidInput)?);
    if target.is_symlink() { target.canonicalize() } else { Ok(target) }
}

fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".jaxprism-").suffix(".tmp");
    builder
}

/// A file without a name in this directory; `None` where there is no such thing, or no way to name it later.
#[cfg(target_os = "linux")]
fn nameless(directory: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;
    let file = match open(directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        // What systems and file systems say that do not know the flag.
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(fs::symlink_metadata(place_of(&file)).is_ok().then_some(file))
}

/// Gives a nameless file a name that must be free.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, place_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn place_of(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    matches!((fs::metadata(a), fs::metadata(b)), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
