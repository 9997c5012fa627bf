//! `strip-locations` and `redact-paths`: what is left of locations, what that saves, and that nothing else changes.

mod common;

use std::time::{Duration, Instant};

use common::build::Builder;
use common::{Sample, on_a_large_stack, samples, shipped};
use jaxprism::bytecode::{AttributeId, Bytecode, Bytes, Code, Entry, Field, code, dialect};
use jaxprism::passes::{Changes, Options, Pass, find};
use jaxprism::split::rewrite;
use jaxprism::{Exported, Locations, Split, split};

use code::builtin as b;

fn split_with(bytes: &[u8], locations: Locations) -> Split<'_> {
    split(bytes, &common::keeping_callbacks().locations(locations)).unwrap()
}

/// The locations of all operations and arguments, in order.
fn locations(bytecode: &Bytecode<'_>) -> Vec<AttributeId> {
    let operations = bytecode.tree.operations.iter().map(|operation| operation.location);
    operations.chain(bytecode.tree.argument_locations.iter().copied()).collect()
}

/// Everything but the locations of a module, written.
fn all_else(bytecode: &Bytecode<'_>) -> Vec<u8> {
    on_a_large_stack(|| {
        let (stripped, _) = rewrite(bytecode, &[pass("strip-locations")], &Options::default()).unwrap();
        stripped.write().unwrap().to_vec()
    })
}

fn pass(name: &str) -> &'static Pass {
    find(name).unwrap()
}

/// The modules of all levels.
fn modules(exported: &Exported<'_>) -> Vec<Vec<u8>> {
    exported.levels().map(|level| level.module.to_vec()).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn exports(samples: Vec<Sample>) -> impl Iterator<Item = Sample> {
    samples.into_iter().filter(|sample| sample.is_export() && !sample.is_hostile())
}

/// A shipped export whose source lies in a directory, which takes no more bytes than its name did.
fn in_a_directory(mut sample: Sample) -> Sample {
    let (before, after) = (b"make.py\0", b"/m/a.py\0");
    let places: Vec<_> = (0..sample.bytes.len()).filter(|at| sample.bytes[*at..].starts_with(before)).collect();
    assert!(!places.is_empty(), "{}", sample.name);
    places.into_iter().for_each(|at| sample.bytes[at..at + after.len()].copy_from_slice(after));
    sample
}

#[test]
fn no_location_but_the_unknown_one_is_left_when_they_are_stripped() {
    for sample in exports(samples()) {
        for output in split_with(&sample.bytes, Locations::Stripped).outputs.values() {
            for bytes in modules(&output.exported) {
                let bytecode = Bytecode::read(&bytes, 0).unwrap();
                for location in locations(&bytecode) {
                    assert!(bytecode.tables.attribute(location).is(dialect::BUILTIN, b::LOC_UNKNOWN), "{}", sample.name);
                }
                // What is read of a file is what stands in it: not even the tables hold another one.
                let all = (0..bytecode.tables.attribute_count()).map(|id| bytecode.tables.attribute(AttributeId(id as u32)));
                let known = all
                    .filter(|entry| entry.dialect == dialect::BUILTIN)
                    .filter(|entry| matches!(entry.code, Code::Known(b::LOC_CALLSITE..=b::LOC_NAME | b::LOC_FILE_RANGE)));
                assert_eq!(known.count(), 0, "{}", sample.name);
            }
        }
    }
}

#[test]
fn no_file_is_named_when_locations_are_stripped() {
    for sample in exports(shipped()).map(in_a_directory) {
        for output in split_with(&sample.bytes, Locations::Stripped).outputs.values() {
            let written = output.to_vec();
            assert!(
                !["/m/", ".py", "/home", "site-packages", "jit(", "<module>"].iter().any(|text| holds(&written, text)),
                "{}",
                sample.name
            );
        }
    }
}

#[test]
fn files_keep_their_names_and_lines_without_directories() {
    for sample in exports(shipped()).map(in_a_directory) {
        let (kept, redacted) = (split_with(&sample.bytes, Locations::Kept), split_with(&sample.bytes, Locations::Redacted));
        for (before, after) in kept.outputs.values().zip(redacted.outputs.values()) {
            assert!(holds(&before.to_vec(), "/m/a.py") && !holds(&after.to_vec(), "/m/"), "{}", sample.name);
            for (before, after) in modules(&before.exported).iter().zip(modules(&after.exported)) {
                let (before, after) = (Bytecode::read(before, 0).unwrap(), Bytecode::read(&after, 0).unwrap());
                let texts = |bytecode: &Bytecode<'_>| -> Vec<String> {
                    locations(bytecode).into_iter().map(|location| text(bytecode, location)).collect()
                };
                let expected: Vec<_> = texts(&before).into_iter().map(|text| text.replace("/m/a.py", "a.py")).collect();
                assert_eq!(texts(&after), expected, "{}", sample.name);
            }
        }
    }
}

