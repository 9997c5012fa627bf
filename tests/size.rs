//! Where the bytes are: sums that must be exact, over every export at hand, and values that were worked out by hand.
//!
//! `JAXPRISM_SAMPLES` may name a folder of further files.

mod common;

use std::collections::HashMap;

use common::build::{Builder, Op};
use common::{Sample, samples, shipped};
use jaxprism::bytecode::{Bytecode, Bytes, Field, code};
use jaxprism::size::{Function, Level, Own};
use jaxprism::{Error, ErrorKind, Exported, Size, SizeOptions, inspect, size};

fn measured(sample: &Sample) -> Result<Size, Error> {
    size(&sample.bytes, &SizeOptions::default())
}

fn level(module: &[u8]) -> Level {
    size(module, &SizeOptions::default()).unwrap().levels.remove(0)
}

fn function<'l>(level: &'l Level, name: &str) -> &'l Function {
    level.functions.largest.iter().find(|function| function.name == name).unwrap()
}

/// The lengths of the sections at the top of a module by number, and the bytes of all else; read without any of the library's reader.
fn lengths(module: &[u8]) -> (HashMap<u8, u64>, u64) {
    let varint = |at: &mut usize| {
        let extra = module[*at].trailing_zeros() as usize;
        let mut bytes = [0; 16];
        bytes[..extra + 1].copy_from_slice(&module[*at..*at + extra + 1]);
        *at += extra + 1;
        (u128::from_le_bytes(bytes) >> (extra + 1)) as u64
    };
    let mut at = 5 + module[5..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let (mut lengths, mut others) = (HashMap::new(), at as u64);
    while at < module.len() {
        let (start, id) = (at, module[at]);
        at += 1;
        let length = varint(&mut at);
        if id & 0x80 != 0 {
            varint(&mut at);
            at += module[at..].iter().take_while(|byte| **byte == 0xCB).count();
        }
        others += (at - start) as u64;
        lengths.insert(id & 0x7f, length);
        at += length as usize;
    }
    (lengths, others)
}

#[test]
fn everything_adds_up_to_the_file() {
    let mut count = 0;
    for sample in samples() {
        let size = match measured(&sample) {
            Ok(size) => size,
            Err(error) => {
                // What cannot be measured cannot be looked at either.
                assert_eq!(inspect(&sample.bytes).unwrap_err().to_string(), error.to_string(), "{}", sample.name);
                continue;
            }
        };
        count += 1;
        assert_eq!(size.bytes, sample.bytes.len() as u64, "{}", sample.name);
        let modules = sample.modules();
        let in_modules: u64 = modules.iter().map(|(_, module, _)| module.len() as u64).sum();
        assert_eq!(size.container, size.bytes - in_modules, "{}", sample.name);
        for (level, (name, module, _)) in size.levels.iter().zip(&modules) {
            check_level(level, module, name);
        }
        assert_eq!(size.levels.len(), modules.len(), "{}", sample.name);
    }
    assert!(count >= 20, "only {count} files");
}

fn check_level(level: &Level, module: &[u8], name: &str) {
    let sections = &level.sections;
    assert_eq!(level.bytes, module.len() as u64, "{name}");
    assert_eq!(sections.each().iter().map(|(_, bytes)| bytes).sum::<u64>(), level.bytes, "{name}");
    let (lengths, others) = lengths(module);
    let length = |id: u8| lengths.get(&id).copied().unwrap_or(0);
    assert_eq!(sections.strings, length(0), "{name}");
    assert_eq!(sections.names, length(1), "{name}");
    assert_eq!(sections.constants + sections.locations + sections.attributes + sections.types, length(2), "{name}");
    assert_eq!(sections.offsets, length(3), "{name}");
    assert_eq!(sections.operations, length(4), "{name}");
    assert_eq!(sections.resources, length(5) + length(6), "{name}");
    assert_eq!(sections.properties, length(8), "{name}");
    assert_eq!(sections.headers, others, "{name}");

    assert_eq!(level.constants.bytes, sections.constants, "{name}");
    let of_files: u64 = level.locations.largest.iter().map(|file| file.string_bytes).sum();
    let of_kinds: u64 = level.attributes.largest.iter().map(|kind| kind.string_bytes).sum();
    assert_eq!(level.attributes.bytes - of_kinds, sections.attributes + sections.types, "{name}");
    assert_eq!(level.locations.bytes - of_files, sections.locations, "{name}");
    let strings = &level.strings;
    let number = sections.strings - strings.each.bytes;
    assert!((1..=9).contains(&number), "{name}: {number} bytes for the number of strings");
    assert_eq!(strings.uses.bytes, strings.each.bytes, "{name}");
    let of_use =
        |wanted: &str| strings.uses.largest.iter().filter(|of_use| of_use.used_by == wanted).map(|of_use| of_use.bytes).sum::<u64>();
    assert_eq!(of_files + of_kinds, strings.each.bytes - of_use("names") - of_use("resources") - of_use("nothing"), "{name}");

    for function in &level.functions.largest {
        assert_eq!(function.own.total(), function.bytes, "{name}");
        let retained = function.retained.unwrap();
        assert!(
            function.bytes <= retained && retained < level.bytes,
            "{name}: @{} has {}, retains {retained}",
            function.name,
            function.bytes
        );
    }
    assert!(level.functions.bytes < level.bytes, "{name}");
}

#[test]
fn what_info_says_it_says_too() {
    for sample in shipped() {
        let (size, info) = (measured(&sample).unwrap(), inspect(&sample.bytes).unwrap());
        for (size, info) in size.levels.iter().zip(&info.levels) {
            let constants = &info.module.constants;
            assert_eq!((size.constants.count, info.module.functions.len()), (constants.distinct, size.functions.count), "{}", sample.name);
            assert_eq!(size.constants.largest.iter().map(|constant| constant.uses).sum::<usize>(), constants.operations, "{}", sample.name);
            for constant in &constants.largest {
                // Where there is no file, `info` shows all names, and this the innermost.
                let file = |place: &Option<String>| place.clone().filter(|place| !place.starts_with('`'));
                let is_same = |found: &&jaxprism::size::Constant| {
                    (&found.r#type, &found.function, file(&found.place)) == (&constant.r#type, &constant.function, file(&constant.place))
                };
                assert!(size.constants.largest.iter().any(|found| is_same(&found)), "{}: {constant:?}", sample.name);
            }
            // A code, a type and a length stand before the elements.
            assert!(size.constants.bytes > constants.bytes + 3 * constants.distinct as u64 - 1, "{}", sample.name);
        }
    }
}

/// A function that returns a constant, byte by byte.
#[rustfmt::skip]
const TINY: &[&[u8]] = &[
    b"ML\xefR", b"\x0d", b"StableHLO_v1.18.0\0",                // 23: magic number, version 6, producer
    &[0x01, 0x19],                                             //  2: section 1 of 12 bytes: dialects and operation names
    &[0x05, 0x01, 0x05, 0x09, 0x01, 0x03, 0x0b, 0x03, 0x07, 0x0f, 0x13, 0x17],
    &[0x03, 0x23],                                             //  2: section 3 of 17 bytes: sizes of 6 attributes and 3 types
    &[0x0d, 0x07, 0x01, 0x03, 0x07, 0x03, 0x0b, 0x3f, 0x0b, 0x0b, 0x0b, 0x0b, 0x03, 0x07, 0x07, 0x13, 0x0f],
    &[0x02, 0x41],                                             //  2: section 2 of 32 bytes: attributes and types
    &[0x1f],                                                   //  1: an unknown location
    &[0x1f, 0x03, 0x19, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], // 15: the constant
    &[0x03, 0x01], &[0x1d, 0x0d], &[0x23, 0x05], &[0x1d, 0x0f], //  8: no attributes of arguments, "main", its type, ""
    &[0x09], &[0x29, 0x03, 0x0d, 0x01], &[0x11, 0x01, 0x01],   //  8: f32, tensor<3xf32>, a function
    &[0x04, 0x3d],                                             //  2: section 4 of 30 bytes: operations
    &[0x05],                                                   //  1: one operation at the top
    &[0x01, 0x50, 0x01, 0x01, 0x07, 0x04, 0x2d, 0x03, 0x01, 0x05], // 10: the module
    &[0x03, 0x50, 0x01, 0x03, 0x07, 0x04, 0x19, 0x03, 0x03, 0x09], // 10: the function
    &[0x05, 0x42, 0x01, 0x05, 0x03, 0x03],                     //  6: the constant operation
    &[0x07, 0x00, 0x01],                                       //  3: the return
    &[0x00, 0x83],                                             //  2: section 0 of 65 bytes: strings
    &[0x11, 0x03, 0x0b, 0x15, 0x19, 0x11, 0x0f, 0x0b, 0x11],   //  9: 8 of them, and their sizes
    b"builtin\0", b"vhlo\0", b"module\0", b"func_v1\0", b"constant_v1\0", b"return_v1\0", b"main\0", b"\0", // 56
    &[0x08, 0x19],                                             //  2: section 8 of 12 bytes: properties
    &[0x07], &[0x05, 0x01, 0x01],                              //  4: 3 of them; the module's
    &[0x0b, 0x05, 0x09, 0x05, 0x07, 0x0b], &[0x03, 0x03],      //  8: the function's, the constant's
];

#[test]
fn a_module_that_was_measured_by_hand() {
    let level = level(&TINY.concat());
    assert_eq!(level.bytes, 203);
    let expected = [
        ("operations", 30),
        ("properties", 12),
        ("constants", 15),
        ("locations", 1),
        ("attributes", 8),
        ("types", 8),
        ("offsets", 17),
        ("strings", 65),
        ("names", 12),
        ("resources", 0),
        ("headers", 35),
    ];
    assert_eq!(level.sections.each(), expected);

    let [constant] = &level.constants.largest[..] else { panic!("{:?}", level.constants) };
    assert_eq!((&*constant.r#type, constant.dtype.as_deref(), constant.shape.as_deref()), ("f32[3]", Some("f32"), Some(&[3][..])));
    assert_eq!((constant.bytes, constant.splat, constant.uses, constant.functions, &*constant.function), (15, false, 1, 1, "main"));

    // The location is the module's as well. Each attribute and type has one more byte among the sizes, each string one for its own.
    let main = function(&level, "main");
    let Own { operations, properties, constants, locations, attributes, strings, .. } = main.own;
    assert_eq!((operations, properties, constants, locations), (10 + 6 + 3, 6 + 2, 15 + 1, 0));
    assert_eq!((attributes, strings), (8 + 4 + 8 + 3, 5 + 1 + 1 + 1));
    assert_eq!((main.bytes, main.retained, main.operations, main.public), (74, Some(74), 2, true));

    let kinds: Vec<_> = level.attributes.largest.iter().map(|kind| (&*kind.kind, kind.count, kind.bytes, kind.string_bytes)).collect();
    let expected = [
        ("vhlo.string", 2, 12, 8),
        ("type vhlo.tensor", 1, 4, 0),
        ("type vhlo.func", 1, 3, 0),
        ("vhlo.array", 1, 2, 0),
        ("vhlo.type", 1, 2, 0),
        ("type vhlo.f32", 1, 1, 0),
    ];
    assert_eq!(kinds, expected);
    let uses: Vec<_> = level.strings.uses.largest.iter().map(|of_use| (&*of_use.used_by, of_use.count, of_use.bytes)).collect();
    assert_eq!(uses, [("names", 6, 56), ("vhlo.string", 2, 8)]);
    let strings: Vec<_> = level.strings.each.largest.iter().map(|text| (&*text.text, text.bytes)).collect();
    assert_eq!(strings[..2], [("constant_v1", 13), ("return_v1", 11)]);
}

/// A vector of zeros and a last one, 4 bytes each.
fn vector(builder: &mut Builder<'_>, length: usize, last: u32, result: u32) -> Op {
    let element = builder.r#type(code::vhlo::I32_TYPE, vec![]);
    let of = builder.r#type(code::vhlo::TENSOR_TYPE, vec![Field::Count(1), Field::Signed(length as i64), Field::Type(element)]);
    let bytes = (1..length).flat_map(|_| [0; 4]).chain(last.to_le_bytes()).collect::<Vec<u8>>();
    let value = builder.attribute(code::vhlo::TENSOR, vec![Field::Type(of), Field::Blob(Bytes(bytes.into()))]);
    Op { properties: vec![Some(value)], ..builder.op("constant_v1", &[], &[(result, of)]) }
}

/// `main` calls `a` and `b`; both call `shared`, `b` alone calls `own`; `dead` is called by nothing.
fn calling() -> Vec<u8> {
    let demo = shipped().into_iter().find(|sample| sample.name == "demo.jax-0.12.0.1.jax_exported").unwrap();
    let exported = Exported::read(&demo.bytes).unwrap();
    let like = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    let mut builder = Builder::new(&like);
    // Callees, and constants by length and last number.
    type Row<'r> = (&'r str, &'r [&'r str], &'r [(usize, u32)]);
    let functions: [Row<'_>; 6] = [
        ("main", &["a", "b"], &[]),
        ("a", &["shared"], &[(100, 1), (200, 2)]),
        ("b", &["shared", "own"], &[(200, 2), (30, 3), (30, 3), (30, 3)]),
        ("shared", &[], &[(1_000, 4)]),
        ("own", &[], &[(2_000, 5), (30, 3)]),
        ("dead", &[], &[(1_500, 6)]),
    ];
    let mut operations = Vec::new();
    for (name, callees, constants) in functions {
        let mut body = Vec::new();
        body.extend(constants.iter().zip(1..).map(|((length, last), result)| vector(&mut builder, *length, *last, result)));
        body.extend(callees.iter().map(|callee| builder.call(callee, &[], &[])));
        body.push(builder.op("return_v1", &[], &[]));
        operations.push(builder.function(name, &[], &[], body));
    }
    builder.module(operations)
}

#[test]
fn functions_retain_what_only_they_lead_to() {
    let level = level(&calling());
    // A constant of 200 numbers has 800 bytes, and a code, a type, and a length of two bytes before them; its size takes two more.
    let constant = |length: u64| 4 * length + 4 + 2;
    let retained = |name| function(&level, name).retained.unwrap();
    let own = |name| function(&level, name).own;
    assert_eq!(own("a").constants, constant(100));
    assert_eq!(own("b").constants, 0);
    assert_eq!(own("shared").constants, constant(1_000));
    assert_eq!(own("own").constants, constant(2_000));
    assert_eq!(own("dead").constants, constant(1_500));
    // Nothing else is retained by those that call nothing: not even their types, which all share.
    for name in ["a", "shared", "dead"] {
        assert_eq!(retained(name), function(&level, name).bytes, "{name}");
    }
    // What `b` and `own` alone use: the vector of 30, stored once, its type, the properties that name it, and the name `own`.
    let between = (120 + 3 + 2) + (4 + 1) + (1 + 1) + (2 + 1 + 4 + 1);
    assert_eq!(retained("b"), function(&level, "b").bytes + retained("own") + between);
    let small = level.constants.largest.iter().find(|constant| constant.r#type == "i32[30]").unwrap();
    assert_eq!((small.uses, small.functions, &*small.function), (4, 2, "b"));
    // `main` retains all of that, `shared`, and the vector of 200 that `a` and `b` use.
    assert!(retained("main") > retained("a") + retained("b") + retained("shared") + constant(200));
    assert!(retained("main") < retained("a") + retained("b") + retained("shared") + constant(200) + 200);
    assert_eq!(level.functions.largest[0].name, "main");
}

#[test]
fn lists_are_cut_and_their_sums_are_not() {
    let all = level(&calling());
    let cut = size(&calling(), &SizeOptions::default().longest_list(2)).unwrap().levels.remove(0);
    assert_eq!((cut.constants.largest.len(), cut.constants.count, cut.constants.bytes), (2, 6, all.constants.bytes));
    assert_eq!((cut.functions.largest.len(), cut.functions.count, cut.functions.bytes), (2, 6, all.functions.bytes));
    assert_eq!((cut.strings.each.largest.len(), cut.strings.each.count), (2, all.strings.each.largest.len()));
    assert_eq!(cut.sections, all.sections);
    assert_eq!(cut.constants.largest[0].r#type, "i32[2000]");
}

#[test]
fn attributes_are_known_by_what_they_are_for() {
    let of = |name: &str| {
        let sample = shipped().into_iter().find(|sample| sample.name == format!("{name}.jax-0.12.0.1.jax_exported")).unwrap();
        measured(&sample).unwrap().levels.remove(0)
    };
    let kind = |level: &Level, kind: &str| {
        let found = level.attributes.largest.iter().find(|found| found.kind == kind);
        found.map_or((0, 0), |found| (found.count, found.bytes))
    };
    assert!(kind(&of("sharded"), "sharding").0 > 2);
    // Dictionaries, and nine texts of what each callback is.
    let (count, bytes) = kind(&of("callbacks"), "backend configuration");
    assert!(count > 15 && bytes > 2_000, "{count} of {bytes} bytes");
    assert_eq!(kind(&of("single"), "sharding"), (0, 0));
    let files = of("demo").locations;
    assert_eq!(files.largest[0].file.as_deref(), Some("make.py"));
}

#[test]
fn levels_that_share_their_module_are_refused() {
    let sample = shipped().into_iter().find(|sample| sample.name == "vjp.jax-0.12.0.1.jax_exported").unwrap();
    let written = Exported::read(&sample.bytes).unwrap().write().unwrap().to_vec();
    let sample = Sample { name: "shared".to_owned(), bytes: written };
    let starts: Vec<usize> = sample.modules().iter().map(|(_, _, start)| *start as usize - 4).collect();
    let mut bytes = sample.bytes.clone();
    let leads_to = |bytes: &[u8], at: usize| at + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let field = (0..starts[0]).step_by(4).find(|at| leads_to(&bytes, *at) == starts[1]).unwrap();
    bytes[field..field + 4].copy_from_slice(&((starts[0] - field) as u32).to_le_bytes());
    Exported::read(&bytes).unwrap();
    let error = size(&bytes, &SizeOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Format, Some(starts[0] as u64 + 4)));
    assert!(error.to_string().starts_with("the modules of two levels share bytes"), "{error}");
}
