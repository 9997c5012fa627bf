//! Bytes → [`Bytecode`]. Sections, then the tables, then the operations; nothing recurses over the input.

use std::borrow::Cow;

use super::tables::{AttributeId, Bytes, Code, DialectId, Entry, EntryRow, Field, Kind, OpNameId, Tables, TypeId, entry_row};
use super::tree::{Block, OpTree, Operation, Region, Span, UseOrder, ValueId};
use super::{Bytecode, MAGIC, NEWEST_VERSION, Resource, ResourceData, Resources, check};
use crate::error::{Error, Result};
use crate::reader::{MAX_ATTRIBUTE_DEPTH, MAX_REGION_DEPTH, Reader, check_index};

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
        let strings = read_strings(sections.take(section::STRING)?)?;
        let mut tables = Tables::new();
        let (dialects, op_names) = read_dialects(sections.take(section::DIALECT)?, version, &strings, &mut tables)?;
        let resources = read_resources(&mut sections, &strings, &dialects)?;
        let handles = resources.dialect.iter().map(|(_, group)| group.len()).sum();
        let offsets = sections.take(section::ATTR_TYPE_OFFSET)?;
        let entries = RawEntries::read(offsets, sections.take(section::ATTR_TYPE)?, &strings, &dialects, handles)?;
        let mut unreadable = entries.unreadable(&tables);
        let (attributes, types) = entries.intern(&mut tables)?;
        let properties = match sections.get(section::PROPERTIES) {
            Some(reader) => read_properties(reader)?,
            None => Vec::new(),
        };
        let code = CodeReader::new(version, &attributes, &types, &op_names, &properties, &mut tables);
        let (tree, unknown) = code.read(sections.take(section::IR)?)?;
        unreadable = unreadable.or(unknown);
        Ok(Self { version, producer, tables, tree, resources, unreadable })
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

