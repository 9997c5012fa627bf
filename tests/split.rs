//! The library call on the shipped exports: what comes out, in which order, and what is borrowed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use jaxprism::bytecode::Bytecode;
use jaxprism::container::Exported;
use jaxprism::{ErrorKind, Platform, SplitOptions, split};

fn exports() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/exports");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jax_exported"));
    paths.sort();
    assert!(paths.len() > 10, "the shipped exports are there");
    paths
}

fn shipped(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/exports").join(name)).unwrap()
}

/// The argument attributes that mark a platform index, anywhere in a module.
fn platform_indices(exported: &Exported<'_>) -> usize {
    let bytes = exported.module.to_vec();
    let bytecode = Bytecode::read(&bytes, 0).unwrap();
    let is_index = |text: &[u8]| text == b"_platform_index";
    let all = bytecode.functions().filter_map(|function| bytecode.inherent(function, "arg_attrs"));
    let dictionaries = all.flat_map(|id| bytecode.tables.array(id).into_iter().flatten());
    let values = dictionaries.flat_map(|id| bytecode.tables.dictionary(id).into_iter().flatten().map(|(_, value)| value));
    values.filter(|value| bytecode.tables.string(*value).is_some_and(is_index)).count()
}

#[test]
fn every_output_is_an_export_for_its_one_platform_at_every_level() {
    for path in exports() {
        let bytes = fs::read(&path).unwrap();
        let input = Exported::read(&bytes).unwrap();
        let result = split(&bytes, &common::keeping_callbacks()).unwrap();
        assert!(result.outputs.keys().eq(&input.platforms), "{}", path.display());
        for (platform, output) in &result.outputs {
            let written = output.to_vec();
            assert_eq!(written.len() as u64, output.len());
            let read = Exported::read(&written).unwrap();
            assert_eq!(read, output.exported);
            assert_eq!(read.levels().count(), input.levels().count());
            for (level, before) in read.levels().zip(input.levels()) {
                assert_eq!(level.platforms, std::slice::from_ref(platform));
                assert_eq!(platform_indices(level), 0, "{} for {platform}", path.display());
                // All but the module, the platforms and the flag that goes with them is as it was.
                let mut expected = before.clone();
                (expected.module, expected.platforms) = (level.module.clone(), level.platforms.clone());
                (expected.uses_global_constants, expected.vjp) = (level.uses_global_constants, level.vjp.clone());
                assert_eq!(*level, expected);
            }
        }
    }
}

#[test]
fn a_platform_alone_is_the_same_bytes_as_among_all() {
    let bytes = shipped("demo.jax-0.12.0.1.jax_exported");
    let all = split(&bytes, &SplitOptions::default()).unwrap();
    let tpu = split(&bytes, &SplitOptions::default().platforms([Platform::TPU])).unwrap();
    assert!(tpu.outputs.keys().eq([&Platform::TPU]));
    assert_eq!(tpu.outputs[&Platform::TPU].to_vec(), all.outputs[&Platform::TPU].to_vec());
}

#[test]
fn a_split_of_a_split_is_the_same_file() {
    for path in exports() {
        let bytes = fs::read(&path).unwrap();
        let once = split(&bytes, &common::keeping_callbacks()).unwrap();
        for output in once.outputs.values() {
            let written = output.to_vec();
            let twice = split(&written, &common::keeping_callbacks()).unwrap();
            assert_eq!(twice.outputs.len(), 1);
            assert_eq!(twice.outputs[0].to_vec(), written, "{}", path.display());
            assert!(twice.report.outputs[0].levels.iter().all(|level| level.changes.is_empty()));
        }
    }
}

#[test]
fn large_constants_are_slices_of_the_input() {
    let bytes = shipped("demo.jax-0.12.0.1.jax_exported");
    let range = bytes.as_ptr_range();
    let result = split(&bytes, &SplitOptions::default()).unwrap();
    for output in result.outputs.values() {
        let borrowed: usize = output.exported.module.iter().filter(|piece| range.contains(&piece.as_ptr())).map(<[u8]>::len).sum();
        assert_eq!(borrowed, 3 * 1_024, "the three weights of the demo");
    }
}

#[test]
fn an_unknown_platform_is_refused_with_those_that_there_are() {
    let bytes = shipped("demo.jax-0.12.0.1.jax_exported");
    let error = split(&bytes, &SplitOptions::default().platforms([Platform::ROCM])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.to_string(), "the export has no platform `rocm`");
    assert_eq!(error.hint(), Some("it has `cpu`, `cuda`, `tpu`"));
}

#[test]
fn only_symbolic_exports_go_on_using_global_constants() {
    let flags = |name: &str| -> Vec<bool> {
        let bytes = shipped(name);
        let result = split(&bytes, &SplitOptions::default()).unwrap();
        result.outputs.values().map(|output| output.exported.uses_global_constants).collect()
    };
    assert_eq!(flags("demo.jax-0.12.0.1.jax_exported"), [false; 3]);
    let symbolic = flags("symbolic.jax-0.12.0.1.jax_exported");
    assert!(symbolic.iter().all(|flag| *flag), "{symbolic:?}");
}

/// The bytes with one byte of the first place where `text` stands replaced.
fn damaged(bytes: &[u8], text: &[u8], offset: usize, byte: u8) -> Vec<u8> {
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    let mut damaged = bytes.to_vec();
    damaged[at + offset] = byte;
    damaged
}

#[test]
fn names_that_mlir_refuses_are_the_inputs_fault() {
    let bytes = shipped("demo.jax-0.12.0.1.jax_exported");
    let name = b"jax.uses_shape_polymorphism";
    // Without the dialect's prefix; and with a byte that is no UTF-8, which MLIR quotes.
    for input in [damaged(&bytes, name, 3, b'_'), damaged(&damaged(&bytes, name, 3, b'_'), b"jax_uses", 0, 0xff)] {
        let error = split(&input, &SplitOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{error:?}");
    }
}
