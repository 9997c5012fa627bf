//! The recipe of docs/golden-tests.md for a shell, run as it stands there. That for pytest is run in JAX.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// What stands in the fences of a document that name a language.
fn fences(document: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let (mut found, mut inside): (Vec<String>, Option<&str>) = (Vec::new(), None);
    for line in text.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(other), None) => {
                inside = Some(other);
                found.extend((other == language).then(String::new));
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(other)) if other == language => found.last_mut().unwrap().push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    found
}

/// A directory with the files that the documents name.
fn room() -> TempDir {
    let room = tempfile::tempdir().unwrap();
    let export = fs::read(root().join("testdata/exports/demo.jax-0.12.0.1.jax_exported")).unwrap();
    for name in ["model.jax_exported", "model"] {
        fs::write(room.path().join(name), &export).unwrap();
    }
    let text = run(&room, "jaxprism print model.jax_exported --constants all", &[]);
    fs::write(room.path().join("model.mlir"), text.stdout).unwrap();
    room
}

/// Runs a script with the program on the path.
fn run(room: &TempDir, script: &str, variables: &[(&str, &str)]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_jaxprism")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(room.path()).env("PATH", path).env_remove("UPDATE").envs(variables.iter().copied());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[cfg(unix)]
#[test]
fn the_recipe_for_golden_tests_in_a_shell() {
    let [recipe, _] = &fences("docs/golden-tests.md", "sh")[..] else { panic!("two recipes") };
    let room = room();
    assert!(!run(&room, recipe, &[]).status.success(), "there is nothing to compare with");
    let output = run(&room, recipe, &[("UPDATE", "1")]);
    assert!(output.status.success(), "{}", said(&output));
    let golden = |platform: &str| room.path().join(format!("golden/model.{platform}.mlir"));
    assert!(["cpu", "cuda", "tpu"].iter().all(|platform| golden(platform).is_file()));
    let output = run(&room, recipe, &[]);
    assert!(output.status.success() && said(&output).is_empty(), "{}", said(&output));
    let text = fs::read_to_string(golden("cuda")).unwrap();
    fs::write(golden("cuda"), text.replacen("vhlo.add_v1", "vhlo.subtract_v1", 1)).unwrap();
    let output = run(&room, recipe, &[]);
    assert!(!output.status.success() && said(&output).contains("\n-") && said(&output).contains("vhlo.subtract_v1"), "{}", said(&output));
}

#[cfg(unix)]
#[test]
fn the_recipe_for_golden_exports_in_a_shell() {
    let [_, recipe] = &fences("docs/golden-tests.md", "sh")[..] else { panic!("two recipes") };
    let room = room();
    assert_eq!(run(&room, recipe, &[]).status.code(), Some(2), "there is nothing to compare with");
    let output = run(&room, recipe, &[("UPDATE", "1")]);
    assert!(output.status.success() && said(&output).contains(" are identical: "), "{}", said(&output));
    // No locations: the same program.
    let output = run(&room, "jaxprism opt model.jax_exported --pass strip-locations -o other && mv other model.jax_exported", &[]);
    assert!(output.status.success(), "{}", said(&output));
    let output = run(&room, recipe, &[]);
    assert!(output.status.success() && said(&output).contains(" the same program but for what is ignored: "), "{}", said(&output));
    // Another program.
    fs::copy(root().join("testdata/exports/single.jax-0.12.0.1.jax_exported"), room.path().join("model.jax_exported")).unwrap();
    let output = run(&room, recipe, &[]);
    assert!(output.status.code() == Some(1) && said(&output).contains("\nsignature\n") && output.stderr.is_empty(), "{}", said(&output));
    fs::write(room.path().join("model.jax_exported"), "no export").unwrap();
    let output = run(&room, recipe, &[]);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty() && !output.stderr.is_empty(), "{}", said(&output));
}
