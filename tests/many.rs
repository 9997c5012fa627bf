//! Several inputs in one call: each on its own, told in their order, and nothing written where two want one name.

#[path = "common/room.rs"]
mod room;

use std::fs;
use std::process::Command;

use serde_json::Value;

use room::{DEMO, PLATFORMS, Room, export};

const SINGLE: &str = "single.jax-0.12.0.1.jax_exported";
const CALLBACKS: &str = "callbacks.jax-0.12.0.1.jax_exported";

/// A room with exports of these names, and some that are none.
fn room(names: &[&str]) -> Room {
    let room = Room::new();
    for name in names {
        let path = room.path(&format!("{name}.jax_exported"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = match *name {
            "text" => b"# Notes\n".to_vec(),
            "cut" => export(DEMO)[..5_000].to_vec(),
            "single" => export(SINGLE),
            _ if name.starts_with("callbacks") => export(CALLBACKS),
            _ => export(DEMO),
        };
        fs::write(path, bytes).unwrap();
    }
    room
}

#[test]
fn the_outputs_are_those_of_each_alone_however_many_at_a_time() {
    let names = ["a", "b", "single", "callbacks", "sub/c"];
    let room = room(&names);
    let inputs: Vec<String> = names.iter().map(|name| format!("{name}.jax_exported")).collect();
    for input in &inputs {
        assert_eq!(room.run(&["split", "-q", input, "-o", "alone", "--callbacks", "keep"]).status, 0);
    }
    let mut told = Vec::new();
    for jobs in ["1", "2", "7"] {
        let mut arguments = vec!["split", "--callbacks", "keep", "--jobs", jobs, "-o", jobs];
        arguments.extend(inputs.iter().map(String::as_str));
        let run = room.run(&arguments);
        assert_eq!(run.status, 0, "{}", run.stderr);
        for path in fs::read_dir(room.path("alone")).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap();
            assert_eq!(fs::read(&path).unwrap(), fs::read(room.path(jobs).join(name)).unwrap(), "{jobs} {}", path.display());
        }
        assert_eq!(fs::read_dir(room.path(jobs)).unwrap().count(), fs::read_dir(room.path("alone")).unwrap().count());
        told.push((String::from_utf8(run.stdout).unwrap(), run.stderr));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]));
    let (stdout, stderr) = &told[0];
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = stdout.lines().map(words).collect();
    assert_eq!(lines[0], ["platform", "outputs", "operations", "bytes"]);
    assert_eq!([&lines[1][..2], &lines[2][..2], &lines[3][..2]], [["cpu", "5"], ["cuda", "4"], ["tpu", "4"]]);
    let bytes: u64 = fs::read_dir(room.path("alone")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let total = stdout.lines().last().unwrap().replace(',', "");
    assert_eq!(total, format!("5 files: 5 split into 13 outputs of {bytes} bytes 0 failed"));
    assert_eq!(*stderr, "note: `single.jax_exported` was exported for one platform (`cpu`)\n");
}

