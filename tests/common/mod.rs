//! What the tests of the codec share: the files they run over, random numbers with a seed, and an encoder that is deliberately not canonical.

#![allow(dead_code, reason = "every test crate uses a part of this")]

pub mod build;
pub mod hostile;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use jaxprism::bytecode::{
    AttributeId, Block, Bytecode, Code, DialectId, Entry, Field, Kind, MAGIC, OpNameId, Operation, Region, Resource, ResourceData, Span,
    TypeId, UseOrder, code, dialect, entry_row,
};
use jaxprism::callbacks::{CallbackOptions, Policies, Policy, Table};
use jaxprism::pieces::Pieces;
use jaxprism::{Exported, SplitOptions};

/// Options to split any export: callbacks stay, on platforms that cannot run them too.
pub fn keeping_callbacks() -> SplitOptions {
    SplitOptions::default().callbacks(CallbackOptions::new(Policies::default().otherwise(Policy::Keep), Table::default()))
}

/// A file that tests run over.
pub struct Sample {
    /// Where it is, from the folder of samples or of shipped exports on.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Modules that a hand wrote without resource sections, which every writer emits.
const WITHOUT_RESOURCE_SECTIONS: [&str; 2] = ["minimal_module.mlirbc", "const_f32x3.mlirbc"];

impl Sample {
    fn read(path: &Path, root: &Path) -> Self {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        Self { name, bytes: fs::read(path).unwrap() }
    }

    /// Whether it is plain MLIR of StableHLO, and no portable artifact.
    pub fn is_upstream(&self) -> bool {
        self.name.contains(".upstream.")
    }

    /// Whether it is malformed on purpose.
    pub fn is_hostile(&self) -> bool {
        self.name.starts_with("hostile")
    }

    /// Whether its writer left out the resource sections.
    pub fn lacks_resource_sections(&self) -> bool {
        WITHOUT_RESOURCE_SECTIONS.iter().any(|name| self.name.ends_with(name))
    }

    /// Whether JAX or its writer wrote it, so that it is canonical.
    pub fn is_canonical(&self) -> bool {
        !self.is_upstream() && !self.is_hostile() && !self.lacks_resource_sections()
    }

    /// Whether it is an export, not a module alone.
    pub fn is_export(&self) -> bool {
        !self.bytes.starts_with(MAGIC)
    }

    /// The modules in it, one per level, with the level's name and the offset in the file.
    pub fn modules(&self) -> Vec<(String, &[u8], u64)> {
        if !self.is_export() {
            return vec![(self.name.clone(), &self.bytes, 0)];
        }
        let exported = Exported::read(&self.bytes).unwrap_or_else(|error| panic!("{}: {error:?}", self.name));
        let module = |(level, exported): (usize, &Exported<'_>)| {
            let name = if level == 0 { self.name.clone() } else { format!("{}, level {level}", self.name) };
            let place = exported.module.as_borrowed().unwrap().as_ptr_range();
            let start = place.start as usize - self.bytes.as_ptr() as usize;
            let end = place.end as usize - self.bytes.as_ptr() as usize;
            (name, &self.bytes[start..end], start as u64)
        };
        exported.levels().enumerate().map(module).collect()
    }
}

/// All files below a folder with one of these endings, sorted.
pub fn files_below(root: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for item in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = item.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The exports that ship with the project.
pub fn shipped() -> Vec<Sample> {
    // The crate that includes this may be `fuzz/`.
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("testdata/exports"));
    let root = above.find(|root| root.is_dir()).expect("the exports ship with the project");
    files_below(&root, &["jax_exported"]).iter().map(|path| Sample::read(path, &root)).collect()
}

/// What the folder named by `variable` holds; says so where the variable is not set.
pub fn folder_of(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: further files, since {variable} names no folder");
    }
    folder
}

/// The exports that ship with the project and everything below the folder `JAXPRISM_SAMPLES`.
pub fn samples() -> Vec<Sample> {
    let mut samples = shipped();
    if let Some(root) = folder_of("JAXPRISM_SAMPLES") {
        samples.extend(files_below(&root, &["jax_exported", "mlirbc"]).iter().map(|path| Sample::read(path, &root)));
    }
    samples
}

