//! What README.md and docs/ show is true: every `jaxprism …` in a block for the shell is run, in a directory of its own, and must end with status 0.
//!
//! In a block with `$ jaxprism …` the commands are run one after another, and the lines behind each are what it must print. Blocks in `console` need Python
//! and JAX: tests/jax/test_cookbook.py runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jaxprism::{Exported, ir};
use tempfile::TempDir;

/// What commands read. A command that names another file cannot be run.
const INPUTS: [&str; 3] = ["model.jax_exported", "debug.jax_exported", "model"];

/// A block between fences.
struct Block {
    file: String,
    line: usize,
    language: String,
    lines: Vec<String>,
}

fn blocks() -> Vec<Block> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    files.push(root.join("README.md"));
    files.sort();
    let mut blocks: Vec<Block> = Vec::new();
    for path in files {
        let file = path.strip_prefix(root).unwrap().display().to_string();
        let mut is_open = false;
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            match line.strip_prefix("```") {
                Some(_) if is_open => is_open = false,
                Some(language) => {
                    blocks.push(Block { file: file.clone(), line: number + 1, language: language.to_owned(), lines: vec![] });
                    is_open = true;
                }
                None if is_open => blocks.last_mut().unwrap().lines.push(line.to_owned()),
                None => {}
            }
        }
        assert!(!is_open, "{file} has a block without an end");
    }
    blocks
}

/// A directory with the inputs.
fn room(command: &str) -> TempDir {
    let room = tempfile::tempdir().unwrap();
    let export = |name: &str| {
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/exports/{name}.jax-0.12.0.1.jax_exported"))).unwrap()
    };
    let shipped = export(if command.starts_with("jaxprism callbacks") { "callbacks" } else { "demo" });
    let input = with_callbacks(&shipped, &callbacks_of(command)).unwrap_or(shipped);
    INPUTS.iter().for_each(|name| fs::write(room.path().join(name), &input).unwrap());
    ["fill", "lowered"].iter().for_each(|name| fs::write(room.path().join(format!("{name}.jax_exported")), export(name)).unwrap());
    run("jaxprism print model.jax_exported --constants all > model.mlir", &room).unwrap();
    room
}