fn read_strings<'a>(mut reader: Reader<'a>) -> Result<Vec<&'a [u8]>> {
    let count = reader.count("strings")?;
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        let start = reader.offset();
        match reader.varint("a string's size")? {
            0 => return Err(Error::format("a string of size 0, without room for its NUL").at(start)),
            size => sizes.push(size),
        }
    }
    let mut strings = Vec::with_capacity(count);
    for size in sizes.into_iter().rev() {
        let start = reader.offset();
        match reader.bytes(size, "a string")? {
            [text @ .., 0] => strings.push(text),
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

fn read_properties(mut reader: Reader<'_>) -> Result<Vec<Reader<'_>>> {
    if reader.is_empty() {
        return Ok(Vec::new());
    }
    let count = reader.count("properties")?;
    let mut blobs = Vec::with_capacity(count);
    for _ in 0..count {
        let size = reader.varint("the size of properties")?;
        blobs.push(reader.split(size, "properties")?);
    }
    reader.finish("the properties section")?;
    Ok(blobs)
}

/// Entries as the file numbers them: ids inside are positions in the file's own tables until [`RawEntries::intern`].
struct RawEntries<'a> {
    attributes: Vec<(Entry<'a>, u64)>,
    types: Vec<(Entry<'a>, u64)>,
}

/// What an entry's fields may refer to.
struct EntryContext<'s, 'a> {
    strings: &'s [&'a [u8]],
    attributes: usize,
    types: usize,
    resources: usize,
}

impl<'a> RawEntries<'a> {
    fn read(mut offsets: Reader<'a>, mut data: Reader<'a>, strings: &[&'a [u8]], dialects: &[DialectId], resources: usize) -> Result<Self> {
        let attribute_count = offsets.count("attributes")?;
        let type_count = offsets.count("types")?;
        let attribute_slots = read_slots(&mut offsets, &mut data, attribute_count, dialects)?;
        let type_slots = read_slots(&mut offsets, &mut data, type_count, dialects)?;
        offsets.finish("the attribute and type offset section")?;
        data.finish("the attribute and type section")?;
        let context = EntryContext { strings, attributes: attribute_count, types: type_count, resources };
        // Types first: the width of an integer attribute is that of its type.
        let mut types = Vec::with_capacity(type_count);
        for slot in type_slots {
            types.push((slot.read(&context, true, &[])?, slot.reader.offset()));
        }
        let mut attributes = Vec::with_capacity(attribute_count);
        for (position, slot) in attribute_slots.iter().enumerate() {
            let mut entry = slot.read(&context, false, &types)?;
            if entry.is(super::dialect::BUILTIN, super::code::builtin::DISTINCT) {
                entry.identity = position as u32 + 1;
            }
            attributes.push((entry, slot.reader.offset()));
        }
        Ok(Self { attributes, types })
    }

    /// Names the first entry whose references are unknown.
    fn unreadable(&self, tables: &Tables<'a>) -> Option<String> {
        let all = self.attributes.iter().map(|entry| (entry, "attribute")).chain(self.types.iter().map(|entry| (entry, "type")));
        let mut opaque = all.filter(|((entry, _), _)| entry.code == Code::Opaque);
        let ((entry, offset), what) = opaque.next()?;
        let dialect = String::from_utf8_lossy(tables.dialect(entry.dialect)).into_owned();
        Some(
            format!("an {what} of dialect `{dialect}` in an encoding that is not known here (at offset {offset:#x})")
                .replace("an type", "a type"),
        )
    }

    /// Moves every entry into the tables, children first, and returns where each one went. Fails on cycles and on chains that are too long.
    fn intern(self, tables: &mut Tables<'a>) -> Result<(Vec<AttributeId>, Vec<TypeId>)> {
        const UNSEEN: u32 = 0;
        const OPEN: u32 = u32::MAX;
        let split = self.attributes.len();
        let mut nodes: Vec<(Entry<'a>, u64)> = self.attributes;
        nodes.extend(self.types);
        // Depth of the longest chain below each node; 0 = not seen, OPEN = on the way down from it.
        let mut depth = vec![UNSEEN; nodes.len()];
        let mut target = vec![0; nodes.len()];
        let mut stack: Vec<(usize, usize, u32)> = Vec::new();
        let node_of = |field: &Field<'_>| match field {
            Field::Attribute(id) => Some(id.index()),
            Field::Type(id) => Some(split + id.index()),
            _ => None,
        };
        for root in 0..nodes.len() {
            if depth[root] != UNSEEN {
                continue;
            }
            depth[root] = OPEN;
            stack.push((root, 0, 1));
            while let Some((node, next, deepest)) = stack.last_mut() {
                let offset = nodes[*node].1;
                let fields = &nodes[*node].0.fields;
                let child = fields[*next..].iter().enumerate().find_map(|(skipped, field)| Some((skipped, node_of(field)?)));
                if let Some((skipped, child)) = child {
                    match depth[child] {
                        UNSEEN => {
                            depth[child] = OPEN;
                            stack.push((child, 0, 1));
                        }
                        OPEN => return Err(Error::format("an attribute or type contains itself").at(offset)),
                        below => {
                            *next += skipped + 1;
                            *deepest = (*deepest).max(below + 1);
                        }
                    }
                    continue;
                }
                if *deepest as usize > MAX_ATTRIBUTE_DEPTH {
                    let message = format!("attributes or locations nest deeper than {MAX_ATTRIBUTE_DEPTH}");
                    return Err(Error::unsupported(message).at(offset));
                }
                let node = *node;
                depth[node] = *deepest;
                stack.pop();
                let empty = Entry { dialect: DialectId(0), code: Code::Opaque, identity: 0, fields: Box::new([]) };
                let mut entry = std::mem::replace(&mut nodes[node].0, empty);
                for field in &mut entry.fields {
                    match field {
                        Field::Attribute(id) => id.0 = target[id.index()],
                        Field::Type(id) => id.0 = target[split + id.index()],
                        _ => {}
                    }
                }
                check::entry(&entry, node >= split, tables).map_err(|error| error.at(offset))?;
                target[node] = if node < split { tables.intern_attribute(entry).0 } else { tables.intern_type(entry).0 };
            }
        }
        let types = target.split_off(split);
        Ok((target.into_iter().map(AttributeId).collect(), types.into_iter().map(TypeId).collect()))
    }
}

/// Where one entry's bytes are.
struct Slot<'a> {
    dialect: DialectId,
    is_custom: bool,
    reader: Reader<'a>,
}

fn read_slots<'a>(offsets: &mut Reader<'a>, data: &mut Reader<'a>, count: usize, dialects: &[DialectId]) -> Result<Vec<Slot<'a>>> {
    let mut slots = Vec::with_capacity(count);
    while slots.len() < count {
        let dialect = dialects[offsets.index(dialects.len(), "dialect")? as usize];
        let start = offsets.offset();
        let group = offsets.count("entries of a group")?;
        if group > count - slots.len() {
            let message = format!("a group of {group} entries, but {} are left of {count}", count - slots.len());
            return Err(Error::format(message).at(start));
        }
        for _ in 0..group {
            let (size, is_custom) = offsets.varint_with_flag("an entry's size")?;
            slots.push(Slot { dialect, is_custom, reader: data.split(size, "an attribute or type")? });
        }
    }
    Ok(slots)
}

impl<'a> Slot<'a> {
    fn read(&self, context: &EntryContext<'_, 'a>, is_type: bool, types: &[(Entry<'a>, u64)]) -> Result<Entry<'a>> {
        let mut reader = self.reader.clone();
        let entry = |code, field| Entry { dialect: self.dialect, code, identity: 0, fields: Box::new([field]) };
        if !self.is_custom {
            let text = reader.c_string("an attribute's text")?;
            reader.finish("an attribute's text")?;
            return Ok(entry(Code::Text, Field::String(Bytes(Cow::Borrowed(text)))));
        }
        let start = reader.offset();
        let code = reader.varint("a code")?;
        let Some(row) = u8::try_from(code).ok().and_then(|code| entry_row(self.dialect, is_type, code)) else {
            if matches!(self.dialect, super::dialect::BUILTIN | super::dialect::VHLO) {
                let dialect = if self.dialect == super::dialect::VHLO { "vhlo" } else { "builtin" };
                let message = format!("unknown {dialect} {} code {code}", if is_type { "type" } else { "attribute" });
                return Err(Error::unsupported(message).at(start).with_hint("the file may come from a newer StableHLO or MLIR"));
            }
            let mut whole = self.reader.clone();
            let bytes = whole.bytes(whole.remaining() as u64, "an entry")?;
            return Ok(entry(Code::Opaque, Field::Blob(Bytes(Cow::Borrowed(bytes)))));
        };
        let mut fields = Vec::with_capacity(row.fields.len());
        for kind in row.fields {
            read_field(&mut reader, *kind, row, context, types, &mut fields)?;
        }
        reader.finish(row.name)?;
        Ok(Entry { dialect: self.dialect, code: Code::Known(row.code), identity: 0, fields: fields.into() })
    }
}

fn read_field<'a>(
    reader: &mut Reader<'a>,
    kind: Kind,
    row: &EntryRow,
    context: &EntryContext<'_, 'a>,
    types: &[(Entry<'a>, u64)],
    fields: &mut Vec<Field<'a>>,
) -> Result<()> {
    let what = row.name;
    let attribute = |reader: &mut Reader<'a>| Ok::<_, Error>(Field::Attribute(AttributeId(reader.index(context.attributes, "attribute")?)));
    let text = |bytes| Bytes(Cow::Borrowed(bytes));
    let mut list = |reader: &mut Reader<'a>, item: &dyn Fn(&mut Reader<'a>) -> Result<Field<'a>>| {
        let count = reader.count(what)?;
        fields.push(Field::Count(count as u32));
        fields.reserve(count);
        (0..count).try_for_each(|_| item(reader).map(|field| fields.push(field)))
    };
    let field = match kind {
        Kind::Attribute => attribute(reader)?,
        Kind::OptionalAttribute => {
            let start = reader.offset();
            match reader.varint_with_flag(what)? {
                (index, true) => Field::Attribute(AttributeId(check_index(index, context.attributes, "attribute", start)?)),
                (_, false) => Field::Absent,
            }
        }
        Kind::PresentAttribute => match reader.varint(what)? {
            0 => Field::Absent,
            _ => attribute(reader)?,
        },
        Kind::Attributes => return list(reader, &attribute),
        Kind::AttributePairs => {
            let count = reader.count(what)?;
            fields.push(Field::Count(count as u32));
            return (0..2 * count).try_for_each(|_| attribute(reader).map(|field| fields.push(field)));
        }
        Kind::Type => Field::Type(TypeId(reader.index(context.types, "type")?)),
        Kind::Types => return list(reader, &|reader| Ok(Field::Type(TypeId(reader.index(context.types, "type")?)))),
        Kind::Unsigned => Field::Unsigned(reader.varint(what)?),
        Kind::OptionalUnsigned => match reader.varint_with_flag(what)? {
            (value, true) => Field::Unsigned(value),
            (_, false) => Field::Absent,
        },
        Kind::UnsignedList => return list(reader, &|reader| Ok(Field::Unsigned(reader.varint(what)?))),
        Kind::Byte => Field::Unsigned(u64::from(reader.byte(what)?)),
        Kind::ByteList => return list(reader, &|reader| Ok(Field::Unsigned(u64::from(reader.byte(what)?)))),
        Kind::Signed => Field::Signed(reader.signed_varint(what)?),
        Kind::SignedList => return list(reader, &|reader| Ok(Field::Signed(reader.signed_varint(what)?))),
        Kind::String => Field::String(text(string(reader, context.strings)?)),
        Kind::ElementStrings => return read_element_strings(reader, context, types, fields),
        Kind::Blob => {
            let length = reader.varint(what)?;
            Field::Blob(text(reader.bytes(length, what)?))
        }
        Kind::Bits => return read_bits(reader, row, types, fields),
        Kind::Double => Field::Unsigned(reader.signed_varint(what)? as u64),
        Kind::DoubleList => return list(reader, &|reader| Ok(Field::Unsigned(reader.signed_varint(what)? as u64))),
        Kind::Resource => Field::Unsigned(u64::from(reader.index(context.resources, "resource")?)),
        Kind::Rest => Field::Blob(text(reader.bytes(reader.remaining() as u64, what)?)),
    };
    fields.push(field);
    Ok(())
}

/// Reads the strings of a `dense_string_elements`: one if it is a splat, else one for each element.
fn read_element_strings<'a>(
    reader: &mut Reader<'a>,
    context: &EntryContext<'_, 'a>,
    types: &[(Entry<'a>, u64)],
    fields: &mut Vec<Field<'a>>,
) -> Result<()> {
    let start = reader.offset();
    let count = match &fields[..] {
        [_, Field::Unsigned(1)] => Some(1),
        [Field::Type(id), _] => check::element_count(&types[id.index()].0),
        _ => None,
    };
    let count = count.ok_or_else(|| Error::format("strings of a type without a shape").at(start))?;
    let count = reader.check_count(count, "strings", start)?;
    fields.push(Field::Count(count as u32));
    for _ in 0..count {
        fields.push(Field::String(Bytes(Cow::Borrowed(string(reader, context.strings)?))));
    }
    Ok(())
}

/// Reads the bits of an integer or float whose type stands in the first field.
fn read_bits<'a>(reader: &mut Reader<'a>, row: &EntryRow, types: &[(Entry<'a>, u64)], fields: &mut Vec<Field<'a>>) -> Result<()> {
    let start = reader.offset();
    let width = match fields.first() {
        Some(Field::Type(id)) => check::bit_width(&types[id.index()].0, row.name),
        _ => None,
    };
    match width {
        None => return Err(Error::format(format!("{} of a type that has no bits of its kind", row.name)).at(start)),
        Some(0..=8) => fields.push(Field::Unsigned(u64::from(reader.byte(row.name)?))),
        Some(9..=64) => fields.push(Field::Unsigned(reader.signed_varint(row.name)? as u64)),
        Some(_) => {
            let count = reader.count("words")?;
            fields.push(Field::Count(count as u32));
            for _ in 0..count {
                fields.push(Field::Unsigned(reader.signed_varint(row.name)? as u64));
            }
        }
    }
    Ok(())
}

/// A stretch of the tree that is being read: the regions of one operation, from the current one on.
struct Frame {
    operation: usize,
    is_isolated: bool,
    region: usize,
    regions_end: usize,
    block: usize,
    blocks_end: usize,
    operations_left: usize,
    next_value: usize,
    values_end: usize,
    /// How many values were visible before the current region.
    visible: usize,
}

/// Most items in the dictionaries of operations for each byte of the IR section. Operations take five bytes or more, and have up to 17 attributes.
const ITEMS_PER_BYTE: usize = 16;

/// Reads the IR section with an explicit stack.
struct CodeReader<'t, 'a> {
    version: u64,
    attributes: &'t [AttributeId],
    types: &'t [TypeId],
    op_names: &'t [OpNameId],
    properties: &'t [Reader<'a>],
    tables: &'t mut Tables<'a>,
    unknown_location: AttributeId,
    tree: OpTree,
    /// The values that ids in the current isolation scope stand for, scopes one behind the other.
    visible: Vec<ValueId>,
    /// Where the current scope begins in `visible`.
    scopes: Vec<usize>,
    frames: Vec<Frame>,
    defined: Vec<bool>,
    /// Bytes of the IR section. Every region, block and value takes one of them, however deep it is.
    bytes: usize,
    /// Items of the dictionaries of all operations so far, each dictionary as often as it is named.
    items: usize,
    /// Pairs of a use-list order that need the number of uses, which is known at the end.
    pending_orders: Vec<(ValueId, bool, Vec<u64>, u64)>,
    unreadable: Option<String>,
}

impl<'t, 'a> CodeReader<'t, 'a> {
    fn new(
        version: u64,
        attributes: &'t [AttributeId],
        types: &'t [TypeId],
        op_names: &'t [OpNameId],
        properties: &'t [Reader<'a>],
        tables: &'t mut Tables<'a>,
    ) -> Self {
        let unknown_location = tables.unknown_location();
        Self {
            version,
            attributes,
            types,
            op_names,
            properties,
            tables,
            unknown_location,
            tree: OpTree::default(),
            visible: Vec::new(),
            scopes: vec![0],
            frames: Vec::new(),
            defined: Vec::new(),
            bytes: 0,
            items: 0,
            pending_orders: Vec::new(),
            unreadable: None,
        }
    }

    fn read(mut self, reader: Reader<'a>) -> Result<(OpTree, Option<String>)> {
        self.bytes = reader.remaining();
        let mut readers = vec![reader];
        let top = &mut readers[0];
        let start = top.offset();
        let (count, has_arguments) = top.varint_with_flag("the top block")?;
        if has_arguments {
            return Err(Error::format("the top block has arguments").at(start));
        }
        if count != 1 {
            return Err(Error::format(format!("{count} operations at the top, not one module")).at(start));
        }
        self.read_operation(&mut readers)?;
        while let Some(frame) = self.frames.last_mut() {
            if frame.operations_left > 0 {
                frame.operations_left -= 1;
                self.read_operation(&mut readers)?;
            } else if frame.block < frame.blocks_end {
                self.next_block(&mut readers)?;
            } else {
                self.next_region(&mut readers)?;
            }
        }
        readers[0].finish("the IR section")?;
        self.resolve_orders()?;
        Ok((self.tree, self.unreadable))
    }

    fn read_operation(&mut self, readers: &mut Vec<Reader<'a>>) -> Result<()> {
        let reader = readers.last_mut().expect("one reader for each open section");
        let start = reader.offset();
        let name = self.op_names[reader.index(self.op_names.len(), "operation name")? as usize];
        let mask = reader.byte("an operation's mask")?;
        let newer = if self.version < 3 { mask::USE_ORDERS } else { 0 } | if self.version < 5 { mask::PROPERTIES } else { 0 };
        if mask & (mask::UNUSED | newer) != 0 {
            return Err(Error::format(format!("unknown bit in an operation's mask {mask:#x}")).at(start));
        }
        let location = self.attribute(reader)?;
        let attributes = if mask & mask::ATTRIBUTES != 0 { Some(self.attribute(reader)?) } else { None };
        // Operations may share a dictionary, but whoever looks at them looks at it each time.
        self.items += attributes.map_or(0, |id| self.tables.attribute(id).fields.len() / 2);
        if self.items > ITEMS_PER_BYTE * self.bytes {
            let message = format!("the attributes of operations add up to {} in an IR section of {} bytes", self.items, self.bytes);
            return Err(Error::format(message).at(start));
        }
        let properties = if mask & mask::PROPERTIES != 0 { self.read_properties(reader, name)? } else { None };
        let mut results = Span::default();
        if mask & mask::RESULTS != 0 {
            let count = reader.count("results")?;
            results = self.define(count, reader, |this, reader| this.r#type(reader))?;
        }
        let operands = Span::new(self.tree.operands.len(), 0);
        let operands = if mask & mask::OPERANDS != 0 { self.read_operands(reader)? } else { operands };
        let mut successors = Span::new(self.tree.successors.len(), 0);
        if mask & mask::SUCCESSORS != 0 {
            let blocks = self.frames.last().map_or(0, |frame| self.tree.regions[frame.region].blocks.len as usize);
            let count = reader.count("successors")?;
            successors.len = count as u32;
            for _ in 0..count {
                self.tree.successors.push(reader.index(blocks, "block")?);
            }
        }
        if mask & mask::USE_ORDERS != 0 {
            self.read_use_orders(reader, results)?;
        }
        let mut regions = Span::new(self.tree.regions.len(), 0);
        let mut is_isolated = false;
        if mask & mask::REGIONS != 0 {
            let at = reader.offset();
            let (count, flag) = reader.varint_with_flag("regions")?;
            let count = reader.check_count(count, "regions", at)?;
            self.check_total(self.tree.regions.len() + count, "regions", at)?;
            is_isolated = flag;
            regions.len = count as u32;
            if self.frames.len() >= MAX_REGION_DEPTH {
                return Err(Error::unsupported(format!("regions nest deeper than {MAX_REGION_DEPTH}")).at(at));
            }
        }
        check::operation(self.version, self.tables, &self.tree, name, (attributes, properties)).map_err(|error| error.at(start))?;
        let position = self.tree.operations.len();
        self.tree.regions.resize(regions.range().end, Region { owner: position as u32, ..Region::default() });
        let end = position as u32 + 1;
        self.tree.operations.push(Operation { name, location, attributes, properties, results, operands, successors, regions, end });
        if mask & mask::REGIONS != 0 {
            if is_isolated && self.version >= 2 {
                let (id, body) = read_section(reader)?;
                if id != section::IR {
                    return Err(Error::format("the section of a region is no IR section").at(start));
                }
                readers.push(body);
            }
            if is_isolated {
                self.scopes.push(self.visible.len());
            }
            let visible = self.visible.len();
            let region = regions.start as usize;
            self.frames.push(Frame {
                operation: position,
                is_isolated,
                region,
                regions_end: regions.range().end,
                block: 0,
                blocks_end: 0,
                operations_left: 0,
                next_value: 0,
                values_end: 0,
                visible,
            });
            if regions.len == 0 {
                self.close_operation(readers)?;
            } else {
                self.open_region(readers)?;
            }
        }
        Ok(())
    }

    /// Reads a region's header: how many blocks, and how many values they define.
    fn open_region(&mut self, readers: &mut [Reader<'a>]) -> Result<()> {
        let reader = readers.last_mut().expect("one reader for each open section");
        let at = reader.offset();
        let blocks = reader.count("blocks")?;
        self.check_total(self.tree.blocks.len() + blocks, "blocks", at)?;
        let at = reader.offset();
        let values = if blocks == 0 { 0 } else { reader.count("values of a region")? };
        self.check_total(self.tree.value_types.len() + values, "values", at)?;
        let frame = self.frames.last_mut().expect("a region is read inside a frame");
        let region = &mut self.tree.regions[frame.region];
        region.blocks = Span::new(self.tree.blocks.len(), blocks);
        region.values = Span::new(self.tree.value_types.len(), values);
        frame.block = region.blocks.start as usize;
        frame.blocks_end = region.blocks.range().end;
        frame.next_value = region.values.start as usize;
        frame.values_end = region.values.range().end;
        frame.visible = self.visible.len();
        self.tree.blocks.resize(frame.blocks_end, Block::default());
        self.tree.value_types.resize(frame.values_end, TypeId(0));
        self.defined.resize(frame.values_end, false);
        self.visible.extend((frame.next_value..frame.values_end).map(|value| ValueId(value as u32)));
        Ok(())
    }

    /// Fails if there are more of something than the section can hold. Without this, regions inside one another could each claim what is left.
    fn check_total(&self, total: usize, what: &str, at: u64) -> Result<()> {
        if total > self.bytes {
            return Err(Error::format(format!("{total} {what} in an IR section of {} bytes", self.bytes)).at(at));
        }
        Ok(())
    }

    fn next_block(&mut self, readers: &mut [Reader<'a>]) -> Result<()> {
        let reader = readers.last_mut().expect("one reader for each open section");
        let frame = self.frames.last_mut().expect("a block is read inside a frame");
        let at = reader.offset();
        let (operations, has_arguments) = reader.varint_with_flag("operations")?;
        frame.operations_left = reader.check_count(operations, "operations", at)?;
        let position = frame.block;
        frame.block += 1;
        self.close_blocks(position);
        let first = self.tree.operations.len() as u32;
        let locations = self.tree.argument_locations.len() as u32;
        let mut arguments = Span::default();
        if has_arguments {
            let count = reader.count("block arguments")?;
            arguments = self.define(count, reader, |this, reader| {
                let at = reader.offset();
                let (index, has_location) =
                    if this.version >= 4 { reader.varint_with_flag("a type")? } else { (reader.varint("a type")?, true) };
                let argument_type = this.types[check_index(index, this.types.len(), "type", at)? as usize];
                let location = if has_location { this.attribute(reader)? } else { this.unknown_location };
                this.tree.argument_locations.push(location);
                Ok(argument_type)
            })?;
            if self.version >= 3 && reader.byte("a use-list flag")? != 0 {
                self.read_use_orders(reader, arguments)?;
            }
        }
        self.tree.blocks[position] = Block { arguments, locations, first, end: first };
        Ok(())
    }

    /// Notes where the block before `position` in the current region ends.
    fn close_blocks(&mut self, position: usize) {
        let frame = self.frames.last().expect("a block is read inside a frame");
        if position > self.tree.regions[frame.region].blocks.start as usize {
            self.tree.blocks[position - 1].end = self.tree.operations.len() as u32;
        }
    }

    fn next_region(&mut self, readers: &mut Vec<Reader<'a>>) -> Result<()> {
        let reader = readers.last().expect("one reader for each open section");
        let frame = self.frames.last_mut().expect("a region is read inside a frame");
        if frame.next_value != frame.values_end {
            let declared = self.tree.regions[frame.region].values;
            let message = format!("a region of {} values defines {}", declared.len, frame.next_value - declared.start as usize);
            return Err(reader.error(message));
        }
        self.visible.truncate(frame.visible);
        let blocks_end = frame.blocks_end;
        frame.region += 1;
        let is_last = frame.region == frame.regions_end;
        frame.region -= 1;
        self.close_blocks(blocks_end);
        if is_last {
            return self.close_operation(readers);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.region += 1;
        }
        self.open_region(readers)
    }

    fn close_operation(&mut self, readers: &mut Vec<Reader<'a>>) -> Result<()> {
        let frame = self.frames.pop().expect("the operation that is closed was opened");
        self.tree.operations[frame.operation].end = self.tree.operations.len() as u32;
        if frame.is_isolated {
            self.scopes.pop();
            if self.version >= 2 {
                readers.pop().expect("an isolated region has a reader of its own").finish("a region's section")?;
            }
        }
        Ok(())
    }

    /// Defines the next `count` values of the current region, with types from `read_type`.
    fn define(
        &mut self,
        count: usize,
        reader: &mut Reader<'a>,
        mut read_type: impl FnMut(&mut Self, &mut Reader<'a>) -> Result<TypeId>,
    ) -> Result<Span> {
        let (next, end) = self.frames.last().map_or((0, 0), |frame| (frame.next_value, frame.values_end));
        if count > end - next {
            return Err(reader.error(format!("{count} values are defined, but the region has {} left", end - next)));
        }
        for value in next..next + count {
            self.tree.value_types[value] = read_type(self, reader)?;
            self.defined[value] = true;
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.next_value += count;
        }
        Ok(Span::new(next, count))
    }

    fn read_operands(&mut self, reader: &mut Reader<'a>) -> Result<Span> {
        let count = reader.count("operands")?;
        let span = Span::new(self.tree.operands.len(), count);
        let scope = *self.scopes.last().expect("the outermost scope stays open");
        for _ in 0..count {
            let index = reader.index(self.visible.len() - scope, "value")?;
            self.tree.operands.push(self.visible[scope + index as usize]);
        }
        Ok(span)
    }

    /// Reads the inherent attributes of an operation from its property blob.
    fn read_properties(&mut self, reader: &mut Reader<'a>, name: OpNameId) -> Result<Option<Span>> {
        let index = reader.index(self.properties.len(), "properties")?;
        let mut blob = self.properties[index as usize].clone();
        let start = self.tree.properties.len();
        let Some(row) = self.tables.op_row(name) else {
            let text = self.tables.op_name_text(name);
            self.unreadable.get_or_insert_with(|| {
                format!("the properties of operation `{text}`, which is not known here (at offset {:#x})", blob.offset())
            });
            return Ok(None);
        };
        for property in row.properties {
            let at = blob.offset();
            let value = if property.ends_with('?') {
                match blob.varint_with_flag(property)? {
                    (index, true) => Some(self.attributes[check_index(index, self.attributes.len(), "attribute", at)? as usize]),
                    (_, false) => None,
                }
            } else {
                Some(self.attribute(&mut blob)?)
            };
            self.tree.properties.push(value);
        }
        blob.finish(row.name)?;
        Ok(Some(Span::new(start, row.properties.len())))
    }

    fn read_use_orders(&mut self, reader: &mut Reader<'a>, values: Span) -> Result<()> {
        let count = if values.len == 1 { 1 } else { reader.count("use-list orders")? };
        for _ in 0..count {
            let at = reader.offset();
            let index = if values.len == 1 { 0 } else { reader.index(values.len as usize, "value")? };
            let (length, in_pairs) = reader.varint_with_flag("a use-list order")?;
            let length = reader.check_count(length, "uses", at)?;
            let mut numbers = Vec::with_capacity(length);
            for _ in 0..length {
                numbers.push(reader.varint("a use")?);
            }
            self.pending_orders.push((ValueId(values.start + index), in_pairs, numbers, at));
        }
        Ok(())
    }

    /// Turns what was stored of use-list orders into permutations, now that the uses are counted.
    fn resolve_orders(&mut self) -> Result<()> {
        if self.pending_orders.is_empty() {
            return Ok(());
        }
        self.pending_orders.sort_by_key(|(value, ..)| *value);
        if let Some(same) = self.pending_orders.chunk_by(|a, b| a.0 == b.0).find(|same| same.len() > 1) {
            return Err(Error::format("a second use-list order of one value").at(same[1].3));
        }
        let mut uses = vec![0usize; self.tree.value_types.len()];
        self.tree.operands.iter().for_each(|value| uses[value.index()] += 1);
        for (value, in_pairs, numbers, at) in std::mem::take(&mut self.pending_orders) {
            let count = uses[value.index()];
            let wrong = || Error::format("a use-list order is no permutation of the uses").at(at);
            let mut order: Vec<u32> = if in_pairs { (0..count as u32).collect() } else { Vec::with_capacity(count) };
            if in_pairs {
                let (pairs, rest) = numbers.as_chunks::<2>();
                for [from, to] in pairs {
                    let slot = usize::try_from(*from).ok().and_then(|from| order.get_mut(from)).ok_or_else(wrong)?;
                    *slot = u32::try_from(*to).map_err(|_| wrong())?;
                }
                if !rest.is_empty() {
                    return Err(wrong());
                }
            } else {
                order.extend(numbers.iter().map(|number| u32::try_from(*number).unwrap_or(u32::MAX)));
            }
            let mut seen = vec![false; count];
            let is_permutation = order.len() == count
                && order.iter().all(|index| seen.get_mut(*index as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
            if !is_permutation {
                return Err(wrong());
            }
            self.tree.use_orders.push(UseOrder { value, order });
        }
        Ok(())
    }

    fn attribute(&self, reader: &mut Reader<'_>) -> Result<AttributeId> {
        Ok(self.attributes[reader.index(self.attributes.len(), "attribute")? as usize])
    }

    fn r#type(&self, reader: &mut Reader<'_>) -> Result<TypeId> {
        Ok(self.types[reader.index(self.types.len(), "type")? as usize])
    }
}
