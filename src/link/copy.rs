//! Copies what a module holds into the tables and the tree of another.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::symbols::Symbol;
use super::{Attributes, Linker};
use crate::bytecode::{
    AttributeId, Block, Bytecode, Bytes, Code, DialectId, Entry, Field, OpNameId, Operation, Region, Span, Tables, TypeId, ValueId, code,
    dialect,
};
use crate::error::{Error, Result};
use crate::ir::own_symbols;

/// A module on its way into another.
pub(super) struct Copier<'l, 'm, 'a> {
    pub(super) linker: &'l mut Linker<'a>,
    from: &'m Bytecode<'a>,
    /// The new names of the symbols that were met so far.
    pub(super) renamed: FxHashMap<&'m [u8], Vec<u8>>,
    channels: FxHashMap<u64, u64>,
    dialects: Vec<DialectId>,
    /// What each entry and name is in the other tables, once it was met.
    attributes: Vec<Option<AttributeId>>,
    types: Vec<Option<TypeId>>,
    op_names: Vec<Option<OpNameId>>,
    /// What each value is in the other tree, or in what is described, once its region was met.
    values: Vec<Option<u32>>,
    /// Whether each type is, or holds, one with a dynamic dimension.
    dynamic: Vec<bool>,
}

/// An entry that is still to be copied.
#[derive(Clone, Copy)]
enum Node {
    Attribute(AttributeId),
    Type(TypeId),
}

/// The attributes of an operation: those of its row in order, and its dictionary.
type Parted = (Vec<Option<AttributeId>>, Option<AttributeId>);

impl<'l, 'm, 'a> Copier<'l, 'm, 'a> {
    pub(super) fn new(linker: &'l mut Linker<'a>, from: &'m Bytecode<'a>, channels: FxHashMap<u64, u64>) -> Result<Self> {
        let tables = &from.tables;
        let dialects = (0..tables.dialect_count()).map(|id| {
            let id = DialectId(id as u32);
            let adopted = linker.into.tables.adopt_dialect(tables, id);
            adopted.ok_or_else(|| {
                let name = String::from_utf8_lossy(tables.dialect(id));
                Error::unsupported(format!("the modules hold the dialect `{name}` in different versions"))
            })
        });
        let dialects = dialects.collect::<Result<_>>()?;
        let mut dynamic = Vec::with_capacity(tables.type_count());
        for id in (0..tables.type_count()).map(|id| TypeId(id as u32)) {
            // What a type holds stands before it.
            let holds = tables.r#type(id).types().any(|inner| dynamic.get(inner.index()).copied().unwrap_or(true));
            dynamic.push(holds || tables.tensor(id).is_some_and(|(shape, _)| shape.contains(&i64::MIN)));
        }
        Ok(Self {
            linker,
            from,
            renamed: FxHashMap::default(),
            channels,
            dialects,
            attributes: vec![None; tables.attribute_count()],
            types: vec![None; tables.type_count()],
            op_names: vec![None; tables.op_name_count()],
            values: vec![None; from.tree.value_types.len()],
            dynamic,
        })
    }

    // ---- entries

    fn attribute(&mut self, id: AttributeId) -> Result<AttributeId> {
        self.entry(Node::Attribute(id))?;
        self.attributes[id.index()].ok_or_else(|| Error::bug("an attribute that was copied is not known"))
    }

