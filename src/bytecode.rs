//! MLIR bytecode as portable artifacts use it, versions 0 to 6: tables of attributes, types and operation names, and the operations in one flat tree.
//!
//! [`Bytecode::read`] borrows everything large from the input. [`Bytecode::write`] is canonical: it numbers everything anew, as MLIR's own writer
//! does for the same module, so unchanged input comes out byte for byte. The format is described in `docs/format.md`.

mod arity;
mod builtin;
mod check;
mod layout;
mod number;
mod read;
mod sdy;
mod tables;
mod tree;
mod version;
mod vhlo;
mod write;

use std::borrow::Cow;

pub use layout::{EntryLayout, Layout, OperationLayout};
pub use tables::{AttributeId, Bytes, Code, DialectId, Entry, Field, OpName, OpNameId, OpRow, Tables, TypeId, dialect};
/// For tests that encode in other ways than ours.
#[doc(hidden)]
pub use tables::{EntryRow, Kind, entry_row};
pub(crate) use tables::{find_entry_row, op_row_named};
pub use tree::{Block, OpTree, Operation, Region, Span, UseOrder, ValueId};
pub use version::StablehloVersion;
#[cfg(test)]
pub(crate) use vhlo::OPS as VHLO_OPERATIONS;

/// The codes of the attributes and types that the rest of the crate looks at, by dialect.
pub mod code {
    pub use super::builtin::code as builtin;
    pub use super::sdy::code as sdy;
    pub use super::vhlo::code as vhlo;
}

/// The four bytes every MLIR bytecode file begins with.
pub const MAGIC: &[u8; 4] = b"ML\xefR";
/// The newest bytecode version we know. StableHLO has written version 6 since its own version 0.15.
pub const NEWEST_VERSION: u64 = 6;

/// The producer of StableHLO whose operations we know all of.
pub const NEWEST_PRODUCER: &[u8] = b"StableHLO_v1.18.0";

/// One module, decoded.
#[derive(Debug, Clone)]
pub struct Bytecode<'a> {
    /// Bytecode version, 0 to 6. Portable artifacts use 0, 1, 3, 4 and 6.
    pub version: u64,
    /// Who wrote it, e.g. `StableHLO_v1.18.0`; consumers may read the StableHLO version from it, so it is never changed.
    pub producer: Cow<'a, [u8]>,
    /// Attributes, types, operation names and dialects.
    pub tables: Tables<'a>,
    /// The operations. The first is the module.
    pub tree: OpTree,
    /// Resource sections, kept as they are.
    pub resources: Resources<'a>,
    /// Whether it was read from text, where operations may stand that only passes see, and constants may be elided.
    pub is_from_text: bool,
    /// The first thing in the file whose references cannot be known, so that the module can be looked at but not renumbered.
    pub unreadable: Option<String>,
}

/// Blobs beside the module that `dense_resource` attributes name by their position. Portable artifacts of JAX have none.
#[derive(Debug, Clone, Default)]
pub struct Resources<'a> {
    /// Groups of tools outside the module's dialects, each with its key.
    pub external: Vec<(&'a [u8], Vec<Resource<'a>>)>,
    /// Groups of dialects.
    pub dialect: Vec<(DialectId, Vec<Resource<'a>>)>,
}

/// One resource.
#[derive(Debug, Clone)]
pub struct Resource<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its kind as stored: 0 blob, 1 boolean, 2 string.
    pub kind: u8,
    /// What it holds; nothing when it is only declared.
    pub data: Option<ResourceData<'a>>,
}

/// What a resource holds.
#[derive(Debug, Clone)]
pub enum ResourceData<'a> {
    /// Bytes at an alignment.
    Blob {
        /// A power of two.
        alignment: u64,
        /// The bytes, borrowed.
        bytes: &'a [u8],
    },
    /// A boolean, as its byte.
    Bool(u8),
    /// A string.
    String(&'a [u8]),
}

impl<'a> Bytecode<'a> {
    /// A module of the newest version with nothing in it, not even the module.
    pub(crate) fn empty() -> Self {
        Self {
            version: NEWEST_VERSION,
            producer: Cow::Borrowed(NEWEST_PRODUCER),
            tables: Tables::new(),
            tree: OpTree::default(),
            resources: Resources::default(),
            is_from_text: false,
            unreadable: None,
        }
    }

    /// The same module with copies of what it borrows, but without its resources.
    pub(crate) fn into_owned(self) -> Bytecode<'static> {
        Bytecode {
            version: self.version,
            producer: Cow::Owned(self.producer.into_owned()),
            tables: self.tables.into_owned(),
            tree: self.tree,
            resources: Resources::default(),
            is_from_text: self.is_from_text,
            unreadable: self.unreadable,
        }
    }

    /// The name of an operation with its dialect, e.g. `vhlo.add_v1`.
    pub fn op_name(&self, operation: &Operation) -> String {
        self.tables.op_name_text(operation.name)
    }

    /// An inherent attribute of an operation by name: from its properties, or from its dictionary in bytecode before version 5.
    pub fn inherent(&self, operation: &Operation, name: &str) -> Option<AttributeId> {
        if let (Some(span), Some(row)) = (operation.properties, self.tables.op_row(operation.name)) {
            let position = row.properties.iter().position(|property| property.trim_end_matches('?') == name)?;
            return self.tree.properties.get(span.start as usize + position).copied().flatten();
        }
        self.tables.dictionary(operation.attributes?)?.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
    }

    /// The attributes of an operation by name, inherent ones first.
    pub fn attributes_of(&self, operation: &Operation) -> Vec<(&[u8], AttributeId)> {
        let mut attributes: Vec<(&[u8], AttributeId)> = Vec::new();
        if let (Some(span), Some(row)) = (operation.properties, self.tables.op_row(operation.name)) {
            let values = self.tree.properties.get(span.range()).unwrap_or_default();
            let names = row.properties.iter().map(|name| name.trim_end_matches('?').as_bytes());
            attributes.extend(names.zip(values).filter_map(|(name, value)| Some((name, (*value)?))));
        }
        attributes.extend(operation.attributes.and_then(|id| self.tables.dictionary(id)).into_iter().flatten());
        attributes
    }

    /// The functions of the module.
    pub fn functions(&self) -> impl Iterator<Item = &Operation> {
        let is_function = |operation: &&Operation| {
            let name = self.tables.op_name(operation.name);
            name.dialect == dialect::VHLO && name.name.starts_with(b"func_v")
        };
        self.tree.operations.iter().filter(is_function)
    }

    /// Whether a value of the module has a dynamic dimension.
    pub fn is_polymorphic(&self) -> bool {
        self.tables.have_dynamic(self.tree.value_types.iter().copied())
    }

    /// Whether anything in the resource sections says something. Empty ones are always written.
    pub fn has_resources(&self) -> bool {
        !self.resources.external.is_empty() || !self.resources.dialect.is_empty()
    }
}
