//! Module → bytecode.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use rustc_hash::FxHashMap;

use super::{Block, Op, Program, Session, Value};
use crate::bytecode::{
    self, AttributeId, Bytecode, Bytes, Entry, Field, OpNameId, OpRow, OpTree, Operation, Region, Span, UseOrder, ValueId, code, dialect,
};
use crate::error::{Error, Result};

/// Turns a program into bytecode. `from` is the bytecode it was imported from: its version, its producer and its resources stay.
pub fn export<'a>(program: &Program<'_, 'a>, from: &Bytecode<'a>) -> Result<Bytecode<'a>> {
    let session = program.session;
    let mut exporter =
        Exporter { session, tree: OpTree::default(), values: FxHashMap::default(), rows: FxHashMap::default(), attributes: Vec::new() };
    exporter.tree.operations.reserve(from.tree.operations.len());
    exporter.module(program.module)?;
    let mut tree = exporter.tree;
    tree.use_orders.sort_by_key(|order| order.value);
    Ok(Bytecode {
        version: from.version,
        producer: from.producer.clone(),
        tables: session.tables().clone(),
        tree,
        resources: from.resources.clone(),
        is_from_text: from.is_from_text,
        unreadable: None,
    })
}

struct Exporter<'s, 'a> {
    session: &'s Session<'a>,
    tree: OpTree,
    values: FxHashMap<Value<'s>, ValueId>,
    /// Names in MLIR → names in the tables, with what is known of them.
    rows: FxHashMap<super::Name<'s>, (OpNameId, Option<&'static OpRow>)>,
    /// Those of one operation, by name; kept for the next.
    attributes: Vec<(&'s [u8], AttributeId)>,
}

/// A block whose operations are under way. When they are done, its region's next block comes, then the operation's next region.
struct Frame<'s> {
    operation: usize,
    blocks: Vec<(usize, Block<'s>)>,
    next: Option<Op<'s>>,
    current: Option<usize>,
}

impl<'s, 'a> Exporter<'s, 'a> {
    fn module(&mut self, module: Op<'s>) -> Result<()> {
        let mut frames = Vec::new();
        self.operation(module, &mut frames)?;
        while let Some(frame) = frames.last_mut() {
            if let Some(operation) = frame.next {
                frame.next = operation.next();
                self.operation(operation, &mut frames)?;
                continue;
            }
            let end = self.tree.operations.len() as u32;
            if let Some(block) = frame.current.take() {
                self.tree.blocks[block].end = end;
            }
            match frame.blocks.pop() {
                Some((position, block)) => {
                    self.tree.blocks[position].first = end;
                    frame.current = Some(position);
                    frame.next = block.first();
                }
                None => {
                    self.tree.operations[frame.operation].end = end;
                    frames.pop();
                }
            }
        }
        Ok(())
    }

    fn operation(&mut self, operation: Op<'s>, frames: &mut Vec<Frame<'s>>) -> Result<()> {
        let name = operation.name();
        let (name, attributes, properties) = match name.as_str() {
            "func.func" => self.function(operation)?,
            "func.call" => self.call(operation)?,
            "func.return" => self.named(operation, "vhlo.return_v1", &[], &[])?,
            _ => self.other(operation)?,
        };
        let location = self.session.attribute_id(operation.location())?;
        let results = match operation.result_count() {
            0 => Span::default(),
            count => {
                let first = self.values.get(&operation.result(0)).ok_or_else(|| Error::bug("a result outside any region"))?;
                Span::new(first.index(), count)
            }
        };
        let operands = Span::new(self.tree.operands.len(), operation.operand_count());
        for operand in operation.operands() {
            let value = self.values.get(&operand).ok_or_else(|| {
                let place = self.session.place(operation);
                Error::format(format!("`{}` at {place} uses a value from where it cannot be seen", operation.name_str()))
            })?;
            self.tree.operands.push(*value);
        }
        let position = self.tree.operations.len();
        let regions = Span::new(self.tree.regions.len(), operation.region_count());
        self.tree.regions.resize(regions.range().end, Region { owner: position as u32, ..Region::default() });
        let successors = Span::new(self.tree.successors.len(), 0);
        let end = position as u32 + 1;
        self.tree.operations.push(Operation { name, location, attributes, properties, results, operands, successors, regions, end });
        if regions.len > 0 {
            let mut blocks = Vec::new();
            for (region, from) in regions.range().zip(operation.regions()) {
                self.region(region, from, &mut blocks)?;
            }
            blocks.reverse();
            frames.push(Frame { operation: position, blocks, next: None, current: None });
        }
        Ok(())
    }

