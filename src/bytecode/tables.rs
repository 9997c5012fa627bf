//! The tables of a module: dialects, operation names, attributes and types. Equal entries are one entry, as in MLIR's context.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]
#![allow(clippy::expect_used, reason = "an id comes from the table")]

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use indexmap::{IndexMap, IndexSet};

use super::arity::{Arity, arity};
use super::version::StablehloVersion;
use super::{builtin, check, sdy, vhlo};
use crate::error::Result;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use id;

id!(
    /// A position in the table of attributes.
    AttributeId
);
id!(
    /// A position in the table of types.
    TypeId
);
id!(
    /// A position in the table of dialects.
    DialectId
);
id!(
    /// A position in the table of operation names.
    OpNameId
);

/// The dialects whose encodings we know. They stand in every table of dialects, whether the module uses them or not.
pub mod dialect {
    use super::DialectId;

    /// `builtin`
    pub const BUILTIN: DialectId = DialectId(0);
    /// `vhlo`
    pub const VHLO: DialectId = DialectId(1);
    /// `sdy`
    pub const SDY: DialectId = DialectId(2);
    /// `stablehlo`
    pub const STABLEHLO: DialectId = DialectId(3);
    /// `chlo`
    pub const CHLO: DialectId = DialectId(4);
    /// Their names, in the order of the numbers above.
    pub(super) const NAMES: [&[u8]; 5] = [b"builtin", b"vhlo", b"sdy", b"stablehlo", b"chlo"];
}

/// Bytes of a string or blob: of the input, or made by a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes<'a>(pub Cow<'a, [u8]>);

impl Hash for Bytes<'_> {
    /// The keyed hash that tables use takes a second for a gigabyte of constants, so large ones go through a faster one first.
    fn hash<H: Hasher>(&self, state: &mut H) {
        const LARGE: usize = 1_024;
        if self.0.len() < LARGE {
            return state.write(&self.0);
        }
        let mut fast = rustc_hash::FxHasher::default();
        fast.write(&self.0);
        state.write_u64(fast.finish());
    }
}

/// One item of an entry's fields, in the order of its encoding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field<'a> {
    /// Another attribute.
    Attribute(AttributeId),
    /// A type.
    Type(TypeId),
    /// An unsigned number: a count of an enumeration, a width, one word of an integer or a float's bits.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// That many items follow and belong together.
    Count(u32),
    /// An optional item that is not there.
    Absent,
    /// A string.
    String(Bytes<'a>),
    /// The bytes of elements.
    Blob(Bytes<'a>),
}

/// How an entry is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// Fields, by the dialect's table.
    Known(u8),
    /// MLIR assembly text: one [`Field::String`].
    Text,
    /// An encoding that we do not know: one [`Field::Blob`], which may hold references that cannot be renumbered.
    Opaque,
}

/// An attribute or a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry<'a> {
    /// The dialect that owns it.
    pub dialect: DialectId,
    /// How it is encoded.
    pub code: Code,
    /// Tells apart `distinct` attributes, which are never the same even when they look it; 0 for all others.
    pub identity: u32,
    /// What it holds.
    pub fields: Box<[Field<'a>]>,
}

impl<'a> Entry<'a> {
    /// An entry with a known code.
    pub fn new(dialect: DialectId, code: u8, fields: impl Into<Box<[Field<'a>]>>) -> Self {
        Self { dialect, code: Code::Known(code), identity: 0, fields: fields.into() }
    }

    fn into_owned(self) -> Entry<'static> {
        let owned = |bytes: Bytes<'_>| Bytes(Cow::Owned(bytes.0.into_owned()));
        let field = |field| match field {
            Field::Attribute(id) => Field::Attribute(id),
            Field::Type(id) => Field::Type(id),
            Field::Unsigned(number) => Field::Unsigned(number),
            Field::Signed(number) => Field::Signed(number),
            Field::Count(count) => Field::Count(count),
            Field::Absent => Field::Absent,
            Field::String(bytes) => Field::String(owned(bytes)),
            Field::Blob(bytes) => Field::Blob(owned(bytes)),
        };
        Entry { dialect: self.dialect, code: self.code, identity: self.identity, fields: self.fields.into_iter().map(field).collect() }
    }

    /// Whether this is the entry with that code of that dialect.
    pub fn is(&self, dialect: DialectId, code: u8) -> bool {
        self.dialect == dialect && self.code == Code::Known(code)
    }

    /// The width of an integer or float type. Booleans and integers of two bits have none in attributes.
    pub(crate) fn bit_width(&self) -> Option<u64> {
        check::bit_width(self, "integer").or_else(|| check::bit_width(self, "float"))
    }

