//! What is said of Python callbacks, and of whatever else leaves a file: numbers, malformed placeholders, targets.

use jaxprism::bytecode::Bytecode;
use jaxprism::callbacks::{GUARD_EFFECT, Table};
use jaxprism::container::Effect;
use jaxprism::inspect::{CallbackLevel, SiteKind};
use jaxprism::threads::on_deep_stack;
use jaxprism::{Check, CheckOptions, Error, ErrorKind, Exported, Platform, Source, callbacks_of, check};

mod common;

const LOG: &str = r#"{"args":[],"kind":"io","name":"log","results":[],"v":1}"#;

/// A module of functions in text, encoded.
fn module(functions: &str) -> Vec<u8> {
    let text = format!("module {{\n{functions}\n}}");
    on_deep_stack(|| {
        let source = Source::read(text.as_bytes(), "test.mlir")?;
        Ok(source.module(0, text.as_bytes())?.write()?.to_vec())
    })
    .unwrap_or_else(|error: Error| panic!("{error:?}"))
}

fn function(name: &str, operations: &[String]) -> String {
    let visibility = if name == "main" { "public" } else { "private" };
    let operations = operations.concat();
    format!(
        "func.func {visibility} @{name}(%arg0: !vhlo.token_v1, %arg1: !vhlo.tensor_v1<4x!vhlo.f32_v1>) {{\n{operations}  func.return\n}}\n"
    )
}

/// A custom call without operands and results.
fn call(target: &str, attributes: &str) -> String {
    call_of(target, attributes, "", "() -> ()")
}

fn call_of(target: &str, attributes: &str, operands: &str, types: &str) -> String {
    format!(
        concat!(
            r##"  "vhlo.custom_call_v1"({operands}) {{api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, backend_config = #vhlo.string_v1<"">, "##,
            r##"call_target_name = #vhlo.string_v1<"{target}">, called_computations = #vhlo.array_v1<[]>, has_side_effect = #vhlo.bool_v1<true>, "##,
            r##"operand_layouts = #vhlo.array_v1<[]>, output_operand_aliases = #vhlo.array_v1<[]>, result_layouts = #vhlo.array_v1<[]>{attributes}}} "##,
            ": {types} loc(\"train.py\":41:8)\n"
        ),
        operands = operands,
        target = target,
        attributes = attributes,
        types = types,
    )
}

/// The call with an alias.
fn aliased(call: &str, result: &str, operand: u32) -> String {
    let alias =
        format!("#vhlo.output_operand_alias_v1<outputTupleIndices = [{result}], operandIndex = {operand}, operandTupleIndices = []>");
    let (none, one) = ("output_operand_aliases = #vhlo.array_v1<[]>", format!("output_operand_aliases = #vhlo.array_v1<[{alias}]>"));
    assert!(call.contains(none));
    call.replacen(none, &one, 1)
}