    /// Reserves a region's blocks and numbers all its values, which its operations may then use in any order.
    fn region(&mut self, position: usize, region: super::Region<'s>, blocks: &mut Vec<(usize, Block<'s>)>) -> Result<()> {
        let found: Vec<_> = region.blocks().collect();
        let first_block = self.tree.blocks.len();
        let first_value = self.tree.value_types.len();
        for (offset, block) in found.iter().enumerate() {
            let arguments = Span::new(self.tree.value_types.len(), block.argument_count());
            let locations = self.tree.argument_locations.len() as u32;
            for argument in block.arguments() {
                self.define(argument)?;
                let location = self.session.attribute_id(argument.location())?;
                self.tree.argument_locations.push(location);
            }
            let arguments = if arguments.len == 0 { Span::default() } else { arguments };
            self.tree.blocks.push(bytecode::Block { arguments, locations, first: 0, end: 0 });
            for operation in block.operations() {
                operation.results().try_for_each(|result| self.define(result))?;
            }
            blocks.push((first_block + offset, *block));
        }
        let region = &mut self.tree.regions[position];
        region.blocks = Span::new(first_block, found.len());
        region.values = Span::new(first_value, self.tree.value_types.len() - first_value);
        Ok(())
    }

    fn define(&mut self, value: Value<'s>) -> Result<()> {
        let id = ValueId(self.tree.value_types.len() as u32);
        self.tree.value_types.push(self.session.type_id(value.r#type())?);
        self.values.insert(value, id);
        if let Some(order) = self.session.use_order(value) {
            self.tree.use_orders.push(UseOrder { value: id, order });
        }
        Ok(())
    }

    fn other(&mut self, operation: Op<'s>) -> Result<Encoded> {
        let name = operation.name();
        let (id, row) = self.row(name)?;
        self.attributes.clear();
        for (name, value) in operation.attributes() {
            self.attributes.push((name.as_bytes(), self.session.attribute_id(value)?));
        }
        self.encode(id, row, operation)
    }

    /// `func.func` → `func_v1`.
    fn function(&mut self, operation: Op<'s>) -> Result<Encoded> {
        let session = self.session;
        let missing = || Error::bug("a function lost its name or its type");
        let name = super::symbol_name(operation).ok_or_else(missing)?;
        let visibility = operation.attribute("sym_visibility").and_then(|text| text.as_string()).unwrap_or_default();
        let types = operation.attribute("function_type").and_then(|attribute| attribute.as_type()?.as_function());
        let (inputs, results) = types.ok_or_else(missing)?;
        let mut fields = Vec::new();
        for list in [inputs, results] {
            fields.push(Field::Count(list.len() as u32));
            for of in list {
                fields.push(Field::Type(session.type_id(of)?));
            }
        }
        let function_type = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::FUNCTION_TYPE, fields)))?;
        let function_type = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::TYPE, [Field::Type(function_type)])).0;
        let dictionaries = |name: &str| -> Result<AttributeId> {
            let elements = operation.attribute(name).and_then(|array| array.as_array()).unwrap_or_default();
            let mut fields = vec![Field::Count(elements.len() as u32)];
            for element in elements {
                fields.push(Field::Attribute(session.argument_dictionary_id(element)?));
            }
            Ok(session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::ARRAY, fields)).0)
        };
        let inherent = [
            ("arg_attrs", dictionaries("arg_attrs")?),
            ("function_type", function_type),
            ("res_attrs", dictionaries("res_attrs")?),
            ("sym_name", session.add_vhlo_string(name)),
            ("sym_visibility", session.add_vhlo_string(visibility)),
        ];
        let own = ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];
        self.named(operation, "vhlo.func_v1", &inherent, &own)
    }

    /// `func.call` → `call_v1`.
    fn call(&mut self, operation: Op<'s>) -> Result<Encoded> {
        let callee = operation.attribute("callee").and_then(|callee| callee.as_flat_symbol());
        let callee = self.session.add_vhlo_string(callee.ok_or_else(|| Error::bug("a call lost its callee"))?);
        self.named(operation, "vhlo.call_v1", &[("callee", callee)], &["callee"])
    }

    /// An operation under another name, with inherent attributes of its own in place of those in `own`.
    fn named(&mut self, operation: Op<'s>, name: &str, inherent: &[(&'static str, AttributeId)], own: &[&str]) -> Result<Encoded> {
        let (id, row) = self.row(self.session.factory().name(name.as_bytes()))?;
        self.attributes.clear();
        self.attributes.extend(inherent.iter().map(|(name, value)| (name.as_bytes(), *value)));
        for (name, value) in operation.attributes() {
            if !own.contains(&name.as_str()) {
                self.attributes.push((name.as_bytes(), self.session.attribute_id(value)?));
            }
        }
        self.attributes.sort_by_key(|(name, _)| *name);
        self.encode(id, row, operation)
    }

    fn row(&mut self, name: super::Name<'s>) -> Result<(OpNameId, Option<&'static OpRow>)> {
        if let Some(known) = self.rows.get(&name) {
            return Ok(*known);
        }
        let id = self.session.op_name_id(name)?;
        let row = self.session.tables().op_row(id);
        self.rows.insert(name, (id, row));
        Ok((id, row))
    }

    /// Parts the attributes, sorted by name, into inherent and discardable ones, as the version of the bytecode wants them.
    fn encode(&mut self, name: OpNameId, row: Option<&'static OpRow>, operation: Op<'s>) -> Result<Encoded> {
        let mut properties = None;
        let row = row.filter(|row| self.session.version >= 5 && !row.properties.is_empty());
        if let Some(row) = row {
            let start = self.tree.properties.len();
            // Both lists ascend, so one look at each suffices. What is discardable moves to the front.
            let (mut next, mut discardable) = (0, 0);
            for property in row.properties {
                let wanted = property.trim_end_matches('?').as_bytes();
                while self.attributes.get(next).is_some_and(|(name, _)| *name < wanted) {
                    self.attributes.swap(next, discardable);
                    (next, discardable) = (next + 1, discardable + 1);
                }
                let value = self.attributes.get(next).filter(|(name, _)| *name == wanted).map(|(_, value)| *value);
                if value.is_none() && !property.ends_with('?') {
                    let place = self.session.place(operation);
                    return Err(Error::bug(format!("`{}` at {place} lost its `{property}`", operation.name_str())));
                }
                next += usize::from(value.is_some());
                self.tree.properties.push(value);
            }
            self.attributes.drain(discardable..next);
            properties = Some(Span::new(start, row.properties.len()));
        }
        if self.attributes.is_empty() {
            return Ok((name, None, properties));
        }
        let mut fields: Vec<Field<'a>> = vec![Field::Count(self.attributes.len() as u32)];
        for &(name, value) in &self.attributes {
            let key = self.session.add_attribute(Entry::new(
                dialect::BUILTIN,
                code::builtin::STRING,
                [Field::String(Bytes(name.to_vec().into()))],
            ));
            fields.extend([Field::Attribute(key.0), Field::Attribute(value)]);
        }
        let dictionary = self.session.add_attribute(Entry::new(dialect::BUILTIN, code::builtin::DICTIONARY, fields)).0;
        Ok((name, Some(dictionary), properties))
    }
}

/// The name, the dictionary and the properties of an operation.
type Encoded = (OpNameId, Option<AttributeId>, Option<Span>);
