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
    assert!(count >= 25, "only {count} modules");
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
            assert!(count > 5_000, "only {count} entries");
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
            assert!(identical >= 25);
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
                    assert!(
                        said.contains("does not stand in a portable artifact") || said.contains("branches between blocks"),
                        "{name}: {said}"
                    );
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
            ("bytecode_version = 7", "`jaxprism.bytecode_version` is no number from 0 to 6"),
            ("bytecode_version = -1", "`jaxprism.bytecode_version` is no number from 0 to 6"),
            ("bytecode_version = \"6\"", "`jaxprism.bytecode_version` is no number from 0 to 6"),
            ("producer = \"a\\00b\"", "`jaxprism.producer` is no string without zero bytes"),
            ("producer = 5", "`jaxprism.producer` is no string without zero bytes"),
            ("use_orders = 5", "`jaxprism.use_orders` is no list of lists of numbers"),
            ("use_orders = [[]]", "`jaxprism.use_orders` is no list of lists of numbers"),
            ("use_orders = [[0, 1, 0]]", "`jaxprism.use_orders` does not fit the uses of the module's values"),
        ] {
            assert_eq!(refusal(&with(attribute)), expected);
        }
    }

    #[test]
    fn use_orders_are_those_of_values() {
        let text = r##"module attributes {jaxprism.use_orders = [[0, 1, 2, 0]]} {
  func.func @main(%arg0: !vhlo.tensor_v1<!vhlo.f32_v1>) {
    "vhlo.optimization_barrier_v1"(%arg0, %arg0) : (!vhlo.tensor_v1<!vhlo.f32_v1>, !vhlo.tensor_v1<!vhlo.f32_v1>) -> ()
    "vhlo.return_v1"(%arg0) : (!vhlo.tensor_v1<!vhlo.f32_v1>) -> ()
  }
}"##;
        let bytecode = parsed("uses", text);
        assert_eq!(bytecode.tree.use_orders, [UseOrder { value: jaxprism::bytecode::ValueId(0), order: vec![1, 2, 0] }]);
        let bytes = written("uses", &bytecode);
        assert_eq!(Bytecode::read(&bytes, 0).unwrap().tree.use_orders, bytecode.tree.use_orders);
    }
}

mod handwritten {
    use super::*;

    /// What comes of some text, as text.
    fn becomes(text: &str) -> String {
        let bytecode = parsed(text, text);
        let bytes = written(text, &bytecode);
        let mut options = TextOptions::exact();
        options.locations = false;
        text_of(&Bytecode::read(&bytes, 0).unwrap(), &options)
    }

