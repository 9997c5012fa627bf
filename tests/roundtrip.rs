//! What was not changed comes out byte for byte: modules, modules through MLIR, containers, and modules in an encoding that no writer would choose.
//!
//! `JAXPRISM_SAMPLES` may name a folder of further files, `JAXPRISM_JAX_BACKCOMPAT` one with the modules of JAX's own compatibility tests
//! (`scripts/extract-backcompat` makes it).

mod common;

use std::collections::{BTreeMap, HashSet};

use common::{Random, Sample, encode_strangely, files_below, folder_of, on_a_large_stack, samples};
use jaxprism::Exported;
use jaxprism::bytecode::{AttributeId, Bytecode, Bytes, Code, Entry, Field, OpNameId, TypeId, dialect};
use jaxprism::ir::{Session, export, import, verify};

fn read<'a>(name: &str, bytes: &'a [u8], base: u64) -> Bytecode<'a> {
    Bytecode::read(bytes, base).unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

fn written(name: &str, bytecode: &Bytecode<'_>) -> Vec<u8> {
    bytecode.write().unwrap_or_else(|error| panic!("{name}: {error:?}")).to_vec()
}

/// Takes a module into MLIR and out again.
fn through_mlir<'a>(name: &str, bytecode: &Bytecode<'a>) -> jaxprism::error::Result<Bytecode<'a>> {
    let session = Session::new(bytecode);
    let program = import(&session, bytecode)?;
    match verify(&program) {
        // A module by hand that holds one of every attribute, references to nothing among them.
        Err(error) if name.starts_with("crafted") && error.to_string().ends_with("which is no symbol") => {}
        verified => verified?,
    }
    export(&program, bytecode)
}

fn assert_same(name: &str, found: &[u8], expected: &[u8]) {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let place = differs.unwrap_or(found.len().min(expected.len()));
    assert!(found == expected, "{name}: {} bytes, not {}; the first difference is at {place:#x}", found.len(), expected.len());
}

