//! Modules for readers of an older version of StableHLO. What becomes of each operation is held against StableHLO in tests/jax/test_target_version.py; here is
//! where the option works, and what it leaves alone.

#[path = "common/room.rs"]
mod room;

use std::fs;

use jaxprism::bytecode::Bytecode;
use jaxprism::{
    ErrorKind, Exported, MergeInput, MergeOptions, OptOptions, OutputOptions, Platform, RetargetOptions, SplitOptions, StablehloVersion,
    StripOptions, merge, opt, retarget, split, strip,
};

use room::{Room, export};

fn version(text: &str) -> StablehloVersion {
    text.parse().unwrap()
}

fn output(text: &str) -> OutputOptions {
    OutputOptions::default().target_version(Some(version(text)))
}

/// Bytecode version, producer, and names of operations, by gradient level.
fn modules(bytes: &[u8]) -> Vec<(u64, String, Vec<String>)> {
    let exported = Exported::read(bytes).unwrap();
    let module = |exported: &Exported<'_>| {
        let bytes = exported.module.to_vec();
        let module = Bytecode::read(&bytes, 0).unwrap();
        let names = module.tree.operations.iter().map(|operation| module.op_name(operation)).collect();
        (module.version, String::from_utf8(module.producer.to_vec()).unwrap(), names)
    };
    exported.levels().map(module).collect()
}

#[test]
fn every_verb_that_writes_has_it_at_every_level() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let parts = split(&input, &SplitOptions::default().output(output("1.8.0"))).unwrap();
    let stripped = strip(&input, &StripOptions::default().output(output("1.8.0"))).unwrap().output.to_vec();
    let mut options = OptOptions::default();
    options.output = output("1.8.0");
    let rewritten = opt(&input, "", &options).unwrap().to_export().unwrap().to_vec();
    let mut all: Vec<_> = parts.outputs.values().map(|output| output.to_vec()).collect();
    all.extend([stripped, rewritten]);
    for bytes in &all {
        let modules = modules(bytes);
        assert_eq!(modules.len(), 3);
        for (bytecode, producer, names) in modules {
            assert_eq!((bytecode, &*producer), (6, "StableHLO_v1.8.0"));
            assert!(names.iter().any(|name| name == "vhlo.multiply_v1") && !names.iter().any(|name| name == "vhlo.tanh_v2"), "{names:?}");
        }
        // The container says nothing of it.
        let (before, after) = (Exported::read(&input).unwrap(), Exported::read(bytes).unwrap());
        assert_eq!(before.calling_convention_version, after.calling_convention_version);
    }
    let single = export("single.jax-0.12.0.1.jax_exported");
    for platforms in [vec![Platform::CPU], vec![Platform::ROCM, Platform::TPU]] {
        let options = RetargetOptions::default().platforms(platforms).output(output("1.0.0"));
        let made = retarget(&single, &options).unwrap().into_output().unwrap().to_vec();
        assert_eq!(modules(&made)[0].1, "StableHLO_v1.0.0");
    }
}

#[test]
fn merged_modules_are_rewritten_too() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let parts = split(&input, &SplitOptions::default()).unwrap();
    let parts: Vec<_> = parts.outputs.values().map(|output| output.to_vec()).collect();
    let inputs: Vec<_> = parts.iter().map(|part| MergeInput::new(part)).collect();
    let merged = merge(&inputs, &MergeOptions::default().output(output("1.8.0"))).unwrap().output.to_vec();
    let merged = modules(&merged);
    assert!(merged.len() == 3 && merged.iter().all(|(_, producer, _)| producer == "StableHLO_v1.8.0"));
}

