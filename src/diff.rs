//! How two exports, or two modules, differ as programs: what `jaxprism diff` tells.
//!
//! Containers are compared by what they say, argument by argument (`signature`). Modules are compared without MLIR: attributes and types of both get common
//! numbers (`classes`), so do operations (`shapes`); functions are matched by name and by what they do (`matching`), and the operations of matched functions
//! are put side by side (`align`, `body`). Whatever is not the same is a change; only what is asked for is ignored.

mod align;
mod body;
mod classes;
mod matching;
mod module;
mod shapes;
mod signature;

use std::str::FromStr;

use indexmap::IndexMap;
use serde::Serialize;

use crate::bytecode::{Bytecode, MAGIC};
use crate::container::Exported;
use crate::error::{Error, Result};
use crate::inspect::FileFormat;
use crate::pieces::Pieces;
use crate::source::Source;
use crate::threads::on_deep_stack;

/// Most bytes of text that are made of two files. In crafted files, many operations can share a long name.
const MAX_TEXT: usize = 64 << 20;
/// What places in MLIR text are said to be in: in both files the same, since it is no difference.
const TEXT: &str = "text";
/// Characters that are shown of a text.
const SHOWN: usize = 200;

/// What two programs may differ in and count as equal all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ignore {
    /// Source locations.
    Locations,
    /// What private functions, meshes and the module are called, and the order in which functions stand.
    Names,
    /// Who wrote the file: the versions of JAX, of StableHLO, of the container's schema and of MLIR's bytecode.
    Versions,
}

impl Ignore {
    /// All there are, by their names.
    pub const ALL: [(&'static str, Self); 3] = [("locations", Self::Locations), ("names", Self::Names), ("versions", Self::Versions)];
}

impl FromStr for Ignore {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, ignore)| ignore).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| format!("`{name}`"));
            Error::refused(format!("`{text}` cannot be ignored")).with_hint(format!("there are {}", names.join(", ")))
        })
    }
}

/// What [`diff`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiffOptions {
    /// What counts as equal all the same.
    pub ignore: Vec<Ignore>,
    /// Most changes that are listed; all of them without it.
    pub max_changes: Option<usize>,
}

impl DiffOptions {
    /// Ignores some differences.
    pub fn ignore(mut self, ignore: impl IntoIterator<Item = Ignore>) -> Self {
        self.ignore = ignore.into_iter().collect();
        self
    }

    /// Lists no more than so many changes. All are counted.
    pub fn max_changes(mut self, most: usize) -> Self {
        self.max_changes = Some(most);
        self
    }
}

/// What [`diff`] found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// Whether nothing differs but what is ignored.
    pub equal: bool,
    /// Whether both are the same bytes.
    pub identical: bool,
    /// The first file.
    pub a: DiffFile,
    /// The second file.
    pub b: DiffFile,
    /// How many changes there are of each kind.
    pub counts: Counts,
    /// How many changes of each kind were ignored.
    pub ignored: Counts,
    /// The changes: by level, by kind, function by function, and in textual order.
    pub changes: Vec<Change>,
    /// Whether there are more changes than are listed.
    pub is_cut: bool,
    /// The bytes of the parts of both files.
    pub parts: Vec<Part>,
}

/// One of the two files.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DiffFile {
    /// What it is.
    pub format: FileFormat,
    /// Its size.
    pub bytes: u64,
}

/// How many changes there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Of the signature.
    pub signature: usize,
    /// Of the module around its functions.
    pub module: usize,
    /// Of functions as a whole.
    pub functions: usize,
    /// Operations that were added, removed, moved or changed.
    pub operations: usize,
    /// Names of private functions, of meshes and of the module, and their order.
    pub names: usize,
    /// Operations and arguments with another source location.
    pub locations: usize,
    /// Versions.
    pub versions: usize,
}

impl Counts {
    /// All of them together.
    pub fn total(&self) -> usize {
        let Self { signature, module, functions, operations, names, locations, versions } = self;
        signature + module + functions + operations + names + locations + versions
    }

    fn of(&mut self, kind: ChangeKind) -> &mut usize {
        match kind {
            ChangeKind::Signature => &mut self.signature,
            ChangeKind::Version => &mut self.versions,
            ChangeKind::Module => &mut self.module,
            ChangeKind::Function => &mut self.functions,
            ChangeKind::Operation => &mut self.operations,
            ChangeKind::Name => &mut self.names,
            ChangeKind::Location => &mut self.locations,
        }
    }
}

