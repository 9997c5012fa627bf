//! [`Bytecode`] → bytes, canonical: see [`super::number`].

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]
#![allow(clippy::expect_used, reason = "sections are opened and closed in pairs")]

use rustc_hash::FxBuildHasher;

use super::number::{Numbering, Strings, hash_map_order, is_unknown_location};
use super::read::{PADDING, mask, section};
use super::tables::{Code, Entry, Field, Kind, entry_row};
use super::tree::{Block, Operation, Span};
use super::{Bytecode, MAGIC, Resource, ResourceData, check};
use crate::error::{Error, Result};
use crate::pieces::Pieces;

impl<'a> Bytecode<'a> {
    /// Encodes the module. Large blobs stay slices of the input.
    ///
    /// Fails only on what cannot be renumbered: entries and properties whose encoding is unknown.
    pub fn write(&self) -> Result<Pieces<'a>> {
        Writer { bytecode: self, numbering: Numbering::new(self)?, strings: Strings::default() }.module()
    }
}

/// Bytes under way, with the alignment that something inside them needs.
#[derive(Default)]
struct Emitter<'a> {
    pieces: Pieces<'a>,
    alignment: u64,
}

/// The bytes of a number, of which so many count.
fn varint(value: u64) -> ([u8; 9], usize) {
    let mut bytes = [0; 9];
    let length = (64 - value.leading_zeros().min(63)).div_ceil(7) as usize;
    if length <= 8 {
        let encoded = ((value << 1) | 1) << (length - 1);
        bytes[..8].copy_from_slice(&encoded.to_le_bytes());
        return (bytes, length);
    }
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    (bytes, 9)
}

impl<'a> Emitter<'a> {
    fn byte(&mut self, byte: u8) {
        self.pieces.push(byte);
    }

    fn varint(&mut self, value: u64) {
        let (bytes, length) = varint(value);
        self.pieces.extend_copied(&bytes[..length]);
    }

    fn signed_varint(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    fn varint_with_flag(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }

    fn align(&mut self, alignment: u64) {
        while !self.pieces.len().is_multiple_of(alignment.max(1)) {
            self.byte(PADDING);
        }
        self.alignment = self.alignment.max(alignment);
    }

    /// Appends a section. Its own alignment is met here, by padding, or by whoever holds this emitter.
    fn section(&mut self, id: u8, body: Emitter<'a>) {
        let mut head = Emitter::default();
        head.varint(body.pieces.len());
        let start = self.pieces.len() + 1 + head.pieces.len();
        let needs_padding = body.alignment > 1 && !start.is_multiple_of(body.alignment);
        self.byte(if needs_padding { id | 0x80 } else { id });
        self.pieces.append(head.pieces);
        if needs_padding {
            self.varint(body.alignment);
            self.align(body.alignment);
        } else {
            self.alignment = self.alignment.max(body.alignment);
        }
        self.pieces.append(body.pieces);
    }
}

struct Writer<'b, 'a> {
    bytecode: &'b Bytecode<'a>,
    numbering: Numbering,
    strings: Strings<'b>,
}

/// The regions of one operation that are still to be written.
struct Frame {
    regions: std::ops::Range<usize>,
    blocks: std::ops::Range<usize>,
    next: u32,
    end: u32,
    has_section: bool,
}

impl<'b, 'a> Writer<'b, 'a> {
    fn module(mut self) -> Result<Pieces<'a>> {
        let mut out = Emitter::default();
        out.pieces.extend_copied(MAGIC);
        out.varint(self.bytecode.version);
        out.pieces.extend_copied(&self.bytecode.producer);
        out.byte(0);
        let dialects = self.dialects();
        out.section(section::DIALECT, dialects);
        let (offsets, entries) = self.entries()?;
        out.section(section::ATTR_TYPE_OFFSET, offsets);
        out.section(section::ATTR_TYPE, entries);
        let mut properties = Properties::default();
        let code = self.code(&mut properties);
        out.section(section::IR, code);
        let (offsets, resources) = self.resources();
        out.section(section::RESOURCE_OFFSET, offsets);
        out.section(section::RESOURCE, resources);
        out.section(section::STRING, self.string_section());
        if self.bytecode.version >= 5 {
            out.section(section::PROPERTIES, properties.section());
        }
        Ok(out.pieces)
    }

