//! What is written of an output: exports without gradients, modules in bytecode and in text.

#[path = "common/room.rs"]
mod room;

use std::fs;

use jaxprism::callbacks::{Policies, Policy};
use jaxprism::container::ResolvedSharding;
use jaxprism::{Emit, Exported, OutputOptions, Platform, SplitOptions, StripOptions, split, strip};

use room::{PLATFORMS, Room, export};

fn without_vjp() -> OutputOptions {
    OutputOptions::default().no_vjp(true)
}

#[test]
fn gradients_are_left_out_and_nothing_else_changes() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let (whole, short) = (SplitOptions::default(), SplitOptions::default().output(without_vjp()));
    let (whole, short) = (split(&input, &whole).unwrap(), split(&input, &short).unwrap());
    for (platform, output) in &whole.outputs {
        let bytes = [output, &short.outputs[platform]].map(|output| output.to_vec());
        let [before, after] = [&bytes[0], &bytes[1]].map(|bytes| Exported::read(bytes).unwrap());
        assert_eq!((before.levels().count(), after.levels().count()), (3, 1));
        assert_eq!(Exported { vjp: None, ..before }, after);
    }
    assert_eq!(short.report.outputs[0].levels.len(), 1);
    let stripped = strip(&input, &StripOptions::default().output(without_vjp())).unwrap().output.to_vec();
    let exported = Exported::read(&input).unwrap();
    assert_eq!(Exported { vjp: None, ..exported }, Exported::read(&stripped).unwrap());
}

#[test]
fn a_module_is_that_of_the_function_itself() {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let split = split(&input, &SplitOptions::default()).unwrap();
    let output = &split.outputs[&Platform::CUDA];
    assert_eq!(Emit::Export.of(output).unwrap().to_vec(), output.to_vec());
    assert_eq!(Emit::Mlirbc.of(output).unwrap().to_vec(), output.exported.module.to_vec());
    let text = String::from_utf8(Emit::Mlir.of(output).unwrap().to_vec()).unwrap();
    assert!(text.starts_with("module @jit_loss") && !text.contains("elided") && !text.contains("loc("), "{text}");
}

#[test]
fn stripping_is_the_default_of_strip() {
    let input = export("callbacks.jax-0.12.0.1.jax_exported");
    let rules = || Policies::default().otherwise(Policy::Strip).rules(["*=stub:zeros".parse().unwrap()]);
    let keep = StripOptions::default().policies(rules()).output(without_vjp());
    assert!(strip(&input, &keep).unwrap().levels.len() == 1);
}

#[test]
fn reports_have_the_bytes_of_what_is_written() {
    for kind in ["export", "mlirbc", "mlir"] {
        let room = Room::new();
        room.run(&["split", "model.jax_exported", "--emit", kind, "--report", "report.json", "-o", "out"]).done();
        let report: serde_json::Value = serde_json::from_slice(&fs::read(room.path("report.json")).unwrap()).unwrap();
        for output in report["outputs"].as_array().unwrap() {
            let path = room.path(output["path"].as_str().unwrap());
            assert_eq!(output["bytes"].as_u64().unwrap(), fs::metadata(path).unwrap().len(), "{kind}");
        }
    }
}

#[test]
fn what_ends_like_a_directory_is_no_file() {
    let room = Room::new();
    let refused = room.refused(&["size", "model.jax_exported", "--html", "new/"]).stderr;
    assert!(refused.contains("cannot write `new/`") && refused.contains("it is no name of a file"), "{refused}");
}

