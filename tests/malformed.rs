//! Damaged and hostile input: whatever it is, it is read or refused, with a kind and with the place; nothing panics, hangs or dies.
//!
//! What still can be read after it was damaged goes on into MLIR, where a mistake would end the process. So that part runs in processes of its own: the
//! test starts this very program with the name of the one test that is ignored.

mod common;

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::build::{Body, Builder, Op};
use common::hostile::{SMALL, bounded, check_error, check_error_with_offset, codec, container, mutant, mutated, whole};
use common::{Random, Sample, samples, shipped, with_module};
use jaxprism::bytecode::{Bytecode, Entry, Field, TypeId, code, dialect};
use jaxprism::{Exported, SplitOptions, inspect, split};

/// No batch takes nearly as long.
const MUCH_TOO_LONG: Duration = Duration::from_secs(60);

#[test]
fn a_module_that_ends_early_is_refused_with_the_place() {
    for sample in shipped() {
        for (name, bytes, _) in sample.modules() {
            let step = (bytes.len() / 250).max(1);
            for length in (0..bytes.len()).step_by(step) {
                let error = Bytecode::read(&bytes[..length], 0).unwrap_err();
                check_error_with_offset(&name, &error, length as u64);
            }
        }
    }
}

#[test]
fn an_export_that_ends_early_is_refused() {
    for sample in shipped() {
        let step = (sample.bytes.len() / 250).max(1);
        for length in (0..sample.bytes.len()).step_by(step) {
            let cut = &sample.bytes[..length];
            match (split(cut, &SplitOptions::default()), inspect(cut)) {
                (Err(one), Err(other)) => [one, other].iter().for_each(|error| check_error(&sample.name, error)),
                // Only what fills up the last word is missing.
                (one, _) => assert!(one.is_ok() && sample.bytes.len() - length < 8, "{}: {length} bytes are enough", sample.name),
            }
        }
    }
}

#[test]
fn a_damaged_module_is_read_or_refused_with_the_place() {
    let mut random = Random::new(1);
    for sample in shipped() {
        for (name, bytes, _) in sample.modules() {
            let mut bytes = bytes.to_vec();
            for _ in 0..300_000 / bytes.len() {
                let place = random.below(bytes.len());
                let old = bytes[place];
                bytes[place] ^= 1 << random.below(8);
                let name = format!("{name}, byte {place:#x} of the module is {:#04x}", bytes[place]);
                bounded(&name, || codec(&name, &bytes)).unwrap();
                bytes[place] = old;
            }
        }
    }
}

/// Bytes of an export outside its modules.
#[test]
fn a_damaged_container_is_read_or_refused() {
    let mut random = Random::new(2);
    for sample in shipped() {
        let modules: Vec<_> = sample.modules().into_iter().map(|(_, bytes, base)| base as usize..base as usize + bytes.len()).collect();
        let outside: Vec<_> = (0..sample.bytes.len()).filter(|place| !modules.iter().any(|module| module.contains(place))).collect();
        let mut bytes = sample.bytes.clone();
        for _ in 0..500 {
            let place = outside[random.below(outside.len())];
            let old = bytes[place];
            bytes[place] ^= 1 << random.below(8);
            let name = format!("{}, byte {place:#x} is {:#04x}", sample.name, bytes[place]);
            bounded(&name, || container(&name, &bytes)).unwrap();
            bytes[place] = old;
        }
    }
}

#[test]
fn hostile_files_are_refused() {
    for sample in samples().into_iter().filter(Sample::is_hostile) {
        // Two of them are only strange: a shape that is too large for its elements is fine where one stands for all.
        if let Err(error) = Bytecode::read(&sample.bytes, 0) {
            check_error_with_offset(&sample.name, &error, sample.bytes.len() as u64);
        }
        bounded(&sample.name, || codec(&sample.name, &sample.bytes)).unwrap();
    }
}

