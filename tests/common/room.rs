//! A directory to run the built program in, and what a run came to.

#![allow(dead_code, reason = "every test crate uses a part of this")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub const DEMO: &str = "demo.jax-0.12.0.1.jax_exported";
pub const PLATFORMS: [&str; 3] = ["cpu", "cuda", "tpu"];

/// A directory of its own for each test, with the demo export in it as `model.jax_exported`.
pub struct Room(pub TempDir);

/// What a run came to.
pub struct Run {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Room {
    pub fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        fs::write(room.path("model.jax_exported"), export(DEMO)).unwrap();
        room
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jaxprism"));
        command.args(arguments).current_dir(self.0.path()).env_remove("COLUMNS").env("RUST_BACKTRACE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A program that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap().into()
    }

    /// Everything in the directory, hidden files included, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut pending = vec![self.0.path().to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                files.push(path.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned());
                if path.is_dir() && !path.is_symlink() {
                    pending.push(path);
                }
            }
        }
        files.sort();
        files
    }

    /// Runs what must fail, and checks that it changed nothing.
    pub fn refused(&self, arguments: &[&str]) -> Run {
        let before = self.files();
        let run = self.run(arguments);
        assert_ne!(run.status, 0, "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
        assert!(!run.stderr.contains("panicked") && !run.stderr.contains('\x1b'), "{}", run.stderr);
        assert_eq!(self.files(), before, "{arguments:?} left something behind");
        run
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        Self { status: output.status.code().expect("no signal ends the program"), stdout: output.stdout, stderr }
    }
}

impl Run {
    pub fn done(self) -> String {
        assert_eq!((self.status, &*self.stderr), (0, ""));
        String::from_utf8(self.stdout).unwrap()
    }

    /// The whole message and the exit status, which end in what refuses.
    pub fn says(&self, status: i32, message: &str) {
        assert_eq!((self.stderr.as_str(), self.status), (message, status));
        assert!(self.stdout.is_empty());
    }
}

pub fn export(name: &str) -> Vec<u8> {
    fs::read(exports().join(name)).unwrap()
}

pub fn exports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/exports")
}