    fn dialects(&mut self) -> Emitter<'a> {
        let (bytecode, version) = (self.bytecode, self.bytecode.version);
        let tables = &bytecode.tables;
        let mut out = Emitter::default();
        out.varint(self.numbering.dialects.len() as u64);
        for id in &self.numbering.dialects {
            let name = u64::from(self.strings.number(tables.dialect(*id)));
            let dialect_version = tables.dialect_version(*id);
            if version < 1 {
                out.varint(name);
                continue;
            }
            out.varint_with_flag(name, dialect_version.is_some());
            if let Some(bytes) = dialect_version {
                let mut body = Emitter::default();
                body.pieces.extend_copied(bytes);
                out.section(section::DIALECT_VERSIONS, body);
            }
        }
        if version >= 4 {
            out.varint(self.numbering.op_names.len() as u64);
        }
        for group in self.numbering.op_names.chunk_by(|a, b| tables.op_name(*a).dialect == tables.op_name(*b).dialect) {
            out.varint(u64::from(self.numbering.dialect(tables.op_name(group[0]).dialect)));
            out.varint(group.len() as u64);
            for id in group {
                let name = u64::from(self.strings.number(&tables.op_name(*id).name));
                if version < 5 {
                    out.varint(name);
                } else {
                    out.varint_with_flag(name, tables.op_registered(*id));
                }
            }
        }
        out
    }

    /// The offset section and the data section of attributes and types.
    fn entries(&mut self) -> Result<(Emitter<'a>, Emitter<'a>)> {
        let tables = &self.bytecode.tables;
        let attributes: Vec<_> = self.numbering.attributes.iter().map(|id| tables.attribute(*id)).collect();
        let types: Vec<_> = self.numbering.types.iter().map(|id| tables.r#type(*id)).collect();
        let (mut offsets, mut data) = (Emitter::default(), Emitter::default());
        offsets.varint(attributes.len() as u64);
        offsets.varint(types.len() as u64);
        for (entries, is_type) in [(attributes, false), (types, true)] {
            for group in entries.chunk_by(|a, b| a.dialect == b.dialect) {
                offsets.varint(u64::from(self.numbering.dialect(group[0].dialect)));
                offsets.varint(group.len() as u64);
                for entry in group {
                    let start = data.pieces.len();
                    self.entry(entry, is_type, &mut data)?;
                    offsets.varint_with_flag(data.pieces.len() - start, entry.code != Code::Text);
                }
            }
        }
        Ok((offsets, data))
    }

    fn entry(&mut self, entry: &'b Entry<'a>, is_type: bool, out: &mut Emitter<'a>) -> Result<()> {
        let code = match (entry.code, &entry.fields[..]) {
            (Code::Known(code), _) => code,
            (Code::Text, [Field::String(text)]) => {
                out.pieces.extend_copied(&text.0);
                out.byte(0);
                return Ok(());
            }
            (Code::Opaque, _) => {
                return Err(Error::unsupported("the module holds an attribute or type in an encoding that is not known here"));
            }
            (Code::Text, _) => return Err(Error::bug("a textual entry that is no text")),
        };
        let row = entry_row(entry.dialect, is_type, code).ok_or_else(|| Error::bug(format!("no table row for code {code}")))?;
        out.varint(u64::from(code));
        let mut fields = entry.fields.iter();
        for kind in row.fields {
            if *kind == Kind::Blob && matches!(fields.as_slice().first(), Some(Field::Absent)) {
                return Err(Error::refused("a constant is elided: its bytes are not in the text"));
            }
            let kind = if *kind == Kind::Bits { self.bits_kind(entry, row.name) } else { *kind };
            self.field(kind, &mut fields, out)
                .ok_or_else(|| Error::bug(format!("the fields of `{}` are not those of its row", row.name)))?;
        }
        Ok(())
    }

    /// How the bits of a number are written: one byte up to eight of them, else a varint, or a list of those.
    fn bits_kind(&self, entry: &Entry<'a>, name: &str) -> Kind {
        let width = entry.types().next().and_then(|id| check::bit_width(self.bytecode.tables.r#type(id), name));
        match width {
            Some(0..=8) => Kind::Byte,
            Some(9..=64) => Kind::Double,
            _ => Kind::Bits,
        }
    }

    /// Writes the next field. `None` if it is not what the row says.
    fn field(&mut self, kind: Kind, fields: &mut std::slice::Iter<'b, Field<'a>>, out: &mut Emitter<'a>) -> Option<()> {
        use Field as F;
        match (kind, fields.next()?) {
            (Kind::OptionalAttribute | Kind::OptionalUnsigned | Kind::PresentAttribute, F::Absent) => out.varint(0),
            (Kind::OptionalAttribute, F::Attribute(id)) => out.varint_with_flag(u64::from(self.numbering.attribute(*id)), true),
            (Kind::PresentAttribute, F::Attribute(id)) => {
                out.varint(1);
                out.varint(u64::from(self.numbering.attribute(*id)));
            }
            (Kind::OptionalUnsigned, F::Unsigned(value)) => out.varint_with_flag(*value, true),
            (Kind::Byte, F::Unsigned(value)) => out.byte(*value as u8),
            (Kind::Double, F::Unsigned(bits)) => out.signed_varint(*bits as i64),
            (Kind::Rest, F::Blob(bytes)) => out.pieces.extend_copied(&bytes.0),
            (Kind::Bits, F::Count(count)) => {
                out.varint(u64::from(*count));
                for _ in 0..*count {
                    self.field(Kind::Double, fields, out)?;
                }
            }
            (Kind::ElementStrings, F::Count(count)) => {
                for _ in 0..*count {
                    self.field(Kind::String, fields, out)?;
                }
            }
            (list, F::Count(count)) => {
                let (item, times) = match list {
                    Kind::Attributes => (Kind::Attribute, 1),
                    Kind::AttributePairs => (Kind::Attribute, 2),
                    Kind::Types => (Kind::Type, 1),
                    Kind::UnsignedList => (Kind::Unsigned, 1),
                    Kind::ByteList => (Kind::Byte, 1),
                    Kind::SignedList => (Kind::Signed, 1),
                    Kind::DoubleList => (Kind::Double, 1),
                    _ => return None,
                };
                out.varint(u64::from(*count));
                for _ in 0..u64::from(*count) * times {
                    self.field(item, fields, out)?;
                }
            }
            (_, F::Attribute(id)) => out.varint(u64::from(self.numbering.attribute(*id))),
            (_, F::Type(id)) => out.varint(u64::from(self.numbering.r#type(*id))),
            (_, F::Unsigned(value)) => out.varint(*value),
            (_, F::Signed(value)) => out.signed_varint(*value),
            (_, F::String(text)) => {
                let number = self.strings.number(&text.0);
                out.varint(u64::from(number));
            }
            (_, F::Blob(bytes)) => {
                out.varint(bytes.0.len() as u64);
                match &bytes.0 {
                    std::borrow::Cow::Borrowed(bytes) => out.pieces.extend_borrowed(bytes),
                    std::borrow::Cow::Owned(bytes) => out.pieces.extend_copied(bytes),
                }
            }
            (_, F::Absent) => return None,
        }
        Some(())
    }
}

impl<'b, 'a> Writer<'b, 'a> {
    /// The IR section. Regions with a section of their own get an emitter of their own until they are complete.
    fn code(&mut self, properties: &mut Properties) -> Emitter<'a> {
        let tree = &self.bytecode.tree;
        let mut emitters = vec![Emitter::default()];
        emitters[0].varint_with_flag(tree.top().count() as u64, false);
        let mut frames: Vec<Frame> = Vec::new();
        let top = Frame { regions: 0..0, blocks: 0..0, next: 0, end: tree.operations.len() as u32, has_section: false };
        frames.push(top);
        while let Some(frame) = frames.last_mut() {
            let out = emitters.last_mut().expect("one emitter for each open section");
            if frame.next < frame.end {
                let position = frame.next;
                let operation = &tree.operations[position as usize];
                frame.next = operation.end;
                self.operation(operation, properties, out);
                if operation.regions.len > 0 {
                    let isolated = self.numbering.isolated[position as usize];
                    out.varint_with_flag(u64::from(operation.regions.len), isolated);
                    let has_section = isolated && self.bytecode.version >= 2;
                    if has_section {
                        emitters.push(Emitter::default());
                    }
                    frames.push(Frame { regions: operation.regions.range(), blocks: 0..0, next: 0, end: 0, has_section });
                }
            } else if let Some(block) = frame.blocks.next() {
                let block = &tree.blocks[block];
                (frame.next, frame.end) = (block.first, block.end);
                self.block(block, out);
            } else if let Some(region) = frame.regions.next() {
                let region = &tree.regions[region];
                frame.blocks = region.blocks.range();
                out.varint(u64::from(region.blocks.len));
                if region.blocks.len > 0 {
                    out.varint(u64::from(region.values.len));
                }
            } else if frames.pop().is_some_and(|frame| frame.has_section) {
                let body = emitters.pop().expect("a region with a section has an emitter");
                emitters.last_mut().expect("the IR section's emitter stays").section(section::IR, body);
            }
        }
        emitters.pop().unwrap_or_default()
    }

    fn operation(&mut self, operation: &Operation, properties: &mut Properties, out: &mut Emitter<'a>) {
        let tree = &self.bytecode.tree;
        let orders = self.orders(operation.results);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let attributes = operation.attributes.filter(|id| !self.bytecode.tables.is_empty_dictionary(*id));
        out.varint(u64::from(self.numbering.op_name(operation.name)));
        out.byte(
            bit(attributes.is_some(), mask::ATTRIBUTES)
                | bit(operation.properties.is_some(), mask::PROPERTIES)
                | bit(operation.results.len > 0, mask::RESULTS)
                | bit(operation.operands.len > 0, mask::OPERANDS)
                | bit(operation.successors.len > 0, mask::SUCCESSORS)
                | bit(!orders.is_empty(), mask::USE_ORDERS)
                | bit(operation.regions.len > 0, mask::REGIONS),
        );
        out.varint(u64::from(self.numbering.attribute(operation.location)));
        if let Some(id) = attributes {
            out.varint(u64::from(self.numbering.attribute(id)));
        }
        if let Some(span) = operation.properties {
            self.property_blob(operation, span, &mut properties.next);
            out.varint(properties.number());
        }
        if operation.results.len > 0 {
            out.varint(u64::from(operation.results.len));
            for value in operation.results.range() {
                out.varint(u64::from(self.numbering.r#type(tree.value_types[value])));
            }
        }
        if operation.operands.len > 0 {
            out.varint(u64::from(operation.operands.len));
            for value in tree.operands_of(operation) {
                out.varint(u64::from(self.numbering.values[value.index()]));
            }
        }
        if operation.successors.len > 0 {
            out.varint(u64::from(operation.successors.len));
            for successor in &tree.successors[operation.successors.range()] {
                out.varint(u64::from(*successor));
            }
        }
        write_orders(&orders, operation.results, out);
    }

    /// An operation's inherent attributes as references, in the order of its row.
    fn property_blob(&self, operation: &Operation, span: Span, blob: &mut Vec<u8>) {
        let row = self.bytecode.tables.op_row(operation.name);
        blob.clear();
        for (position, value) in self.bytecode.tree.properties[span.range()].iter().enumerate() {
            let is_optional = row.is_some_and(|row| row.properties[position].ends_with('?'));
            let number = value.map(|id| u64::from(self.numbering.attribute(id)));
            let (bytes, length) = varint(match (number, is_optional) {
                (Some(number), true) => number << 1 | 1,
                (Some(number), false) => number,
                (None, _) => 0,
            });
            blob.extend(&bytes[..length]);
        }
    }

    fn block(&mut self, block: &Block, out: &mut Emitter<'a>) {
        let (bytecode, version) = (self.bytecode, self.bytecode.version);
        let tree = &bytecode.tree;
        let operations = tree.operations_in(block).count() as u64;
        out.varint_with_flag(operations, block.arguments.len > 0);
        if block.arguments.len == 0 {
            return;
        }
        out.varint(u64::from(block.arguments.len));
        for (argument, value) in block.arguments.range().enumerate() {
            let argument_type = u64::from(self.numbering.r#type(tree.value_types[value]));
            let location = tree.argument_locations[block.locations as usize + argument];
            let number = u64::from(self.numbering.attribute(location));
            if version < 4 {
                out.varint(argument_type);
                out.varint(number);
                continue;
            }
            let is_known = !is_unknown_location(bytecode, location);
            out.varint_with_flag(argument_type, is_known);
            if is_known {
                out.varint(number);
            }
        }
        if version >= 3 {
            let orders = self.orders(block.arguments);
            out.byte(if orders.is_empty() { 0 } else { mask::USE_ORDERS });
            write_orders(&orders, block.arguments, out);
        }
    }

    /// The use-list orders of some values, in the order in which MLIR writes them.
    fn orders(&self, values: Span) -> Vec<(u32, &'b [u32])> {
        let all = &self.bytecode.tree.use_orders;
        if all.is_empty() || self.bytecode.version < 3 || values.len == 0 {
            return Vec::new();
        }
        let first = all.partition_point(|order| order.value.0 < values.start);
        let end = values.range().end as u32;
        let own = all[first..].iter().take_while(|order| order.value.0 < end);
        let found: Vec<_> = own.map(|order| (order.value.0 - values.start, &order.order[..])).collect();
        let positions: Vec<u32> = found.iter().map(|(index, _)| *index).collect();
        hash_map_order(&positions).into_iter().map(|position| found[position]).collect()
    }

    fn resources(&mut self) -> (Emitter<'a>, Emitter<'a>) {
        let resources = &self.bytecode.resources;
        let (mut offsets, mut data) = (Emitter::default(), Emitter::default());
        offsets.varint(resources.external.len() as u64);
        for (key, group) in &resources.external {
            let number = self.strings.number(key);
            offsets.varint(u64::from(number));
            self.resource_group(group, &mut offsets, &mut data);
        }
        for (dialect, group) in &resources.dialect {
            offsets.varint(u64::from(self.numbering.dialect(*dialect)));
            self.resource_group(group, &mut offsets, &mut data);
        }
        (offsets, data)
    }

    fn resource_group(&mut self, group: &'b [Resource<'a>], offsets: &mut Emitter<'a>, data: &mut Emitter<'a>) {
        offsets.varint(group.len() as u64);
        for resource in group {
            let start = data.pieces.len();
            match &resource.data {
                None => {}
                Some(ResourceData::Blob { alignment, bytes }) => {
                    data.varint(*alignment);
                    data.varint(bytes.len() as u64);
                    data.align(*alignment);
                    data.pieces.extend_borrowed(bytes);
                }
                Some(ResourceData::Bool(byte)) => data.byte(*byte),
                Some(ResourceData::String(text)) => {
                    let number = self.strings.number(text);
                    data.varint(u64::from(number));
                }
            }
            let key = self.strings.number(resource.key);
            offsets.varint(u64::from(key));
            offsets.varint(data.pieces.len() - start);
            offsets.byte(resource.kind);
        }
    }

    fn string_section(&self) -> Emitter<'a> {
        let mut out = Emitter::default();
        out.varint(self.strings.order.len() as u64);
        for text in self.strings.order.iter().rev() {
            out.varint(text.len() as u64 + 1);
        }
        for text in &self.strings.order {
            out.pieces.extend_copied(text);
            out.byte(0);
        }
        out
    }
}

/// Writes use-list orders the way MLIR does: in pairs where less than half of the uses moved.
fn write_orders(orders: &[(u32, &[u32])], values: Span, out: &mut Emitter<'_>) {
    if orders.is_empty() {
        return;
    }
    if values.len != 1 {
        out.varint(orders.len() as u64);
    }
    for (index, order) in orders {
        if values.len != 1 {
            out.varint(u64::from(*index));
        }
        let moved = || order.iter().enumerate().filter(|(from, to)| *from != **to as usize);
        let count = moved().count();
        if count < order.len() / 2 {
            out.varint_with_flag(2 * count as u64, true);
            for (from, to) in moved() {
                out.varint(u64::from(*to));
                out.varint(from as u64);
            }
        } else {
            out.varint_with_flag(order.len() as u64, false);
            order.iter().for_each(|to| out.varint(u64::from(*to)));
        }
    }
}

/// Property blobs, each stored once.
#[derive(Default)]
struct Properties {
    blobs: indexmap::IndexSet<Vec<u8>, FxBuildHasher>,
    /// The one that is to be numbered; kept, so that not each is allocated.
    next: Vec<u8>,
}

impl Properties {
    fn number(&mut self) -> u64 {
        let known = self.blobs.get_index_of(&self.next[..]);
        known.unwrap_or_else(|| self.blobs.insert_full(self.next.clone()).0) as u64
    }

    fn section<'a>(&self) -> Emitter<'a> {
        let mut out = Emitter::default();
        out.varint(self.blobs.len() as u64);
        for blob in &self.blobs {
            out.varint(blob.len() as u64);
            out.pieces.extend_copied(blob);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_uses_that_moved_are_written_in_pairs() {
        let mut out = Emitter::default();
        write_orders(&[(0, &[1, 2, 0, 3, 4, 5, 6, 7])], Span::new(0, 1), &mut out);
        // As jaxlib 0.12.0.1 stores it: six numbers in pairs, and of each use that moved its place before its number.
        let numbers = [6 << 1 | 1, 1, 0, 2, 1, 0, 2u8].map(|number| number << 1 | 1);
        assert_eq!(out.pieces.to_vec(), numbers);
    }
}
