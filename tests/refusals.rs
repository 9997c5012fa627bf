//! Every refusal of the bytecode reader: the whole message and the place, on files made by hand in which nothing else is wrong.

use std::collections::BTreeMap;

use jaxprism::ErrorKind;
use jaxprism::bytecode::{Bytecode, MAGIC};
use jaxprism::reader::{MAX_ATTRIBUTE_DEPTH, MAX_REGION_DEPTH};

/// Where the module begins in the file that a user gave.
const BASE: u64 = 0x100;

const STRINGS: u8 = 0;
const DIALECTS: u8 = 1;
const ENTRIES: u8 = 2;
const OFFSETS: u8 = 3;
const IR: u8 = 4;
const RESOURCES: u8 = 5;
const RESOURCE_OFFSETS: u8 = 6;
const PROPERTIES: u8 = 8;

/// Operation names of the files here, by their number.
const MODULE: u64 = 0;
const WHILE: u64 = 1;
const BARRIER: u64 = 2;
const CONSTANT: u64 = 3;

/// Bits of an operation's mask.
const ATTRIBUTES: u8 = 0x01;
const RESULTS: u8 = 0x02;
const OPERANDS: u8 = 0x04;
const SUCCESSORS: u8 = 0x08;
const REGIONS: u8 = 0x10;
const USE_ORDERS: u8 = 0x20;
const HAS_PROPERTIES: u8 = 0x40;

/// A number in as few bytes as it takes.
fn n(value: u64) -> Vec<u8> {
    let bytes = (64 - value.leading_zeros()).max(1).div_ceil(7);
    if bytes > 8 {
        return [&[0][..], &value.to_le_bytes()].concat();
    }
    (((value << 1) | 1) << (bytes - 1)).to_le_bytes()[..bytes as usize].to_vec()
}

/// A signed number.
fn s(value: i64) -> Vec<u8> {
    n(((value << 1) ^ (value >> 63)) as u64)
}

/// A number with a flag in its lowest bit.
fn f(value: u64, flag: bool) -> Vec<u8> {
    n(value << 1 | u64::from(flag))
}

/// Several numbers.
fn ns(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| n(*value)).collect()
}

/// An attribute or type: its dialect (0 builtin, 1 vhlo, 2 sdy), whether it is no text, its bytes.
type Raw = (u64, bool, Vec<u8>);

fn builtin(bytes: &[u64]) -> Raw {
    (0, true, ns(bytes))
}

fn vhlo(bytes: &[u64]) -> Raw {
    (1, true, ns(bytes))
}

/// The unknown location, which is attribute 0 of all files here.
fn unknown_location() -> Raw {
    builtin(&[15])
}

/// A file under way: the bodies of its sections.
#[derive(Clone)]
struct File {
    version: u64,
    sections: BTreeMap<u8, Vec<u8>>,
    /// What comes behind the last section.
    rest: Vec<u8>,
}

impl File {
    /// An empty module in the newest version.
    fn new() -> Self {
        Self::of_version(6)
    }

    fn of_version(version: u64) -> Self {
        let mut file = Self { version, sections: BTreeMap::new(), rest: Vec::new() };
        file.strings(&["builtin", "module", "vhlo", "while_v1", "optimization_barrier_v1", "constant_v1", "sdy", "text"]);
        let name = |number, flag, since| if version < since { n(number) } else { f(number, flag) };
        let mut dialects = [n(3), name(0, false, 1), name(2, false, 1), name(6, false, 1)].concat();
        if version >= 4 {
            dialects.extend(n(4));
        }
        dialects.extend([ns(&[0, 1]), name(1, true, 5), ns(&[1, 3]), name(3, true, 5), name(4, true, 5), name(5, true, 5)].concat());
        file.sections.insert(DIALECTS, dialects);
        if version >= 5 {
            file.sections.insert(PROPERTIES, [n(2), n(2), ns(&[0, 0]), n(1), n(1)].concat());
        }
        file.entries(&[unknown_location()], &[]).module(0, &[])
    }

    fn strings(&mut self, texts: &[&str]) {
        let sizes: Vec<u8> = texts.iter().rev().flat_map(|text| n(text.len() as u64 + 1)).collect();
        let bytes: Vec<u8> = texts.iter().flat_map(|text| [text.as_bytes(), &[0]].concat()).collect();
        self.sections.insert(STRINGS, [n(texts.len() as u64), sizes, bytes].concat());
    }

    fn with(mut self, section: u8, body: Vec<u8>) -> Self {
        self.sections.insert(section, body);
        self
    }

