//! The built program from outside: what it writes, what it refuses, what it says, and that a failure leaves nothing behind.
//!
//! `BLESS=1` rewrites the expected texts in `testdata/golden/cli/`.

#[path = "common/room.rs"]
mod room;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use room::{DEMO, PLATFORMS, Room, Run, export, exports};

/// Compares with a file of `testdata/golden/cli/`.
fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden/cli").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; BLESS=1 rewrites it", path.display());
}

mod golden_texts {
    use super::*;

    #[test]
    fn help() {
        let room = Room::new();
        golden("jaxprism.help", &room.run(&["--help"]).done());
        golden("split.help", &room.run(&["split", "--help"]).done());
        golden("strip.help", &room.run(&["strip", "--help"]).done());
        golden("retarget.help", &room.run(&["retarget", "--help"]).done());
        golden("merge.help", &room.run(&["merge", "--help"]).done());
        golden("info.help", &room.run(&["info", "--help"]).done());
        golden("callbacks.help", &room.run(&["callbacks", "--help"]).done());
        golden("check.help", &room.run(&["check", "--help"]).done());
        golden("verify.help", &room.run(&["verify", "--help"]).done());
        golden("diff.help", &room.run(&["diff", "--help"]).done());
        golden("print.help", &room.run(&["print", "--help"]).done());
        golden("size.help", &room.run(&["size", "--help"]).done());
        golden("opt.help", &room.run(&["opt", "--help"]).done());
        golden("explain.help", &room.run(&["explain", "--help"]).done());
        golden("completions.help", &room.run(&["completions", "--help"]).done());
        golden("man.help", &room.run(&["man", "--help"]).done());
    }

    #[test]
    fn explain_shows_the_documentation_of_a_pass() {
        let room = Room::new();
        for pass in &jaxprism::passes::PASSES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/passes").join(pass.name.replace('-', "_")).with_extension("md");
            assert_eq!(room.run(&["explain", pass.name]).done(), fs::read_to_string(path).unwrap(), "{}", pass.name);
        }
    }

    #[test]
    fn info_of_every_kind_of_export() {
        let room = Room::new();
        for name in ["demo.jax-0.12.0.1", "vjp.jax-0.4.30", "sharded.jax-0.12.0.1", "linalg.jax-0.12.0.1", "single.jax-0.12.0.1"] {
            let path = exports().join(format!("{name}.jax_exported"));
            golden(&format!("{name}.info"), &room.run(&["info", path.to_str().unwrap()]).done());
        }
        golden(
            "single.jax-0.12.0.1.json",
            &room.run(&["info", "--json", exports().join("single.jax-0.12.0.1.jax_exported").to_str().unwrap()]).done(),
        );
    }

    #[test]
    fn sizes() {
        let room = Room::new();
        for name in ["demo.jax-0.12.0.1", "vjp.jax-0.4.30", "callbacks.jax-0.12.0.1"] {
            let path = exports().join(format!("{name}.jax_exported"));
            golden(&format!("{name}.size"), &room.run(&["size", path.to_str().unwrap()]).done());
        }
        let path = exports().join("single.jax-0.12.0.1.jax_exported");
        golden("single.jax-0.12.0.1.size.json", &room.run(&["size", "--json", path.to_str().unwrap()]).done());
        golden("single.jax-0.12.0.1.top.size", &room.run(&["size", "--top", "2", path.to_str().unwrap()]).done());
    }

    #[test]
    fn callbacks_lowered_and_not() {
        let room = Room::new();
        for name in ["callbacks.jax-0.12.0.1", "lowered.jax-0.12.0.1", "transfers.jax-0.12.0.1", "demo.jax-0.12.0.1"] {
            let path = exports().join(format!("{name}.jax_exported"));
            golden(&format!("{name}.callbacks"), &room.run(&["callbacks", path.to_str().unwrap()]).done());
        }
        let path = exports().join("callbacks.jax-0.12.0.1.jax_exported");
        golden("callbacks.jax-0.12.0.1.callbacks.json", &room.run(&["callbacks", "--json", path.to_str().unwrap()]).done());
    }

    #[test]
    fn checks() {
        let room = Room::new();
        for (name, arguments, file) in [
            ("callbacks", &[][..], "callbacks.jax-0.12.0.1.check"),
            ("callbacks", &["-p", "tpu"], "callbacks.jax-0.12.0.1.tpu.check"),
            ("callbacks", &["-p", "tpu,cpu", "--json"], "callbacks.jax-0.12.0.1.check.json"),
            ("lowered", &[], "lowered.jax-0.12.0.1.check"),
            ("transfers", &[], "transfers.jax-0.12.0.1.check"),
        ] {
            fs::copy(exports().join(format!("{name}.jax-0.12.0.1.jax_exported")), room.path("model")).unwrap();
            let run = room.run(&[&["check", "--no-callbacks", "model"], arguments].concat());
            assert_eq!((run.status, &*run.stderr), (1, ""), "{file}");
            golden(file, &String::from_utf8(run.stdout).unwrap());
        }
    }

    #[test]
    fn verifications() {
        let room = Room::new();
        fs::copy(exports().join("linalg.jax-0.12.0.1.jax_exported"), room.path("linalg")).unwrap();
        room.run(&["split", "-q", "linalg", "-o", "{platform}"]).done();
        golden("linalg.jax-0.12.0.1.verify", &room.run(&["verify", "cpu", "cuda", "tpu", "--against", "linalg"]).done());
        // What another platform runs, under the name of this one.
        let cuda = fs::read(room.path("cuda")).unwrap();
        let mut exported = jaxprism::Exported::read(&cuda).unwrap();
        exported.platforms = vec![jaxprism::Platform::CPU];
        exported.jax_version = None;
        fs::write(room.path("wrong"), exported.write().unwrap().to_vec()).unwrap();
        for (arguments, file) in [(&[][..], "linalg.jax-0.12.0.1.wrong.verify"), (&["--json"], "linalg.jax-0.12.0.1.wrong.verify.json")] {
            let run = room.run(&[&["verify", "wrong", "tpu", "--against", "linalg"], arguments].concat());
            assert_eq!((run.status, &*run.stderr), (1, ""), "{file}");
            golden(file, &String::from_utf8(run.stdout).unwrap());
        }
    }

    #[test]
    fn differences() {
        let room = Room::new();
        fs::copy(exports().join("linalg.jax-0.12.0.1.jax_exported"), room.path("linalg")).unwrap();
        fs::copy(exports().join("single.jax-0.12.0.1.jax_exported"), room.path("single")).unwrap();
        room.run(&["split", "-q", "linalg", "-o", "{platform}"]).done();
        room.run(&["split", "-q", "linalg", "-p", "cpu", "--strip-locations", "-o", "stripped.{platform}"]).done();
        for (status, arguments, file) in [
            (1, &["linalg", "cpu"][..], "linalg.jax-0.12.0.1.diff"),
            (1, &["cpu", "cuda"], "linalg.jax-0.12.0.1.platforms.diff"),
            (1, &["cpu", "cuda", "--json"], "linalg.jax-0.12.0.1.platforms.diff.json"),
            (1, &["cpu", "tpu", "--max", "2"], "linalg.jax-0.12.0.1.cut.diff"),
            (1, &["cpu", "stripped.cpu"], "linalg.jax-0.12.0.1.locations.diff"),
            (0, &["cpu", "stripped.cpu", "--ignore", "locations,names"], "linalg.jax-0.12.0.1.ignored.diff"),
            (0, &["single", "single"], "single.jax-0.12.0.1.identical.diff"),
            (1, &["single", "cpu"], "single.jax-0.12.0.1.other.diff"),
        ] {
            let run = room.run(&[&["diff"], arguments].concat());
            assert_eq!((run.status, &*run.stderr), (status, ""), "{file}");
            golden(file, &String::from_utf8(run.stdout).unwrap());
            let quiet = room.run(&[&["diff", "-q"], arguments.split_at(2).0].concat());
            let expected = if arguments.contains(&"--ignore") { 1 } else { status };
            assert_eq!((quiet.status, quiet.stdout.len(), &*quiet.stderr), (expected, 0, ""), "{file}");
        }
    }

    #[test]
    fn version() {
        assert_eq!(Room::new().run(&["--version"]).done(), format!("jaxprism {}\n", env!("CARGO_PKG_VERSION")));
    }
}

