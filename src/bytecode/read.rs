//! Bytes → [`Bytecode`]. Sections, then the tables, then the operations; nothing recurses over the input.

#![allow(clippy::indexing_slicing, reason = "an index is checked against its table as it is read")]

mod code;
mod entries;

use std::borrow::Cow;

use self::code::CodeReader;
use self::entries::RawEntries;
use super::tables::{DialectId, OpNameId, Tables};
use super::{Bytecode, EntryLayout, Layout, MAGIC, NEWEST_VERSION, Resource, ResourceData, Resources};
use crate::error::{Error, Result};
use crate::reader::{Reader, check_index};

/// Section numbers of the format.
pub(super) mod section {
    pub const STRING: u8 = 0;
    pub const DIALECT: u8 = 1;
    pub const ATTR_TYPE: u8 = 2;
    pub const ATTR_TYPE_OFFSET: u8 = 3;
    pub const IR: u8 = 4;
    pub const RESOURCE: u8 = 5;
    pub const RESOURCE_OFFSET: u8 = 6;
    pub const DIALECT_VERSIONS: u8 = 7;
    pub const PROPERTIES: u8 = 8;
    pub const NAMES: [&str; 9] = [
        "string section",
        "dialect section",
        "attribute and type section",
        "attribute and type offset section",
        "IR section",
        "resource section",
        "resource offset section",
        "dialect version section",
        "properties section",
    ];
}

/// Bits of an operation's mask.
pub(super) mod mask {
    pub const ATTRIBUTES: u8 = 0x01;
    pub const RESULTS: u8 = 0x02;
    pub const OPERANDS: u8 = 0x04;
    pub const SUCCESSORS: u8 = 0x08;
    pub const REGIONS: u8 = 0x10;
    pub const USE_ORDERS: u8 = 0x20;
    pub const PROPERTIES: u8 = 0x40;
    pub const UNUSED: u8 = 0x80;
}

impl<'a> Bytecode<'a> {
    /// Decodes a module. `base` is the offset of `bytes` in the user's file, for messages.
    ///
    /// Fails on anything malformed, with the offset; on bytecode newer than [`NEWEST_VERSION`]; on cycles and on nesting beyond the limits
    /// in [`crate::reader`].
    pub fn read(bytes: &'a [u8], base: u64) -> Result<Self> {
        Ok(Self::read_with_layout(bytes, base)?.0)
    }

    /// Decodes a module as [`Bytecode::read`] does, and says how many bytes each part of it takes.
    ///
    /// # Errors
    /// Those of [`Bytecode::read`].
    pub fn read_with_layout(bytes: &'a [u8], base: u64) -> Result<(Self, Layout<'a>)> {
        let mut reader = Reader::new(bytes, base);
        if reader.bytes(4, "the magic number")? != MAGIC {
            return Err(Error::format("not MLIR bytecode: the magic number `ML\\xEFR` is missing").at(base));
        }
        let version = reader.varint("the bytecode version")?;
        if version > NEWEST_VERSION {
            let message = format!("bytecode version {version} is newer than {NEWEST_VERSION}, the newest we know");
            return Err(Error::unsupported(message).at(base + 4).with_hint("a newer jaxprism may read it"));
        }
        let producer = reader.c_string("the producer's name")?;
        let mut sections = Sections::read(&mut reader, version)?;
        let mut layout = sections.layout(bytes.len());
        let strings = read_strings(sections.take(section::STRING)?, &mut layout)?;
        let mut tables = Tables::new();
        let (dialects, op_names) = read_dialects(sections.take(section::DIALECT)?, version, &strings, &mut tables)?;
        let resources = read_resources(&mut sections, &strings, &dialects)?;
        let handles = resources.dialect.iter().map(|(_, group)| group.len()).sum();
        let offsets = sections.take(section::ATTR_TYPE_OFFSET)?;
        let entries = RawEntries::read(offsets, sections.take(section::ATTR_TYPE)?, &strings, &dialects, handles)?;
        let mut unreadable = entries.unreadable(&tables);
        let (attributes, types) = entries.intern(&mut tables, &mut layout)?;
        let properties = match sections.get(section::PROPERTIES) {
            Some(reader) => read_properties(reader, &mut layout)?,
            None => Vec::new(),
        };
        let code = CodeReader::new(version, &attributes, &types, &op_names, &properties, &mut tables);
        let (tree, each_operation, unknown) = code.read(sections.take(section::IR)?)?;
        unreadable = unreadable.or(unknown);
        (layout.each_dialect, layout.each_name, layout.each_operation) = (dialects, op_names, each_operation);
        let producer = producer.into();
        Ok((Self { version, producer, tables, tree, resources, is_from_text: false, unreadable }, layout))
    }
}

impl<'a> Bytecode<'a> {
    /// The sections of a module that [`Bytecode::read`] reads, by name, in the order of their numbers.
    pub(crate) fn sections(bytes: &'a [u8]) -> Result<Vec<(&'static str, &'a [u8])>> {
        let mut reader = Reader::new(bytes, 0);
        reader.bytes(MAGIC.len() as u64, "the magic number")?;
        let version = reader.varint("the bytecode version")?;
        reader.c_string("the producer's name")?;
        let sections = Sections::read(&mut reader, version)?;
        let named = section::NAMES.iter().zip(sections.found).filter_map(|(name, body)| Some((*name, body?)));
        named.map(|(name, mut body)| Ok((name, body.bytes(body.remaining() as u64, name)?))).collect()
    }
}