#[test]
fn nothing_but_locations_changes() {
    for sample in exports(samples()) {
        let kept = split_with(&sample.bytes, Locations::Kept);
        for locations in [Locations::Redacted, Locations::Stripped] {
            let changed = split_with(&sample.bytes, locations);
            for (before, after) in kept.outputs.values().zip(changed.outputs.values()) {
                let mut but_modules = after.exported.clone();
                let mut modules_before = before.exported.levels().map(|level| level.module.clone());
                but_modules
                    .for_each_level_mut(|_, level| {
                        level.module = modules_before.next().unwrap();
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(but_modules, before.exported, "{}", sample.name);
                for (before, after) in modules(&before.exported).iter().zip(modules(&after.exported)) {
                    let (before, after) = (Bytecode::read(before, 0).unwrap(), Bytecode::read(&after, 0).unwrap());
                    assert!(all_else(&before) == all_else(&after), "{}", sample.name);
                    assert_eq!(before.tree.use_orders, after.tree.use_orders, "{}", sample.name);
                }
            }
        }
    }
}

#[test]
fn the_bytes_saved_are_the_difference_of_the_modules() {
    for sample in exports(samples()) {
        let kept = split_with(&sample.bytes, Locations::Kept);
        assert!(kept.report.outputs.iter().all(|output| output.location_bytes_saved.is_none()));
        for locations in [Locations::Redacted, Locations::Stripped] {
            let changed = split_with(&sample.bytes, locations);
            for (platform, report) in changed.outputs.keys().zip(&changed.report.outputs) {
                let (before, after) = (&kept.outputs[platform].exported, &changed.outputs[platform].exported);
                let mut sum = 0;
                for (level, (before, after)) in report.levels.iter().zip(before.levels().zip(after.levels())) {
                    let saved = before.module.len() as i64 - after.module.len() as i64;
                    assert_eq!(level.location_bytes_saved, Some(saved), "{}", sample.name);
                    assert!(saved >= 0 && (saved > 0 || locations == Locations::Redacted), "{}: {saved}", sample.name);
                    sum += saved;
                }
                assert_eq!(report.location_bytes_saved, Some(sum));
            }
        }
    }
}

#[test]
fn what_was_done_once_changes_nothing_a_second_time() {
    for sample in exports(shipped()).map(in_a_directory) {
        for locations in [Locations::Redacted, Locations::Stripped] {
            let once = split_with(&sample.bytes, locations);
            for (output, report) in once.outputs.values().zip(&once.report.outputs) {
                let changes = report.levels.iter().map(|level| level.changes);
                assert!(changes.into_iter().all(|changes| changes.locations_stripped + changes.paths_redacted > 0), "{}", sample.name);
                let written = output.to_vec();
                let twice = split_with(&written, locations);
                assert_eq!(twice.outputs[0].to_vec(), written, "{}", sample.name);
                assert!(twice.report.outputs[0].levels.iter().all(|level| level.changes.is_empty()));
                assert_eq!(twice.report.outputs[0].location_bytes_saved, Some(0));
            }
        }
    }
}

#[test]
fn stripping_after_the_split_comes_to_the_same() {
    for sample in exports(shipped()) {
        let stripped = split_with(&sample.bytes, Locations::Stripped);
        for (platform, output) in split_with(&sample.bytes, Locations::Kept).outputs {
            let written = output.to_vec();
            assert_eq!(split_with(&written, Locations::Stripped).outputs[0].to_vec(), stripped.outputs[&platform].to_vec());
        }
    }
}

/// A location as text.
fn text(bytecode: &Bytecode<'_>, location: AttributeId) -> String {
    let entry = bytecode.tables.attribute(location);
    let fields = entry.fields.iter().map(|field| match field {
        Field::Attribute(id) => text(bytecode, *id),
        Field::String(text) => String::from_utf8_lossy(&text.0).into_owned(),
        Field::Unsigned(number) => number.to_string(),
        Field::Count(count) => format!("{count}:"),
        _ => "?".to_owned(),
    });
    let fields = fields.collect::<Vec<_>>().join(" ");
    match entry.code {
        Code::Known(b::STRING) => fields,
        Code::Known(b::LOC_FILE) => format!("file({fields})"),
        Code::Known(b::LOC_FILE_RANGE) => format!("range({fields})"),
        Code::Known(b::LOC_NAME) => format!("name({fields})"),
        Code::Known(b::LOC_CALLSITE) => format!("call({fields})"),
        Code::Known(b::LOC_FUSED) => format!("fused({fields})"),
        Code::Known(b::LOC_FUSED_METADATA) => format!("meta({fields})"),
        Code::Known(b::LOC_UNKNOWN) => "unknown".to_owned(),
        _ => format!("other({fields})"),
    }
}

/// Gives every operation of a small module one location and redacts it.
fn redact(locate: impl FnOnce(&mut Builder<'_>) -> AttributeId) -> (Vec<u8>, Changes) {
    let demo = shipped().into_iter().find(|sample| sample.name.starts_with("demo.jax-0.12")).unwrap();
    let (_, module, _) = demo.modules()[0];
    let mut builder = Builder::new(&Bytecode::read(module, 0).unwrap());
    let location = locate(&mut builder);
    builder.locate(location);
    let of = builder.f32();
    let end = builder.op("return_v1", &[0], &[]);
    let main = builder.function("main", &[(0, of)], &[of], vec![end]);
    let bytes = builder.module(vec![main]);
    on_a_large_stack(|| {
        let (redacted, changes) = rewrite(&Bytecode::read(&bytes, 0).unwrap(), &[pass("redact-paths")], &Options::default()).unwrap();
        (redacted.write().unwrap().to_vec(), changes)
    })
}

fn file(builder: &mut Builder<'_>, path: &str) -> AttributeId {
    let path = Field::Attribute(builder.name(path));
    builder.builtin(b::LOC_FILE, vec![path, Field::Unsigned(5), Field::Unsigned(11)])
}

fn named(builder: &mut Builder<'_>, name: &str, child: AttributeId) -> AttributeId {
    let name = Field::Attribute(builder.name(name));
    builder.builtin(b::LOC_NAME, vec![name, Field::Attribute(child)])
}

fn fields(ids: &[AttributeId]) -> Vec<Field<'static>> {
    ids.iter().map(|id| Field::Attribute(*id)).collect()
}

#[test]
fn every_kind_of_location_is_redacted_inside_all_others() {
    let (module, changes) = redact(|builder| {
        let posix = file(builder, "/home/me/proj/train.py");
        let windows = builder.name(r"C:\Users\me\train.py");
        let numbers = [5, 11, 6, 2].map(Field::Unsigned);
        let range = [Field::Attribute(windows), Field::Count(4)].into_iter().chain(numbers).collect();
        let range = builder.builtin(b::LOC_FILE_RANGE, range);
        let relative = file(builder, "proj/util.py");
        let scope = named(builder, "jit(f)/while/body/add", posix);
        let old = named(builder, "jit(f)/p[at=/home/me/k.py:3]", relative);
        let call = builder.builtin(b::LOC_CALLSITE, fields(&[scope, range]));
        let fused = [Field::Count(2)].into_iter().chain(fields(&[call, old])).collect();
        let fused = builder.builtin(b::LOC_FUSED, fused);
        let metadata = builder.name("/kept");
        let fused = [Field::Count(1)].into_iter().chain(fields(&[fused, metadata])).collect();
        builder.builtin(b::LOC_FUSED_METADATA, fused)
    });
    let bytecode = Bytecode::read(&module, 0).unwrap();
    let expected = "meta(1: fused(2: call(name(jit(f)/while/body/add file(train.py 5 11)) range(train.py 4: 5 11 6 2)) \
                    name(jit(f)/p[at=k.py:3] file(util.py 5 11))) /kept)";
    for location in locations(&bytecode) {
        assert_eq!(text(&bytecode, location), expected);
    }
    assert_eq!(changes.paths_redacted, 4);
}

#[test]
fn locations_that_cannot_be_looked_into_become_unknown() {
    let (module, changes) = redact(|builder| {
        let text = Field::String(Bytes(b"loc(\"/home/me/train.py\":1:2)".to_vec().into()));
        let entry = Entry { dialect: dialect::BUILTIN, code: Code::Text, identity: 0, fields: [text].into() };
        let text = builder.bytecode.tables.intern_attribute(entry);
        named(builder, "f", text)
    });
    let bytecode = Bytecode::read(&module, 0).unwrap();
    assert_eq!(text(&bytecode, locations(&bytecode)[0]), "name(f unknown)");
    assert_eq!(changes.paths_redacted, 1);
}

#[test]
fn a_location_that_is_shared_over_and_over_is_redacted_once() {
    let start = Instant::now();
    let (module, changes) = redact(|builder| {
        let mut location = file(builder, "/home/me/train.py");
        for _ in 0..4_000 {
            location = builder.builtin(b::LOC_CALLSITE, fields(&[location, location]));
        }
        location
    });
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(changes.paths_redacted, 1);
    assert!(holds(&module, "train.py") && !holds(&module, "/home"));
}

#[test]
fn whatever_can_be_read_can_be_redacted_and_stripped() {
    for sample in samples().into_iter().filter(|sample| !sample.is_upstream()) {
        if sample.is_hostile() && sample.is_export() {
            continue;
        }
        for (name, bytes, _) in sample.modules() {
            let Ok(bytecode) = Bytecode::read(bytes, 0) else { continue };
            on_a_large_stack(|| {
                let Ok((plain, _)) = rewrite(&bytecode, &[], &Options::default()) else { return };
                let both = [pass("redact-paths"), pass("strip-locations")];
                let (stripped, _) = rewrite(&plain, &both, &Options::default()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                assert!(stripped.write().is_ok(), "{name}");
            });
        }
    }
}