mod outputs {
    use super::*;

    #[test]
    fn go_beside_the_input() {
        let room = Room::new();
        let text = room.run(&["split", "model.jax_exported"]).done();
        let expected = ["model.cpu.jax_exported", "model.cuda.jax_exported", "model.jax_exported", "model.tpu.jax_exported"];
        assert_eq!(room.files(), expected);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        for (line, platform) in lines[1..].iter().zip(PLATFORMS) {
            assert!(line.starts_with(platform) && line.ends_with(&format!("model.{platform}.jax_exported")), "{line}");
        }
    }

    #[test]
    fn go_into_a_new_directory_for_the_platforms_asked_for() {
        let room = Room::new();
        assert_eq!(room.run(&["split", "-q", "model.jax_exported", "-p", "tpu", "--platform=cpu,tpu", "-o", "a/b"]).done(), "");
        let expected = ["a", "a/b", "a/b/model.cpu.jax_exported", "a/b/model.tpu.jax_exported", "model.jax_exported"];
        assert_eq!(room.files(), expected);
    }

    #[test]
    fn take_their_names_from_a_template() {
        let room = Room::new();
        room.run(&["split", "model.jax_exported", "-o", "{platform}/{stem}-x.bin"]).done();
        assert!(PLATFORMS.iter().all(|platform| room.path(&format!("{platform}/model-x.bin")).is_file()));
        room.run(&["split", "model.jax_exported", "-o", "{stem}", "-p", "cpu"]).done();
        assert!(room.path("model").is_file());
    }

    #[test]
    fn of_standard_input_are_called_export() {
        let room = Room::new();
        for arguments in [&["split", "-p", "cpu"][..], &["split", "-", "-p", "cuda"]] {
            room.run_with_input(arguments, &export(DEMO)).done();
        }
        assert_eq!(room.files(), ["export.cpu.jax_exported", "export.cuda.jax_exported", "model.jax_exported"]);
    }

    #[test]
    fn are_the_same_on_standard_output() {
        let room = Room::new();
        room.run(&["split", "model.jax_exported"]).done();
        let run = room.run(&["split", "model.jax_exported", "-p", "cuda", "-o", "-"]);
        assert_eq!((run.status, run.stderr), (0, String::new()));
        assert_eq!(run.stdout, fs::read(room.path("model.cuda.jax_exported")).unwrap());
    }