    fn without(mut self, section: u8) -> Self {
        self.sections.remove(&section);
        self
    }

    fn entries(self, attributes: &[Raw], types: &[Raw]) -> Self {
        let groups = |(dialect, is_custom, bytes): &Raw| [ns(&[*dialect, 1]), f(bytes.len() as u64, *is_custom)].concat();
        let offsets = attributes.iter().chain(types).flat_map(groups).collect();
        let data = attributes.iter().chain(types).flat_map(|(_, _, bytes)| bytes.clone()).collect();
        self.with(OFFSETS, [ns(&[attributes.len() as u64, types.len() as u64]), offsets].concat()).with(ENTRIES, data)
    }

    /// The unknown location, then these attributes.
    fn attributes(self, attributes: &[Raw], types: &[Raw]) -> Self {
        self.entries(&[&[unknown_location()], attributes].concat(), types)
    }

    /// A module whose one block has these operations, which define so many values.
    fn module(self, values: u64, operations: &[Vec<u8>]) -> Self {
        let block = f(operations.len() as u64, false);
        self.with_body([ns(&[1, values]), block, operations.concat()].concat())
    }

    /// A module whose region is these bytes.
    fn with_body(self, region: Vec<u8>) -> Self {
        let version = self.version;
        let head = if version < 5 { vec![REGIONS, 1] } else { vec![HAS_PROPERTIES | REGIONS, 1, 1] };
        let region = if version < 2 { region } else { [vec![IR], n(region.len() as u64), region].concat() };
        self.with(IR, [f(1, false), n(MODULE), head, f(1, true), region].concat())
    }

    /// The bytes, and where each section's body begins in them.
    fn bytes(&self) -> (Vec<u8>, BTreeMap<u8, u64>) {
        let mut bytes = [&MAGIC[..], &n(self.version), b"us\0"].concat();
        let mut places = BTreeMap::new();
        for (id, body) in &self.sections {
            bytes.push(*id);
            bytes.extend(n(body.len() as u64));
            places.insert(*id, BASE + bytes.len() as u64);
            bytes.extend(body);
        }
        bytes.extend(&self.rest);
        (bytes, places)
    }

    /// Fails unless the file is refused with this message, so many bytes into this section.
    #[track_caller]
    fn is_refused(&self, message: &str, section: u8, offset: u64) {
        let (bytes, places) = self.bytes();
        let place = places[&section];
        let error = Bytecode::read(&bytes, BASE).unwrap_err();
        let relative = error.offset().map(|found| found as i64 - place as i64);
        assert_eq!((error.to_string(), relative), (format!("{message} (at offset {:#x})", place + offset), Some(offset as i64)));
        assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Unsupported));
    }

    #[track_caller]
    fn is_read(&self) {
        Bytecode::read(&self.bytes().0, BASE).unwrap();
    }
}

fn op(name: u64, mask: u8, rest: &[Vec<u8>]) -> Vec<u8> {
    [n(name), vec![mask], n(0), rest.concat()].concat()
}

/// Bytes of the module's operation before its region's body: `flag name mask location properties regions IR length`.
const HEAD: u64 = 8;
/// … and of the region before its first operation: `blocks values operations`.
const FIRST: u64 = HEAD + 3;

#[track_caller]
fn refuses(bytes: &[u8], message: &str) {
    assert_eq!(Bytecode::read(bytes, BASE).unwrap_err().to_string(), message);
}

#[test]
fn the_files_that_nothing_is_wrong_with_are_read() {
    for version in 0..=6 {
        File::of_version(version).is_read();
        File::of_version(version).module(0, &[op(WHILE, 0, &[])]).is_read();
    }
}

#[test]
fn the_header() {
    let (bytes, _) = File::new().bytes();
    refuses(b"", "the magic number of 4 bytes, but 0 bytes are left (at offset 0x100)");
    refuses(b"MLIR...", "not MLIR bytecode: the magic number `ML\\xEFR` is missing (at offset 0x100)");
    refuses(&bytes[..4], "the data ends where the bytecode version should be (at offset 0x104)");
    refuses(&[&MAGIC[..], &n(7)].concat(), "bytecode version 7 is newer than 6, the newest we know (at offset 0x104)");
    refuses(&bytes[..6], "the producer's name has no end (at offset 0x105)");
}

