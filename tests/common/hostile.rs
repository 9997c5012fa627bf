//! Damaged and hostile inputs, and what must hold for each: it is read or refused, with a kind and with the place, and what was read can be written. The
//! tests, the long run of `make mutate` and the targets in `fuzz/` share it.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jaxprism::bytecode::Bytecode;
use jaxprism::callbacks::{CallbackOptions, Policies, Table};
use jaxprism::passes::{Options, find};
use jaxprism::pieces::Pieces;
use jaxprism::split::rewrite;
use jaxprism::{
    CheckOptions, DiffOptions, Error, ErrorKind, Exported, MergeInput, MergeOptions, Output, OutputOptions, Platform, SizeOptions,
    SplitOptions, StripOptions, callbacks_of, check, diff, inspect, merge, size, split, strip,
};

use super::{Random, Sample, mutate_bytes, mutate_module, on_a_large_stack, samples, shipped, with_module};

/// Nothing here is large: alone, a debug build takes less than two seconds for the slowest. A busy machine takes longer.
const TOO_LONG: Duration = Duration::from_secs(20);
/// Fails where an error is none that a user can do something with.
pub fn check_error(name: &str, error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Unsupported | ErrorKind::Refused), "{name}: {error:?}");
}

/// Fails where an error of the codec does not say where in the file it is.
pub fn check_error_with_offset(name: &str, error: &Error, end: u64) {
    check_error(name, error);
    let offset = error.offset().unwrap_or_else(|| panic!("{name}: no offset in {error:?}"));
    assert!(offset <= end, "{name}: {error:?} is behind the end at {end:#x}");
}

/// Reads a module and, where that goes well, writes it, and reads that again.
pub fn codec(name: &str, bytes: &[u8]) {
    const BASE: u64 = 0x1000;
    let bytecode = match Bytecode::read(bytes, BASE) {
        Ok(bytecode) => bytecode,
        Err(error) => return check_error_with_offset(name, &error, BASE + bytes.len() as u64),
    };
    match bytecode.write() {
        Ok(written) => {
            let written = written.to_vec();
            // What it takes is bounded by what came in: shared properties and dictionaries stay shared.
            assert!(written.len() < 2 * bytes.len() + 1_000, "{name}: {} bytes became {}", bytes.len(), written.len());
            let again = Bytecode::read(&written, 0).unwrap_or_else(|error| panic!("{name}: cannot read what was written: {error:?}"));
            assert!(again.write().unwrap().to_vec() == written, "{name}: written anew, it is another file");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error:?}"),
    }
}

/// Reads an export and, where that goes well, writes it, and reads that again.
pub fn container(name: &str, bytes: &[u8]) {
    match Exported::read(bytes) {
        Ok(exported) => match exported.write() {
            Ok(written) => {
                let written = written.to_vec();
                assert!(Exported::read(&written).unwrap() == exported, "{name}: written, it is another export");
            }
            Err(error) => check_error(name, &error),
        },
        Err(error) => check_error(name, &error),
    }
}

