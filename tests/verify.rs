//! `verify`: every split is proved, and every change that a program could notice is found.

mod common;

use std::collections::BTreeMap;

use common::{Random, keeping_callbacks, mutate_module, on_a_large_stack, samples, shipped};
use jaxprism::bytecode::{AttributeId, Bytecode, Entry, Field, Operation, TypeId, ValueId, code, dialect};
use jaxprism::callbacks::{CallbackOptions, Policies, Policy, Table};
use jaxprism::container::{Effect, Exported, PyTree, PyTreeKind};
use jaxprism::ir::text::{TextOptions, write_text};
use jaxprism::verify::Difference;
use jaxprism::{Locations, Platform, Source, SplitOptions, Verification, VerifyOptions, split, verify};

fn export(name: &str) -> Vec<u8> {
    shipped().into_iter().find(|sample| sample.name == name).unwrap_or_else(|| panic!("there is no {name}")).bytes
}

/// Callbacks are lowered where that can be done.
fn lowering_callbacks() -> SplitOptions {
    SplitOptions::default().callbacks(CallbackOptions::new(Policies::default().on_unsupported(Policy::Keep), Table::default()))
}

fn outputs(original: &[u8], options: &SplitOptions) -> Vec<(Platform, Vec<u8>)> {
    split(original, options).unwrap().outputs.into_iter().map(|(platform, output)| (platform, output.to_vec())).collect()
}

fn output(original: &[u8], platform: Platform) -> Vec<u8> {
    outputs(original, &lowering_callbacks().platforms([platform])).pop().unwrap().1
}

fn compared(original: &[u8], split: &[u8]) -> Verification {
    verify(original, split, &VerifyOptions::default()).unwrap()
}

/// What differs, each as one line.
fn lines(verification: &Verification) -> Vec<String> {
    assert_eq!(verification.verified, verification.differences.is_empty());
    verification.differences.iter().map(line).collect()
}

fn line(difference: &Difference) -> String {
    let Difference { level, function, operation, place, what, original, split, .. } = difference;
    let function = function.as_ref().map(|function| format!("@{function}"));
    let parts = [Some(format!("level {level}")).filter(|_| *level > 0), function, operation.clone(), place.clone(), Some(what.clone())];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    match (original, split) {
        (None, None) => text,
        (original, split) => format!("{text}: {} -> {}", original.as_deref().unwrap_or("nothing"), split.as_deref().unwrap_or("nothing")),
    }
}

