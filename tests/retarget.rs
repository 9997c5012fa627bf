//! Other platforms for exports: what is rewritten, what is refused, and what both say. Real JAX loads and runs them in tests/jax/test_retarget.py.

#[path = "common/room.rs"]
mod room;

use jaxprism::bytecode::Bytecode;
use jaxprism::{Binding, BindingKind, Exported, Platform, Retarget, RetargetOptions, SplitOptions, TargetsAllowed, retarget, split};

use room::{Room, export};

fn to(platforms: &[&'static str]) -> RetargetOptions {
    RetargetOptions::default().platforms(platforms.iter().map(|name| Platform::new(*name)))
}

fn to_vec(retarget: Retarget<'_>) -> Vec<u8> {
    retarget.into_output().unwrap_or_else(|error| panic!("{error:?}")).to_vec()
}

/// Level, kind, target and function of each.
fn shown(bindings: &[Binding]) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let kind = |kind| serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned();
    bindings
        .iter()
        .map(|binding| format!("{} {} {} {}", binding.level, kind(binding.kind), text(&binding.target), text(&binding.function)))
        .collect()
}

/// The first line of `main`.
fn main_of(export: &[u8]) -> String {
    let exported = Exported::read(export).unwrap();
    let module = exported.module.to_vec();
    let mut text = Vec::new();
    jaxprism::ir::text::write_text(&Bytecode::read(&module, 0).unwrap(), &Default::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().find(|line| line.contains("@main(")).unwrap().trim().to_owned()
}

/// JAX tells a nested export for several platforms which of them it is on, by a constant.
#[test]
fn an_export_for_one_platform_that_calls_one_for_several_is_bound() {
    let text = "!i = !vhlo.tensor_v1<!vhlo.i32_v1>\n!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>\n\
        func.func public @main(%x: !f32) -> !f32 {\n\
        %0 = \"vhlo.constant_v1\"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i\n\
        %1 = func.call @call_exported_f(%0, %x) : (!i, !f32) -> !f32\n return %1 : !f32\n}\n\
        func.func private @call_exported_f(%i: !i {jax.global_constant = #vhlo.string_v1<\"_platform_index\">}, %x: !f32) -> !f32 {\n\
        %0 = \"vhlo.case_v1\"(%i) ({\n\"vhlo.return_v1\"(%x) : (!f32) -> ()\n}, {\n\
        %2 = \"vhlo.negate_v1\"(%x) : (!f32) -> !f32\n\"vhlo.return_v1\"(%2) : (!f32) -> ()\n}) : (!i) -> !f32\n return %0 : !f32\n}";
    let original = export("single.jax-0.12.0.1.jax_exported");
    let mut exported = Exported::read(&original).unwrap();
    exported.module = jaxprism::ir::parse(text, "nested.mlir").unwrap().write().unwrap();
    let platform = exported.platforms[0].clone();
    let nested = exported.write().unwrap().to_vec();
    let bound = retarget(&nested, &to(&["another"])).unwrap();
    assert_eq!(shown(&bound.bindings), ["0 platform_index - -"]);
    assert!(bound.output.is_none());
    let same = retarget(&nested, &RetargetOptions::default().platforms([platform])).unwrap();
    assert!(same.bindings.is_empty() && to_vec(same) == nested);
}

#[test]
fn an_export_for_one_platform_gets_another_label_and_keeps_its_module() {
    let input = export("single.jax-0.12.0.1.jax_exported");
    let output = to_vec(retarget(&input, &to(&["rocm"])).unwrap());
    let (before, after) = (Exported::read(&input).unwrap(), Exported::read(&output).unwrap());
    assert_eq!(after.platforms, [Platform::ROCM]);
    assert_eq!(before.module.to_vec(), after.module.to_vec());
    assert!(!after.uses_global_constants);
    assert_eq!(to_vec(retarget(&output, &to(&["tpu"])).unwrap()), to_vec(retarget(&input, &to(&["tpu"])).unwrap()));
}

#[test]
fn several_platforms_take_an_index_that_goes_again() {
    let input = export("single.jax-0.12.0.1.jax_exported");
    let several = to_vec(retarget(&input, &to(&["rocm", "tpu"])).unwrap());
    let exported = Exported::read(&several).unwrap();
    assert!(exported.uses_global_constants);
    assert_eq!(exported.platforms, [Platform::ROCM, Platform::TPU]);
    let signature = "func.func public @main(%arg0: !vhlo.tensor_v1<!vhlo.i32_v1> {jax.global_constant = #vhlo.string_v1<\"_platform_index\">}, %arg1: \
                     !vhlo.tensor_v1<3x!vhlo.f32_v1>)";
    assert!(main_of(&several).starts_with(signature), "{}", main_of(&several));
    // The index is one that `split` resolves, and each platform runs what the input held.
    for (platform, output) in &split(&several, &SplitOptions::default()).unwrap().outputs {
        let label = to_vec(retarget(&input, &RetargetOptions::default().platforms([platform.clone()])).unwrap());
        assert_eq!(main_of(&output.to_vec()), main_of(&label));
    }
    let more = to_vec(retarget(&several, &to(&["cpu", "cuda", "tpu"])).unwrap());
    assert_eq!(main_of(&more), main_of(&several));
    let one = to_vec(retarget(&more, &to(&["cpu"])).unwrap());
    assert_eq!(main_of(&one), main_of(&input));
    assert!(!Exported::read(&one).unwrap().uses_global_constants);
}

#[test]
fn what_binds_is_listed_with_its_level_and_function() {
    let input = export("linalg.jax-0.12.0.1.jax_exported");
    let bound = retarget(&input, &to(&["rocm"])).unwrap();
    assert_eq!(
        shown(&bound.bindings),
        [
            "0 custom_call lapack_spotrf_ffi cholesky",
            "0 custom_call cusolver_potrf_ffi cholesky",
            "0 custom_call lapack_ssyevd_ffi eigh",
            "0 custom_call cusolver_syevd_ffi eigh",
            "0 custom_call Eigh eigh",
            "0 platform_case - cholesky",
            "0 platform_case - eigh",
        ]
    );
    assert_eq!(bound.bindings[0].platforms.as_deref(), Some(&["cpu".to_owned()][..]));
    assert_eq!(bound.bindings[5].reason, "it has one branch for `cpu`, another for `cuda`, another for `tpu`");
    let message = bound.into_output().unwrap_err().to_string();
    assert!(message.starts_with("the export is bound to cpu, cuda, tpu\n  "), "{message}");
    assert!(message.contains("custom call `lapack_spotrf_ffi`: it is for `cpu`, not for `rocm`"), "{message}");
    // Only branches bind where no platform is added.
    let narrowed = retarget(&input, &to(&["cpu"])).unwrap();
    assert!(narrowed.bindings.iter().all(|binding| binding.kind == BindingKind::PlatformCase));
}

#[test]
fn gradients_bind_too() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let levels = |options| retarget(&input, &options).unwrap().bindings.iter().map(|binding| binding.level).collect::<Vec<_>>();
    let all = levels(to(&["rocm"]));
    assert!([0, 1, 2].iter().all(|level| all.contains(level)) && all.is_sorted());
    let first = levels(to(&["rocm"]).output(jaxprism::OutputOptions::default().no_vjp(true)));
    assert!(!first.is_empty() && first.iter().all(|level| *level == 0));
}