    #[test]
    fn mlir_with_all_its_liberties() {
        let text = r##"
// A comment with [[[ and "quotes.
!f = !vhlo.tensor_v1<4x!vhlo.f32_v1>
#name = "x"
#list = [#name, {y = #name}] // and another
module @m {
  func.func @callee(%x: !f) -> !f {
    return %x : !f
  }
  func.func public @main(%a: !f, %b: !f {jax.arg = #vhlo.string_v1<"\22\\">}) -> (!f {jax.res = unit}) attributes {a.b = #list, a.c = [array<i32: 1, -2>, array<i1: true, false>, array<f32: 0x7FC00000, 0.1>, array<f64>]} {
    %pair:2 = "vhlo.optimization_barrier_v1"(%a, %b) : (!f, !f) -> (!f, !f)
    %c = "vhlo.constant_v1"() <{value = #vhlo.tensor_v1<dense<0x7FC00001> : tensor<4xf32>>}> {note = -5 : si8} : () -> !f
    %d = call @callee(%pair#1) : (!f) -> !f
    %e = "vhlo.add_v1"(%c, %d) : (!f, !f) -> !f
    "func.return"(%e) : (!f) -> ()
  }
}
"##;
        let expected = r##"module @m {
  func.func @callee(%arg0: !vhlo.tensor_v1<4x!vhlo.f32_v1>) -> (!vhlo.tensor_v1<4x!vhlo.f32_v1>) {
    func.return %arg0 : !vhlo.tensor_v1<4x!vhlo.f32_v1>
  }
  func.func public @main(%arg0: !vhlo.tensor_v1<4x!vhlo.f32_v1>, %arg1: !vhlo.tensor_v1<4x!vhlo.f32_v1> {jax.arg = #vhlo.string_v1<"\22\5C">}) -> (!vhlo.tensor_v1<4x!vhlo.f32_v1> {jax.res = unit}) attributes {a.b = ["x", {y = "x"}], a.c = [array<i32: 1, -2>, array<i1: true, false>, array<f32: 0x7FC00000, 0.1>, array<f64>]} {
    %0:2 = "vhlo.optimization_barrier_v1"(%arg0, %arg1) : (!vhlo.tensor_v1<4x!vhlo.f32_v1>, !vhlo.tensor_v1<4x!vhlo.f32_v1>) -> (!vhlo.tensor_v1<4x!vhlo.f32_v1>, !vhlo.tensor_v1<4x!vhlo.f32_v1>)
    %1 = "vhlo.constant_v1"() {note = -5 : si8, value = #vhlo.tensor_v1<dense<0x7FC00001> : tensor<4xf32>>} : () -> !vhlo.tensor_v1<4x!vhlo.f32_v1>
    %2 = func.call @callee(%0#1) : (!vhlo.tensor_v1<4x!vhlo.f32_v1>) -> !vhlo.tensor_v1<4x!vhlo.f32_v1>
    %3 = "vhlo.add_v1"(%1, %2) : (!vhlo.tensor_v1<4x!vhlo.f32_v1>, !vhlo.tensor_v1<4x!vhlo.f32_v1>) -> !vhlo.tensor_v1<4x!vhlo.f32_v1>
    func.return %3 : !vhlo.tensor_v1<4x!vhlo.f32_v1>
  }
}
"##;
        assert_eq!(becomes(text), expected);
    }

    #[test]
    fn names_in_quotes_and_names_used_again() {
        let text = r##"module {
  func.func private @"a b\C3"(%x: i32 {a.b}) -> i32
  "vhlo.x\22"() : () -> ()
}"##;
        assert!(refusal(text).starts_with("operation `vhlo.x\"` is not known, at test.mlir:3:3"));
        let text = text.replace("  \"vhlo.x\\22\"() : () -> ()\n", "");
        assert_eq!(becomes(&text), "module {\n  func.func private @\"a b\\C3\"(i32 {a.b = unit}) -> (i32)\n}\n");
        let text = r##"module {
  func.func @f(%x: i32) {
    "vhlo.case_v1"(%x) ({
      %0 = "vhlo.negate_v1"(%x) : (i32) -> i32
      "vhlo.return_v1"() : () -> ()
    }, {
      %0 = "vhlo.negate_v1"(%x) : (i32) -> i32
      "vhlo.return_v1"() : () -> ()
    }) : (i32) -> ()
    %0 = "vhlo.negate_v1"(%x) : (i32) -> i32
    return
  }
}
"##;
        let expected = text.replace("%x", "%arg0").replace("return\n  }", "func.return\n  }");
        assert_eq!(becomes(text), expected);
    }

    #[test]
    fn regions_of_every_shape() {
        for text in [
            "module {\n}\n",
            "module {\n  \"builtin.module\"() ({\n  ^bb0:\n  }) : () -> ()\n}\n",
            "module {\n  \"vhlo.while_v1\"() ({\n    \"vhlo.return_v1\"() : () -> ()\n  }, {\n  ^bb0(%arg0: i32, %arg1: () -> ()):\n    \"vhlo.return_v1\"() : () -> ()\n  ^bb1(%arg2: i32):\n    \"vhlo.return_v1\"() : () -> ()\n  ^bb2:\n    \"vhlo.optimization_barrier_v1\"(%arg1, %arg2) : (() -> (), i32) -> ()\n  }, {\n  }) : () -> ()\n}\n",
            "module {\n  \"vhlo.while_v1\"() ({\n    func.func @f(%arg0: i32) {\n      %0 = \"vhlo.optimization_barrier_v1\"(%arg0) : (i32) -> i32\n      func.return\n    }\n    %0 = \"vhlo.optimization_barrier_v1\"() : () -> i32\n  }) : () -> ()\n}\n",
        ] {
            assert_eq!(becomes(text), text);
        }
    }

    #[test]
    fn values_from_behind_are_seen_as_in_mlir() {
        // MLIR takes a region of an operation that it does not know for a graph.
        let text = r##"module {
  "vhlo.while_v1"() ({
    "vhlo.while_v1"() ({
      "vhlo.optimization_barrier_v1"(%early2#1, %early1, %early4) : (i32, i32, i64) -> ()
    }) : () -> ()
    %0 = "vhlo.optimization_barrier_v1"() : () -> i32
    %early1 = "vhlo.optimization_barrier_v1"(%0) : (i32) -> i32
    %early2:2 = "vhlo.optimization_barrier_v1"(%early4) : (i64) -> (i32, i32)
    %early4 = "vhlo.optimization_barrier_v1"() : () -> i64
    %1 = "vhlo.optimization_barrier_v1"(%early4) : (i64) -> i32
  }) : () -> ()
}
"##;
        assert_eq!(becomes(text), text);
        assert!(refusal("module { func.func @f() { \"vhlo.abs_v1\"(%0) : (i32) -> () return } }").contains("undeclared SSA value"));
    }

    #[test]
    fn every_wrong_turn_has_its_message() {
        let module = |inside: &str| format!("module {{\n{inside}\n}}");
        for (inside, expected) in [
            ("\"func.func\"() ({}) {sym_name = \"f\"} : () -> ()", "MLIR cannot read the text: "),
            ("\"func.func\"() ({}) {sym_name = \"f\", function_type = 5} : () -> ()", "MLIR cannot read the text: "),
            ("\"func.func\"() ({}) {sym_name = 5, function_type = () -> ()} : () -> ()", "MLIR cannot read the text: "),
            ("\"func.func\"() ({}) {sym_name = \"f\", function_type = () -> (), arg_attrs = 5} : () -> ()", "MLIR cannot read the text: "),
            (
                "\"func.func\"() ({}) {sym_name = \"f\", function_type = (i32) -> (), arg_attrs = [5]} : () -> ()",
                "MLIR cannot read the text: ",
            ),
            (
                "\"func.func\"() ({}) {sym_name = \"f\", function_type = (i32) -> (), arg_attrs = []} : () -> ()",
                "MLIR cannot read the text: ",
            ),
            ("\"func.func\"() ({}, {}) {sym_name = \"f\", function_type = () -> ()} : () -> ()", "MLIR cannot read the text: "),
            ("\"func.func\"() {sym_name = \"f\", function_type = () -> ()} : () -> ()", "MLIR cannot read the text: "),
            ("func.func @f(%x: i32) { return %x : i32 }", "MLIR cannot read the text: "),
            ("func.func @f() { }", "MLIR cannot read the text: "),
            ("func.func @f() { call @g() : () -> () return }", "MLIR cannot read the text: "),
            (
                "func.func @f() { %0 = func.constant @f : () -> () return }",
                "operation `func.constant` does not stand in a portable artifact",
            ),
            ("func.func @f() { \"vhlo.return_v1\"()[^a] : () -> () ^a: return }", "operation `vhlo.return_v1` branches between blocks"),
            ("\"vhlo.func_v1\"() : () -> ()", "operation `vhlo.func_v1` does not stand in a portable artifact, at test.mlir:2:1"),
            ("\"vhlo.nothing_v9\"() : () -> ()", "operation `vhlo.nothing_v9` is not known, at test.mlir:2:1"),
            ("\"stablehlo.add\"() : () -> ()", "operation `stablehlo.add` does not stand in a portable artifact"),
            ("\"add\"() : () -> ()", "operation `add` does not stand in a portable artifact"),
            ("\"vhlo.constant_v1\"() : () -> i32", "operation `vhlo.constant_v1` has no attribute `value`"),
            ("\"vhlo.constant_v1\"() {value = 5 : i32} : () -> i32", "the value of a `vhlo.constant_v1` is no tensor, at test.mlir:2:1"),
            ("\"vhlo.add_v1\"() <{x = 5}> : () -> ()", "`x` is no property of `vhlo.add_v1`, on line 2"),
            ("\"vhlo.call_v1\"() <{callee = unit}> {callee = unit} : () -> ()", "operation `vhlo.call_v1` has two attributes `callee`"),
            (
                "func.func @f(%a: i32 {jax.x = unit}) attributes {jaxprism.empty_arg_attrs = unit} { return }",
                "a function has both `jaxprism.empty_arg_attrs` and attributes of its own for them, at test.mlir:2:1",
            ),
            (
                "func.func @f(%a: i32) -> (i32 {jax.x = unit}) attributes {jaxprism.empty_res_attrs = unit} { return %a : i32 }",
                "a function has both `jaxprism.empty_res_attrs` and attributes of its own for them, at test.mlir:2:1",
            ),
            (
                "\"vhlo.add_v1\"() {x = dense<5> : tensor<i32>} : () -> ()",
                "an attribute is of a kind that portable artifacts do not hold in text",
            ),
            ("\"vhlo.add_v1\"() {x = array<ui8: 5>} : () -> ()", "an attribute is of a kind that portable artifacts do not hold in text"),
            (
                "\"vhlo.add_v1\"() {x = #vhlo.bool_v1<true> : i32} : () -> ()",
                "an attribute is of a kind that portable artifacts do not hold in text",
            ),
            ("\"vhlo.add_v1\"() : () -> memref<4xi32>", "a type is of a kind that portable artifacts do not hold in text"),
            (
                "\"vhlo.add_v1\"() {x = #foo.bar} : () -> ()",
                "cannot read the attribute `#foo.bar`: `foo.bar` has no entry in a portable artifact",
            ),
            ("\"vhlo.add_v1\"() : () -> !foo.bar", "cannot read the type `!foo.bar`: `foo.bar` has no entry in a portable artifact"),
        ] {
            let said = refusal(&module(inside));
            assert!(said.contains(expected), "{inside}: {said}");
        }
        for text in ["module", "module {", "}", "\"builtin.module\"() : () -> ()", "func.func @f() { return } func.func @f() { return }"] {
            refusal(text);
        }
        // A module around it goes without saying.
        assert_eq!(becomes("func.func @f() { return }"), becomes("module { func.func @f() { return } }"));
    }

    #[test]
    fn wrong_constants_and_attributes_have_their_messages() {
        for (attribute, expected) in [
            ("#vhlo.tensor_v1<dense<[1, 2]> : tensor<3xi32>>", "the elements make a shape [2], the type says [3]"),
            ("#vhlo.tensor_v1<dense<[[1], [2, 3]]> : tensor<2x1xi32>>", "rows of elements differ in length"),
            ("#vhlo.tensor_v1<dense<[1, [2]]> : tensor<2xi32>>", "rows of elements differ in length"),
            ("#vhlo.tensor_v1<dense<\"0x0102\"> : tensor<3xi32>>", "a constant of 3 elements has 2 bytes of data"),
            ("#vhlo.tensor_v1<dense<\"0x012\"> : tensor<i32>>", "expected hexadecimal digits, two for each byte, after `0x`"),
            ("#vhlo.tensor_v1<dense<\"0x01\", 5> : tensor<i8>>", "expected `>`, not `, 5>"),
            ("#vhlo.tensor_v1<dense<300> : tensor<i8>>", "`300` is no element of this type"),
            ("#vhlo.tensor_v1<dense<1.0> : tensor<i8>>", "`1.0` is no element of this type"),
            ("#vhlo.tensor_v1<dense<(1.0, 2.0)> : tensor<f32>>", "expected a word"),
            ("#vhlo.tensor_v1<dense<1.0> : tensor<complex<f32>>>", "expected `(`"),
            ("#vhlo.tensor_v1<dense<1> : tensor<?xi32>>", "a constant's type is no tensor of static shape"),
            (
                "#vhlo.tensor_v1<dense<1> : tensor<99999999999x99999999999xi32>>",
                "a constant's type is no tensor of static shape, or has too many elements",
            ),
            ("#vhlo.tensor_v1<dense<1> : tensor<99999999999999999999xi32>>", "the dimension 99999999999999999999 is too large"),
            ("#vhlo.tensor_v1<dense<1> : tensor<foo>>", "`foo` is no type of elements"),
            ("#vhlo.tensor_v1<dense<hash \"00\"> : tensor<2xi32>>", "a constant of which only the hash is there"),
            ("#vhlo.integer_v1<1 : i2>", "the fields are not those of integer_v1"),
            ("#vhlo.integer_v1<5 : f32>", "`f32` is no integer type"),
            ("#vhlo.integer_v1<256 : ui8>", "`256` is no `ui8`"),
            ("#vhlo.float_v1<0x7F800000 : !vhlo.f32_v1>", "`0x7F800000` is no `f32` in decimal"),
            ("#vhlo.float_v1<1.0 : !vhlo.f8E5M2_v1>", "the type of this float has none in decimal"),
            ("#vhlo<precision_v1 BEST>", "`precision_v1` is one of DEFAULT, HIGH, HIGHEST, not `BEST`"),
            ("#vhlo<foo_v1 BEST>", "`#vhlo<foo_v1 …>` is not known"),
            ("#jaxprism.entry<vhlo.string_v1>", "the fields are not those of string_v1"),
            ("#jaxprism.entry<vhlo.string_v1, string \"a\", absent>", "the fields are not those of string_v1"),
            ("#jaxprism.entry<vhlo.tensor_v1, type i32, blob \"0x00\">", "a constant's type is no tensor"),
            ("#jaxprism.entry<builtin opaque, blob \"0x00\">", "the fields are not those of an entry in text or of an unknown encoding"),
            ("#jaxprism.entry<nothing.x>", "`nothing.x` has no entry in a portable artifact"),
            ("#jaxprism.entry<vhlo.array_v1, count 4294967296>", "a count is too large"),
            ("#jaxprism.entry<vhlo.array_v1, count 2, attribute unit>", "the fields are not those of array_v1"),
            ("#jaxprism.entry<17>", "`17` has no entry in a portable artifact"),
            ("#sdy.sharding<@m, [{\"x\"}], foo={}>", "expected `replicated` or `unreduced`"),
        ] {
            let said = refusal(&format!("module attributes {{a.x = {attribute}}} {{}}"));
            assert!(said.contains("attribute `a.x`: cannot read the attribute `#") && said.contains(expected), "{attribute}: {said}");
        }
    }

    #[test]
    fn nesting_ends_somewhere() {
        on_a_large_stack(|| {
            let deep = |open: &str, inner: &str, close: &str, count: usize| {
                format!("module attributes {{a.x = {}{inner}{}}} {{}}", open.repeat(count), close.repeat(count))
            };
            let spellings = [
                ("[", "unit", "]"),
                ("{a = ", "unit", "}"),
                ("tuple<", "i32", ">"),
                ("(", "i32", ") -> ()"),
                ("tensor<1xi32, ", "unit", ">"),
                ("#vhlo.array_v1<[", "unit", "]>"),
                ("!vhlo.tensor_v1<1x", "!vhlo.f32_v1", ">"),
                ("#jaxprism.entry<vhlo.array_v1, count 1, attribute ", "unit", ">"),
            ];
            for (open, inner, close) in spellings {
                let brackets = open.matches(['(', '[', '{', '<']).count();
                let most = 2_000 / brackets;
                let text = deep(open, inner, close, most);
                let bytes = parse(&text, "").and_then(|bytecode| bytecode.write()).unwrap_or_else(|error| panic!("{open}: {error:?}"));
                exact(&Bytecode::read(&bytes.to_vec(), 0).unwrap());
                assert!(refusal(&deep(open, inner, close, 100_000)).contains("nest deeper than"), "{open}");
            }
            let places = |count: usize| format!("module {{}} loc({}unknown{})", "\"a\"(".repeat(count), ")".repeat(count));
            written("places", &parsed("places", &places(2_000)));
            assert!(refusal(&places(100_000)).contains("nest deeper than"));
            let chain = |count: usize, of: &str| {
                (1..count).map(|at| format!("#a{at} = {}\n", of.replace('#', &format!("#a{}", at - 1)))).collect::<String>()
            };
            for of in ["[#]", "{a = #}", "tensor<1xi32, #>", "loc(callsite(# at unknown))", "loc(\"a\"(#))"] {
                let start = if of.starts_with("loc") { "loc(\"f\":1:2)" } else { "unit" };
                let text = |count: usize| {
                    format!("#a0 = {start}\n{}module attributes {{a.x = #a{}}} {{}} loc(\"x\")", chain(count, of), count - 1)
                };
                let bytes = written(of, &parsed(of, &text(2_000)));
                exact(&Bytecode::read(&bytes, 0).unwrap());
                assert!(refusal(&text(5_000)).contains("nest deeper than"), "{of}");
            }
            let regions =
                |count: usize| format!("module {{ {}{} }}", "\"vhlo.while_v1\"() ({ ".repeat(count), "}) : () -> ()".repeat(count));
            let bytes = written("regions", &parsed("regions", &regions(500)));
            assert!(exact(&Bytecode::read(&bytes, 0).unwrap()).contains("while"));
            assert!(refusal(&regions(600)).starts_with("regions nest deeper than 512, at test.mlir:1:"));
        });
    }

    #[test]
    fn small_text_stands_for_little() {
        let double = |count: usize| (1..count).map(|at| format!("#a{at} = [#a{0}, #a{0}]\n", at - 1)).collect::<String>();
        let said = refusal(&format!("#a0 = unit\n{}module attributes {{x = #a63}} {{}}", double(64)));
        assert!(said.contains("their text would not end"), "{said}");
        assert!(refusal(&format!("module attributes {{x = {} : i16000000}} {{}}", "7".repeat(1_000_000))).contains("digits"));
        assert!(refusal(&format!("module attributes {{x = affine_map<(d0) -> ({}d0)>}} {{}}", "-".repeat(1_000_000))).contains("affine"));
    }
}

mod crafted {
    use super::*;
    use common::Random;
    use jaxprism::bytecode::{DialectId, Kind, entry_row};

    /// Strings that are spelled in some special way, or look like something else.
    const STRINGS: [&[u8]; 18] = [
        b"",
        b"x",
        b"\"",
        b"\\",
        b"\\\"",
        b"a b",
        b"i32",
        b"si8",
        b"unit",
        b"true",
        b"a.b$c",
        b"-x",
        b"\n\t\0",
        b"\xff\xfe",
        "é".as_bytes(),
        b"loc(",
        b"//",
        b">]})",
    ];

    /// Makes entries of every row of the tables, with whatever values their fields may hold.
    struct Maker<'r> {
        bytecode: Bytecode<'static>,
        random: &'r mut Random,
    }

    impl Maker<'_> {
        fn attribute(&mut self) -> AttributeId {
            AttributeId(self.random.below(self.bytecode.tables.attribute_count()) as u32)
        }

        fn r#type(&mut self) -> TypeId {
            TypeId(self.random.below(self.bytecode.tables.type_count()) as u32)
        }

        fn number(&mut self) -> u64 {
            match self.random.below(6) {
                0 => self.random.below(4) as u64,
                1 => u64::MAX - self.random.below(3) as u64,
                2 => 1 << 63,
                3 => 1 << self.random.below(64),
                4 => u64::from(u32::MAX) + self.random.below(2) as u64,
                _ => self.random.next() << 11,
            }
        }

        fn string(&mut self) -> Bytes<'static> {
            Bytes(STRINGS[self.random.below(STRINGS.len())].into())
        }