struct Sections<'a> {
    found: [Option<Reader<'a>>; section::NAMES.len()],
    end: u64,
}

impl<'a> Sections<'a> {
    fn read(reader: &mut Reader<'a>, version: u64) -> Result<Self> {
        let mut sections = Self { found: Default::default(), end: 0 };
        while !reader.is_empty() {
            let start = reader.offset();
            let (id, body) = read_section(reader)?;
            let slot = sections.found.get_mut(usize::from(id)).filter(|_| id != section::DIALECT_VERSIONS);
            match slot {
                None => return Err(Error::format(format!("unknown section {id}")).at(start)),
                Some(Some(_)) => return Err(Error::format(format!("a second {}", section::NAMES[usize::from(id)])).at(start)),
                Some(empty) => *empty = Some(body),
            }
        }
        sections.end = reader.offset();
        match &sections.found[usize::from(section::PROPERTIES)] {
            None if version >= 5 => return Err(sections.missing(section::PROPERTIES)),
            Some(body) if version < 5 => {
                return Err(body.error(format!("a properties section, which bytecode version {version} does not have")));
            }
            _ => {}
        }
        Ok(sections)
    }

    /// The sizes of the sections; what is left of the module are headers.
    fn layout(&self, module: usize) -> Layout<'a> {
        let size = |id: u8| self.found[usize::from(id)].as_ref().map_or(0, |body| body.remaining() as u64);
        let mut layout = Layout {
            strings: size(section::STRING),
            names: size(section::DIALECT),
            entries: size(section::ATTR_TYPE),
            offsets: size(section::ATTR_TYPE_OFFSET),
            operations: size(section::IR),
            properties: size(section::PROPERTIES),
            resources: size(section::RESOURCE) + size(section::RESOURCE_OFFSET),
            ..Layout::default()
        };
        layout.headers = module as u64 - layout.total();
        layout
    }

    fn get(&mut self, id: u8) -> Option<Reader<'a>> {
        self.found[usize::from(id)].take()
    }

    fn take(&mut self, id: u8) -> Result<Reader<'a>> {
        self.get(id).ok_or_else(|| self.missing(id))
    }

    fn missing(&self, id: u8) -> Error {
        let message = format!("the {} is missing", section::NAMES[usize::from(id)]);
        Error::format(message).at(self.end).with_hint("the file may be truncated")
    }
}

/// Reads one section header and splits its body off.
fn read_section<'a>(reader: &mut Reader<'a>) -> Result<(u8, Reader<'a>)> {
    let tag = reader.byte("a section")?;
    let length = reader.varint("a section's length")?;
    if tag & 0x80 != 0 {
        let start = reader.offset();
        let alignment = reader.varint("a section's alignment")?;
        // Alignment counts from the start of the module in memory, which the file cannot promise. So the padding is what says where it ends.
        if !alignment.is_power_of_two() || alignment > 1 << 16 {
            return Err(Error::format(format!("a section's alignment is {alignment}")).at(start));
        }
        skip_padding(reader, alignment, length)?;
    }
    let id = tag & 0x7f;
    let name = section::NAMES.get(usize::from(id)).copied().unwrap_or("section");
    Ok((id, reader.split(length, name)?))
}

/// The byte that MLIR pads with.
pub(super) const PADDING: u8 = 0xCB;

fn skip_padding(reader: &mut Reader<'_>, alignment: u64, length: u64) -> Result<()> {
    let mut skipped = 0;
    while (reader.remaining() as u64) > length && skipped < alignment {
        let mut ahead = reader.clone();
        if ahead.byte("padding")? != PADDING {
            break;
        }
        *reader = ahead;
        skipped += 1;
    }
    Ok(())
}

fn read_strings<'a>(mut reader: Reader<'a>, layout: &mut Layout<'a>) -> Result<Vec<&'a [u8]>> {
    let count = reader.count("strings")?;
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        let start = reader.offset();
        match reader.varint("a string's size")? {
            0 => return Err(Error::format("a string of size 0, without room for its NUL").at(start)),
            size => sizes.push((size, size + reader.offset() - start)),
        }
    }
    let mut strings = Vec::with_capacity(count);
    layout.each_string.reserve_exact(count);
    for (size, bytes) in sizes.into_iter().rev() {
        let start = reader.offset();
        match reader.bytes(size, "a string")? {
            [text @ .., 0] => {
                strings.push(text);
                layout.each_string.push((text, bytes));
            }
            _ => return Err(Error::format("a string does not end in NUL").at(start)),
        }
    }
    reader.finish("the string section")?;
    Ok(strings)
}

