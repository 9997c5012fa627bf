//! What the targets in `fuzz/` do, over what they start from and a few changes to it, so that they stay alive where nobody fuzzes.

mod common;

use common::hostile::{SMALL, codec, container, graph, whole};
use common::{Random, mutate_bytes, samples};

/// Runs a target over each seed, and each with something changed.
fn smoke(target: fn(&str, &[u8]), seeds: impl Iterator<Item = (String, Vec<u8>)>) {
    let mut random = Random::new(1);
    for (name, mut bytes) in seeds {
        target(&name, &bytes);
        for change in 0..3 {
            mutate_bytes(&mut bytes, &mut random);
            target(&format!("{name}, change {change}"), &bytes);
        }
    }
}

#[test]
fn the_target_of_containers() {
    smoke(container, samples().into_iter().filter(|sample| sample.is_export()).map(|sample| (sample.name, sample.bytes)));
}

#[test]
fn the_target_of_bytecode() {
    let modules = |sample: &common::Sample| sample.modules().into_iter().map(|(name, bytes, _)| (name, bytes.to_vec())).collect::<Vec<_>>();
    smoke(codec, samples().iter().filter(|sample| sample.bytes.len() < 50_000).flat_map(modules));
}

#[test]
fn the_target_of_whole_files() {
    let is_small = |name: &str| SMALL.iter().any(|small| name.starts_with(small)) || name.starts_with("hostile");
    smoke(whole, samples().into_iter().filter(|sample| is_small(&sample.name)).map(|sample| (sample.name, sample.bytes)));
}

#[test]
fn the_target_of_graphs() {
    let mut random = Random::new(2);
    let seeds = (0..40_u64).map(move |number| {
        let words = std::iter::once(number).chain((0..random.below(4)).map(|_| random.next()));
        (format!("seed {number}"), words.flat_map(u64::to_le_bytes).collect())
    });
    smoke(graph, seeds);
}
