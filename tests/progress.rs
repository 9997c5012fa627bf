//! The line of progress: on a terminal, for work that takes long, and gone when it is done. Never elsewhere.

#![cfg(unix)]

mod common;
#[path = "common/room.rs"]
mod room;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::build::Builder;
use common::with_module;
use jaxprism::Exported;
use jaxprism::bytecode::Bytecode;
use room::{DEMO, Room, export};

/// Well above the second after which the line appears.
const LONG: Duration = Duration::from_millis(2_500);

/// An export of so many additions.
fn additions(count: u32) -> Vec<u8> {
    let like: &'static [u8] = export(DEMO).leak();
    let mut builder = Builder::new(&Bytecode::read(Exported::read(like).unwrap().module.as_borrowed().unwrap(), 0).unwrap());
    let (index, of) = (builder.i32(), builder.f32());
    let mut operations: Vec<_> = (1..=count).map(|number| builder.op("add_v1", &[number, number], &[(number + 1, of)])).collect();
    operations.push(builder.op("return_v1", &[count + 1], &[]));
    let main = builder.function("main", &[(0, index), (1, of)], &[of], operations);
    with_module(like, &builder.module(vec![main]))
}

/// Runs in a terminal of its own. Returns what it gets, in order; `None` where there is no way to make one.
fn in_terminal(room: &Room, arguments: &[&str]) -> Option<String> {
    let words: Vec<String> = [env!("CARGO_BIN_EXE_jaxprism")].iter().chain(arguments).map(|word| format!("'{word}'")).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]).current_dir(room.0.path()).stdin(Stdio::null());
    let Ok(output) = script.output() else {
        eprintln!("left out: script is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What is left to be seen.
fn screen(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut shown: Vec<char> = Vec::new();
        for part in line.split('\r') {
            for (column, letter) in part.chars().enumerate() {
                if column < shown.len() {
                    shown[column] = letter;
                } else {
                    shown.push(letter);
                }
            }
        }
        lines.push(shown.into_iter().collect::<String>().trim_end().to_owned());
    }
    lines.join("\n")
}

/// What is slow shows `line` in a terminal, leaves the table alone, and is silent elsewhere.
fn shows(room: &Room, arguments: &[&str], line: &str) {
    let table = room.run(&[arguments, &["-o", "piped"]].concat()).done();
    if let Some(text) = in_terminal(room, &[arguments, &["-o", "shown"]].concat()) {
        assert!(text.contains(line), "{line} is not in {text:?}");
        assert!(!text.contains('\x1b'), "{text:?}");
        assert_eq!(screen(&text), table.replace("piped/", "shown/"));
        let quiet = in_terminal(room, &[arguments, &["-q", "-o", "quiet"]].concat());
        assert_eq!(quiet.as_deref(), Some(""));
    }
}

#[test]
fn of_a_large_input_says_what_each_platform_is_at() {
    let room = Room::new();
    for count in (0..8).map(|double| 20_000 << double) {
        fs::write(room.path("large"), additions(count)).unwrap();
        let start = Instant::now();
        room.run(&["split", "-q", "large", "-o", "first", "--force"]).done();
        if start.elapsed() > LONG {
            break;
        }
    }
    shows(&room, &["split", "large"], "\rsplitting `large`: ");
}

#[test]
fn of_many_inputs_counts_them() {
    let room = Room::new();
    let start = Instant::now();
    let tries = 4;
    (0..tries).for_each(|_| drop(room.run(&["split", "-j", "1", "-q", "--force", "model.jax_exported", "-o", "first"]).done()));
    // Twice as many as should do: the first run is the slowest.
    let count = (LONG.as_secs_f64() * 2.0 / (start.elapsed().as_secs_f64() / f64::from(tries))).clamp(3.0, 3_000.0) as usize;
    let names: Vec<String> = (0..count).map(|number| format!("m{number}")).collect();
    names.iter().for_each(|name| fs::write(room.path(name), export(DEMO)).unwrap());
    let mut arguments = vec!["split", "-j", "1"];
    arguments.extend(names.iter().map(String::as_str));
    shows(&room, &arguments, &format!(" of {} files", number(count)));
}

/// As tables write numbers.
fn number(count: usize) -> String {
    if count < 1_000 { count.to_string() } else { format!("{},{:03}", count / 1_000, count % 1_000) }
}

#[test]
fn what_is_quick_shows_nothing() {
    let room = Room::new();
    if let Some(text) = in_terminal(&room, &["split", "model.jax_exported", "-o", "out"]) {
        assert_eq!(text.replace("\r\n", "\n"), room.run(&["split", "model.jax_exported", "-o", "out", "--force"]).done());
    }
}