    #[test]
    fn replace_files_by_force_and_keep_their_permissions() {
        let room = Room::new();
        let path = room.path("model.cpu.jax_exported");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions.clone()).unwrap();
        room.run(&["split", "--force", "model.jax_exported"]).done();
        assert!(fs::read(&path).unwrap().len() > 1_000);
        assert_eq!(fs::metadata(&path).unwrap().permissions(), permissions);
    }

    #[cfg(unix)]
    #[test]
    fn have_the_permissions_of_any_new_file_and_go_behind_links() {
        let room = Room::new();
        fs::create_dir(room.path("real")).unwrap();
        fs::write(room.path("real/file"), "old").unwrap();
        std::os::unix::fs::symlink("real/file", room.path("model.cpu.jax_exported")).unwrap();
        room.run(&["split", "--force", "model.jax_exported"]).done();
        assert!(room.path("model.cpu.jax_exported").is_symlink());
        assert!(fs::read(room.path("real/file")).unwrap().len() > 1_000);
        fs::write(room.path("new"), "").unwrap();
        let mode = |name: &str| fs::metadata(room.path(name)).unwrap().permissions();
        assert_eq!(mode("model.tpu.jax_exported"), mode("new"));
    }

    #[test]
    fn come_with_a_report() {
        let room = Room::new();
        room.run(&["split", "-q", "model.jax_exported", "--report", "report.json"]).done();
        let report: Value = serde_json::from_slice(&fs::read(room.path("report.json")).unwrap()).unwrap();
        assert_eq!(report["input"], "model.jax_exported");
        assert_eq!(report["input_bytes"], export(DEMO).len());
        assert_eq!(report["platforms"], serde_json::json!(PLATFORMS));
        for (output, platform) in report["outputs"].as_array().unwrap().iter().zip(PLATFORMS) {
            assert_eq!(output["platform"], platform);
            let path = room.path(output["path"].as_str().unwrap());
            assert_eq!(output["bytes"], fs::metadata(path).unwrap().len());
            let level = &output["levels"][0];
            assert!(level["operations_before"].is_u64() && level["operations"].is_u64() && level["functions"].is_u64());
            assert!(level["changes"]["cases_resolved"].as_u64().unwrap() > 0);
        }
        let text = room.run(&["split", "--force", "model.jax_exported", "--report", "-"]).done();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), report);
    }

    #[test]
    fn say_what_was_saved_on_locations_where_that_was_asked_for() {
        let room = Room::new();
        let sizes = |arguments: &[&str]| -> (String, Vec<i64>, Value) {
            let text = room.run(&[&["split", "--force", "model.jax_exported"], arguments].concat()).done();
            let report = room.run(&[&["split", "--force", "model.jax_exported", "--report", "-"], arguments].concat()).done();
            let files = PLATFORMS.map(|platform| fs::metadata(room.path(&format!("model.{platform}.jax_exported"))).unwrap().len() as i64);
            (text, files.to_vec(), serde_json::from_str(&report).unwrap())
        };
        let (text, before, report) = sizes(&[]);
        assert!(!text.contains("locations") && report["outputs"][0]["location_bytes_saved"].is_null());
        for (option, count) in [("--strip-locations", "locations_stripped"), ("--redact-paths", "paths_redacted")] {
            let (text, after, report) = sizes(&[option]);
            assert!(text.starts_with("platform") && text.contains("saved on locations"), "{text}");
            for (output, (before, after)) in report["outputs"].as_array().unwrap().iter().zip(before.iter().zip(after)) {
                let saved = output["location_bytes_saved"].as_i64().unwrap();
                assert_eq!(output["levels"][0]["location_bytes_saved"], saved);
                // The module's end is aligned, so that the file may differ by a little more or less.
                assert!((before - after - saved).abs() < 16, "{before} {after} {saved}");
                // The file of the demo was exported without a directory.
                assert_eq!(output["levels"][0]["changes"][count].as_u64().unwrap() > 0, option == "--strip-locations");
            }
        }
        room.refused(&["split", "model.jax_exported", "--strip-locations", "--redact-paths", "-o", "x/"]);
    }

    #[test]
    fn of_one_platform_come_with_a_note() {
        let room = Room::new();
        fs::write(room.path("single.jax_exported"), export("single.jax-0.12.0.1.jax_exported")).unwrap();
        let run = room.run(&["split", "single.jax_exported"]);
        assert_eq!((run.status, &*run.stderr), (0, "note: `single.jax_exported` was exported for one platform (`cpu`)\n"));
        assert!(room.path("single.cpu.jax_exported").is_file());
    }
}

mod refusals {
    use super::*;

    const WHAT: &str = "hint: an export is what `jax.export.export(f)(…).serialize()` returns, written to a file in binary mode\n";

    #[test]
    fn inputs_that_cannot_be_read() {
        let room = Room::new();
        for verb in [&["split"][..], &["info"], &["size"], &["print"], &["opt"], &["callbacks"], &["check", "--no-callbacks"]] {
            room.refused(&[verb, &["missing"]].concat())
                .says(2, "error: cannot read `missing`\n\nCaused by:\n    0: No such file or directory (os error 2)\n");
            room.refused(&[verb, &["."]].concat()).says(2, "error: cannot read `.`\n\nCaused by:\n    0: it is a directory, not a file\n");
        }
    }

    #[test]
    fn inputs_that_are_no_exports() {
        let room = Room::new();
        let bytecode = b"ML\xefR\x0dStableHLO_v1.0.0\0";
        for (bytes, cause, hint) in [
            (&b""[..], "it is empty", WHAT),
            (b"# Notes\n", "it looks like text", WHAT),
            (bytecode, "it looks like MLIR bytecode", "hint: a module alone lacks the platforms and the signature"),
        ] {
            fs::write(room.path("input"), bytes).unwrap();
            let run = room.refused(&["split", "input"]);
            let expected = format!("error: cannot split `input`\n\nCaused by:\n    0: not a JAX export: {cause}\n\n{hint}");
            assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
            assert_eq!(run.status, 1);
            assert_eq!(room.run_with_input(&["split"], bytes).stderr, run.stderr.replace("`input`", "standard input"));
        }
        assert_eq!(room.files(), ["input", "model.jax_exported"]);
    }