/// Runs something that recurses as deep as the reader allows, on a stack like that of the threads of `split`.
pub fn on_a_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Random numbers, the same on every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Encodes a module in a way that means the same but that no writer would choose: tables in any order, some entries more than once, some that nothing
/// uses, groups cut anywhere, numbers longer than they need to be, sections in any order, nothing or anything isolated, an empty dictionary spelled out.
pub fn encode_strangely(bytecode: &Bytecode<'_>, seed: u64) -> Vec<u8> {
    Encoder::new(bytecode, seed).module()
}

/// A table in which an entry may stand several times.
struct Shuffled {
    /// What stands at each position.
    order: Vec<usize>,
    /// Where each entry stands.
    places: Vec<Vec<usize>>,
}

impl Shuffled {
    fn new(count: usize, random: &mut Random, may_double: impl Fn(usize) -> bool) -> Self {
        let doubles: Vec<usize> = (0..count).filter(|item| random.one_in(5) && may_double(*item)).collect();
        let mut order: Vec<usize> = (0..count).chain(doubles).collect();
        random.shuffle(&mut order);
        let mut places = vec![Vec::new(); count];
        order.iter().enumerate().for_each(|(place, item)| places[*item].push(place));
        Self { order, places }
    }

    fn place(&self, item: usize, random: &mut Random) -> u64 {
        let places = &self.places[item];
        places[random.below(places.len())] as u64
    }
}

struct Encoder<'b, 'a> {
    bytecode: &'b Bytecode<'a>,
    random: Random,
    attributes: Shuffled,
    types: Shuffled,
    op_names: Shuffled,
    dialects: Vec<DialectId>,
    strings: Vec<Vec<u8>>,
    properties: Vec<Vec<u8>>,
    /// Where a string or a property blob stands.
    known_strings: HashMap<Vec<u8>, usize>,
    known_properties: HashMap<Vec<u8>, usize>,
    /// A value's number in its scope, scopes one behind the other.
    numbers: Vec<u64>,
    isolated: Vec<bool>,
    empty_dictionary: Option<AttributeId>,
}

type Bytes = Vec<u8>;

