//! What a file is, and the modules in it: an export with one module for each level, a module alone in MLIR bytecode, or a module in MLIR text.

use crate::bytecode::{Bytecode, MAGIC};
use crate::container::{self, Exported};
use crate::error::{Error, Result};
use crate::ir;

/// Bytes at the start that tell text from binary.
const START: usize = 1 << 12;

/// A file whose kind is known.
#[derive(Debug)]
pub enum Source<'a> {
    /// A JAX export.
    Export(Box<Exported<'a>>),
    /// A module alone.
    Module(Box<Bytecode<'a>>),
}

impl<'a> Source<'a> {
    /// Reads a file of any kind. Places in MLIR text are in `file`.
    ///
    /// # Errors
    /// - [`crate::ErrorKind::Format`]: the input is malformed, or of none of the kinds.
    /// - [`crate::ErrorKind::Unsupported`]: the input is newer, or nested deeper, than this version handles.
    pub fn read(input: &'a [u8], file: &str) -> Result<Self> {
        if input.starts_with(MAGIC) {
            return Ok(Self::Module(Box::new(Bytecode::read(input, 0)?)));
        }
        // An export holds zero bytes, among the first of all, text does not.
        let is_binary = input.iter().take(START).any(|byte| *byte == 0);
        let text = if is_binary { None } else { std::str::from_utf8(input).ok() };
        let text = text.filter(|text| !text.contains('\0') && !text.trim().is_empty());
        match text {
            Some(text) => Ok(Self::Module(Box::new(ir::parse(text, file)?))),
            None => Ok(Self::Export(Box::new(Exported::read(input)?))),
        }
    }

    /// How many modules there are: the function's own, and one for each of its vector-Jacobian products.
    pub fn level_count(&self) -> usize {
        match self {
            Self::Export(exported) => exported.levels().count(),
            Self::Module(_) => 1,
        }
    }

    /// The module of a level. `input` is what was given to [`Source::read`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`] if there is no such level, else those of [`Bytecode::read`].
    pub fn module(&self, level: usize, input: &'a [u8]) -> Result<Bytecode<'a>> {
        let count = self.level_count();
        let none = || {
            let hint = if count == 1 { "there is only level 0".to_owned() } else { format!("there are the levels 0 to {}", count - 1) };
            Error::refused(format!("there is no level {level}")).with_hint(hint)
        };
        match self {
            Self::Module(bytecode) if level == 0 => Ok((**bytecode).clone()),
            Self::Module(_) => Err(none()),
            Self::Export(exported) => read_module(exported.levels().nth(level).ok_or_else(none)?, level, input),
        }
    }
}

/// Refuses what no file of any kind starts with, so that no stream is read to an end that it may not have. `start` is cut anywhere.
///
/// # Errors
/// [`crate::ErrorKind::Format`].
pub fn check_start(start: &[u8]) -> Result<()> {
    let is_text = !start.iter().take(START).any(|byte| *byte == 0);
    if is_text || start.starts_with(MAGIC) { Ok(()) } else { container::check_start(start) }
}

/// Reads the module of an export, or of a vector-Jacobian product in one. Offsets in errors are those in `input`.
pub(crate) fn read_module<'a>(exported: &Exported<'a>, level: usize, input: &'a [u8]) -> Result<Bytecode<'a>> {
    let bytes = exported.module.as_borrowed().ok_or_else(|| Error::bug("a module that was read is one slice"))?;
    let base = (bytes.as_ptr() as u64).saturating_sub(input.as_ptr() as u64);
    Bytecode::read(bytes, base).map_err(|error| error.context(in_level(level, "cannot read the module")))
}

/// Says of which level something failed.
pub(crate) fn in_level(level: usize, what: &str) -> String {
    if level == 0 { what.to_owned() } else { format!("{what} of the vector-Jacobian product at level {level}") }
}