        fn bytes(&mut self, count: usize) -> Vec<u8> {
            let fill = self.random.one_in(3).then(|| [0, 1, 0x7f, 0x80, 0xff][self.random.below(5)]);
            (0..count).map(|_| fill.unwrap_or_else(|| self.random.next() as u8)).collect()
        }

        /// The fields of one kind. Some will not do, which is for the table to say.
        fn field(&mut self, kind: Kind, fields: &mut Vec<Field<'static>>) {
            let count = if self.random.one_in(50) { 70 } else { self.random.below(4) };
            let mut list = |this: &mut Self, item: fn(&mut Self) -> Field<'static>, each: usize| {
                fields.push(Field::Count(count as u32));
                (0..count * each).for_each(|_| fields.push(item(this)));
            };
            match kind {
                Kind::Attributes => return list(self, |this| Field::Attribute(this.attribute()), 1),
                Kind::AttributePairs => return list(self, |this| Field::Attribute(this.attribute()), 2),
                Kind::Types => return list(self, |this| Field::Type(this.r#type()), 1),
                Kind::UnsignedList | Kind::DoubleList => return list(self, |this| Field::Unsigned(this.number()), 1),
                Kind::ByteList => return list(self, |this| Field::Unsigned(this.number() & 255), 1),
                Kind::SignedList => return list(self, |this| Field::Signed(this.number() as i64 >> this.random.below(64)), 1),
                Kind::ElementStrings => return list(self, |this| Field::String(this.string()), 1),
                _ => {}
            }
            fields.push(match kind {
                Kind::Attribute => Field::Attribute(self.attribute()),
                Kind::Type => Field::Type(self.r#type()),
                Kind::OptionalAttribute | Kind::PresentAttribute if self.random.one_in(2) => Field::Attribute(self.attribute()),
                Kind::OptionalUnsigned if self.random.one_in(2) => Field::Unsigned(self.number()),
                Kind::OptionalAttribute | Kind::PresentAttribute | Kind::OptionalUnsigned => Field::Absent,
                Kind::Byte => Field::Unsigned(self.number() & 255),
                Kind::Signed => Field::Signed(self.number() as i64),
                Kind::String => Field::String(self.string()),
                Kind::Rest => {
                    let bytes = self.bytes(count);
                    Field::Blob(Bytes(bytes.into()))
                }
                Kind::Blob => {
                    let count = [1, 2, 4, 8, 16, 100, 101][self.random.below(7)];
                    let bytes = self.bytes(count);
                    Field::Blob(Bytes(bytes.into()))
                }
                _ => Field::Unsigned(self.number()),
            });
        }

        /// Adds an entry of a row, and says where it stands. `None`: the format forbids what was made.
        fn entry(&mut self, of: DialectId, is_type: bool, code: u8) -> Option<usize> {
            let mut fields = Vec::new();
            for kind in entry_row(of, is_type, code)?.fields {
                self.field(*kind, &mut fields);
            }
            let mut entry = Entry::new(of, code, fields);
            if (of, is_type, code) == (dialect::BUILTIN, false, b::DISTINCT) {
                entry.identity = self.random.below(3) as u32;
            }
            self.add(entry, is_type)
        }

        fn add(&mut self, entry: Entry<'static>, is_type: bool) -> Option<usize> {
            self.bytecode.tables.check(&entry, is_type).ok()?;
            let tables = &mut self.bytecode.tables;
            Some(if is_type { tables.intern_type(entry).index() } else { tables.intern_attribute(entry).index() })
        }

        /// An array of builtin numbers.
        fn array(&mut self) -> Option<usize> {
            let packed = ([1, 8, 16, 32, 64, 24][self.random.below(6)] << 2) | (self.random.below(5) as u64 / 4);
            let of = match self.random.below(3) {
                0 => Entry::new(dialect::BUILTIN, [b::F32_TYPE, b::F64_TYPE, b::BF16_TYPE][self.random.below(3)], []),
                _ => Entry::new(dialect::BUILTIN, b::INTEGER_TYPE, [Field::Unsigned(packed)]),
            };
            let of = TypeId(self.add(of, true)? as u32);
            let count = self.random.below(4);
            let length = [1, 2, 4, 8][self.random.below(4)] * count;
            let bytes = Field::Blob(Bytes(self.bytes(length).into()));
            self.add(Entry::new(dialect::BUILTIN, b::DENSE_ARRAY, [Field::Type(of), Field::Unsigned(count as u64), bytes]), false)
        }

        /// A constant of any element type, with its elements each on its own, one for all, or all alike.
        fn constant(&mut self, element: u8) -> Option<usize> {
            let element = Entry::new(dialect::VHLO, element, []);
            let mut of = TypeId(self.add(element, true)? as u32);
            if self.random.one_in(4) {
                of = TypeId(self.add(Entry::new(dialect::VHLO, code::vhlo::COMPLEX_TYPE, [Field::Type(of)]), true)? as u32);
            }
            let shape: &[i64] =
                [&[][..], &[1], &[2], &[0], &[8], &[9], &[2, 3], &[1, 1, 1], &[2, 0, 3], &[100], &[101], &[4, 26], &[1; 70]]
                    [self.random.below(13)];
            let mut fields = vec![Field::Count(shape.len() as u32)];
            fields.extend(shape.iter().map(|dimension| Field::Signed(*dimension)));
            fields.push(Field::Type(of));
            let of = TypeId(self.add(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, fields), true)? as u32);
            let count = shape.iter().product::<i64>() as usize;
            let each = [1, 2, 4, 8, 16][self.random.below(5)];
            let length = [each, each * count, count.div_ceil(8), count][self.random.below(4)];
            let mut bytes = self.bytes(length);
            if self.random.one_in(4) {
                // Values as people write them.
                let one: Vec<u8> = [1.5f32.to_le_bytes(), (-0.0f32).to_le_bytes(), f32::MIN_POSITIVE.to_le_bytes(), [1, 0, 0, 0]]
                    [self.random.below(4)]
                .to_vec();
                bytes.iter_mut().zip(one.iter().cycle()).for_each(|(byte, one)| *byte = *one);
            }
            let entry = Entry::new(dialect::VHLO, code::vhlo::TENSOR, [Field::Type(of), Field::Blob(Bytes(bytes.into()))]);
            self.add(entry, false)
        }
    }

