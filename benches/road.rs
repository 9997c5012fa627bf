//! Each step of the road on its own, in operations and bytes per second. `make bench` runs it; `cargo bench --bench road -- decode` runs one.
//!
//! The inputs are those that `make bench` has made, where it has; else a small export that is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use jaxprism::Exported;
use jaxprism::bytecode::Bytecode;
use jaxprism::ir::{self, Program, Session};
use jaxprism::passes::{Options, run_pipeline, split_pipeline};

fn main() {
    divan::main();
}

/// An export, by the name of its file.
struct Input {
    name: String,
    bytes: Vec<u8>,
}

static INPUTS: LazyLock<Vec<Input>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made =
        fs::read_dir(root.join("target/bench")).into_iter().flatten().flatten().map(|folder| folder.path().join("n1e5.jax_exported"));
    let mut paths: Vec<PathBuf> = made.filter(|path| path.is_file()).collect();
    paths.push(root.join("testdata/exports/demo.jax-0.12.0.1.jax_exported"));
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|path| Input { name: name(path), bytes: fs::read(path).unwrap() }).collect()
});

fn names() -> impl Iterator<Item = &'static str> {
    INPUTS.iter().map(|input| &input.name[..])
}

/// The module of an input.
fn module(name: &str) -> Vec<u8> {
    let input = INPUTS.iter().find(|input| input.name == name).unwrap();
    Exported::read(&input.bytes).unwrap().module.to_vec()
}

/// How much one round does.
fn sizes(bytes: &[u8]) -> (BytesCount, ItemsCount) {
    let operations = Bytecode::read(bytes, 0).unwrap().tree.operations.len();
    (BytesCount::new(bytes.len()), ItemsCount::new(operations))
}

#[divan::bench(args = names())]
fn decode(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    bencher.counter(size).counter(operations).bench_local(|| Bytecode::read(&bytes, 0).unwrap());
}

#[divan::bench(args = names())]
fn import(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    bencher.counter(size).counter(operations).with_inputs(|| Session::new(&bytecode)).bench_local_refs(|session| {
        // The module goes with it.
        let program = ir::import(session, &bytecode).unwrap();
        program.module.into_module().unwrap()
    });
}

#[divan::bench(args = names())]
fn verify(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    let session = Session::new(&bytecode);
    let program = ir::import(&session, &bytecode).unwrap();
    let _module = program.module.into_module().unwrap();
    bencher.counter(size).counter(operations).bench_local(|| ir::verify(&program).unwrap());
}

/// With the import before them, which each round needs anew: `import` says how much that is.
#[divan::bench(args = names())]
fn passes(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    bencher.counter(size).counter(operations).with_inputs(|| Session::new(&bytecode)).bench_local_refs(|session| {
        let mut module = ir::import(session, &bytecode).unwrap().module.into_module().unwrap();
        run_pipeline(session, &mut module, &split_pipeline(), &Options::for_platform(1), None).unwrap();
    });
}

#[divan::bench(args = names())]
fn export(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    let session = Session::new(&bytecode);
    let program = ir::import(&session, &bytecode).unwrap();
    let _module = program.module.into_module().unwrap();
    let program = Program { module: program.module, session: &session };
    bencher.counter(size).counter(operations).bench_local(|| ir::export(&program, &bytecode).unwrap());
}

#[divan::bench(args = names())]
fn encode(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = module(name);
    let (size, operations) = sizes(&bytes);
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    bencher.counter(size).counter(operations).bench_local(|| bytecode.write().unwrap());
}