#[test]
fn one_that_fails_stops_no_other_and_is_told_in_its_turn() {
    let room = room(&["a", "text", "cut", "b"]);
    fs::create_dir(room.path("out")).unwrap();
    fs::write(room.path("out/b.cuda.jax_exported"), "mine").unwrap();
    let inputs = ["text.jax_exported", "a.jax_exported", "missing", "cut.jax_exported", "b.jax_exported", "out"];
    for jobs in ["1", "3"] {
        let run = room.run(&[&["split", "-o", "out", "--force", "-j", jobs], &inputs[..4]].concat());
        assert_eq!(run.status, 1);
        let errors: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        let expected = [
            "error: cannot split `text.jax_exported`",
            "error: cannot read `missing`",
            "error: cannot split `cut.jax_exported`",
            "error: cannot split 3 of 4 files (2 format, 1 io)",
        ];
        assert_eq!(errors, expected);
        assert!(
            run.stderr.contains("\n\nCaused by:\n    0: not a JAX export: it looks like text\n\nhint: an export is what"),
            "{}",
            run.stderr
        );
        assert!(String::from_utf8(run.stdout).unwrap().ends_with("4 files: 1 split into 3 outputs of 30,459 bytes, 3 failed\n"));
        assert!(PLATFORMS.iter().all(|platform| room.path(&format!("out/a.{platform}.jax_exported")).is_file()));
    }
    // All or none of each: the one in whose way a file is writes nothing.
    let run = room.run(&[&["split", "-q", "-o", "out"], &inputs[4..]].concat());
    assert_eq!((run.status, run.stdout.len()), (1, 0));
    assert!(run.stderr.contains("error: cannot write `out/b.cuda.jax_exported`\n\nCaused by:\n    0: it exists\n"), "{}", run.stderr);
    assert!(run.stderr.ends_with("error: cannot split 2 of 2 files (1 refused, 1 io)\n"), "{}", run.stderr);
    assert_eq!(fs::read(room.path("out/b.cuda.jax_exported")).unwrap(), b"mine");
    assert!(!room.path("out/b.cpu.jax_exported").exists());
}

