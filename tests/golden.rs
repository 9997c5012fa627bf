//! Golden files: a file says in its head how it is run, and its neighbours say what comes of it.
//!
//! ```mlir
//! // What it shows.
//! // RUN[name]: opt % --pass fold-cases
//! // FAIL[other]: opt % --pass resolve-platform
//! ```
//! `%` is the file. `FILE.name.stdout` and `FILE.name.stderr` hold what is printed; one that is missing stands for nothing. `RUN` must end with status 0,
//! `FAIL` with 1, nothing on standard output and words on standard error. `BLESS=1` rewrites the neighbours and removes those that no case writes.
//!
//! Every pass has a folder of its name in `testdata/golden/passes`. In it, `noop.mlir` is what the pass leaves as it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use jaxprism::passes::PASSES;
use libtest_mimic::{Arguments, Failed, Trial};

/// A line that says how to run a file.
#[derive(Clone)]
struct Case {
    file: PathBuf,
    name: String,
    fails: bool,
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let shown = |file: &Path| file.strip_prefix(&root).unwrap_or(file).display().to_string();
    let mut trials = pass_folders(&root.join("passes"));
    let mut expected = BTreeSet::new();
    for file in files.iter().filter(|file| has_extension(file, &["mlir", "case"])) {
        let cases = match cases(file) {
            Ok(cases) => cases,
            Err(message) => {
                trials.push(Trial::test(format!("{} says how to run it", shown(file)), || Err(message.into())));
                continue;
            }
        };
        for case in cases {
            expected.extend(["stdout", "stderr"].map(|stream| neighbour(&case, stream)));
            trials.push(Trial::test(format!("{}[{}]", shown(file), case.name), move || run(&case)));
        }
    }
    for orphan in files.iter().filter(|file| has_extension(file, &["stdout", "stderr"]) && !expected.contains(*file)) {
        let orphan = orphan.clone();
        trials.push(Trial::test(format!("{} belongs to a case", shown(&orphan)), move || {
            if is_blessing() { Ok(fs::remove_file(&orphan)?) } else { Err("no case writes it; `make bless` removes it".into()) }
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the golden files are there") {
        let path = entry.expect("a directory can be listed").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    file.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| extensions.contains(&extension))
}

/// The cases of a file, each of another name.
fn cases(file: &Path) -> Result<Vec<Case>, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().take_while(|line| line.starts_with("//")) {
        let (fails, rest) = match (line.strip_prefix("// RUN"), line.strip_prefix("// FAIL")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            (None, None) => continue,
        };
        let (name, command) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).ok_or_else(|| format!("not a case: {line}"))?;
        if cases.iter().any(|case| case.name == name) {
            return Err(format!("two cases are named `{name}`"));
        }
        let path = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let arguments = command.split_whitespace().map(|word| word.replace('%', path)).collect();
        cases.push(Case { file: file.to_owned(), name: name.to_owned(), fails, arguments });
    }
    if cases.is_empty() { Err("no line says how to run it".to_owned()) } else { Ok(cases) }
}

fn neighbour(case: &Case, stream: &str) -> PathBuf {
    let stem = case.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    case.file.with_file_name(format!("{stem}.{}.{stream}", case.name))
}

/// Status, standard output and standard error.
fn output(case: &Case) -> Result<(Option<i32>, String, String), Failed> {
    let directory = case.file.parent().ok_or("a file without a directory")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_jaxprism"));
    command.args(&case.arguments).current_dir(directory).env_remove("COLUMNS").stdin(Stdio::null());
    let output = command.output()?;
    Ok((output.status.code(), String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
}

fn run(case: &Case) -> Result<(), Failed> {
    let (status, stdout, stderr) = output(case)?;
    if status != Some(i32::from(case.fails)) {
        return Err(format!("exit status {status:?}\n{stdout}{stderr}").into());
    }
    if case.fails && !stdout.is_empty() {
        return Err(format!("it fails, but prints\n{stdout}").into());
    }
    if case.fails && stderr.is_empty() {
        return Err("it fails without a word".into());
    }
    for (stream, text) in [("stdout", stdout), ("stderr", stderr)] {
        let path = neighbour(case, stream);
        if is_blessing() {
            if text.is_empty() {
                drop(fs::remove_file(&path))
            } else {
                fs::write(&path, &text)?
            }
            continue;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if expected != text {
            let name = path.file_name().unwrap_or_default().display();
            return Err(format!("not as in {name}; `make bless` rewrites it\n--- expected\n{expected}--- got\n{text}").into());
        }
    }
    Ok(())
}

/// Every pass has a folder with a `noop.mlir`, and every folder is that of a pass.
fn pass_folders(folder: &Path) -> Vec<Trial> {
    let mut names: BTreeSet<String> = PASSES.iter().map(|pass| pass.name.to_owned()).collect();
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    names.extend(there.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let trial = |name: String| {
        let noop = folder.join(&name).join("noop.mlir");
        Trial::test(format!("passes/{name} is the folder of a pass and has a noop"), move || {
            if !PASSES.iter().any(|pass| pass.name == name) {
                return Err(format!("there is no pass `{name}`").into());
            }
            cases(&noop).map_err(|error| format!("{}: {error}", noop.display()))?.iter().try_for_each(|case| changes_nothing(case, &name))
        })
    };
    names.into_iter().map(trial).collect()
}

/// A run prints what it prints without the pass, and a failure refuses in the name of the pass.
fn changes_nothing(case: &Case, pass: &str) -> Result<(), Failed> {
    let mut without = case.clone();
    let position = case.arguments.windows(2).position(|pair| pair[0] == "--pass" && pair[1].split('=').next() == Some(pass));
    let position = position.ok_or_else(|| format!("[{}] does not run the pass", case.name))?;
    without.arguments.drain(position..position + 2);
    let (with, without) = (output(case)?, output(&without)?);
    let is_refused = case.fails && with.0 == Some(1) && with.2.contains(pass);
    if is_refused || (!case.fails && with.0 == Some(0) && with == without) {
        return Ok(());
    }
    Err(format!("[{}] changes something\n--- without the pass\n{}--- with it\n{}{}", case.name, without.1, with.1, with.2).into())
}