    #[test]
    fn truncated_inputs_at_every_length() {
        let room = Room::new();
        let whole = export(DEMO);
        for length in (1..whole.len()).step_by(whole.len() / 40) {
            fs::write(room.path("input"), &whole[..length]).unwrap();
            let run = room.refused(&["split", "input", "-o", "out/deep"]);
            assert_eq!(run.status, 1, "{}", run.stderr);
            assert_eq!(room.refused(&["info", "input"]).status, 1);
            assert_eq!(room.refused(&["size", "input", "--html", "page.html"]).status, 1);
            assert_eq!(room.refused(&["callbacks", "input"]).status, 1);
            assert_eq!(room.refused(&["check", "--no-callbacks", "input"]).status, 1);
        }
    }

    #[test]
    fn platforms_that_there_are_not() {
        let room = Room::new();
        let expected = "error: cannot split `model.jax_exported`\n\nCaused by:\n    0: the export has no platform `rocm`\n\nhint: it has `cpu`, `cuda`, `tpu`\n";
        room.refused(&["split", "model.jax_exported", "-p", "rocm"]).says(1, expected);
        let run = room.refused(&["split", "model.jax_exported", "-p", "gpu"]);
        assert!(run.status == 2 && run.stderr.contains("use `cuda` or `rocm`"), "{}", run.stderr);
    }

    #[test]
    fn outputs_that_exist() {
        let room = Room::new();
        fs::write(room.path("model.tpu.jax_exported"), "mine").unwrap();
        let expected =
            "error: cannot write `model.tpu.jax_exported`\n\nCaused by:\n    0: it exists\n\nhint: `--force` replaces files that exist\n";
        room.refused(&["split", "model.jax_exported"]).says(1, expected);
        assert_eq!(fs::read(room.path("model.tpu.jax_exported")).unwrap(), b"mine");
        fs::write(room.path("report"), "mine").unwrap();
        room.refused(&["split", "model.jax_exported", "-o", "new/dir", "--report", "report"]);
    }

    #[test]
    fn the_input_as_an_output() {
        let room = Room::new();
        let run = room.refused(&["split", "--force", "model.jax_exported", "-p", "cpu", "-o", "{stem}.jax_exported"]);
        assert!(run.status == 1 && run.stderr.contains("0: it is the input\n"), "{}", run.stderr);
        assert_eq!(fs::read(room.path("model.jax_exported")).unwrap(), export(DEMO));
    }

    #[test]
    fn outputs_of_opt_that_exist_or_are_the_input() {
        let room = Room::new();
        fs::write(room.path("mine.mlir"), "mine").unwrap();
        let run = room.refused(&["opt", "model.jax_exported", "-o", "mine.mlir"]);
        assert!(run.status == 1 && run.stderr.contains("0: it exists\n"), "{}", run.stderr);
        let run = room.refused(&["opt", "model.jax_exported", "--force", "-o", "model.jax_exported"]);
        assert!(run.status == 1 && run.stderr.contains("0: it is the input\n"), "{}", run.stderr);
        assert_eq!(fs::read(room.path("model.jax_exported")).unwrap(), export(DEMO));
        assert_eq!(fs::read(room.path("mine.mlir")).unwrap(), b"mine");
    }

    #[test]
    fn two_outputs_of_one_name() {
        let room = Room::new();
        let run = room.refused(&["split", "model.jax_exported", "-o", "x/{stem}"]);
        assert!(run.status == 1 && run.stderr.contains("0: two outputs would have this name\n"), "{}", run.stderr);
        room.refused(&["split", "model.jax_exported", "-o", "y/{platform}", "--report", "y/cpu"]);
    }

