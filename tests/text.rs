//! MLIR text: what is written is read back as what it was, entry by entry and module by module.
//!
//! `JAXPRISM_SAMPLES` may name a folder of further files, `JAXPRISM_JAX_BACKCOMPAT` one with the modules of JAX's own compatibility tests.

mod common;

use common::build::Builder;
use common::{Sample, files_below, folder_of, on_a_large_stack, samples, shipped};
use jaxprism::ErrorKind;
use jaxprism::bytecode::{AttributeId, Bytecode, Bytes, Code, Entry, Field, TypeId, UseOrder, code, dialect};
use jaxprism::ir::assembly::{Constants, Form, Writer, read_attribute, read_type};
use jaxprism::ir::parse;
use jaxprism::ir::text::{TextOptions, write_text};

use code::builtin as b;

fn text_of(bytecode: &Bytecode<'_>, options: &TextOptions) -> String {
    let mut text = Vec::new();
    write_text(bytecode, options, &mut text).unwrap_or_else(|error| panic!("{error:?}"));
    String::from_utf8(text).unwrap()
}

fn exact(bytecode: &Bytecode<'_>) -> String {
    text_of(bytecode, &TextOptions::exact())
}

fn parsed(name: &str, text: &str) -> Bytecode<'static> {
    parse(text, "test.mlir").unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

fn written(name: &str, bytecode: &Bytecode<'_>) -> Vec<u8> {
    bytecode.write().unwrap_or_else(|error| panic!("{name}: {error:?}")).to_vec()
}

/// What a text comes to: the error's messages, outermost first.
fn refusal(text: &str) -> String {
    let error = parse(text, "test.mlir").map(|_| ()).expect_err(text);
    assert_ne!(error.kind(), ErrorKind::Bug, "{error:?}");
    let causes: Vec<_> = error.causes().map(ToString::to_string).collect();
    std::iter::once(error.to_string()).chain(causes).collect::<Vec<_>>().join(": ")
}

