//! The same input gives the same bytes: whatever the machine has of processors, whatever is in the environment, wherever the program runs, however often.

#[path = "common/room.rs"]
mod room;

use std::fs;
use std::process::Command;

use room::{Room, Run, export};

/// Exports with everything in them that has an order: callbacks, nested programs, shardings, several levels.
const EXPORTS: [&str; 3] = ["callbacks.jax-0.12.0.1", "vjp.jax-0.12.0.1", "sharded.jax-0.12.0.1"];

/// What is run over each: the arguments behind the input.
const RUNS: [&[&str]; 9] = [
    &["split", "-q", "-o", "out", "--callbacks", "keep", "--manifest", "out/manifest.json", "--report", "-"],
    &["split", "-q", "-o", "out", "--callbacks", "keep", "--strip-locations", "--manifest", "out/manifest.bincode"],
    &["strip", "-o", "out"],
    &["opt", "--pass", "redact-paths", "--pass", "prune", "--emit", "export"],
    &["opt", "--emit", "mlirbc"],
    &["print", "--constants", "all", "--locations"],
    &["print", "--canonical"],
    &["info", "--json"],
    &["callbacks", "--json"],
];

/// Everything that a run comes to: what it writes, and what it says where it refuses.
fn outcome(room: &Room, mut command: Command) -> Vec<(String, Vec<u8>)> {
    let run = Run::from(command.output().unwrap());
    assert!(run.status < 2, "{command:?}: {}", run.stderr);
    let mut all = vec![("standard output".to_owned(), run.stdout), (format!("status {}", run.status), run.stderr.into_bytes())];
    for name in room.files().into_iter().filter(|name| room.path(name).is_file() && name.starts_with("out")) {
        all.push((name.clone(), fs::read(room.path(&name)).unwrap()));
    }
    let _ = fs::remove_dir_all(room.path("out")).or_else(|_| fs::remove_file(room.path("out")));
    all
}

fn check(change: impl Fn(&Room, &mut Command)) {
    for name in EXPORTS {
        let (one, other) = (Room::new(), Room::new());
        for room in [&one, &other] {
            fs::write(room.path("model.jax_exported"), export(&format!("{name}.jax_exported"))).unwrap();
        }
        for arguments in RUNS {
            let (verb, rest) = arguments.split_first().unwrap();
            let arguments = [&[*verb, "model.jax_exported"][..], rest].concat();
            let mut changed = other.command(&arguments);
            change(&other, &mut changed);
            let (before, after) = (outcome(&one, one.command(&arguments)), outcome(&other, changed));
            let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&before), names(&after), "{name}: {arguments:?}");
            for ((place, before), (_, after)) in before.iter().zip(&after) {
                assert!(before == after, "{name}: {arguments:?}: {place} differs");
            }
        }
    }
}

#[test]
fn twice_is_the_same_in_another_directory() {
    check(|_, _| {});
}

#[test]
fn the_environment_changes_nothing() {
    check(|_, command| {
        command.env_clear();
    });
    check(|room, command| {
        command.env("LC_ALL", "tr_TR.UTF-8").env("LANG", "ar_EG").env("TZ", "Asia/Kathmandu").env("HOME", room.path("none"));
        command.env("RAYON_NUM_THREADS", "7").env("RUST_MIN_STACK", "1000000").env("MLIR_ENABLE_DUMP", "1").env("COLUMNS", "20");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_number_of_processors_changes_nothing() {
    if Command::new("taskset").args(["-c", "0", "true"]).status().is_err() {
        eprintln!("left out: there is no taskset");
        return;
    }
    check(|_, command| {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
        pinned.current_dir(command.get_current_dir().unwrap()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        *command = pinned;
    });
}

/// A working directory that is gone names no place, and none is needed.
#[cfg(unix)]
#[test]
fn the_working_directory_changes_nothing() {
    let room = Room::new();
    room.run(&["split", "-q", "model.jax_exported", "-o", "here"]).done();
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && exec '{}' split -q '{}' -o '{}'",
        env!("CARGO_BIN_EXE_jaxprism"),
        room.path("model.jax_exported").display(),
        room.path("there").display()
    );
    Run::from(Command::new("sh").args(["-c", &script]).current_dir(room.0.path()).output().unwrap()).done();
    for platform in room::PLATFORMS {
        let read = |directory: &str| fs::read(room.path(&format!("{directory}/model.{platform}.jax_exported"))).unwrap();
        assert!(read("here") == read("there"));
    }
}

/// Hash maps of the library are seeded anew in every process, and within one for every map.
#[test]
fn twice_in_one_process_is_the_same() {
    for name in EXPORTS {
        let input = export(&format!("{name}.jax_exported"));
        let options = || {
            use jaxprism::callbacks::{CallbackOptions, Policies, Policy, Table};
            jaxprism::SplitOptions::default().callbacks(CallbackOptions::new(Policies::default().otherwise(Policy::Keep), Table::default()))
        };
        let outputs = || {
            let split = jaxprism::split(&input, &options()).unwrap();
            split.outputs.values().map(|output| (output.to_vec(), output.to_vec())).collect::<Vec<_>>()
        };
        let before = outputs();
        assert!(before.iter().all(|(one, again)| one == again) && before == outputs(), "{name}");
        let level = |input: &[u8]| {
            let exported = jaxprism::Exported::read(input).unwrap();
            let bytecode = jaxprism::bytecode::Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
            (bytecode.write().unwrap().to_vec(), bytecode.write().unwrap().to_vec())
        };
        let (one, again) = level(&input);
        assert!(one == again && level(&input).0 == one, "{name}");
    }
}