    /// The mnemonic of a type of vhlo.
    pub(crate) fn vhlo_name(&self) -> Option<&'static str> {
        let Code::Known(code) = self.code else { return None };
        if self.dialect == dialect::VHLO { entry_row(dialect::VHLO, true, code).map(|row| row.name) } else { None }
    }

    /// The attributes among the fields, in order.
    pub fn attributes(&self) -> impl Iterator<Item = AttributeId> + '_ {
        self.fields.iter().filter_map(|field| match field {
            Field::Attribute(id) => Some(*id),
            _ => None,
        })
    }

    /// The types among the fields, in order.
    pub fn types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.fields.iter().filter_map(|field| match field {
            Field::Type(id) => Some(*id),
            _ => None,
        })
    }

    /// The first string or blob among the fields.
    pub fn bytes(&self) -> Option<&Bytes<'a>> {
        self.fields.iter().find_map(|field| match field {
            Field::String(bytes) | Field::Blob(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// The leading list of signed numbers: the shape of a tensor type, where [`i64::MIN`] is a dynamic dimension.
    pub fn leading_signed(&self) -> Option<Vec<i64>> {
        let [Field::Count(count), rest @ ..] = &self.fields[..] else { return None };
        let numbers = rest.iter().take(*count as usize).map(|field| match field {
            Field::Signed(number) => Some(*number),
            _ => None,
        });
        numbers.collect()
    }
}

/// What one field of an encoding is. Tables of these serve reading, writing and text.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after what they stand for")]
pub enum Kind {
    Attribute,
    /// A number with a presence flag in its lowest bit.
    OptionalAttribute,
    /// A number 0 or 1, then the attribute if 1.
    PresentAttribute,
    Attributes,
    AttributePairs,
    Type,
    Types,
    Unsigned,
    OptionalUnsigned,
    UnsignedList,
    Byte,
    ByteList,
    Signed,
    SignedList,
    String,
    /// One string if the number before is 1, else one for each element of the type before.
    ElementStrings,
    Blob,
    /// An integer or float of the width of the type in field 0.
    Bits,
    /// The bits of an `f64`.
    Double,
    DoubleList,
    /// A position in the resources.
    Resource,
    /// Everything that is left, known to hold no reference.
    Rest,
}

/// One attribute or type of a dialect: its code, its mnemonic, and its fields.
#[doc(hidden)]
#[derive(Debug)]
#[allow(missing_docs, reason = "named after what they stand for")]
pub struct EntryRow {
    pub code: u8,
    pub name: &'static str,
    pub fields: &'static [Kind],
    pub since: StablehloVersion,
}

impl EntryRow {
    /// An entry that has always been there.
    pub(super) const fn new(code: u8, name: &'static str, fields: &'static [Kind]) -> Self {
        Self { code, name, fields, since: StablehloVersion::OLDEST }
    }

    /// The version of StableHLO that it came with.
    pub(super) const fn since(self, major: u16, minor: u16) -> Self {
        Self { since: StablehloVersion::new(major, minor, 0), ..self }
    }
}

/// Looks up how a dialect encodes an attribute (or a type).
#[doc(hidden)]
pub fn entry_row(dialect: DialectId, is_type: bool, code: u8) -> Option<&'static EntryRow> {
    let rows = match (dialect, is_type) {
        (dialect::BUILTIN, false) => builtin::ATTRIBUTES,
        (dialect::BUILTIN, true) => builtin::TYPES,
        (dialect::VHLO, false) => vhlo::ATTRIBUTES,
        (dialect::VHLO, true) => vhlo::TYPES,
        (dialect::SDY, false) => sdy::ATTRIBUTES,
        (dialect::STABLEHLO, false) => vhlo::STABLEHLO_ATTRIBUTES,
        (dialect::CHLO, false) => vhlo::CHLO_ATTRIBUTES,
        _ => return None,
    };
    rows.binary_search_by_key(&code, |row| row.code).ok().map(|index| &rows[index])
}

/// Looks up an attribute (or a type) of a dialect by its mnemonic.
pub(crate) fn find_entry_row(dialect: DialectId, is_type: bool, name: &str) -> Option<(u8, &'static EntryRow)> {
    let mut rows = (0..=u8::MAX).filter_map(|code| entry_row(dialect, is_type, code));
    rows.find(|row| row.name == name).map(|row| (row.code, row))
}

/// One operation of a dialect: its inherent attributes in the order of its properties.
#[derive(Debug, Clone, Copy)]
pub struct OpRow {
    /// Name without the dialect.
    pub name: &'static str,
    /// Inherent attributes in encoding order; a `?` at the end marks an optional one.
    pub properties: &'static [&'static str],
    /// How many regions it has; [`OpRow::VARIADIC`] for any number.
    pub regions: u8,
    /// The version of StableHLO that it came with.
    pub since: StablehloVersion,
}

