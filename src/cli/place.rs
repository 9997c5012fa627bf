//! Where the one output of an input goes: what `-o` means to verbs that make one file of each input.

use std::path::{Path, PathBuf};

use crate::Emit;
use crate::error::Result;
use crate::files::{EXPORT, Names, PLATFORM, quoted};

use super::refuse_arguments;

/// The name of the output of an input (`None`: standard input): its own in a directory that exists or ends with `/`; else what is asked for, with the input's
/// name without its extension in place of `{stem}`.
pub fn place(output: &Path, input: Option<&Path>, emit: Emit) -> Result<PathBuf> {
    let path = Names::new(None, input)?.beside(output);
    if !path.is_dir() && !path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Ok(path);
    }
    let path = path.join(input.and_then(Path::file_name).unwrap_or(EXPORT.as_ref()));
    Ok(emit.extension().map_or_else(|| path.clone(), |extension| path.with_extension(extension)))
}

/// Leaves if a name holds a placeholder that nothing stands for.
pub fn refuse_placeholder(path: &Path, placeholder: &str, why: &str) {
    if path.to_string_lossy().contains(placeholder) {
        refuse_arguments(&format!("nothing stands for `{placeholder}` in {}: {why}", quoted(path)));
    }
}

/// Leaves if the name of what is for all platforms asks for one.
pub fn refuse_platform(path: &Path) {
    refuse_placeholder(path, PLATFORM, "it is for all platforms together");
}