/// Runs `check` on every module of every file that JAX wrote.
fn for_each_canonical_module(mut check: impl FnMut(&str, &[u8], u64)) {
    let mut count = 0;
    for sample in samples().iter().filter(|sample| sample.is_canonical()) {
        for (name, bytes, base) in sample.modules() {
            check(&name, bytes, base);
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} modules");
}

#[test]
fn modules_come_out_byte_for_byte() {
    for_each_canonical_module(|name, bytes, base| assert_same(name, &written(name, &read(name, bytes, base)), bytes));
}

#[test]
fn modules_come_out_of_mlir_byte_for_byte() {
    on_a_large_stack(|| {
        for_each_canonical_module(|name, bytes, base| {
            let bytecode = read(name, bytes, base);
            let exported = through_mlir(name, &bytecode).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_same(name, &written(name, &exported), bytes);
        });
    });
}

#[test]
fn every_entry_has_a_pointer_of_its_own() {
    on_a_large_stack(|| {
        for_each_canonical_module(|name, bytes, base| {
            let bytecode = read(name, bytes, base);
            let session = Session::new(&bytecode);
            let tables = &bytecode.tables;
            let attributes: Vec<_> = (0..tables.attribute_count()).map(|id| session.attribute(AttributeId(id as u32))).collect();
            let types: Vec<_> = (0..tables.type_count()).map(|id| session.r#type(TypeId(id as u32))).collect();
            for (id, attribute) in attributes.iter().enumerate() {
                assert_eq!(
                    session.attribute_id(*attribute).unwrap(),
                    AttributeId(id as u32),
                    "{name}: {:?}",
                    tables.attribute(AttributeId(id as u32))
                );
            }
            for (id, of) in types.iter().enumerate() {
                assert_eq!(session.type_id(*of).unwrap(), TypeId(id as u32), "{name}: {:?}", tables.r#type(TypeId(id as u32)));
            }
            assert_eq!(attributes.iter().collect::<HashSet<_>>().len(), attributes.len(), "{name}");
            assert_eq!(types.iter().collect::<HashSet<_>>().len(), types.len(), "{name}");
        });
    });
}

#[test]
fn containers_come_out_with_every_field() {
    let samples = samples();
    for sample in samples.iter().filter(|sample| sample.is_export() && !sample.is_hostile()) {
        let exported = Exported::read(&sample.bytes).unwrap();
        let bytes = exported.write().unwrap().to_vec();
        let again = Exported::read(&bytes).unwrap_or_else(|error| panic!("{}: {error:?}", sample.name));
        assert_eq!(again, exported, "{}", sample.name);
        assert_same(&sample.name, &again.write().unwrap().to_vec(), &bytes);
    }
}

/// How often each module is encoded strangely: the small ones more often.
fn seeds(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..4_000 => 8,
        4_000..40_000 => 3,
        _ => 1,
    }
}

#[test]
fn any_encoding_of_a_module_becomes_the_canonical_one() {
    let mut differing = 0;
    for_each_canonical_module(|name, bytes, base| {
        let bytecode = read(name, bytes, base);
        for seed in 0..seeds(bytes) {
            let strange = encode_strangely(&bytecode, seed);
            differing += usize::from(strange != bytes);
            let name = format!("{name}, encoded with seed {seed}");
            assert_same(&name, &written(&name, &read(&name, &strange, 0)), bytes);
        }
    });
    assert!(differing > 100, "the strange encoder is not strange: {differing}");
}

#[test]
fn resource_sections_are_added_where_they_are_missing() {
    for sample in samples().iter().filter(|sample| sample.lacks_resource_sections()) {
        let first = written(&sample.name, &read(&sample.name, &sample.bytes, 0));
        let shorter = without_empty_resource_sections(&first);
        assert_eq!(shorter.len(), sample.bytes.len(), "{}", sample.name);
        assert_eq!(Content::of(&read(&sample.name, &first, 0)), Content::of(&read(&sample.name, &sample.bytes, 0)), "{}", sample.name);
        // The larger one has an order of its own too.
        if sample.name.starts_with("minimal") {
            assert_same(&sample.name, &shorter, &sample.bytes);
        }
        assert_same(&sample.name, &written(&sample.name, &read(&sample.name, &first, 0)), &first);
    }
}

/// Cuts out `06 03 01` and `05 01`: no resource groups, no data.
fn without_empty_resource_sections(bytes: &[u8]) -> Vec<u8> {
    let empty = [0x06, 0x03, 0x01, 0x05, 0x01];
    let place = bytes.windows(empty.len()).position(|window| window == empty).expect("two empty resource sections");
    [&bytes[..place], &bytes[place + empty.len()..]].concat()
}

#[test]
fn plain_mlir_can_be_looked_at_and_is_refused_by_name_or_comes_out_as_it_was() {
    on_a_large_stack(|| {
        for sample in samples().iter().filter(|sample| sample.is_upstream()) {
            let bytecode = read(&sample.name, &sample.bytes, 0);
            let is_clear = |error: &jaxprism::Error| {
                let text = error.to_string();
                text.contains("not known") || (text.ends_with("has no place in a portable artifact") && error.hint().is_some())
            };
            match bytecode.write() {
                Ok(bytes) => assert_same(&sample.name, &bytes.to_vec(), &sample.bytes),
                Err(error) => assert!(is_clear(&error), "{}: {error:?}", sample.name),
            }
            match through_mlir(&sample.name, &bytecode).and_then(|bytecode| Ok(bytecode.write()?.to_vec())) {
                Ok(bytes) => assert_same(&sample.name, &bytes, &sample.bytes),
                Err(error) => assert!(is_clear(&error), "{}: {error:?}", sample.name),
            }
        }
    });
}

/// What a module holds apart from all numbering: each entry spelled out in full, how often, and the operations in order.
#[derive(Debug, PartialEq)]
struct Content {
    producer: Vec<u8>,
    entries: BTreeMap<String, usize>,
    operations: Vec<(String, usize, usize, usize)>,
}

impl Content {
    fn of(bytecode: &Bytecode<'_>) -> Self {
        let tables = &bytecode.tables;
        let mut entries = BTreeMap::new();
        // Entries that only the reader put there, and nothing uses, are no content: so only those of the operations are counted.
        let mut count = |text: String| *entries.entry(text).or_default() += 1;
        for operation in &bytecode.tree.operations {
            let properties = operation.properties.iter().flat_map(|span| &bytecode.tree.properties[span.range()]).flatten();
            let own = [Some(operation.location), operation.attributes].into_iter().flatten();
            own.chain(properties.copied()).for_each(|id| count(spelled(bytecode, tables.attribute(id))));
        }
        bytecode.tree.value_types.iter().for_each(|id| count(spelled(bytecode, tables.r#type(*id))));
        let shape = |operation: &jaxprism::bytecode::Operation| {
            (
                bytecode.op_name(operation),
                operation.results.range().len(),
                operation.operands.range().len(),
                operation.regions.range().len(),
            )
        };
        Self { producer: bytecode.producer.to_vec(), entries, operations: bytecode.tree.operations.iter().map(shape).collect() }
    }
}

fn spelled(bytecode: &Bytecode<'_>, entry: &Entry<'_>) -> String {
    let field = |field: &Field<'_>| match field {
        Field::Attribute(id) => spelled(bytecode, bytecode.tables.attribute(*id)),
        Field::Type(id) => spelled(bytecode, bytecode.tables.r#type(*id)),
        other => format!("{other:?}"),
    };
    let fields: Vec<_> = entry.fields.iter().map(field).collect();
    format!("{}:{:?}({})", String::from_utf8_lossy(bytecode.tables.dialect(entry.dialect)), entry.code, fields.join(","))
}

/// Whether the writer of 2023 sorted in another way than those since, which a module's producer shows.
fn is_of_2023(bytecode: &Bytecode<'_>) -> bool {
    bytecode.producer.starts_with(b"MLIR") || *bytecode.producer == *b"StableHLO_v0.9.0"
}

#[test]
fn modules_of_jaxs_compatibility_tests_come_out_byte_for_byte() {
    let Some(folder) = folder_of("JAXPRISM_JAX_BACKCOMPAT") else { return };
    let paths = files_below(&folder, &["mlirbc"]);
    let (mut identical, mut renumbered) = (0, 0);
    for path in &paths {
        let sample = Sample { name: path.display().to_string(), bytes: std::fs::read(path).unwrap() };
        let bytecode = read(&sample.name, &sample.bytes, 0);
        let bytes = written(&sample.name, &bytecode);
        if bytes == sample.bytes {
            identical += 1;
            continue;
        }
        assert!(is_of_2023(&bytecode), "{}: written by `{}`", sample.name, String::from_utf8_lossy(&bytecode.producer));
        assert_eq!(bytes.len(), sample.bytes.len(), "{}", sample.name);
        let again = read(&sample.name, &bytes, 0);
        assert_eq!(Content::of(&again), Content::of(&bytecode), "{}", sample.name);
        assert_same(&sample.name, &written(&sample.name, &again), &bytes);
        renumbered += 1;
    }
    eprintln!("{identical} of {} modules are identical, {renumbered} of 2023 are numbered anew", paths.len());
    assert!(identical > 10 * renumbered, "{identical} of {} are identical", paths.len());
}

#[test]
fn what_nothing_uses_is_not_written() {
    let sample = common::shipped().remove(0);
    let (name, bytes, base) = sample.modules().remove(0);
    let mut bytecode = read(&name, bytes, base);
    let mut random = Random::new(1);
    for _ in 0..10 {
        let text = format!("unused{}", random.next());
        let fields = Box::new([Field::String(Bytes(text.clone().into_bytes().into()))]);
        let entry = Entry { dialect: dialect::BUILTIN, code: Code::Text, identity: 0, fields };
        bytecode.tables.intern_attribute(entry.clone());
        bytecode.tables.intern_type(entry);
        let id: OpNameId = bytecode.tables.intern_op_name(dialect::VHLO, text.into_bytes().into(), true);
        assert!(bytecode.tables.op_row(id).is_none());
    }
    assert_same(&name, &written(&name, &bytecode), bytes);
}
