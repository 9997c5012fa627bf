//! What names of files do to the terminal: nothing. No verb writes a control character out of one, or lets one end a line.
#![cfg(unix)]

#[path = "common/room.rs"]
mod room;

use std::fs;

use room::{Room, Run, export};

/// A name that would turn text red, and whose end would stand at the beginning of a line.
const NAME: &str = "\x1b[31m\u{9b}2J\rred\nNEXT";
const SHOWN: &str = "\\u{1b}[31m\\u{9b}2J\\rred\\nNEXT";

fn check(arguments: &[&str], run: &Run, status: i32) {
    let stdout = String::from_utf8_lossy(&run.stdout);
    for text in [&stdout, run.stderr.as_str()] {
        let steers = text.contains(|character: char| character.is_control() && character != '\n');
        assert!(!steers && !text.lines().any(|line| line.starts_with("NEXT")), "{arguments:?}: {text:?}");
    }
    assert_eq!(run.status, status, "{arguments:?}: {stdout}{}", run.stderr);
}

#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let room = Room::new();
    let name = |extension: &str| format!("{NAME}{extension}");
    let (model, missing, text, other) = (name(".jax_exported"), name(".missing"), name(".txt"), name(".other"));
    let (cpu, cuda, out) = (name(".cpu.jax_exported"), name(".cuda.jax_exported"), name(".out"));
    let (directory, report) = (name("/"), name(".json"));
    fs::write(room.path(&model), export(room::DEMO)).unwrap();
    fs::write(room.path(&other), export("vjp.jax-0.12.0.1.jax_exported")).unwrap();
    fs::write(room.path(&text), "no export").unwrap();
    let said = |arguments: &[&str], status: i32, shown: bool| {
        let run = room.run(arguments);
        check(arguments, &run, status);
        let told = format!("{}{}", String::from_utf8_lossy(&run.stdout), run.stderr);
        assert_eq!(told.contains(SHOWN), shown, "{arguments:?}: {told}");
    };
    said(&["split", &model], 0, true);
    said(&["split", &model], 1, true);
    said(&["split", &model, &other, "-o", &directory, "--report", &report], 0, false);
    said(&["split", &model, "-o", &text], 1, true);
    said(&["split", &model, "-o", &name("{\x1bx}")], 1, true);
    said(&["merge", &cpu, &cuda, "-o", &out], 0, true);
    said(&["merge", &model, &cuda, "-o", &out], 1, true);
    said(&["merge", &format!("{NAME}=x"), &cuda, "-o", &out], 2, true);
    said(&["strip", &model, "-o", &out], 1, true);
    said(&["strip", &model, &other, "-o", &directory], 0, true);
    said(&["retarget", &model, "--platforms", "rocm", "-o", &out], 1, true);
    said(&["retarget", &cpu, "--platforms", "rocm", "-o", &cpu], 1, true);
    said(&["info", &model], 0, false);
    said(&["callbacks", &model], 0, false);
    said(&["check", &model, "--no-callbacks"], 0, true);
    said(&["verify", &cpu, "--against", &model], 0, true);
    said(&["verify", &cuda, &cpu, "--against", &other], 1, true);
    said(&["diff", &cpu, &cuda], 1, true);
    said(&["diff", &cpu, &cpu], 0, true);
    said(&["print", &model], 0, false);
    said(&["size", &model], 0, false);
    said(&["opt", &model, "-o", &out], 1, true);
    said(&["man", "-o", &text], 2, true);
    for verb in ["split", "info", "callbacks", "check", "print", "size", "opt"] {
        let rest: &[&str] = if verb == "check" { &["--no-callbacks"] } else { &[] };
        for path in [&missing, &text] {
            let run = room.run(&[&[verb, path.as_str()], rest].concat());
            check(&[verb, path], &run, if *path == missing { 2 } else { 1 });
            assert!(run.stderr.contains(SHOWN), "{verb}: {}", run.stderr);
        }
        said(&[&[verb, "-", "--unknown", &missing], rest].concat(), 2, false);
    }
    said(&["info", "-", &missing], 2, true);
}