/// Keeps an input that something went wrong with, and tells where.
fn keep(name: &str, bytes: &[u8]) -> String {
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// The variable that tells the process of one batch which mutants are its own: `FIRST COUNT`, or a file.
const BATCH: &str = "JAXPRISM_TEST_BATCH";

#[test]
#[ignore = "started by the tests below, in processes of its own"]
fn batch() {
    let Ok(batch) = std::env::var(BATCH) else { return };
    let mut failures = Vec::new();
    let mut check = |name: &str, bytes: &[u8]| {
        eprintln!("now: {name}");
        if let Err(failure) = bounded(name, || whole(name, bytes)) {
            failures.push(format!("{failure}\n  the input is in {}", keep(name, bytes)));
        }
    };
    match batch.split_once(' ') {
        Some((first, count)) => {
            let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
            let samples = mutated();
            for seed in first..first + count {
                let (name, bytes) = mutant(&samples, seed);
                check(&name, &bytes);
            }
        }
        None => check(&batch, &std::fs::read(&batch).unwrap()),
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Runs a batch in a process of its own, which must end in peace.
fn run_batch(batch: &str) {
    try_batch(batch).unwrap_or_else(|failure| panic!("{failure}"));
}

fn try_batch(batch: &str) -> Result<(), String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "batch"]).env(BATCH, batch).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let id = child.id();
    let output = thread::scope(|scope| {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            // A batch of its own knows what took too long; this is for what does not end at all.
            if wait.recv_timeout(MUCH_TOO_LONG) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            }
        });
        let mut said = Vec::new();
        let _ = child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut said));
        let status = child.wait().unwrap();
        drop(done);
        Output { status, stdout: Vec::new(), stderr: said }
    });
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| line.starts_with("now: ")).unwrap_or("nothing");
    if output.status.success() {
        return Ok(());
    }
    let tail: Vec<_> = said.lines().filter(|line| !line.starts_with("now: ")).collect();
    let tail = tail[tail.len().saturating_sub(15)..].join("\n");
    Err(format!("batch {batch}: {}; the last input was {last}\n{tail}", output.status))
}

#[test]
fn mutants_of_exports_never_end_the_process() {
    (0..4).for_each(|batch| run_batch(&format!("{} 100", batch * 100)));
}

/// What a program by hand must come to.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Split,
    Refused,
}
use Fate::{Refused, Split};

