//! Where the bytes of an export are: by section of the file, by constant, function, kind of attribute, file of locations, and string.
//!
//! All sizes are those of the encoded file, as the reader came past them, so the sections add up to the file. Like [`inspect`](crate::inspect()) it needs
//! no MLIR, and also looks at modules that [`split`](crate::split()) must refuse. `docs/json.md` describes the JSON.

mod html;
mod module;
mod owners;

use serde::Serialize;

pub use html::to_html;

use crate::bytecode::{Bytecode, MAGIC};
use crate::container::Exported;
use crate::error::{Error, Result};
use crate::inspect::FileFormat;
use crate::source::in_level;

/// How a file is measured.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SizeOptions {
    /// The longest that a list may be; what is beyond it is in the list's sums alone.
    pub longest_list: usize,
}

impl Default for SizeOptions {
    fn default() -> Self {
        Self { longest_list: 10_000 }
    }
}

impl SizeOptions {
    /// Lists no more than so many constants, functions, kinds, files and strings.
    pub fn longest_list(mut self, length: usize) -> Self {
        self.longest_list = length;
        self
    }
}

/// Where the bytes of a file are. `container` and the `bytes` of all levels add up to `bytes`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Size {
    /// What the file is.
    pub format: FileFormat,
    /// Its size.
    pub bytes: u64,
    /// What is not in a module: names, types, trees and shardings of arguments and results. Nothing for a module alone.
    pub container: u64,
    /// The function itself, then its vector-Jacobian product, that one's, and so on. One for a module alone.
    pub levels: Vec<Level>,
}

/// One module of the file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// The name of the Python function. A module alone has none.
    pub function_name: Option<String>,
    /// The size of its module.
    pub bytes: u64,
    /// The sections of the module.
    pub sections: Sections,
    /// Values of constant operations.
    pub constants: List<Constant>,
    /// Functions, by what they retain.
    pub functions: List<Function>,
    /// Attributes that are neither constants nor for locations, and types, by kind, with the strings that they name.
    pub attributes: List<AttributeKind>,
    /// Attributes of locations and what only they name, by the file that they lead to, with the strings that they name.
    pub locations: List<LocationFile>,
    /// Strings.
    pub strings: Strings,
}

/// Bytes of a module by section. They add up to the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Sections {
    /// Operations: the IR section.
    pub operations: u64,
    /// Inherent attributes of operations, by reference. Equal ones are stored once.
    pub properties: u64,
    /// Attributes that are values of constant operations.
    pub constants: u64,
    /// Attributes of locations, and those that only locations name.
    pub locations: u64,
    /// All other attributes.
    pub attributes: u64,
    /// Types.
    pub types: u64,
    /// The sizes of all attributes and types.
    pub offsets: u64,
    /// Strings: names of files, functions and operations, backend configurations and others.
    pub strings: u64,
    /// Dialects and operation names, whose text is among the strings.
    pub names: u64,
    /// Resources.
    pub resources: u64,
    /// The magic number, the version, the producer, and the headers and paddings of sections.
    pub headers: u64,
}

impl Sections {
    /// The sections with their names, as in the JSON.
    pub fn each(&self) -> [(&'static str, u64); 11] {
        [
            ("operations", self.operations),
            ("properties", self.properties),
            ("constants", self.constants),
            ("locations", self.locations),
            ("attributes", self.attributes),
            ("types", self.types),
            ("offsets", self.offsets),
            ("strings", self.strings),
            ("names", self.names),
            ("resources", self.resources),
            ("headers", self.headers),
        ]
    }
}

/// A list, largest first.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct List<T> {
    /// How many there are, listed or not.
    pub count: usize,
    /// Their bytes, listed or not.
    pub bytes: u64,
    /// The largest.
    pub largest: Vec<T>,
}

/// A constant. It is stored once, however often it is used.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Constant {
    /// Element type and shape: `f32[16,16]`.
    pub r#type: String,
    /// Its element type.
    pub dtype: Option<String>,
    /// Its shape.
    pub shape: Option<Vec<i64>>,
    /// Its bytes in the file.
    pub bytes: u64,
    /// Whether all elements are equal, so that one is stored.
    pub splat: bool,
    /// How many constant operations have this value.
    pub uses: usize,
    /// How many functions they are in.
    pub functions: usize,
    /// The function that uses it first.
    pub function: String,
    /// The place in the user's files where it is used first, where one is known.
    pub place: Option<String>,
}