/// What a change is in; changes are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// What the container says of the function.
    Signature,
    /// Who wrote the file.
    Version,
    /// The module around its functions.
    Module,
    /// A function as a whole.
    Function,
    /// An operation in a function.
    Operation,
    /// A name that means nothing, or an order that means nothing.
    Name,
    /// Source locations.
    Location,
}

/// How something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum How {
    /// It is in the second file alone.
    Added,
    /// It is in the first file alone.
    Removed,
    /// It is another one.
    Changed,
    /// It is the same under another name.
    Renamed,
    /// It is the same in another place.
    Moved,
}

/// One thing in which two programs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// What it is in.
    pub kind: ChangeKind,
    /// How it changed.
    pub how: How,
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// What changed: `args[0]['w']`, ``attribute `mhlo.num_partitions` ``, a function or an operation by its name.
    pub what: String,
    /// What it is in the first file; none where it was added.
    pub a: Option<Side>,
    /// What it is in the second file; none where it was removed.
    pub b: Option<Side>,
    /// What changed in an operation or a function.
    pub details: Vec<Detail>,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Side {
    /// What it is. An operation is written as `jaxprism print --stablehlo` writes it.
    pub text: String,
    /// The function that it is in.
    pub function: Option<String>,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
}

impl Side {
    fn new(text: impl Into<String>) -> Self {
        Self { text: shown(text.into()), function: None, place: None }
    }
}

/// What changed in an operation or a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Detail {
    /// What it is: ``attribute `value` ``, `operand 1`, `type of result 0`.
    pub what: String,
    /// What it is in the first file; none where it is not there.
    pub a: Option<String>,
    /// What it is in the second file; none where it is not there.
    pub b: Option<String>,
}

/// A part of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on; none for the container of all levels.
    pub level: Option<usize>,
    /// `container`, or a section of the module's bytecode.
    pub name: &'static str,
    /// Its bytes in the first file, 0 if it has none.
    pub a: u64,
    /// Its bytes in the second file.
    pub b: u64,
    /// Whether they are the same bytes.
    pub same: bool,
}

/// Compares two exports, or two modules in MLIR bytecode or text, as programs.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): one of them is malformed, or of no kind that can be read.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): one of them is newer, or nested deeper, than this version handles.
pub fn diff(a: &[u8], b: &[u8], options: &DiffOptions) -> Result<Diff> {
    on_deep_stack(|| {
        let (a, b) = (File::read(a, "A")?, File::read(b, "B")?);
        let mut found = Found::new(options);
        let mut parts = Vec::new();
        let identical = a.bytes == b.bytes;
        if !identical {
            parts.push(container_part(&a, &b));
            signature::formats(&a, &b, &mut found);
            for level in 0..a.levels.len().max(b.levels.len()) {
                parts.extend(sections(&a, &b, level));
                if let (Some(ours), Some(theirs)) = (a.levels.get(level), b.levels.get(level)) {
                    if let (Some(ours), Some(theirs)) = (a.exported(level), b.exported(level)) {
                        signature::compare(ours, theirs, level, &mut found);
                    }
                    body::compare(ours, theirs, level, &mut found);
                }
            }
            parts.retain(|part| !part.same);
        }
        let Found { counts, ignored, mut changes, is_cut, .. } = found;
        changes.sort_by_key(|change| (change.level, change.kind));
        Ok(Diff { equal: counts.total() == 0, identical, a: a.summary(), b: b.summary(), counts, ignored, changes, is_cut, parts })
    })
}

/// One of the two files, read.
struct File<'a> {
    bytes: &'a [u8],
    source: Source<'a>,
    levels: Vec<Bytecode<'a>>,
}

impl<'a> File<'a> {
    fn read(bytes: &'a [u8], name: &str) -> Result<Self> {
        let failed = |error: Error| error.context(format!("cannot read {name}"));
        let source = Source::read(bytes, TEXT).map_err(failed)?;
        let levels = (0..source.level_count()).map(|level| source.module(level, bytes)).collect::<Result<_>>().map_err(failed)?;
        Ok(Self { bytes, source, levels })
    }