    #[test]
    fn every_entry_that_the_tables_know_is_read_back_as_itself() {
        let mut random = Random::new(7);
        let mut made = std::collections::BTreeMap::<(u32, bool, u8), usize>::new();
        let mut constants = std::collections::BTreeMap::<u8, usize>::new();
        on_a_large_stack(|| {
            for round in 0..40 {
                let mut maker = Maker { bytecode: parsed("", "module attributes {a.a = i32} {}"), random: &mut random };
                for _ in 0..4 {
                    for of in [dialect::BUILTIN, dialect::VHLO, dialect::SDY, dialect::STABLEHLO, dialect::CHLO] {
                        for (is_type, code) in [true, false].into_iter().flat_map(|is_type| (0..=u8::MAX).map(move |code| (is_type, code)))
                        {
                            if let Some(id) = maker.entry(of, is_type, code) {
                                *made.entry((of.0, is_type, code)).or_default() += 1;
                                check(&format!("round {round}"), &mut maker.bytecode, is_type, id);
                            }
                        }
                    }
                    for _ in 0..50 {
                        if let Some(id) = maker.array() {
                            check("array", &mut maker.bytecode, false, id);
                        }
                    }
                    for element in 0..=u8::MAX {
                        if let Some(id) = maker.constant(element) {
                            *constants.entry(element).or_default() += 1;
                            check(&format!("round {round}"), &mut maker.bytecode, false, id);
                        }
                    }
                    for is_type in [false, true] {
                        let text = Entry {
                            dialect: dialect::BUILTIN,
                            code: Code::Text,
                            identity: 0,
                            fields: [Field::String(maker.string())].into(),
                        };
                        let opaque =
                            Entry { dialect: dialect::SDY, code: Code::Opaque, identity: 0, fields: [Field::Blob(maker.string())].into() };
                        for entry in [text, opaque] {
                            if let Some(id) = maker.add(entry, is_type) {
                                check("text and opaque", &mut maker.bytecode, is_type, id);
                            }
                        }
                    }
                }
            }
        });
        let rows = [dialect::BUILTIN, dialect::VHLO, dialect::SDY, dialect::STABLEHLO, dialect::CHLO];
        let rows = rows.into_iter().flat_map(|of| [false, true].map(|is_type| (of, is_type)));
        for (of, is_type, code) in rows.flat_map(|(of, is_type)| (0..=u8::MAX).map(move |code| (of, is_type, code))) {
            if let Some(row) = entry_row(of, is_type, code) {
                let count = made.get(&(of.0, is_type, code)).copied().unwrap_or_default();
                let is_rare = (of, is_type) == (dialect::BUILTIN, false) && matches!(code, 19)
                    || code == code::vhlo::TENSOR && of == dialect::VHLO && !is_type;
                assert!(count >= if is_rare { 0 } else { 3 }, "{count} entries of {}", row.name);
            }
        }
        assert!(constants.len() >= 29, "constants of {} element types", constants.len());
    }

