//! What outputs are called: `model.jax_exported` → `model.cuda.jax_exported`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::quoted;
use crate::container::Platform;
use crate::error::{Error, Result};
use crate::visible::visible;

/// Stands for the name of a platform.
pub const PLATFORM: &str = "{platform}";
/// Stands for the input's name without its extension.
pub const STEM: &str = "{stem}";
/// The extension where the input has none, and what JAX's documentation calls such files.
const EXTENSION: &str = "jax_exported";

/// What an export is called that has no name of its own.
pub const EXPORT: &str = "export.jax_exported";

/// How the outputs of one input are named.
#[derive(Debug)]
pub struct Names {
    place: Place,
    stem: OsString,
    extension: OsString,
}

#[derive(Debug)]
enum Place {
    Directory(PathBuf),
    Template(String),
}

impl Names {
    /// Names from where outputs go (a directory, or a name with `{platform}` and perhaps `{stem}`; `None`: beside the input) and the input (`None`: it
    /// has no name).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`]: `output` is neither.
    pub fn new(output: Option<&Path>, input: Option<&Path>) -> Result<Self> {
        let stem = input.and_then(Path::file_stem).unwrap_or(OsStr::new("export")).to_owned();
        let extension = input.and_then(Path::extension).unwrap_or(OsStr::new(EXTENSION)).to_owned();
        let place = match output {
            None => Place::Directory(input.and_then(Path::parent).unwrap_or(Path::new("")).to_owned()),
            Some(output) => place(output)?,
        };
        Ok(Self { place, stem, extension })
    }

    /// Gives names that come from the input another extension, if there is one. A template keeps its own.
    pub fn extension(mut self, extension: Option<&str>) -> Self {
        if let Some(extension) = extension {
            self.extension = extension.into();
        }
        self
    }

    /// Where the output for a platform goes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`]: the name of the platform cannot be part of a path.
    pub fn path(&self, platform: &Platform) -> Result<PathBuf> {
        let name = platform.as_str();
        // Names come out of the file, and must not lead anywhere else.
        if name.is_empty() || name == "." || name == ".." || name.contains(|c: char| c.is_control() || "/\\".contains(c)) {
            return Err(Error::refused(format!(
                "the export has a platform `{}`, which cannot be part of a file name",
                name.escape_debug()
            ))
            .with_hint("leave it out with `-p`"));
        }
        Ok(match &self.place {
            Place::Directory(directory) => directory.join(self.file_name(name)),
            Place::Template(template) => {
                let path = self.fill(template, name);
                if template.ends_with('/') { path.join(self.file_name(name)) } else { path }
            }
        })
    }

    /// A name for something beside the outputs, with the stem in place of `{stem}`.
    pub fn beside(&self, template: &Path) -> PathBuf {
        template.to_str().map_or_else(|| template.to_owned(), |text| self.fill(text, PLATFORM))
    }

    fn file_name(&self, platform: &str) -> OsString {
        let mut name = self.stem.clone();
        for part in [OsStr::new("."), OsStr::new(platform), OsStr::new("."), &self.extension] {
            name.push(part);
        }
        name
    }

    /// Stem and platform in place of their names. What they put in is not looked at again.
    fn fill(&self, template: &str, platform: &str) -> PathBuf {
        let mut path = OsString::new();
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            let (before, at) = rest.split_at(start);
            path.push(before);
            rest = if let Some(rest) = at.strip_prefix(PLATFORM) {
                path.push(platform);
                rest
            } else if let Some(rest) = at.strip_prefix(STEM) {
                path.push(&self.stem);
                rest
            } else {
                path.push("{");
                &at[1..]
            };
        }
        path.push(rest);
        path.into()
    }
}

fn place(output: &Path) -> Result<Place> {
    let text = output.to_string_lossy();
    let is_unknown = |part: &&str| !["platform}", "stem}"].iter().any(|known| part.starts_with(known));
    if let Some(part) = text.split('{').skip(1).find(is_unknown).filter(|_| !output.is_dir()) {
        let name = part.split_inclusive('}').next().unwrap_or_default();
        return Err(Error::refused(format!("unknown placeholder `{{{}` in {}", visible(name), quoted(output)))
            .with_hint("the placeholders are `{platform}` and `{stem}`"));
    }
    if text.contains(PLATFORM) || text.contains(STEM) {
        return match output.to_str() {
            Some(template) => Ok(Place::Template(template.to_owned())),
            None => Err(Error::refused(format!("the template {} is not UTF-8", quoted(output)))),
        };
    }
    let hint = "`-o` takes a directory, or a name with `{platform}` such as `out/{stem}.{platform}.bin`";
    if output.is_file() {
        return Err(Error::refused(format!("{} is a file, not a directory", quoted(output))).with_hint(hint));
    }
    // Somebody who types this means a file, and would not look for a directory of that name.
    if !text.ends_with('/') && output.extension() == Some(OsStr::new(EXTENSION)) && !output.is_dir() {
        return Err(Error::refused(format!("{} names a file, but there may be several outputs", quoted(output))).with_hint(hint));
    }
    Ok(Place::Directory(output.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_named_after_the_input_and_the_platform() {
        for (output, input, expected) in [
            (None, Some("a/model.jax_exported"), "a/model.cuda.jax_exported"),
            (None, Some("model"), "model.cuda.jax_exported"),
            (None, Some(".model"), ".model.cuda.jax_exported"),
            (None, None, "export.cuda.jax_exported"),
            (Some("out"), Some("a/m.v1.bin"), "out/m.v1.cuda.bin"),
            (Some("out/{stem}-{platform}.x"), Some("a/m.bin"), "out/m-cuda.x"),
            (Some("{platform}/"), Some("a/m.bin"), "cuda/m.cuda.bin"),
            (Some("{stem}"), Some("{platform}.bin"), "{platform}"),
        ] {
            let names = Names::new(output.map(Path::new), input.map(Path::new)).unwrap();
            assert_eq!(names.path(&Platform::CUDA).unwrap(), Path::new(expected));
        }
    }

    #[test]
    fn what_lies_beside_is_named_after_the_stem() {
        let names = Names::new(None, Some(Path::new("a/{stem}.bin"))).unwrap();
        assert_eq!(names.beside(Path::new("out/{stem}.json")), Path::new("out/{stem}.json"));
        let names = Names::new(None, Some(Path::new("a/model.bin"))).unwrap();
        assert_eq!(names.beside(Path::new("out/{stem}.{platform}.json")), Path::new("out/model.{platform}.json"));
    }

    #[test]
    fn unknown_placeholders_are_refused() {
        for (output, name) in [("{x}{platform}", "`{x}`"), ("out/{platform", "`{platform`"), ("{", "`{`")] {
            let Err(error) = Names::new(Some(Path::new(output)), None) else { panic!("`{output}` was taken") };
            assert_eq!(error.to_string(), format!("unknown placeholder {name} in `{output}`"));
        }
    }

    #[test]
    fn a_platform_out_of_a_file_leads_nowhere_else() {
        let names = Names::new(Some(Path::new("{platform}")), None).unwrap();
        for name in ["", "..", "../x", "a\\b", "a\n"] {
            names.path(&Platform::new(name)).unwrap_err();
        }
        assert!(Names::new(Some(Path::new("model.jax_exported")), None).is_err());
    }
}