type Program = fn(&mut Builder<'static>) -> Vec<Op>;

/// Programs with one thing wrong, or with more of something than any program has.
const PROGRAMS: &[(&str, Fate, Program)] = &[
    ("a call of nothing", Refused, |b| main_with(b, |b, _| vec![b.call("nothing", &[0], &[])])),
    ("functions that call each other", Refused, |b| {
        let index = b.i32();
        let mut functions = main_with(b, |b, _| vec![b.call("f", &[0], &[])]);
        for (name, callee) in [("f", "g"), ("g", "f")] {
            let operations = vec![b.call(callee, &[0], &[]), b.op("return_v1", &[], &[])];
            functions.push(b.function(name, &[(0, index)], &[], operations));
        }
        functions
    }),
    ("a main that calls itself", Refused, |b| {
        let index = b.i32();
        main_with(b, |b, _| vec![b.call("main", &[0], &[(1, index)])])
    }),
    ("two functions of one name", Refused, |b| [main_with(b, |_, _| vec![]), main_with(b, |_, _| vec![])].concat()),
    ("a case without branches", Refused, |b| main_with(b, |b, index| vec![b.op("case_v1", &[0], &[(1, index)])])),
    ("branches with other results", Refused, |b| {
        main_with(b, |b, index| {
            let float = b.f32();
            let empty = Body { arguments: vec![], operations: vec![b.op("return_v1", &[0], &[])] };
            vec![Op { regions: vec![empty.clone(), empty], ..b.op("case_v1", &[0], &[(1, index), (2, float)]) }]
        })
    }),
    ("branches without an end", Refused, |b| {
        main_with(b, |b, index| vec![Op { regions: vec![Body::default(); 3], ..b.op("case_v1", &[0], &[(1, index)]) }])
    }),
    ("a loop of other types", Refused, |b| {
        main_with(b, |b, index| {
            let float = b.f32();
            let body = |value, of, b: &mut Builder<'static>| Body {
                arguments: vec![(value, of)],
                operations: vec![b.op("return_v1", &[value], &[])],
            };
            let regions = vec![body(10, float, b), body(11, index, b)];
            vec![Op { regions, ..b.op("while_v1", &[0], &[(1, index)]) }]
        })
    }),
    ("a platform index that is no integer", Refused, |b| {
        let float = b.f32();
        let end = b.op("return_v1", &[0], &[]);
        vec![b.function("main", &[(0, float)], &[float], vec![end])]
    }),
    ("a function without a body", Refused, |b| {
        let index = b.i32();
        let mut functions = main_with(b, |b, _| vec![b.call("f", &[0], &[])]);
        let mut declaration = b.function("f", &[(0, index)], &[], vec![]);
        declaration.regions.clear();
        functions.push(declaration);
        functions
    }),
    ("a function of another type than its body", Refused, |b| {
        let (index, float) = (b.i32(), b.f32());
        let mut main = main_with(b, |_, _| vec![]);
        main[0].regions[0].arguments = vec![(0, float)];
        let _ = index;
        main
    }),
    ("a function that returns another type", Refused, |b| {
        let (index, float) = (b.i32(), b.f32());
        let end = b.op("return_v1", &[0], &[]);
        vec![b.function("main", &[(0, index)], &[float], vec![end])]
    }),
    ("a module without a body", Refused, |_| vec![]),
    // jaxlib refuses the first three, and dies of the fourth.
    ("a location that is a string", Refused, |b| {
        let name = b.name("name");
        b.locate(name);
        main_with(b, |_, _| vec![])
    }),
    ("a location within which stands a string", Refused, |b| {
        let name = b.name("name");
        let location = b.builtin(code::builtin::LOC_NAME, vec![Field::Attribute(name), Field::Attribute(name)]);
        b.locate(location);
        main_with(b, |_, _| vec![])
    }),
    ("a value of an element's type", Refused, |b| {
        let element = b.r#type(code::vhlo::I32_TYPE, vec![]);
        main_with(b, |b, _| vec![b.op("after_all_v1", &[], &[(1, element)])])
    }),
    ("an accuracy that is a string", Refused, |b| {
        main_with(b, |b, index| {
            let name = b.string("name");
            vec![Op { properties: vec![Some(name)], ..b.op("tanh_v2", &[0], &[(1, index)]) }]
        })
    }),
    ("arithmetic without operands", Refused, |b| main_with(b, |b, index| vec![b.op("add_v1", &[], &[(1, index)])])),
    ("arithmetic without a result", Refused, |b| main_with(b, |b, _| vec![b.op("add_v1", &[0, 0], &[])])),
    ("a slice without what is sliced", Refused, |b| main_with(b, |b, index| vec![b.op("dynamic_slice_v1", &[], &[(1, index)])])),
    ("arithmetic at the edges", Split, |b| {
        main_with(b, |b, index| {
            let mut operations = vec![b.constant(i32::MIN, 1), b.constant(0, 2), b.constant(-1, 3)];
            let names = ["divide_v1", "remainder_v1", "multiply_v1", "subtract_v1", "shift_left_v1", "power_v1", "minimum_v1"];
            for (number, name) in names.iter().enumerate() {
                for right in [1, 2, 3] {
                    let left = 100 + 10 * number as u32 + right;
                    operations.push(b.op("add_v1", &[0, 1], &[(left, index)]));
                    operations.push(b.op(name, &[left, right], &[(left + 1_000, index)]));
                }
            }
            operations
        })
    }),
    ("a chain of 2,000 functions", Split, |b| chain(b, 2_000, false)),
    ("a function called with 200 indices", Split, |b| {
        let index = b.i32();
        let mut functions = main_with(b, |b, index| {
            let call = |site: u32, b: &mut Builder<'static>| {
                let (offset, sum) = (10 + 2 * site, 11 + 2 * site);
                [b.constant(site as i32, offset), b.op("add_v1", &[0, offset], &[(sum, index)]), b.call("f", &[sum], &[])]
            };
            (0..200).flat_map(|site| call(site, b)).collect()
        });
        let end = b.op("return_v1", &[], &[]);
        functions.push(b.function("f", &[(0, index)], &[], vec![end]));
        functions
    }),
    ("branches inside one another", Split, |b| {
        main_with(b, |b, index| {
            let mut inner = vec![b.op("return_v1", &[0], &[])];
            for depth in 1..400 {
                let other = Body { arguments: vec![], operations: vec![b.op("return_v1", &[0], &[])] };
                let branch = Body { arguments: vec![], operations: inner };
                let case = Op { regions: vec![branch, other], ..b.op("case_v1", &[0], &[(depth, index)]) };
                inner = vec![case, b.op("return_v1", &[depth], &[])];
            }
            inner.pop();
            inner
        })
    }),
    ("an index with 5,000 uses", Split, |b| {
        main_with(b, |b, index| (1..5_000).map(|use_| b.op("add_v1", &[0, use_ - 1], &[(use_, index)])).collect())
    }),
];

