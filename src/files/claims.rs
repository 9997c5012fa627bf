//! What a run over several inputs is going to write: no two files of one name, and none of the inputs. To be asked before the first is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{quoted, target};
use crate::error::{Error, Result};

/// The files of a run, each with the input that it is made of.
#[derive(Debug)]
pub struct Claims {
    inputs: HashMap<PathBuf, PathBuf>,
    outputs: HashMap<PathBuf, Option<PathBuf>>,
}

impl Claims {
    /// The claims of a run over these inputs. Those that are not there claim nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`]: two of them are the same file.
    pub fn new(inputs: &[PathBuf]) -> Result<Self> {
        let mut real = HashMap::new();
        for input in inputs {
            let Ok(file) = input.canonicalize() else { continue };
            if let Some(other) = real.insert(file, input.clone()) {
                let error = Error::refused(format!("{} and {} are the same file", quoted(&other), quoted(input)));
                return Err(error.with_hint("name every input once"));
            }
        }
        Ok(Self { inputs: real, outputs: HashMap::new() })
    }

    /// Claims a name for what an input becomes; without one, for what all of them become together. What cannot be a name is left to be found out where it
    /// is written.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`]: it is an input, or another's.
    pub fn add(&mut self, path: &Path, input: Option<&Path>) -> Result<()> {
        let Ok(target) = target(path) else { return Ok(()) };
        let failed = |why: String| Error::refused(why).context(format!("cannot write {}", quoted(path)));
        if let Some(other) = self.inputs.get(&target) {
            let why = if Some(other.as_path()) == input { "it is the input".to_owned() } else { "it is an input as well".to_owned() };
            return Err(failed(why).with_hint("choose another name with `-o`, or name fewer inputs"));
        }
        match self.outputs.insert(target, input.map(Path::to_owned)) {
            None => Ok(()),
            Some(other) if other.as_deref() == input => Err(failed("two outputs would have this name".to_owned())
                .with_hint("give every output a name of its own, for instance with `{platform}` in it")),
            Some(other) => {
                let name = |input: Option<&Path>| input.map_or("the report".to_owned(), quoted);
                Err(failed(format!("it would be written for {} and for {}", name(other.as_deref()), name(input))).with_hint(
                    "give every output a name of its own, for instance with `{stem}` in it, or write into different directories",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_is_claimed_once_however_it_is_spelled() {
        let room = tempfile::tempdir().unwrap();
        let path = |name: &str| room.path().join(name);
        fs::create_dir(path("a")).unwrap();
        ["a/m", "n"].iter().for_each(|name| fs::write(path(name), "").unwrap());
        let mut claims = Claims::new(&[path("a/m"), path("n"), path("missing")]).unwrap();
        claims.add(&path("out/x"), Some(&path("n"))).unwrap();
        claims.add(&path("out/y"), Some(&path("n"))).unwrap();
        let mut said = |name: &str, input: Option<&Path>| {
            let error = claims.add(&path(name), input).unwrap_err();
            error.causes().next().unwrap().to_string().replace(&room.path().display().to_string(), "")
        };
        assert_eq!(said("a/../out/./x", Some(&path("a/m"))), "it would be written for `/n` and for `/a/m`");
        assert_eq!(said("out/y", Some(&path("n"))), "two outputs would have this name");
        assert_eq!(said("out/y", None), "it would be written for `/n` and for the report");
        assert_eq!(said("a/m", Some(&path("a/m"))), "it is the input");
        assert_eq!(said("a/../n", Some(&path("a/m"))), "it is an input as well");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("n", path("link")).unwrap();
            assert_eq!(said("link", None), "it is an input as well");
        }
    }

    #[test]
    fn an_input_is_named_once() {
        let room = tempfile::tempdir().unwrap();
        fs::write(room.path().join("m"), "").unwrap();
        let error = Claims::new(&[room.path().join("m"), room.path().join("./m")]).unwrap_err();
        assert!(error.to_string().ends_with("are the same file"), "{error}");
    }
}
