//! Measures one module: what each attribute, type, string and operation is for, and which function it belongs to.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and positions are those of the module and the layout at hand, which were checked when they were made"
)]

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxHashSet;

use super::owners::{MODULE, Owner, Tree};
use super::{AttributeKind, Constant, Function, Level, List, LocationFile, Own, Sections, SizeOptions, StringUse, Strings, Text};
use crate::bytecode::{AttributeId, Bytecode, Code, Entry, Field, Layout, Operation, OperationLayout, TypeId, code, dialect, entry_row};
use crate::inspect::{Kind, View, is_location, type_text};

/// Most calls that are followed. JAX's exports have thousands.
const MOST_CALLS: usize = 1 << 22;
/// Longest name, place or string in the report.
const LONGEST_TEXT: usize = 200;
const BACKEND_CONFIG: &str = "backend configuration";
const SHARDING: &str = "sharding";

/// What an attribute or type counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Constant,
    /// Of a location that leads to this file, a position in [`Measure::files`].
    Location(usize),
    /// A position in [`Measure::kinds`].
    Attribute(usize),
    Type(usize),
}

/// What names a string first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Namer {
    Names,
    Location(usize),
    Attribute(usize),
    Resources,
    Nothing,
}

/// How many there are of something, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: usize,
    bytes: u64,
    string_bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn add_string(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.string_bytes += bytes;
    }
}

/// A module that is being measured. Entries are its attributes, then its types.
struct Measure<'m, 'a> {
    view: View<'m, 'a>,
    layout: &'m Layout<'a>,
    /// Bytes of each entry, and with those of its size.
    entries: Vec<(u64, u64)>,
    /// Positions of the functions that are in no other.
    functions: Vec<u32>,
    /// The node of the function around each operation.
    node_of: Vec<u32>,
    tree: Option<Tree>,
    /// The string of each text; equal ones count as the first.
    string_of: HashMap<&'a [u8], usize>,
    /// The attribute of a location that says where each location is: its file and line, or else a name.
    sources: Vec<Option<AttributeId>>,
    kinds: IndexMap<String, Sum>,
    /// By the attribute of the file's name.
    files: IndexMap<Option<AttributeId>, Sum>,
}

/// Measures a module whose layout was read with it.
pub fn measure<'a>(bytecode: &Bytecode<'a>, layout: &Layout<'a>, options: &SizeOptions) -> Level {
    Measure::new(bytecode, layout).level(options.longest_list)
}

impl<'m, 'a> Measure<'m, 'a> {
    fn new(bytecode: &'m Bytecode<'a>, layout: &'m Layout<'a>) -> Self {
        let view = View::new(bytecode);
        let attributes = bytecode.tables.attribute_count();
        let mut entries = vec![(0, 0); attributes + bytecode.tables.type_count()];
        let mut add = |entry: usize, bytes: u64, offset_bytes: u64| {
            entries[entry].0 += bytes;
            entries[entry].1 += bytes + offset_bytes;
        };
        layout.each_attribute.iter().for_each(|entry| add(entry.id.index(), entry.bytes, entry.offset_bytes));
        layout.each_type.iter().for_each(|entry| add(attributes + entry.id.index(), entry.bytes, entry.offset_bytes));
        let mut functions: Vec<u32> = Vec::new();
        let mut node_of = vec![MODULE; bytecode.tree.operations.len()];
        for &position in &view.functions {
            if node_of[position as usize] == MODULE {
                functions.push(position);
                node_of[position as usize..view.operation(position).end as usize].fill(functions.len() as u32);
            }
        }
        let mut string_of = HashMap::new();
        layout.each_string.iter().enumerate().for_each(|(index, (text, _))| _ = string_of.entry(*text).or_insert(index));
        let (sources, kinds, files) = (sources(bytecode), IndexMap::new(), IndexMap::new());
        let mut measure = Self { view, layout, entries, functions, node_of, tree: None, string_of, sources, kinds, files };
        measure.tree = measure.tree();
        measure
    }

