//! Attributes and types: where their bytes are, their fields, and their way into the tables.

#![allow(clippy::indexing_slicing, reason = "an index is checked against its table as it is read")]

use std::borrow::Cow;

use super::super::tables::{AttributeId, Bytes, Code, DialectId, Entry, EntryRow, Field, Kind, Tables, TypeId, entry_row};
use super::super::{Layout, check, code, dialect};
use super::{EntryLayout, string};
use crate::error::{Error, Result};
use crate::reader::{MAX_ATTRIBUTE_DEPTH, Reader, check_index};

/// Entries as the file numbers them: ids inside are positions in the file's own tables until [`RawEntries::intern`].
pub(super) struct RawEntries<'a> {
    attributes: Vec<(Entry<'a>, u64)>,
    types: Vec<(Entry<'a>, u64)>,
    /// The bytes of each attribute, then of each type, and the bytes of that size.
    bytes: Vec<(u64, u64)>,
}

/// What an entry's fields may refer to.
struct EntryContext<'s, 'a> {
    strings: &'s [&'a [u8]],
    attributes: usize,
    types: usize,
    resources: usize,
}

impl<'a> RawEntries<'a> {
    pub(super) fn read(
        mut offsets: Reader<'a>,
        mut data: Reader<'a>,
        strings: &[&'a [u8]],
        dialects: &[DialectId],
        resources: usize,
    ) -> Result<Self> {
        let attribute_count = offsets.count("attributes")?;
        let type_count = offsets.count("types")?;
        let attribute_slots = read_slots(&mut offsets, &mut data, attribute_count, dialects)?;
        let type_slots = read_slots(&mut offsets, &mut data, type_count, dialects)?;
        offsets.finish("the attribute and type offset section")?;
        data.finish("the attribute and type section")?;
        let bytes = attribute_slots.iter().chain(&type_slots).map(|slot| (slot.reader.remaining() as u64, slot.size_bytes)).collect();
        let context = EntryContext { strings, attributes: attribute_count, types: type_count, resources };
        // Types first: the width of an integer attribute is that of its type.
        let mut types = Vec::with_capacity(type_count);
        for slot in type_slots {
            types.push((slot.read(&context, true, &[])?, slot.reader.offset()));
        }
        let mut attributes = Vec::with_capacity(attribute_count);
        for (position, slot) in attribute_slots.iter().enumerate() {
            let mut entry = slot.read(&context, false, &types)?;
            if entry.is(dialect::BUILTIN, code::builtin::DISTINCT) {
                entry.identity = position as u32 + 1;
            }
            attributes.push((entry, slot.reader.offset()));
        }
        Ok(Self { attributes, types, bytes })
    }

    /// Names the first entry whose references are unknown.
    pub(super) fn unreadable(&self, tables: &Tables<'a>) -> Option<String> {
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
    pub(super) fn intern(self, tables: &mut Tables<'a>, layout: &mut Layout<'_>) -> Result<(Vec<AttributeId>, Vec<TypeId>)> {
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
        let types: Vec<_> = target.split_off(split).into_iter().map(TypeId).collect();
        let attributes: Vec<_> = target.into_iter().map(AttributeId).collect();
        let (attribute_bytes, type_bytes) = self.bytes.split_at(split);
        layout.each_attribute = attributes.iter().zip(attribute_bytes).map(entry_layout).collect();
        layout.each_type = types.iter().zip(type_bytes).map(entry_layout).collect();
        Ok((attributes, types))
    }
}

fn entry_layout<Id: Copy>((id, (bytes, offset_bytes)): (&Id, &(u64, u64))) -> EntryLayout<Id> {
    EntryLayout { id: *id, bytes: *bytes, offset_bytes: *offset_bytes }
}

/// Where one entry's bytes are.
struct Slot<'a> {
    dialect: DialectId,
    is_custom: bool,
    size_bytes: u64,
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
            let start = offsets.offset();
            let (size, is_custom) = offsets.varint_with_flag("an entry's size")?;
            let size_bytes = offsets.offset() - start;
            slots.push(Slot { dialect, is_custom, size_bytes, reader: data.split(size, "an attribute or type")? });
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
            if matches!(self.dialect, dialect::BUILTIN | dialect::VHLO) {
                let dialect = if self.dialect == dialect::VHLO { "vhlo" } else { "builtin" };
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
