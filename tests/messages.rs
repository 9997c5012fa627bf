//! docs/messages.md says what we say: every message of ours in it stands in the source, and `jaxprism explain` shows every section.

#[path = "common/room.rs"]
mod room;

use std::fs;
use std::path::{Path, PathBuf};

use jaxprism::explain::entries;
use room::Room;

/// Every line of the program's text, without backquotes, with `{}` for what is put in.
fn lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut pending: Vec<PathBuf> = vec![root.clone()];
    let mut lines = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "json") && path != root.join("explain.rs") {
            lines.extend(fs::read_to_string(path).unwrap().lines().filter(|line| line.contains('"')).map(|line| line.replace('`', "")));
        }
    }
    lines
}

/// What stands between the `{…}` of a message.
fn parts(message: &str) -> Vec<String> {
    let message = message.replace('`', "");
    let parts = message.split('{').enumerate().map(|(at, part)| if at == 0 { part } else { part.split_once('}').unwrap().1 });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[test]
fn messages_of_ours_stand_in_the_source() {
    let lines = lines();
    let ours: Vec<_> = entries()
        .into_iter()
        .filter(|entry| !entry.is_pass && !entry.text.starts_with("From JAX") && !entry.text.starts_with("From XLA"))
        .collect();
    assert!(ours.len() > 20);
    for message in ours.iter().flat_map(|entry| &entry.messages) {
        let parts = parts(message);
        let holds = |line: &&String| {
            let mut rest = line.as_str();
            parts.iter().all(|part| rest.split_once(part.as_str()).map(|(_, after)| rest = after).is_some())
        };
        assert!(lines.iter().any(|line| holds(&line)), "nothing says `{message}`");
    }
}

#[test]
fn every_section_is_shown_by_its_message() {
    let room = Room::new();
    let list = room.run(&["explain"]).done();
    for entry in entries() {
        for message in &entry.messages {
            assert!(list.contains(&format!("  {message}")), "{message}");
        }
    }
    let text = room.run(&["explain", "the", "export has no platform", "`rocm`"]).done();
    assert!(text.starts_with("the export has no platform {platform}\n\nFrom jaxprism, kind `refused`. "), "{text}");
}

#[test]
fn a_message_of_ours_is_explained_from_standard_input() {
    let room = Room::new();
    let run = room.refused(&["split", "model.jax_exported", "-p", "rocm"]);
    let text = room.run_with_input(&["explain", "-"], run.stderr.as_bytes()).done();
    assert!(text.starts_with("the export has no platform {platform}\n"), "{text}");
    // A part of several is a list of them.
    let text = room.run(&["explain", "callbacks"]).done();
    assert!(text.starts_with("\nIt is a part of these messages:\n") && text.lines().count() > 3, "{text}");
}

#[test]
fn what_is_unknown_is_refused_with_the_nearest() {
    let room = Room::new();
    let run = room.refused(&["explain", "fold-case"]);
    assert!(run.status == 2 && run.stderr.contains("\nThe nearest messages and passes are\n  fold-cases\n"), "{}", run.stderr);
    let run = room.refused(&["explain", "xyzzy"]);
    assert!(run.status == 2 && run.stderr.contains("`jaxprism explain` lists all there is"), "{}", run.stderr);
    assert_eq!(room.run_with_input(&["explain", "-"], b"\xff\x00").status, 2);
}