#[test]
fn sections() {
    let mut file = File::new();
    let end = file.bytes().0.len() as u64 + BASE;
    file.rest = vec![9, 1];
    refuses(&file.bytes().0, &format!("unknown section 9 (at offset {end:#x})"));
    file.rest = vec![7, 1];
    refuses(&file.bytes().0, &format!("unknown section 7 (at offset {end:#x})"));
    file.rest = vec![IR, 1];
    refuses(&file.bytes().0, &format!("a second IR section (at offset {end:#x})"));
    file.rest = vec![RESOURCES, 5, 0];
    refuses(&file.bytes().0, &format!("resource section of 2 bytes, but 1 bytes are left (at offset {:#x})", end + 2));
    file.rest = vec![RESOURCES | 0x80, 1, 7];
    refuses(&file.bytes().0, &format!("a section's alignment is 3 (at offset {:#x})", end + 2));
    file.rest = vec![RESOURCES];
    refuses(&file.bytes().0, &format!("the data ends where a section's length should be (at offset {:#x})", end + 1));

    for (section, name) in [
        (STRINGS, "string section"),
        (DIALECTS, "dialect section"),
        (OFFSETS, "attribute and type offset section"),
        (ENTRIES, "attribute and type section"),
        (IR, "IR section"),
        (PROPERTIES, "properties section"),
    ] {
        let (bytes, _) = File::new().without(section).bytes();
        refuses(&bytes, &format!("the {name} is missing (at offset {:#x})", BASE + bytes.len() as u64));
    }
    let message = "a properties section, which bytecode version 4 does not have";
    File::of_version(4).with(PROPERTIES, n(0)).is_refused(message, PROPERTIES, 0);
}

#[test]
fn strings() {
    let strings = |body: &[u8]| File::new().with(STRINGS, body.to_vec());
    strings(&[]).is_refused("the data ends where strings should be", STRINGS, 0);
    strings(&[9]).is_refused("4 strings, but 0 bytes are left", STRINGS, 0);
    strings(&[3, 1]).is_refused("a string of size 0, without room for its NUL", STRINGS, 1);
    strings(&[3, 5, b'a']).is_refused("a string of 2 bytes, but 1 bytes are left", STRINGS, 2);
    strings(&[3, 5, b'a', b'b']).is_refused("a string does not end in NUL", STRINGS, 2);
    strings(&[3, 3, 0, 0]).is_refused("1 bytes too many in the string section", STRINGS, 3);
}

#[test]
fn dialects_and_operation_names() {
    let dialects = |parts: &[Vec<u8>]| File::new().with(DIALECTS, parts.concat());
    dialects(&[n(200)]).is_refused("200 dialects, but 0 bytes are left", DIALECTS, 0);
    dialects(&[n(1), f(8, false)]).is_refused("string 8, but there are 8", DIALECTS, 1);
    dialects(&[n(1), f(0, true), vec![DIALECTS, 1]]).is_refused("a dialect's version is no version section", DIALECTS, 1);
    dialects(&[n(1), f(0, false)]).is_refused("the data ends where the number of operation names should be", DIALECTS, 2);
    dialects(&[n(1), f(0, false), n(0), n(1)]).is_refused("dialect 1, but there are 1", DIALECTS, 3);
    dialects(&[n(1), f(0, false), n(0), ns(&[0, 5])]).is_refused("5 operation names, but 0 bytes are left", DIALECTS, 4);
    dialects(&[n(1), f(0, false), n(0), ns(&[0, 1]), f(9, true)]).is_refused("string 9, but there are 8", DIALECTS, 5);
}

#[test]
fn resources() {
    let file = File::new().with(RESOURCE_OFFSETS, n(0));
    let end = BASE + file.bytes().0.len() as u64;
    refuses(&file.bytes().0, &format!("the resource section is missing (at offset {end:#x})"));
    let file = File::new().with(RESOURCES, vec![]);
    let end = BASE + file.bytes().0.len() as u64;
    refuses(&file.bytes().0, &format!("the resource offset section is missing (at offset {end:#x})"));

    // One group of dialect 0 with one resource, whose key is string 7.
    let resource = |size: u64, kind: u8, data: &[u8]| {
        let offsets = [ns(&[0, 0, 1, 7, size]), vec![kind]].concat();
        File::new().with(RESOURCE_OFFSETS, offsets).with(RESOURCES, data.to_vec())
    };
    resource(0, 0, &[]).is_read();
    resource(1, 1, &[1]).is_read();
    resource(4, 0, &[&n(2)[..], &n(2), b"ab"].concat()).is_read();
    resource(5, 0, &[&n(4)[..], &n(1), &[0xcb, 0xcb, b'a']].concat()).is_read();
    resource(1, 3, &[1]).is_refused("unknown resource kind 3", RESOURCE_OFFSETS, 5);
    resource(9, 0, &[1]).is_refused("a resource of 9 bytes, but 1 bytes are left", RESOURCES, 0);
    resource(0, 0, &[1]).is_refused("1 bytes too many in the resource section", RESOURCES, 0);
    resource(2, 1, &[1, 1]).is_refused("1 bytes too many in a resource", RESOURCES, 1);
    resource(1, 2, &n(8)).is_refused("string 8, but there are 8", RESOURCES, 0);
    resource(2, 0, &ns(&[3, 0])).is_refused("a blob's alignment is 3", RESOURCES, 0);
    resource(3, 0, &ns(&[1, 5, 0])).is_refused("a blob of 5 bytes, but 1 bytes are left", RESOURCES, 2);
    let message = "a blob's padding of 6 bytes, but 1 bytes are left";
    resource(3, 0, &[&ns(&[8, 1])[..], b"a"].concat()).is_refused(message, RESOURCES, 2);
    let message = "1 external resource groups, but 0 bytes are left";
    File::new().with(RESOURCE_OFFSETS, n(1)).with(RESOURCES, vec![]).is_refused(message, RESOURCE_OFFSETS, 0);
}