/// An export whose container is another one.
fn with_container(bytes: &[u8], change: impl FnOnce(&mut Exported<'_>)) -> Vec<u8> {
    let mut exported = Exported::read(bytes).unwrap();
    change(&mut exported);
    exported.write().unwrap().to_vec()
}

/// An export whose module at level 0 is another one.
fn with_module(bytes: &[u8], change: impl FnOnce(&mut Bytecode<'_>)) -> Vec<u8> {
    let exported = Exported::read(bytes).unwrap();
    let mut module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    module.tree.use_orders.clear();
    change(&mut module);
    common::with_module(bytes, &module.write().unwrap().to_vec())
}

/// An export whose module at level 0 has another text.
fn with_text(bytes: &[u8], change: impl FnOnce(Vec<String>) -> Vec<String> + Send) -> Vec<u8> {
    let exported = Exported::read(bytes).unwrap();
    let module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    let mut text = Vec::new();
    on_a_large_stack(|| {
        write_text(&module, &TextOptions::exact(), &mut text).unwrap();
        let lines = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
        let changed = change(lines).join("\n");
        let Source::Module(mut module) = Source::read(changed.as_bytes(), "changed.mlir").unwrap() else { panic!("a module") };
        module.tree.use_orders.clear();
        common::with_module(bytes, &module.write().unwrap().to_vec())
    })
}

fn is_named(bytecode: &Bytecode<'_>, operation: &Operation, name: &str) -> bool {
    bytecode.op_name(operation) == name
}

/// The position of the operation of that name and number.
fn position(bytecode: &Bytecode<'_>, name: &str, number: usize) -> usize {
    let operations = bytecode.tree.operations.iter().enumerate();
    operations.filter(|(_, operation)| is_named(bytecode, operation, name)).nth(number).unwrap_or_else(|| panic!("no {name}")).0
}

// ---- what is proved

#[test]
fn every_split_is_proved() {
    let mut platforms = 0;
    for sample in samples().iter().filter(|sample| sample.is_export() && !sample.is_hostile()) {
        for options in [keeping_callbacks(), lowering_callbacks()] {
            for (platform, split) in outputs(&sample.bytes, &options) {
                let verification = compared(&sample.bytes, &split);
                assert!(verification.verified, "{} on {platform}: {:#?}", sample.name, lines(&verification));
                assert_eq!(verification.platform, Some(platform.to_string()));
                assert_eq!(verification.levels, Exported::read(&split).unwrap().levels().count());
                // Not by having looked at nothing. Terminators are not counted, nor the module, functions and what is one number.
                let all: usize = Exported::read(&split).unwrap().levels().map(operations).sum();
                assert!(verification.operations * 3 >= all, "{}: {} of {all}", sample.name, verification.operations);
                platforms += 1;
            }
        }
    }
    assert!(platforms > 60, "{platforms}");
}

/// The operations of a module that compute something.
fn operations(exported: &Exported<'_>) -> usize {
    let module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    let names =
        ["builtin.module", "vhlo.func_v1", "vhlo.return_v1", "sdy.return", "sdy.mesh", "vhlo.constant_v1", "vhlo.broadcast_in_dim_v1"];
    module.tree.operations.iter().filter(|operation| !names.contains(&&*module.op_name(operation))).count()
}

#[test]
fn an_export_for_one_platform_is_its_own_split() {
    let single = export("single.jax-0.12.0.1.jax_exported");
    assert!(compared(&single, &single).verified);
    let demo = export("demo.jax-0.12.0.1.jax_exported");
    assert_eq!(lines(&compared(&demo, &demo)), ["platforms: one of cpu, cuda, tpu -> all of cpu, cuda, tpu"]);
}

#[test]
fn locations_are_compared_unless_they_are_ignored() {
    let original = export("vjp.jax-0.12.0.1.jax_exported");
    for (_, split) in outputs(&original, &lowering_callbacks().locations(Locations::Stripped)) {
        let verification = compared(&original, &split);
        let is_location = |difference: &Difference| difference.what.starts_with("location");
        assert!(!verification.verified && verification.differences.iter().all(is_location), "{:?}", lines(&verification));
        assert!(verify(&original, &split, &VerifyOptions::default().ignore_locations(true)).unwrap().verified);
    }
}

// ---- what is found

#[test]
fn the_split_for_another_platform_is_found() {
    let original = export("linalg.jax-0.12.0.1.jax_exported");
    let relabelled = with_container(&output(&original, Platform::CUDA), |exported| exported.platforms = vec![Platform::CPU]);
    assert_eq!(
        lines(&compared(&original, &relabelled)),
        [
            "@cholesky vhlo.custom_call_v2 `cholesky` attribute `call_target_name`: \"lapack_spotrf_ffi\" -> \"cusolver_potrf_ffi\"",
            "@cholesky vhlo.custom_call_v2 `cholesky` attribute `mhlo.backend_config`: {\"uplo\" = 76 : ui8} -> {\"lower\" = true}",
            "@eigh vhlo.custom_call_v2 `eigh` attribute `call_target_name`: \"lapack_ssyevd_ffi\" -> \"cusolver_syevd_ffi\"",
            "@eigh vhlo.custom_call_v2 `eigh` attribute `mhlo.backend_config`: {\"mode\" = 86 : ui8, \"uplo\" = 76 : ui8} -> {\"algorithm\" = 0 : ui8, \"lower\" = true}",
        ]
    );
    let unknown = with_container(&output(&original, Platform::CUDA), |exported| exported.platforms = vec![Platform::ROCM]);
    assert_eq!(lines(&compared(&original, &unknown)), ["platforms: one of cpu, cuda, tpu -> rocm"]);
}

#[test]
fn one_byte_of_a_constant_is_found() {
    let original = export("demo.jax-0.12.0.1.jax_exported");
    let mut split = output(&original, Platform::CPU);
    let exported = Exported::read(&split).unwrap();
    let module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    let largest = (0..module.tables.attribute_count() as u32).filter_map(|id| module.tables.attribute(AttributeId(id)).bytes());
    let largest = largest.max_by_key(|bytes| bytes.0.len()).unwrap().0.as_ptr() as usize;
    let place = largest - split.as_ptr() as usize;
    split[place] ^= 1;
    let found = lines(&compared(&original, &split));
    assert!(
        matches!(&found[..], [line] if line.starts_with("@") && line.contains(" vhlo.constant_v1 ") && line.contains("attribute `value`: ")),
        "{found:?}"
    );
}

#[test]
fn a_number_is_found_where_it_is_used() {
    let original = export("x64.jax-0.12.0.1.jax_exported");
    let split = with_module(&output(&original, Platform::CPU), |module| {
        let integer = |operation: &Operation| {
            let id = module.inherent(operation, "value").filter(|_| is_named(module, operation, "vhlo.constant_v1"))?;
            let bytes = module.tables.attribute(id).bytes().filter(|bytes| bytes.0.len() == 8)?;
            (bytes.0[7] == 0).then_some((id, operation.properties?.range().start))
        };
        let (id, place) = module.tree.operations.iter().find_map(integer).unwrap();
        let mut entry = module.tables.attribute(id).clone();
        for field in &mut entry.fields {
            if let Field::Blob(bytes) = field {
                bytes.0.to_mut()[0] ^= 0x40;
            }
        }
        module.tree.properties[place] = Some(module.tables.intern_attribute(entry));
    });
    let found = lines(&compared(&original, &split));
    assert!(found.iter().any(|line| line.contains("operand") && line.contains("the number ")), "{found:?}");
}

#[test]
fn an_attribute_is_found() {
    let original = export("demo.jax-0.12.0.1.jax_exported");
    let split = with_module(&output(&original, Platform::CPU), |module| {
        let at = module.tree.operations[position(module, "vhlo.transpose_v1", 0)].properties.unwrap().range().start;
        let mut entry = module.tables.attribute(module.tree.properties[at].unwrap()).clone();
        for field in &mut entry.fields {
            if let Field::Blob(bytes) = field {
                bytes.0.to_mut()[0] ^= 1;
            }
        }
        module.tree.properties[at] = Some(module.tables.intern_attribute(entry));
    });
    let found = lines(&compared(&original, &split));
    assert!(
        matches!(&found[..], [line] if line.contains("vhlo.transpose_v1 make.py:") && line.contains(" attribute `permutation`: ")),
        "{found:?}"
    );
}

#[test]
fn what_is_no_list_of_dictionaries_of_arguments_or_results_is_not_proved() {
    let original = export("demo.jax-0.12.0.1.jax_exported");
    let cpu = output(&original, Platform::CPU);
    for (property, name, what) in [(0, "arg_attrs", "argument"), (2, "res_attrs", "result")] {
        // A string, a list of strings, and a list that is too long.
        for damage in 0..3 {
            let split = with_module(&cpu, |module| {
                let at = module.tree.operations[position(module, "vhlo.func_v1", 2)].properties.unwrap().range().start;
                let string = module.tree.properties[at + 3].unwrap();
                let empty = module.tables.intern_attribute(Entry::new(dialect::VHLO, code::vhlo::DICT, [Field::Count(0)]));
                let list = match damage {
                    0 => None,
                    1 => Some(vec![string]),
                    _ => Some(vec![empty; 9]),
                };
                let list = list.map(|items| {
                    let fields = std::iter::once(Field::Count(items.len() as u32)).chain(items.into_iter().map(Field::Attribute));
                    module.tables.intern_attribute(Entry::new(dialect::VHLO, code::vhlo::ARRAY, fields.collect::<Vec<_>>()))
                });
                module.tree.properties[at + property] = Some(list.unwrap_or(string));
            });
            let found = lines(&compared(&original, &split));
            let expected = format!("cannot be proved: `{name}` of the function is no list with a dictionary for each {what}");
            assert!(matches!(&found[..], [line] if line.ends_with(&expected)), "{found:?}");
        }
    }
}

#[test]
fn an_operation_that_is_gone_is_found() {
    let original = export("callbacks.jax-0.12.0.1.jax_exported");
    let split = outputs(&original, &keeping_callbacks()).remove(0).1;
    let is_effect =
        |line: &String| line.trim_start().starts_with("\"vhlo.custom_call") && line.contains("has_side_effect = #vhlo.bool_v1<true>");
    let without = with_text(&split, |mut lines| {
        let last = lines.iter().rposition(is_effect).unwrap();
        lines.remove(last);
        lines
    });
    let found = lines(&compared(&original, &without));
    assert!(found[0].contains("vhlo.custom_call_v2") && found[0].contains(" it is missing in SPLIT: "), "{found:?}");
    // The other way round there is one too many.
    let twice = with_text(&split, |mut lines| {
        let last = lines.iter().rposition(is_effect).unwrap();
        lines.insert(last, lines[last].clone());
        lines
    });
    let found = lines(&compared(&original, &twice));
    assert!(
        found[0].contains("SPLIT has another operation before it") || found[0].contains("SPLIT has another operation in its place"),
        "{found:?}"
    );
}

#[test]
fn effects_in_another_order_are_found() {
    let original = export("callbacks.jax-0.12.0.1.jax_exported");
    let split = outputs(&original, &keeping_callbacks()).remove(0).1;
    let swapped = with_text(&split, |mut lines| {
        let is_effect = |line: &String| line.trim_start().starts_with("\"vhlo.custom_call");
        let first = (0..lines.len() - 1).rfind(|at| is_effect(&lines[*at]) && is_effect(&lines[*at + 1])).unwrap();
        lines.swap(first, first + 1);
        lines
    });
    let found = lines(&compared(&original, &swapped));
    assert!(found.iter().any(|line| line.contains("vhlo.custom_call_v2 make.py:")), "{found:?}");
}

#[test]
fn swapped_operands_are_found() {
    let original = export("demo.jax-0.12.0.1.jax_exported");
    let split = with_module(&output(&original, Platform::CPU), |module| {
        let operations = &module.tree.operations;
        let place = operations.iter().find(|operation| is_named(module, operation, "vhlo.subtract_v1")).unwrap().operands.range();
        module.tree.operands.swap(place.start, place.start + 1);
    });
    let found = lines(&compared(&original, &split));
    assert_eq!(found.len(), 2, "{found:?}");
    for (number, line) in found.iter().enumerate() {
        assert!(line.contains("vhlo.subtract_v1 make.py:") && line.contains(&format!(" operand {number}: ")), "{line}");
    }
}

#[test]
fn fields_of_the_container_are_found() {
    let original = export("vjp.jax-0.12.0.1.jax_exported");
    let split = output(&original, Platform::CPU);
    let change = |change: &dyn Fn(&mut Exported<'_>)| lines(&compared(&original, &with_container(&split, |exported| change(exported))));
    assert!(change(&|_| {}).is_empty());
    let found = change(&|exported| {
        let avals = exported.unique_avals.as_mut().unwrap();
        avals[0].shape = Some(vec!["999".into()]);
    });
    assert!(matches!(&found[..], [line] if line.starts_with("unique_avals[0]: Aval ") && line.contains("999")), "{found:?}");
    assert_eq!(change(&|exported| exported.uses_global_constants = true), ["uses_global_constants: false -> true"]);
    assert_eq!(change(&|exported| exported.calling_convention_version = 8), ["calling_convention_version: 10 -> 8"]);
    let found = change(&|exported| exported.unordered_effects = Some(vec![Effect { type_name: Some("<class 'x'>".into()) }]));
    assert_eq!(found, ["unordered_effects: [] -> [Effect { type_name: Some(\"<class 'x'>\") }]"]);
    assert_eq!(change(&|exported| exported.vjp = None), ["vjp: 3 -> 1"]);
    let found = change(&|exported| exported.vjp.as_mut().unwrap().vjp.as_mut().unwrap().jax_version = Some("9".into()));
    assert_eq!(found, ["level 2 jax_version: \"0.12.0.1\" -> \"9\""]);
    let found = change(&|exported| {
        let deeper = exported.vjp.as_mut().unwrap();
        deeper.module = exported.module.clone();
    });
    assert!(!found.is_empty() && found.iter().all(|line| line.starts_with("level 1 ")), "{found:?}");
    assert_eq!(change(&|exported| exported.in_tree.kind = PyTreeKind::List), ["kind of in_tree: Tuple -> List"]);
    let named = |bytes: &[u8], name: &'static str| {
        with_container(bytes, |exported| {
            let leaf = || PyTree::new(PyTreeKind::Leaf, vec![]);
            exported.in_tree.children.as_mut().unwrap()[0] = PyTree::dict(vec![("w".into(), leaf()), (name.into(), leaf())]);
        })
    };
    assert!(compared(&named(&original, "b"), &named(&split, "b")).verified);
    let found = lines(&compared(&named(&original, "b"), &named(&split, "c")));
    assert_eq!(found, ["names of in_tree[0][1]: \"b\" -> \"c\""]);
}

#[test]
fn what_lowered_callbacks_call_is_compared_with_the_table() {
    let original = export("callbacks.jax-0.12.0.1.jax_exported");
    let split = output(&original, Platform::CUDA);
    let renamed = with_text(&split, |lines| {
        let wrong = |line: String| line.replacen("\"xla_ffi_python_gpu_callback\"", "\"xla_ffi_python_cpu_callback\"", 1);
        lines.into_iter().map(wrong).collect()
    });
    let found = lines(&compared(&original, &renamed));
    let is_target = |line: &String| {
        line.contains(" target of lowered callback `") && line.ends_with("xla_ffi_python_gpu_callback -> xla_ffi_python_cpu_callback")
    };
    assert!(!found.is_empty() && found.iter().all(is_target), "{found:?}");
    let renumbered = with_text(&split, |lines| {
        lines
            .into_iter()
            .map(|line| {
                line.replace("{\"index\" = 1 : ui64}", "{\"index\" = 0 : ui64}").replace(
                    "#vhlo.string_v1<\"index\"> = #vhlo.integer_v1<1 : ui64>",
                    "#vhlo.string_v1<\"index\"> = #vhlo.integer_v1<0 : ui64>",
                )
            })
            .collect()
    });
    let found = lines(&compared(&original, &renumbered));
    assert!(!found.is_empty() && found.iter().all(|line| line.contains(" number of lowered callback `")), "{found:?}");
    let unguarded = with_container(&split, |exported| exported.unordered_effects = Some(Vec::new()));
    let found = lines(&compared(&original, &unguarded));
    assert!(found.iter().any(|line| line == "unordered_effects has the guard of lowered callbacks: true -> false"), "{found:?}");
}

#[test]
fn callbacks_that_are_gone_are_found() {
    let original = export("callbacks.jax-0.12.0.1.jax_exported");
    let policies = Policies::default().otherwise("stub:zeros".parse::<Policy>().unwrap());
    let stubbed = SplitOptions::default().callbacks(CallbackOptions::new(policies, Table::default()));
    for (_, split) in outputs(&original, &stubbed) {
        assert!(!compared(&original, &split).verified);
    }
}

// ---- at random

/// The module as canonical text without locations, with what does not matter left out.
fn canonical(bytes: &[u8]) -> Vec<String> {
    let exported = Exported::read(bytes).unwrap();
    let mut options = TextOptions::exact();
    (options.canonical, options.locations) = (true, false);
    let text = |level: &Exported<'_>| {
        let mut text = Vec::new();
        let module = Bytecode::read(level.module.as_borrowed().unwrap(), 0).unwrap();
        on_a_large_stack(|| write_text(&module, &options, &mut text).unwrap());
        String::from_utf8(text).unwrap()
    };
    exported.levels().map(text).collect()
}

/// What a constant says.
fn constant_of(module: &Bytecode<'_>, value: ValueId) -> Option<AttributeId> {
    let operation = module.tree.operations.iter().find(|operation| operation.results.range().contains(&value.index()))?;
    module.inherent(operation, "value").filter(|_| is_named(module, operation, "vhlo.constant_v1"))
}

/// Changes one thing, and says what. `None` where that thing is not there, or where the change is none.
fn change_one(module: &mut Bytecode<'_>, random: &mut Random) -> Option<String> {
    let at = random.below(module.tree.operations.len());
    let operation = module.tree.operations[at].clone();
    let name = module.op_name(&operation);
    let is_type = |left: ValueId, right: ValueId, module: &Bytecode<'_>| {
        module.tree.value_types[left.index()] == module.tree.value_types[right.index()]
    };
    match random.below(5) {
        0 if operation.operands.len > 1 => {
            let start = operation.operands.range().start;
            let (one, other) =
                (start + random.below(operation.operands.len as usize), start + random.below(operation.operands.len as usize));
            let (left, right) = (module.tree.operands[one], module.tree.operands[other]);
            module.tree.operands.swap(one, other);
            let is_same = constant_of(module, left).is_some_and(|value| constant_of(module, right) == Some(value));
            (left != right && is_type(left, right, module) && !is_same).then(|| format!("operands of {name} swapped"))
        }
        1 if operation.operands.len > 0 => {
            let place = operation.operands.range().start + random.below(operation.operands.len as usize);
            let old = module.tree.operands[place];
            let new = ValueId(old.0.checked_sub(1 + random.below(6) as u32)?);
            module.tree.operands[place] = new;
            let is_same = constant_of(module, old).is_some_and(|value| constant_of(module, new) == Some(value));
            (is_type(old, new, module) && !is_same).then(|| format!("operand of {name} is another value"))
        }
        2 => {
            let span = operation.properties.filter(|span| span.len > 0)?;
            let place = span.range().start + random.below(span.len as usize);
            let old = module.tree.properties[place]?;
            let new = AttributeId(random.below(module.tables.attribute_count()) as u32);
            let (ours, theirs) = (module.tables.attribute(old), module.tables.attribute(new));
            let is_like = ours.dialect == theirs.dialect && ours.code == theirs.code && old != new;
            if !is_like {
                return None;
            }
            module.tree.properties[place] = Some(new);
            Some(format!("attribute of {name} is another one"))
        }
        3 => {
            let result = operation.results.range().next()?;
            let new = TypeId(random.below(module.tables.type_count()) as u32);
            let is_new = module.tree.value_types[result] != new;
            module.tree.value_types[result] = new;
            is_new.then(|| format!("type of a result of {name}"))
        }
        4 => {
            let others = ["add_v1", "subtract_v1", "multiply_v1", "maximum_v1", "minimum_v1", "divide_v1"];
            let short = name.strip_prefix("vhlo.").filter(|short| others.contains(short))?;
            let other = others[random.below(others.len())];
            module.tree.operations[at].name = module.tables.intern_op_name(dialect::VHLO, other.as_bytes().into(), true);
            (other != short).then(|| format!("{name} is {other}"))
        }
        _ => None,
    }
}