/// Small programs from which a careless step makes something enormous.
const EXPLOSIVE: &[(&str, Program)] = &[
    ("a chain of functions that return their index", |b| chain(b, 2_000, true)),
    ("twice as many indices in each function", |b| {
        let index = b.i32();
        let mut functions = main_with(b, |b, _| vec![b.call("f0", &[0], &[])]);
        for level in 0..40 {
            let mut operations = vec![b.constant(1, 1), b.op("add_v1", &[0, 0], &[(2, index)]), b.op("add_v1", &[2, 1], &[(3, index)])];
            if level < 39 {
                operations.extend([2, 3].map(|value| b.call(&format!("f{}", level + 1), &[value], &[])));
            }
            operations.push(b.op("return_v1", &[], &[]));
            functions.push(b.function(&format!("f{level}"), &[(0, index)], &[], operations));
        }
        functions
    }),
    ("a large function called with many indices", |b| {
        let (index, float) = (b.i32(), b.f32());
        let mut functions = main_with(b, |b, index| {
            let call = |site: u32, b: &mut Builder<'static>| {
                let (offset, sum) = (10 + 2 * site, 11 + 2 * site);
                let call = b.call("f", &[sum], &[(1_000_000 + site, float)]);
                [b.constant(site as i32, offset), b.op("add_v1", &[0, offset], &[(sum, index)]), call]
            };
            (0..2_000).flat_map(|site| call(site, b)).collect()
        });
        let mut operations = vec![b.op("convert_v1", &[0], &[(1, float)])];
        operations.extend((1..10_000).map(|value| b.op("add_v1", &[value, value], &[(value + 1, float)])));
        operations.push(b.op("return_v1", &[10_000], &[]));
        functions.push(b.function("f", &[(0, index)], &[float], operations));
        functions
    }),
    ("a loop that hands its values on one by one", |b| {
        const COUNT: u32 = 5_000;
        let (condition, body) = (|value| 100_000 + value, |value| 200_000 + value);
        main_with(b, |b, index| {
            let boolean = b.r#type(code::vhlo::BOOL_TYPE, vec![]);
            let truth = b.r#type(code::vhlo::TENSOR_TYPE, vec![Field::Count(0), Field::Type(boolean)]);
            let arguments = |value: fn(u32) -> u32| (0..COUNT).map(|number| (value(number), index)).collect::<Vec<_>>();
            let test = vec![b.op("is_finite_v1", &[condition(0)], &[(99_999, truth)]), b.op("return_v1", &[99_999], &[])];
            let handed_on: Vec<u32> = std::iter::once(300_000).chain((0..COUNT - 1).map(body)).collect();
            let step = vec![b.op("add_v1", &[body(0), body(0)], &[(300_000, index)]), b.op("return_v1", &handed_on, &[])];
            let regions =
                vec![Body { arguments: arguments(condition), operations: test }, Body { arguments: arguments(body), operations: step }];
            vec![Op { regions, ..b.op("while_v1", &vec![0; COUNT as usize], &arguments(|number| 1 + number)) }]
        })
    }),
    ("an attribute of two to the sixtieth parts in an error of MLIR's", |b| {
        let (index, float) = (b.i32(), b.f32());
        let name = b.name("name");
        let array = |b: &mut Builder<'static>, of| {
            b.builtin(code::builtin::ARRAY, vec![Field::Count(2), Field::Attribute(of), Field::Attribute(of)])
        };
        let value = (0..60).fold(name, |of, _| array(b, of));
        let dictionary = b.builtin(code::builtin::DICTIONARY, vec![Field::Count(1), Field::Attribute(name), Field::Attribute(value)]);
        let end = Op { attributes: Some(dictionary), ..b.op("return_v1", &[0], &[]) };
        vec![b.function("main", &[(0, index)], &[float], vec![end])]
    }),
    ("a location of two to the sixtieth parts in an error of MLIR's", |b| {
        let (index, float) = (b.i32(), b.f32());
        let (name, unknown) = (b.name("name"), b.builtin(code::builtin::LOC_UNKNOWN, vec![]));
        let first = b.builtin(code::builtin::LOC_NAME, vec![Field::Attribute(name), Field::Attribute(unknown)]);
        let call_site =
            |b: &mut Builder<'static>, of| b.builtin(code::builtin::LOC_CALLSITE, vec![Field::Attribute(of), Field::Attribute(of)]);
        let location = (0..60).fold(first, |of, _| call_site(b, of));
        b.locate(location);
        let end = b.op("return_v1", &[0], &[]);
        vec![b.function("main", &[(0, index)], &[float], vec![end])]
    }),
    ("a type of many arguments for many functions", |b| {
        let index = b.i32();
        let arguments: Vec<_> = (0..20_000).map(|value| (value, index)).collect();
        let mut functions = main_with(b, |_, _| vec![]);
        let other = b.function("f", &arguments, &[index], vec![]);
        for number in 0..5_000 {
            let name = b.string(&format!("f{number}"));
            let mut function = Op { regions: vec![Body::default()], properties: other.properties.clone(), ..b.op("func_v1", &[], &[]) };
            function.properties[3] = Some(name);
            functions.push(function);
        }
        functions
    }),
    // MLIR takes any type for that of an integer, and its width from whatever stands there.
    ("an integer of a type that is both signed and unsigned", |b| {
        let strange = Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, vec![Field::Unsigned(15 << 2 | 3)]);
        let strange = b.bytecode.tables.intern_type(strange);
        let value = b.builtin(code::builtin::INTEGER, vec![Field::Type(strange), Field::Unsigned(0)]);
        let name = b.name("a");
        let mut functions = main_with(b, |_, _| vec![]);
        let fields = vec![Field::Count(1), Field::Attribute(name), Field::Attribute(value)];
        functions[0].attributes = Some(b.builtin(code::builtin::DICTIONARY, fields));
        functions
    }),
];