#[test]
fn properties() {
    let properties = |parts: &[u64]| File::new().with(PROPERTIES, ns(parts));
    properties(&[3]).is_refused("3 properties, but 0 bytes are left", PROPERTIES, 0);
    properties(&[1, 4, 0]).is_refused("properties of 4 bytes, but 1 bytes are left", PROPERTIES, 2);
    properties(&[1, 2, 0, 0, 0]).is_refused("1 bytes too many in the properties section", PROPERTIES, 4);
    // What the module's own blob holds.
    properties(&[]).is_refused("properties 0, but there are 0", IR, 4);
    properties(&[1, 1, 0]).is_refused("the data ends where sym_visibility? should be", PROPERTIES, 3);
    properties(&[1, 3, 0, 0, 0]).is_refused("1 bytes too many in module", PROPERTIES, 4);
    properties(&[1, 2, 3, 0]).is_refused("attribute 1, but there are 1", PROPERTIES, 2);
}

#[test]
fn groups_of_attributes_and_types() {
    let offsets = |parts: &[u64]| File::new().with(OFFSETS, ns(parts));
    offsets(&[9, 0]).is_refused("9 attributes, but 1 bytes are left", OFFSETS, 0);
    offsets(&[0, 9]).is_refused("9 types, but 0 bytes are left", OFFSETS, 1);
    offsets(&[1, 0, 3]).is_refused("dialect 3, but there are 3", OFFSETS, 2);
    offsets(&[1, 0, 0, 2, 3, 3]).is_refused("a group of 2 entries, but 1 are left of 1", OFFSETS, 3);
    offsets(&[1, 0, 0, 9, 3]).is_refused("9 entries of a group, but 1 bytes are left", OFFSETS, 3);
    offsets(&[1, 0, 0, 1, 5]).is_refused("an attribute or type of 2 bytes, but 1 bytes are left", ENTRIES, 0);
    offsets(&[1, 0, 0, 1, 3, 0]).is_refused("1 bytes too many in the attribute and type offset section", OFFSETS, 5);
    let message = "1 bytes too many in the attribute and type section";
    offsets(&[1, 0, 0, 1, 3]).with(ENTRIES, ns(&[15, 15])).is_refused(message, ENTRIES, 1);
}

#[test]
fn fields_of_attributes_and_types() {
    // Every file has the unknown location in byte 0; the attribute in question begins at byte 1.
    let attribute = |raw: Raw| File::new().attributes(&[raw], &[builtin(&[1])]);
    let r#type = |raw: Raw| File::new().attributes(&[], &[raw]);
    attribute((2, false, b"#sdy".to_vec())).is_refused("an attribute's text has no end", ENTRIES, 1);
    attribute((2, false, b"#sdy\0x".to_vec())).is_refused("1 bytes too many in an attribute's text", ENTRIES, 6);
    attribute(builtin(&[])).is_refused("the data ends where a code should be", ENTRIES, 1);
    attribute(builtin(&[26])).is_refused("unknown builtin attribute code 26", ENTRIES, 1);
    attribute(vhlo(&[0])).is_refused("unknown vhlo attribute code 0", ENTRIES, 1);
    r#type(builtin(&[33])).is_refused("unknown builtin type code 33", ENTRIES, 1);
    r#type(vhlo(&[43])).is_refused("unknown vhlo type code 43", ENTRIES, 1);
    attribute(builtin(&[15, 0])).is_refused("1 bytes too many in loc_unknown", ENTRIES, 2);
    attribute(builtin(&[2])).is_refused("the data ends where string should be", ENTRIES, 2);
    attribute(builtin(&[2, 8])).is_refused("string 8, but there are 8", ENTRIES, 2);
    attribute(builtin(&[4, 2])).is_refused("attribute 2, but there are 2", ENTRIES, 2);
    attribute(builtin(&[6, 1])).is_refused("type 1, but there are 1", ENTRIES, 2);
    attribute(builtin(&[0, 4, 0])).is_refused("4 array, but 1 bytes are left", ENTRIES, 2);
    attribute(builtin(&[1, 1, 0])).is_refused("the data ends where attribute should be", ENTRIES, 4);
    attribute(builtin(&[16, 0, 0])).is_refused("resource 0, but there are 0", ENTRIES, 3);
    attribute(vhlo(&[25, 0, 7])).is_refused("attribute 3, but there are 2", ENTRIES, 3);
    attribute((0, true, [ns(&[18, 0, 4]), vec![0]].concat())).is_refused("dense_elements of 4 bytes, but 1 bytes are left", ENTRIES, 4);
    attribute((2, true, [n(5), n(0)].concat())).is_refused("the data ends where dimension_sharding should be", ENTRIES, 3);
}