impl OpRow {
    /// Stands for any number of regions.
    pub const VARIADIC: u8 = u8::MAX;

    /// An operation that has always been there.
    pub(super) const fn new(name: &'static str, properties: &'static [&'static str], regions: u8) -> Self {
        Self { name, properties, regions, since: StablehloVersion::OLDEST }
    }

    /// The version of StableHLO that it came with.
    pub(super) const fn since(self, major: u16, minor: u16) -> Self {
        Self { since: StablehloVersion::new(major, minor, 0), ..self }
    }
}

/// The name of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpName<'a> {
    /// Its dialect.
    pub dialect: DialectId,
    /// Its name without the dialect.
    pub name: Cow<'a, [u8]>,
}

/// Facts about an operation name that are looked up often.
#[derive(Debug, Clone)]
struct OpNameFacts {
    registered: bool,
    row: Option<&'static OpRow>,
    arity: Option<Arity>,
}

/// Dialects, operation names, attributes and types. Grows; nothing is ever removed. What a module does not use is not written.
#[derive(Debug, Clone)]
pub struct Tables<'a> {
    dialects: IndexMap<Cow<'a, [u8]>, Option<Cow<'a, [u8]>>>,
    op_names: IndexMap<OpName<'a>, OpNameFacts>,
    attributes: IndexSet<Entry<'a>>,
    types: IndexSet<Entry<'a>>,
}

impl<'a> Tables<'a> {
    pub(super) fn new() -> Self {
        let dialects = dialect::NAMES.iter().map(|name| (Cow::Borrowed(*name), None)).collect();
        Self { dialects, op_names: IndexMap::new(), attributes: IndexSet::new(), types: IndexSet::new() }
    }

    /// The same tables with copies of what they borrow.
    pub(super) fn into_owned(self) -> Tables<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        let op_name = |(name, facts): (OpName<'_>, _)| (OpName { dialect: name.dialect, name: owned(name.name) }, facts);
        Tables {
            dialects: self.dialects.into_iter().map(|(name, version)| (owned(name), version.map(owned))).collect(),
            op_names: self.op_names.into_iter().map(op_name).collect(),
            attributes: self.attributes.into_iter().map(Entry::into_owned).collect(),
            types: self.types.into_iter().map(Entry::into_owned).collect(),
        }
    }

    /// The number of attributes.
    pub fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// The number of types.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The number of operation names.
    pub fn op_name_count(&self) -> usize {
        self.op_names.len()
    }

    /// The number of dialects.
    pub(crate) fn dialect_count(&self) -> usize {
        self.dialects.len()
    }