    fn tree(&self) -> Option<Tree> {
        let public: Vec<_> = self.functions.iter().map(|&position| self.view.is_public(self.view.operation(position))).collect();
        let node = |position: u32| self.node_of[position as usize];
        let mut calls: FxHashSet<_> = self.view.calls.iter().map(|(call, callee)| (node(*call), node(*callee))).collect();
        let name = |position: &u32| Some((self.view.symbol(self.view.operation(*position), "sym_name")?, node(*position)));
        let by_name: HashMap<_, _> = self.functions.iter().filter_map(name).collect();
        let mut seen = FxHashSet::default();
        for (position, _) in &self.view.custom_calls {
            let operation = self.view.operation(*position);
            let is_new = self.bytecode().inherent(operation, "called_computations").is_some_and(|id| seen.insert((node(*position), id)));
            if is_new {
                let named = self.view.called_computations(operation);
                calls.extend(named.into_iter().filter_map(|name| Some((node(*position), *by_name.get(name)?))));
            }
            if calls.len() > MOST_CALLS {
                return None;
            }
        }
        calls.retain(|(caller, callee)| *caller != MODULE && *callee != MODULE);
        Tree::new(&public, &calls)
    }

    fn bytecode(&self) -> &'m Bytecode<'a> {
        self.view.bytecode
    }

    fn attribute_count(&self) -> usize {
        self.bytecode().tables.attribute_count()
    }

    fn entry(&self, entry: usize) -> &'m Entry<'a> {
        let tables = &self.bytecode().tables;
        match entry.checked_sub(tables.attribute_count()) {
            None => tables.attribute(AttributeId(entry as u32)),
            Some(number) => tables.r#type(TypeId(number as u32)),
        }
    }

    /// The entries that an entry names.
    fn named_by(&self, entry: usize) -> impl Iterator<Item = usize> + use<'m, 'a> {
        let attributes = self.attribute_count();
        self.entry(entry).fields.iter().filter_map(move |field| match field {
            Field::Attribute(id) => Some(id.index()),
            Field::Type(id) => Some(attributes + id.index()),
            _ => None,
        })
    }

    /// The strings that an entry names.
    fn strings_of(&self, entry: usize) -> impl Iterator<Item = usize> {
        let entry = self.entry(entry);
        let fields = if entry.code == Code::Text { &[][..] } else { &entry.fields };
        fields.iter().filter_map(|field| match field {
            Field::String(text) => self.string_of.get(&text.0[..]).copied(),
            _ => None,
        })
    }

    /// Every entry behind all that name it.
    fn namers_first(&self) -> Vec<usize> {
        let mut namers = vec![0u32; self.entries.len()];
        (0..self.entries.len()).for_each(|entry| self.named_by(entry).for_each(|named| namers[named] += 1));
        let mut order: Vec<usize> = (0..self.entries.len()).filter(|entry| namers[*entry] == 0).collect();
        let mut next = 0;
        while let Some(&entry) = order.get(next) {
            next += 1;
            for named in self.named_by(entry) {
                namers[named] -= 1;
                if namers[named] == 0 {
                    order.push(named);
                }
            }
        }
        order
    }

    /// Calls `user` with each entry that an operation names directly, and with whether it is named as a location.
    fn each_use(&self, position: usize, mut user: impl FnMut(usize, bool)) {
        let tree = &self.bytecode().tree;
        let operation = &tree.operations[position];
        let attributes = self.attribute_count();
        user(operation.location.index(), true);
        operation.attributes.iter().for_each(|id| user(id.index(), false));
        let properties = operation.properties.map_or(&[][..], |span| &tree.properties[span.range()]);
        properties.iter().flatten().for_each(|id| user(id.index(), false));
        tree.value_types[operation.results.range()].iter().for_each(|id| user(attributes + id.index(), false));
        for block in tree.regions_of(operation).iter().flat_map(|region| tree.blocks_of(region)) {
            tree.value_types[block.arguments.range()].iter().for_each(|id| user(attributes + id.index(), false));
            let locations = block.locations as usize..block.locations as usize + block.arguments.len as usize;
            tree.argument_locations[locations].iter().for_each(|id| user(id.index(), true));
        }
    }