#[test]
fn numbers_and_strings_as_wide_as_their_type() {
    let attribute = |bytes: Vec<u8>, of: Raw| File::new().attributes(&[(0, true, bytes)], &[of]);
    let no_bits = |name: &str| format!("{name} of a type that has no bits of its kind");
    attribute(ns(&[8, 0, 0]), builtin(&[12])).is_refused(&no_bits("integer"), ENTRIES, 3);
    attribute(ns(&[8, 0, 0]), builtin(&[6])).is_refused(&no_bits("integer"), ENTRIES, 3);
    attribute(ns(&[9, 0, 0]), builtin(&[1])).is_refused(&no_bits("float"), ENTRIES, 3);
    attribute(ns(&[8, 0]), builtin(&[0, 8 << 2])).is_refused("the data ends where integer should be", ENTRIES, 3);
    attribute(ns(&[8, 0, 9]), builtin(&[0, 128 << 2])).is_refused("9 words, but 0 bytes are left", ENTRIES, 3);
    let vhlo_integer = |of: u64| File::new().attributes(&[vhlo(&[9, 0, 0])], &[vhlo(&[of])]);
    vhlo_integer(31).is_refused(&no_bits("integer_v1"), ENTRIES, 3);
    vhlo_integer(14).is_read();
    // Narrow floats are textual in older files.
    for (text, bytes) in [(&b"f8E4M3FN\0"[..], vec![0x7e]), (b"tf32\0", n(1 << 18)), (b"f6E2M3FN\0", vec![1])] {
        let bytes = [ns(&[9, 0]), bytes].concat();
        File::new().attributes(&[(0, true, bytes)], &[(0, false, text.to_vec())]).is_read();
    }

    let strings = |splat: u64, of: Raw| attribute(ns(&[19, 0, splat, 7]), of);
    strings(0, builtin(&[12])).is_refused("strings of a type without a shape", ENTRIES, 4);
    let tensor = |dimension: i64| (0, true, [ns(&[13, 1]), s(dimension), n(0)].concat());
    let two = |splat: u64, dimension: i64| File::new().attributes(&[builtin(&[19, 1, splat, 7])], &[builtin(&[12]), tensor(dimension)]);
    two(1, 5).is_read();
    two(0, 1).is_read();
    two(0, 5).is_refused("5 strings, but 1 bytes are left", ENTRIES, 4);
}

#[test]
fn cycles_and_long_chains() {
    File::new().attributes(&[builtin(&[0, 1, 1])], &[]).is_refused("an attribute or type contains itself", ENTRIES, 1);
    let two = [builtin(&[6, 0])];
    let of = (0, true, [ns(&[14, 1, 0]), n(0)].concat());
    File::new().attributes(&two, &[of]).is_refused("an attribute or type contains itself", ENTRIES, 3);

    let chain = |length: usize| {
        let link = |position: usize| (0, true, ns(&[0, 1, position as u64]));
        File::new().attributes(&(0..length - 1).map(link).collect::<Vec<_>>(), &[])
    };
    chain(MAX_ATTRIBUTE_DEPTH).is_read();
    let longer = chain(MAX_ATTRIBUTE_DEPTH + 1);
    let last = longer.sections[&ENTRIES].len() as u64 - 2 - n(MAX_ATTRIBUTE_DEPTH as u64 - 1).len() as u64;
    longer.is_refused("attributes or locations nest deeper than 4096", ENTRIES, last);
}

