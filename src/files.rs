//! Output files, all or none.
//!
//! Every file is first written under a temporary name in the directory it belongs to; only when all are complete do they get their names. Until
//! then a failure leaves nothing behind, directories that were made for it included.

mod names;

use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

pub use names::Names;

const FORCE: &str = "`--force` replaces files that exist";

/// A path as messages show it.
pub fn quoted(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Files that are to be written.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<Pending>,
    /// Directories made for them, outermost first.
    directories: Vec<PathBuf>,
}

#[derive(Debug)]
struct Pending {
    /// As the user knows it.
    path: PathBuf,
    /// Where it really goes: behind links.
    target: PathBuf,
    /// The permissions of the file that it replaces.
    replaced: Option<Permissions>,
    temporary: Option<NamedTempFile>,
}

impl Files {
    /// Adds a file. Refuses what exists unless `force`; the input and other files of this run in any case.
    pub fn add(&mut self, path: &Path, force: bool, input: Option<&Path>) -> Result<()> {
        let failed = |error: io::Error| Error::io(format!("cannot write {}", quoted(path)), &error);
        let refused = |why: String| Error::refused(why).context(format!("cannot write {}", quoted(path)));
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Some(name) = path.file_name() else { return Err(refused("it is no name of a file".to_owned())) };
        self.make_directory(directory).map_err(failed)?;
        let mut target = directory.canonicalize().map_err(failed)?.join(name);
        let mut replaced = None;
        match fs::symlink_metadata(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(metadata) => {
                if metadata.is_symlink() {
                    target = target.canonicalize().map_err(|_| refused("it is a symbolic link that leads nowhere".to_owned()))?;
                }
                let metadata = fs::metadata(&target).map_err(failed)?;
                if input.is_some_and(|input| is_same_file(input, &target)) {
                    return Err(refused("it is the input".to_owned()).with_hint("choose another name with `-o`"));
                }
                if metadata.is_dir() {
                    return Err(refused("it is a directory".to_owned()));
                }
                if !metadata.is_file() {
                    return Err(refused("it exists and is no ordinary file".to_owned()));
                }
                if !force {
                    return Err(refused("it exists".to_owned()).with_hint(FORCE));
                }
                replaced = Some(metadata.permissions());
            }
        }
        if self.files.iter().any(|file| file.target == target) {
            let hint = "give every output a name of its own, for instance with `{platform}` in it";
            return Err(refused("two outputs would have this name".to_owned()).with_hint(hint));
        }
        self.files.push(Pending { path: path.to_owned(), target, replaced, temporary: None });
        Ok(())
    }

    /// How many files were added.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Writes the contents of a file that was added, under a temporary name.
    pub fn write(&mut self, number: usize, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let Some(file) = self.files.get_mut(number) else { return Err(Error::bug("a file that was not added")) };
        let failed = |error: io::Error| Error::io(format!("cannot write {}", quoted(&file.path)), &error);
        let temporary = create(file.target.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let mut writer = BufWriter::new(temporary.as_file());
        write(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
        drop(writer);
        if let Some(permissions) = &file.replaced {
            temporary.as_file().set_permissions(permissions.clone()).map_err(failed)?;
        }
        file.temporary = Some(temporary);
        Ok(())
    }

    /// Gives all files their names. If one cannot have it, those that already have theirs go again, except where they replaced another.
    pub fn commit(mut self) -> Result<()> {
        let mut made: Vec<PathBuf> = Vec::new();
        for file in &mut self.files {
            let Some(temporary) = file.temporary.take() else { return Err(Error::bug("a file without contents")) };
            let named = if file.replaced.is_some() { replace(temporary, &file.target) } else { name(temporary, &file.target) };
            if let Err(error) = named {
                made.iter().for_each(|made| drop(fs::remove_file(made)));
                let is_there = error.kind() == io::ErrorKind::AlreadyExists;
                let error = Error::io(format!("cannot write {}", quoted(&file.path)), &error);
                return Err(if is_there { error.with_hint(FORCE) } else { error });
            }
            if file.replaced.is_none() {
                made.push(file.target.clone());
            }
        }
        self.directories.clear();
        Ok(())
    }

    /// Makes a directory and what is missing above it, and remembers what was made.
    fn make_directory(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.directories.push(path.to_owned()),
                // `a/../a` names one directory twice.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Temporary files first, since they stand in the directories.
        self.files.clear();
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A temporary file with the permissions that any new file gets.
fn create(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".jaxprism-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory)
}

fn replace(temporary: NamedTempFile, target: &Path) -> io::Result<()> {
    temporary.persist(target).map(drop).map_err(|error| error.error)
}

/// Gives a file its name unless that is taken meanwhile. Where the file system cannot do both in one step, they are two.
fn name(temporary: NamedTempFile, target: &Path) -> io::Result<()> {
    match temporary.persist_noclobber(target) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists && fs::symlink_metadata(target).is_err() => {
            replace(error.file, target)
        }
        Err(error) => Err(error.error),
    }
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