#[test]
fn files_have_the_extension_of_what_is_in_them() {
    let room = Room::new();
    room.run(&["split", "-q", "model.jax_exported", "--emit", "mlirbc"]).done();
    room.run(&["split", "-q", "model.jax_exported", "--emit", "mlir", "-p", "cpu,tpu", "-o", "text"]).done();
    room.run(&["split", "-q", "model.jax_exported", "--emit", "mlir", "-p", "cpu", "-o", "{stem}.{platform}.txt"]).done();
    assert_eq!(
        room.files(),
        [
            "model.cpu.mlirbc",
            "model.cpu.txt",
            "model.cuda.mlirbc",
            "model.jax_exported",
            "model.tpu.mlirbc",
            "text",
            "text/model.cpu.mlir",
            "text/model.tpu.mlir"
        ]
    );
    let read = |name: &str| fs::read(room.path(name)).unwrap();
    let run = room.run(&["split", "model.jax_exported", "-p", "cpu", "--emit", "mlirbc", "-o", "-"]);
    assert_eq!(run.stdout, read("model.cpu.mlirbc"));
    assert!(run.stdout.starts_with(b"ML\xefR"));
    assert_eq!(read("model.cpu.txt"), read("text/model.cpu.mlir"));
    // The text is that of `opt`, and becomes the same module but for its locations.
    assert_eq!(room.run(&["opt", "model.cpu.mlirbc"]).stdout, read("model.cpu.txt"));
    assert_eq!(room.run(&["strip", "model.jax_exported", "--emit", "mlir", "-o", "whole.mlir"]).status, 0);
    assert!(String::from_utf8(read("whole.mlir")).unwrap().contains("_platform_index"));
}

#[test]
fn opt_leaves_gradients_out_too() {
    let room = Room::new();
    fs::write(room.path("vjp"), export("vjp.jax-0.12.0.1.jax_exported")).unwrap();
    room.run(&["opt", "vjp", "--no-vjp", "-o", "short"]).done();
    let short = fs::read(room.path("short")).unwrap();
    assert_eq!(Exported::read(&short).unwrap().levels().count(), 1);
    let run = room.refused(&["opt", "vjp", "--no-vjp", "--level", "1"]);
    assert!(run.stderr.contains("there is no level 1") && run.stderr.contains("there is only level 0"), "{}", run.stderr);
}

/// What the pass does in a module is in testdata/golden/passes/strip-sdy; here is what the container says afterwards.
#[test]
fn without_shardings_an_export_is_for_one_device() {
    for name in ["sharded.jax-0.12.0.1.jax_exported", "sharded.jax-0.5.3.jax_exported"] {
        let input = export(name);
        let before = Exported::read(&input).unwrap();
        assert_eq!(before.device_count(), 4);
        let options = OutputOptions::default().strip_sdy(true);
        let split = split(&input, &SplitOptions::default().platforms([Platform::CPU]).output(options.clone())).unwrap();
        let stripped = strip(&input, &StripOptions::default().output(options)).unwrap();
        for bytes in [split.outputs[&Platform::CPU].to_vec(), stripped.output.to_vec()] {
            let after = Exported::read(&bytes).unwrap();
            assert_eq!(after.device_count(), 1);
            assert_eq!((after.input_avals(), after.output_avals()), (before.input_avals(), before.output_avals()));
            assert_eq!(after.input_shardings(), [ResolvedSharding::Unspecified; 2]);
            assert_eq!(after.output_shardings().len(), before.output_shardings().len());
            assert!(after.output_shardings().iter().all(|sharding| *sharding == ResolvedSharding::Unspecified));
            let module = after.module.to_vec();
            let is_inside = |text: &[u8]| module.windows(text.len()).any(|window| window == text);
            assert!(!is_inside(b"sdy") && !is_inside(b"mhlo.sharding") && !is_inside(b"Sharding"), "{name}");
        }
        assert!(split.report.outputs[0].levels[0].changes.shardings_stripped > 0);
    }
}

#[test]
fn the_pass_does_in_opt_what_the_option_does_elsewhere() {
    let room = Room::new();
    fs::write(room.path("sharded"), export("sharded.jax-0.12.0.1.jax_exported")).unwrap();
    room.run(&["opt", "sharded", "--pass", "strip-sdy", "-o", "by_pass"]).done();
    assert_eq!(room.run(&["strip", "sharded", "--strip-sdy", "-o", "by_option"]).status, 0);
    assert_eq!(fs::read(room.path("by_pass")).unwrap(), fs::read(room.path("by_option")).unwrap());
    // What has no shardings stays as it is.
    room.run(&["split", "-q", "model.jax_exported"]).done();
    room.run(&["split", "-q", "model.jax_exported", "--strip-sdy", "-o", "stripped"]).done();
    for platform in PLATFORMS {
        let name = format!("model.{platform}.jax_exported");
        assert_eq!(fs::read(room.path(&name)).unwrap(), fs::read(room.path(&format!("stripped/{name}"))).unwrap());
    }
}