    fn check(name: &str, bytecode: &mut Bytecode<'static>, is_type: bool, id: usize) {
        if is_type { check_type(name, bytecode, TypeId(id as u32)) } else { check_attribute(name, bytecode, AttributeId(id as u32)) }
    }

    #[test]
    fn modules_with_any_attribute_survive() {
        let mut random = Random::new(8);
        on_a_large_stack(|| {
            for round in 0..30 {
                let mut maker = Maker { bytecode: parsed("", "module attributes {a.a = i32} {}"), random: &mut random };
                for _ in 0..400 {
                    let of = [dialect::BUILTIN, dialect::VHLO, dialect::SDY][maker.random.below(3)];
                    let (is_type, code) = (maker.random.one_in(2), maker.random.below(45) as u8);
                    // Resources stand beside the module, and text of a dialect is for who knows it.
                    if (of, is_type, code) != (dialect::BUILTIN, false, 16) {
                        maker.entry(of, is_type, code);
                    }
                    maker.array();
                    let element = maker.random.below(48) as u8;
                    maker.constant(element);
                }
                let like = maker.bytecode.clone();
                let mut builder = Builder::new(&like);
                let mut operations = Vec::new();
                for at in 0..20 {
                    let (attribute, of) = (maker.attribute(), maker.r#type());
                    let key = builder.name(["a", "i32", "b c", "\u{e9}", "jax.x"][at % 5]);
                    let fields = vec![Field::Count(1), Field::Attribute(key), Field::Attribute(attribute)];
                    let dictionary = builder.builtin(b::DICTIONARY, fields);
                    let mut op = builder.op("abs_v1", &[], &[(at as u32, of)]);
                    op.attributes = Some(dictionary);
                    operations.push(op);
                }
                operations.push(builder.op("return_v1", &[], &[]));
                let location = maker.attribute();
                builder.locate(location);
                let main = builder.function("main", &[], &[], operations);
                let bytes = builder.module(vec![main]);
                let Ok(bytecode) = Bytecode::read(&bytes, 0) else { continue };
                let text = exact(&bytecode);
                let again = written(&text, &parsed(&text, &text));
                assert!(again == bytes, "round {round}:\n{text}");
            }
        });
    }
}

mod hostile {
    use super::*;
    use common::Random;
    use jaxprism::ir::{Session, import, verify};
    use std::time::Instant;