fn string<'a>(reader: &mut Reader<'_>, strings: &[&'a [u8]]) -> Result<&'a [u8]> {
    Ok(strings[reader.index(strings.len(), "string")? as usize])
}

fn read_dialects<'a>(
    mut reader: Reader<'a>,
    version: u64,
    strings: &[&'a [u8]],
    tables: &mut Tables<'a>,
) -> Result<(Vec<DialectId>, Vec<OpNameId>)> {
    let count = reader.count("dialects")?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let start = reader.offset();
        let (name, has_version) = if version < 1 { (reader.varint("a name")?, false) } else { reader.varint_with_flag("a name")? };
        let name = strings[check_index(name, strings.len(), "string", start)? as usize];
        let mut dialect_version = None;
        if has_version {
            let (id, mut body) = read_section(&mut reader)?;
            if id != section::DIALECT_VERSIONS {
                return Err(Error::format("a dialect's version is no version section").at(start));
            }
            dialect_version = Some(body.bytes(body.remaining() as u64, "a dialect's version")?);
        }
        dialects.push(tables.intern_dialect(name, dialect_version));
    }
    if version >= 4 {
        // A hint for allocation in MLIR's reader; costs nothing to be wrong, so it is not trusted.
        reader.varint("the number of operation names")?;
    }
    let mut op_names = Vec::new();
    while !reader.is_empty() {
        let dialect = dialects[reader.index(dialects.len(), "dialect")? as usize];
        for _ in 0..reader.count("operation names")? {
            let start = reader.offset();
            let (name, registered) = if version < 5 { (reader.varint("a name")?, true) } else { reader.varint_with_flag("a name")? };
            let name = strings[check_index(name, strings.len(), "string", start)? as usize];
            op_names.push(tables.intern_op_name(dialect, Cow::Borrowed(name), registered));
        }
    }
    Ok((dialects, op_names))
}

fn read_resources<'a>(sections: &mut Sections<'a>, strings: &[&'a [u8]], dialects: &[DialectId]) -> Result<Resources<'a>> {
    let (mut offsets, mut data) = match (sections.get(section::RESOURCE_OFFSET), sections.get(section::RESOURCE)) {
        (Some(offsets), Some(data)) => (offsets, data),
        (None, None) => return Ok(Resources::default()),
        (None, Some(_)) => return Err(sections.missing(section::RESOURCE_OFFSET)),
        (Some(_), None) => return Err(sections.missing(section::RESOURCE)),
    };
    let mut resources = Resources::default();
    let start = data.offset();
    for _ in 0..offsets.count("external resource groups")? {
        let key = string(&mut offsets, strings)?;
        resources.external.push((key, read_resource_group(&mut offsets, &mut data, start, strings)?));
    }
    while !offsets.is_empty() {
        let dialect = dialects[offsets.index(dialects.len(), "dialect")? as usize];
        resources.dialect.push((dialect, read_resource_group(&mut offsets, &mut data, start, strings)?));
    }
    data.finish("the resource section")?;
    Ok(resources)
}

/// Reads one group. `section` is the offset of the data section, from which alignment counts.
fn read_resource_group<'a>(
    offsets: &mut Reader<'a>,
    data: &mut Reader<'a>,
    section: u64,
    strings: &[&'a [u8]],
) -> Result<Vec<Resource<'a>>> {
    let count = offsets.count("resources")?;
    let mut group = Vec::with_capacity(count);
    for _ in 0..count {
        let key = string(offsets, strings)?;
        let size = offsets.varint("a resource's size")?;
        let kind_at = offsets.offset();
        let kind = offsets.byte("a resource's kind")?;
        let mut body = data.split(size, "a resource")?;
        let held = match (size, kind) {
            (0, 0..=2) => None,
            (_, 0) => {
                let start = body.offset();
                let alignment = body.varint("a blob's alignment")?;
                if !alignment.is_power_of_two() {
                    return Err(Error::format(format!("a blob's alignment is {alignment}")).at(start));
                }
                let length = body.varint("a blob's length")?;
                // Exactly as much padding as the writer makes, so that no small file becomes a large one.
                let padding = (body.offset() - section).wrapping_neg() & (alignment - 1);
                body.bytes(padding, "a blob's padding")?;
                Some(ResourceData::Blob { alignment, bytes: body.bytes(length, "a blob")? })
            }
            (_, 1) => Some(ResourceData::Bool(body.byte("a boolean")?)),
            (_, 2) => Some(ResourceData::String(string(&mut body, strings)?)),
            _ => return Err(Error::format(format!("unknown resource kind {kind}")).at(kind_at)),
        };
        body.finish("a resource")?;
        group.push(Resource { key, kind, data: held });
    }
    Ok(group)
}

fn read_properties<'a>(mut reader: Reader<'a>, layout: &mut Layout<'_>) -> Result<Vec<Reader<'a>>> {
    if reader.is_empty() {
        return Ok(Vec::new());
    }
    let count = reader.count("properties")?;
    let mut blobs = Vec::with_capacity(count);
    for _ in 0..count {
        let start = reader.offset();
        let size = reader.varint("the size of properties")?;
        blobs.push(reader.split(size, "properties")?);
        layout.each_properties.push(reader.offset() - start);
    }
    reader.finish("the properties section")?;
    Ok(blobs)
}
