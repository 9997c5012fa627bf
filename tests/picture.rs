//! The picture of a terminal in README.md, docs/terminal.svg: commands are run, and what they print is drawn. It must be the picture that is there;
//! `BLESS=1` draws it anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const COMMANDS: [&str; 5] = [
    "jaxprism split model.jax_exported",
    "jaxprism verify model.*.jax_exported --against model.jax_exported",
    "jaxprism check model.cpu.jax_exported --no-callbacks",
    "jaxprism merge cpu=model.cpu.jax_exported cuda=model.cuda.jax_exported -o two.jax_exported",
    "jaxprism size model.jax_exported | head -n 8",
];
const COLUMNS: usize = 104;
/// Pixels of one character at most, and of one line.
const CHARACTER: f64 = 8.5;
const LINE: f64 = 20.0;
const MARGIN: f64 = 16.0;

/// A line, and whether it is one that somebody typed.
fn lines() -> Vec<(String, bool)> {
    let room = tempfile::tempdir().unwrap();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/exports/demo.jax-0.12.0.1.jax_exported");
    fs::copy(input, room.path().join("model.jax_exported")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_jaxprism")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut lines = Vec::new();
    for command in COMMANDS {
        lines.push((format!("$ {command}"), true));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&room).env("PATH", &path).env_remove("COLUMNS").stdin(Stdio::null());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        lines.extend(String::from_utf8(output.stdout).unwrap().lines().map(|line| (line.to_owned(), false)));
        lines.push((String::new(), false));
    }
    lines.pop();
    lines
}

fn drawn(lines: &[(String, bool)]) -> String {
    let (width, height) = (COLUMNS as f64 * CHARACTER + 2.0 * MARGIN, lines.len() as f64 * LINE + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>jaxprism in a terminal</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14181f\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d5dae1\">\n"
    );
    for (number, (line, is_typed)) in lines.iter().enumerate() {
        let is_long = line.chars().count() > COLUMNS;
        let text: String = if is_long { line.chars().take(COLUMNS - 1).chain(['…']).collect() } else { line.clone() };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let color = if *is_typed { " fill=\"#8fd18a\"" } else { "" };
        let y = MARGIN + LINE * (number as f64 + 0.75);
        writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\"{color}>{text}</text>").unwrap();
    }
    svg + "</g>\n</svg>\n"
}

#[cfg(unix)]
#[test]
fn the_picture_shows_what_the_commands_print() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/terminal.svg");
    let svg = drawn(&lines());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    assert!(fs::read_to_string(&path).is_ok_and(|shown| shown == svg), "docs/terminal.svg differs; BLESS=1 draws it");
}
