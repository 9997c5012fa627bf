//! Entries of the tables as attributes, types and locations of MLIR, and back.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::cell::RefMut;

use rustc_hash::FxHashMap;

use super::raw::{Attribute, Definition, Factory, Name, Node, Type, Value};
use super::{Op, Session};
use crate::bytecode::{AttributeId, Bytes, Code, Entry, Field, OpNameId, Tables, TypeId, code, dialect};
use crate::error::{Error, Result};

/// The dialect of handles and of operations that only passes see.
pub const OWN_DIALECT: &str = "jaxprism";

/// The key of an argument's attributes where these are no dictionary that MLIR takes.
pub(super) const ARGUMENT_ENTRY: &str = "jaxprism.entry";

/// Attributes that name more entries than this, directly or through others, are not made in MLIR: a small file can name exponentially many, and MLIR
/// prints all of them in a diagnostic.
const HEAVIEST_REAL_ATTRIBUTE: u32 = 10_000;

/// Both directions of the mapping.
pub(super) struct Entries<'a> {
    tables: Tables<'a>,
    attributes: Vec<Option<Attribute<'static>>>,
    /// How much text each attribute would be, in entries: one that is named twice counts twice.
    weights: FxHashMap<AttributeId, u32>,
    types: Vec<Option<Type<'static>>>,
    attribute_ids: FxHashMap<Attribute<'static>, AttributeId>,
    type_ids: FxHashMap<Type<'static>, TypeId>,
    /// Entries that stand where a location must, and are none that MLIR can make.
    carried_locations: FxHashMap<AttributeId, Attribute<'static>>,
    /// The dictionaries that stand for the attributes of a function's argument or result.
    argument_dictionaries: FxHashMap<Attribute<'static>, AttributeId>,
    op_names: FxHashMap<Name<'static>, OpNameId>,
    use_orders: FxHashMap<Value<'static>, Vec<u32>>,
    has_changed: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(tables: Tables<'a>) -> Self {
        Self {
            attributes: vec![None; tables.attribute_count()],
            weights: FxHashMap::default(),
            types: vec![None; tables.type_count()],
            tables,
            attribute_ids: FxHashMap::default(),
            type_ids: FxHashMap::default(),
            carried_locations: FxHashMap::default(),
            argument_dictionaries: FxHashMap::default(),
            op_names: FxHashMap::default(),
            use_orders: FxHashMap::default(),
            has_changed: false,
        }
    }

    pub(super) fn tables(&self) -> &Tables<'a> {
        &self.tables
    }

    fn known_attribute(&self, id: AttributeId) -> Option<Attribute<'static>> {
        self.attributes.get(id.index()).copied().flatten()
    }

    /// The attribute of an entry. Recurses into its fields, whose depth the reader has checked.
    fn attribute(&mut self, factory: Factory<'static>, id: AttributeId) -> Attribute<'static> {
        if let Some(known) = self.known_attribute(id) {
            return known;
        }
        let handle = |factory: Factory<'static>| factory.opaque_attribute(OWN_DIALECT, &format!("entry<{}>", id.0));
        let is_location = is_location(self.tables.attribute(id));
        let carried = |factory: Factory<'static>| {
            let handle = handle(factory);
            if is_location { factory.carrying_location(handle) } else { handle }
        };
        let is_light = self.weigh(id) <= HEAVIEST_REAL_ATTRIBUTE;
        let real = if is_light { self.real_attribute(factory, id) } else { None };
        let made = match real {
            // Another entry with the same meaning to MLIR came first.
            Some(made) if self.attribute_ids.get(&made).is_some_and(|known| *known != id) => carried(factory),
            Some(made) => made,
            None => carried(factory),
        };
        self.attribute_ids.insert(made, id);
        if self.attributes.len() <= id.index() {
            self.attributes.resize(self.tables.attribute_count(), None);
        }
        self.attributes[id.index()] = Some(made);
        made
    }

    /// How heavy an attribute is as MLIR would print it. What is too heavy is carried as a handle, which weighs nothing more.
    fn weigh(&mut self, id: AttributeId) -> u32 {
        if let Some(weight) = self.weights.get(&id) {
            return *weight;
        }
        let fields: Vec<_> = self.tables.attribute(id).attributes().collect();
        let mut weight = 1u32;
        for field in fields {
            let inner = self.weigh(field);
            weight = weight.saturating_add(if inner > HEAVIEST_REAL_ATTRIBUTE { 1 } else { inner });
        }
        self.weights.insert(id, weight);
        weight
    }

    /// The attribute that MLIR makes of an entry, where it makes one that says the same.
    fn real_attribute(&mut self, factory: Factory<'static>, id: AttributeId) -> Option<Attribute<'static>> {
        use code::builtin as b;
        let entry = self.tables.attribute(id);
        let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { return None };
        match (code, &entry.fields[..]) {
            (b::STRING, [Field::String(text)]) => Some(factory.string(&text.0)),
            (b::UNIT, []) => Some(factory.unit()),
            (b::LOC_UNKNOWN, []) => Some(factory.unknown_location()),
            (b::FLAT_SYMBOL_REF, [Field::Attribute(name)]) => Some(factory.flat_symbol(self.string(*name)?)),
            (b::SYMBOL_REF, [Field::Attribute(root), Field::Count(_), nested @ ..]) => {
                let (root, nested) = (*root, attributes_of(nested));
                let nested: Vec<_> = nested.into_iter().map(|id| self.attribute(factory, id)).collect();
                factory.symbol(self.string(root)?, &nested)
            }
            (b::ARRAY, [Field::Count(_), elements @ ..]) => {
                let elements: Vec<_> = attributes_of(elements).into_iter().map(|id| self.attribute(factory, id)).collect();
                Some(factory.array(&elements))
            }
            (b::DICTIONARY, [Field::Count(_), items @ ..]) => {
                let items = attributes_of(items);
                self.dictionary(factory, &items)
            }
            (b::TYPE, [Field::Type(of)]) => {
                let of = *of;
                Some(factory.type_attribute(self.r#type(factory, of)))
            }
            (b::INTEGER, [Field::Type(of), Field::Unsigned(bits)]) => {
                let (of, bits) = (*of, *bits);
                let entry = self.tables.r#type(of);
                let width = match (entry.dialect, entry.code, &entry.fields[..]) {
                    (dialect::BUILTIN, Code::Known(b::INTEGER_TYPE), [Field::Unsigned(width)]) => u32::try_from(width >> 2).ok()?,
                    (dialect::BUILTIN, Code::Known(b::INDEX_TYPE), _) => 64,
                    _ => return None,
                };
                let unused = 64u32.checked_sub(width).filter(|unused| *unused < 64)?;
                let value = ((bits << unused) as i64) >> unused;
                factory.integer(self.r#type(factory, of), value)
            }
            (b::LOC_FILE, [Field::Attribute(file), Field::Unsigned(line), Field::Unsigned(column)]) => {
                let (line, column) = (u32::try_from(*line).ok()?, u32::try_from(*column).ok()?);
                Some(factory.file_location(self.string(*file)?, [line, column, line, column]))
            }
            (b::LOC_FILE_RANGE, [Field::Attribute(file), Field::Count(_), numbers @ ..]) => {
                let range = file_range(numbers)?;
                Some(factory.file_location(self.string(*file)?, range))
            }
            (b::LOC_NAME, [Field::Attribute(name), Field::Attribute(child)]) => {
                let (name, child) = (*name, *child);
                if !is_location(self.tables.attribute(child)) {
                    return None;
                }
                let child = self.attribute(factory, child);
                Some(factory.name_location(self.string(name)?, child))
            }
            (b::LOC_CALLSITE, [Field::Attribute(callee), Field::Attribute(caller)]) => {
                let (callee, caller) = (*callee, *caller);
                if ![callee, caller].into_iter().all(|id| is_location(self.tables.attribute(id))) {
                    return None;
                }
                let callee = self.attribute(factory, callee);
                let caller = self.attribute(factory, caller);
                Some(factory.call_site_location(callee, caller))
            }
            _ => None,
        }
    }

    /// A dictionary of alternating keys and values, if its keys are strings in MLIR's order.
    fn dictionary(&mut self, factory: Factory<'static>, items: &[AttributeId]) -> Option<Attribute<'static>> {
        let (pairs, _) = items.as_chunks::<2>();
        let mut previous: Option<Vec<u8>> = None;
        let mut named = Vec::with_capacity(pairs.len());
        for [key, value] in pairs {
            let key = self.tables.string(*key)?.to_vec();
            if previous.as_ref().is_some_and(|previous| *previous >= key) || std::str::from_utf8(&key).is_err() || key.is_empty() {
                return None;
            }
            named.push((factory.name(&key), self.attribute(factory, *value)));
            previous = Some(key);
        }
        Some(factory.dictionary(&named))
    }

    /// The text of a builtin string attribute.
    fn string(&self, id: AttributeId) -> Option<&[u8]> {
        let entry = self.tables.attribute(id);
        if entry.is(dialect::BUILTIN, code::builtin::STRING) { entry.bytes().map(|bytes| &bytes.0[..]) } else { None }
    }

    fn r#type(&mut self, factory: Factory<'static>, id: TypeId) -> Type<'static> {
        if let Some(known) = self.types.get(id.index()).copied().flatten() {
            return known;
        }
        let handle = |factory: Factory<'static>| factory.opaque_type(OWN_DIALECT, &format!("entry<{}>", id.0));
        let made = match self.real_type(factory, id) {
            Some(made) if self.type_ids.get(&made).is_some_and(|known| *known != id) => handle(factory),
            Some(made) => made,
            None => handle(factory),
        };
        self.type_ids.insert(made, id);
        if self.types.len() <= id.index() {
            self.types.resize(self.tables.type_count(), None);
        }
        self.types[id.index()] = Some(made);
        made
    }

    fn real_type(&mut self, factory: Factory<'static>, id: TypeId) -> Option<Type<'static>> {
        use code::builtin as b;
        /// MLIR's `IntegerType::kMaxWidth`.
        const MAX_INTEGER_WIDTH: u64 = (1 << 24) - 1;
        let entry = self.tables.r#type(id);
        let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { return None };
        match (code, &entry.fields[..]) {
            (b::INTEGER_TYPE, [Field::Unsigned(packed)]) if packed >> 2 <= MAX_INTEGER_WIDTH && packed & 3 < 3 => {
                Some(factory.integer_type((packed >> 2) as u32, packed & 3))
            }
            (b::INDEX_TYPE, []) => Some(factory.index_type()),
            (b::BF16_TYPE, []) => factory.float_type("bf16"),
            (b::F16_TYPE, []) => factory.float_type("f16"),
            (b::F32_TYPE, []) => factory.float_type("f32"),
            (b::F64_TYPE, []) => factory.float_type("f64"),
            (b::FUNCTION_TYPE, _) => {
                let (inputs, results) = function_types(entry)?;
                let inputs: Vec<_> = inputs.into_iter().map(|id| self.r#type(factory, id)).collect();
                let results: Vec<_> = results.into_iter().map(|id| self.r#type(factory, id)).collect();
                Some(factory.function_type(&inputs, &results))
            }
            (b::TENSOR_TYPE, _) => {
                let (shape, element) = (entry.leading_signed()?, entry.types().next()?);
                let element = self.r#type(factory, element);
                factory.tensor_type(&shape, element)
            }
            _ => None,
        }
    }
}

fn is_location(entry: &Entry<'_>) -> bool {
    use code::builtin as b;
    let is_code = |code| matches!(code, b::LOC_CALLSITE..=b::LOC_UNKNOWN | b::LOC_FILE_RANGE);
    entry.dialect == dialect::BUILTIN && matches!(entry.code, Code::Known(code) if is_code(code))
}

fn attributes_of(fields: &[Field<'_>]) -> Vec<AttributeId> {
    let ids = fields.iter().filter_map(|field| match field {
        Field::Attribute(id) => Some(*id),
        _ => None,
    });
    ids.collect()
}

/// Start line and column, end line and column, from the two to four numbers of the encoding.
fn file_range(numbers: &[Field<'_>]) -> Option<[u32; 4]> {
    let number = |index: usize| match numbers.get(index) {
        Some(Field::Unsigned(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    let (line, column) = (number(0)?, number(1)?);
    match numbers.len() {
        2 => Some([line, column, line, column]),
        3 => Some([line, column, line, number(2)?]),
        4 => Some([line, column, number(2)?, number(3)?]),
        _ => None,
    }
}

/// The inputs and results of a function type, builtin or vhlo.
pub(super) fn function_types(entry: &Entry<'_>) -> Option<(Vec<TypeId>, Vec<TypeId>)> {
    let [Field::Count(inputs), rest @ ..] = &entry.fields[..] else { return None };
    let inputs = *inputs as usize;
    let types = |fields: &[Field<'_>]| {
        let types = fields.iter().map(|field| match field {
            Field::Type(id) => Some(*id),
            _ => None,
        });
        types.collect::<Option<Vec<_>>>()
    };
    Some((types(rest.get(..inputs)?)?, types(rest.get(inputs + 1..)?)?))
}

impl<'a> Session<'a> {
    /// The factory for what the maps keep. The maps live in the session, and so never longer than the context.
    fn lasting_factory(&self) -> Factory<'static> {
        self.factory().lasting()
    }

    /// The attribute of an entry.
    pub fn attribute(&self, id: AttributeId) -> Attribute<'_> {
        self.entries.borrow_mut().attribute(self.lasting_factory(), id)
    }

    /// The type of an entry.
    pub fn r#type(&self, id: TypeId) -> Type<'_> {
        self.entries.borrow_mut().r#type(self.lasting_factory(), id)
    }

    /// The location of an entry.
    pub fn location(&self, id: AttributeId) -> Attribute<'_> {
        let factory = self.lasting_factory();
        let entries = &mut *self.entries.borrow_mut();
        let made = entries.attribute(factory, id);
        if is_location(entries.tables.attribute(id)) {
            return made;
        }
        let carried = *entries.carried_locations.entry(id).or_insert_with(|| factory.carrying_location(made));
        entries.attribute_ids.insert(carried, id);
        carried
    }

    /// The unknown location.
    pub fn unknown_location(&self) -> Attribute<'_> {
        let id = self.entries.borrow_mut().tables.unknown_location();
        self.location(id)
    }

    /// Adds an entry to the tables, if it is not there, and makes its attribute.
    pub fn add_attribute(&self, entry: Entry<'a>) -> (AttributeId, Attribute<'_>) {
        let id = self.entries.borrow_mut().tables.intern_attribute(entry);
        (id, self.attribute(id))
    }

    /// Adds a type to the tables, if it is not there, and makes it.
    pub fn add_type(&self, entry: Entry<'a>) -> Type<'_> {
        let id = self.entries.borrow_mut().tables.intern_type(entry);
        self.r#type(id)
    }

    /// The entry of an attribute: the one it came from, or a new one where a pass made it.
    pub fn attribute_id(&self, attribute: Attribute<'_>) -> Result<AttributeId> {
        let known = || self.entries.borrow().attribute_ids.get(&attribute.lasting()).copied();
        if known().is_none() {
            self.read(Node::Attribute(attribute))?;
        }
        known().ok_or_else(|| Error::bug("an attribute that was read is not known"))
    }

    /// The entry of a type: the one it came from, or a new one.
    pub fn type_id(&self, of: Type<'_>) -> Result<TypeId> {
        let known = || self.entries.borrow().type_ids.get(&of.lasting()).copied();
        if known().is_none() {
            self.read(Node::Type(of))?;
        }
        known().ok_or_else(|| Error::bug("a type that was read is not known"))
    }

    /// Makes the entry of an attribute or a type, after those of all that it holds.
    fn read(&self, root: Node<'_>) -> Result<()> {
        let is_unknown = |node: &Node<'_>| match node {
            Node::Attribute(attribute) => !self.entries.borrow().attribute_ids.contains_key(&attribute.lasting()),
            Node::Type(of) => !self.entries.borrow().type_ids.contains_key(&of.lasting()),
        };
        let mut work = vec![root];
        while let Some(node) = work.last().copied() {
            if is_unknown(&node) {
                let before = work.len();
                work.extend(node.inside().into_iter().filter(is_unknown));
                if work.len() > before {
                    continue;
                }
                match node {
                    Node::Attribute(attribute) => {
                        let id = self.read_attribute(attribute)?;
                        self.entries.borrow_mut().attribute_ids.insert(attribute.lasting(), id);
                    }
                    Node::Type(of) => {
                        let id = self.read_type(of)?;
                        self.entries.borrow_mut().type_ids.insert(of.lasting(), id);
                    }
                }
            }
            work.pop();
        }
        Ok(())
    }

    /// The tables, to be added to.
    pub(super) fn tables_mut(&self) -> RefMut<'_, Tables<'a>> {
        RefMut::map(self.entries.borrow_mut(), |entries| &mut entries.tables)
    }

    /// The entry equal to `entry`, made where there is none; MLIR's attribute is made when it is asked for.
    pub(super) fn intern(&self, entry: Entry<'a>) -> AttributeId {
        self.tables_mut().intern_attribute(entry)
    }

    /// The entry of a builtin string.
    pub fn add_string(&self, text: &[u8]) -> AttributeId {
        self.add_attribute(Entry::new(dialect::BUILTIN, code::builtin::STRING, [Field::String(owned(text))])).0
    }

    /// The entry of a vhlo string.
    pub fn add_vhlo_string(&self, text: &[u8]) -> AttributeId {
        self.add_attribute(Entry::new(dialect::VHLO, code::vhlo::STRING, [Field::String(owned(text))])).0
    }

    /// The dictionary of a function's argument, from its `dict_v1`. Where MLIR cannot take it as it is, it carries the entry.
    pub(crate) fn argument_dictionary(&self, id: AttributeId) -> Attribute<'_> {
        let factory = self.lasting_factory();
        let entries = &mut *self.entries.borrow_mut();
        let items: Vec<_> = entries.tables.attribute(id).attributes().collect();
        // `func.func` wants names with a dialect.
        let are_prefixed = items.iter().step_by(2).all(|key| entries.tables.string(*key).is_some_and(|key| key.contains(&b'.')));
        let made = if are_prefixed { entries.dictionary(factory, &items) } else { None };
        let made = made.filter(|made| entries.argument_dictionaries.get(made).is_none_or(|known| *known == id));
        let made = made.unwrap_or_else(|| {
            let handle = entries.attribute(factory, id);
            factory.dictionary(&[(factory.name(ARGUMENT_ENTRY.as_bytes()), handle)])
        });
        entries.argument_dictionaries.insert(made, id);
        made
    }

    /// The `dict_v1` of a function's argument, from its dictionary.
    pub(super) fn argument_dictionary_id(&self, dictionary: Attribute<'_>) -> Result<AttributeId> {
        if let Some(id) = self.entries.borrow().argument_dictionaries.get(&dictionary.lasting()) {
            return Ok(*id);
        }
        let items = dictionary.as_dictionary().ok_or_else(|| Error::bug("the attributes of an argument are no dictionary"))?;
        if let [(name, value)] = items[..]
            && name.as_str() == ARGUMENT_ENTRY
        {
            return self.attribute_id(value);
        }
        let mut fields = vec![Field::Count(items.len() as u32)];
        for (name, value) in items {
            fields.push(Field::Attribute(self.add_vhlo_string(name.as_bytes())));
            fields.push(Field::Attribute(self.attribute_id(value)?));
        }
        Ok(self.add_attribute(Entry::new(dialect::VHLO, code::vhlo::DICT, fields)).0)
    }

    /// The table's name for the name of an operation, where the module had it, or else from the dialect and name.
    pub(super) fn op_name_id(&self, name: Name<'_>) -> Result<OpNameId> {
        if let Some(id) = self.entries.borrow().op_names.get(&name.lasting()) {
            return Ok(*id);
        }
        let (dialect, rest) = name.as_str().split_once('.').ok_or_else(|| Error::bug("an operation without a dialect"))?;
        let dialect = match dialect {
            "builtin" => dialect::BUILTIN,
            "vhlo" => dialect::VHLO,
            "sdy" => dialect::SDY,
            OWN_DIALECT => self.tables_mut().add_dialect(OWN_DIALECT.as_bytes()),
            _ => return Err(Error::bug(format!("a pass left the operation `{}`", name.as_str()))),
        };
        let entries = &mut *self.entries.borrow_mut();
        let id = entries.tables.intern_op_name(dialect, rest.as_bytes().to_vec().into(), true);
        entries.op_names.insert(name.lasting(), id);
        Ok(id)
    }

    /// Remembers what an operation name in MLIR is in the tables.
    pub(super) fn know_op_name(&self, name: Name<'_>, id: OpNameId) {
        self.entries.borrow_mut().op_names.insert(name.lasting(), id);
    }

    /// Remembers the order of a value's uses.
    pub(super) fn know_use_order(&self, value: Value<'_>, order: Vec<u32>) {
        self.entries.borrow_mut().use_orders.insert(value.lasting(), order);
    }

    /// The order of a value's uses in memory, where it is not the order of the text: as it was read, or, once a pass changed something, as JAX's
    /// writer leaves it. That one reverses the uses of a cast from the builtin types of Shardy's operations to vhlo, and, in JAX 0.4.36 to 0.4.38
    /// (StableHLO 1.8), those of every block argument.
    pub(super) fn use_order(&self, value: Value<'_>) -> Option<Vec<u32>> {
        let entries = self.entries.borrow();
        if !entries.has_changed {
            return entries.use_orders.get(&value.lasting()).cloned();
        }
        let is_reversed = match value.definition() {
            Definition::Argument(..) => self.reverses_argument_uses,
            Definition::Result(operation, _) => {
                let is_cast = operation.is("builtin.unrealized_conversion_cast") && operation.operand_count() == 1;
                let id = entries.type_ids.get(&value.r#type().lasting()).filter(|_| is_cast);
                id.is_some_and(|id| entries.tables.r#type(*id).dialect == dialect::VHLO)
            }
        };
        let count = if is_reversed { value.uses().count() as u32 } else { 0 };
        (count > 1).then(|| (0..count).rev().collect())
    }

    /// Notes that a pass changed the module. The orders of uses that were read no longer hold; they have no meaning, so nothing is lost.
    pub fn note_change(&self) {
        let entries = &mut *self.entries.borrow_mut();
        entries.has_changed = true;
        entries.use_orders.clear();
    }

    /// The source place of an operation, for messages.
    pub fn place(&self, operation: Op<'_>) -> String {
        match self.attribute_id(operation.location()) {
            Ok(id) => super::place(&self.tables(), id),
            Err(_) => super::place::UNKNOWN.to_owned(),
        }
    }
}

fn owned(text: &[u8]) -> Bytes<'static> {
    Bytes(text.to_vec().into())
}
