//! Golden files: a file says in its head how it is run, and its neighbours say what comes of it.
//!
//! ```mlir
//! // RUN[name]: opt % --pass fold-cases
//! // FAIL[other]: opt % --pass resolve-platform
//! ```
//! `%` is the file. `FILE.name.stdout` and `FILE.name.stderr` hold what is printed; one that is missing stands for nothing. `RUN` must end with status 0,
//! `FAIL` with 1 and nothing on standard output. `BLESS=1` rewrites the neighbours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

/// A line that says how to run a file.
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
    let mut trials = Vec::new();
    let mut expected = BTreeSet::new();
    for file in files.iter().filter(|file| has_head(file)) {
        let shown = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        let cases = cases(file);
        trials.push(Trial::test(format!("{shown} has cases"), {
            let count = cases.len();
            move || if count > 0 { Ok(()) } else { Err("no line says how to run it".into()) }
        }));
        for case in cases {
            expected.extend(["stdout", "stderr"].map(|stream| neighbour(&case, stream)));
            trials.push(Trial::test(format!("{shown}[{}]", case.name), move || run(&case)));
        }
    }
    let is_output = |file: &&PathBuf| matches!(file.extension().and_then(|extension| extension.to_str()), Some("stdout" | "stderr"));
    for orphan in files.iter().filter(is_output).filter(|file| !expected.contains(*file)) {
        let shown = orphan.strip_prefix(&root).unwrap_or(orphan).display().to_string();
        trials.push(Trial::test(format!("{shown} belongs to a case"), || Err("no case writes it".into())));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the golden files are there") {
        let path = entry.expect("a directory can be listed").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

fn has_head(file: &Path) -> bool {
    matches!(file.extension().and_then(|extension| extension.to_str()), Some("mlir" | "case"))
}

fn cases(file: &Path) -> Vec<Case> {
    let text = fs::read_to_string(file).expect("a golden file is text");
    let head = text.lines().take_while(|line| line.starts_with("//"));
    let case = |line: &str| {
        let (fails, rest) = match line.strip_prefix("// RUN[") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("// FAIL[")?),
        };
        let (name, command) = rest.split_once("]:")?;
        let path = file.file_name()?.to_str()?;
        let arguments = command.split_whitespace().map(|word| word.replace('%', path)).collect();
        Some(Case { file: file.to_owned(), name: name.to_owned(), fails, arguments })
    };
    head.filter_map(case).collect()
}

fn neighbour(case: &Case, stream: &str) -> PathBuf {
    let stem = case.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    case.file.with_file_name(format!("{stem}.{}.{stream}", case.name))
}

fn run(case: &Case) -> Result<(), Failed> {
    let directory = case.file.parent().ok_or("a file without a directory")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_jaxprism"));
    command.args(&case.arguments).current_dir(directory).env_remove("COLUMNS").stdin(Stdio::null());
    let output = command.output()?;
    let status = output.status.code();
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    if status != Some(i32::from(case.fails)) {
        return Err(format!("exit status {status:?}\n{stdout}{stderr}").into());
    }
    if case.fails && !stdout.is_empty() {
        return Err(format!("it fails, but prints\n{stdout}").into());
    }
    for (stream, text) in [("stdout", stdout), ("stderr", stderr)] {
        let path = neighbour(case, stream);
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
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