/// Splits, inspects and checks a file, and compares it with another one; what comes out must be readable.
pub fn whole(name: &str, bytes: &[u8]) {
    static OTHER: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let sample = shipped().into_iter().find(|sample| sample.name.starts_with("control.jax-0.12.0.1"));
        sample.expect("it ships with the project").bytes
    });
    static CALLER: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let sample = shipped().into_iter().find(|sample| sample.name.starts_with("callbacks.jax-0.12.0.1"));
        sample.expect("it ships with the project").bytes
    });
    let calls = Policies::default().rules(["fill=call:it".parse().unwrap()]);
    let calls = CallbackOptions::new(calls, Table::default()).export("it", bytes);
    match split(&CALLER, &SplitOptions::default().platforms([Platform::CPU]).callbacks(calls)) {
        Ok(split) => readable(name, split.outputs.values().map(Output::to_vec)),
        Err(error) => check_error(name, &error),
    }
    match diff(&OTHER, bytes, &DiffOptions::default()) {
        Ok(diff) => assert_eq!(diff.equal, diff.counts.total() == 0, "{name}"),
        Err(error) => check_error(name, &error),
    }
    let inspected = [inspect(bytes).err(), callbacks_of(bytes, &Table::default()).err(), check(bytes, &CheckOptions::default()).err()];
    inspected.iter().flatten().for_each(|error| check_error(name, error));
    match size(bytes, &SizeOptions::default()) {
        Ok(size) => assert_eq!(size.container + size.levels.iter().map(|level| level.bytes).sum::<u64>(), bytes.len() as u64, "{name}"),
        Err(error) => check_error(name, &error),
    }
    if bytes.starts_with(jaxprism::bytecode::MAGIC) {
        let through = on_a_large_stack(|| -> jaxprism::error::Result<Vec<u8>> {
            Ok(rewrite(&Bytecode::read(bytes, 0)?, &[find("redact-paths").unwrap()], &Options::default())?.0.write()?.to_vec())
        });
        match through {
            Ok(written) => drop(Bytecode::read(&written, 0).unwrap_or_else(|error| panic!("{name}: {error:?}"))),
            Err(error) => check_error(name, &error),
        }
        return;
    }
    older(name, bytes);
    match split(bytes, &SplitOptions::default()) {
        Ok(split) => {
            merged(name, split.outputs.values().map(|output| output.exported.clone()).collect());
            readable(name, split.outputs.values().map(Output::to_vec));
        }
        Err(error) => check_error(name, &error),
    }
}

/// Writes an export in old versions of StableHLO; what comes out must be readable.
fn older(name: &str, bytes: &[u8]) {
    for version in ["0.14.0", "1.8.0"] {
        let output = OutputOptions::default().target_version(Some(version.parse().unwrap()));
        match strip(bytes, &StripOptions::default().output(output)) {
            Ok(stripped) => readable(name, [stripped.output.to_vec()]),
            Err(error) => check_error(name, &error),
        }
    }
}

/// Fails where an export that was written, or one of its modules, cannot be read.
fn readable(name: &str, outputs: impl IntoIterator<Item = Vec<u8>>) {
    for written in outputs {
        let again = Exported::read(&written).unwrap_or_else(|error| panic!("{name}: cannot read what was written: {error:?}"));
        for level in again.levels() {
            let module = level.module.as_borrowed().unwrap();
            Bytecode::read(module, 0).unwrap_or_else(|error| panic!("{name}: cannot read a module that was written: {error:?}"));
        }
    }
}

/// Merges exports for one platform each; one alone with itself under another name. What comes out must be readable.
fn merged(name: &str, mut parts: Vec<Exported<'_>>) {
    if let [only] = &parts[..] {
        let mut other = only.clone();
        let rename = |_, level: &mut Exported<'_>| {
            level.platforms = vec![Platform::new("another")];
            Ok(())
        };
        other.for_each_level_mut(rename).unwrap();
        parts.push(other);
    }
    let files: Vec<_> = parts.iter().map(|part| part.write().unwrap().to_vec()).collect();
    match merge(&files.iter().map(|file| MergeInput::new(file)).collect::<Vec<_>>(), &MergeOptions::default()) {
        Ok(merged) => readable(name, [merged.output.to_vec()]),
        Err(error) => check_error(name, &error),
    }
}

/// Calls `work`, and turns a panic or too long a time into a failure that names the input.
pub fn bounded(name: &str, work: impl FnOnce()) -> Result<(), String> {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(work));
    let took = start.elapsed();
    match result {
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("{name}: {}", message.unwrap_or_default()))
        }
        Ok(()) if took > TOO_LONG => Err(format!("{name}: took {took:?}")),
        Ok(()) => Ok(()),
    }
}

/// Changes the graph of a module that ships with the project as `bytes` say: what names what, of which type and kind it is, what is there at all. What comes of
/// it is read and split like any other.
pub fn graph(name: &str, bytes: &[u8]) {
    static SHIPPED: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let is_small = |sample: &Sample| SMALL.iter().any(|name| sample.name.starts_with(name));
        shipped().into_iter().filter(is_small).collect()
    });
    let number = |place: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes.get(8 * place + byte).copied().unwrap_or_default()));
    let sample = &SHIPPED[number(0) as usize % SHIPPED.len()];
    let exported = Exported::read(&sample.bytes).unwrap();
    let mut bytecode = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    (1..bytes.len().div_ceil(8).min(9)).for_each(|place| mutate_module(&mut bytecode, &mut Random::new(number(place))));
    // What only a reader can rule out, the writer takes for granted; a fuzzer would end at the panic, which is none of a user's.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let written = catch_unwind(AssertUnwindSafe(|| bytecode.write().map(|written| written.to_vec())));
    set_hook(hook);
    let Ok(Ok(module)) = written else { return };
    codec(name, &module);
    whole(name, &with_module(&sample.bytes, &module));
}