    fn level(mut self, longest: usize) -> Level {
        let order = self.namers_first();
        let uses = self.constant_uses();
        let classes = self.classes(&order, &uses);
        let namers = self.namers(&classes);
        let sections = self.sections(&classes);
        let functions = self.own(&order, &classes, longest);
        let constants = uses.iter().map(|(id, uses)| (self.entries[id.index()].0, (*id, &uses[..])));
        let kind = |(kind, sum): (&String, &Sum)| {
            (sum.bytes, AttributeKind { kind: kind.clone(), count: sum.count, bytes: sum.bytes, string_bytes: sum.string_bytes })
        };
        let file = |(file, sum): (&Option<AttributeId>, &Sum)| {
            let file = file.and_then(|file| self.bytecode().tables.string(file)).map(text);
            (sum.bytes, LocationFile { file, count: sum.count, bytes: sum.bytes, string_bytes: sum.string_bytes })
        };
        Level {
            level: 0,
            function_name: None,
            bytes: self.layout.total(),
            sections,
            constants: list(constants.collect(), longest, |(id, uses)| self.constant(id, uses)),
            functions,
            attributes: list(self.kinds.iter().map(kind).collect(), longest, |kind| kind),
            locations: list(self.files.iter().map(file).collect(), longest, |file| file),
            strings: self.strings(&namers, longest),
        }
    }

    /// The values of constant operations, with the positions of these.
    fn constant_uses(&self) -> IndexMap<AttributeId, Vec<u32>> {
        let mut uses: IndexMap<AttributeId, Vec<u32>> = IndexMap::new();
        for position in self.view.positions(Kind::Constant) {
            if let Some(value) = self.bytecode().inherent(self.view.operation(position), "value") {
                uses.entry(value).or_default().push(position);
            }
        }
        uses
    }

    /// What each entry counts as, and the sums of kinds and files.
    fn classes(&mut self, order: &[usize], constants: &IndexMap<AttributeId, Vec<u32>>) -> Vec<Class> {
        let (roles, attributes) = (self.roles(), self.attribute_count());
        // Whether anything but a location names it, and the file of the first location that does.
        let (mut otherwise, mut file_of) = (vec![false; self.entries.len()], vec![None; self.entries.len()]);
        for position in 0..self.bytecode().tree.operations.len() {
            self.each_use(position, |entry, as_location| otherwise[entry] |= !as_location);
        }
        let mut classes = vec![Class::Constant; self.entries.len()];
        for &entry in order {
            let id = AttributeId(entry as u32);
            let class = if entry >= attributes {
                Class::Type(self.kind(format!("type {}", mnemonic(self.bytecode(), self.entry(entry), true))))
            } else if is_location(self.bytecode(), id) {
                Class::Location(self.file(self.file_name(id)))
            } else if constants.contains_key(&id) {
                Class::Constant
            } else if let (Some(file), false) = (file_of[entry], otherwise[entry]) {
                Class::Location(file)
            } else {
                let role = roles.get(&id).map_or_else(|| mnemonic(self.bytecode(), self.entry(entry), false), |role| (*role).to_owned());
                Class::Attribute(self.kind(role))
            };
            classes[entry] = class;
            for named in self.named_by(entry) {
                match class {
                    Class::Location(file) => _ = file_of[named].get_or_insert(file),
                    _ => otherwise[named] = true,
                }
            }
            // What the tables hold without the file's doing takes no bytes.
            if self.entries[entry].1 > 0 {
                match class {
                    Class::Location(file) => self.files[file].add(self.entries[entry].0),
                    Class::Attribute(kind) | Class::Type(kind) => self.kinds[kind].add(self.entries[entry].0),
                    Class::Constant => {}
                }
            }
        }
        classes
    }

    fn kind(&mut self, kind: String) -> usize {
        let entry = self.kinds.entry(kind);
        let index = entry.index();
        entry.or_default();
        index
    }

    fn file(&mut self, file: Option<AttributeId>) -> usize {
        let entry = self.files.entry(file);
        let index = entry.index();
        entry.or_default();
        index
    }

    /// The name of the file that a location leads to.
    fn file_name(&self, location: AttributeId) -> Option<AttributeId> {
        let entry = self.bytecode().tables.attribute(self.sources[location.index()]?);
        let is_file = entry.is(dialect::BUILTIN, code::builtin::LOC_FILE) || entry.is(dialect::BUILTIN, code::builtin::LOC_FILE_RANGE);
        entry.attributes().next().filter(|_| is_file)
    }

