//! `merge`: what is split comes together again, and what does not belong together is refused with the first difference.

mod common;
#[path = "common/room.rs"]
mod room;

use common::{keeping_callbacks, on_a_large_stack, shipped};
use jaxprism::bytecode::{Bytecode, Field};
use jaxprism::container::{DisabledCheck, DisabledCheckKind, Effect, Exported, PyTree, PyTreeKind};
use jaxprism::ir::text::{TextOptions, write_text};
use jaxprism::{
    Error, MergeInput, MergeOptions, MergeReport, OutputOptions, Platform, Source, SplitOptions, VerifyOptions, merge, split, verify,
};

fn export(name: &str) -> Vec<u8> {
    shipped().into_iter().find(|sample| sample.name == name).unwrap_or_else(|| panic!("there is no {name}")).bytes
}

/// The parts of an export for several platforms.
fn parts(bytes: &[u8], options: &SplitOptions) -> Vec<(Platform, Vec<u8>)> {
    split(bytes, options).unwrap().outputs.into_iter().map(|(platform, output)| (platform, output.to_vec())).collect()
}

fn merged_with_report(parts: &[(Platform, Vec<u8>)]) -> Result<(Vec<u8>, MergeReport), Error> {
    let inputs: Vec<_> = parts.iter().map(|(platform, bytes)| MergeInput::new(bytes).platform(platform.clone())).collect();
    merge(&inputs, &MergeOptions::default()).map(|merged| (merged.output.to_vec(), merged.report))
}

fn merged(parts: &[(Platform, Vec<u8>)]) -> Vec<u8> {
    merged_with_report(parts).unwrap().0
}

