//! Where outputs go: what `-o` and other names of files mean to each verb, and what is refused because it means nothing.

#[path = "common/room.rs"]
mod room;

use std::fs;

use room::{Room, export};

fn room() -> Room {
    let room = Room::new();
    fs::write(room.path("one.x"), export("single.jax-0.12.0.1.jax_exported")).unwrap();
    fs::create_dir(room.path("out")).unwrap();
    room
}

/// What is there beside what was there.
fn new(room: &Room, before: &[String]) -> Vec<String> {
    room.files().into_iter().filter(|file| !before.contains(file)).collect()
}

#[test]
fn the_output_of_one_input_goes_into_a_directory_or_under_a_name_with_its_stem() {
    for (arguments, expected) in [
        (&["strip", "one.x", "-o", "out"][..], &["out/one.x"][..]),
        (&["strip", "one.x", "-o", "new/"], &["new", "new/one.x"]),
        (&["strip", "one.x", "-o", "out/{stem}.y"], &["out/one.y"]),
        (&["strip", "one.x", "-o", "{stem}/", "--emit", "mlirbc"], &["one", "one/one.mlirbc"]),
        (&["strip", "one.x", "-j", "1", "-o", "out"], &["out/one.x"]),
        (&["retarget", "one.x", "--platforms", "tpu", "-o", "out"], &["out/one.x"]),
        (&["retarget", "one.x", "--platforms", "tpu", "-o", "{stem}.y"], &["one.y"]),
        (&["retarget", "one.x", "--platforms", "tpu", "-o", "out/{stem}.{platform}.y"], &["out/one.tpu.y"]),
        (&["retarget", "one.x", "--platforms", "tpu", "-o", "{platform}/", "--emit", "mlir"], &["tpu", "tpu/one.tpu.mlir"]),
        (&["retarget", "one.x", "--platforms", "tpu,cpu", "-o", "out", "--emit", "mlir"], &["out/one.mlir"]),
        (&["split", "-q", "one.x", "-o", "out", "--report", "{stem}.json"], &["one.json", "out/one.cpu.x"]),
        (&["opt", "one.x", "-o", "{stem}.mlirbc"], &["one.mlirbc"]),
        (&["size", "one.x", "--html", "{stem}.html"], &["one.html"]),
    ] {
        let room = room();
        let before = room.files();
        let run = room.run(arguments);
        assert_eq!(
            (run.status, new(&room, &before)),
            (0, expected.iter().map(ToString::to_string).collect()),
            "{arguments:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn standard_input_has_the_name_that_split_gives_it() {
    let room = room();
    let input = fs::read(room.path("one.x")).unwrap();
    for arguments in [&["strip", "-", "-o", "out"][..], &["retarget", "--platforms", "tpu", "-o", "{stem}.tpu"]] {
        assert_eq!(room.run_with_input(arguments, &input).status, 0);
    }
    assert_eq!(room.files(), ["export.tpu", "model.jax_exported", "one.x", "out", "out/export.jax_exported"]);
}

#[test]
fn a_placeholder_that_nothing_stands_for_is_refused() {
    let room = room();
    let all = "it is for all platforms together";
    for (arguments, placeholder, why) in [
        (&["merge", "one.x", "model.jax_exported", "-o", "{platform}.x"][..], "{platform}", all),
        (&["merge", "one.x", "model.jax_exported", "-o", "{stem}.x"], "{stem}", "it is made of all inputs together"),
        (&["strip", "one.x", "-o", "{platform}.x"], "{platform}", all),
        (&["retarget", "one.x", "--platforms", "cpu,tpu", "-o", "{platform}.x"], "{platform}", all),
        (&["split", "one.x", "--report", "{platform}.x"], "{platform}", all),
        (&["split", "one.x", "--manifest", "{platform}.json"], "{platform}", all),
        (&["split", "one.x", "model.jax_exported", "--report", "{stem}.x"], "{stem}", "there is one report on all inputs"),
        (&["opt", "one.x", "-o", "{platform}.x"], "{platform}", all),
        (&["size", "one.x", "--html", "{platform}.x"], "{platform}", all),
    ] {
        let run = room.refused(arguments);
        assert_eq!(run.status, 2, "{arguments:?}");
        assert!(run.stderr.contains(&format!("nothing stands for `{placeholder}` in `{placeholder}.")), "{}", run.stderr);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
}

#[test]
fn arguments_that_cannot_be_meant_are_wrong_arguments() {
    let room = room();
    for (arguments, message) in [
        (&["retarget", "one.x", "--platforms", "cpu,cpu", "-o", "y"][..], "the platform `cpu` is named twice"),
        (&["man", "-o", "-"], "all pages go into a directory"),
    ] {
        let run = room.refused(arguments);
        assert!(run.status == 2 && run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn what_a_branch_binds_is_split_first() {
    let room = room();
    let hint = "hint: `split` with `-p` takes the branches of one platform, and what it writes can be retargeted\n";
    let run = room.refused(&["retarget", "model.jax_exported", "--platforms", "rocm", "-o", "y"]);
    assert!(run.status == 1 && run.stderr.ends_with(hint), "{}", run.stderr);
    fs::write(room.path("linalg"), export("linalg.jax-0.12.0.1.jax_exported")).unwrap();
    room.run(&["split", "-q", "linalg", "-p", "cpu", "-o", "out"]).done();
    let run = room.refused(&["retarget", "out/linalg.cpu.jax_exported", "--platforms", "rocm", "-o", "y"]);
    assert!(run.status == 1 && !run.stderr.contains("hint"), "{}", run.stderr);
}