/// Runs a line in a shell. Returns what it prints, on both streams.
fn run(command: &str, room: &TempDir) -> Result<String, String> {
    let programs = Path::new(env!("CARGO_BIN_EXE_jaxprism")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(room.path()).env("PATH", path).env_remove("COLUMNS").stdin(Stdio::null());
    let output = shell.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    // A check or a comparison that finds something ends with 1, and prints what it found.
    let is_check = ["jaxprism check", "jaxprism diff"].iter().any(|verb| command.starts_with(verb));
    let is_check = is_check && output.status.code() == Some(1) && stderr.is_empty();
    if output.status.success() || is_check { Ok(stdout + &stderr) } else { Err(format!("{}\n{stdout}{stderr}", output.status)) }
}

/// The callbacks that the rules of a command name, each with a kind that its policy is for.
fn callbacks_of(command: &str) -> Vec<(String, &'static str)> {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    let rules = words.windows(2).filter(|pair| pair[0] == "--callback").filter_map(|pair| pair[1].split_once('='));
    let callback = |(name, policy): (&str, &str)| {
        let name = name.rsplit_once(':').map_or(name, |(_, name)| name).replace('*', "loss");
        let kind = match policy {
            "strip" => "debug",
            "host" => "buffer",
            _ if policy.starts_with("call:") => "called",
            _ => "pure",
        };
        (name, kind)
    };
    rules.map(callback).collect()
}

/// The export with a module of these callbacks. `None` if there are none.
fn with_callbacks(export: &[u8], callbacks: &[(String, &str)]) -> Option<Vec<u8>> {
    let mut calls = String::new();
    for (name, kind) in callbacks {
        // What is called takes rows of four.
        let (x, of, shape) = if *kind == "called" { ("%row", "!row", "\\221\\22,\\224\\22") } else { ("%x", "!f32", "\\224\\22") };
        let kind = if *kind == "called" { "buffer" } else { kind };
        let array = format!("[\\22float32\\22,[{shape}]]");
        let (result, results) = if kind == "debug" { ("()", "") } else { (of, &array[..]) };
        let meta = format!(
            "{{\\22args\\22:[{array}],\\22kind\\22:\\22{kind}\\22,\\22name\\22:\\22{name}\\22,\\22out_tree\\22:\\22*\\22,\\22results\\22:[{results}],\\22v\\22:1}}"
        );
        let config = [("kind", kind), ("meta", &meta), ("name", name)];
        let config = config.map(|(key, value)| format!("#vhlo.string_v1<\"{key}\"> = #vhlo.string_v1<\"{value}\">")).join(", ");
        calls += &format!(
            "\"vhlo.custom_call_v2\"({x}) {{call_target_name = #vhlo.string_v1<\"jaxprism_callback\">, \
             mhlo.backend_config = #vhlo.dict_v1<{{{config}, #vhlo.string_v1<\"v\"> = #vhlo.integer_v1<1 : i64>}}>, \
             has_side_effect = #vhlo.bool_v1<{}>, api_version = #vhlo<api_version_v1 API_VERSION_ORIGINAL>, \
             backend_config = #vhlo.string_v1<\"\">, called_computations = #none, output_operand_aliases = #none, \
             operand_layouts = #none, result_layouts = #none, result_tilings = #none}} : ({of}) -> {result}\n",
            kind == "debug"
        );
    }
    if calls.is_empty() {
        return None;
    }
    let module = format!(
        "!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>\n!row = !vhlo.tensor_v1<1x4x!vhlo.f32_v1>\n#none = #vhlo.array_v1<[]>\n\
         func.func public @main(%p: !vhlo.tensor_v1<!vhlo.i32_v1>, %x: !f32) -> !f32 {{\n\
         %row = \"vhlo.reshape_v1\"(%x) : (!f32) -> !row\n{calls}return %x : !f32\n}}"
    );
    let bytecode = ir::parse(&module, "model.py").unwrap();
    let mut exported = Exported::read(export).unwrap();
    exported.module = bytecode.write().unwrap();
    Some(exported.write().unwrap().to_vec())
}

/// Whether a command prints what a document shows. An ellipsis stands for whatever there is, in a line or between lines; times differ.
fn is_shown(expected: &str, found: &str) -> bool {
    if !expected.contains('…') && !expected.contains(" ms ") {
        return expected == found;
    }
    let is_time = |word: &str| word.parse::<f64>().is_ok();
    let words = |line: &str| line.split_whitespace().map(|word| if is_time(word) { "0" } else { word }.to_owned()).collect::<Vec<_>>();
    let mut lines = found.lines();
    let mut shown = expected.lines().filter(|line| line.trim() != "…").map(|line| words(line.split('…').next().unwrap_or_default()));
    shown.all(|start| lines.any(|found| words(found).starts_with(&start)))
}

/// Runs a block. Returns how many commands it has.
fn check(block: &Block) -> Result<usize, String> {
    let at = |index: usize| format!("{}:{}", block.file, block.line + 1 + index);
    let mut commands = 0;
    if !block.lines.iter().any(|line| line.starts_with("$ ")) {
        for (index, line) in block.lines.iter().enumerate().filter(|(_, line)| line.starts_with("jaxprism ")) {
            run(line, &room(line)).map_err(|error| format!("{}: `{line}`: {error}", at(index)))?;
            commands += 1;
        }
        return Ok(commands);
    }
    let first = block.lines.iter().find_map(|line| line.strip_prefix("$ ")).unwrap_or_default();
    let room = room(first);
    let mut lines = block.lines.iter().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut expected = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
            expected += &format!("{line}\n");
        }
        if !command.starts_with("jaxprism ") {
            continue;
        }
        commands += 1;
        let found = run(command, &room).map_err(|error| format!("{}: `{command}`: {error}", at(index)))?;
        if !is_shown(&expected, &found) {
            return Err(format!("{}: `{command}` prints\n{found}and not\n{expected}", at(index)));
        }
    }
    Ok(commands)
}

#[test]
fn commands_in_documents_do_what_they_show() {
    let mut commands = 0;
    let mut failures = Vec::new();
    for block in blocks().iter().filter(|block| ["", "sh"].contains(&block.language.as_str())) {
        match check(block) {
            Ok(count) => commands += count,
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(commands >= 6, "only {commands} commands were found");
}

#[test]
fn a_transcript_that_is_wrong_is_found() {
    let block = |lines: &[&str]| {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        check(&Block { file: "x.md".to_owned(), line: 1, language: "sh".to_owned(), lines })
    };
    let version = format!("jaxprism {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(block(&["$ jaxprism --version", &version]), Ok(1));
    assert!(block(&["$ jaxprism --version", "jaxprism 9.9.9"]).unwrap_err().starts_with("x.md:2: "));
    assert!(block(&["jaxprism info missing"]).is_err());
}