    /// Pieces of MLIR that mean something anywhere.
    const PIECES: [&str; 40] = [
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "(",
        ")",
        "\"",
        "\\",
        "//",
        "#",
        "!",
        "@",
        "%",
        "^",
        "->",
        ":",
        "=",
        ",",
        "?",
        "-",
        "0x",
        "99999999999999999999",
        "loc(",
        "loc(unknown)",
        "unit",
        "i32",
        "() -> ()",
        "%0",
        "%arg0",
        "^bb1",
        "[^bb0]",
        "<{value = unit}>",
        "#loc0",
        "\"vhlo.return_v1\"() : () -> ()",
        "func.func @f() { return }",
        "({}, {})",
        "#jaxprism.entry<vhlo.string_v1, string \"\">",
        "é",
    ];

    fn seeds() -> Vec<String> {
        let mut seeds = [
                "#a = [1, \"x\"]\n!t = tensor<4xf32>\nmodule attributes {a.b = #a, a.c = !t} { \"sdy.mesh\"() {mesh = #sdy.mesh<[\"x\"=2, \"y\"=4], device_ids=[1]>, sym_name = \"m\"} : () -> () }",
                "module attributes {jaxprism.use_orders = [[0, 2, 0, 1]], jaxprism.producer = \"p\", jaxprism.bytecode_version = 3} { func.func @f(%a: i32 {a.b = 1}) -> (i32 {a.c = 2.0 : f32}) { \"vhlo.optimization_barrier_v1\"(%a, %a) : (i32, i32) -> () return %a : i32 } }",
                "module { %c = \"vhlo.constant_v1\"() <{value = #vhlo.tensor_v1<dense<[[1, 2], [-3, 4]]> : tensor<2x2xi8>>}> : () -> !vhlo.tensor_v1<2x2x!vhlo.i8_v1> }",
                "module attributes {a.a = #vhlo.result_accuracy_v1<atol = 0.0, rtol = 1.0e-3, ulps = 0, mode = #vhlo<result_accuracy_mode_v1 DEFAULT>>, a.b = #sdy.sharding<@m, [{\"x\":(1)2, ?}p1, {}], replicated={\"y\"}, unreduced={\"z\"}>, a.c = #jaxprism.entry<builtin.distinct identity 2, attribute unit>, a.d = #vhlo.output_operand_alias_v1<outputTupleIndices = [1, ?], operandIndex = 0, operandTupleIndices = []>} {} loc(fused<\"m\">[\"f\":1:2 to 3:4, callsite(\"g\" at unknown)])",
                "module { func.func @f(%a: i32) { %0:2 = \"vhlo.while_v1\"(%a, %a) ({ ^bb0(%x: i32, %y: i32): \"vhlo.return_v1\"(%x) : (i32) -> () }, { ^bb0(%x: i32, %y: i32): \"vhlo.return_v1\"(%y, %x) : (i32, i32) -> () }) : (i32, i32) -> (i32, i32) call @f(%0#1) : (i32) -> () return } }",
            "module @n { func.func public @main(%a: !vhlo.tensor_v1<4x?x!vhlo.f32_v1, #vhlo.type_extensions_v1<bounds = [?, 5]>> {jax.x = #vhlo.string_v1<\"\\C3\\A9\">} loc(\"a\"), %t: !vhlo.token_v1) -> (!vhlo.tuple_v1<!vhlo.i4_v1, tuple<i1, index>> {a.x = unit}, i32) attributes {a.b = @f::@\"g h\", a.c = [true, -5 : si8, 7 : ui64, 0x7FC00001 : f32, 1.5 : bf16, () -> (i32)]} { %0:2 = \"vhlo.custom_call_v1\"(%a) {api_version = #vhlo<api_version_v1 API_VERSION_TYPED_FFI>, backend_config = #vhlo.dict_v1<{#vhlo.string_v1<\"k\"> = #vhlo.integer_v1<3 : i32>}>, call_target_name = #vhlo.string_v1<\"t\">, called_computations = #vhlo.array_v1<[]>, has_side_effect = #vhlo.bool_v1<true>, operand_layouts = #vhlo.array_v1<[#vhlo.tensor_v1<dense<[1, 0]> : tensor<2xindex>>]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[#vhlo.tensor_v1<dense<> : tensor<0xindex>>]>} : (!vhlo.tensor_v1<4x?x!vhlo.f32_v1, #vhlo.type_extensions_v1<bounds = [?, 5]>>) -> (!vhlo.tuple_v1<!vhlo.i4_v1, tuple<i1, index>>, i32) return %0#0, %0#1 : !vhlo.tuple_v1<!vhlo.i4_v1, tuple<i1, index>>, i32 } }",
        ]
        .map(str::to_owned)
        .to_vec();
        for sample in shipped().iter().filter(|sample| sample.bytes.len() < 12_000) {
            for (_, bytes, _) in sample.modules() {
                let bytecode = Bytecode::read(bytes, 0).unwrap();
                seeds.extend([exact(&bytecode), text_of(&bytecode, &TextOptions::default())]);
            }
        }
        seeds
    }