#[test]
fn targets_are_mapped_between_gpus_alone() {
    let parts = export("linalg.jax-0.12.0.1.jax_exported");
    let cuda = split(&parts, &SplitOptions::default().platforms([Platform::CUDA])).unwrap().outputs[&Platform::CUDA].to_vec();
    let mapped = retarget(&cuda, &to(&["rocm"]).map_targets(true)).unwrap();
    let names: Vec<_> = mapped.targets_mapped.iter().map(|(from, to)| format!("{from} {to}")).collect();
    assert_eq!(names, ["cusolver_potrf_ffi hipsolver_potrf_ffi", "cusolver_syevd_ffi hipsolver_syevd_ffi"]);
    let rocm = to_vec(mapped);
    let back = to_vec(retarget(&rocm, &to(&["cuda"]).map_targets(true)).unwrap());
    assert_eq!(main_of(&back), main_of(&cuda));
    assert_eq!(
        back,
        to_vec(retarget(&to_vec(retarget(&back, &to(&["rocm"]).map_targets(true)).unwrap()), &to(&["cuda"]).map_targets(true)).unwrap())
    );
    for options in [to(&["rocm"]), to(&["rocm", "cuda"]).map_targets(true), to(&["cpu"]).map_targets(true)] {
        assert!(!retarget(&cuda, &options).unwrap().bindings.is_empty());
    }
}

#[test]
fn targets_can_be_allowed_but_those_of_a_process_cannot() {
    let parts = export("linalg.jax-0.12.0.1.jax_exported");
    let tpu = split(&parts, &SplitOptions::default().platforms([Platform::TPU])).unwrap().outputs[&Platform::TPU].to_vec();
    assert_eq!(shown(&retarget(&tpu, &to(&["my_npu"])).unwrap().bindings), ["0 custom_call Eigh eigh"]);
    let allowed: TargetsAllowed = "Eig?".parse().unwrap();
    to_vec(retarget(&tpu, &to(&["my_npu"]).targets_allowed(allowed)).unwrap());
    let lowered = export("lowered.jax-0.12.0.1.jax_exported");
    let all: TargetsAllowed = "*".parse().unwrap();
    let bound = retarget(&lowered, &to(&["rocm"]).targets_allowed(all)).unwrap();
    assert!(bound.bindings.len() > 5 && bound.bindings.iter().all(|binding| binding.reason.contains("process that wrote it")));
    let transfers = export("transfers.jax-0.12.0.1.jax_exported");
    let bound = retarget(&transfers, &to(&["cpu"])).unwrap();
    assert!(bound.bindings.iter().all(|binding| binding.kind == BindingKind::HostTransfer) && !bound.bindings.is_empty());
}