#[test]
fn names_that_clash_are_refused_before_anything_is_written() {
    let room = room(&["a/m", "b/m", "c"]);
    let refused = |arguments: &[&str], status: i32, cause: &str| {
        let run = room.refused(&[&["split"], arguments].concat());
        assert!(run.status == status && run.stderr.contains(cause), "{arguments:?}: {}", run.stderr);
    };
    let two = ["a/m.jax_exported", "b/m.jax_exported"];
    let cause = "error: cannot write `out/m.cpu.jax_exported`\n\nCaused by:\n    0: it would be written for `a/m.jax_exported` and for `b/m.jax_exported`\n";
    refused(&[two[0], "c.jax_exported", two[1], "-o", "out"], 1, cause);
    refused(&[two[0], "c.jax_exported", "-o", "out/{platform}"], 1, "it would be written for `a/m.jax_exported` and for `c.jax_exported`");
    refused(&[two[0], "c.jax_exported", "-o", "out/{stem}"], 1, "two outputs would have this name");
    refused(&["c.jax_exported", "./c.jax_exported", "-o", "out"], 1, "`c.jax_exported` and `./c.jax_exported` are the same file");
    refused(
        &[two[0], "c.jax_exported", "-o", "out", "--report", "out/c.tpu.jax_exported"],
        1,
        "it would be written for the report and for",
    );
    refused(&[two[0], two[1], "--manifest", "out/{stem}.json"], 1, "cannot write `out/m.json`");
    // The second run over `*.jax_exported`, which matches the outputs of the first as well.
    room.run(&["split", "-q", "c.jax_exported"]).done();
    refused(
        &["c.jax_exported", "c.cpu.jax_exported", "--force"],
        1,
        "cannot write `c.cpu.jax_exported`\n\nCaused by:\n    0: it is an input as well\n",
    );
    // Beside their inputs they do not clash.
    room.run(&["split", "-q", two[0], two[1]]).done();
    assert!(room.path("a/m.tpu.jax_exported").is_file() && room.path("b/m.tpu.jax_exported").is_file());
    // What they are for is known only from the files.
    assert_eq!(room.run(&["split", "-q", two[0], "c.cpu.jax_exported", "-p", "cpu", "-o", "d/{stem}"]).status, 0);
    assert!(room.path("d/m").is_file() && room.path("d/c.cpu").is_file());
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_status_2() {
    let room = room(&["a", "b"]);
    for arguments in [
        &["split", "a.jax_exported", "-"][..],
        &["split", "-j", "2"],
        &["split", "-j", "0", "a.jax_exported"],
        &["split", "a.jax_exported", "b.jax_exported", "-o", "-"],
        &["split", "a.jax_exported", "b.jax_exported", "--manifest", "m.json"],
        &["split", "a.jax_exported", "b.jax_exported", "--manifest", "{stem}.txt"],
        &["strip", "a.jax_exported", "b.jax_exported", "-o", "-"],
        &["strip", "a.jax_exported", "b.jax_exported", "-o", "new"],
    ] {
        assert_eq!(room.refused(arguments).status, 2, "{arguments:?}");
    }
}

#[test]
fn the_report_has_every_input_and_why_it_failed() {
    let room = room(&["a", "text", "callbacks"]);
    let inputs = ["a.jax_exported", "text.jax_exported", "callbacks.jax_exported"];
    let arguments = [&["split", "-q", "-o", "out", "--report", "report.json", "--manifest", "out/{stem}.json"], &inputs[..]].concat();
    assert_eq!(room.run(&arguments).status, 1);
    let text = fs::read_to_string(room.path("report.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["failed"], 2);
    let [a, broken, callbacks] = &report["inputs"].as_array().unwrap()[..] else { panic!("{report}") };
    let error = serde_json::json!({
        "kind": "format",
        "message": "cannot split `text.jax_exported`",
        "causes": ["not a JAX export: it looks like text"],
        "offset": null,
        "hint": "an export is what `jax.export.export(f)(…).serialize()` returns, written to a file in binary mode",
    });
    assert_eq!((&broken["input"], &broken["input_bytes"], &broken["error"]), (&"text.jax_exported".into(), &Value::Null, &error));
    assert_eq!((&broken["platforms"], &broken["outputs"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert_eq!(callbacks["error"]["kind"], "refused");
    assert!(room.path("out/a.json").is_file() && !room.path("out/callbacks.json").exists());
    // A part of it is the report on that input alone.
    let alone = room.run(&["split", "-o", "out", "--force", "a.jax_exported", "--report", "-"]).done();
    let mut alone: Value = serde_json::from_str(&alone).unwrap();
    alone["error"] = Value::Null;
    assert_eq!(*a, alone);
    // With `-j` it is the same for one input.
    let one = room.run(&["split", "-j", "1", "-o", "out", "--force", "a.jax_exported", "--report", "-"]).done();
    assert_eq!(serde_json::from_str::<Value>(&one).unwrap(), serde_json::json!({ "failed": 0, "inputs": [a] }));
}

#[test]
fn several_are_stripped_under_their_own_names() {
    let room = room(&["a", "sub/b", "text"]);
    let run = room.run(&["strip", "a.jax_exported", "sub/b.jax_exported", "text.jax_exported", "-o", "out/"]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("note: `sub/b.jax_exported` has no callbacks that can be stripped\nerror: cannot strip `text.jax_exported`\n")
    );
    let size = |name: &str| fs::metadata(room.path(name)).unwrap().len();
    let (before, after) = (size("a.jax_exported") * 2, size("out/a.jax_exported") + size("out/b.jax_exported"));
    let expected = format!("3 files: 2 stripped of 0 calls, {after} bytes of {before}, 1 failed\n");
    assert_eq!(String::from_utf8(run.stdout).unwrap().replace(",", ""), expected.replace(",", ""));
    assert!(
        room.path("out/a.jax_exported").is_file()
            && room.path("out/b.jax_exported").is_file()
            && !room.path("out/text.jax_exported").exists()
    );
    let clash = room.refused(&["strip", "a.jax_exported", "sub/b.jax_exported", "-o", "{stem}/../x"]);
    assert!(clash.stderr.contains("it would be written for"), "{}", clash.stderr);
    room.run(&["strip", "a.jax_exported", "sub/b.jax_exported", "-o", "new/{stem}.bin"]);
    assert!(room.path("new/a.bin").is_file() && room.path("new/b.bin").is_file());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_one_of_several() {
    let room = room(&["a"]);
    assert!(Command::new("mkfifo").arg(room.path("pipe")).status().unwrap().success());
    let run = room.run(&["split", "-q", "a.jax_exported", "pipe"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.starts_with("error: cannot read `pipe`\n\nCaused by:\n    0: it is no ordinary file\n"), "{}", run.stderr);
    assert!(room.path("a.tpu.jax_exported").is_file());
}