/// An attribute with what a placeholder of that name says.
fn config(attribute: &str, kind: &str, name: &str, meta: &str) -> String {
    let meta = meta.replace('"', r"\22");
    let string = |text: &str| format!(r##"#vhlo.string_v1<"{text}">"##);
    let items = [("kind", string(kind)), ("meta", string(&meta)), ("name", string(name)), ("v", "#vhlo.integer_v1<1 : i64>".to_owned())];
    let items = items.map(|(key, value)| format!("{} = {value}", string(key)));
    format!(", {attribute} = #vhlo.dict_v1<{{{}}}>", items.join(", "))
}

fn placeholder(name: &str) -> String {
    call("jaxprism_callback", &config("mhlo.backend_config", "io", name, &LOG.replace("log", name)))
}

fn level(module: &[u8], table: &Table) -> CallbackLevel {
    let mut report = callbacks_of(module, table).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(report.levels.len(), 1);
    report.levels.remove(0)
}

fn names(level: &CallbackLevel) -> Vec<&str> {
    level.slots.iter().map(|slot| slot.name.as_str()).collect()
}

fn checked(input: &[u8], allowed: &str) -> Check {
    check(input, &CheckOptions::default().targets_allowed(allowed.parse().unwrap())).unwrap()
}

#[test]
fn slots_are_numbered_from_main_on() {
    let functions = [
        function("first", &[placeholder("c"), placeholder("a")]),
        function("main", &[placeholder("a"), placeholder("b"), placeholder("a")]),
        function("last", &[placeholder("d"), placeholder("b")]),
    ];
    let level = level(&module(&functions.concat()), &Table::default());
    assert_eq!(names(&level), ["a", "b", "c", "d"]);
    let functions = |slot: usize| level.slots[slot].calls.iter().map(|call| call.function.as_str()).collect::<Vec<_>>();
    assert_eq!((functions(0), functions(1)), (vec!["main", "main", "first"], vec!["main", "last"]));
    assert_eq!(level.slots[3].calls[0].place.as_deref(), Some("train.py:41:8"));
}

#[test]
fn what_jaxprism_lowered_is_shown_as_what_it_was() {
    let lowered = config("jaxprism.callback", "io", "log", LOG);
    let index = r##", mhlo.backend_config = #vhlo.dict_v1<{#vhlo.string_v1<"index"> = #vhlo.integer_v1<7 : ui64>}>"##;
    let module = module(&function("main", &[placeholder("see"), call("xla_ffi_python_cpu_callback", &format!("{lowered}{index}"))]));
    let level = level(&module, &Table::default());
    assert_eq!((names(&level), level.bound.len(), level.guarded), (vec!["see", "log"], 0, false));
    let calls = [0, 1].map(|slot| (level.slots[slot].calls[0].target.as_deref(), level.slots[slot].calls[0].index));
    assert_eq!(calls, [(None, None), (Some("xla_ffi_python_cpu_callback"), Some(7))]);
    let check = checked(&module, "");
    let kinds: Vec<_> = check.sites.iter().map(|site| (site.kind, site.callback.as_deref())).collect();
    assert_eq!(kinds, [(SiteKind::Placeholder, Some("see")), (SiteKind::LoweredCallback, Some("log"))]);
}

#[test]
fn tokens_and_operands_that_say_shapes_are_no_operands_of_the_callback() {
    let meta = r#"{"args":[["float32",["4"]]],"kind":"io","name":"log","ordered":true,"results":[["float32",["4"]]],"tokens":1,"v":1}"#;
    let shapes = ", indices_of_shape_operands = #vhlo.tensor_v1<dense<2> : tensor<1xi64>>";
    let attributes = config("mhlo.backend_config", "io", "log", meta) + shapes;
    let tensor = "!vhlo.tensor_v1<4x!vhlo.f32_v1>";
    let types = format!("(!vhlo.token_v1, {tensor}, {tensor}) -> (!vhlo.token_v1, {tensor})");
    let call = call_of("jaxprism_callback", &attributes, "%arg0, %arg1, %arg1", &types).replacen("\"vhlo", "%0:2 = \"vhlo", 1);
    let slot = level(&module(&function("main", &[aliased(&call, "1", 1)])), &Table::default()).slots.remove(0);
    let found = &slot.calls[0];
    assert_eq!((&slot.operands[..], &slot.results[..]), (&["float32[4]".to_owned()][..], &["float32[4]".to_owned()][..]));
    assert_eq!((&found.operands[..], &found.results[..]), (&["f32[4]".to_owned()][..], &["f32[4]".to_owned()][..]));
    assert_eq!(found.aliases.iter().map(|alias| (alias.operand, alias.result)).collect::<Vec<_>>(), [(0, 0)]);
    assert!(found.has_side_effect && slot.ordered);
}

#[test]
fn malformed_placeholders_are_errors_with_name_and_place() {
    let placeholder = |kind: &str, meta: &str| call("jaxprism_callback", &config("mhlo.backend_config", kind, "log", meta));
    for (call, what) in [
        (call("jaxprism_callback", ""), "a callback without `mhlo.backend_config`"),
        (call("jaxprism_callback", ", mhlo.backend_config = unit"), "the configuration of a callback is no dictionary"),
        (
            call("jaxprism_callback", r##", mhlo.backend_config = #vhlo.dict_v1<{#vhlo.string_v1<"\FF"> = #vhlo.bool_v1<true>}>"##),
            "the configuration of a callback has a key that is no text",
        ),
        (placeholder("oi", LOG), "cannot read callback `log`: `oi` is no kind of callback"),
        (placeholder("io", "{"), "cannot read callback `log`: the metadata is not what jaxprism writes"),
        (placeholder("pure", LOG), "cannot read callback `log`: its metadata is that of a io callback `log`"),
        (
            placeholder("io", &LOG.replace(r#""args":[]"#, r#""args":[["f",[]]]"#)),
            "cannot read callback `log`: its metadata tells of 1 operands and 0 results, tokens included; the operation has 0 and 0",
        ),
        (
            placeholder("io", LOG).replace(", mhlo", ", indices_of_shape_operands = #vhlo.tensor_v1<dense<2> : tensor<1xi64>>, mhlo"),
            "the operation has 0 and 0",
        ),
        (
            aliased(&placeholder("io", LOG), "", 3),
            "cannot read callback `log`: it has an alias of an operand or a result that is not there",
        ),
    ] {
        let module = module(&function("main", &[call]));
        let error = callbacks_of(&module, &Table::default()).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.starts_with("Format: cannot read the callback at train.py:41:8 in `@main`: "), "{text}");
        assert!(text.contains(what), "{text}");
        // It is left whatever is wrong with it.
        assert_eq!(checked(&module, "").sites[0].kind, SiteKind::Placeholder);
    }
    let newer = function("main", &[placeholder("io", &LOG.replace(r#""v":1"#, r#""v":2"#))]);
    assert_eq!(callbacks_of(&module(&newer), &Table::default()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_table_of_the_user_says_what_else_is_a_callback() {
    let module = module(&function("main", &[call("mine", ""), call("other", ""), placeholder("log")]));
    let table = Table::default().with_user_file(r#"{"v": 1, "platforms": {"npu": {"callback": "mine"}}}"#).unwrap();
    let level = level(&module, &table);
    assert_eq!(level.bound.iter().map(|call| call.target.as_str()).collect::<Vec<_>>(), ["mine"]);
    let npu = level.slots[0].lowerings.last().unwrap();
    assert_eq!((npu.platform.as_str(), npu.target.as_deref()), ("npu", Some("mine")));
}

#[test]
fn what_can_be_allowed_is_what_is_only_not_stable() {
    let targets = ["my_kernel", "cu_threefry2x32", "CustomSPMDPartitioning", "xla_python_cpu_callback", "lapack_sgesdd_ffi"];
    let module = module(&function("main", &targets.map(|target| call(target, ""))));
    let kinds = |allowed| checked(&module, allowed).sites.iter().map(|site| site.kind).collect::<Vec<_>>();
    use SiteKind::{LoweredCallback, ProcessBound, Retired, Unknown};
    assert_eq!(kinds(""), [Unknown, Retired, ProcessBound, LoweredCallback]);
    assert_eq!(kinds("my_*"), [Retired, ProcessBound, LoweredCallback]);
    assert_eq!(kinds("*"), [ProcessBound, LoweredCallback]);
    let reasons: Vec<_> = checked(&module, "").sites.into_iter().map(|site| site.reason).collect();
    assert!(reasons[1].starts_with("JAX guaranteed once") && reasons[3].contains("address"), "{reasons:?}");
}

#[test]
fn platforms_are_checked_for_what_they_run() {
    let sample = common::shipped().into_iter().find(|sample| sample.name.starts_with("callbacks.jax-0.12")).unwrap();
    let options = CheckOptions::default().platforms(["tpu", "cuda"].map(Platform::new));
    let found = check(&sample.bytes, &options).unwrap();
    assert_eq!(found.platforms, ["cuda", "tpu"], "in the export's order");
    let warms = |platform: &str| {
        let mut sites = found.sites.iter().filter(|site| site.platform.as_deref() == Some(platform));
        sites.any(|site| site.callback.as_deref() == Some("warm up"))
    };
    assert!(warms("cuda") && !warms("tpu"));
    let elsewhere = CheckOptions::default().platforms([Platform::new("rocm")]);
    assert_eq!(check(&sample.bytes, &elsewhere).unwrap_err().kind(), ErrorKind::Refused);
    let (_, module, _) = sample.modules().remove(0);
    assert_eq!(check(module, &options).unwrap_err().kind(), ErrorKind::Refused);
    assert!(!check(module, &CheckOptions::default()).unwrap().passed);
}

#[test]
fn the_guard_is_seen_at_every_level() {
    let sample = common::shipped().into_iter().find(|sample| sample.name.starts_with("vjp.jax-0.12")).unwrap();
    assert!(checked(&sample.bytes, "").passed);
    let mut exported = Exported::read(&sample.bytes).unwrap();
    exported
        .for_each_level_mut(|level, exported| {
            let guard = Effect { type_name: Some(GUARD_EFFECT.into()) };
            let list = if level == 0 { &mut exported.unordered_effects } else { &mut exported.ordered_effects };
            list.get_or_insert_default().push(guard);
            Ok(())
        })
        .unwrap();
    let guarded = exported.write().unwrap().to_vec();
    assert!(callbacks_of(&guarded, &Table::default()).unwrap().levels.iter().all(|level| level.guarded));
    let sites = checked(&guarded, "*").sites;
    let found: Vec<_> = sites.iter().map(|site| (site.level, site.kind, site.target.as_str())).collect();
    assert_eq!(found, [0, 1, 2].map(|level| (level, SiteKind::GuardEffect, GUARD_EFFECT)));
}

#[test]
fn what_is_described_stays_within_bounds() {
    let calls = vec![placeholder("log").replace("train.py", &"x".repeat(1 << 20)); 70];
    let module = module(&function("main", &calls));
    assert!(module.len() < 2 << 20);
    assert_eq!(callbacks_of(&module, &Table::default()).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(check(&module, &CheckOptions::default()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn every_sample_is_looked_at() {
    for sample in common::samples().into_iter().filter(|sample| !sample.is_hostile()) {
        let report = callbacks_of(&sample.bytes, &Table::default()).unwrap_or_else(|error| panic!("{}: {error:?}", sample.name));
        let check = checked(&sample.bytes, "*");
        let slots = report.levels.iter().flat_map(|level| &level.slots).map(|slot| slot.calls.len()).sum::<usize>();
        let bound = report.levels.iter().map(|level| level.bound.len()).sum::<usize>();
        assert_eq!(check.sites.len(), slots + bound, "{}", sample.name);
        for (_, module, _) in sample.modules() {
            let unchanged = Bytecode::read(module, 0).unwrap();
            callbacks_of(&unchanged.write().unwrap().to_vec(), &Table::default()).unwrap();
        }
    }
}