    fn mutant(seeds: &[String], random: &mut Random) -> String {
        // Mostly small ones, in which one edit hits something that matters.
        let small = seeds.iter().filter(|seed| seed.len() < 2_000).count();
        let among = if random.one_in(20) { seeds.len() } else { small };
        let mut text = seeds[random.below(among)].clone().into_bytes();
        for _ in 0..1 + random.below(5) / 3 {
            let place = random.below(text.len().max(1)).min(text.len());
            let other = seeds[random.below(seeds.len())].as_bytes();
            match random.below(8) {
                0 => text.truncate(place),
                1 if place < text.len() => text[place] = b" !\"#$%&'()*+,-./019:;<=>?@AZ[\\]^_`az{|}~"[random.below(40)],
                2 if place < text.len() => _ = text.remove(place),
                3 => {
                    let piece = PIECES[random.below(PIECES.len())].bytes();
                    text.splice(place..place, piece);
                }
                4 => {
                    // A word by another word.
                    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.".contains(byte);
                    let start = text[..place].iter().rposition(|byte| !is_word(byte)).map_or(0, |at| at + 1);
                    let end = place + text[place..].iter().take_while(|byte| is_word(byte)).count();
                    let words: Vec<&[u8]> = other.split(|byte| !is_word(byte)).filter(|word| !word.is_empty()).collect();
                    text.splice(start..end, words[random.below(words.len())].iter().copied());
                }
                5 => {
                    let end = (place + random.below(40)).min(text.len());
                    let piece = text[place..end].to_vec();
                    let target = random.below(text.len().max(1)).min(text.len());
                    text.splice(target..target, piece);
                }
                6 => {
                    let start = random.below(other.len());
                    let piece = other[start..(start + random.below(60)).min(other.len())].to_vec();
                    text.splice(place..place, piece);
                }
                _ => {
                    let end = (place + random.below(30)).min(text.len());
                    text.drain(place..end);
                }
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Reads one text. What is accepted must be writable and readable, or be refused for a reason.
    fn try_text(text: &str) -> bool {
        let bytecode = match parse(text, "t.mlir") {
            Ok(bytecode) => bytecode,
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Bug, "{error:?}\n{text}");
                return false;
            }
        };
        match bytecode.write() {
            Ok(bytes) => {
                let bytes = bytes.to_vec();
                let read = Bytecode::read(&bytes, 0).unwrap_or_else(|error| panic!("what was written cannot be read: {error:?}\n{text}"));
                assert!(read.write().unwrap().to_vec() == bytes, "{text}");
                let session = Session::new(&read);
                let is_sound = import(&session, &read).is_ok_and(|program| verify(&program).is_ok());
                let Some(shown) = is_sound.then(|| exact(&read)) else { return true };
                let again =
                    parse(&shown, "t.mlir").unwrap_or_else(|error| panic!("what was shown cannot be read: {error:?}\n{text}\n{shown}"));
                assert!(again.write().unwrap().to_vec() == bytes, "{text}\n{shown}");
                true
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported), "{error:?}\n{text}");
                false
            }
        }
    }

    /// `JAXPRISM_TEXT_MUTANTS` asks for more of them than a few seconds take, and `JAXPRISM_LAST_MUTANT` names a file for the one under way.
    #[test]
    fn damaged_text_is_read_or_refused() {
        let count = std::env::var("JAXPRISM_TEXT_MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(if cfg!(debug_assertions) {
            3_000
        } else {
            30_000
        });
        let seeds = seeds();
        seeds.iter().for_each(|seed| drop(parsed(seed, seed)));
        let mut accepted = 0;
        for batch in 0..count / 1_000 {
            accepted += on_a_large_stack(|| {
                let mut random = Random::new(batch);
                let mut accepted = 0;
                for _ in 0..1_000 {
                    let text = mutant(&seeds, &mut random);
                    if let Some(path) = std::env::var_os("JAXPRISM_LAST_MUTANT") {
                        std::fs::write(path, &text).unwrap();
                    }
                    let start = Instant::now();
                    accepted += usize::from(try_text(&text));
                    assert!(start.elapsed().as_secs() < 5, "{text}");
                }
                accepted
            });
        }
        eprintln!("{accepted} of {count} damaged texts were accepted");
        assert!(accepted > count as usize / 50);
    }
}

mod shown_in_spite_of_everything {
    use super::*;
    use jaxprism::ir::{Session, import};

    #[test]
    fn operations_that_are_not_known_and_branches_between_blocks() {
        let shipped = shipped();
        let (_, module, _) = shipped[0].modules().remove(0);
        let mut builder = Builder::new(&Bytecode::read(module, 0).unwrap());
        let of = builder.f32();
        let operations = vec![builder.op("foo_v9", &[0], &[(1, of), (2, of)]), builder.op("return_v1", &[2], &[])];
        let main = builder.function("main", &[(0, of)], &[of], operations);
        let bytes = builder.module(vec![main]);
        let mut bytecode = Bytecode::read(&bytes, 0).unwrap();
        assert!(import(&Session::new(&bytecode), &bytecode).is_err());
        let text = text_of(&bytecode, &TextOptions::default());
        assert!(
            text.contains("    %0:2 = \"vhlo.foo_v9\"(%arg0) : (!vhlo.tensor_v1<!vhlo.f32_v1>) -> (!vhlo.tensor_v1<!vhlo.f32_v1>, "),
            "{text}"
        );
        assert!(text.contains("    func.return %0#1 : "), "{text}");
        assert!(refusal(&text).starts_with("operation `vhlo.foo_v9` is not known, at test.mlir:3:"));
        // The second operation of the function branches to its own block.
        bytecode.tree.successors.push(0);
        bytecode.tree.operations[2].successors = jaxprism::bytecode::Span::new(0, 1);
        assert!(text_of(&bytecode, &TextOptions::default()).contains("\"vhlo.foo_v9\"(%arg0)[^bb0] : "));
    }

    #[test]
    fn encodings_that_are_not_known() {
        let mut bytecode = parsed("", "module { func.func @main() attributes {sdy.x = 5} { return } }");
        let opaque = Entry {
            dialect: dialect::SDY,
            code: Code::Opaque,
            identity: 0,
            fields: [Field::Blob(Bytes((&[1, 2, 255][..]).into()))].into(),
        };
        let id = bytecode.tables.intern_attribute(opaque);
        bytecode.tree.operations[0].location = id;
        bytecode.unreadable = Some("an attribute of dialect `sdy` in an encoding that is not known here".to_owned());
        let text = exact(&bytecode);
        let head = "// Not all of the module can be read: it holds an attribute of dialect `sdy` in an encoding that is not known here\nmodule {\n";
        assert!(text.starts_with(head) && text.contains("loc(fused<#jaxprism.entry<sdy opaque, blob \"0x0102FF\">>[unknown])"), "{text}");
    }
}

mod canonical {
    use super::*;