/// A function.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Function {
    /// Its name in the module.
    pub name: String,
    /// Whether it can be called from outside of the module.
    pub public: bool,
    /// How many operations are inside it.
    pub operations: usize,
    /// Its own bytes: its operations, and all else that no other function uses.
    pub bytes: u64,
    /// What they are.
    pub own: Own,
    /// What would go if it went: its own bytes, those of functions that are called only by way of it, and what only these use. `None` if there are too many
    /// functions and calls.
    pub retained: Option<u64>,
    /// Its place in the user's files, where one is known.
    pub place: Option<String>,
}

/// The own bytes of a function. Those of attributes and types include their part of the section of sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Own {
    /// Its operations.
    pub operations: u64,
    /// Inherent attributes of operations that no other function has.
    pub properties: u64,
    /// Constants that only it uses.
    pub constants: u64,
    /// Locations that only it uses.
    pub locations: u64,
    /// Other attributes, and types, that only it uses.
    pub attributes: u64,
    /// Strings that only it uses.
    pub strings: u64,
}

impl Own {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.operations + self.properties + self.constants + self.locations + self.attributes + self.strings
    }
}

/// Attributes or types of one kind.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AttributeKind {
    /// `backend configuration`, `sharding`, or a dialect's name for it: `vhlo.string`, `type vhlo.tensor`.
    pub kind: String,
    /// How many there are.
    pub count: usize,
    /// Their bytes, with those of the strings that are named by them first.
    pub bytes: u64,
    /// The bytes of these strings.
    pub string_bytes: u64,
}

/// Locations that lead to one file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LocationFile {
    /// The name of the file, where there is one.
    pub file: Option<String>,
    /// How many attributes there are.
    pub count: usize,
    /// Their bytes, with those of the strings that are named by them first.
    pub bytes: u64,
    /// The bytes of these strings.
    pub string_bytes: u64,
}

/// Strings. Each counts for what names it first: the names of dialects and operations, then attributes in the order of the file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Strings {
    /// Strings by what names them.
    pub uses: List<StringUse>,
    /// The strings themselves.
    pub each: List<Text>,
}

/// Strings that are named by one kind of thing.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StringUse {
    /// What names them: `names`, `locations`, `resources`, `nothing`, or a kind of attribute.
    pub used_by: String,
    /// How many there are.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// A string.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Text {
    /// Its first characters.
    pub text: String,
    /// Its bytes, with its end and its size.
    pub bytes: u64,
    /// What names it, as in [`StringUse`].
    pub used_by: String,
}

/// Measures an export, or a module alone in MLIR bytecode.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): the input is malformed, or neither of the two.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): the input is newer, or nested deeper, than this version handles.
pub fn size(input: &[u8], options: &SizeOptions) -> Result<Size> {
    let bytes = input.len() as u64;
    if input.starts_with(MAGIC) {
        let (bytecode, layout) = Bytecode::read_with_layout(input, 0)?;
        let level = module::measure(&bytecode, &layout, options);
        return Ok(Size { format: FileFormat::Bytecode, bytes, container: 0, levels: vec![level] });
    }
    let exported = Exported::read(input)?;
    let places = module_places(&exported, input)?;
    let mut levels = Vec::new();
    for (number, (level, (start, module))) in exported.levels().zip(places).enumerate() {
        let read = Bytecode::read_with_layout(module, start);
        let (bytecode, layout) = read.map_err(|error| error.context(in_level(number, "cannot read the module")))?;
        let measured = module::measure(&bytecode, &layout, options);
        levels.push(Level { level: number, function_name: Some(level.function_name.to_string()), ..measured });
    }
    let in_modules: u64 = levels.iter().map(|level| level.bytes).sum();
    let container = bytes.checked_sub(in_modules).ok_or_else(|| Error::bug("modules that are larger than their file"))?;
    Ok(Size { format: FileFormat::Export, bytes, container, levels })
}

/// The modules with their offsets in the file. Fails where two levels share bytes, which no writer does and no sum could tell.
fn module_places<'a>(exported: &Exported<'a>, input: &'a [u8]) -> Result<Vec<(u64, &'a [u8])>> {
    let mut places = Vec::new();
    for level in exported.levels() {
        let module = level.module.as_borrowed().ok_or_else(|| Error::bug("a module that was read is one slice"))?;
        places.push(((module.as_ptr() as u64).saturating_sub(input.as_ptr() as u64), module));
    }
    let mut sorted = places.clone();
    sorted.sort_by_key(|(start, module)| (*start, module.len()));
    let mut end = 0;
    for (start, module) in sorted {
        if start < end {
            return Err(Error::format("the modules of two levels share bytes").at(start));
        }
        end = start + module.len() as u64;
    }
    Ok(places)
}