#[test]
fn shapes_and_constants() {
    let sized = |dimensions: &[i64]| -> Raw {
        let bytes: Vec<u8> = dimensions.iter().flat_map(|dimension| s(*dimension)).collect();
        (1, true, [ns(&[20, dimensions.len() as u64]), bytes, n(1)].concat())
    };
    File::new().attributes(&[], &[sized(&[-1]), vhlo(&[4])]).is_refused("a tensor type has the dimension -1", ENTRIES, 1);
    File::new().attributes(&[], &[sized(&[i64::MIN]), vhlo(&[4])]).is_read();

    let constant = |shape: &[i64], element: &[Raw], data: &[u8]| {
        let types = [&[sized(shape)], element].concat();
        File::new().attributes(&[(1, true, [ns(&[15, 0, data.len() as u64]), data.to_vec()].concat())], &types)
    };
    let (f32, boolean, i4) = ([vhlo(&[4])], [vhlo(&[0])], [vhlo(&[10])]);
    let complex = [vhlo(&[1, 2]), vhlo(&[4])];
    constant(&[3], &f32, &[0; 12]).is_read();
    constant(&[3], &f32, &[0; 4]).is_read();
    constant(&[0], &f32, &[]).is_read();
    constant(&[9], &boolean, &[0xff, 1]).is_read();
    constant(&[9], &boolean, &[0xff]).is_read();
    constant(&[3], &i4, &[0; 3]).is_read();
    constant(&[3], &complex, &[0; 24]).is_read();
    constant(&[3], &f32, &[0; 8]).is_refused("a constant of 3 elements has 8 bytes of data", ENTRIES, 1);
    constant(&[9], &boolean, &[0; 3]).is_refused("a constant of 9 elements has 3 bytes of data", ENTRIES, 1);
    constant(&[3], &complex, &[0; 12]).is_refused("a constant of 3 elements has 12 bytes of data", ENTRIES, 1);
    let no_values = "a constant's elements are of a type without values";
    constant(&[3], &[vhlo(&[22])], &[0; 4]).is_refused(no_values, ENTRIES, 1);
    // Complex numbers of complex numbers, as deep as one likes.
    let deep: Vec<Raw> = (0..2_000).map(|position| vhlo(&[1, position + 2])).chain([vhlo(&[4])]).collect();
    constant(&[3], &deep, &[0; 4]).is_refused(no_values, ENTRIES, 1);
    let no_shape = "a constant's type is no tensor of static shape, or has too many elements";
    constant(&[i64::MIN], &f32, &[0; 4]).is_refused(no_shape, ENTRIES, 1);
    constant(&[1 << 40, 1 << 40], &f32, &[0; 4]).is_refused(no_shape, ENTRIES, 1);

    let key = "a dictionary's key is no string";
    File::new().attributes(&[builtin(&[1, 1, 0, 0])], &[]).is_refused(key, ENTRIES, 1);
    File::new().attributes(&[vhlo(&[6, 1, 0, 0])], &[]).is_refused(key, ENTRIES, 1);
}

#[test]
fn the_top_of_the_code() {
    let code = |bytes: Vec<u8>| File::new().with(IR, bytes);
    code(f(1, true)).is_refused("the top block has arguments", IR, 0);
    code(f(2, false)).is_refused("2 operations at the top, not one module", IR, 0);
    code([f(1, false), n(4)].concat()).is_refused("operation name 4, but there are 4", IR, 1);
    code([f(1, false), op(BARRIER, 0, &[]), n(0)].concat()).is_refused("1 bytes too many in the IR section", IR, 4);
    code([f(1, false), op(BARRIER, RESULTS, &[n(1), n(0)])].concat()).is_refused("1 values are defined, but the region has 0 left", IR, 5);
}

