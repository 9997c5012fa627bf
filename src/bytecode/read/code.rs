//! The operations: the IR section, with an explicit stack.

#![allow(clippy::indexing_slicing, reason = "an index is checked against its table as it is read")]
#![allow(clippy::expect_used, reason = "sections and frames are opened and closed in pairs")]

use super::super::tables::{AttributeId, OpNameId, Tables, TypeId};
use super::super::tree::{Block, OpTree, Operation, Region, Span, UseOrder, ValueId};
use super::super::{OperationLayout, check};
use super::{mask, read_section, section};
use crate::error::{Error, Result};
use crate::reader::{MAX_REGION_DEPTH, Reader, check_index};

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
pub(super) struct CodeReader<'t, 'a> {
    version: u64,
    attributes: &'t [AttributeId],
    types: &'t [TypeId],
    op_names: &'t [OpNameId],
    properties: &'t [Reader<'a>],
    tables: &'t mut Tables<'a>,
    unknown_location: AttributeId,
    tree: OpTree,
    /// The bytes of each operation of the tree.
    layout: Vec<OperationLayout>,
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
    pub(super) fn new(
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
            layout: Vec::new(),
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

    /// Reads everything: the operations, the bytes of each, and the first thing about them that is not known.
    pub(super) fn read(mut self, reader: Reader<'a>) -> Result<(OpTree, Vec<OperationLayout>, Option<String>)> {
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
        Ok((self.tree, self.layout, self.unreadable))
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
        let mut layout = OperationLayout::default();
        let properties = if mask & mask::PROPERTIES != 0 { self.read_properties(reader, name, &mut layout)? } else { None };
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
        check::operation(self.version, self.tables, &self.tree, name, (attributes, properties))
            .and_then(|()| check::arity(self.tables, name, operands.len, results.len))
            .map_err(|error| error.at(start))?;
        let position = self.tree.operations.len();
        self.tree.regions.resize(regions.range().end, Region { owner: position as u32, ..Region::default() });
        let end = position as u32 + 1;
        self.tree.operations.push(Operation { name, location, attributes, properties, results, operands, successors, regions, end });
        layout.bytes = reader.offset() - start;
        self.layout.push(layout);
        if mask & mask::REGIONS != 0 {
            if is_isolated && self.version >= 2 {
                let before = reader.offset();
                let (id, body) = read_section(reader)?;
                if id != section::IR {
                    return Err(Error::format("the section of a region is no IR section").at(start));
                }
                self.layout[position].bytes += body.offset() - before;
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
        let start = reader.offset();
        let blocks = reader.count("blocks")?;
        self.check_total(self.tree.blocks.len() + blocks, "blocks", start)?;
        let at = reader.offset();
        let values = if blocks == 0 { 0 } else { reader.count("values of a region")? };
        let end = reader.offset();
        self.check_total(self.tree.value_types.len() + values, "values", at)?;
        let frame = self.frames.last_mut().expect("a region is read inside a frame");
        self.layout[frame.operation].bytes += end - start;
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
        let (owner, position) = (frame.operation, frame.block);
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
        self.layout[owner].bytes += reader.offset() - at;
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
        let is_last = frame.region + 1 == frame.regions_end;
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
    fn read_properties(&mut self, reader: &mut Reader<'a>, name: OpNameId, layout: &mut OperationLayout) -> Result<Option<Span>> {
        let index = reader.index(self.properties.len(), "properties")?;
        layout.properties = Some(index);
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
                for [to, from] in pairs {
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