    #[test]
    fn places_that_cannot_be_written_to() {
        let room = Room::new();
        fs::write(room.path("file"), "").unwrap();
        assert_eq!(room.refused(&["split", "model.jax_exported", "-o", "file"]).status, 1);
        assert_eq!(room.refused(&["split", "model.jax_exported", "-o", "file/deeper"]).status, 2);
        assert_eq!(room.refused(&["split", "model.jax_exported", "-o", "out.jax_exported"]).status, 1);
        fs::create_dir(room.path("model.cuda.jax_exported")).unwrap();
        assert_eq!(room.refused(&["split", "--force", "model.jax_exported"]).status, 1);
        // The second of three names is too long, and so is found out when the files get their names.
        let long = format!("{}{{platform}}", "x".repeat(252));
        assert_eq!(room.refused(&["split", "model.jax_exported", "-o", &format!("sub/{long}")]).status, 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_without_permission() {
        use std::os::unix::fs::PermissionsExt;
        let room = Room::new();
        fs::create_dir(room.path("locked")).unwrap();
        fs::set_permissions(room.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
        if fs::write(room.path("locked/probe"), "").is_ok() {
            eprintln!("left out: root may write anywhere");
            return;
        }
        let run = room.refused(&["split", "model.jax_exported", "-o", "locked"]);
        assert!(run.status == 2 && run.stderr.contains("Permission denied"), "{}", run.stderr);
    }

    #[cfg(unix)]
    #[test]
    fn a_limit_of_file_sizes_is_an_error_and_no_signal() {
        let room = Room::new();
        let script = format!("ulimit -f 8; exec '{}' split model.jax_exported -o a/b", env!("CARGO_BIN_EXE_jaxprism"));
        let output = Command::new("sh").args(["-c", &script]).current_dir(room.0.path()).output().unwrap();
        let run = Run::from(output);
        assert!(run.status == 2 && run.stderr.contains("File too large"), "{}", run.stderr);
        assert_eq!(room.files(), ["model.jax_exported"]);
    }

    #[test]
    fn arguments_that_do_not_fit_together() {
        let room = Room::new();
        for arguments in [
            &["split", "model.jax_exported", "-o", "-", "--report", "-"][..],
            &["split", "model.jax_exported", "--unknown"],
            &["info", "a", "b"],
            &["check", "model.jax_exported"],
            &["check", "model.jax_exported", "--no-callbacks", "-p", "gpu"],
            &["unknown"],
            &["print", "model.jax_exported", "--canonical", "--locations"],
            &["print", "model.jax_exported", "--constants", "many"],
            &["opt", "model.jax_exported", "--list-passes"],
            &["opt", "model.jax_exported", "--pass", "unknown"],
            &["opt", "model.jax_exported", "--pass", "prune=cpu"],
            &["opt", "model.jax_exported", "--pass", "resolve-platform=cpu", "--platform", "tpu"],
            &["opt", "model.jax_exported", "--print-ir-after", "unknown"],
        ] {
            assert_eq!(room.refused(arguments).status, 2, "{arguments:?}");
        }
        let run = room.refused(&["split", "model.jax_exported", "-o", "-"]);
        assert!(run.status == 1 && run.stderr.contains("hint: choose one with `-p`"), "{}", run.stderr);
    }
}

mod print {
    use super::*;

    #[test]
    fn every_level_of_every_export() {
        let room = Room::new();
        for entry in fs::read_dir(exports()).unwrap() {
            let path = entry.unwrap().path();
            let path = path.to_str().unwrap();
            let levels =
                serde_json::from_str::<Value>(&room.run(&["info", "--json", path]).done()).unwrap()["levels"].as_array().unwrap().len();
            for level in (0..levels).map(|level| level.to_string()) {
                for options in [&[][..], &["--canonical"], &["--stablehlo"], &["--constants", "all", "--locations"]] {
                    let text = room.run(&[&["print", path, "--level", &level], options].concat()).done();
                    assert!(text.contains("\n  func.func public @main("), "{path} {level} {options:?}");
                }
            }
            let said = room.refused(&["print", path, "--level", &levels.to_string()]);
            assert!(said.status == 1 && said.stderr.contains(&format!("0: there is no level {levels}\n")), "{}", said.stderr);
        }
    }

    #[test]
    fn constants_are_elided_as_asked_for() {
        let room = Room::new();
        let lines = |constants: &[&str], what: &str| {
            let text = room.run(&[&["print", "model.jax_exported"], constants].concat()).done();
            text.lines().filter(|line| line.contains("constant_v1") && line.contains(what)).count()
        };
        let all = lines(&[], "dense<");
        assert_eq!(lines(&[], "dense<elided>"), 3);
        assert_eq!(lines(&["--constants", "16"], "dense<elided>"), 3);
        assert_eq!(lines(&["--constants", "256"], "dense<elided>"), 0);
        assert_eq!(lines(&["--constants", "all"], "dense<\"0x"), 3);
        assert_eq!(lines(&["--constants", "none"], "dense<elided>"), all);
        assert_eq!(lines(&["--canonical"], "dense<hash \""), 3);
        assert_eq!(lines(&["--canonical", "--constants", "none"], "dense<elided>"), all);
        for wrong in ["some", "-1", ""] {
            assert_eq!(room.refused(&["print", "model.jax_exported", &format!("--constants={wrong}")]).status, 2);
        }
    }

    #[test]
    fn one_function() {
        let room = Room::new();
        let text = room.run(&["print", "model.jax_exported", "--function", "cumsum"]).done();
        assert!(
            text.starts_with("func.func private @cumsum(") && text.ends_with("\n}\n") && text.matches("func.func ").count() == 1,
            "{text}"
        );
        let whole = room.run(&["print", "model.jax_exported"]).done().replace("\n  ", "\n");
        assert!(whole.contains(&text));
        let expected =
            "error: cannot print `model.jax_exported`\n\nCaused by:\n    0: the module has no function `nope`\n\nhint: it has `main`, ";
        let said = room.refused(&["print", "model.jax_exported", "--function", "nope"]);
        assert!(said.status == 1 && said.stderr.starts_with(expected) && said.stderr.ends_with(" and 1 more\n"), "{}", said.stderr);
        assert_eq!(room.refused(&["print", "model.jax_exported", "--function", "main", "--canonical"]).status, 2);
    }

    #[test]
    fn text_for_reading_says_so() {
        let room = Room::new();
        let text = room.run(&["print", "model.jax_exported", "--stablehlo"]).done();
        assert!(
            text.starts_with(
                "// For reading: the StableHLO that this module stands for. This text cannot be read back.\nmodule @jit_attend"
            )
        );
        assert!(text.contains(" = stablehlo.constant dense<16.0> : tensor<f32>\n") && !text.contains("vhlo"), "{text}");
        fs::write(room.path("friendly.mlir"), &text).unwrap();
        assert_eq!(room.refused(&["print", "friendly.mlir"]).status, 1);
    }

    #[test]
    fn from_standard_input_and_of_every_kind_of_file() {
        let room = Room::new();
        let whole = room.run(&["print", "model.jax_exported", "--constants", "all", "--locations"]).done();
        fs::write(room.path("model.mlir"), &whole).unwrap();
        room.run(&["opt", "model.jax_exported", "-o", "model.mlirbc"]).done();
        for name in ["model.jax_exported", "model.mlirbc", "model.mlir"] {
            assert_eq!(room.run(&["print", name, "--constants", "all", "--locations"]).done(), whole, "{name}");
            let bytes = fs::read(room.path(name)).unwrap();
            for arguments in [&["print", "-", "--constants", "all", "--locations"][..], &["print", "--constants=all", "--locations"]] {
                assert_eq!(room.run_with_input(arguments, &bytes).done(), whole, "{name}");
            }
        }
    }

    #[test]
    fn of_inputs_that_are_nothing_says_so() {
        let room = Room::new();
        let said = |bytes: &[u8]| {
            fs::write(room.path("input"), bytes).unwrap();
            let run = room.refused(&["print", "input"]);
            assert_eq!(run.status, 1, "{}", run.stderr);
            assert_eq!(
                room.run_with_input(&["print"], bytes).stderr,
                run.stderr.replace("`input`", "standard input").replace("input:", "<stdin>:")
            );
            run.stderr
        };
        assert!(said(b"").contains("0: not a JAX export: it is empty\n"));
        assert!(said(b" \n").contains("0: not a JAX export"));
        assert!(said(b"\x01\xff garbage, no text").contains("0: not a JAX export"));
        assert!(said(b"ML\xefR").contains("at offset 0x4"));
        assert!(said(b"# Notes\n").contains("0: MLIR cannot read the text\n    1: "));
        assert!(said(b"module {").contains("(line 1, column "));
        assert!(said(b"module { \"vhlo.foo_v1\"() : () -> () }").contains("0: operation `vhlo.foo_v1` is not known, at "));
        let export = export(DEMO);
        assert!(said(&export[..export.len() / 2]).contains("0: not a JAX export, or a damaged one\n"));
    }
}

mod opt {
    use super::*;

    #[test]
    fn without_a_pass_changes_nothing() {
        let room = Room::new();
        for entry in fs::read_dir(exports()).unwrap() {
            let path = entry.unwrap().path();
            let path = path.to_str().unwrap();
            let run = room.run(&["opt", path, "--emit", "export"]);
            assert_eq!((run.status, &*run.stderr), (0, ""));
            let (before, after) = (fs::read(path).unwrap(), run.stdout);
            let modules = |bytes: &[u8]| {
                let exported = jaxprism::Exported::read(bytes).unwrap();
                exported.levels().map(|exported| exported.module.to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(modules(&before), modules(&after), "{path}");
            for (level, module) in modules(&before).into_iter().enumerate() {
                let level = level.to_string();
                let run = room.run(&["opt", path, "--level", &level, "--emit", "mlirbc"]);
                assert!(run.status == 0 && run.stdout == module, "{path} {level}");
                let text = room.run(&["opt", path, "--level", &level, "--locations"]).done();
                let run = room.run_with_input(&["opt", "--emit", "mlirbc"], text.as_bytes());
                assert!(run.status == 0 && run.stdout == module, "{path} {level}");
                assert_eq!(room.run_with_input(&["opt", "--locations"], text.as_bytes()).done(), text);
                assert_eq!(room.run_with_input(&["opt", "--locations"], &module).done(), text);
            }
        }
    }

    #[test]
    fn elided_constants_pass_through_text_alone() {
        let room = Room::new();
        let text = room.run(&["print", "model.jax_exported"]).done();
        fs::write(room.path("elided.mlir"), &text).unwrap();
        assert_eq!(room.run(&["opt", "elided.mlir"]).done(), text);
        let expected = "error: cannot optimize `elided.mlir`\n\nCaused by:\n    0: the constant is elided of the operation `vhlo.constant_v1` at elided.mlir:16:11\n\nhint: print the module with `--constants all`, or keep to text\n";
        room.refused(&["opt", "elided.mlir", "-o", "elided.mlirbc"]).says(1, expected);
    }

    #[test]
    fn says_what_passes_did() {
        let room = Room::new();
        let arguments = ["opt", "model.jax_exported", "--pass", "resolve-platform=cuda", "--pass", "fold-cases", "--timing"];
        let run = room.run(&[&arguments[..], &["-o", "out.mlir", "--print-ir-after", "fold-cases"]].concat());
        assert_eq!((run.status, &*run.stdout), (0, &b""[..]));
        assert!(run.stderr.starts_with("// -----// after fold-cases, level 0 //----- //\nmodule @jit_attend"), "{}", run.stderr);
        assert!(run.stderr.contains("\nlevel 0:\nresolve-platform  ") && run.stderr.contains("cases resolved: "), "{}", run.stderr);
        let text = fs::read_to_string(room.path("out.mlir")).unwrap();
        assert!(text.contains("dense<\"0x") && !text.contains("elided"), "what is written is whole");
        let run = room.run(&[&arguments[..], &["--print-ir-after", "all", "--emit", "export", "-o", "out"]].concat());
        assert_eq!(run.stderr.matches("// -----// after ").count(), 2);
        assert!(jaxprism::Exported::read(&fs::read(room.path("out")).unwrap()).unwrap().platforms.len() == 1);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let room = Room::new();
        room.run(&["opt", "model.jax_exported", "-o", "model.mlir"]).done();
        for (arguments, status, message) in [
            (&["opt", "model.jax_exported", "--pass", "nope"][..], 2, "there is no such pass; there are `resolve-platform`, "),
            (&["opt", "model.jax_exported", "--print-ir-after", "nope"], 2, "`nope`: there is no such pass"),
            (&["opt", "model.jax_exported", "--pass", "prune=x"], 2, "prune"),
            (&["opt", "model.jax_exported", "--level", "1"], 1, "there is no level 1"),
            (&["opt", "model.jax_exported", "--pass", "resolve-platform"], 1, "`resolve-platform` needs a platform"),
            (&["opt", "model.jax_exported", "--pass", "resolve-platform=rocm"], 1, "the module is not for the platform `rocm`"),
            (&["opt", "model.mlir", "--pass", "resolve-platform=cpu"], 1, "the module's platforms are not known"),
            (&["opt", "model.mlir", "-o", "out.jax_exported"], 1, "a module alone does not become an export"),
            (&["opt", "model.mlir", "-o", "model.mlir", "--force"], 1, "it is the input"),
            (&["opt", "model.jax_exported", "-o", "model.mlir"], 1, "it exists"),
            (&["opt", "model.jax_exported", "--list-passes"], 2, "--list-passes"),
            (&["explain", "nope"], 2, "nothing is known about it"),
        ] {
            let run = room.refused(arguments);
            assert!(run.status == status && run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
        }
        assert!(room.run(&["opt", "--list-passes"]).done().lines().count() >= jaxprism::passes::PASSES.len());
        for pass in &jaxprism::passes::PASSES {
            assert!(room.run(&["explain", pass.name]).done().contains("\n# What it does\n"), "{}", pass.name);
        }
    }
}

#[test]
fn a_check_that_passes_says_so_in_a_line() {
    let room = Room::new();
    let check = |arguments: &[&str]| room.run(&[&["check", "--no-callbacks"], arguments].concat()).done();
    let line = "has no Python callbacks, and no custom calls but stable and allowed ones\n";
    assert_eq!(check(&["model.jax_exported"]), format!("`model.jax_exported` {line}"));
    assert_eq!(
        check(&["model.jax_exported", "-p", "tpu"]),
        format!("`model.jax_exported` {}", line.replace("callbacks", "callbacks on tpu"))
    );
    assert_eq!(check(&["model.jax_exported", "--json"]), "{\n  \"passed\": true,\n  \"platforms\": [],\n  \"sites\": []\n}\n");
    assert_eq!(room.run_with_input(&["check", "--no-callbacks"], &export(DEMO)).done(), format!("standard input {line}"));
}

#[test]
fn a_split_is_verified_from_standard_input() {
    let room = Room::new();
    room.run(&["split", "-q", "model.jax_exported", "-p", "tpu", "-o", "{platform}"]).done();
    let tpu = fs::read(room.path("tpu")).unwrap();
    let run = room.run_with_input(&["verify", "-", "--against", "model.jax_exported"], &tpu);
    let text = run.done();
    assert!(text.starts_with("standard input is `model.jax_exported` on tpu: "), "{text}");
    let run = room.run_with_input(&["verify", "tpu", "--against", "-"], &export(DEMO));
    assert!(run.done().starts_with("`tpu` is standard input on tpu: "));
    let run = room.refused(&["verify", "-", "--against", "-"]);
    assert_eq!(run.status, 2, "{}", run.stderr);
    fs::write(room.path("cut"), &tpu[..tpu.len() / 2]).unwrap();
    let run = room.refused(&["verify", "cut", "--against", "model.jax_exported"]);
    assert!(run.status == 1 && run.stderr.starts_with("error: cannot compare `cut` with `model.jax_exported`"), "{}", run.stderr);
}

#[test]
fn a_check_takes_a_list_of_targets() {
    let room = Room::new();
    let sample = export("callbacks.jax-0.12.0.1.jax_exported");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The same name in length, so that nothing moves.
    let (from, to) = (b"shape_assertion", b"shape.assertion");
    let at = sample.windows(from.len()).position(|window| window == from).unwrap();
    let changed = [&sample[..at], to, &sample[at + from.len()..]].concat();
    fs::write(room.path("model"), changed).unwrap();
    let run = room.run(&["check", "--no-callbacks", "model"]);
    let unstable = "`shape.assertion`: JAX does not guarantee that newer versions run it";
    assert!(run.status == 1 && text(&run.stdout).contains(unstable), "{}", text(&run.stdout));
    fs::write(room.path("allowed"), "# ours\nshape.*\n").unwrap();
    let run = room.run(&["check", "--no-callbacks", "model", "--targets-allowed", "allowed"]);
    assert!(run.status == 1 && !text(&run.stdout).contains(unstable), "{}", text(&run.stdout));
    for (list, cause) in [
        (&b"\xff"[..], "it is no text: invalid utf-8 sequence of 1 bytes from index 0"),
        (
            b"\n xla_ffi_python_*",
            "line 2: `xla_ffi_python_*` cannot be allowed: it holds the number of a Python callback in the process that wrote it",
        ),
    ] {
        fs::write(room.path("allowed"), list).unwrap();
        room.refused(&["check", "--no-callbacks", "model", "--targets-allowed", "allowed"])
            .says(1, &format!("error: cannot read `allowed`\n\nCaused by:\n    0: {cause}\n"));
    }
    room.refused(&["check", "--no-callbacks", "model", "--targets-allowed", "none"])
        .says(2, "error: cannot read `none`\n\nCaused by:\n    0: No such file or directory (os error 2)\n");
}

#[test]
fn callbacks_take_a_table() {
    let room = Room::new();
    let sample = export("callbacks.jax-0.12.0.1.jax_exported");
    fs::write(room.path("model"), &sample).unwrap();
    fs::write(room.path("table"), r#"{"v": 1, "platforms": {"tpu": {"buffer": "tpu_buffers"}}}"#).unwrap();
    let text = room.run(&["callbacks", "model", "--table", "table"]).done();
    assert!(text.contains("tpu_buffers") && !text.contains("impossible"), "{text}");
    fs::write(room.path("table"), r#"{"v": 2, "platforms": {}}"#).unwrap();
    room.refused(&["callbacks", "model", "--table", "table"])
        .says(1, "error: cannot read `table`\n\nCaused by:\n    0: version 2 of the table of callbacks; this jaxprism reads version 1\n");
    // A module alone names no platforms: those of the table are shown.
    fs::write(room.path("module"), jaxprism::Exported::read(&sample).unwrap().module.to_vec()).unwrap();
    let json: Value = serde_json::from_str(&room.run(&["callbacks", "module", "--json"]).done()).unwrap();
    assert_eq!(json["platforms"], serde_json::json!(["cpu", "cuda", "rocm", "oneapi", "tpu"]));
    assert_eq!((&json["format"], &json["levels"][0]["function_name"]), (&"bytecode".into(), &Value::Null));
    room.refused(&["check", "--no-callbacks", "module", "-p", "cpu"]).says(
        1,
        "error: cannot check `module`\n\nCaused by:\n    0: a module alone does not say which platforms it is for\n\nhint: without platforms, all of it is checked\n",
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let room = Room::new();
    for arguments in [
        &["info", "model.jax_exported"][..],
        &["size", "model.jax_exported"],
        &["size", "model.jax_exported", "--html", "-"],
        &["callbacks", "model.jax_exported"],
        &["print", "model.jax_exported"],
        &["print", "model.jax_exported", "--constants", "all", "--locations"],
        &["opt", "model.jax_exported"],
        &["opt", "--list-passes"],
        &["explain", "prune"],
        &["--help"],
    ] {
        let mut child = room.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!((run.status, &*run.stderr), (0, ""), "{arguments:?}");
    }
}

#[test]
fn pages_are_written_like_other_outputs() {
    let room = Room::new();
    assert_eq!(room.run(&["size", "model.jax_exported", "--html", "a/page.html"]).done(), "");
    let page = fs::read_to_string(room.path("a/page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("\"name\":\"model.jax_exported\",\"bytes\":15144"));
    assert_eq!(room.run(&["size", "model.jax_exported", "--html", "-"]).done(), page);
    assert_eq!(room.run_with_input(&["size", "--html", "-"], &export(DEMO)).done(), page.replace("model.jax_exported", "standard input"));
    room.refused(&["size", "model.jax_exported", "--html", "a/page.html"])
        .says(1, "error: cannot write `a/page.html`\n\nCaused by:\n    0: it exists\n\nhint: `--force` replaces files that exist\n");
    room.run(&["size", "model.jax_exported", "--html", "a/page.html", "--force"]).done();
    assert_eq!(room.refused(&["size", "model.jax_exported", "--html", "model.jax_exported", "--force"]).status, 1);
    for arguments in [&["--html", "x", "--json"][..], &["--force"]] {
        assert_eq!(room.refused(&[&["size", "model.jax_exported"], arguments].concat()).status, 2);
    }
}

#[test]
fn info_reads_every_shipped_export_as_text_and_json() {
    let room = Room::new();
    for entry in fs::read_dir(exports()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() != Some(OsStr::new("jax_exported")) {
            continue;
        }
        let path = path.to_str().unwrap();
        assert!(room.run(&["info", path]).done().starts_with("file "), "{path}");
        let json: Value = serde_json::from_str(&room.run(&["info", "--json", path]).done()).unwrap();
        let level = &json["levels"][0];
        let is_multi = level["signature"]["platforms"].as_array().unwrap().len() > 1;
        assert_eq!(is_multi, !level["module"]["platform_cases"].as_array().unwrap().is_empty(), "{path}");
    }
}

#[test]
fn info_lists_the_cases_that_split_resolves() {
    let room = Room::new();
    for entry in fs::read_dir(exports()).unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        if ["single", "lowered", "transfers"].iter().any(|name| path.contains(name)) {
            continue;
        }
        let info: Value = serde_json::from_str(&room.run(&["info", "--json", path]).done()).unwrap();
        let report: Value =
            serde_json::from_str(&room.run(&["split", path, "--callbacks", "keep", "--force", "-o", ".", "--report", "-"]).done()).unwrap();
        for output in report["outputs"].as_array().unwrap() {
            for (resolved, shown) in output["levels"].as_array().unwrap().iter().zip(info["levels"].as_array().unwrap()) {
                let cases = shown["module"]["platform_cases"].as_array().unwrap().iter();
                let takes = |branch: &Value| branch["platforms"].as_array().unwrap().contains(&output["platform"]);
                let taken = cases.filter(|case| case["branches"].as_array().unwrap().iter().any(takes)).count();
                assert_eq!(resolved["changes"]["cases_resolved"], taken, "{path} for {}", output["platform"]);
            }
        }
    }
}

#[test]
fn info_reads_a_module_alone() {
    let room = Room::new();
    let export = export(DEMO);
    fs::write(room.path("module"), jaxprism::Exported::read(&export).unwrap().module.to_vec()).unwrap();
    let json = |path: &str| serde_json::from_str::<Value>(&room.run(&["info", "--json", path]).done()).unwrap();
    let (alone, within) = (json("module"), json("model.jax_exported"));
    assert_eq!((&alone["format"], &alone["levels"][0]["signature"]), (&"bytecode".into(), &Value::Null));
    let cases = |info: &Value| info["levels"][0]["module"]["platform_cases"].as_array().unwrap().len();
    assert_eq!(cases(&alone), cases(&within));
    assert_eq!(alone["levels"][0]["module"]["platform_cases"][0]["branches"][0]["platforms"][0], "#0");
}