impl<'b, 'a> Encoder<'b, 'a> {
    fn new(bytecode: &'b Bytecode<'a>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let tables = &bytecode.tables;
        let attribute_ids = || (0..tables.attribute_count()).map(|id| AttributeId(id as u32));
        let is_distinct = |id: usize| tables.attribute(AttributeId(id as u32)).is(dialect::BUILTIN, code::builtin::DISTINCT);
        let attributes = Shuffled::new(tables.attribute_count(), &mut random, |id| !is_distinct(id));
        let types = Shuffled::new(tables.type_count(), &mut random, |_| true);
        let op_names = Shuffled::new(tables.op_name_count(), &mut random, |_| true);
        let mut dialects: Vec<DialectId> = attribute_ids().map(|id| tables.attribute(id).dialect).collect();
        dialects.extend((0..tables.type_count()).map(|id| tables.r#type(TypeId(id as u32)).dialect));
        dialects.extend((0..tables.op_name_count()).map(|id| tables.op_name(OpNameId(id as u32)).dialect));
        dialects.extend(bytecode.resources.dialect.iter().map(|(dialect, _)| *dialect));
        dialects.sort();
        dialects.dedup();
        random.shuffle(&mut dialects);
        let isolated = isolation(bytecode).into_iter().map(|is_isolated| is_isolated && !random.one_in(3)).collect();
        let empty_dictionary = attribute_ids().find(|id| {
            let entry = tables.attribute(*id);
            entry.is(dialect::BUILTIN, code::builtin::DICTIONARY) && entry.fields[..] == [Field::Count(0)]
        });
        let numbers = vec![0; bytecode.tree.value_types.len()];
        Self {
            bytecode,
            random,
            attributes,
            types,
            op_names,
            dialects,
            strings: Vec::new(),
            properties: Vec::new(),
            known_strings: HashMap::new(),
            known_properties: HashMap::new(),
            numbers,
            isolated,
            empty_dictionary,
        }
    }

    fn module(mut self) -> Bytes {
        for _ in 0..self.random.below(4) {
            self.strings.push(b"nothing uses this".to_vec());
        }
        let mut out = MAGIC.to_vec();
        self.varint(self.bytecode.version, &mut out);
        out.extend_from_slice(&self.bytecode.producer);
        out.push(0);
        let (offsets, entries) = self.entries();
        let dialects = self.dialect_section();
        let code = self.code();
        let mut sections = vec![(1, dialects), (3, offsets), (2, entries), (4, code)];
        if self.bytecode.has_resources() || self.random.one_in(2) {
            let (offsets, resources) = self.resources();
            sections.extend([(6, offsets), (5, resources)]);
        }
        if self.bytecode.version >= 5 {
            let mut body = Vec::new();
            self.varint(self.properties.len() as u64, &mut body);
            for blob in self.properties.clone() {
                self.varint(blob.len() as u64, &mut body);
                body.extend(blob);
            }
            sections.push((8, body));
        }
        sections.push((0, self.string_section()));
        self.random.shuffle(&mut sections);
        for (id, body) in sections {
            self.section(id, body, &mut out);
        }
        out
    }

    fn section(&mut self, id: u8, body: Bytes, out: &mut Bytes) {
        out.push(id);
        self.varint(body.len() as u64, out);
        out.extend(body);
    }

    /// A number, sometimes in more bytes than it needs.
    fn varint(&mut self, value: u64, out: &mut Bytes) {
        let bits = 64 - value.leading_zeros().min(63);
        let needed = bits.div_ceil(7);
        let extra = if self.random.one_in(8) { self.random.below(9) as u32 } else { 0 };
        let bytes = (needed + extra).min(9);
        if bytes == 9 {
            out.push(0);
            out.extend(value.to_le_bytes());
        } else {
            let encoded = ((value << 1) | 1) << (bytes - 1);
            out.extend(&encoded.to_le_bytes()[..bytes as usize]);
        }
    }

    fn signed(&mut self, value: i64, out: &mut Bytes) {
        self.varint(((value << 1) ^ (value >> 63)) as u64, out);
    }

    fn flagged(&mut self, value: u64, flag: bool, out: &mut Bytes) {
        self.varint(value << 1 | u64::from(flag), out);
    }

    fn attribute(&mut self, id: AttributeId) -> u64 {
        self.attributes.place(id.index(), &mut self.random)
    }

    fn r#type(&mut self, id: TypeId) -> u64 {
        self.types.place(id.index(), &mut self.random)
    }

    fn dialect(&self, id: DialectId) -> u64 {
        self.dialects.iter().position(|known| *known == id).unwrap() as u64
    }

    /// A string's number: that of one that is there already, or of a new one.
    fn string(&mut self, text: &[u8]) -> u64 {
        let known = self.known_strings.get(text).copied().filter(|_| !self.random.one_in(6));
        let position = known.unwrap_or_else(|| {
            self.strings.push(text.to_vec());
            self.known_strings.insert(text.to_vec(), self.strings.len() - 1);
            self.strings.len() - 1
        });
        position as u64
    }

    fn string_section(&mut self) -> Bytes {
        let strings = std::mem::take(&mut self.strings);
        let mut out = Vec::new();
        self.varint(strings.len() as u64, &mut out);
        for text in strings.iter().rev() {
            self.varint(text.len() as u64 + 1, &mut out);
        }
        for text in strings {
            out.extend(text);
            out.push(0);
        }
        out
    }

    /// Cuts a table into groups of one dialect.
    fn groups(&mut self, dialects: &[DialectId]) -> Vec<(DialectId, std::ops::Range<usize>)> {
        let mut groups: Vec<(DialectId, std::ops::Range<usize>)> = Vec::new();
        for (position, dialect) in dialects.iter().enumerate() {
            match groups.last_mut() {
                Some((last, range)) if last == dialect && !self.random.one_in(10) => range.end += 1,
                _ => {
                    if self.random.one_in(10) {
                        groups.push((*dialect, position..position));
                    }
                    groups.push((*dialect, position..position + 1));
                }
            }
        }
        groups
    }

    fn dialect_section(&mut self) -> Bytes {
        let tables = &self.bytecode.tables;
        let version = self.bytecode.version;
        let mut out = Vec::new();
        self.varint(self.dialects.len() as u64, &mut out);
        for id in self.dialects.clone() {
            let name = self.string(tables.dialect(id));
            if version < 1 {
                self.varint(name, &mut out)
            } else {
                self.flagged(name, false, &mut out)
            };
        }
        if version >= 4 {
            // Only a hint.
            let hint = self.random.next();
            self.varint(hint, &mut out);
        }
        let order: Vec<OpNameId> = self.op_names.order.iter().map(|id| OpNameId(*id as u32)).collect();
        let dialects: Vec<DialectId> = order.iter().map(|id| tables.op_name(*id).dialect).collect();
        for (dialect, range) in self.groups(&dialects) {
            self.varint(self.dialect(dialect), &mut out);
            self.varint(range.len() as u64, &mut out);
            for id in &order[range] {
                let name = self.string(&tables.op_name(*id).name);
                if version < 5 {
                    self.varint(name, &mut out)
                } else {
                    self.flagged(name, true, &mut out)
                };
            }
        }
        out
    }

    fn entries(&mut self) -> (Bytes, Bytes) {
        let tables = &self.bytecode.tables;
        let attributes: Vec<_> = self.attributes.order.iter().map(|id| tables.attribute(AttributeId(*id as u32))).collect();
        let types: Vec<_> = self.types.order.iter().map(|id| tables.r#type(TypeId(*id as u32))).collect();
        let (mut offsets, mut data) = (Vec::new(), Vec::new());
        self.varint(attributes.len() as u64, &mut offsets);
        self.varint(types.len() as u64, &mut offsets);
        for (entries, is_type) in [(attributes, false), (types, true)] {
            let dialects: Vec<_> = entries.iter().map(|entry| entry.dialect).collect();
            for (dialect, range) in self.groups(&dialects) {
                self.varint(self.dialect(dialect), &mut offsets);
                self.varint(range.len() as u64, &mut offsets);
                for entry in &entries[range] {
                    let start = data.len();
                    self.entry(entry, is_type, &mut data);
                    self.flagged((data.len() - start) as u64, entry.code != Code::Text, &mut offsets);
                }
            }
        }
        (offsets, data)
    }

    fn entry(&mut self, entry: &Entry<'_>, is_type: bool, out: &mut Bytes) {
        let code = match entry.code {
            Code::Known(code) => code,
            Code::Text => {
                out.extend_from_slice(&entry.bytes().unwrap().0);
                return out.push(0);
            }
            Code::Opaque => panic!("an entry of unknown encoding"),
        };
        let row = entry_row(entry.dialect, is_type, code).unwrap();
        self.varint(u64::from(code), out);
        let mut fields = entry.fields.iter();
        for kind in row.fields {
            let kind = if *kind == Kind::Bits { self.bits_kind(entry) } else { *kind };
            self.field(kind, &mut fields, out);
        }
        assert!(fields.next().is_none(), "fields are left of `{}`", row.name);
    }

    fn bits_kind(&self, entry: &Entry<'_>) -> Kind {
        match bit_width(self.bytecode, entry.types().next().unwrap()) {
            0..=8 => Kind::Byte,
            9..=64 => Kind::Double,
            _ => Kind::DoubleList,
        }
    }

    fn field(&mut self, kind: Kind, fields: &mut std::slice::Iter<'_, Field<'_>>, out: &mut Bytes) {
        let field = fields.next().unwrap();
        let mut list = |this: &mut Self, item: Kind, count: u32, out: &mut Bytes| (0..count).for_each(|_| this.field(item, fields, out));
        match (kind, field) {
            (Kind::OptionalAttribute | Kind::OptionalUnsigned, Field::Absent) => {
                let ignored = self.random.below(5) as u64;
                self.flagged(ignored, false, out);
            }
            (Kind::PresentAttribute, Field::Absent) => self.varint(0, out),
            (Kind::OptionalAttribute, Field::Attribute(id)) => {
                let number = self.attribute(*id);
                self.flagged(number, true, out);
            }
            (Kind::PresentAttribute, Field::Attribute(id)) => {
                self.varint(1, out);
                let number = self.attribute(*id);
                self.varint(number, out);
            }
            (Kind::OptionalUnsigned, Field::Unsigned(value)) => self.flagged(*value, true, out),
            (Kind::Byte, Field::Unsigned(value)) => out.push(*value as u8),
            (Kind::Double, Field::Unsigned(bits)) => self.signed(*bits as i64, out),
            (Kind::Rest, Field::Blob(bytes)) => out.extend_from_slice(&bytes.0),
            (Kind::ElementStrings, Field::Count(count)) => list(self, Kind::String, *count, out),
            (kind, Field::Count(count)) => {
                let (item, times) = match kind {
                    Kind::Attributes => (Kind::Attribute, 1),
                    Kind::AttributePairs => (Kind::Attribute, 2),
                    Kind::Types => (Kind::Type, 1),
                    Kind::UnsignedList => (Kind::Unsigned, 1),
                    Kind::ByteList => (Kind::Byte, 1),
                    Kind::SignedList => (Kind::Signed, 1),
                    Kind::DoubleList => (Kind::Double, 1),
                    kind => panic!("a list as {kind:?}"),
                };
                self.varint(u64::from(*count), out);
                list(self, item, times * count, out);
            }
            (_, Field::Attribute(id)) => {
                let number = self.attribute(*id);
                self.varint(number, out);
            }
            (_, Field::Type(id)) => {
                let number = self.r#type(*id);
                self.varint(number, out);
            }
            (_, Field::Unsigned(value)) => self.varint(*value, out),
            (_, Field::Signed(value)) => self.signed(*value, out),
            (_, Field::String(text)) => {
                let number = self.string(&text.0);
                self.varint(number, out);
            }
            (_, Field::Blob(bytes)) => {
                self.varint(bytes.0.len() as u64, out);
                out.extend_from_slice(&bytes.0);
            }
            (kind, Field::Absent) => panic!("nothing as {kind:?}"),
        }
    }

    /// The IR section: like the canonical one, but isolation is often not claimed, and property blobs are stored again and again.
    fn code(&mut self) -> Bytes {
        let mut out = Vec::new();
        self.flagged(1, false, &mut out);
        self.operation(0, 0, &mut out);
        out
    }

    fn operation(&mut self, position: usize, next_value: u64, out: &mut Bytes) {
        let bytecode = self.bytecode;
        let tree = &bytecode.tree;
        let operation: &Operation = &tree.operations[position];
        let orders = orders_of(bytecode, operation.results);
        let mut attributes = operation.attributes;
        if attributes.is_none() && self.random.one_in(4) {
            attributes = self.empty_dictionary;
        }
        let name = self.op_names.place(operation.name.index(), &mut self.random);
        self.varint(name, out);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        out.push(
            bit(attributes.is_some(), 0x01)
                | bit(operation.results.len > 0, 0x02)
                | bit(operation.operands.len > 0, 0x04)
                | bit(operation.successors.len > 0, 0x08)
                | bit(operation.regions.len > 0, 0x10)
                | bit(!orders.is_empty(), 0x20)
                | bit(operation.properties.is_some(), 0x40),
        );
        for id in [Some(operation.location), attributes].into_iter().flatten() {
            let number = self.attribute(id);
            self.varint(number, out);
        }
        if let Some(span) = operation.properties {
            let row = bytecode.tables.op_row(operation.name).unwrap();
            let mut blob = Vec::new();
            for (property, value) in row.properties.iter().zip(&tree.properties[span.range()]) {
                let number = value.map(|id| self.attribute(id));
                match number {
                    Some(number) if property.ends_with('?') => self.flagged(number, true, &mut blob),
                    Some(number) => self.varint(number, &mut blob),
                    None => self.varint(0, &mut blob),
                }
            }
            let known = self.known_properties.get(&blob).copied().filter(|_| !self.random.one_in(3));
            let number = known.unwrap_or(self.properties.len());
            if known.is_none() {
                self.known_properties.insert(blob.clone(), number);
                self.properties.push(blob);
            }
            self.varint(number as u64, out);
        }
        if operation.results.len > 0 {
            self.varint(u64::from(operation.results.len), out);
            for value in operation.results.range() {
                let number = self.r#type(tree.value_types[value]);
                self.varint(number, out);
            }
        }
        if operation.operands.len > 0 {
            self.varint(u64::from(operation.operands.len), out);
            for value in tree.operands_of(operation) {
                self.varint(self.numbers[value.index()], out);
            }
        }
        if operation.successors.len > 0 {
            self.varint(u64::from(operation.successors.len), out);
            tree.successors[operation.successors.range()].iter().for_each(|block| self.varint(u64::from(*block), out));
        }
        self.orders(&orders, operation.results, out);
        if operation.regions.len > 0 {
            let is_isolated = self.isolated[position];
            self.flagged(u64::from(operation.regions.len), is_isolated, out);
            let mut body = Vec::new();
            for region in tree.regions_of(operation) {
                self.region(region, if is_isolated { 0 } else { next_value }, &mut body);
            }
            if is_isolated && bytecode.version >= 2 {
                self.section(4, body, out)
            } else {
                out.extend(body)
            };
        }
    }

    fn region(&mut self, region: &Region, first: u64, out: &mut Bytes) {
        let tree = &self.bytecode.tree;
        self.varint(u64::from(region.blocks.len), out);
        if region.blocks.len == 0 {
            return;
        }
        self.varint(u64::from(region.values.len), out);
        for (offset, value) in region.values.range().enumerate() {
            self.numbers[value] = first + offset as u64;
        }
        for block in tree.blocks_of(region) {
            self.block(block, first + u64::from(region.values.len), out);
        }
    }

    fn block(&mut self, block: &Block, next_value: u64, out: &mut Bytes) {
        let (tree, version) = (&self.bytecode.tree, self.bytecode.version);
        let inside: Vec<u32> = tree.operations_in(block).map(|(position, _)| position).collect();
        self.flagged(inside.len() as u64, block.arguments.len > 0, out);
        if block.arguments.len > 0 {
            self.varint(u64::from(block.arguments.len), out);
            for (argument, value) in block.arguments.range().enumerate() {
                let argument_type = self.r#type(tree.value_types[value]);
                let location = tree.argument_locations[block.locations as usize + argument];
                let is_unknown = self.bytecode.tables.attribute(location).is(dialect::BUILTIN, code::builtin::LOC_UNKNOWN);
                let is_written = version < 4 || !is_unknown || self.random.one_in(2);
                if version < 4 {
                    self.varint(argument_type, out)
                } else {
                    self.flagged(argument_type, is_written, out)
                };
                if is_written {
                    let number = self.attribute(location);
                    self.varint(number, out);
                }
            }
            if version >= 3 {
                let orders = orders_of(self.bytecode, block.arguments);
                out.push(if orders.is_empty() { 0 } else { 1 + self.random.below(255) as u8 });
                self.orders(&orders, block.arguments, out);
            }
        }
        for position in inside {
            self.operation(position as usize, next_value, out);
        }
    }

    /// Use-list orders of the values of one operation or block, in any order and in either form.
    fn orders(&mut self, orders: &[&UseOrder], values: Span, out: &mut Bytes) {
        if orders.is_empty() {
            return;
        }
        let mut orders = orders.to_vec();
        self.random.shuffle(&mut orders);
        if values.len != 1 {
            self.varint(orders.len() as u64, out);
        }
        for order in orders {
            if values.len != 1 {
                self.varint(u64::from(order.value.0 - values.start), out);
            }
            if self.random.one_in(2) {
                self.flagged(order.order.len() as u64, false, out);
                order.order.iter().for_each(|to| self.varint(u64::from(*to), out));
            } else {
                let moved: Vec<_> = order.order.iter().enumerate().filter(|(from, to)| *from != **to as usize).collect();
                self.flagged(2 * moved.len() as u64, true, out);
                for (from, to) in moved {
                    self.varint(u64::from(*to), out);
                    self.varint(from as u64, out);
                }
            }
        }
    }

    fn resources(&mut self) -> (Bytes, Bytes) {
        let resources = &self.bytecode.resources;
        let (mut offsets, mut data) = (Vec::new(), Vec::new());
        self.varint(resources.external.len() as u64, &mut offsets);
        for (key, group) in &resources.external {
            let key = self.string(key);
            self.varint(key, &mut offsets);
            self.resource_group(group, &mut offsets, &mut data);
        }
        for (dialect, group) in &resources.dialect {
            self.varint(self.dialect(*dialect), &mut offsets);
            self.resource_group(group, &mut offsets, &mut data);
        }
        (offsets, data)
    }

    fn resource_group(&mut self, group: &[Resource<'_>], offsets: &mut Bytes, data: &mut Bytes) {
        self.varint(group.len() as u64, offsets);
        for resource in group {
            let start = data.len();
            match &resource.data {
                None => {}
                Some(ResourceData::Blob { alignment, bytes }) => {
                    self.varint(*alignment, data);
                    self.varint(bytes.len() as u64, data);
                    data.resize(data.len().next_multiple_of(*alignment as usize), 0xcb);
                    data.extend_from_slice(bytes);
                }
                Some(ResourceData::Bool(byte)) => data.push(*byte),
                Some(ResourceData::String(text)) => {
                    let number = self.string(text);
                    self.varint(number, data);
                }
            }
            let key = self.string(resource.key);
            self.varint(key, offsets);
            self.varint((data.len() - start) as u64, offsets);
            offsets.push(resource.kind);
        }
    }
}

fn orders_of<'b>(bytecode: &'b Bytecode<'_>, values: Span) -> Vec<&'b UseOrder> {
    bytecode.tree.use_orders.iter().filter(|order| values.range().contains(&order.value.index())).collect()
}

/// For each operation, whether nothing inside it uses a value from outside. Slow and simple: every operand against every operation around it.
fn isolation(bytecode: &Bytecode<'_>) -> Vec<bool> {
    let tree = &bytecode.tree;
    let owners: Vec<u32> = {
        let mut owners = vec![u32::MAX; tree.value_types.len()];
        tree.regions.iter().for_each(|region| owners[region.values.range()].fill(region.owner));
        owners
    };
    let is_inside = |inner: u32, outer: usize| inner as usize >= outer && inner < tree.operations[outer].end;
    let mut isolated = vec![true; tree.operations.len()];
    let mut around: Vec<usize> = Vec::new();
    for (position, operation) in tree.operations.iter().enumerate() {
        around.retain(|outer| is_inside(position as u32, *outer));
        for value in tree.operands_of(operation) {
            around.iter().filter(|outer| !is_inside(owners[value.index()], **outer)).for_each(|outer| isolated[*outer] = false);
        }
        around.push(position);
    }
    isolated
}

/// The width of a number's type.
fn bit_width(bytecode: &Bytecode<'_>, id: TypeId) -> u64 {
    let entry = bytecode.tables.r#type(id);
    let name = match entry.code {
        Code::Text => String::from_utf8_lossy(&entry.bytes().unwrap().0).into_owned(),
        Code::Known(code) => entry_row(entry.dialect, true, code).unwrap().name.trim_end_matches("_v1").to_owned(),
        Code::Opaque => panic!("a type of unknown encoding"),
    };
    if let ("integer", [Field::Unsigned(packed)]) = (&name[..], &entry.fields[..]) {
        return packed >> 2;
    }
    match &name[..] {
        "index" => 64,
        "tf32" | "tf31" => 19,
        name => {
            let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            digits.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
        }
    }
}

/// Flips, overwrites, copies or exchanges a few bytes of a stretch.
pub fn mutate_bytes(bytes: &mut [u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..1 + random.below(3) {
        let place = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[place] ^= 1 << random.below(8),
            1 => bytes[place] = random.next() as u8,
            2 => bytes[place] = [0, 1, 2, 3, 5, 0x7f, 0x80, 0xfe, 0xff][random.below(9)],
            3 => bytes[place] = bytes[place].wrapping_add(if random.one_in(2) { 2 } else { 0xfe }),
            _ => {
                let other = random.below(bytes.len());
                bytes.swap(place, other);
            }
        }
    }
}

/// Changes a few things of a module that stays readable for the most part: what names what, of which type and kind it is, what is there at all.
pub fn mutate_module(bytecode: &mut Bytecode<'_>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        mutate_once(bytecode, random);
    }
}

fn mutate_once(bytecode: &mut Bytecode<'_>, random: &mut Random) {
    let (attributes, types) = (bytecode.tables.attribute_count(), bytecode.tables.type_count());
    let operations = bytecode.tree.operations.len();
    let position = random.below(operations);
    let any_attribute = |random: &mut Random| AttributeId(random.below(attributes) as u32);
    let any_type = |random: &mut Random| TypeId(random.below(types) as u32);
    match random.below(14) {
        0 | 1 if !bytecode.tree.operands.is_empty() => {
            let place = random.below(bytecode.tree.operands.len());
            // Mostly a neighbour: a value of another region is refused by the reader.
            let shift = random.below(9) as u32;
            let value = bytecode.tree.operands[place].0.saturating_add(shift).saturating_sub(4);
            let value = value.min(bytecode.tree.value_types.len() as u32 - 1);
            bytecode.tree.operands[place].0 = value;
            bytecode.tree.use_orders.clear();
        }
        2 if types > 0 && !bytecode.tree.value_types.is_empty() => {
            let place = random.below(bytecode.tree.value_types.len());
            bytecode.tree.value_types[place] = any_type(random);
        }
        3 | 4 if !bytecode.tree.properties.is_empty() => {
            let place = random.below(bytecode.tree.properties.len());
            if bytecode.tree.properties[place].is_some() {
                bytecode.tree.properties[place] = Some(any_attribute(random));
            }
        }
        5 | 6 if !bytecode.tree.properties.is_empty() => {
            // The same entry with one field changed.
            let place = random.below(bytecode.tree.properties.len());
            if let Some(id) = bytecode.tree.properties[place] {
                let id = mutate_entry(bytecode, id, 3, random);
                bytecode.tree.properties[place] = Some(id);
            }
        }
        7 => bytecode.tree.operations[position].location = any_attribute(random),
        8 => {
            let dictionaries: Vec<_> = (0..attributes).map(|id| AttributeId(id as u32)).collect();
            let is_dictionary = |id: &AttributeId| bytecode.tables.attribute(*id).is(dialect::BUILTIN, code::builtin::DICTIONARY);
            let dictionaries: Vec<_> = dictionaries.into_iter().filter(is_dictionary).collect();
            if !dictionaries.is_empty() {
                let id = dictionaries[random.below(dictionaries.len())];
                let id = mutate_entry(bytecode, id, 2, random);
                bytecode.tree.operations[position].attributes = Some(id);
            }
        }
        9 => {
            // Another operation's name, with as many properties.
            let other = &bytecode.tree.operations[random.below(operations)];
            let (name, count) = (other.name, other.properties.map(|span| span.len));
            if bytecode.tree.operations[position].properties.map(|span| span.len) == count {
                bytecode.tree.operations[position].name = name;
            }
        }
        10 => {
            // A block loses its last operation.
            if let Some(block) = (!bytecode.tree.blocks.is_empty()).then(|| random.below(bytecode.tree.blocks.len())) {
                let found = bytecode.tree.blocks[block];
                let last = bytecode.tree.operations_in(&found).last().map(|(position, operation)| (position, operation.results.len));
                if let Some((last, 0)) = last {
                    bytecode.tree.blocks[block].end = last;
                }
            }
        }
        11 => {
            // An operation loses its last region, or all of them.
            let regions = &mut bytecode.tree.operations[position].regions;
            regions.len = if random.one_in(2) { 0 } else { regions.len.saturating_sub(1) };
        }
        12 => {
            let operands = &mut bytecode.tree.operations[position].operands;
            operands.len = if random.one_in(3) { 0 } else { operands.len.saturating_sub(1) };
            bytecode.tree.use_orders.clear();
        }
        _ => {
            let place = random.below(bytecode.tree.argument_locations.len());
            if let Some(location) = bytecode.tree.argument_locations.get_mut(place) {
                *location = any_attribute(random);
            }
        }
    }
}

/// A copy of an attribute with something changed in it, or in an attribute it names.
fn mutate_entry(bytecode: &mut Bytecode<'_>, id: AttributeId, depth: usize, random: &mut Random) -> AttributeId {
    let mut entry = bytecode.tables.attribute(id).clone();
    if entry.fields.is_empty() {
        return AttributeId(random.below(bytecode.tables.attribute_count()) as u32);
    }
    let place = random.below(entry.fields.len());
    match &mut entry.fields[place] {
        Field::Attribute(inner) if depth > 0 && !random.one_in(3) => *inner = mutate_entry(bytecode, *inner, depth - 1, random),
        Field::Attribute(inner) => *inner = AttributeId(random.below(bytecode.tables.attribute_count()) as u32),
        Field::Type(inner) if depth > 0 && random.one_in(2) => {
            let mut of = bytecode.tables.r#type(*inner).clone();
            let types = bytecode.tables.type_count();
            if let Some(field) = (!of.fields.is_empty()).then(|| random.below(of.fields.len())) {
                match &mut of.fields[field] {
                    Field::Type(innermost) => *innermost = TypeId(random.below(types) as u32),
                    Field::Signed(number) => *number = strange_number(random) as i64,
                    _ => {}
                }
            }
            *inner = bytecode.tables.intern_type(of);
        }
        Field::Type(inner) => *inner = TypeId(random.below(bytecode.tables.type_count()) as u32),
        Field::Unsigned(number) => *number = strange_number(random),
        Field::Signed(number) => *number = strange_number(random) as i64,
        Field::String(text) | Field::Blob(text) => {
            let text = text.0.to_mut();
            match random.below(4) {
                0 => text.clear(),
                1 => text.extend(b".\0\"\xff@".iter().take(1 + random.below(5))),
                2 => *text = b"main".to_vec(),
                _ => mutate_bytes(text, random),
            }
        }
        Field::Count(_) | Field::Absent => {}
    }
    bytecode.tables.intern_attribute(entry)
}

fn strange_number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.below(8) as u64,
        1 => u64::MAX - random.below(3) as u64,
        2 => i64::MIN as u64,
        3 => u64::from(u32::MAX),
        4 => 1 << 63,
        _ => 1 << random.below(40),
    }
}

/// An export for three platforms with a module of one's own.
pub fn with_module(export: &[u8], module: &[u8]) -> Vec<u8> {
    let mut exported = Exported::read(export).unwrap();
    exported.module = Pieces::borrowed(module);
    exported.write().unwrap().to_vec()
}