#[test]
fn every_change_at_random_that_can_be_seen_is_found() {
    let mut random = Random::new(7);
    let (mut found, mut invisible) = (0, BTreeMap::<String, usize>::new());
    for sample in shipped().iter().filter(|sample| sample.name.contains("0.12.0.1") || sample.name.contains("0.4.30")) {
        let splits = outputs(&sample.bytes, &keeping_callbacks());
        let texts: Vec<_> = splits.iter().map(|(_, split)| canonical(split)).collect();
        for _ in 0..150 {
            let number = random.below(splits.len());
            let (platform, split) = &splits[number];
            let exported = Exported::read(split).unwrap();
            let mut module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
            module.tree.use_orders.clear();
            let Some(what) = change_one(&mut module, &mut random) else { continue };
            let Ok(written) = module.write() else { continue };
            let changed = common::with_module(split, &written.to_vec());
            match verify(&sample.bytes, &changed, &VerifyOptions::default()) {
                Ok(verification) if verification.verified => {
                    if canonical(&changed) != texts[number] {
                        *invisible.entry(format!("{} on {platform}: {what}", sample.name)).or_default() += 1;
                    }
                }
                Ok(_) => found += 1,
                // It is no module any more.
                Err(error) => assert!(error.kind() != jaxprism::ErrorKind::Bug, "{error:?}"),
            }
        }
    }
    eprintln!("{found} changes found; not found, though the text differs: {invisible:#?}");
    assert!(found > 300, "{found}");
    assert!(invisible.is_empty(), "{invisible:#?}");
}