/// A `main` that takes the platform index as value 0, does this, and returns it.
fn main_with(b: &mut Builder<'static>, body: impl FnOnce(&mut Builder<'static>, TypeId) -> Vec<Op>) -> Vec<Op> {
    let index = b.i32();
    let mut operations = body(b, index);
    operations.push(b.op("return_v1", &[0], &[]));
    vec![b.function("main", &[(0, index)], &[index], operations)]
}

/// Functions each of which calls the next.
fn chain(b: &mut Builder<'static>, count: u32, returns: bool) -> Vec<Op> {
    let index = b.i32();
    let (results, types) = (if returns { vec![(1, index)] } else { vec![] }, if returns { vec![index] } else { vec![] });
    let mut functions = main_with(b, |b, _| vec![b.call("f0", &[0], &results)]);
    for number in 0..count {
        let is_last = number + 1 == count;
        let value = [if is_last { 0 } else { 1 }];
        let mut operations = if is_last { vec![] } else { vec![b.call(&format!("f{}", number + 1), &[0], &results)] };
        operations.push(b.op("return_v1", if returns { &value } else { &[] }, &[]));
        functions.push(b.function(&format!("f{number}"), &[(0, index)], &types, operations));
    }
    functions
}

/// An export of a program by hand.
fn export_of(program: impl Fn(&mut Builder<'static>) -> Vec<Op>) -> Vec<u8> {
    let shipped = shipped();
    let like: &'static [u8] = shipped.into_iter().find(|sample| sample.name.starts_with(SMALL[0])).unwrap().bytes.leak();
    let exported = Exported::read(like).unwrap();
    let mut builder = Builder::new(&Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap());
    let functions = program(&mut builder);
    with_module(like, &builder.module(functions))
}

#[test]
fn programs_with_one_thing_wrong_are_refused() {
    let mut failures = Vec::new();
    for (name, fate, program) in PROGRAMS {
        let bytes = export_of(*program);
        let path = keep(name, &bytes);
        if let Err(failure) = try_batch(&path) {
            failures.push(format!("{name}: {failure}"));
            continue;
        }
        match split(&bytes, &SplitOptions::default()) {
            Ok(_) if *fate == Refused => failures.push(format!("{name} is not refused: {path}")),
            Err(error) if *fate == Split => failures.push(format!("{name} is refused: {error:?}: {path}")),
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn operands_that_are_not_there_are_told_with_the_place() {
    let said = |operands: &'static [u32]| {
        let bytes = export_of(|b| main_with(b, |b, index| vec![b.op("add_v1", operands, &[(1, index)])]));
        split(&bytes, &SplitOptions::default()).err().map(|error| {
            let cause = error.causes().last().unwrap();
            let at = error.offset().unwrap() as usize;
            assert!(at > 0 && at < bytes.len());
            cause.to_string().replace(&format!(" (at offset {at:#x})"), "")
        })
    };
    assert_eq!(said(&[]).unwrap(), "a `vhlo.add_v1` has no operands, not 2 operands");
    assert_eq!(said(&[0]).unwrap(), "a `vhlo.add_v1` has 1 operand, not 2 operands");
    assert_eq!(said(&[0, 0, 0]).unwrap(), "a `vhlo.add_v1` has 3 operands, not 2 operands");
    assert_eq!(said(&[0, 0]), None);
}

#[test]
fn small_programs_stay_small() {
    let mut failures = Vec::new();
    for (name, program) in EXPLOSIVE {
        let path = keep(name, &export_of(*program));
        failures.extend(try_batch(&path).err().map(|failure| format!("{name}: {failure}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Alone, and by a user: each is an error with the place, within a second of processor time and 200 MB of address space.
#[cfg(target_os = "linux")]
#[test]
fn hostile_files_are_refused_with_the_place_soon_and_in_little_memory() {
    let Some(root) = common::folder_of("JAXPRISM_SAMPLES") else { return };
    let files = common::files_below(&root.join("hostile"), &["mlirbc", "jax_exported"]);
    assert!(!files.is_empty());
    for (path, verb) in files.iter().flat_map(|path| ["info", "callbacks", "print", "opt"].map(|verb| (path, verb))) {
        let script = "ulimit -t 1; ulimit -v 204800; exec \"$0\" \"$@\"";
        let program = env!("CARGO_BIN_EXE_jaxprism");
        let output = Command::new("sh").args(["-c", script, program, verb]).arg(path).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(" (at offset 0x"), "{verb} {}: {}: {said}", path.display(), output.status);
    }
}

#[test]
fn hostile_files_never_end_the_process() {
    let Some(root) = common::folder_of("JAXPRISM_SAMPLES") else { return };
    common::files_below(&root.join("hostile"), &["mlirbc", "jax_exported"]).iter().for_each(|path| run_batch(&path.display().to_string()));
}