/// Every module of every file: those of exports, modules alone, and JAX's compatibility tests.
fn for_each_module(mut check: impl FnMut(&str, &[u8], &Bytecode<'_>)) {
    let mut all = samples();
    if let Some(root) = folder_of("JAXPRISM_JAX_BACKCOMPAT") {
        let read = |path: &std::path::PathBuf| Sample { name: path.display().to_string(), bytes: std::fs::read(path).unwrap() };
        all.extend(files_below(&root, &["mlirbc"]).iter().map(read));
    }
    let mut count = 0;
    for sample in all.iter().filter(|sample| !sample.is_hostile()) {
        for (name, bytes, base) in sample.modules() {
            check(&name, bytes, &Bytecode::read(bytes, base).unwrap());
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} modules");
}

/// Whether text can hold the module: what is no portable artifact, or has blobs beside it, is shown but not read.
fn is_portable(bytecode: &Bytecode<'_>) -> bool {
    let is_known = |operation: &jaxprism::bytecode::Operation| {
        let dialect = bytecode.tables.op_name(operation.name).dialect;
        operation.successors.len == 0 && matches!(dialect, dialect::VHLO | dialect::SDY | dialect::BUILTIN)
    };
    bytecode.unreadable.is_none() && !bytecode.has_resources() && bytecode.tree.operations.iter().all(is_known)
}

/// Checks that an attribute, in its own spelling and field by field, is read back as itself.
fn check_attribute(name: &str, bytecode: &mut Bytecode<'_>, id: AttributeId) {
    for by_fields in [false, true] {
        let mut text = String::new();
        let mut writer = Writer::new(&bytecode.tables, Form::Vhlo, Constants::All, 0);
        let written = if by_fields { writer.attribute_by_fields(&mut text, id) } else { writer.attribute(&mut text, id) };
        written.unwrap();
        let found = read_attribute(&mut bytecode.tables, &text).unwrap_or_else(|error| panic!("{name}: {text}: {error:?}"));
        assert_eq!(found, id, "{name}: {text} is {:?}, not {:?}", bytecode.tables.attribute(found), bytecode.tables.attribute(id));
    }
}

fn check_type(name: &str, bytecode: &mut Bytecode<'_>, id: TypeId) {
    for by_fields in [false, true] {
        let mut text = String::new();
        let mut writer = Writer::new(&bytecode.tables, Form::Vhlo, Constants::All, 0);
        let written = if by_fields { writer.type_by_fields(&mut text, id) } else { writer.r#type(&mut text, id) };
        written.unwrap();
        let found = read_type(&mut bytecode.tables, &text).unwrap_or_else(|error| panic!("{name}: {text}: {error:?}"));
        assert_eq!(found, id, "{name}: {text} is {:?}, not {:?}", bytecode.tables.r#type(found), bytecode.tables.r#type(id));
    }
}

mod files {
    use super::*;

    #[test]
    fn every_entry_is_read_back_as_itself() {
        on_a_large_stack(|| {
            let mut count = 0;
            for_each_module(|name, _, bytecode| {
                let mut bytecode = bytecode.clone();
                for id in 0..bytecode.tables.attribute_count() {
                    check_attribute(name, &mut bytecode, AttributeId(id as u32));
                }
                for id in 0..bytecode.tables.type_count() {
                    check_type(name, &mut bytecode, TypeId(id as u32));
                }
                count += bytecode.tables.attribute_count() + bytecode.tables.type_count();
            });
            assert!(count > 10_000, "only {count} entries");
        });
    }

    #[test]
    fn bytecode_to_text_to_bytecode_changes_nothing() {
        on_a_large_stack(|| {
            let (mut identical, mut others) = (0, Vec::new());
            for_each_module(|name, bytes, bytecode| {
                if !is_portable(bytecode) {
                    others.push(name.to_owned());
                    return;
                }
                let again = written(name, &parsed(name, &exact(bytecode)));
                assert!(again == written(name, bytecode), "{name}");
                identical += usize::from(again == bytes);
            });
            eprintln!("{identical} modules are the file's own bytes; shown but not read: {others:?}");
            assert!(identical >= 30);
        });
    }

    #[test]
    fn text_to_bytecode_to_text_changes_nothing() {
        on_a_large_stack(|| {
            for_each_module(|name, _, bytecode| {
                if is_portable(bytecode) {
                    let text = exact(bytecode);
                    let bytes = written(name, &parsed(name, &text));
                    assert!(exact(&Bytecode::read(&bytes, 0).unwrap()) == text, "{name}");
                }
            });
        });
    }

    #[test]
    fn no_module_is_too_strange_to_be_shown() {
        on_a_large_stack(|| {
            for sample in samples() {
                if sample.is_hostile() && sample.is_export() {
                    continue;
                }
                for (name, bytes, _) in sample.modules() {
                    let Ok(bytecode) = Bytecode::read(bytes, 0) else { continue };
                    for canonical in [false, true] {
                        for form in [Form::Vhlo, Form::Stablehlo] {
                            let mut options = TextOptions::exact();
                            (options.canonical, options.form) = (canonical, form);
                            let mut text = Vec::new();
                            let written = write_text(&bytecode, &options, &mut text);
                            assert!(written.is_ok() || sample.is_hostile(), "{name}: {written:?}");
                        }
                    }
                }
            }
        });
    }

    #[test]
    fn what_is_no_portable_artifact_is_refused_with_a_reason() {
        on_a_large_stack(|| {
            for_each_module(|name, _, bytecode| {
                if !is_portable(bytecode) && bytecode.unreadable.is_none() && !bytecode.has_resources() {
                    let said = refusal(&exact(bytecode));
                    assert!(said.contains("does not stand in a portable artifact") || said.contains("branches between blocks"), "{name}: {said}");
                }
            });
        });
    }

    #[test]
    fn elided_constants_are_read_but_not_written() {
        let sample = shipped().into_iter().find(|sample| sample.name.starts_with("demo.jax-0.12")).unwrap();
        let (_, bytes, _) = sample.modules().remove(0);
        let text = text_of(&Bytecode::read(bytes, 0).unwrap(), &TextOptions::default());
        assert!(text.contains("dense<elided> : tensor<16x16xf32>"));
        let bytecode = parsed("demo", &text);
        assert_eq!(text_of(&bytecode, &TextOptions::default()), text);
        assert_eq!(bytecode.write().unwrap_err().kind(), ErrorKind::Refused);
        let error = jaxprism::ir::text::check_complete(&bytecode).unwrap_err();
        assert_eq!(error.to_string(), "the constant is elided of the operation `vhlo.constant_v1` at test.mlir:16:11");
        assert_eq!(error.hint(), Some("print the module with `--constants all`, or keep to text"));
    }
}

/// A module of one function whose only operation has this location, through text and back.
fn located(locate: impl FnOnce(&mut Builder<'_>) -> AttributeId) -> String {
    let shipped = shipped();
    let (_, module, _) = shipped[0].modules().remove(0);
    let mut builder = Builder::new(&Bytecode::read(module, 0).unwrap());
    let location = locate(&mut builder);
    builder.locate(location);
    let of = builder.f32();
    let end = builder.op("return_v1", &[0], &[]);
    let main = builder.function("main", &[(0, of)], &[of], vec![end]);
    let bytes = builder.module(vec![main]);
    on_a_large_stack(|| {
        let text = exact(&Bytecode::read(&bytes, 0).unwrap());
        let again = written(&text, &parsed(&text, &text));
        assert!(again == bytes, "{text}");
        assert_eq!(exact(&Bytecode::read(&again, 0).unwrap()), text);
        text.lines().filter(|line| line.starts_with("#loc")).map(|line| format!("{line}\n")).collect()
    })
}

fn file(builder: &mut Builder<'_>, path: &str, line: u64, column: u64) -> AttributeId {
    let path = Field::Attribute(builder.name(path));
    builder.builtin(b::LOC_FILE, vec![path, Field::Unsigned(line), Field::Unsigned(column)])
}

fn range(builder: &mut Builder<'_>, path: &str, numbers: &[u64]) -> AttributeId {
    let path = Field::Attribute(builder.name(path));
    let numbers = numbers.iter().map(|number| Field::Unsigned(*number));
    let fields = [path, Field::Count(numbers.len() as u32)].into_iter().chain(numbers).collect();
    builder.builtin(b::LOC_FILE_RANGE, fields)
}

fn named(builder: &mut Builder<'_>, name: &str, child: AttributeId) -> AttributeId {
    let name = Field::Attribute(builder.name(name));
    builder.builtin(b::LOC_NAME, vec![name, Field::Attribute(child)])
}

fn call(builder: &mut Builder<'_>, callee: AttributeId, caller: AttributeId) -> AttributeId {
    builder.builtin(b::LOC_CALLSITE, vec![Field::Attribute(callee), Field::Attribute(caller)])
}

fn fused(builder: &mut Builder<'_>, parts: &[AttributeId], metadata: Option<AttributeId>) -> AttributeId {
    let fields = std::iter::once(Field::Count(parts.len() as u32));
    let fields = fields.chain(parts.iter().copied().chain(metadata).map(Field::Attribute)).collect();
    builder.builtin(if metadata.is_some() { b::LOC_FUSED_METADATA } else { b::LOC_FUSED }, fields)
}

mod locations {
    use super::*;

    #[test]
    fn are_written_as_mlir_writes_them() {
        let text = located(|builder| {
            let place = file(builder, "train.py", 41, 8);
            let name = named(builder, "jit(f)/\"mul\"\\", place);
            let twice = named(builder, "mul", name);
            let same_line = range(builder, "é.py", &[1, 2, 9]);
            let call = call(builder, twice, same_line);
            let lines = range(builder, "", &[1, 2, 3, 2]);
            fused(builder, &[call, lines, name], None)
        });
        let expected = r##"
#loc0 = loc("train.py":41:8)
#loc1 = loc("jit(f)/\22mul\22\5C"(#loc0))
#loc2 = loc("mul"(#loc1))
#loc3 = loc("\C3\A9.py":1:2 to :9)
#loc4 = loc(callsite(#loc2 at #loc3))
#loc5 = loc("":1:2 to 3:2)
#loc6 = loc(fused[#loc4, #loc5, #loc1])
"##;
        assert_eq!(text, expected.trim_start());
        assert_eq!(located(|builder| builder.builtin(b::LOC_UNKNOWN, vec![])), "");
    }

    #[test]
    fn that_mlir_would_change_are_carried() {
        let carried = |locate: fn(&mut Builder<'_>) -> AttributeId, expected: &str| {
            let text = located(locate);
            assert!(text.lines().last().unwrap().contains(&format!("loc(fused<#jaxprism.entry<{expected}")), "{text}");
        };
        // Ranges that are a place, or that say the same line twice.
        carried(|builder| range(builder, "f", &[1, 2]), "builtin.loc_file_range, attribute \"f\", count 2, unsigned 1, unsigned 2>");
        carried(|builder| range(builder, "f", &[1, 2, 2]), "builtin.loc_file_range");
        carried(|builder| range(builder, "f", &[1, 2, 1, 9]), "builtin.loc_file_range");
        carried(|builder| range(builder, "f", &[1]), "builtin.loc_file_range");
        carried(|builder| range(builder, "f", &[1, 2, 3, 4, 5]), "builtin.loc_file_range");
        // Numbers that MLIR cuts off, and what its parser calls text without a name.
        carried(|builder| file(builder, "f", 1 << 32, 0), "builtin.loc_file");
        carried(|builder| range(builder, "f", &[1, 2, 1 << 32]), "builtin.loc_file_range");
        carried(|builder| file(builder, "-", 1, 2), "builtin.loc_file");
        carried(|builder| range(builder, "-", &[1, 2, 3, 4]), "builtin.loc_file_range");
        // Fused ones that MLIR makes flat, short or nothing.
        carried(|builder| fused(builder, &[], None), "builtin.loc_fused, count 0>");
        carried(
            |builder| {
                let place = file(builder, "f", 1, 2);
                fused(builder, &[place], None)
            },
            "builtin.loc_fused",
        );
        carried(
            |builder| {
                let place = file(builder, "f", 1, 2);
                fused(builder, &[place, place], None)
            },
            "builtin.loc_fused",
        );
        carried(
            |builder| {
                let (place, unknown) = (file(builder, "f", 1, 2), builder.builtin(b::LOC_UNKNOWN, vec![]));
                fused(builder, &[place, unknown], None)
            },
            "builtin.loc_fused",
        );
        carried(
            |builder| {
                let (one, other) = (file(builder, "f", 1, 2), file(builder, "f", 1, 3));
                let inner = fused(builder, &[one, other], None);
                fused(builder, &[inner, one], None)
            },
            "builtin.loc_fused",
        );
        carried(
            |builder| {
                let (place, metadata) = (file(builder, "f", 1, 2), builder.name("pass"));
                fused(builder, &[place], Some(metadata))
            },
            "builtin.loc_fused_metadata",
        );
        carried(
            |builder| {
                let (unknown, metadata) = (builder.builtin(b::LOC_UNKNOWN, vec![]), builder.string("pass"));
                fused(builder, &[unknown], Some(metadata))
            },
            "builtin.loc_fused_metadata",
        );
    }

    #[test]
    fn of_other_kinds_than_they_should_be_are_carried() {
        let carried = |locate: fn(&mut Builder<'_>) -> AttributeId, expected: &str| {
            let text = located(locate);
            assert!(text.contains(&format!("loc(fused<#jaxprism.entry<{expected}")), "{text}");
        };
        carried(|builder| builder.name("no place"), "builtin.string, string \"no place\">>[unknown])");
        carried(|builder| builder.string("no place"), "vhlo.string_v1, string \"no place\">>[unknown])");
        carried(
            |builder| {
                let name = builder.name("no place");
                named(builder, "f", name)
            },
            "builtin.string",
        );
        carried(
            |builder| {
                let (name, place) = (builder.string("no place"), file(builder, "f", 1, 2));
                let call = call(builder, name, place);
                fused(builder, &[call, place], None)
            },
            "vhlo.string_v1",
        );
        carried(
            |builder| {
                // A name that is a string of another dialect.
                let (name, place) = (builder.string("f"), file(builder, "f", 1, 2));
                builder.builtin(b::LOC_NAME, vec![Field::Attribute(name), Field::Attribute(place)])
            },
            "builtin.loc_name",
        );
        carried(
            |builder| {
                let text = Field::String(Bytes(b"loc(\"f\":1:2)".to_vec().into()));
                let entry = Entry { dialect: dialect::BUILTIN, code: Code::Text, identity: 0, fields: [text].into() };
                builder.bytecode.tables.intern_attribute(entry)
            },
            "builtin text, string \"loc(\\22f\\22:1:2)\">",
        );
    }

    #[test]
    fn of_any_depth_that_bytecode_may_have() {
        let text = located(|builder| (0..4_000).fold(file(builder, "f", 1, 2), |inner, _| call(builder, inner, inner)));
        assert_eq!(text.lines().count(), 4_001);
        located(|builder| (0..4_000).fold(file(builder, "f", 1, 2), |inner, at| named(builder, &format!("n{at}"), inner)));
    }

    #[test]
    fn of_mlirs_own_making_are_read() {
        let text = r##"module {
  func.func @main() {
    "vhlo.return_v1"() : () -> () loc(fused<"meta">["a.py":1:2, "b"("a.py":3:4)])
  } loc("a":1:2 to 3:4)
}
#inner = loc("c.py":7:1)
#outer = loc(callsite(#inner at "d"))
"##;
        let bytecode = parsed("locations", text);
        let location = bytecode.tree.operations.iter().map(|operation| bytecode.tables.attribute(operation.location));
        let codes: Vec<_> = location.map(|entry| entry.code).collect();
        assert_eq!(codes, [b::LOC_FILE, b::LOC_FILE_RANGE, b::LOC_FUSED_METADATA].map(Code::Known));
        assert!(exact(&bytecode).contains("loc(\"test.mlir\":1:1)"));
    }
}

mod markers {
    use super::*;

    #[test]
    fn version_producer_and_the_order_of_uses_survive() {
        for_each_module(|name, _, bytecode| {
            if !name.starts_with("demo") && !name.starts_with("single") {
                return;
            }
            for version in [0, 1, 3, 4, 6] {
                let mut bytecode = bytecode.clone();
                bytecode.version = version;
                bytecode.producer = b"StableHLO_v0.14.0 \xff\"".to_vec().into();
                bytecode.tree.use_orders = vec![];
                let text = exact(&bytecode);
                let again = parsed(name, &text);
                assert_eq!((again.version, &again.producer), (version, &bytecode.producer));
                let bytes = written(name, &again);
                assert_eq!(exact(&Bytecode::read(&bytes, 0).unwrap()), text, "{name}, version {version}");
            }
        });
    }

    #[test]
    fn that_do_not_fit_are_refused() {
        let with = |attribute: &str| format!("module attributes {{jaxprism.{attribute}}} {{}}");
        for (attribute, expected) in [
            ("bytecode_version = 7", "bytecode version 7 is newer than 6"),
            ("bytecode_version = -1", "bytecode version -1 is newer than 6"),
            ("producer = \"a\\00b\"", "`jaxprism.producer` holds a zero byte"),
            ("use_orders = 5", "`jaxprism.use_orders` is no list of lists of numbers"),
            ("use_orders = [[]]", "`jaxprism.use_orders` is no list of lists of numbers"),
            ("use_orders = [[0, 1, 0]]", "`jaxprism.use_orders` does not fit the uses of the module's values"),
        ] {
            assert_eq!(refusal(&with(attribute)), expected);
        }
        for attribute in ["bytecode_version = \"6\"", "producer = 5"] {
            refusal(&with(attribute));
        }
    }

    #[test]
    fn use_orders_are_those_of_values() {
        let text = r##"module attributes {jaxprism.use_orders = [[0, 1, 2, 0]]} {
  func.func @main(%arg0: !vhlo.tensor_v1<!vhlo.f32_v1>) {
    "vhlo.add_v1"(%arg0, %arg0) : (!vhlo.tensor_v1<!vhlo.f32_v1>, !vhlo.tensor_v1<!vhlo.f32_v1>) -> ()
    "vhlo.return_v1"(%arg0) : (!vhlo.tensor_v1<!vhlo.f32_v1>) -> ()
  }
}"##;
        let bytecode = parsed("uses", text);
        assert_eq!(bytecode.tree.use_orders, [UseOrder { value: jaxprism::bytecode::ValueId(0), order: vec![1, 2, 0] }]);
        let bytes = written("uses", &bytecode);
        assert_eq!(Bytecode::read(&bytes, 0).unwrap().tree.use_orders, bytecode.tree.use_orders);
    }
}