    fn r#type(&mut self, id: TypeId) -> Result<TypeId> {
        self.entry(Node::Type(id))?;
        self.types[id.index()].ok_or_else(|| Error::bug("a type that was copied is not known"))
    }

    /// Copies an entry after all that it holds. None holds itself.
    fn entry(&mut self, root: Node) -> Result<()> {
        let mut work = vec![root];
        while let Some(node) = work.last().copied() {
            if !self.is_copied(node) {
                let before = work.len();
                let inside = self.entry_of(node).fields.iter().filter_map(|field| match field {
                    Field::Attribute(id) => Some(Node::Attribute(*id)),
                    Field::Type(id) => Some(Node::Type(*id)),
                    _ => None,
                });
                work.extend(inside.filter(|inner| !self.is_copied(*inner)));
                if work.len() > before {
                    continue;
                }
                self.make(node)?;
            }
            work.pop();
        }
        Ok(())
    }

    fn is_copied(&self, node: Node) -> bool {
        match node {
            Node::Attribute(id) => self.attributes[id.index()].is_some(),
            Node::Type(id) => self.types[id.index()].is_some(),
        }
    }

    fn entry_of(&self, node: Node) -> &'m Entry<'a> {
        match node {
            Node::Attribute(id) => self.from.tables.attribute(id),
            Node::Type(id) => self.from.tables.r#type(id),
        }
    }

    fn make(&mut self, node: Node) -> Result<()> {
        use code::builtin as b;
        let from = self.entry_of(node);
        let mut fields = Vec::with_capacity(from.fields.len());
        for field in &from.fields {
            fields.push(match field {
                Field::Attribute(id) => Field::Attribute(self.attribute(*id)?),
                Field::Type(id) => Field::Type(self.r#type(*id)?),
                other => other.clone(),
            });
        }
        // Of a symbol inside others the outermost counts.
        let is_reference = from.is(dialect::BUILTIN, b::FLAT_SYMBOL_REF)
            || from.is(dialect::BUILTIN, b::SYMBOL_REF)
            || from.is(dialect::VHLO, code::vhlo::REPLICA_GROUP_MESH_AXES);
        if let (true, Some(Field::Attribute(name))) = (is_reference, from.fields.first()) {
            fields[0] = Field::Attribute(self.reference(*name)?);
        }
        if let (Code::Text, Node::Attribute(id)) = (from.code, node) {
            self.check_text(id)?;
        }
        let identity = if from.identity == 0 { 0 } else { from.identity.saturating_add(self.linker.identities) };
        let dialect = self.dialects[from.dialect.index()];
        let entry = Entry { dialect, code: from.code, identity, fields: fields.into() };
        let tables = &mut self.linker.into.tables;
        match node {
            Node::Attribute(id) => self.attributes[id.index()] = Some(tables.intern_attribute(entry)),
            Node::Type(id) => self.types[id.index()] = Some(tables.intern_type(entry)),
        }
        Ok(())
    }

    /// Text is copied as it is, so that what it names must keep its name.
    fn check_text(&self, id: AttributeId) -> Result<()> {
        let is_renamed = |name: &Vec<u8>| self.renamed.get(&name[..]).is_some_and(|new| new != name);
        match own_symbols(&self.from.tables, id).iter().find(|name| is_renamed(name)) {
            None => Ok(()),
            Some(name) => {
                let name = String::from_utf8_lossy(name);
                Err(Error::unsupported(format!("the modules cannot be linked: an attribute in text names `{name}`, which both have")))
            }
        }
    }

    /// A string that is the name of a symbol.
    fn reference(&mut self, id: AttributeId) -> Result<AttributeId> {
        let new = self.from.tables.string(id).and_then(|name| self.renamed.get(name)).cloned();
        match new {
            Some(new) => Ok(self.text_like(id, new)),
            None => self.attribute(id),
        }
    }

    /// A string of the same kind as another one, with another text.
    fn text_like(&mut self, id: AttributeId, text: Vec<u8>) -> AttributeId {
        let entry = self.from.tables.attribute(id);
        let fields = [Field::String(Bytes(Cow::Owned(text)))];
        self.linker.into.tables.intern_attribute(Entry { fields: Box::new(fields), ..entry.clone() })
    }

    /// The number of a channel.
    fn channel(&mut self, id: AttributeId) -> Result<AttributeId> {
        let entry = self.from.tables.attribute(id);
        let new = channel_number(entry).and_then(|number| self.channels.get(&number)).copied();
        match (new, &entry.fields[..]) {
            (Some(new), [Field::Type(of), ..]) => {
                let fields = [Field::Type(self.r#type(*of)?), Field::Unsigned(new)];
                Ok(self.linker.into.tables.intern_attribute(Entry { fields: Box::new(fields), ..entry.clone() }))
            }
            _ => self.attribute(id),
        }
    }

    // ---- operations

    fn op_name(&mut self, id: OpNameId) -> OpNameId {
        let from = &self.from.tables;
        let (name, is_registered) = (from.op_name(id), from.op_registered(id));
        let dialect = self.dialects[name.dialect.index()];
        let tables = &mut self.linker.into.tables;
        *self.op_names[id.index()].get_or_insert_with(|| tables.intern_op_name(dialect, name.name.clone(), is_registered))
    }

    /// The attributes of an operation as they are, those of its row apart, wherever the version of the bytecode has them.
    fn parted(&self, operation: &Operation) -> (Vec<Option<AttributeId>>, Option<Cow<'m, [Field<'a>]>>) {
        let tables = &self.from.tables;
        let dictionary = operation.attributes.map(|id| Cow::Borrowed(&tables.attribute(id).fields[..]));
        if let Some(span) = operation.properties {
            return (self.from.tree.properties[span.range()].to_vec(), dictionary);
        }
        let properties = tables.op_row(operation.name).map_or(&[][..], |row| row.properties);
        let is_known = operation.attributes.is_some_and(|id| tables.dictionary(id).is_some());
        if properties.is_empty() || !is_known {
            return (Vec::new(), dictionary);
        }
        let mut inherent = vec![None; properties.len()];
        let mut rest = vec![Field::Count(0)];
        let items: Vec<AttributeId> = operation.attributes.into_iter().flat_map(|id| tables.attribute(id).attributes()).collect();
        for item in items.chunks_exact(2) {
            let name = tables.string(item[0]).unwrap_or_default();
            match properties.iter().position(|property| property.trim_end_matches('?').as_bytes() == name) {
                Some(position) => inherent[position] = Some(item[1]),
                None => rest.extend(item.iter().map(|id| Field::Attribute(*id))),
            }
        }
        rest[0] = Field::Count((rest.len() / 2) as u32);
        (inherent, (rest.len() > 1).then_some(Cow::Owned(rest)))
    }

    /// The attributes of an operation in the other tables. `symbol` is what it stands for at the top of its module.
    fn attributes_of(&mut self, operation: &Operation, symbol: Option<&Symbol<'_>>) -> Result<Parted> {
        let tables = &self.from.tables;
        let (inherent, dictionary) = self.parted(operation);
        let is_vhlo = tables.op_name(operation.name).dialect == dialect::VHLO;
        let names = tables.op_row(operation.name).map_or(&[][..], |row| row.properties);
        let is_main = symbol.is_some_and(|symbol| symbol.name == b"main");
        let mut copied = Vec::with_capacity(inherent.len());
        for (number, value) in inherent.into_iter().enumerate() {
            let Some(id) = value else {
                copied.push(None);
                continue;
            };
            let name = names.get(number).map_or("", |name| name.trim_end_matches('?'));
            copied.push(Some(match name {
                "sym_name" if symbol.is_some() => self.reference(id)?,
                "sym_visibility" if is_main => self.text_like(id, b"private".to_vec()),
                // What `main` says of its arguments and results holds for whoever calls the module.
                "arg_attrs" | "res_attrs" if is_main => self.no_elements(id),
                "callee" | "decomposition" if is_vhlo => self.reference(id)?,
                "called_computations" if is_vhlo => self.array(id, Self::reference)?,
                "channel_id" if is_vhlo => self.channel(id)?,
                _ => self.attribute(id)?,
            }));
        }
        let dictionary = match dictionary {
            None => None,
            Some(Cow::Borrowed(_)) => operation.attributes.map(|id| self.attribute(id)).transpose()?,
            Some(Cow::Owned(fields)) => {
                let fields = fields.into_iter().map(|field| match field {
                    Field::Attribute(id) => Ok(Field::Attribute(self.attribute(id)?)),
                    other => Ok(other),
                });
                let entry = Entry::new(dialect::BUILTIN, code::builtin::DICTIONARY, fields.collect::<Result<Vec<_>>>()?);
                Some(self.linker.into.tables.intern_attribute(entry))
            }
        };
        Ok((copied, dictionary))
    }

    /// An array with each element copied in some way.
    fn array(&mut self, id: AttributeId, mut copy: impl FnMut(&mut Self, AttributeId) -> Result<AttributeId>) -> Result<AttributeId> {
        let entry = self.from.tables.attribute(id);
        let Some(elements) = self.from.tables.array(id) else { return self.attribute(id) };
        let mut fields = vec![Field::Count(0)];
        for element in elements {
            fields.push(Field::Attribute(copy(self, element)?));
        }
        fields[0] = Field::Count((fields.len() - 1) as u32);
        Ok(self.linker.into.tables.intern_attribute(Entry { fields: fields.into(), ..entry.clone() }))
    }

    /// An empty array of the same kind as another one.
    fn no_elements(&mut self, id: AttributeId) -> AttributeId {
        let entry = self.from.tables.attribute(id).clone();
        self.linker.into.tables.intern_attribute(Entry { fields: Box::new([Field::Count(0)]), ..entry })
    }

    /// Numbers the values of an operation's regions, from `next` on, and returns how many there are now.
    fn number_values(&mut self, operation: &Operation, mut next: u32) -> u32 {
        for region in self.from.tree.regions_of(operation) {
            for value in region.values.range() {
                self.values[value] = Some(next);
                next += 1;
            }
        }
        next
    }

    fn operands(&self, operation: &Operation) -> Result<Vec<u32>> {
        let operands = self.from.tree.operands_of(operation).iter().map(|value| self.values[value.index()]);
        operands.collect::<Option<_>>().ok_or_else(|| {
            let place = crate::ir::place(&self.from.tables, operation.location);
            Error::format(format!("`{}` at {place} uses a value from where it cannot be seen", self.from.op_name(operation)))
        })
    }

    /// The operations of a symbol: itself, and those inside it.
    fn range(&self, symbol: &Symbol<'_>) -> std::ops::Range<usize> {
        symbol.position..self.from.tree.operations[symbol.position].end as usize
    }

    /// Whether no caller's types or constants change what a symbol is.
    pub(super) fn may_be_shared(&self, symbol: &Symbol<'_>) -> Result<bool> {
        let tree = &self.from.tree;
        let regions = self.range(symbol).flat_map(|position| tree.regions_of(&tree.operations[position]));
        let is_dynamic = regions.flat_map(|region| &tree.value_types[region.values.range()]).any(|id| self.dynamic[id.index()]);
        let tables = &self.from.tables;
        let arguments = self.from.inherent(&tree.operations[symbol.position], "arg_attrs").and_then(|id| tables.array(id));
        let mut names = arguments.into_iter().flatten().filter_map(|id| tables.dictionary(id)).flatten().map(|(name, _)| name);
        Ok(!is_dynamic && !names.any(|name| name == b"jax.global_constant"))
    }

    /// What a symbol is, but for its name and its locations: equal symbols have equal descriptions, and no others do.
    pub(super) fn describe(&mut self, symbol: &Symbol<'_>) -> Result<Vec<u32>> {
        let from = self.from;
        let (mut text, mut next) = (Vec::new(), 0);
        let number = |id: Option<AttributeId>| id.map_or(0, |id| id.0 + 1);
        for position in self.range(symbol) {
            let operation = &from.tree.operations[position];
            let top = (position == symbol.position).then_some(symbol);
            next = self.number_values(operation, next);
            let (inherent, dictionary) = self.attributes_of(operation, top)?;
            let name = from.tables.op_row(operation.name).filter(|_| top.is_some());
            let name = name.and_then(|row| row.properties.iter().position(|property| *property == "sym_name"));
            text.extend([self.op_name(operation.name).0, operation.end - position as u32, number(dictionary), inherent.len() as u32]);
            let without_name = inherent.iter().enumerate().map(|(place, id)| if Some(place) == name { 0 } else { number(*id) });
            text.extend(without_name);
            text.push(operation.operands.len);
            text.extend(self.operands(operation)?);
            text.push(operation.successors.len);
            text.extend(&from.tree.successors[operation.successors.range()]);
            text.push(operation.results.len);
            text.push(operation.regions.len);
            for region in from.tree.regions_of(operation) {
                text.extend([region.values.len, region.blocks.len]);
                for value in region.values.range() {
                    text.push(self.r#type(from.tree.value_types[value])?.0);
                }
                for block in from.tree.blocks_of(region) {
                    text.extend([block.arguments.len, block.first.wrapping_sub(position as u32), block.end.wrapping_sub(position as u32)]);
                }
            }
        }
        Ok(text)
    }

    /// Copies a symbol behind what is there.
    pub(super) fn copy(&mut self, symbol: &Symbol<'_>) -> Result<()> {
        let from = &self.from.tree;
        let base = self.linker.into.tree.operations.len();
        let moved = |position: u32| (base + position as usize - symbol.position) as u32;
        for position in self.range(symbol) {
            let operation = &from.operations[position];
            let top = (position == symbol.position).then_some(symbol);
            let first = self.linker.into.tree.value_types.len() as u32;
            self.number_values(operation, first);
            for value in from.regions_of(operation).iter().flat_map(|region| region.values.range()) {
                let of = self.r#type(from.value_types[value])?;
                self.linker.into.tree.value_types.push(of);
            }
            let name = self.op_name(operation.name);
            let location = self.attribute(operation.location)?;
            let (inherent, attributes) = self.attributes_of(operation, top)?;
            let operands = self.operands(operation)?;
            let results = match operation.results.len {
                0 => Span::default(),
                len => {
                    let start = self.values[operation.results.start as usize];
                    Span { start: start.ok_or_else(|| Error::bug("a result outside any region"))?, len }
                }
            };
            let mut argument_locations = Vec::new();
            for block in from.regions_of(operation).iter().flat_map(|region| from.blocks_of(region)) {
                let start = block.locations as usize;
                for location in &from.argument_locations[start..start + block.arguments.len as usize] {
                    argument_locations.push(self.attribute(*location)?);
                }
            }
            let tree = &mut self.linker.into.tree;
            let made = Operation {
                name,
                location,
                attributes,
                properties: (!inherent.is_empty()).then(|| Span::new(tree.properties.len(), inherent.len())),
                results,
                operands: Span::new(tree.operands.len(), operands.len()),
                successors: Span::new(tree.successors.len(), operation.successors.len as usize),
                regions: Span::new(tree.regions.len(), operation.regions.len as usize),
                end: moved(operation.end),
            };
            tree.properties.extend(inherent);
            tree.operands.extend(operands.into_iter().map(ValueId));
            tree.successors.extend(&from.successors[operation.successors.range()]);
            let (mut value, mut locations) = (first, tree.argument_locations.len() as u32);
            tree.argument_locations.extend(argument_locations);
            for region in from.regions_of(operation) {
                let blocks = Span::new(tree.blocks.len(), region.blocks.len as usize);
                for block in from.blocks_of(region) {
                    let arguments = match block.arguments.len {
                        0 => Span::default(),
                        len => Span { start: value + (block.arguments.start - region.values.start), len },
                    };
                    tree.blocks.push(Block { arguments, locations, first: moved(block.first), end: moved(block.end) });
                    locations += block.arguments.len;
                }
                let values = Span { start: value, len: region.values.len };
                tree.regions.push(Region { owner: moved(position as u32), values, blocks });
                value += region.values.len;
            }
            tree.operations.push(made);
        }
        Ok(())
    }

    // ---- what the other module is told

    /// The location, the name and the visibility of the module.
    pub(super) fn head(&mut self) -> Result<(AttributeId, Vec<Option<AttributeId>>)> {
        let module = self.from.tree.operations.first().ok_or_else(|| Error::format("the file holds no module"))?;
        let (inherent, _) = self.attributes_of(module, None)?;
        Ok((self.attribute(module.location)?, inherent))
    }

    /// The attributes of the module itself.
    pub(super) fn module_attributes(&mut self) -> Result<Attributes> {
        let module = self.from.tree.operations.first().and_then(|module| self.parted(module).1);
        let items: Vec<AttributeId> = module.iter().flat_map(|fields| fields.iter()).filter_map(attribute_field).collect();
        self.items(&items)
    }

    /// The attributes of each argument or result of a function.
    pub(super) fn dictionaries(&mut self, symbol: &Symbol<'_>, name: &str) -> Result<Vec<Attributes>> {
        let from = self.from;
        let array = from.inherent(&from.tree.operations[symbol.position], name).and_then(|id| from.tables.array(id));
        array.into_iter().flatten().map(|id| self.items(&from.tables.attribute(id).attributes().collect::<Vec<_>>())).collect()
    }

    fn items(&mut self, items: &[AttributeId]) -> Result<Attributes> {
        let from = self.from;
        let named = items.chunks_exact(2).filter_map(|item| Some((from.tables.string(item[0])?.to_vec(), item[1])));
        named.map(|(name, value)| Ok((name, self.attribute(value)?))).collect()
    }
}

fn attribute_field(field: &Field<'_>) -> Option<AttributeId> {
    match field {
        Field::Attribute(id) => Some(*id),
        _ => None,
    }
}

/// A builtin dictionary of some attributes; none where there are none.
pub(super) fn dictionary(tables: &mut Tables<'_>, attributes: &Attributes) -> Option<AttributeId> {
    if attributes.is_empty() {
        return None;
    }
    let items = attributes.iter().map(|(name, value)| (tables.intern_string(Cow::Owned(name.clone())), *value)).collect();
    Some(tables.intern_dictionary(items))
}

/// The greatest number of a `distinct` attribute.
pub(super) fn identities(module: &Bytecode<'_>) -> u32 {
    let ids = (0..module.tables.attribute_count()).map(|id| AttributeId(id as u32));
    ids.map(|id| module.tables.attribute(id).identity).max().unwrap_or_default()
}

/// The channels of a module, with the kinds of operations that use them.
pub(super) fn channels(module: &Bytecode<'_>) -> BTreeMap<u64, BTreeSet<Vec<u8>>> {
    let mut channels: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for operation in &module.tree.operations {
        let name = module.tables.op_name(operation.name);
        let has_channel = module.tables.op_row(operation.name).is_some_and(|row| row.properties.contains(&"channel_id"));
        let id = module.inherent(operation, "channel_id").filter(|_| has_channel && name.dialect == dialect::VHLO);
        if let Some(number) = id.and_then(|id| channel_number(module.tables.attribute(id))) {
            let end = name.name.iter().rposition(|byte| *byte == b'_').unwrap_or(name.name.len());
            channels.entry(number).or_default().insert(name.name[..end].to_vec());
        }
    }
    channels
}

/// The number in a `channel_id`. None is 0.
fn channel_number(entry: &Entry<'_>) -> Option<u64> {
    match entry.fields[..] {
        [Field::Type(_), Field::Unsigned(number)] if entry.is(dialect::VHLO, code::vhlo::INTEGER) && number > 0 => Some(number),
        _ => None,
    }
}
