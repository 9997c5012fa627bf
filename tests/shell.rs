//! Completions and manual pages, as shells and readers of manuals take them. What is not installed is left out.

#[path = "common/room.rs"]
mod room;

use std::fs;
use std::process::{Command, Stdio};

use jaxprism::passes::PASSES;
use room::Room;

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("left out: {program} is not installed");
    }
    found
}

/// What bash proposes for the last of these words.
fn completed(room: &Room, words: &[&str]) -> Vec<String> {
    let [.., before, last] = words else { panic!("two words at least") };
    let quoted = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "source completions.bash; COMP_WORDS=({quoted}); COMP_CWORD={}; _jaxprism jaxprism '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len() - 1
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).current_dir(room.0.path()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_options_and_values() {
    if !is_installed("bash") {
        return;
    }
    let room = Room::new();
    fs::write(room.path("completions.bash"), room.run(&["completions", "bash"]).done()).unwrap();
    assert_eq!(completed(&room, &["jaxprism", "sp"]), ["split"]);
    assert_eq!(completed(&room, &["jaxprism", "split", "--rep"]), ["--report"]);
    assert_eq!(completed(&room, &["jaxprism", "split", "-p", ""]), ["cpu", "cuda", "rocm", "tpu"]);
    assert_eq!(completed(&room, &["jaxprism", "check", "m", "--platform", "c"]), ["cpu", "cuda"]);
    assert_eq!(completed(&room, &["jaxprism", "split", "--callbacks", "stub:z"]), ["stub:zeros"]);
    assert_eq!(completed(&room, &["jaxprism", "opt", "m", "--pass", "fold"]), ["fold-cases"]);
    assert_eq!(completed(&room, &["jaxprism", "opt", "--emit", ""]), ["export", "mlirbc", "mlir"]);
    assert_eq!(completed(&room, &["jaxprism", "completions", "z"]), ["zsh"]);
    // Files are completed by bash itself.
    assert_eq!(completed(&room, &["jaxprism", "split", "--report", "mod"]), ["model.jax_exported"]);
}

#[test]
fn other_values_than_those_proposed_are_taken() {
    let room = Room::new();
    room.run(&["explain", "host_callbacks", "is", "not"]).done();
    let run = room.refused(&["split", "model.jax_exported", "-p", "metal"]);
    assert!(run.status == 1 && run.stderr.contains("the export has no platform `metal`"), "{}", run.stderr);
}

#[test]
fn scripts_for_every_shell_are_understood() {
    let room = Room::new();
    for (shell, check) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let script = room.run(&["completions", shell]).done();
        assert!(script.contains("strip-locations") && PASSES.iter().all(|pass| script.contains(pass.name)), "{shell}");
        fs::write(room.path(shell), script).unwrap();
        if is_installed(shell) {
            let output = Command::new(shell).args(check).arg(room.path(shell)).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(room.run(&["completions", shell]).done().contains("strip-locations"));
    }
    assert_eq!(room.refused(&["completions", "tcsh"]).status, 2);
}

#[test]
fn there_is_a_page_for_every_verb_and_no_reader_complains() {
    let room = Room::new();
    room.run(&["man", "-o", "man1"]).done();
    let help = room.run(&["--help"]).done();
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(verbs.contains(&"split") && verbs.contains(&"man"), "{verbs:?}");
    let pages = verbs.iter().map(|verb| format!("jaxprism-{verb}")).chain(["jaxprism".to_owned()]);
    for page in pages {
        let path = room.path(&format!("man1/{page}.1"));
        let source = fs::read_to_string(&path).unwrap();
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS", ".SH EXAMPLES", ".SH EXIT STATUS"] {
            assert!(source.contains(section), "{page} has no {section}");
        }
        if is_installed("man") {
            let output = Command::new("man").args(["--warnings", "-E", "UTF-8", "-l"]).arg(&path).env("MANWIDTH", "100").output().unwrap();
            let (text, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            // A machine may have `man` for show, without its formatter.
            if output.status.success() {
                assert!(complaints.is_empty(), "{page}: {complaints}");
                assert!(text.contains("\nEXAMPLES\n") && text.contains("EXIT STATUS\n") && text.contains("jaxprism"), "{page}: {text}");
            }
        }
        if is_installed("groff") {
            let output = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-K", "utf8", "-z"]).arg(&path).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{page}: {}", String::from_utf8_lossy(&output.stderr));
        }
        if is_installed("mandoc") {
            let output = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&path).output().unwrap();
            assert!(output.status.success(), "{page}: {}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

#[test]
fn pages_are_written_as_other_files_are() {
    let room = Room::new();
    let split = room.run(&["man", "split"]).done();
    // Examples keep their lines, and what begins with a dot is text.
    assert!(split.contains("\n.nf\n") && split.contains("\n  jaxprism split model.jax_exported \\-p cuda \\-o out/"), "{split}");
    room.run(&["man", "-o", "man1"]).done();
    assert_eq!(fs::read_to_string(room.path("man1/jaxprism-split.1")).unwrap(), split);
    let again = room.refused(&["man", "-o", "man1"]);
    assert!(again.status == 1 && again.stderr.contains("0: it exists\n"), "{}", again.stderr);
    room.run(&["man", "-o", "man1", "--force"]).done();
    let unknown = room.refused(&["man", "unknown"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("there is no such verb; there are `split`"), "{}", unknown.stderr);
}