    fn canonical(name: &str, bytecode: &Bytecode<'_>) -> String {
        let mut options = TextOptions::default();
        (options.canonical, options.constants) = (true, Constants::Hashed(16));
        let mut text = Vec::new();
        write_text(bytecode, &options, &mut text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        String::from_utf8(text).unwrap()
    }

    fn assert_same(name: &str, found: &str, expected: &str) {
        let differing = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
        assert!(found == expected, "{name}: {differing:#?}");
    }

    fn of_text(text: &str) -> String {
        canonical(text, &parsed(text, text))
    }

    /// Gives every private function and mesh of a module's text another name: `old` becomes `zz_old`.
    fn renamed(text: &str) -> String {
        let names = text.split("func.func private @").skip(1).map(|rest| rest.split('(').next().unwrap());
        let meshes = text.split("sym_name = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let names: std::collections::BTreeSet<_> = names.chain(meshes).map(str::to_owned).collect();
        let mut text = text.to_owned();
        for name in names {
            let plain = name.trim_matches('"');
            for (before, after) in [("@", "("), ("@", ","), ("@", ">"), ("@", "]"), ("\"", "\"")] {
                text = text.replace(&format!("{before}{plain}{after}"), &format!("{before}zz_{plain}{after}"));
            }
        }
        // The name of a composite is no symbol.
        text.replace(" name = #vhlo.string_v1<\"zz_", " name = #vhlo.string_v1<\"")
    }

    #[test]
    fn renaming_moving_and_other_places_change_nothing() {
        on_a_large_stack(|| {
            let (mut moved, mut other_names) = (0, 0);
            for_each_module(|name, _, bytecode| {
                if !is_portable(bytecode) || name.contains("backcompat") {
                    return;
                }
                let expected = canonical(name, bytecode);
                let mut options = TextOptions::exact();
                options.locations = false;
                let text = text_of(bytecode, &options);
                // Other places: those of the text.
                assert_same(name, &canonical(name, &parsed(name, &text)), &expected);
                let other = renamed(&text);
                other_names += usize::from(other != text);
                assert_same(name, &canonical(name, &parsed(name, &other)), &expected);
                // The last function first.
                let start = text.find("\n  func.func ").map(|at| at + 1);
                let last = text.rfind("\n  func.func ").map(|at| at + 1);
                if let (Some(start), Some(last)) = (start, last)
                    && let Some(end) = text[last..].find("\n  }\n").map(|at| last + at + 5)
                    && start < last
                {
                    let other = [&text[..start], &text[last..end], &text[start..last], &text[end..]].concat();
                    assert_same(name, &canonical(name, &parsed(name, &other)), &expected);
                    moved += 1;
                }
            });
            assert!(moved > 10 && other_names > 10, "{moved} {other_names}");
        });
    }

    #[test]
    fn other_bytes_of_a_large_constant_change_its_line_alone() {
        let sample = shipped().into_iter().find(|sample| sample.name.starts_with("demo.jax-0.12")).unwrap();
        let (_, bytes, _) = sample.modules().remove(0);
        let bytecode = Bytecode::read(bytes, 0).unwrap();
        let text = exact(&bytecode);
        let at = text.find("dense<\"0x").unwrap() + 20;
        let mut other = text.clone();
        let digit = if other.as_bytes()[at] == b'0' { "1" } else { "0" };
        other.replace_range(at..=at, digit);
        let (before, after) = (canonical("", &bytecode), of_text(&other));
        let differing: Vec<_> = before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
        let [(before, after)] = differing[..] else { panic!("{differing:?}") };
        assert!(before.contains("dense<hash \"") && after.contains("dense<hash \""), "{before}\n{after}");
        assert!(
            refusal(&before.replace("    %", "%")).contains("MLIR cannot read the text: ") || refusal(before).contains("only the hash")
        );
    }

    #[test]
    fn different_programs_differ() {
        let program = |inside: &str| {
            of_text(&format!(
                "module {{ func.func public @main(%a: !vhlo.f32_v1) {{ {inside} return }} func.func private @f(%a: !vhlo.f32_v1) {{ return }} func.func private @g(%a: !vhlo.f32_v1) {{ \"vhlo.optimization_barrier_v1\"(%a) : (!vhlo.f32_v1) -> () return }} }}"
            ))
        };
        let constant = |value: &str| {
            format!("%c = \"vhlo.constant_v1\"() {{value = #vhlo.tensor_v1<dense<{value}> : tensor<f32>>}} : () -> !vhlo.f32_v1")
        };
        let texts = [
            program(""),
            program("call @f(%a) : (!vhlo.f32_v1) -> ()"),
            program("call @g(%a) : (!vhlo.f32_v1) -> ()"),
            program("\"vhlo.optimization_barrier_v1\"(%a) : (!vhlo.f32_v1) -> ()"),
            program("\"vhlo.optimization_barrier_v1\"(%a, %a) : (!vhlo.f32_v1, !vhlo.f32_v1) -> ()"),
            program(&constant("1.0")),
            program(&constant("1.0000001")),
            program(&constant("0.0")),
            program(&constant("-0.0")),
        ];
        let different: std::collections::HashSet<_> = texts.iter().collect();
        assert_eq!(different.len(), texts.len());
    }

    #[test]
    fn names_go_by_their_first_use_and_public_ones_stay() {
        let text = r##"module @anything {
  "sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "unused"} : () -> ()
  func.func private @alone() { return }
  func.func public @function_0() { return }
  func.func private @b() { call @"c d"() : () -> () return }
  func.func private @"c d"() attributes {a.mesh = #sdy.sharding<@m, []>} { return }
  "sdy.mesh"() {mesh = #sdy.mesh<["y"=2]>, sym_name = "m"} : () -> ()
  func.func public @a() {
    %0 = "vhlo.while_v1"() ({
      "vhlo.call_v1"() {callee = #vhlo.string_v1<"b">} : () -> ()
      %1 = "vhlo.optimization_barrier_v1"() : () -> i32
      "vhlo.return_v1"() : () -> ()
    }) : () -> i32
    "vhlo.custom_call_v1"(%0) {api_version = unit, backend_config = unit, call_target_name = unit, called_computations = #vhlo.array_v1<[#vhlo.string_v1<"c d">, #vhlo.string_v1<"function_0">]>, has_side_effect = unit, operand_layouts = unit, output_operand_aliases = unit, result_layouts = unit} : (i32) -> ()
    return
  }
}
"##;
        let expected = r##"module {
  func.func public @a() {
    %0 = "vhlo.while_v1"() ({
      "vhlo.call_v1"() {callee = #vhlo.string_v1<"function_1">} : () -> ()
      %1 = "vhlo.optimization_barrier_v1"() : () -> i32
      "vhlo.return_v1"() : () -> ()
    }) : () -> i32
    "vhlo.custom_call_v1"(%0) {api_version = unit, backend_config = unit, call_target_name = unit, called_computations = #vhlo.array_v1<[#vhlo.string_v1<"function_2">, #vhlo.string_v1<"function_0">]>, has_side_effect = unit, operand_layouts = unit, output_operand_aliases = unit, result_layouts = unit} : (i32) -> ()
    func.return
  }
  func.func private @function_1() {
    func.call @function_2() : () -> ()
    func.return
  }
  func.func private @function_2() attributes {a.mesh = #sdy.sharding<@mesh_0, []>} {
    func.return
  }
  "sdy.mesh"() {mesh = #sdy.mesh<["y"=2]>, sym_name = "mesh_0"} : () -> ()
  func.func public @function_0() {
    func.return
  }
  "sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh_1"} : () -> ()
  func.func private @function_3() {
    func.return
  }
}
"##;
        assert_eq!(of_text(text), expected);
    }
}