/// What is wrong, as one line: the last cause.
fn refusal(parts: &[(Platform, Vec<u8>)]) -> String {
    let error = merged_with_report(parts).map(drop).unwrap_err();
    error.causes().last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn with_container(bytes: &[u8], change: impl FnOnce(&mut Exported<'_>)) -> Vec<u8> {
    let mut exported = Exported::read(bytes).unwrap();
    change(&mut exported);
    exported.write().unwrap().to_vec()
}

/// The text of a module for comparing, without its names and locations. Where `main` only calls a private function, that one is taken for it.
fn text(exported: &Exported<'_>) -> String {
    let bytes = exported.module.to_vec();
    let module = Bytecode::read(&bytes, 0).unwrap();
    let mut text = Vec::new();
    let mut options = TextOptions::exact();
    (options.canonical, options.locations) = (true, false);
    on_a_large_stack(|| write_text(&module, &options, &mut text).unwrap());
    String::from_utf8(text).unwrap()
}

/// The lines of each function, without its head.
fn functions(text: &str) -> Vec<Vec<&str>> {
    let mut lines = text.lines();
    let mut all = Vec::new();
    while lines.any(|line| line.starts_with("  func.func ")) {
        all.push(lines.by_ref().take_while(|line| *line != "  }").collect());
    }
    all
}

/// The bodies of functions, each with the numbers of its callees, in an order that no name decides: as they are called, `main` first.
fn bodies(exported: &Exported<'_>, is_wrapped: bool) -> Vec<String> {
    let text = text(exported);
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("  func.func ")).collect();
    let name = |line: &str| line.split_once('@').map(|(_, rest)| rest.split('(').next().unwrap_or_default().to_owned()).unwrap_or_default();
    let names: Vec<_> = heads.iter().map(|head| name(head)).collect();
    let bodies = functions(&text);
    let (mut order, mut next) = (vec![names.iter().position(|name| name == "main").unwrap()], 0);
    let mut shown = Vec::new();
    while let Some(place) = order.get(next).copied() {
        next += 1;
        let mut body = bodies[place].join("\n");
        // Longest first, so that no name is taken for the beginning of another.
        let mut callees: Vec<_> = names
            .iter()
            .enumerate()
            .filter(|(_, name)| body.contains(&format!("@{name}(")) || body.contains(&format!("\"{name}\"")))
            .collect();
        callees.sort_by_key(|(_, name)| {
            (body.find(&format!("@{name}(")).or_else(|| body.find(&format!("\"{name}\""))), std::cmp::Reverse(name.len()))
        });
        for (callee, name) in callees {
            let number = order.iter().position(|known| *known == callee).unwrap_or_else(|| {
                order.push(callee);
                order.len() - 1
            });
            let number = if is_wrapped { number - 1 } else { number };
            body = body.replace(&format!("@{name}("), &format!("@<{number}>(")).replace(&format!("\"{name}\""), &format!("\"<{number}>\""));
        }
        shown.push(body);
    }
    if is_wrapped {
        let main = shown.remove(0);
        assert!(main.contains("func.call @<0>(") && main.lines().count() == 2, "{main}");
    }
    shown
}

// ---- there and back

#[test]
fn what_is_split_merges_and_splits_again_into_the_same() {
    let mut count = 0;
    for sample in shipped() {
        let parts = parts(&sample.bytes, &keeping_callbacks());
        if parts.len() < 2 {
            continue;
        }
        let (fat, report) = merged_with_report(&parts).unwrap();
        assert_eq!(fat, merged(&parts), "{}: it is another file each time", sample.name);
        assert_eq!(fat.len() as u64, report.bytes);
        let (read, original) = (Exported::read(&fat).unwrap(), Exported::read(&sample.bytes).unwrap());
        for (level, before) in read.levels().zip(original.levels()) {
            // All but the module is what JAX made of the source for all platforms.
            let expected = Exported { module: level.module.clone(), vjp: level.vjp.clone(), ..before.clone() };
            assert_eq!(*level, expected, "{}", sample.name);
        }
        assert_eq!(read.levels().count(), original.levels().count());
        for ((platform, part), (_, again)) in parts.iter().zip(self::parts(&fat, &keeping_callbacks())) {
            let name = format!("{} on {platform}", sample.name);
            let verification = verify(&fat, &again, &VerifyOptions::default()).unwrap();
            assert!(verification.verified, "{name}: {:#?}", verification.differences);
            let (part, again) = (Exported::read(part).unwrap(), Exported::read(&again).unwrap());
            for (part, again) in part.levels().zip(again.levels()) {
                let expected = Exported { module: again.module.clone(), vjp: again.vjp.clone(), ..part.clone() };
                assert_eq!(*again, expected, "{name}");
                let (again, part) = (bodies(again, true), bodies(part, false));
                let first = again.iter().zip(&part).find(|(one, other)| one != other);
                assert_eq!((first, again.len()), (None, part.len()), "{name}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn another_order_of_the_parts_is_another_order_of_platforms() {
    let mut parts = parts(&export("linalg.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    parts.reverse();
    let fat = merged(&parts);
    assert_eq!(Exported::read(&fat).unwrap().platforms, [Platform::TPU, Platform::CUDA, Platform::CPU]);
    for (_, again) in self::parts(&fat, &SplitOptions::default()) {
        assert!(verify(&fat, &again, &VerifyOptions::default()).unwrap().verified);
    }
}

#[test]
fn lowered_callbacks_become_placeholders_that_split_lowers_again() {
    let options = SplitOptions::default().callbacks(jaxprism::callbacks::CallbackOptions::new(
        jaxprism::callbacks::Policies::default().on_unsupported(jaxprism::callbacks::Policy::Keep),
        jaxprism::callbacks::Table::default(),
    ));
    let parts = parts(&export("callbacks.jax-0.12.0.1.jax_exported"), &options);
    let guards = |exported: &Exported<'_>| {
        let effects = exported.unordered_effects.iter().flatten();
        effects.filter(|effect| effect.type_name.as_deref() == Some(jaxprism::callbacks::GUARD_EFFECT)).count()
    };
    assert_eq!(guards(&Exported::read(&parts[0].1).unwrap()), 1);
    let (fat, report) = merged_with_report(&parts).unwrap();
    assert!(report.levels.iter().any(|level| level.unlowered));
    assert!(Exported::read(&fat).unwrap().levels().all(|level| guards(level) == 0));
    for ((_, part), (_, again)) in parts.iter().zip(self::parts(&fat, &options)) {
        let (part, again) = (Exported::read(part).unwrap(), Exported::read(&again).unwrap());
        for (part, again) in part.levels().zip(again.levels()) {
            assert_eq!(bodies(again, true), bodies(part, false));
            assert_eq!(guards(part), guards(again));
        }
    }
}

#[test]
fn parts_of_different_versions_take_the_newer_schema_and_the_newer_stablehlo() {
    for old in ["demo.jax-0.10.2.jax_exported", "demo.jax-0.4.30.jax_exported"] {
        let new = parts(&export("demo.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
        let old = parts(&export(old), &SplitOptions::default());
        let mixed = [old[0].clone(), new[1].clone()];
        // JAX 0.4.30 has another calling convention.
        let old_version = Exported::read(&mixed[0].1).unwrap().calling_convention_version;
        if old_version != 10 {
            assert_eq!(refusal(&mixed), format!("the calling convention version: {old_version} on cpu, 10 on cuda"));
        }
        let mixed = [(Platform::CPU, with_container(&mixed[0].1, |exported| exported.calling_convention_version = 10)), new[1].clone()];
        let fat = merged(&mixed);
        let read = Exported::read(&fat).unwrap();
        assert_eq!((read.serialization_version, read.jax_version.as_deref()), (12, Some("0.12.0.1")));
        let module = Bytecode::read(read.module.as_borrowed().unwrap(), 0).unwrap();
        assert_eq!((&*module.producer, module.version), (&b"StableHLO_v1.18.0"[..], 6));
        let again = self::parts(&fat, &SplitOptions::default());
        for ((platform, part), (_, again)) in mixed.iter().zip(&again) {
            assert!(verify(&fat, again, &VerifyOptions::default()).unwrap().verified);
            assert_eq!(bodies(&Exported::read(again).unwrap(), true), bodies(&Exported::read(part).unwrap(), false), "{platform}");
        }
    }
}

// ---- what is shared, and what is renamed

const ALIASES: &str = "!f32 = !vhlo.tensor_v1<3x!vhlo.f32_v1>\n!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>\n";

/// An export of `args[0]` and `args[1]`, both `float32[3]`, to one; its module is this text.
fn made(platform: Platform, kept: &[u16], functions: &str) -> (Platform, Vec<u8>) {
    let text = format!("{ALIASES}{functions}");
    let module = on_a_large_stack(|| {
        let Source::Module(module) = Source::read(text.as_bytes(), "made.mlir").unwrap() else { panic!("a module") };
        module.write().unwrap().to_vec()
    });
    let bytes = common::with_module(&export("single.jax-0.12.0.1.jax_exported"), &module);
    let bytes = with_container(&bytes, |exported| {
        let leaf = || PyTree::new(PyTreeKind::Leaf, vec![]);
        let args = PyTree::new(PyTreeKind::Tuple, vec![leaf(), leaf()]);
        exported.in_tree = PyTree::new(PyTreeKind::Tuple, vec![args, PyTree::dict(vec![])]);
        (exported.in_avals_idxs, exported.in_shardings_idxs) = (Some(vec![0, 0]), Some(vec![0, 0]));
        exported.module_kept_var_idx = Some(kept.to_vec());
        exported.platforms = vec![platform.clone()];
    });
    (platform, bytes)
}

/// The text of the merged module.
fn shown(parts: &[(Platform, Vec<u8>)]) -> String {
    let fat = merged(parts);
    let read = Exported::read(&fat).unwrap();
    let module = Bytecode::read(read.module.as_borrowed().unwrap(), 0).unwrap();
    let mut text = Vec::new();
    let mut options = TextOptions::exact();
    options.locations = false;
    on_a_large_stack(|| write_text(&module, &options, &mut text).unwrap());
    for (_, again) in self::parts(&fat, &SplitOptions::default()) {
        assert!(verify(&fat, &again, &VerifyOptions::default()).unwrap().verified);
    }
    String::from_utf8(text).unwrap().replace("!vhlo.tensor_v1<3x!vhlo.f32_v1>", "!f32")
}

fn lines<'t>(text: &'t str, what: &str) -> Vec<&'t str> {
    text.lines().map(str::trim).filter(|line| line.contains(what)).collect()
}

#[test]
fn equal_functions_stand_once_and_others_of_their_name_are_renamed() {
    // `leaf` is equal; `other` is not; `outer` is equal but for what it calls; `twice` is as equal as `leaf`, in one module.
    let module = |of: &str| {
        format!(
            "func.func public @main(%x: !f32, %y: !f32) -> !f32 {{\n %0 = call @outer(%x) : (!f32) -> !f32\n %1 = call @leaf(%0) : (!f32) -> !f32\n return %1 : !f32\n}}\n\
             func.func private @outer(%x: !f32) -> !f32 {{\n %0 = call @other(%x) : (!f32) -> !f32\n return %0 : !f32\n}}\n\
             func.func private @other(%x: !f32) -> !f32 {{\n %0 = \"vhlo.{of}_v1\"(%x) : (!f32) -> !f32\n return %0 : !f32\n}}\n\
             func.func private @leaf(%x: !f32) -> !f32 {{\n %0 = \"vhlo.abs_v1\"(%x) : (!f32) -> !f32\n return %0 : !f32\n}}\n"
        )
    };
    let parts = [made(Platform::CPU, &[0, 1], &module("negate")), made(Platform::CUDA, &[0, 1], &module("sign"))];
    let text = shown(&parts);
    let names: Vec<_> =
        lines(&text, "func.func").into_iter().map(|line| line.split('(').next().unwrap().split('@').nth(1).unwrap()).collect();
    assert_eq!(names, ["main", "main_cpu", "outer", "other", "leaf", "main_cuda", "outer_0", "other_0"]);
    assert_eq!(merged_with_report(&parts).unwrap().1.levels[0].functions_shared, 1);

    // Equal altogether: there is nothing to choose.
    let parts = [made(Platform::CPU, &[0, 1], &module("sign")), made(Platform::CUDA, &[0, 1], &module("sign"))];
    let text = shown(&parts);
    assert_eq!(lines(&text, "case_v1"), [""; 0]);
    assert_eq!(merged_with_report(&parts).unwrap().1.levels[0].functions_shared, 4);
}

#[test]
fn functions_with_dynamic_dimensions_are_not_shared() {
    let parts = parts(&export("symbolic.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let twice = [parts[0].clone(), (Platform::CUDA, with_container(&parts[0].1, |exported| exported.platforms = vec![Platform::CUDA]))];
    let report = merged_with_report(&twice).unwrap().1;
    let functions = Bytecode::read(Exported::read(&parts[0].1).unwrap().module.as_borrowed().unwrap(), 0).unwrap().functions().count();
    assert_eq!((report.levels[0].functions, report.levels[0].functions_shared), (2 * functions + 1, 0));
}

#[test]
fn equal_meshes_stand_once_and_what_names_others_follows() {
    let module = |size: u32| {
        let sharding = "#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>";
        format!(
            "\"sdy.mesh\"() {{mesh = #sdy.mesh<[\"x\"={size}]>, sym_name = \"mesh\"}} : () -> ()\n\
             func.func public @main(%x: !f32, %y: !f32) -> !f32 {{\n %0 = \"vhlo.abs_v1\"(%x) {{sdy.sharding = {sharding}}} : (!f32) -> !f32\n return %0 : !f32\n}}\n"
        )
    };
    let text = shown(&[made(Platform::CPU, &[0, 1], &module(2)), made(Platform::CUDA, &[0, 1], &module(2))]);
    assert_eq!((lines(&text, "sdy.mesh\"()").len(), lines(&text, "@mesh,").len()), (1, 1), "{text}");
    let text = shown(&[made(Platform::CPU, &[0, 1], &module(2)), made(Platform::CUDA, &[0, 1], &module(4))]);
    assert_eq!((lines(&text, "sdy.mesh\"()").len(), lines(&text, "@mesh,").len(), lines(&text, "@mesh_0,").len()), (2, 1, 1), "{text}");
}

#[test]
fn a_channel_keeps_its_number_unless_xla_would_confuse_it_with_another() {
    let gather = "\"vhlo.all_gather_v2\"(%x) {all_gather_dim = #vhlo.integer_v1<0 : i64>, channel_id = #vhlo.integer_v1<1 : i64>, \
                  replica_groups = #vhlo.tensor_v1<dense<0> : tensor<1x1xi64>>, use_global_device_ids = #vhlo.bool_v1<true>}";
    let permute = "\"vhlo.collective_permute_v1\"(%x) {channel_id = #vhlo.integer_v1<1 : i64>, source_target_pairs = #vhlo.tensor_v1<dense<0> : tensor<1x2xi64>>}";
    let module = |operation: &str| {
        format!(
            "func.func public @main(%x: !f32, %y: !f32) -> !f32 {{\n %0 = {operation} : (!f32) -> !f32\n %1 = \"vhlo.abs_v1\"(%0) : (!f32) -> !f32\n return %1 : !f32\n}}\n"
        )
    };
    let other = module(gather).replace("abs", "sign");
    let numbers = |text: String| {
        lines(&text, "channel_id")
            .into_iter()
            .map(|line| line.split("channel_id = #vhlo.integer_v1<").nth(1).unwrap().as_bytes()[0] - b'0')
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(shown(&[made(Platform::CPU, &[0, 1], &module(gather)), made(Platform::CUDA, &[0, 1], &other)])), [1, 1]);
    assert_eq!(numbers(shown(&[made(Platform::CPU, &[0, 1], &module(gather)), made(Platform::CUDA, &[0, 1], &module(permute))])), [1, 2]);
    // The greatest number there is.
    let greatest = |operation: &str| module(&operation.replace("channel_id = #vhlo.integer_v1<1", "channel_id = #vhlo.integer_v1<-1"));
    let text = shown(&[made(Platform::CPU, &[0, 1], &greatest(gather)), made(Platform::CUDA, &[0, 1], &greatest(permute))]);
    let renumbered = lines(&text, "collective_permute")[0].contains("channel_id = #vhlo.integer_v1<1 : i64>");
    assert!(renumbered && lines(&text, "all_gather")[0].contains("channel_id = #vhlo.integer_v1<-1 : i64>"), "{text}");
}

// ---- arguments

#[test]
fn main_takes_what_any_platform_takes_and_each_gets_its_own() {
    let one = "func.func public @main(%x: !f32) -> !f32 {\n %0 = \"vhlo.abs_v1\"(%x) : (!f32) -> !f32\n return %0 : !f32\n}\n";
    let none = "func.func public @main() -> !f32 {\n %0 = \"vhlo.iota_v1\"() {iota_dimension = #vhlo.integer_v1<0 : i64>} : () -> !f32\n return %0 : !f32\n}\n";
    let parts = [made(Platform::CPU, &[1], one), made(Platform::CUDA, &[0], &one.replace("abs", "sign")), made(Platform::TPU, &[], none)];
    let text = shown(&parts);
    assert_eq!(
        lines(&text, "func.call"),
        [
            "%1 = func.call @main_cpu(%arg2) : (!f32) -> !f32",
            "%1 = func.call @main_cuda(%arg1) : (!f32) -> !f32",
            "%1 = func.call @main_tpu() : () -> !f32",
        ]
    );
    assert_eq!(Exported::read(&merged(&parts)).unwrap().module_kept_var_idx, Some(vec![0, 1]));

    let same = [made(Platform::CPU, &[1], one), made(Platform::CUDA, &[0], one), made(Platform::TPU, &[1], one)];
    let calls = [2, 1, 2].map(|argument| format!("%1 = func.call @main_cpu(%arg{argument}) : (!f32) -> !f32"));
    assert_eq!(lines(&shown(&same), "func.call"), calls, "one function, but each platform has its own argument");

    let wrong = [made(Platform::CPU, &[0, 1], one), made(Platform::CUDA, &[0], one)];
    assert_eq!(refusal(&wrong), "`main` for `cpu` takes 1 values and returns 1, but the export says 2 arrays, 1 results and 0 tokens");
    let wrong = [made(Platform::CPU, &[7], one), made(Platform::CUDA, &[0], one)];
    assert_eq!(refusal(&wrong), "`module_kept_var_idx` does not ascend below 2");
}

#[test]
fn an_argument_is_donated_where_all_platforms_agree() {
    let module = |of: &str, attributes: &str| {
        format!(
            "func.func public @main(%x: !f32 {{{attributes}}}, %y: !f32) -> !f32 {{\n %0 = \"vhlo.{of}_v1\"(%x) : (!f32) -> !f32\n return %0 : !f32\n}}\n"
        )
    };
    let donor = "jax.buffer_donor = #vhlo.bool_v1<true>";
    let alias = "tf.aliasing_output = #vhlo.integer_v1<0 : i32>";
    let main = |parts: &[(Platform, Vec<u8>)]| lines(&shown(parts), "@main(")[0].to_owned();
    let undonated = |parts: &[(Platform, Vec<u8>)]| merged_with_report(parts).unwrap().1.levels[0].undonated.clone();
    let pair =
        |one: &str, other: &str| [made(Platform::CPU, &[0, 1], &module("abs", one)), made(Platform::CUDA, &[0, 1], &module("sign", other))];

    let agreed = pair(donor, donor);
    assert!(main(&agreed).contains(donor) && undonated(&agreed).is_empty());
    for differing in [pair(donor, ""), pair("", alias), pair(alias, donor)] {
        assert!(!main(&differing).contains("donor") && !main(&differing).contains("aliasing"));
        assert_eq!(undonated(&differing), ["args[0]"]);
    }
    // Neither does an argument that a platform does not take give its memory away there.
    let absent = "func.func public @main(%y: !f32) -> !f32 {\n return %y : !f32\n}\n";
    let parts = [made(Platform::CPU, &[0, 1], &module("abs", donor)), made(Platform::CUDA, &[1], absent)];
    assert_eq!(undonated(&parts), ["args[0]"]);

    let parts = pair("mhlo.memory_kind = #vhlo.string_v1<\"pinned_host\">", "");
    assert_eq!(refusal(&parts), "args[0]: another `mhlo.memory_kind` in the module on cuda than on cpu");
}

#[test]
fn effects_and_checks_are_those_of_all() {
    let effect = |name: &'static str| Effect { type_name: Some(name.into()) };
    let check = |target: &'static str| DisabledCheck { kind: DisabledCheckKind::CustomCall, custom_call_target: Some(target.into()) };
    let demo = parts(&export("demo.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let first = with_container(&demo[0].1, |exported| {
        (exported.unordered_effects, exported.disabled_checks) = (Some(vec![effect("one"), effect("both")]), Some(vec![check("a")]));
    });
    let second = with_container(&demo[1].1, |exported| {
        (exported.unordered_effects, exported.disabled_checks) =
            (Some(vec![effect("both"), effect("two")]), Some(vec![check("a"), check("b")]));
    });
    let fat = merged(&[(Platform::CPU, first), (Platform::CUDA, second)]);
    let read = Exported::read(&fat).unwrap();
    assert_eq!(read.unordered_effects, Some(vec![effect("one"), effect("both"), effect("two")]));
    assert_eq!(read.disabled_checks, Some(vec![check("a"), check("b")]));
}

// ---- what is refused

#[test]
fn the_first_difference_of_signatures_is_named_by_its_path() {
    let demo = parts(&export("demo.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let with = |change: fn(&mut Exported<'_>)| refusal(&[demo[0].clone(), (Platform::CUDA, with_container(&demo[1].1, change))]);
    assert_eq!(
        with(|exported| exported.unique_avals.as_mut().unwrap()[0].shape = Some(vec!["8".into(), "b".into()])),
        "args[0]: float32[8,16] on cpu, float32[8,b] on cuda"
    );
    assert_eq!(with(|exported| exported.nr_devices = 4), "the number of devices: 1 on cpu, 4 on cuda");
    let effect = "ordered effects: none on cpu, <class 'e'> on cuda";
    assert_eq!(with(|exported| exported.ordered_effects = Some(vec![Effect { type_name: Some("<class 'e'>".into()) }])), effect);
    let tree = "args: tuple of 2 on cpu, list of 2 on cuda";
    assert_eq!(with(|exported| exported.in_tree.children.as_mut().unwrap()[0].kind = PyTreeKind::List), tree);
    let deeper = |exported: &mut Exported<'_>| {
        let args = exported.in_tree.children.as_mut().unwrap()[0].children.as_mut().unwrap();
        args[1] = PyTree::dict(vec![("seed".into(), args[1].clone())]);
    };
    assert_eq!(with(deeper), "args[1]: leaf on cpu, dict of 'seed' on cuda");

    let vjp = parts(&export("vjp.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let shorter = (Platform::CUDA, with_container(&vjp[1].1, |exported| exported.vjp = None));
    assert_eq!(refusal(&[vjp[0].clone(), shorter]), "gradient levels: 2 on cpu, 0 on cuda");
    let sharded = parts(&export("sharded.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let other = (Platform::CUDA, with_container(&sharded[1].1, |exported| exported.in_shardings_idxs.as_mut().unwrap()[0] = 0));
    assert_eq!(
        refusal(&[sharded[0].clone(), other]),
        "args[0]: P('rows', None) on ('rows': 2, 'columns': 2) in device on cpu, no sharding on cuda"
    );
}

#[test]
fn a_mesh_loses_a_kind_of_device_that_not_all_have() {
    use jaxprism::container::AbstractDevice;
    let sharded = parts(&export("sharded.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let on = |kind: &'static str| {
        move |exported: &mut Exported<'_>| {
            let device = AbstractDevice { device_kind: Some(kind.into()), num_cores: None, platform: None };
            exported.unique_abstract_meshes.as_mut().unwrap().iter_mut().for_each(|mesh| mesh.abstract_device = Some(device.clone()));
        }
    };
    let devices = |one: &'static str, other: &'static str| {
        let fat =
            merged(&[(Platform::CPU, with_container(&sharded[0].1, on(one))), (Platform::CUDA, with_container(&sharded[1].1, on(other)))]);
        let read = Exported::read(&fat).unwrap();
        read.unique_abstract_meshes.unwrap().iter().filter(|mesh| mesh.abstract_device.is_some()).count()
    };
    assert_eq!((devices("cpu", "cpu") > 0, devices("cpu", "H100")), (true, 0));
}

#[test]
fn platforms_are_one_for_each_export_and_each_once() {
    let fat = export("demo.jax-0.12.0.1.jax_exported");
    let parts = parts(&fat, &SplitOptions::default());
    let single = merge(&[MergeInput::new(&parts[0].1)], &MergeOptions::default()).unwrap_err();
    assert_eq!(single.to_string(), "merging takes two exports or more");
    assert_eq!(refusal(&[parts[0].clone(), parts[0].clone()]), "two exports are for `cpu`");
    assert_eq!(refusal(&[(Platform::TPU, parts[0].1.clone()), parts[1].clone()]), "it is for `cpu`, not for `tpu`");
    let several = merge(&[MergeInput::new(&fat), MergeInput::new(&parts[1].1)], &MergeOptions::default()).unwrap_err();
    assert_eq!(several.causes().last().unwrap().to_string(), "it is for 3 platforms: `cpu`, `cuda`, `tpu`");
    assert_eq!(several.hint(), Some("`jaxprism split` makes one export for each of them"));
}

#[test]
fn what_calls_itself_is_refused() {
    let module = "func.func public @main(%x: !f32, %y: !f32) -> !f32 {\n %0 = call @f(%x) : (!f32) -> !f32\n return %0 : !f32\n}\n\
                  func.func private @f(%x: !f32) -> !f32 {\n %0 = call @f(%x) : (!f32) -> !f32\n return %0 : !f32\n}\n";
    let parts = [made(Platform::CPU, &[0, 1], module), made(Platform::CUDA, &[0, 1], module)];
    assert_eq!(refusal(&parts), "function `f` calls itself, directly or through others");
}

#[test]
fn the_constants_of_all_parts_are_one_and_slices_of_an_input() {
    let bytes = export("demo.jax-0.12.0.1.jax_exported");
    let parts = parts(&bytes, &SplitOptions::default());
    let blobs = |bytes: &[u8]| {
        let exported = Exported::read(bytes).unwrap();
        let module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
        let constants = module.tree.operations.iter().filter(|operation| module.op_name(operation) == "vhlo.constant_v1");
        let mut large: Vec<_> = constants.filter_map(|constant| module.inherent(constant, "value")).collect();
        large.sort_unstable();
        large.dedup();
        let sizes = large.into_iter().filter_map(|id| match &module.tables.attribute(id).fields[..] {
            [Field::Type(_), Field::Blob(blob)] => Some(blob.0.len()),
            _ => None,
        });
        sizes.filter(|size| *size >= 1_024).collect::<Vec<_>>()
    };
    assert_eq!(blobs(&parts[0].1), [1_024; 3]);
    assert_eq!(blobs(&merged(&parts)), [1_024; 3]);
}

/// What is left out must not agree: it is taken out of every input, as it would be taken out by other verbs before.
#[test]
fn gradients_and_shardings_are_left_out_before_anything_is_compared() {
    for (name, options) in [
        ("vjp.jax-0.12.0.1.jax_exported", OutputOptions::default().no_vjp(true)),
        ("sharded.jax-0.12.0.1.jax_exported", OutputOptions::default().strip_sdy(true)),
    ] {
        let whole = parts(&export(name), &keeping_callbacks());
        let short = parts(&export(name), &keeping_callbacks().output(options.clone()));
        let merge_with = |parts: &[(Platform, Vec<u8>)]| {
            let inputs: Vec<_> = parts.iter().map(|(platform, bytes)| MergeInput::new(bytes).platform(platform.clone())).collect();
            let merged = merge(&inputs, &MergeOptions::default().output(options.clone())).unwrap();
            assert_eq!(merged.report.levels.len(), merged.output.exported.levels().count());
            merged.output.to_vec()
        };
        let expected = merged(&short);
        assert!(expected == merge_with(&whole) && expected != merged(&whole), "{name}");
        let mixed: Vec<_> = whole.into_iter().take(1).chain(short.into_iter().skip(1)).collect();
        assert!(merged_with_report(&mixed).is_err(), "{name}");
        assert!(expected == merge_with(&mixed), "{name}");
    }
}

#[test]
fn the_merged_module_is_written_alone() {
    let room = room_of_parts();
    let merge = |arguments: &[&str]| room.run(&[&["merge", "model.cpu.jax_exported", "model.tpu.jax_exported"], arguments].concat());
    merge(&["-o", "fat"]).done();
    let fat = std::fs::read(room.path("fat")).unwrap();
    let module = Exported::read(&fat).unwrap().module.to_vec();
    let json: serde_json::Value = serde_json::from_str(&merge(&["-o", "fat.mlirbc", "--emit", "mlirbc", "--json"]).done()).unwrap();
    assert!(std::fs::read(room.path("fat.mlirbc")).unwrap() == module);
    assert_eq!(json["bytes"].as_u64(), Some(module.len() as u64));
    let text = merge(&["-o", "-", "--emit", "mlir"]);
    assert!(text.stdout.starts_with(b"module @") && text.status == 0, "{}", text.stderr);
    assert_eq!(room.run(&["opt", "fat.mlirbc"]).stdout, text.stdout);
}

// ---- the command

/// A room with the parts of the demo export.
fn room_of_parts() -> room::Room {
    let room = room::Room::new();
    room.run(&["split", "-q", "model.jax_exported"]).done();
    room
}

#[test]
fn the_command_writes_one_file_and_says_what_it_is() {
    let room = room_of_parts();
    let said = room.run(&["merge", "model.cpu.jax_exported", "tpu=model.tpu.jax_exported", "-o", "fat"]).done();
    let bytes = std::fs::read(room.path("fat")).unwrap();
    assert!(said.starts_with("fat for cpu, tpu: ") && said.ends_with(" shared\n"), "{said}");
    assert_eq!(Exported::read(&bytes).unwrap().platforms, [Platform::CPU, Platform::TPU]);

    let part = std::fs::read(room.path("model.cpu.jax_exported")).unwrap();
    let run = room.run_with_input(&["merge", "cpu=-", "model.tpu.jax_exported", "-o", "-"], &part);
    assert_eq!((run.status, run.stdout == bytes), (0, true), "{}", run.stderr);

    let json = room.run(&["merge", "model.cpu.jax_exported", "model.tpu.jax_exported", "-o", "fat", "--force", "--json"]).done();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["platforms"], serde_json::json!(["cpu", "tpu"]));
    assert_eq!((json["bytes"].as_u64(), json["output"].as_str()), (Some(bytes.len() as u64), Some("fat")));
    assert_eq!(json["inputs"], serde_json::json!(["model.cpu.jax_exported", "model.tpu.jax_exported"]));
    assert_eq!(json["levels"][0]["undonated"], serde_json::json!([]));
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let room = room_of_parts();
    let (cpu, tpu) = (OsStr::from_bytes(b"cpu\xff=.x"), OsStr::from_bytes(b"t\xffpu"));
    std::fs::rename(room.path("model.cpu.jax_exported"), room.0.path().join(cpu)).unwrap();
    std::fs::rename(room.path("model.tpu.jax_exported"), room.0.path().join(tpu)).unwrap();
    let named = OsStr::from_bytes(b"tpu=t\xffpu");
    let run: room::Run = room.command(&["merge"]).args([cpu, named, OsStr::new("-o"), OsStr::new("fat")]).output().unwrap().into();
    assert_eq!(run.done().split(": ").next(), Some("fat for cpu, tpu"));
}

#[test]
fn what_can_be_done_about_a_difference_is_said() {
    let demo = parts(&export("demo.jax-0.12.0.1.jax_exported"), &SplitOptions::default());
    let hint = |parts: &[(Platform, Vec<u8>)]| merged_with_report(parts).unwrap_err().hint().map(str::to_owned);
    let older = with_container(&demo[1].1, |exported| exported.calling_convention_version -= 1);
    let found = hint(&[demo[0].clone(), (demo[1].0.clone(), older)]).unwrap();
    assert_eq!(found, "export all of them with the same `jax_export_calling_convention_version`");
}

#[test]
fn the_command_refuses_without_a_trace() {
    let room = room_of_parts();
    let (cpu, cuda) = ("model.cpu.jax_exported", "model.cuda.jax_exported");
    room.refused(&["merge", cpu, cuda, "-o", cuda]).says(
        1,
        "error: cannot write `model.cuda.jax_exported`\n\nCaused by:\n    0: it is the input\n\nhint: choose another name with `-o`\n",
    );
    room.refused(&["merge", cpu, cuda, "-o", "model.jax_exported"])
        .says(1, "error: cannot write `model.jax_exported`\n\nCaused by:\n    0: it exists\n\nhint: `--force` replaces files that exist\n");
    room.refused(&["merge", &format!("tpu={cpu}"), cuda, "-o", "fat"]).says(
        1,
        "error: cannot merge `model.cpu.jax_exported`, `model.cuda.jax_exported`\n\nCaused by:\n    0: cannot take the export for `tpu`\n    \
         1: it is for `cpu`, not for `tpu`\n\nhint: merging keeps the code of each export on its own platform\n",
    );
    for arguments in [
        &["merge", cpu, "-o", "fat"][..],
        &["merge", "gpu=x", cuda, "-o", "fat"],
        &["merge", "-", "cuda=-", "-o", "fat"],
        &["merge", cpu, cuda],
    ] {
        assert_eq!(room.refused(arguments).status, 2, "{arguments:?}");
    }
}