    fn exported(&self, level: usize) -> Option<&Exported<'a>> {
        match &self.source {
            Source::Export(exported) => exported.levels().nth(level),
            Source::Module(_) => None,
        }
    }

    /// The bytes of a module, where it is bytecode.
    fn module(&self, level: usize) -> Option<&'a [u8]> {
        match &self.source {
            Source::Export(exported) => exported.levels().nth(level)?.module.as_borrowed(),
            Source::Module(_) => Some(self.bytes).filter(|bytes| level == 0 && bytes.starts_with(MAGIC)),
        }
    }

    fn format(&self) -> FileFormat {
        if matches!(self.source, Source::Export(_)) { FileFormat::Export } else { FileFormat::Bytecode }
    }

    fn summary(&self) -> DiffFile {
        DiffFile { format: self.format(), bytes: self.bytes.len() as u64 }
    }
}

/// Everything but the modules.
fn container_part<'a>(a: &File<'a>, b: &File<'a>) -> Part {
    let size = |file: &File<'_>| match &file.source {
        Source::Export(exported) => file.bytes.len() as u64 - exported.levels().map(|level| level.module.len()).sum::<u64>(),
        Source::Module(_) => 0,
    };
    let bare = |file: &File<'a>| {
        let mut exported = file.exported(0).cloned();
        // Taking the modules out cannot fail.
        let _ = exported.as_mut().map(|exported| {
            exported.for_each_level_mut(|_, level| {
                level.module = Pieces::new();
                Ok(())
            })
        });
        exported
    };
    Part { level: None, name: "container", a: size(a), b: size(b), same: size(a) == size(b) && bare(a) == bare(b) }
}

/// The sections of a level's modules, as far as they are bytecode.
fn sections<'a>(a: &File<'a>, b: &File<'a>, level: usize) -> Vec<Part> {
    let read = |file: &File<'a>| file.module(level).and_then(|module| Bytecode::sections(module).ok()).unwrap_or_default();
    let (ours, theirs) = (read(a), read(b));
    let mut parts: IndexMap<&'static str, [&[u8]; 2]> = IndexMap::new();
    for (side, sections) in [&ours, &theirs].into_iter().enumerate() {
        for (name, bytes) in sections {
            parts.entry(name).or_default().get_mut(side).into_iter().for_each(|part| *part = bytes);
        }
    }
    let part =
        |(name, [a, b]): (&'static str, [&[u8]; 2])| Part { level: Some(level), name, a: a.len() as u64, b: b.len() as u64, same: a == b };
    parts.into_iter().map(part).collect()
}

/// Changes as they are found.
struct Found {
    ignore: Vec<Ignore>,
    most: usize,
    /// Bytes of text that may still be made.
    text: usize,
    counts: Counts,
    ignored: Counts,
    changes: Vec<Change>,
    is_cut: bool,
}

impl Found {
    fn new(options: &DiffOptions) -> Self {
        Self {
            ignore: options.ignore.clone(),
            most: options.max_changes.unwrap_or(usize::MAX),
            text: MAX_TEXT,
            counts: Counts::default(),
            ignored: Counts::default(),
            changes: Vec::new(),
            is_cut: false,
        }
    }

    fn is_ignored(&self, kind: ChangeKind) -> bool {
        let ignore = match kind {
            ChangeKind::Location => Ignore::Locations,
            ChangeKind::Name => Ignore::Names,
            ChangeKind::Version => Ignore::Versions,
            _ => return false,
        };
        self.ignore.contains(&ignore)
    }

    /// Counts a change, and lists it if there is room.
    fn add(&mut self, kind: ChangeKind, count: usize, describe: impl FnOnce() -> Change) {
        if self.is_ignored(kind) {
            *self.ignored.of(kind) += count;
            return;
        }
        *self.counts.of(kind) += count;
        if self.changes.len() >= self.most || self.text == 0 {
            self.is_cut = true;
            return;
        }
        let change = describe();
        let sides = change.a.iter().chain(&change.b).map(|side| side.text.len());
        let details = change.details.iter().flat_map(|detail| detail.a.iter().chain(&detail.b)).map(String::len);
        self.text = self.text.saturating_sub(sides.chain(details).sum::<usize>() + change.what.len());
        self.changes.push(change);
    }

    /// Lists that something is another one, or is there on one side alone.
    fn fact(&mut self, kind: ChangeKind, level: usize, what: impl Into<String>, a: Option<String>, b: Option<String>) {
        let how = match (&a, &b) {
            (None, _) => How::Added,
            (_, None) => How::Removed,
            _ => How::Changed,
        };
        let what = what.into();
        self.add(kind, 1, || Change { kind, how, level, what, a: a.map(Side::new), b: b.map(Side::new), details: Vec::new() });
    }
}

/// Text that is not too long to be shown.
fn shown(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Bytes of a file as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