#[test]
fn placeholders_of_callbacks_are_neutral() {
    let parts = export("callbacks.jax-0.12.0.1.jax_exported");
    let kept = jaxprism::callbacks::CallbackOptions::new(
        jaxprism::callbacks::Policies::default().otherwise(jaxprism::callbacks::Policy::Keep),
        Default::default(),
    );
    let options = SplitOptions::default().platforms([Platform::CPU]).callbacks(kept);
    let cpu = split(&parts, &options).unwrap().outputs[&Platform::CPU].to_vec();
    let rocm = to_vec(retarget(&cpu, &to(&["rocm"])).unwrap());
    let (before, after) = (Exported::read(&cpu).unwrap(), Exported::read(&rocm).unwrap());
    assert_eq!(before.ordered_effects, after.ordered_effects);
    assert_eq!(before.unordered_effects, after.unordered_effects);
    assert!(before.ordered_effects.is_some_and(|effects| !effects.is_empty()));
}

#[test]
fn platforms_are_wanted_once_each() {
    let input = export("single.jax-0.12.0.1.jax_exported");
    assert_eq!(retarget(&input, &to(&[])).unwrap_err().to_string(), "there is no platform to retarget to");
    assert_eq!(retarget(&input, &to(&["cpu", "tpu", "cpu"])).unwrap_err().to_string(), "the platform `cpu` is named twice");
}

mod on_the_command_line {
    use super::*;
    use std::fs;

    #[test]
    fn a_bound_export_leaves_nothing_and_says_why() {
        let room = Room::new();
        let run = room.refused(&["retarget", "model.jax_exported", "--platforms", "rocm", "-o", "out.jax_exported"]);
        assert_eq!(run.status, 1);
        assert!(
            run.stderr.starts_with("error: `model.jax_exported` is bound to cpu, cuda, tpu in 3 places\n  make.py:47:11 "),
            "{}",
            run.stderr
        );
        assert!(run.stdout.is_empty());
        let run = room.run(&["retarget", "model.jax_exported", "--platforms", "rocm", "-o", "out.jax_exported", "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!((run.status, &json["from"][2], &json["platforms"][0]), (1, &"tpu".into(), &"rocm".into()));
        assert_eq!(json["bindings"].as_array().unwrap().len(), 3);
        assert_eq!(json["bindings"][0]["kind"], "platform_case");
    }

    #[test]
    fn files_and_streams_hold_the_same() {
        let room = Room::new();
        let input = export("single.jax-0.12.0.1.jax_exported");
        let run = room.run_with_input(&["retarget", "--platforms", "rocm,tpu", "-o", "-"], &input);
        assert_eq!((run.status, &*run.stderr), (0, ""));
        fs::write(room.path("single"), &input).unwrap();
        assert_eq!(room.run(&["retarget", "single", "--platforms", "rocm,tpu", "-o", "new/out"]).done(), "");
        assert_eq!(fs::read(room.path("new/out")).unwrap(), run.stdout);
        let again = room.refused(&["retarget", "single", "--platforms", "rocm,tpu", "-o", "new/out"]);
        assert!(again.stderr.contains("it exists"), "{}", again.stderr);
        room.run(&["retarget", "single", "--platforms", "cpu", "-o", "new/out", "--force"]).done();
        room.run(&["retarget", "single", "--platforms", "cpu", "-o", "out.mlirbc", "--emit", "mlirbc"]).done();
        assert_eq!(fs::read(room.path("out.mlirbc")).unwrap(), Exported::read(&input).unwrap().module.to_vec());
        let both = room.refused(&["retarget", "single", "--platforms", "cpu", "-o", "-", "--json"]);
        assert_eq!(both.status, 2);
        let allowed = room.refused(&["retarget", "single", "--platforms", "cpu", "-o", "x", "--allow", "xla_ffi_python_cpu_callback"]);
        assert!(allowed.stderr.contains("cannot be allowed"), "{}", allowed.stderr);
    }

    #[test]
    fn what_was_renamed_is_noted() {
        let room = Room::new();
        fs::write(room.path("linalg"), export("linalg.jax-0.12.0.1.jax_exported")).unwrap();
        room.run(&["split", "linalg", "-q", "-p", "cuda", "-o", "cuda{platform}"]).done();
        let run = room.run(&["retarget", "cudacuda", "--platforms", "rocm", "--map-targets", "-o", "rocm"]);
        assert_eq!(run.status, 0);
        assert_eq!(
            run.stderr,
            "note: custom call `cusolver_potrf_ffi` became `hipsolver_potrf_ffi`\nnote: custom call `cusolver_syevd_ffi` became `hipsolver_syevd_ffi`\n"
        );
    }
}