#[test]
fn operations() {
    let one = |operation: Vec<u8>| File::new().attributes(&[], &[builtin(&[1])]).module(0, &[operation]);
    one(op(BARRIER, 0x80, &[])).is_refused("unknown bit in an operation's mask 0x80", IR, FIRST);
    let old = |version: u64, mask: u8| File::of_version(version).module(0, &[op(BARRIER, mask, &[n(0)])]);
    old(2, USE_ORDERS).is_refused("unknown bit in an operation's mask 0x20", IR, FIRST - 1);
    old(4, HAS_PROPERTIES).is_refused("unknown bit in an operation's mask 0x40", IR, FIRST - 1);
    one([n(BARRIER), vec![0], n(1)].concat()).is_refused("attribute 1, but there are 1", IR, FIRST + 2);
    one(op(BARRIER, ATTRIBUTES, &[n(0)])).is_refused("the attributes of an operation are no dictionary", IR, FIRST);
    one(op(BARRIER, HAS_PROPERTIES, &[n(2)])).is_refused("properties 2, but there are 2", IR, FIRST + 3);
    one(op(BARRIER, RESULTS, &[n(1), n(0)])).is_refused("1 values are defined, but the region has 0 left", IR, FIRST + 4);
    one(op(BARRIER, OPERANDS, &[n(1), n(0)])).is_refused("value 0, but there are 0", IR, FIRST + 4);
    one(op(BARRIER, OPERANDS, &[n(9)])).is_refused("9 operands, but 0 bytes are left", IR, FIRST + 3);
    one(op(BARRIER, SUCCESSORS, &[n(1), n(1)])).is_refused("block 1, but there are 1", IR, FIRST + 4);
    one(op(WHILE, REGIONS, &[f(9, false)])).is_refused("9 regions, but 0 bytes are left", IR, FIRST + 3);
    one(op(WHILE, REGIONS, &[f(1, true), vec![STRINGS, 1]])).is_refused("the section of a region is no IR section", IR, FIRST);
    one(op(WHILE, REGIONS, &[f(1, true), vec![IR], n(2), ns(&[0, 0])])).is_refused("1 bytes too many in a region's section", IR, FIRST + 7);
    one(op(WHILE, REGIONS, &[f(1, false), ns(&[0])])).is_read();
    let message = "the properties of a `vhlo.constant_v1` are missing";
    one(op(CONSTANT, 0, &[])).is_refused(message, IR, FIRST);
    // Property blob 1 names attribute 0, a location.
    let message = "the value of a `vhlo.constant_v1` is no tensor";
    File::new()
        .with(PROPERTIES, ns(&[2, 2, 0, 0, 1, 0]))
        .module(0, &[op(CONSTANT, HAS_PROPERTIES, &[n(1)])])
        .is_refused(message, IR, FIRST);
    File::of_version(4).module(0, &[op(CONSTANT, 0, &[])]).is_refused(message, IR, FIRST - 1);
}

#[test]
fn regions_and_blocks() {
    let body = |parts: &[Vec<u8>]| File::new().attributes(&[], &[builtin(&[1])]).with_body(parts.concat());
    body(&[n(9)]).is_refused("9 blocks, but 0 bytes are left", IR, HEAD);
    body(&[ns(&[1, 9])]).is_refused("9 values of a region, but 0 bytes are left", IR, HEAD + 1);
    body(&[ns(&[1, 0]), f(9, false)]).is_refused("9 operations, but 0 bytes are left", IR, HEAD + 2);
    body(&[ns(&[1, 0]), f(0, true), n(9)]).is_refused("9 block arguments, but 0 bytes are left", IR, HEAD + 3);
    body(&[ns(&[1, 1]), f(0, true), n(1), f(1, false), n(0)]).is_refused("type 1, but there are 1", IR, HEAD + 4);
    body(&[ns(&[1, 1]), f(0, true), n(1), f(0, true), n(1)]).is_refused("attribute 1, but there are 1", IR, HEAD + 5);
    body(&[ns(&[1, 1]), f(0, false)]).is_refused("a region of 1 values defines 0", IR, HEAD + 3);
    body(&[ns(&[1, 1]), f(0, true), n(1), f(0, false), vec![0]]).is_read();

    // Regions inside one another, each of which claims most of what is left for itself.
    let claim = |parts: &[Vec<u8>]| body(&[ns(&[1, 0]), f(1, false), op(WHILE, REGIONS, &[f(1, false)]), parts.concat()]);
    let filler = vec![1; 40];
    let length = |file: &File| file.sections[&IR].len();
    let nested = op(WHILE, REGIONS, &[f(31, false), n(1), n(0), f(1, false), op(WHILE, REGIONS, &[f(31, false)]), filler.clone()]);
    let file = body(&[ns(&[1, 0]), f(1, false), nested]);
    file.is_refused(&format!("63 regions in an IR section of {} bytes", length(&file)), IR, FIRST + 10);
    let file = claim(&[n(35), n(0), f(1, false), op(WHILE, REGIONS, &[f(1, false), n(35), n(0)]), filler.clone()]);
    file.is_refused(&format!("71 blocks in an IR section of {} bytes", length(&file)), IR, FIRST + 11);
    let file = claim(&[ns(&[1, 35]), f(1, false), op(WHILE, REGIONS, &[f(1, false), ns(&[1, 35])]), filler]);
    file.is_refused(&format!("70 values in an IR section of {} bytes", length(&file)), IR, FIRST + 12);

    let deep = |depth: usize| {
        let inner = |inside: Vec<u8>| [ns(&[1, 0]), f(1, false), op(WHILE, REGIONS, &[f(1, false), inside])].concat();
        body(&[(1..depth).fold(n(0), |inside, _| inner(inside))])
    };
    deep(MAX_REGION_DEPTH).is_read();
    let file = deep(MAX_REGION_DEPTH + 1);
    let at = length(&file) as u64 - 2;
    file.is_refused("regions nest deeper than 512", IR, at);
}