/// The exports that go into MLIR by the hundred: small ones, with everything that passes look at.
pub const SMALL: [&str; 9] = [
    "control.jax-0.12.0.1",
    "control.jax-0.4.30",
    "nested.jax-0.12.0.1",
    "vjp.jax-0.10.2",
    "symbolic.jax-0.12.0.1",
    "sharded.jax-0.12.0.1",
    "callbacks.jax-0.12.0.1",
    "transfers.jax-0.12.0.1",
    "fill.jax-0.12.0.1",
];

/// The files that are damaged.
pub fn mutated() -> Vec<Sample> {
    let is_small = |sample: &Sample| {
        let is_shipped = sample.name.contains(".jax-");
        SMALL.iter().any(|name| sample.name.starts_with(name)) || (!is_shipped && !sample.is_upstream() && sample.bytes.len() < 20_000)
    };
    samples().into_iter().filter(is_small).collect()
}

/// One damaged export; which one is told by the seed alone.
pub fn mutant(samples: &[Sample], seed: u64) -> (String, Vec<u8>) {
    let mut random = Random::new(seed);
    let sample = &samples[random.below(samples.len())];
    let name = format!("{}, mutant {seed}", sample.name);
    if sample.is_hostile() || (sample.is_export() && random.one_in(8)) {
        let mut bytes = sample.bytes.clone();
        mutate_bytes(&mut bytes, &mut random);
        return (name, bytes);
    }
    let modules = sample.modules();
    let chosen = random.below(modules.len());
    let (_, module, base) = &modules[chosen];
    let bytes = match Bytecode::read(module, *base) {
        Ok(mut bytecode) if !random.one_in(3) => {
            mutate_module(&mut bytecode, &mut random);
            match catch_unwind(AssertUnwindSafe(|| bytecode.write().map(|written| written.to_vec()))) {
                Ok(Ok(bytes)) => bytes,
                // Something that only a reader can rule out.
                _ => module.to_vec(),
            }
        }
        _ => {
            let mut bytes = module.to_vec();
            mutate_bytes(&mut bytes, &mut random);
            bytes
        }
    };
    if !sample.is_export() {
        return (name, bytes);
    }
    let mut exported = Exported::read(&sample.bytes).unwrap();
    let replace = |level: usize, exported: &mut Exported<'_>| {
        if level == chosen {
            exported.module = Pieces::new();
            exported.module.extend_copied(&bytes);
        }
        Ok(())
    };
    exported.for_each_level_mut(replace).unwrap();
    (name, exported.write().unwrap().to_vec())
}

/// One input of any kind: bytes changed, an end missing, the parts of two files, or one of [`mutant`]'s. Which one is told by the seed alone.
pub fn mutation(samples: &[Sample], seed: u64) -> (String, Vec<u8>) {
    let mut random = Random::new(seed);
    // Of two the smaller: many inputs are worth more than large ones.
    let choose = |random: &mut Random| {
        let (one, other) = (&samples[random.below(samples.len())], &samples[random.below(samples.len())]);
        if one.bytes.len() < other.bytes.len() { one } else { other }
    };
    let sample = choose(&mut random);
    let mut bytes = sample.bytes.clone();
    match random.below(16) {
        0 => bytes.truncate(random.below(sample.bytes.len())),
        1 | 2 => {
            let other = choose(&mut random);
            let to = random.below(other.bytes.len());
            // At the same place as often as not, so that what comes first still fits.
            bytes.truncate(if random.one_in(2) { to } else { random.below(sample.bytes.len()) });
            bytes.extend_from_slice(&other.bytes[to..]);
        }
        3..9 => (0..1 + random.below(8)).for_each(|_| mutate_bytes(&mut bytes, &mut random)),
        _ => return mutant(samples, seed),
    }
    (format!("{}, mutation {seed}", sample.name), bytes)
}