    /// An attribute.
    pub fn attribute(&self, id: AttributeId) -> &Entry<'a> {
        &self.attributes[id.index()]
    }

    /// A type.
    pub fn r#type(&self, id: TypeId) -> &Entry<'a> {
        &self.types[id.index()]
    }

    /// The name of a dialect.
    pub fn dialect(&self, id: DialectId) -> &[u8] {
        self.dialects.get_index(id.index()).map_or(b"?", |(name, _)| name)
    }

    pub(super) fn dialect_version(&self, id: DialectId) -> Option<&[u8]> {
        self.dialects.get_index(id.index()).and_then(|(_, version)| version.as_deref())
    }

    /// The name of an operation.
    pub fn op_name(&self, id: OpNameId) -> &OpName<'a> {
        self.op_names.get_index(id.index()).map(|(name, _)| name).expect("an id comes from this table")
    }

    /// Whether its writer knew the operation.
    pub(crate) fn op_registered(&self, id: OpNameId) -> bool {
        self.op_names[id.index()].registered
    }

    /// What is known about an operation of that name.
    pub fn op_row(&self, id: OpNameId) -> Option<&'static OpRow> {
        self.op_names[id.index()].row
    }

    /// How many operands and results an operation has, where that is known.
    pub(super) fn arity(&self, id: OpNameId) -> Option<Arity> {
        self.op_names[id.index()].arity
    }

    /// The name of an operation with its dialect, e.g. `vhlo.add_v1`.
    pub fn op_name_text(&self, id: OpNameId) -> String {
        let name = self.op_name(id);
        format!("{}.{}", String::from_utf8_lossy(self.dialect(name.dialect)), String::from_utf8_lossy(&name.name))
    }

    /// The attribute equal to `entry`, made where there is none.
    pub fn intern_attribute(&mut self, entry: Entry<'a>) -> AttributeId {
        AttributeId(self.attributes.insert_full(entry).0 as u32)
    }

    /// The builtin dictionary of some names and values, in the order of the names.
    pub(crate) fn intern_dictionary(&mut self, mut items: Vec<(AttributeId, AttributeId)>) -> AttributeId {
        items.sort_by(|one, other| self.string(one.0).cmp(&self.string(other.0)));
        let mut fields = vec![Field::Count(items.len() as u32)];
        fields.extend(items.into_iter().flat_map(|(name, value)| [Field::Attribute(name), Field::Attribute(value)]));
        self.intern_attribute(Entry::new(dialect::BUILTIN, builtin::code::DICTIONARY, fields))
    }

    /// The builtin string of that text, made where there is none.
    pub(crate) fn intern_string(&mut self, text: Cow<'a, [u8]>) -> AttributeId {
        self.intern_attribute(Entry::new(dialect::BUILTIN, builtin::code::STRING, [Field::String(Bytes(text))]))
    }

    /// The type equal to `entry`, made where there is none.
    pub fn intern_type(&mut self, entry: Entry<'a>) -> TypeId {
        TypeId(self.types.insert_full(entry).0 as u32)
    }

    /// The attribute equal to `entry`, where there is one.
    pub fn find_attribute(&self, entry: &Entry<'a>) -> Option<AttributeId> {
        self.attributes.get_index_of(entry).map(|index| AttributeId(index as u32))
    }

    /// The type equal to `entry`, where there is one.
    pub fn find_type(&self, entry: &Entry<'a>) -> Option<TypeId> {
        self.types.get_index_of(entry).map(|index| TypeId(index as u32))
    }

    /// The dialect of that name, made where there is none.
    pub(super) fn intern_dialect(&mut self, name: &'a [u8], version: Option<&'a [u8]>) -> DialectId {
        let (index, _) = self.dialects.insert_full(Cow::Borrowed(name), version.map(Cow::Borrowed));
        DialectId(index as u32)
    }

    /// The dialect of that name, where there is one.
    pub(crate) fn find_dialect(&self, name: &[u8]) -> Option<DialectId> {
        self.dialects.get_index_of(name).map(|index| DialectId(index as u32))
    }

    /// The dialect of that name, made where there is none.
    pub(crate) fn add_dialect(&mut self, name: &[u8]) -> DialectId {
        self.find_dialect(name).unwrap_or_else(|| DialectId(self.dialects.insert_full(Cow::Owned(name.to_vec()), None).0 as u32))
    }

    /// A dialect of other tables, made where there is none. `None` if both have it, each in a version of its own.
    pub(crate) fn adopt_dialect(&mut self, from: &Tables<'a>, id: DialectId) -> Option<DialectId> {
        let (name, version) = from.dialects.get_index(id.index())?;
        let entry = self.dialects.entry(name.clone());
        let index = entry.index();
        let known = entry.or_insert_with(|| version.clone());
        let is_same = known.is_none() || version.is_none() || known == version;
        if known.is_none() {
            known.clone_from(version);
        }
        is_same.then_some(DialectId(index as u32))
    }

    /// Checks an entry that was not read from bytecode: that it has the fields of its row, and values that the format allows.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Format`] if not.
    pub fn check(&self, entry: &Entry<'_>, is_type: bool) -> Result<()> {
        check::fields(entry, is_type, self)?;
        check::entry(entry, is_type, self)
    }

    /// Checks that no chain of entries that name one another is longer than the reader takes.
    pub(crate) fn check_depth(&self) -> Result<()> {
        check::depth(self)
    }

    /// The operation name, made where there is none.
    pub fn intern_op_name(&mut self, dialect: DialectId, name: Cow<'a, [u8]>, registered: bool) -> OpNameId {
        let row = op_row(dialect, &name);
        let arity = || arity(row.filter(|_| dialect == dialect::VHLO)?.name.as_bytes());
        let entry = self.op_names.entry(OpName { dialect, name });
        let index = entry.index();
        entry.or_insert_with(|| OpNameFacts { registered, row, arity: arity() });
        OpNameId(index as u32)
    }

    /// The operation name, where there is one.
    pub fn find_op_name(&self, dialect: DialectId, name: &[u8]) -> Option<OpNameId> {
        let name = OpName { dialect, name: Cow::Borrowed(name) };
        self.op_names.get_index_of(&name).map(|index| OpNameId(index as u32))
    }

    /// The builtin attribute of an unknown location.
    pub fn unknown_location(&mut self) -> AttributeId {
        self.intern_attribute(Entry::new(dialect::BUILTIN, builtin::code::LOC_UNKNOWN, []))
    }

    /// The text of a string attribute, builtin or vhlo.
    pub fn string(&self, id: AttributeId) -> Option<&[u8]> {
        let entry = self.attribute(id);
        let is_string = entry.is(dialect::BUILTIN, builtin::code::STRING) || entry.is(dialect::VHLO, vhlo::code::STRING);
        if is_string { entry.bytes().map(|bytes| &bytes.0[..]) } else { None }
    }

    /// The keys and values of a dictionary, builtin or vhlo. Keys that are no strings are left out.
    pub fn dictionary(&self, id: AttributeId) -> Option<impl Iterator<Item = (&[u8], AttributeId)>> {
        let entry = self.attribute(id);
        let is_dictionary = entry.is(dialect::BUILTIN, builtin::code::DICTIONARY) || entry.is(dialect::VHLO, vhlo::code::DICT);
        if !is_dictionary {
            return None;
        }
        let mut items = entry.attributes();
        let pairs = std::iter::from_fn(move || Some((items.next()?, items.next()?)));
        Some(pairs.filter_map(|(key, value)| Some((self.string(key)?, value))))
    }

    /// Whether an attribute is a builtin dictionary without items, which operations do not write.
    pub(super) fn is_empty_dictionary(&self, id: AttributeId) -> bool {
        let entry = self.attribute(id);
        entry.is(dialect::BUILTIN, builtin::code::DICTIONARY) && entry.fields[..] == [Field::Count(0)]
    }

    /// The shape and the element type of a ranked tensor type, builtin or vhlo. A dynamic dimension is [`i64::MIN`].
    pub fn tensor(&self, id: TypeId) -> Option<(Vec<i64>, TypeId)> {
        let entry = self.r#type(id);
        Some((check::shape(entry)?.collect(), check::element_type(entry)?))
    }

    /// Whether an attribute stores one element for all of a tensor. Eight booleans and fewer take a byte in any case.
    pub fn is_splat(&self, id: AttributeId) -> bool {
        check::is_splat(self.attribute(id), self)
    }

    /// Whether one of some types is, or holds, a tensor type with a dynamic dimension. Looks at each type once, however often it is named.
    pub fn have_dynamic(&self, types: impl IntoIterator<Item = TypeId>) -> bool {
        let mut seen = vec![false; self.type_count()];
        let mut work: Vec<TypeId> = types.into_iter().collect();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if self.tensor(id).is_some_and(|(shape, _)| shape.contains(&i64::MIN)) {
                return true;
            }
            work.extend(self.r#type(id).types());
        }
        false
    }

    /// The elements of an array attribute, builtin or vhlo.
    pub fn array(&self, id: AttributeId) -> Option<impl Iterator<Item = AttributeId>> {
        let entry = self.attribute(id);
        let is_array = entry.is(dialect::BUILTIN, builtin::code::ARRAY) || entry.is(dialect::VHLO, vhlo::code::ARRAY);
        is_array.then(|| entry.attributes())
    }
}

