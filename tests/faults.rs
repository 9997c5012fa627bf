//! What can go wrong around the program: full disks, places it may not enter, files that change or vanish under it, signals, others at the same work.
//! Whatever happens, an output is complete or not there, and what was there before stays.

#![cfg(unix)]

mod common;
#[path = "common/room.rs"]
mod room;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::build::Builder;
use common::with_module;
use jaxprism::bytecode::{Bytecode, Bytes, Field, code};
use jaxprism::files::Files;
use jaxprism::{ErrorKind, Exported};

use room::{DEMO, PLATFORMS, Room, Run, export};

/// Bytes of the constant in [`large`]: more than pipes and buffers take.
const LARGE: usize = 4 << 20;

/// An export with one large constant, which outputs share with the input.
fn large() -> Vec<u8> {
    let like: &'static [u8] = export(DEMO).leak();
    let mut builder = Builder::new(&Bytecode::read(Exported::read(like).unwrap().module.as_borrowed().unwrap(), 0).unwrap());
    let (index, byte) = (builder.i32(), builder.r#type(code::vhlo::I32_TYPE, vec![]));
    let of = builder.r#type(code::vhlo::TENSOR_TYPE, vec![Field::Count(1), Field::Signed(LARGE as i64 / 4), Field::Type(byte)]);
    let bytes: Vec<u8> = (0..LARGE as u32 / 4).flat_map(u32::to_le_bytes).collect();
    let value = builder.attribute(code::vhlo::TENSOR, vec![Field::Type(of), Field::Blob(Bytes(bytes.into()))]);
    let mut constant = builder.op("constant_v1", &[], &[(1, of)]);
    constant.properties = vec![Some(value)];
    let end = builder.op("return_v1", &[1], &[]);
    let main = builder.function("main", &[(0, index)], &[of], vec![constant, end]);
    with_module(like, &builder.module(vec![main]))
}

fn shorten(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn outputs() -> [String; 3] {
    PLATFORMS.map(|platform| format!("model.{platform}.jax_exported"))
}

/// A run of `split` that has opened its input and waits for its table of callbacks, until `go`.
struct Held(Child, File);

impl Held {
    fn new(room: &Room, arguments: &[&str]) -> Self {
        let table = room.path("table");
        assert!(Command::new("mkfifo").arg(&table).status().unwrap().success());
        let mut child = room.command(&[&["split", "model.jax_exported", "--table", "table"], arguments].concat()).spawn().unwrap();
        loop {
            // Without a reader it cannot be opened.
            match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&table) {
                Ok(pipe) => {
                    fs::remove_file(table).unwrap();
                    return Self(child, pipe);
                }
                Err(_) => assert!(child.try_wait().unwrap().is_none(), "it ended early"),
            }
            sleep(Duration::from_millis(1));
        }
    }

    fn go(mut self) -> Run {
        self.1.write_all(br#"{"v": 1, "platforms": {}}"#).unwrap();
        drop(self.1);
        self.0.wait_with_output().unwrap().into()
    }
}

#[test]
fn an_input_that_becomes_shorter_is_an_error() {
    for length in [0, 1, 4_096, 9_000, export(DEMO).len() as u64 - 1] {
        let room = Room::new();
        let held = Held::new(&room, &["-o", "out"]);
        shorten(&room.path("model.jax_exported"), length);
        let expected = "error: `model.jax_exported` became shorter while it was read\n\nhint: run it again once the file is complete\n";
        held.go().says(2, expected);
        assert_eq!(room.files(), ["model.jax_exported"], "{length}");
    }
}

#[test]
fn an_input_that_changes_otherwise_is_an_error() {
    for (changed, what) in [([&export(DEMO)[..], b"more"].concat(), "became longer"), (vec![0xff; export(DEMO).len()], "was changed")] {
        let room = Room::new();
        // The system's clock of files is not fine.
        sleep(Duration::from_millis(20));
        let held = Held::new(&room, &[]);
        fs::write(room.path("model.jax_exported"), changed).unwrap();
        let run = held.go();
        assert!(run.status == 2 && run.stderr.starts_with(&format!("error: `model.jax_exported` {what} while")), "{}", run.stderr);
        assert_eq!(room.files(), ["model.jax_exported"]);
    }
}

#[test]
fn an_input_that_vanishes_or_is_replaced_after_it_was_opened_is_read_as_it_was() {
    let room = Room::new();
    let held = Held::new(&room, &["-q"]);
    fs::remove_file(room.path("model.jax_exported")).unwrap();
    held.go().done();
    assert_eq!(room.files(), outputs());
    let room = Room::new();
    let held = Held::new(&room, &["-q"]);
    fs::write(room.path("new"), "other").unwrap();
    fs::rename(room.path("new"), room.path("model.jax_exported")).unwrap();
    held.go().done();
    assert!(Exported::read(&fs::read(room.path("model.tpu.jax_exported")).unwrap()).is_ok());
}

/// What goes to standard output comes straight from the input: read here, or by the system.
#[test]
fn an_input_that_becomes_shorter_while_it_is_written_out_is_an_error() {
    let room = Room::new();
    for (verb, arguments) in [
        ("strip", &["-o", "-"][..]),
        ("split", &["-p", "cpu", "-o", "-"]),
        ("opt", &["--emit", "export"]),
        ("opt", &["--emit", "mlirbc"]),
        ("print", &["--constants", "all"]),
    ] {
        fs::write(room.path("model.jax_exported"), large()).unwrap();
        let mut child = room.command(&[&[verb, "model.jax_exported"], arguments].concat()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // From here on it waits for us.
        stdout.read_exact(&mut [0; 4_096]).unwrap();
        shorten(&room.path("model.jax_exported"), 4_096);
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        let run = Run::from(child.wait_with_output().unwrap());
        assert!(run.status == 2 && run.stderr.contains("became shorter while it was read"), "{verb}: {} {}", run.status, run.stderr);
    }
}

#[test]
fn a_signal_leaves_no_part_of_an_output() {
    let room = Room::new();
    fs::write(room.path("model.jax_exported"), large()).unwrap();
    let start = Instant::now();
    room.run(&["split", "model.jax_exported", "-q", "-o", "whole"]).done();
    let whole = start.elapsed();
    let expected = outputs().map(|name| fs::read(room.path("whole").join(name)).unwrap());
    fs::remove_dir_all(room.path("whole")).unwrap();
    for (signal, steps) in [("KILL", 12), ("TERM", 12), ("INT", 12)] {
        for step in 0..steps {
            let mut child = room.command(&["split", "model.jax_exported", "-q", "-o", "out/deep"]).spawn().unwrap();
            sleep(whole * step / steps);
            assert!(Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
            child.wait().unwrap();
            for path in room.files() {
                let place = room.path(&path);
                let (name, metadata) = (path.trim_start_matches("out/deep/"), fs::metadata(&place).unwrap());
                if let Some(number) = outputs().iter().position(|output| output == name) {
                    assert!(fs::read(&place).unwrap() == expected[number], "{path} is incomplete after SIG{signal}");
                } else {
                    assert!(metadata.is_dir() || path == "model.jax_exported" || !has_nameless_files(&room), "{path} after SIG{signal}");
                }
            }
            let _ = fs::remove_dir_all(room.path("out"));
        }
    }
}

/// Whether the file system knows files without a name, which vanish with their process.
fn has_nameless_files(room: &Room) -> bool {
    #[cfg(target_os = "linux")]
    return OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(room.0.path()).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[test]
fn what_cannot_be_told_was_not_done() {
    if !Path::new("/dev/full").exists() {
        eprintln!("left out: there is no /dev/full");
        return;
    }
    let room = Room::new();
    fs::write(room.path("model.cuda.jax_exported"), "mine").unwrap();
    let old = fs::metadata(room.path("model.cuda.jax_exported")).unwrap().ino();
    let before = room.files();
    for arguments in [&[][..], &["--report", "-"], &["--report", "/dev/full"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = room.command(&[&["split", "model.jax_exported", "--force"], arguments].concat());
        let run = Run::from(command.stdout(full).output().unwrap());
        assert!(run.status == 2 && run.stderr.contains("No space left on device"), "{}", run.stderr);
        assert_eq!(room.files(), before, "{arguments:?}");
        assert_eq!(fs::read(room.path("model.cuda.jax_exported")).unwrap(), b"mine");
        assert_eq!(fs::metadata(room.path("model.cuda.jax_exported")).unwrap().ino(), old);
    }
}

/// A script in a room of its own with a small disk in it as `disk`.
fn with_disk(options: &str, script: &str) -> Option<(Room, Run)> {
    let room = Room::new();
    fs::create_dir(room.path("disk")).unwrap();
    let script =
        format!("mount -t tmpfs -o {options} none disk || exit 77; {}", script.replace("jaxprism", env!("CARGO_BIN_EXE_jaxprism")));
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(room.0.path()).output().ok()?;
    let run = Run::from(output);
    let is_mounted = run.status != 77 && !run.stderr.starts_with("unshare");
    if !is_mounted {
        eprintln!("left out: no disk can be mounted here: {}", run.stderr);
    }
    is_mounted.then_some((room, run))
}

#[test]
fn a_full_disk_is_an_error_and_stays_as_it_was() {
    let script = "jaxprism split model.jax_exported -o disk/deep; status=$?; echo old > disk/model.tpu.jax_exported
        jaxprism split model.jax_exported --force -o disk 2> /dev/null; echo $status $? $(ls -A disk) $(cat disk/*)";
    let Some((_, run)) = with_disk("size=16k", script) else { return };
    assert_eq!(String::from_utf8_lossy(&run.stdout), "2 2 model.tpu.jax_exported old\n");
    assert!(
        run.stderr.contains("error: cannot write `disk/deep/model.") && run.stderr.contains("No space left on device"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_disk_that_is_read_only_is_an_error() {
    let Some((_, run)) = with_disk("size=1m,ro", "jaxprism split model.jax_exported -o disk/deep") else { return };
    assert!(run.status == 2 && run.stderr.contains("Read-only file system"), "{}", run.stderr);
}

/// Runs as a user who may do nothing; `None`, and says so, where that is not possible.
fn as_nobody(room: &Room, arguments: &[&str]) -> Option<Run> {
    let mut command = room.command(arguments);
    if fs::metadata(room.0.path()).unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let run = command.output().map(Run::from);
    if let Err(error) = &run {
        eprintln!("left out: no other user can run the program: {error}");
    }
    run.ok()
}

#[test]
fn places_without_permission_are_errors() {
    let room = Room::new();
    let mode = |name: &str, mode| fs::set_permissions(room.path(name), Permissions::from_mode(mode)).unwrap();
    mode("", 0o755);
    for (name, bits) in [("locked", 0o555), ("closed", 0o644), ("blind", 0o333)] {
        fs::create_dir(room.path(name)).unwrap();
        mode(name, bits);
    }
    fs::write(room.path("secret"), export(DEMO)).unwrap();
    mode("secret", 0o000);
    for (arguments, what) in [
        (&["split", "model.jax_exported", "-o", "locked"][..], "cannot write `locked/model.cpu.jax_exported`"),
        (&["split", "model.jax_exported", "-o", "locked/deep/deeper"], "cannot write `locked/deep/deeper/model.cpu.jax_exported`"),
        (&["split", "model.jax_exported", "-o", "closed/deep"], "cannot write `closed/deep/model.cpu.jax_exported`"),
        (&["info", "secret"], "cannot read `secret`"),
        (&["info", "closed/model"], "cannot read `closed/model`"),
    ] {
        let before = room.files();
        let Some(run) = as_nobody(&room, arguments) else { return };
        assert_eq!(run.stderr, format!("error: {what}\n\nCaused by:\n    0: Permission denied (os error 13)\n"));
        assert_eq!((run.status, room.files()), (2, before));
    }
    // Names can be made in a directory whose names cannot be seen.
    if let Some(run) = as_nobody(&room, &["split", "-q", "model.jax_exported", "-o", "blind/deep/"]) {
        run.done();
        assert!(outputs().iter().all(|name| room.path("blind/deep").join(name).is_file()));
    }
    ["locked", "closed", "blind"].iter().for_each(|name| mode(name, 0o755));
}

#[test]
fn links_are_followed_but_never_onto_the_input() {
    let room = Room::new();
    symlink("nowhere", room.path("model.cpu.jax_exported")).unwrap();
    let run = room.refused(&["split", "--force", "model.jax_exported"]);
    assert!(run.status == 1 && run.stderr.contains("0: it is a symbolic link that leads nowhere\n"), "{}", run.stderr);
    fs::remove_file(room.path("model.cpu.jax_exported")).unwrap();
    for make in [|from: &Path, to: &Path| symlink(from, to), |from: &Path, to: &Path| fs::hard_link(from, to)] {
        make(&room.path("model.jax_exported"), &room.path("model.tpu.jax_exported")).unwrap();
        let run = room.refused(&["split", "--force", "model.jax_exported"]);
        assert!(run.status == 1 && run.stderr.contains("0: it is the input\n"), "{}", run.stderr);
        fs::remove_file(room.path("model.tpu.jax_exported")).unwrap();
    }
    assert_eq!(fs::read(room.path("model.jax_exported")).unwrap(), export(DEMO));
    fs::create_dir(room.path("real")).unwrap();
    symlink("real", room.path("link")).unwrap();
    room.run(&["split", "-q", "model.jax_exported", "-o", "link/new/../deep/"]).done();
    assert!(outputs().iter().all(|name| room.path("real/deep").join(name).is_file()) && !room.path("real/new").exists());
    symlink("nowhere", room.path("broken")).unwrap();
    assert_eq!(room.refused(&["split", "model.jax_exported", "-o", "broken/deep/"]).status, 2);
}

#[test]
fn runs_at_the_same_time_do_not_mix() {
    let room = Room::new();
    let run = |arguments: &[&str]| {
        let start = |_| room.command(&[&["split", "-q", "model.jax_exported", "-o", "out/"], arguments].concat()).spawn().unwrap();
        let children: Vec<_> = (0..6).map(start).collect();
        children.into_iter().map(|child| Run::from(child.wait_with_output().unwrap())).collect::<Vec<_>>()
    };
    let runs = run(&[]);
    assert_eq!(runs.iter().filter(|run| run.status == 0).count(), 1);
    for run in runs.iter().filter(|run| run.status != 0) {
        let exists = "0: it exists\n\nhint: `--force` replaces files that exist\n";
        assert!(run.status == 1 && run.stderr.contains(exists), "{} {}", run.status, run.stderr);
    }
    let expected = room.files();
    assert_eq!(expected.len(), 5, "{expected:?}");
    let contents = || outputs().map(|name| fs::read(room.path("out").join(name)).unwrap());
    let before = contents();
    assert!(run(&["--force"]).iter().all(|run| run.status == 0));
    assert!(room.files() == expected && contents() == before);
}

#[test]
fn a_name_that_is_taken_late_gives_back_what_was_replaced() {
    let room = Room::new();
    fs::write(room.path("old"), "mine").unwrap();
    let inode = || fs::metadata(room.path("old")).unwrap().ino();
    let old = inode();
    for is_replaced in [false, true] {
        let mut files = Files::default();
        if is_replaced {
            fs::write(room.path("late"), "").unwrap();
        }
        for name in ["old", "new/deep/file", "late"] {
            files.add(&room.path(name), true, None).unwrap();
        }
        for number in 0..files.len() {
            files.write(number, |file| file.write_all(b"ours")).unwrap();
        }
        assert!(!room.path("new").exists());
        if is_replaced {
            fs::remove_file(room.path("late")).unwrap();
        }
        fs::create_dir(room.path("late")).unwrap();
        let error = files.commit().unwrap_err();
        assert_eq!(error.kind(), if is_replaced { ErrorKind::Io } else { ErrorKind::Refused }, "{error:?}");
        assert_eq!(room.files(), ["late", "model.jax_exported", "old"]);
        assert_eq!((fs::read(room.path("old")).unwrap(), inode()), (b"mine".to_vec(), old));
        fs::remove_dir(room.path("late")).unwrap();
    }
}

#[test]
fn inputs_without_an_end_are_refused_early() {
    let room = Room::new();
    let start = Instant::now();
    let hint = "hint: an export is what `jax.export.export(f)(…).serialize()` returns, written to a file in binary mode\n";
    let said = |name: &str| {
        format!(
            "error: cannot read {name}\n\nCaused by:\n    0: not a JAX export: it does not say where its root table is (at offset 0x0)\n\n{hint}"
        )
    };
    for verb in ["split", "info", "print", "opt", "callbacks"] {
        room.run(&[verb, "/dev/zero"]).says(1, &said("`/dev/zero`"));
        let zeros = File::open("/dev/zero").unwrap();
        Run::from(room.command(&[verb]).stdin(zeros).output().unwrap()).says(1, &said("standard input"));
    }
    assert!(room.run(&["info", "/dev/null"]).stderr.contains("0: not a JAX export: it is empty"));
    // As a pipe.
    let mut zeros = Command::new("cat").arg("/dev/zero").stdout(Stdio::piped()).spawn().unwrap();
    let run = Run::from(room.command(&["info"]).stdin(zeros.stdout.take().unwrap()).output().unwrap());
    run.says(1, &said("standard input"));
    zeros.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn inputs_larger_than_any_export_are_at_fault() {
    let room = Room::new();
    let sparse = |length| File::create(room.path("large")).unwrap().set_len(length).unwrap();
    sparse((1 << 31) + 1);
    let expected = "error: cannot read `large`\n\nCaused by:\n    0: it has more than 2147483648 bytes, the most an export can have\n";
    for verb in ["split", "info", "print", "opt", "callbacks"] {
        room.refused(&[verb, "large"]).says(1, expected);
    }
    sparse(1 << 31);
    for verb in ["split", "info", "print", "opt", "callbacks"] {
        assert_eq!(room.refused(&[verb, "large"]).status, 1);
    }
}