    /// Attributes that are known by what they are for.
    fn roles(&self) -> HashMap<AttributeId, &'static str> {
        let tables = &self.bytecode().tables;
        let mut roles = HashMap::new();
        for id in (0..self.attribute_count() as u32).map(AttributeId) {
            if tables.attribute(id).dialect == dialect::SDY {
                roles.insert(id, SHARDING);
            }
            let values = tables.dictionary(id).into_iter().flatten();
            values.filter(|(key, _)| *key == b"mhlo.sharding").for_each(|(_, value)| _ = roles.insert(value, SHARDING));
        }
        for (position, _) in &self.view.custom_calls {
            let operation = self.view.operation(*position);
            let configs = [self.bytecode().inherent(operation, "backend_config"), self.view.discardable(operation, "mhlo.backend_config")];
            // Those without one share an empty string with whatever else has none.
            let says_something = |id: &AttributeId| tables.string(*id) != Some(b"");
            for id in configs.into_iter().flatten().filter(says_something) {
                if roles.insert(id, BACKEND_CONFIG) == Some(BACKEND_CONFIG) {
                    continue;
                }
                let texts = tables.dictionary(id).into_iter().flatten().filter(|(_, value)| tables.string(*value).is_some());
                texts.for_each(|(_, value)| _ = roles.entry(value).or_insert(BACKEND_CONFIG));
            }
        }
        roles
    }

    /// What names each string first; adds their bytes to those of kinds and files.
    fn namers(&mut self, classes: &[Class]) -> Vec<Namer> {
        let mut namers = vec![Namer::Nothing; self.layout.each_string.len()];
        let mut name = |string: Option<usize>, namer| {
            if let Some(found) = string.map(|string| &mut namers[string]).filter(|found| **found == Namer::Nothing) {
                *found = namer;
            }
        };
        let bytecode = self.bytecode();
        let find = |text: &[u8]| self.string_of.get(text).copied();
        self.layout.each_dialect.iter().for_each(|id| name(find(bytecode.tables.dialect(*id)), Namer::Names));
        self.layout.each_name.iter().for_each(|id| name(find(&bytecode.tables.op_name(*id).name), Namer::Names));
        for (entry, class) in classes.iter().enumerate() {
            let namer = match class {
                Class::Location(file) => Namer::Location(*file),
                Class::Attribute(kind) | Class::Type(kind) => Namer::Attribute(*kind),
                Class::Constant => continue,
            };
            self.strings_of(entry).for_each(|string| name(Some(string), namer));
        }
        let resources = &bytecode.resources;
        let keys = resources.external.iter().flat_map(|(key, group)| std::iter::once(*key).chain(group.iter().map(|one| one.key)));
        let keys = keys.chain(resources.dialect.iter().flat_map(|(_, group)| group.iter().map(|one| one.key)));
        keys.for_each(|key| name(find(key), Namer::Resources));
        for (namer, (_, bytes)) in namers.iter().zip(&self.layout.each_string) {
            match namer {
                Namer::Location(file) => self.files[*file].add_string(*bytes),
                Namer::Attribute(kind) => self.kinds[*kind].add_string(*bytes),
                _ => {}
            }
        }
        namers
    }

    fn sections(&self, classes: &[Class]) -> Sections {
        let layout = self.layout;
        let mut sections = Sections {
            operations: layout.operations,
            properties: layout.properties,
            offsets: layout.offsets,
            strings: layout.strings,
            names: layout.names,
            resources: layout.resources,
            headers: layout.headers,
            ..Sections::default()
        };
        for (class, (bytes, _)) in classes.iter().zip(&self.entries) {
            *match class {
                Class::Constant => &mut sections.constants,
                Class::Location(_) => &mut sections.locations,
                Class::Attribute(_) => &mut sections.attributes,
                Class::Type(_) => &mut sections.types,
            } += bytes;
        }
        sections
    }

    /// The functions, with what belongs to them.
    fn own(&self, order: &[usize], classes: &[Class], longest: usize) -> List<Function> {
        let flat;
        let tree = match &self.tree {
            Some(tree) => tree,
            None => {
                flat = Tree::flat(self.functions.len());
                &flat
            }
        };
        let mut owners = vec![Owner::default(); self.entries.len()];
        let mut properties = vec![Owner::default(); self.layout.each_properties.len()];
        let mut strings = vec![Owner::default(); self.layout.each_string.len()];
        let mut own = vec![Own::default(); self.functions.len() + 1];
        let mut retained = vec![0; self.functions.len() + 1];
        let mut belongs = |owner: Owner, bytes: u64, part: fn(&mut Own) -> &mut u64| {
            let (only, below) = (owner.only.unwrap_or(MODULE), owner.below.unwrap_or(MODULE));
            *part(&mut own[only as usize]) += bytes;
            retained[below as usize] += bytes;
        };
        for (position, OperationLayout { bytes, properties: set, .. }) in self.layout.each_operation.iter().enumerate() {
            let owner = Owner::one(self.node_of[position]);
            belongs(owner, *bytes, |own| &mut own.operations);
            set.iter().for_each(|set| properties[*set as usize].add(owner, tree));
            self.each_use(position, |entry, _| owners[entry].add(owner, tree));
        }
        for &entry in order {
            let owner = owners[entry];
            self.named_by(entry).for_each(|named| owners[named].add(owner, tree));
            self.strings_of(entry).for_each(|string| strings[string].add(owner, tree));
        }
        // The names of operations and dialects are everybody's.
        let names = self.layout.each_name.iter().map(|id| &self.bytecode().tables.op_name(*id).name[..]);
        let dialects = self.layout.each_dialect.iter().map(|id| self.bytecode().tables.dialect(*id));
        let everybody = names.chain(dialects).filter_map(|text| self.string_of.get(text));
        everybody.for_each(|string| strings[*string].add(Owner::one(MODULE), tree));
        for ((owner, class), (_, bytes)) in owners.iter().zip(classes).zip(&self.entries) {
            let part: fn(&mut Own) -> &mut u64 = match class {
                Class::Constant => |own| &mut own.constants,
                Class::Location(_) => |own| &mut own.locations,
                Class::Attribute(_) | Class::Type(_) => |own| &mut own.attributes,
            };
            belongs(*owner, *bytes, part);
        }
        properties.iter().zip(&self.layout.each_properties).for_each(|(owner, bytes)| belongs(*owner, *bytes, |own| &mut own.properties));
        strings.iter().zip(&self.layout.each_string).for_each(|(owner, (_, bytes))| belongs(*owner, *bytes, |own| &mut own.strings));
        tree.add_up(&mut retained);
        let function = |node: u32| {
            let position = self.functions[node as usize - 1];
            let operation = self.view.operation(position);
            Function {
                name: self.function_name(node),
                public: self.view.is_public(operation),
                operations: (operation.end - position - 1) as usize,
                bytes: own[node as usize].total(),
                own: own[node as usize],
                retained: self.tree.as_ref().map(|_| retained[node as usize]),
                place: self.place(operation),
            }
        };
        let mut nodes: Vec<u32> = (1..=self.functions.len() as u32).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse((retained[*node as usize], own[*node as usize].total())));
        let bytes = own[1..].iter().map(Own::total).sum();
        List { count: nodes.len(), bytes, largest: nodes.into_iter().take(longest).map(function).collect() }
    }

    fn constant(&self, id: AttributeId, uses: &[u32]) -> Constant {
        let bytecode = self.bytecode();
        let r#type = bytecode.tables.attribute(id).types().next();
        let shape = r#type.and_then(|id| bytecode.tables.tensor(id)).map(|(shape, _)| shape);
        let type_text = r#type.map_or_else(|| "?".to_owned(), |id| type_text(bytecode, id));
        let dtype = shape.as_ref().and_then(|_| type_text.split_once('[')).map(|(dtype, _)| dtype.to_owned());
        let functions: IndexSet<_> = uses.iter().map(|position| self.node_of[*position as usize]).collect();
        let first = uses.first().copied().unwrap_or_default();
        Constant {
            r#type: cut(&type_text),
            dtype,
            shape,
            bytes: self.entries[id.index()].0,
            splat: bytecode.tables.is_splat(id),
            uses: uses.len(),
            functions: functions.len(),
            function: self.function_name(self.node_of[first as usize]),
            place: self.place(self.view.operation(first)),
        }
    }

    fn function_name(&self, node: u32) -> String {
        let position = node.checked_sub(1).and_then(|index| self.functions.get(index as usize));
        let name = position.and_then(|position| self.view.symbol(self.view.operation(*position), "sym_name"));
        text(name.unwrap_or(b"?"))
    }

    /// The place of an operation in the user's files, where one is known, or the name that stands for it.
    fn place(&self, operation: &Operation) -> Option<String> {
        let tables = &self.bytecode().tables;
        let source = tables.attribute(self.sources[operation.location.index()]?);
        let name = text(tables.string(source.attributes().next()?)?);
        if source.is(dialect::BUILTIN, code::builtin::LOC_NAME) {
            return Some(format!("`{name}`"));
        }
        let numbers = source.fields.iter().filter_map(|field| match field {
            Field::Unsigned(number) => Some(*number),
            _ => None,
        });
        Some(numbers.take(2).fold(name, |text, number| format!("{text}:{number}")))
    }

    fn strings(&self, namers: &[Namer], longest: usize) -> Strings {
        let used_by = |namer: Namer| match namer {
            Namer::Names => "names".to_owned(),
            Namer::Location(_) => "locations".to_owned(),
            Namer::Attribute(kind) => self.kinds.get_index(kind).map_or_else(String::new, |(kind, _)| kind.clone()),
            Namer::Resources => "resources".to_owned(),
            Namer::Nothing => "nothing".to_owned(),
        };
        let mut uses: IndexMap<Namer, Sum> = IndexMap::new();
        for (namer, (_, bytes)) in namers.iter().zip(&self.layout.each_string) {
            let namer = if let Namer::Location(_) = namer { Namer::Location(0) } else { *namer };
            uses.entry(namer).or_default().add(*bytes);
        }
        let of_use = |(namer, sum): (&Namer, &Sum)| (sum.bytes, StringUse { used_by: used_by(*namer), count: sum.count, bytes: sum.bytes });
        let each = namers.iter().zip(&self.layout.each_string).map(|(namer, string)| (string.1, (*namer, string)));
        Strings {
            uses: list(uses.iter().map(of_use).collect(), longest, |of_use| of_use),
            each: list(each.collect(), longest, |(namer, (string, bytes))| Text {
                text: text(string),
                bytes: *bytes,
                used_by: used_by(namer),
            }),
        }
    }
}