#[test]
fn what_split_makes_of_changed_originals_is_proved() {
    let mut random = Random::new(11);
    let (mut proved, mut refused) = (0, 0);
    for sample in shipped() {
        if !sample.name.contains("0.12.0.1") {
            continue;
        }
        for _ in 0..30 {
            let exported = Exported::read(&sample.bytes).unwrap();
            let mut module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
            mutate_module(&mut module, &mut random);
            let Ok(written) = module.write() else { continue };
            let original = common::with_module(&sample.bytes, &written.to_vec());
            let Ok(outputs) = split(&original, &keeping_callbacks()) else {
                refused += 1;
                continue;
            };
            for (platform, output) in outputs.outputs {
                let verification = compared(&original, &output.to_vec());
                assert!(verification.verified, "{} on {platform}: {:#?}", sample.name, lines(&verification));
                proved += 1;
            }
        }
    }
    eprintln!("{proved} proved, {refused} refused");
    assert!(proved > 20, "{proved}");
}

#[test]
fn damaged_files_are_compared_or_refused() {
    let mut random = Random::new(3);
    for sample in shipped().iter().filter(|sample| sample.bytes.len() < 40_000) {
        let splits = outputs(&sample.bytes, &keeping_callbacks());
        let (_, split) = &splits[0];
        for _ in 0..20 {
            let (mut original, mut damaged) = (sample.bytes.clone(), split.clone());
            common::mutate_bytes(if random.one_in(2) { &mut original } else { &mut damaged }, &mut random);
            if let Err(error) = verify(&original, &damaged, &VerifyOptions::default()) {
                assert!(matches!(error.kind(), jaxprism::ErrorKind::Format | jaxprism::ErrorKind::Unsupported), "{error:?}");
            }
        }
    }
}