#[test]
fn a_module_that_readers_of_the_version_read_stays() {
    for name in ["single.jax-0.12.0.1.jax_exported", "vjp.jax-0.4.30.jax_exported", "control.jax-0.5.3.jax_exported"] {
        let input = export(name);
        let kept = strip(&input, &StripOptions::default()).unwrap().output.to_vec();
        let own = StablehloVersion::of_producer(modules(&input)[0].1.as_bytes()).unwrap();
        for version in [own, StablehloVersion::NEWEST] {
            let options = StripOptions::default().output(OutputOptions::default().target_version(Some(version)));
            assert!(strip(&input, &options).unwrap().output.to_vec() == kept, "{name} for {version}");
        }
    }
}

#[test]
fn bytecode_is_that_of_the_version() {
    let input = export("single.jax-0.12.0.1.jax_exported");
    for (text, bytecode) in [("0.9.0", 0), ("0.10.0", 1), ("0.11.9", 1), ("0.12.0", 3), ("0.13.0", 3), ("0.14.0", 4), ("0.15.0", 6)] {
        let bytes = strip(&input, &StripOptions::default().output(output(text))).unwrap().output.to_vec();
        assert_eq!(modules(&bytes)[0].0, bytecode, "{text}");
        // It can be read and written as it is, and is not rewritten again.
        let exported = Exported::read(&bytes).unwrap();
        let module = exported.module.to_vec();
        assert!(Bytecode::read(&module, 0).unwrap().write().unwrap().to_vec() == module, "{text}");
        let again = strip(&bytes, &StripOptions::default().output(output(text))).unwrap().output.to_vec();
        assert!(again == bytes, "{text}");
    }
}

#[test]
fn steps_lead_where_one_leads() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let to = |input: &[u8], text: &str| strip(input, &StripOptions::default().output(output(text))).unwrap().output.to_vec();
    let steps = ["1.13.0", "1.9.0", "1.5.0", "1.0.0"].iter().fold(input.clone(), |bytes, text| to(&bytes, text));
    assert!(steps == to(&input, "1.0.0"));
}

#[test]
fn what_a_version_has_not_is_refused_and_nothing_is_written() {
    let input = export("demo.jax-0.12.0.1.jax_exported");
    let error = split(&input, &SplitOptions::default().output(output("1.0.0"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.hint(), Some("1.14.0 is the oldest version that has all of this module"));
    assert!(split(&input, &SplitOptions::default().output(output("1.14.0"))).is_ok());
    // Another platform has no need of it.
    assert!(split(&input, &SplitOptions::default().platforms([Platform::CPU]).output(output("1.0.0"))).is_ok());
    let room = Room::new();
    room.refused(&["split", "model.jax_exported", "--target-version", "1.0.0"]);
    let refused = room.refused(&["split", "model.jax_exported", "--target-version", "1.23.0"]);
    assert!(
        refused.stderr.contains("StableHLO 1.23.0 is newer than what jaxprism knows; it is one of 0.9.0 to 1.22.0"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.status, 2);
}

#[test]
fn without_shardings_an_older_version_will_do() {
    let room = Room::new();
    fs::write(room.path("sharded"), export("sharded.jax-0.12.0.1.jax_exported")).unwrap();
    assert!(
        room.refused(&["strip", "sharded", "--target-version", "1.10.0", "-o", "out"]).stderr.contains("`--strip-sdy` takes shardings out")
    );
    assert_eq!(room.run(&["strip", "sharded", "--target-version", "1.10.0", "--strip-sdy", "-o", "out"]).status, 0);
    assert_eq!(room.run(&["strip", "sharded", "--target-version", "1.11.0", "-o", "mixed"]).status, 0);
}

#[test]
fn bare_modules_and_text_are_rewritten_too() {
    let room = Room::new();
    let run =
        |kind: &str| room.run(&["split", "model.jax_exported", "-p", "cpu", "--emit", kind, "--target-version", "1.9.0", "-o", "-"]).stdout;
    assert!(run("mlirbc").starts_with(b"ML\xefR\x0dStableHLO_v1.9.0\0"));
    let text = String::from_utf8(run("mlir")).unwrap();
    assert!(text.contains("StableHLO_v1.9.0") && text.contains("vhlo.tanh_v1") && !text.contains("vhlo.tanh_v2"), "{text}");
}