/// For each location, the innermost attribute in it that says where it is: a file with a line, or else a name.
fn sources(bytecode: &Bytecode<'_>) -> Vec<Option<AttributeId>> {
    use code::builtin as b;
    let mut sources: Vec<Option<AttributeId>> = vec![None; bytecode.tables.attribute_count()];
    let is_file = |id: &AttributeId| {
        let entry = bytecode.tables.attribute(*id);
        entry.is(dialect::BUILTIN, b::LOC_FILE) || entry.is(dialect::BUILTIN, b::LOC_FILE_RANGE)
    };
    // What an attribute names stands before it.
    for id in (0..sources.len() as u32).map(AttributeId).filter(|id| is_location(bytecode, *id)) {
        let entry = bytecode.tables.attribute(id);
        let mut parts = entry.attributes().filter_map(|part| sources.get(part.index()).copied().flatten());
        sources[id.index()] = match entry.code {
            Code::Known(b::LOC_FILE | b::LOC_FILE_RANGE) => Some(id),
            Code::Known(b::LOC_NAME) => parts.next().or(Some(id)),
            _ => {
                let parts: Vec<_> = parts.collect();
                parts.iter().copied().find(is_file).or(parts.first().copied())
            }
        };
    }
    sources
}

/// The name that a dialect has for an entry.
fn mnemonic(bytecode: &Bytecode<'_>, entry: &Entry<'_>, is_type: bool) -> String {
    let dialect = String::from_utf8_lossy(bytecode.tables.dialect(entry.dialect)).into_owned();
    match entry.code {
        Code::Known(code) => {
            format!("{dialect}.{}", entry_row(entry.dialect, is_type, code).map_or("?", |row| row.name.trim_end_matches("_v1")))
        }
        Code::Text | Code::Opaque => format!("{}.text", cut(&dialect)),
    }
}

/// The largest of something, and the sums of all of it.
fn list<T, U>(mut all: Vec<(u64, T)>, longest: usize, item: impl FnMut(T) -> U) -> List<U> {
    let (count, bytes) = (all.len(), all.iter().map(|(bytes, _)| bytes).sum());
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    all.truncate(longest);
    List { count, bytes, largest: all.into_iter().map(|(_, of)| of).map(item).collect() }
}

fn text(bytes: &[u8]) -> String {
    // No more is looked at than could be shown.
    cut(&String::from_utf8_lossy(&bytes[..bytes.len().min(8 * LONGEST_TEXT)]))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some(_) => text.chars().take(LONGEST_TEXT - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