fn op_row(dialect: DialectId, name: &[u8]) -> Option<&'static OpRow> {
    let rows = match dialect {
        dialect::BUILTIN => builtin::OPS,
        dialect::VHLO => vhlo::OPS,
        dialect::SDY => sdy::OPS,
        _ => return None,
    };
    rows.binary_search_by_key(&name, |row| row.name.as_bytes()).ok().map(|index| &rows[index])
}

/// What is known about an operation, by its name with the dialect.
pub(crate) fn op_row_named(name: &str) -> Option<&'static OpRow> {
    let (dialect, name) = name.split_once('.')?;
    let dialect = dialect::NAMES.iter().position(|known| *known == dialect.as_bytes())?;
    op_row(DialectId(dialect as u32), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tables_are_sorted_for_the_search() {
        for rows in [builtin::ATTRIBUTES, builtin::TYPES, vhlo::ATTRIBUTES, vhlo::TYPES, sdy::ATTRIBUTES] {
            assert!(rows.is_sorted_by(|a, b| a.code < b.code));
        }
        for rows in [builtin::OPS, vhlo::OPS, sdy::OPS] {
            assert!(rows.is_sorted_by(|a, b| a.name < b.name));
        }
    }

    #[test]
    fn inherent_attributes_are_in_alphabetical_order() {
        for row in [builtin::OPS, vhlo::OPS, sdy::OPS].concat() {
            assert!(row.properties.is_sorted(), "{}", row.name);
        }
    }
}