#[test]
fn use_list_orders() {
    // A block with one argument and an operation that uses it three times.
    let body = |flag: u8, orders: &[Vec<u8>]| {
        let uses = op(BARRIER, OPERANDS, &[ns(&[3, 0, 0, 0])]);
        let argument = [f(1, true), n(1), f(0, false), vec![flag]].concat();
        File::new().attributes(&[], &[builtin(&[1])]).with_body([ns(&[1, 1]), argument, orders.concat(), uses].concat())
    };
    const ORDER: u64 = HEAD + 6;
    let wrong = "a use-list order is no permutation of the uses";
    body(0, &[]).is_read();
    body(1, &[f(3, false), ns(&[2, 1, 0])]).is_read();
    body(1, &[f(4, true), ns(&[0, 2, 2, 0])]).is_read();
    body(1, &[f(2, false), ns(&[1, 0])]).is_refused(wrong, IR, ORDER);
    body(1, &[f(3, false), ns(&[2, 1, 1])]).is_refused(wrong, IR, ORDER);
    body(1, &[f(3, false), ns(&[3, 1, 0])]).is_refused(wrong, IR, ORDER);
    body(1, &[f(3, true), ns(&[0, 2, 2])]).is_refused(wrong, IR, ORDER);
    body(1, &[f(2, true), ns(&[3, 0])]).is_refused(wrong, IR, ORDER);
    body(1, &[f(60, false)]).is_refused("60 uses, but 7 bytes are left", IR, ORDER);

    let two = |orders: &[Vec<u8>]| {
        let uses = op(BARRIER, OPERANDS, &[ns(&[2, 0, 0])]);
        let arguments = [f(1, true), n(2), f(0, false), f(0, false), vec![1]].concat();
        File::new().attributes(&[], &[builtin(&[1])]).with_body([ns(&[1, 2]), arguments, orders.concat(), uses].concat())
    };
    let order = |index: u64| [n(index), f(2, false), ns(&[1, 0])].concat();
    two(&[n(1), order(0)]).is_read();
    two(&[n(1), order(2)]).is_refused("value 2, but there are 2", IR, ORDER + 2);
    two(&[n(2), order(0), order(0)]).is_refused("a second use-list order of one value", IR, ORDER + 6);
    two(&[n(90)]).is_refused("90 use-list orders, but 6 bytes are left", IR, ORDER + 1);
}

#[test]
fn dictionaries_that_many_operations_share() {
    // Attribute 1 is a key, attribute 2 a dictionary in which it stands many times.
    let dictionary = |items: u64| (0, true, [ns(&[1, items]), vec![3; 2 * items as usize]].concat());
    let file = |items: u64| {
        let operations = vec![op(BARRIER, ATTRIBUTES, &[n(2)]); 10];
        File::new().attributes(&[builtin(&[2, 7]), dictionary(items)], &[]).module(0, &operations)
    };
    file(40).is_read();
    let message = "the attributes of operations add up to 900 in an IR section of 51 bytes";
    file(100).is_refused(message, IR, FIRST + 8 * 4);
}

/// What is read, but not written.
#[test]
fn encodings_that_are_not_known_cannot_be_rewritten() {
    let file = File::new().attributes(&[(2, true, ns(&[40, 1, 2, 3]))], &[]);
    let (bytes, places) = file.bytes();
    let bytecode = Bytecode::read(&bytes, BASE).unwrap();
    let expected = format!(
        "the module cannot be rewritten: it holds an attribute of dialect `sdy` in an encoding that is not known here (at offset {:#x})",
        places[&ENTRIES] + 1
    );
    assert_eq!(bytecode.write().unwrap_err().to_string(), expected);
    let file = File::new().attributes(&[], &[(2, true, ns(&[40]))]);
    let (bytes, _) = file.bytes();
    let message = Bytecode::read(&bytes, BASE).unwrap().write().unwrap_err().to_string();
    assert!(message.contains("it holds a type of dialect `sdy`"), "{message}");
}
