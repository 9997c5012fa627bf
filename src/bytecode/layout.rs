//! How many bytes of a module each of its parts takes, as the reader came past them.

use super::tables::{AttributeId, DialectId, OpNameId, TypeId};

/// The bytes of a module. Headers, strings, names, attributes and types, their offsets, operations, properties and resources add up to its size.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Layout<'a> {
    /// The magic number, the version, the producer, and the headers and paddings of the sections at the top.
    pub headers: u64,
    /// The string section.
    pub strings: u64,
    /// The section of dialects and operation names.
    pub names: u64,
    /// The section of attributes and types.
    pub entries: u64,
    /// The section of their sizes.
    pub offsets: u64,
    /// The IR section.
    pub operations: u64,
    /// The properties section.
    pub properties: u64,
    /// The two sections of resources.
    pub resources: u64,
    /// Each string of the file, and its bytes with those of its size.
    pub each_string: Vec<(&'a [u8], u64)>,
    /// Each dialect of the file.
    pub each_dialect: Vec<DialectId>,
    /// Each operation name of the file.
    pub each_name: Vec<OpNameId>,
    /// Each attribute of the file. Equal ones have one id.
    pub each_attribute: Vec<EntryLayout<AttributeId>>,
    /// Each type of the file. Equal ones have one id.
    pub each_type: Vec<EntryLayout<TypeId>>,
    /// The bytes of each set of properties, with those of its size.
    pub each_properties: Vec<u64>,
    /// Each operation of the tree.
    pub each_operation: Vec<OperationLayout>,
}

/// The bytes of an attribute or a type.
#[derive(Debug, Clone, Copy)]
pub struct EntryLayout<Id> {
    /// Where it is in the tables.
    pub id: Id,
    /// Its bytes, in [`Layout::entries`].
    pub bytes: u64,
    /// The bytes of its size, in [`Layout::offsets`].
    pub offset_bytes: u64,
}

/// The bytes of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct OperationLayout {
    /// Its own, with the headers of its regions and their blocks, and without the operations inside.
    pub bytes: u64,
    /// Its properties in [`Layout::each_properties`], which other operations may share.
    pub properties: Option<u32>,
}

impl Layout<'_> {
    /// The size of the module.
    pub fn total(&self) -> u64 {
        self.headers + self.strings + self.names + self.entries + self.offsets + self.operations + self.properties + self.resources
    }
}
