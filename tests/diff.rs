//! `diff`: what is the same program is said to be, and every change is reported as what it is, at its place.

mod common;

use std::time::{Duration, Instant};

use common::{Random, encode_strangely, keeping_callbacks, mutate_module, on_a_large_stack, samples, shipped};
use jaxprism::bytecode::Bytecode;
use jaxprism::container::{AbstractMesh, Effect, Exported, NamedSharding, PartitionSpec, PartitionSpecOneAxis, PyTree, PyTreeKind};
use jaxprism::diff::{Change, ChangeKind, How, Side};
use jaxprism::ir::text::{TextOptions, write_text};
use jaxprism::{Diff, DiffOptions, ErrorKind, Ignore, Locations, Platform, SplitOptions, diff, split};

const ALL: [Ignore; 3] = [Ignore::Locations, Ignore::Names, Ignore::Versions];

fn export(name: &str) -> Vec<u8> {
    let name = format!("{name}.jax_exported");
    shipped().into_iter().find(|sample| sample.name == name).unwrap_or_else(|| panic!("there is no {name}")).bytes
}

fn compared(a: &[u8], b: &[u8]) -> Diff {
    diff(a, b, &DiffOptions::default()).unwrap()
}

/// What differs, each as one line.
fn lines(diff: &Diff) -> Vec<String> {
    assert_eq!(diff.equal, diff.counts.total() == 0);
    assert!(!diff.is_cut);
    diff.changes.iter().map(line).collect()
}

fn line(change: &Change) -> String {
    let Change { kind, how, level, what, a, b, details, .. } = change;
    let level = if *level == 0 { String::new() } else { format!("level {level} ") };
    let side = |side: &Side| match (&side.function, &side.place) {
        (Some(function), Some(place)) if *kind == ChangeKind::Operation => format!("@{function} {place}"),
        _ => side.text.clone(),
    };
    let sides = a.iter().chain(b).map(side).collect::<Vec<_>>().join(" -> ");
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let details = details.iter().map(|detail| format!("; {}: {} -> {}", detail.what, value(&detail.a), value(&detail.b)));
    format!("{level}{kind:?} {how:?} {what}: {sides}{}", details.collect::<String>())
}

/// An export whose container is another one.
fn with_container(bytes: &[u8], change: impl FnOnce(&mut Exported<'_>)) -> Vec<u8> {
    let mut exported = Exported::read(bytes).unwrap();
    change(&mut exported);
    exported.write().unwrap().to_vec()
}

fn text_of(export: &[u8], options: &TextOptions) -> String {
    let exported = Exported::read(export).unwrap();
    let module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
    let mut text = Vec::new();
    on_a_large_stack(|| write_text(&module, options, &mut text).unwrap());
    String::from_utf8(text).unwrap()
}

// ---- what is the same

#[test]
fn every_file_is_identical_to_itself() {
    let mut files = 0;
    for sample in samples().iter().filter(|sample| !sample.is_hostile()) {
        let diff = compared(&sample.bytes, &sample.bytes);
        assert!(diff.identical && diff.equal && diff.changes.is_empty() && diff.parts.is_empty(), "{}", sample.name);
        files += 1;
    }
    assert!(files >= 20, "{files}");
}

#[test]
fn the_same_module_in_other_bytes_is_equal() {
    let mut modules = 0;
    for sample in samples().iter().filter(|sample| !sample.is_hostile()) {
        for (name, module, _) in sample.modules() {
            let Ok(bytecode) = Bytecode::read(module, 0) else { continue };
            // What is not known may differ in anything.
            if bytecode.unreadable.is_some() || module.len() > 1_000_000 {
                continue;
            }
            for seed in 0..2 {
                let strange = encode_strangely(&bytecode, seed);
                let diff = compared(module, &strange);
                assert!(diff.equal, "{name}: {:#?}", lines(&diff));
                assert_eq!(diff.identical, module == strange);
                modules += 1;
            }
        }
    }
    assert!(modules > 40, "{modules}");
}

#[test]
fn text_that_says_everything_is_equal_to_its_module() {
    for sample in shipped() {
        let exported = Exported::read(&sample.bytes).unwrap();
        let text = text_of(&sample.bytes, &TextOptions::exact());
        let diff = compared(exported.module.as_borrowed().unwrap(), text.as_bytes());
        assert!(diff.equal && !diff.identical, "{}: {:#?}", sample.name, lines(&diff));
    }
}

#[test]
fn locations_names_and_versions_are_ignored_on_request_alone() {
    let original = export("demo.jax-0.12.0.1");
    let stripped = split(&original, &SplitOptions::default().platforms([Platform::CPU]).locations(Locations::Stripped)).unwrap();
    let kept = split(&original, &SplitOptions::default().platforms([Platform::CPU])).unwrap();
    let (kept, stripped) = (kept.outputs[0].to_vec(), stripped.outputs[0].to_vec());
    let found = compared(&kept, &stripped);
    assert!(!found.equal && found.counts.total() == found.counts.locations && found.counts.locations > 100, "{:?}", found.counts);
    assert!(found.changes.iter().all(|change| change.kind == ChangeKind::Location), "{:#?}", lines(&found));
    let ignoring = diff(&kept, &stripped, &DiffOptions::default().ignore([Ignore::Locations])).unwrap();
    assert!(ignoring.equal && !ignoring.identical && ignoring.changes.is_empty());
    assert_eq!((ignoring.counts.total(), ignoring.ignored), (0, found.counts));
    for other in [Ignore::Names, Ignore::Versions] {
        assert!(!diff(&kept, &stripped, &DiffOptions::default().ignore([other])).unwrap().equal);
    }
    let older = with_container(&original, |exported| {
        exported.jax_version = Some("0.11.0".into());
        exported.serialization_version = 11;
    });
    let found = compared(&original, &older);
    assert_eq!(lines(&found), ["Version Changed JAX: 0.12.0.1 -> 0.11.0", "Version Changed schema: 12 -> 11"]);
    assert!(diff(&original, &older, &DiffOptions::default().ignore([Ignore::Versions])).unwrap().equal);
}

// ---- what is found in modules

/// A program in which everything occurs once.
const PROGRAM: &str = r#"
!f32 = !vhlo.tensor_v1<4x!vhlo.f32_v1>
!i32 = !vhlo.tensor_v1<!vhlo.i32_v1>
!bool = !vhlo.tensor_v1<!vhlo.bool_v1>
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  "sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> () loc(unknown)
  func.func public @main(%x: !f32 loc("a.py":1:1), %y: !f32 {jax.kept = #vhlo.bool_v1<true>} loc("a.py":1:4)) -> !f32 {
    %one = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>>} : () -> !f32 loc("a.py":2:1)
    %sum = "vhlo.subtract_v1"(%x, %one) : (!f32, !f32) -> !f32 loc("a.py":3:1)
    %product = "vhlo.multiply_v1"(%sum, %y) : (!f32, !f32) -> !f32 loc("a.py":4:1)
    %f = func.call @f(%product) : (!f32) -> !f32 loc("a.py":5:1)
    %g = func.call @g(%f) : (!f32) -> !f32 loc("a.py":6:1)
    %iota = "vhlo.iota_v1"() {iota_dimension = #vhlo.integer_v1<0 : i64>} : () -> !f32 loc("a.py":7:1)
    %done = "vhlo.add_v1"(%g, %iota) : (!f32, !f32) -> !f32 loc("a.py":8:1)
    func.return %done : !f32 loc("a.py":9:1)
  } loc("a.py":1:1)
  func.func private @f(%x: !f32 loc("b.py":1:1)) -> !f32 {
    %0 = "vhlo.negate_v1"(%x) : (!f32) -> !f32 loc("b.py":2:1)
    %1 = "vhlo.abs_v1"(%0) : (!f32) -> !f32 loc("b.py":3:1)
    func.return %1 : !f32 loc("b.py":4:1)
  } loc("b.py":1:1)
  func.func private @g(%x: !f32 loc("c.py":1:1)) -> !f32 {
    %zero = "vhlo.constant_v1"() {value = #vhlo.tensor_v1<dense<0> : tensor<i32>>} : () -> !i32 loc("c.py":2:1)
    %0 = "vhlo.case_v1"(%zero) ({
      %1 = "vhlo.floor_v1"(%x) : (!f32) -> !f32 loc("c.py":3:1)
      "vhlo.return_v1"(%1) : (!f32) -> () loc("c.py":4:1)
    }, {
      %1 = "vhlo.ceil_v1"(%x) : (!f32) -> !f32 loc("c.py":5:1)
      "vhlo.return_v1"(%1) : (!f32) -> () loc("c.py":6:1)
    }) : (!i32) -> !f32 loc("c.py":7:1)
    func.return %0 : !f32 loc("c.py":8:1)
  } loc("c.py":1:1)
} loc(unknown)
"#;

/// What differs once parts of the program are replaced.
fn changed(replaced: &[(&str, &str)]) -> Vec<String> {
    lines(&compared(PROGRAM.as_bytes(), replace(replaced).as_bytes()))
}

fn replace(replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(PROGRAM.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replacen(from, to, 1)
    })
}

const NEGATE: &str = "    %0 = \"vhlo.negate_v1\"(%x) : (!f32) -> !f32 loc(\"b.py\":2:1)\n";
const ABS: &str = "    %1 = \"vhlo.abs_v1\"(%0) : (!f32) -> !f32 loc(\"b.py\":3:1)\n";

#[test]
fn an_attribute() {
    assert_eq!(
        changed(&[("integer_v1<0 : i64>} : () -> !f32", "integer_v1<1 : i64>} : () -> !f32")]),
        ["Operation Changed vhlo.iota_v1: @main a.py:7:1 -> @main a.py:7:1; attribute `iota_dimension`: 0 : i64 -> 1 : i64"]
    );
    assert_eq!(
        changed(&[(
            "iota_dimension = #vhlo.integer_v1<0 : i64>}",
            "iota_dimension = #vhlo.integer_v1<0 : i64>, more = #vhlo.bool_v1<true>}"
        )]),
        ["Operation Changed vhlo.iota_v1: @main a.py:7:1 -> @main a.py:7:1; attribute `more`: nothing -> true"]
    );
}

#[test]
fn an_element_of_a_constant() {
    assert_eq!(
        changed(&[("[1.0, 2.0, 3.0, 4.0]", "[1.0, 2.0, 5.0, 4.0]")]),
        [
            "Operation Changed vhlo.constant_v1: @main a.py:2:1 -> @main a.py:2:1; attribute `value`: dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> -> dense<[1.0, 2.0, 5.0, 4.0]> : tensor<4xf32>"
        ]
    );
    let of = |numbers: &dyn Fn(u32) -> u32| {
        let rows = (0..8).map(|row| (0..8).map(|column| numbers(8 * row + column).to_string()).collect::<Vec<_>>().join(", "));
        let rows = rows.map(|row| format!("[{row}]")).collect::<Vec<_>>().join(", ");
        let constant = format!(
            "%z = \"vhlo.constant_v1\"() {{value = #vhlo.tensor_v1<dense<[{rows}]> : tensor<8x8xi32>>}} : () -> !vhlo.tensor_v1<8x8x!vhlo.i32_v1> loc(\"d.py\":1:1)\n"
        );
        replace(&[("    %iota =", &format!("    {constant}    %iota ="))])
    };
    let found = lines(&compared(of(&|at| at).as_bytes(), of(&|at| if at == 19 || at == 60 { 7 } else { at }).as_bytes()));
    assert_eq!(
        found,
        [
            "Operation Changed vhlo.constant_v1: @main d.py:1:1 -> @main d.py:1:1; attribute `value`, 2 of 64 elements, first [2, 3]: 19 -> 7"
        ]
    );
}

#[test]
fn operands() {
    assert_eq!(
        changed(&[("\"vhlo.subtract_v1\"(%x, %one)", "\"vhlo.subtract_v1\"(%one, %x)")]),
        [
            "Operation Changed vhlo.subtract_v1: @main a.py:3:1 -> @main a.py:3:1; operand 0: %arg0 -> %0 of stablehlo.constant; operand 1: %0 of stablehlo.constant -> %arg0"
        ]
    );
    assert_eq!(
        changed(&[("\"vhlo.multiply_v1\"(%sum, %y)", "\"vhlo.multiply_v1\"(%sum, %x)")]),
        ["Operation Changed vhlo.multiply_v1: @main a.py:4:1 -> @main a.py:4:1; operand 1: %arg1 -> %arg0"]
    );
}

#[test]
fn operations_that_come_and_go() {
    assert_eq!(
        changed(&[(ABS, &format!("    %s = \"vhlo.sine_v1\"(%0) : (!f32) -> !f32 loc(\"b.py\":7:7)\n{}", ABS.replace("%0", "%s")))]),
        [
            "Operation Added vhlo.sine_v1: @f b.py:7:7",
            "Operation Changed vhlo.abs_v1: @f b.py:3:1 -> @f b.py:3:1; operand 0: %0 of stablehlo.negate -> %1 of stablehlo.sine",
        ]
    );
    assert_eq!(
        changed(&[(NEGATE, ""), ("\"vhlo.abs_v1\"(%0)", "\"vhlo.abs_v1\"(%x)")]),
        [
            "Operation Removed vhlo.negate_v1: @f b.py:2:1",
            "Operation Changed vhlo.abs_v1: @f b.py:3:1 -> @f b.py:3:1; operand 0: %0 of stablehlo.negate -> %arg0"
        ]
    );
    // Another operation in the place of one is one change, not three.
    assert_eq!(
        changed(&[("vhlo.abs_v1", "vhlo.sign_v1")]),
        ["Operation Changed vhlo.abs_v1: @f b.py:3:1 -> @f b.py:3:1; operation: vhlo.abs_v1 -> vhlo.sign_v1"]
    );
    // So is one inside a branch.
    assert_eq!(
        changed(&[("vhlo.ceil_v1", "vhlo.sign_v1")]),
        ["Operation Changed vhlo.ceil_v1: @g c.py:5:1 -> @g c.py:5:1; operation: vhlo.ceil_v1 -> vhlo.sign_v1"]
    );
}

#[test]
fn operations_that_move() {
    let iota = "    %iota = \"vhlo.iota_v1\"() {iota_dimension = #vhlo.integer_v1<0 : i64>} : () -> !f32 loc(\"a.py\":7:1)\n";
    let moved = changed(&[(iota, ""), ("    %sum =", &format!("{iota}    %sum ="))]);
    assert_eq!(moved, ["Operation Moved vhlo.iota_v1: @main a.py:7:1 -> @main a.py:7:1"]);
}

#[test]
fn types() {
    let scalar = "!vhlo.tensor_v1<!vhlo.f32_v1>";
    let found = changed(&[
        ("private @f(%x: !f32 loc(\"b.py\":1:1)) -> !f32 {", "private @f(%x: !f32 loc(\"b.py\":1:1)) -> !vhlo.tensor_v1<!vhlo.f32_v1> {"),
        ("\"vhlo.abs_v1\"(%0) : (!f32) -> !f32", &format!("\"vhlo.abs_v1\"(%0) : (!f32) -> {scalar}")),
        ("func.return %1 : !f32 loc(\"b.py\":4:1)", &format!("func.return %1 : {scalar} loc(\"b.py\":4:1)")),
        ("func.call @f(%product) : (!f32) -> !f32", &format!("func.call @f(%product) : (!f32) -> {scalar}")),
        ("func.call @g(%f) : (!f32)", &format!("func.call @g(%f) : ({scalar})")),
        ("private @g(%x: !f32", &format!("private @g(%x: {scalar}")),
        ("\"vhlo.floor_v1\"(%x) : (!f32)", &format!("\"vhlo.floor_v1\"(%x) : ({scalar})")),
        ("\"vhlo.ceil_v1\"(%x) : (!f32)", &format!("\"vhlo.ceil_v1\"(%x) : ({scalar})")),
    ]);
    assert_eq!(
        found,
        [
            "Function Changed @f: @f -> @f; type of result 0: tensor<4xf32> -> tensor<f32>",
            "Function Changed @g: @g -> @g; type of argument 0: tensor<4xf32> -> tensor<f32>",
            "Operation Changed vhlo.call_v1: @main a.py:5:1 -> @main a.py:5:1; type of result 0: tensor<4xf32> -> tensor<f32>",
            "Operation Changed vhlo.abs_v1: @f b.py:3:1 -> @f b.py:3:1; type of result 0: tensor<4xf32> -> tensor<f32>",
        ]
    );
}

#[test]
fn names_that_mean_nothing() {
    let renamed = [("func.call @f", "func.call @h"), ("private @f(", "private @h(")];
    assert_eq!(changed(&renamed), ["Name Renamed function: @f -> @h"]);
    assert_eq!(changed(&[("module @jit_f", "module @jit_g")]), ["Name Changed name of the module: \"jit_f\" -> \"jit_g\""]);
    assert_eq!(changed(&[("sym_name = \"mesh\"", "sym_name = \"other\"")]), ["Name Renamed mesh: @mesh -> @other"]);
    let ignoring = DiffOptions::default().ignore([Ignore::Names]);
    assert!(diff(PROGRAM.as_bytes(), replace(&renamed).as_bytes(), &ignoring).unwrap().equal);
    // The name of a public function means something.
    let public = replace(&[("@main", "@entry")]);
    let found = diff(PROGRAM.as_bytes(), public.as_bytes(), &DiffOptions::default().ignore(ALL)).unwrap();
    assert_eq!(lines(&found), ["Function Renamed function: @main -> @entry"]);
}

#[test]
fn functions_that_swap_their_names_are_called_the_other_way_round() {
    let swapped = PROGRAM.replace("@f(", "@tmp(").replace("@g(", "@f(").replace("@tmp(", "@g(");
    let found = lines(&compared(PROGRAM.as_bytes(), swapped.as_bytes()));
    assert_eq!(found, ["Name Renamed function: @f -> @g", "Name Renamed function: @g -> @f"]);
}

#[test]
fn a_function_under_another_name_that_does_something_else_is_found_by_its_call() {
    assert_eq!(
        changed(&[("func.call @f", "func.call @h"), ("private @f(", "private @h("), ("vhlo.abs_v1", "vhlo.sign_v1")]),
        [
            "Operation Changed vhlo.abs_v1: @f b.py:3:1 -> @h b.py:3:1; operation: vhlo.abs_v1 -> vhlo.sign_v1",
            "Name Renamed function: @f -> @h",
        ]
    );
}

#[test]
fn the_order_of_functions() {
    let (before, f) = PROGRAM.split_once("  func.func private @f").unwrap();
    let (f, g) = f.split_once("  func.func private @g").unwrap();
    let g = g.strip_suffix("} loc(unknown)\n").unwrap();
    let turned = format!("{before}  func.func private @g{g}  func.func private @f{f}}} loc(unknown)\n");
    let found = compared(PROGRAM.as_bytes(), turned.as_bytes());
    assert_eq!(lines(&found), ["Name Moved order of functions: @f, @g -> @g, @f"]);
    assert!(diff(PROGRAM.as_bytes(), turned.as_bytes(), &DiffOptions::default().ignore([Ignore::Names])).unwrap().equal);
}

#[test]
fn functions_that_come_and_go_and_other_callees() {
    let more = "  func.func private @h(%x: !f32 loc(\"e.py\":1:1)) -> !f32 {\n    func.return %x : !f32 loc(\"e.py\":2:1)\n  } loc(\"e.py\":1:1)\n";
    let added = [("  func.func private @g", &*format!("{more}  func.func private @g"))];
    assert_eq!(changed(&added), ["Function Added @h: @h (1 inside)"]);
    let removed = lines(&compared(replace(&added).as_bytes(), PROGRAM.as_bytes()));
    assert_eq!(removed, ["Function Removed @h: @h (1 inside)"]);
    assert_eq!(
        changed(&[("func.call @g(%f)", "func.call @f(%f)")]),
        ["Operation Changed vhlo.call_v1: @main a.py:6:1 -> @main a.py:6:1; function: @g -> @f"]
    );
}

#[test]
fn what_stands_around_functions() {
    assert_eq!(
        changed(&[("num_partitions = 1", "num_partitions = 2")]),
        ["Module Changed attribute `mhlo.num_partitions`: 1 : i32 -> 2 : i32"]
    );
    assert_eq!(
        changed(&[("[\"x\"=2]", "[\"x\"=4]")]),
        ["Module Changed mesh @mesh: #sdy.mesh<[\"x\"=4]>".replace("#sdy.mesh<[\"x\"=4]>", "#sdy.mesh<[\"x\"=2]> -> #sdy.mesh<[\"x\"=4]>")]
    );
    assert_eq!(
        changed(&[("jax.kept = #vhlo.bool_v1<true>", "jax.kept = #vhlo.bool_v1<false>")]),
        ["Function Changed @main: @main -> @main; attribute `jax.kept` of argument 1: true -> false"]
    );
    assert_eq!(
        changed(&[("private @g(", "public @g(")]),
        ["Function Changed @g: @g -> @g; attribute `sym_visibility`: \"private\" -> \"public\""]
    );
}

#[test]
fn locations() {
    let found = compared(PROGRAM.as_bytes(), PROGRAM.replace("c.py", "d.py").as_bytes());
    assert_eq!(lines(&found), ["Location Changed 9 locations in @g: c.py:1:1 -> d.py:1:1"]);
    assert_eq!(found.counts.locations, 9);
    // What leads to one place in two ways, or to none.
    let changed = |from: &str, to: &str| {
        let [a, b] = [from, to].map(|location| PROGRAM.replace("\"b.py\":2:1", location));
        lines(&compared(a.as_bytes(), b.as_bytes()))
    };
    let expected =
        |place: &str| [format!("Location Changed 1 location in @f that leads to the same place in another way: {place} -> {place}")];
    assert_eq!(changed("\"b.py\":2:1", "\"f\"(\"b.py\":2:1)"), expected("b.py:2:1"));
    assert_eq!(changed("unknown", "fused<\"a\">[unknown]"), expected("an unknown place"));
}

#[test]
fn an_operand_that_is_equal_but_for_where_its_constant_stands() {
    // The same constant twice in one, once in the other: what uses it is the same.
    let twice = replace(&[
        (
            "    %sum =",
            "    %two = \"vhlo.constant_v1\"() {value = #vhlo.tensor_v1<dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>>} : () -> !f32 loc(\"a.py\":2:2)\n    %sum =",
        ),
        ("(%x, %one)", "(%x, %two)"),
    ]);
    assert_eq!(lines(&compared(PROGRAM.as_bytes(), twice.as_bytes())), ["Operation Added vhlo.constant_v1: @main a.py:2:2"]);
}

// ---- what is found in containers

fn contained(change: impl FnOnce(&mut Exported<'_>)) -> Vec<String> {
    let original = export("single.jax-0.12.0.1");
    let other = with_container(&original, change);
    let found = compared(&original, &other);
    assert!(found.parts.iter().all(|part| part.name == "container"), "{:?}", found.parts);
    lines(&found)
}

#[test]
fn fields_of_the_container() {
    assert_eq!(contained(|exported| exported.function_name = "g".into()), ["Signature Changed function: <lambda> -> g"]);
    assert_eq!(contained(|exported| exported.platforms = vec![Platform::TPU]), ["Signature Changed platforms: cpu -> tpu"]);
    assert_eq!(contained(|exported| exported.calling_convention_version = 9), ["Signature Changed calling convention: 10 -> 9"]);
    let effect = Effect { type_name: Some("<class 'Log'>".into()) };
    assert_eq!(
        contained(|exported| exported.ordered_effects = Some(vec![effect])),
        ["Signature Changed ordered effects: none -> <class 'Log'>"]
    );
    assert_eq!(
        contained(|exported| exported.module_kept_var_idx = Some(vec![])),
        ["Signature Changed use of args[0]: taken by the module -> not used by the module"]
    );
    assert_eq!(contained(|exported| exported.nr_devices = 8), ["Signature Changed devices: 1 -> 8"]);
}

#[test]
fn arguments_and_results_by_their_paths() {
    let aval = |exported: &mut Exported<'_>| {
        let avals = exported.unique_avals.as_mut().unwrap();
        let mut other = avals[0].clone();
        other.shape = Some(vec!["8".into()]);
        avals.push(other);
        exported.in_avals_idxs = Some(vec![avals.len() as u32 - 1]);
    };
    assert_eq!(contained(aval), ["Signature Changed args[0]: float32[3] -> float32[8]"]);
    assert_eq!(
        contained(|exported| exported.out_tree = PyTree::new(PyTreeKind::List, vec![exported.out_tree.clone()])),
        ["Signature Removed result: float32[3]", "Signature Added result[0]: float32[3]", "Signature Changed kind of result: leaf -> list"]
    );
    let named = |exported: &mut Exported<'_>| {
        let axis = PartitionSpecOneAxis { axes: Some(vec!["x".into()]) };
        let spec = PartitionSpec { partitions: Some(vec![axis]), reduced: None, unreduced: None };
        let mesh = AbstractMesh { axis_sizes: Some(vec![2]), axis_names: Some(vec!["x".into()]), axis_types: None, abstract_device: None };
        exported.unique_abstract_meshes = Some(vec![mesh]);
        exported.unique_named_shardings =
            Some(vec![NamedSharding { mesh: None, spec: Some(spec), memory_kind: None, abstract_mesh_idx: 0 }]);
        exported.in_shardings_idxs = Some(vec![1]);
    };
    assert_eq!(
        contained(named),
        ["Signature Changed sharding of args[0]: unspecified -> P('x',) on ('x': 2)".replace("P('x',)", "P('x')")]
    );
}

#[test]
fn long_keys_that_begin_alike_are_told_apart() {
    let dict = |key: String| {
        move |exported: &mut Exported<'_>| {
            exported.in_tree = PyTree::new(
                PyTreeKind::Tuple,
                vec![
                    PyTree::new(PyTreeKind::Tuple, vec![PyTree::dict(vec![(key.into(), PyTree::new(PyTreeKind::Leaf, vec![]))])]),
                    PyTree::dict(vec![]),
                ],
            );
        }
    };
    let original = export("single.jax-0.12.0.1");
    let (one, other) = (format!("{}1", "k".repeat(64)), format!("{}2", "k".repeat(64)));
    let found = compared(&with_container(&original, dict(one)), &with_container(&original, dict(other)));
    assert_eq!(lines(&found), ["Signature Changed key of args[0]: …1 -> …2"]);
}

#[test]
fn gradient_levels() {
    let original = export("vjp.jax-0.12.0.1");
    let without = with_container(&original, |exported| exported.vjp = None);
    let found = compared(&original, &without);
    assert!(lines(&found).len() == 1 && lines(&found)[0].starts_with("Signature Changed gradient levels: "), "{:?}", lines(&found));
    let deeper = with_container(&original, |exported| exported.vjp.as_mut().unwrap().function_name = "other".into());
    let found = lines(&compared(&original, &deeper));
    assert!(matches!(&found[..], [line] if line.starts_with("level 1 Signature Changed function: ")), "{found:?}");
}

#[test]
fn an_export_and_its_module() {
    let original = export("single.jax-0.12.0.1");
    let exported = Exported::read(&original).unwrap();
    let found = lines(&compared(&original, exported.module.as_borrowed().unwrap()));
    assert_eq!(found, ["Signature Changed format: an export -> a module alone"]);
}

// ---- splits

#[test]
fn splits_of_one_export_differ_where_their_platforms_do() {
    let original = export("linalg.jax-0.12.0.1");
    let parts = split(&original, &keeping_callbacks()).unwrap();
    let (cpu, cuda) = (parts.outputs[&Platform::CPU].to_vec(), parts.outputs[&Platform::CUDA].to_vec());
    let found = compared(&cpu, &cuda);
    assert_eq!((found.counts.total(), found.counts.signature, found.counts.operations), (3, 1, 2), "{:#?}", lines(&found));
    let names: Vec<_> = found.changes.iter().flat_map(|change| &change.details).map(|detail| &*detail.what).collect();
    let target = ["attribute `call_target_name`", "attribute `mhlo.backend_config`"];
    assert_eq!(names, [target, target].concat());
}

// ---- limits

#[test]
fn changes_are_counted_though_they_are_not_listed() {
    let (a, b) = (export("demo.jax-0.10.2"), export("demo.jax-0.12.0.1"));
    let all = compared(&a, &b);
    let few = diff(&a, &b, &DiffOptions::default().max_changes(3)).unwrap();
    assert_eq!((few.counts, few.changes.len(), few.is_cut), (all.counts, 3, true));
    assert!(all.changes.len() > 20 && few.changes.iter().all(|change| all.changes.contains(change)));
    let none = diff(&a, &a, &DiffOptions::default().max_changes(0)).unwrap();
    assert!(none.equal && !none.is_cut);
}

#[test]
fn both_directions_find_as_much() {
    let originals: Vec<_> = shipped().into_iter().filter(|sample| sample.name.contains("0.12")).collect();
    for (one, other) in originals.iter().zip(originals.iter().skip(1)) {
        let (there, back) = (compared(&one.bytes, &other.bytes), compared(&other.bytes, &one.bytes));
        assert!(!there.equal && !back.equal, "{} {}", one.name, other.name);
        let count =
            |diff: &Diff, how| diff.changes.iter().filter(|change| change.kind == ChangeKind::Signature && change.how == how).count();
        assert_eq!(count(&there, How::Added), count(&back, How::Removed), "{} {}", one.name, other.name);
        assert_eq!(lines(&there), lines(&compared(&one.bytes, &other.bytes)), "the order is always the same");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_that_says_which() {
    let original = export("single.jax-0.12.0.1");
    let error = diff(&original, &original[..original.len() / 2], &DiffOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Format, "cannot read B".to_owned()));
    let error = diff(b"", &original, &DiffOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Format, "cannot read A".to_owned()));
}

/// A module without what says the same in two ways, and without what means nothing.
fn meaning(export: &[u8]) -> Vec<String> {
    let text = text_of(export, &TextOptions::exact());
    let without = [
        ", jaxprism.empty_arg_attrs = unit",
        "jaxprism.empty_arg_attrs = unit",
        ", jaxprism.empty_res_attrs = unit",
        "jaxprism.empty_res_attrs = unit",
        " attributes {}",
    ];
    let text = without.iter().fold(text, |text, part| text.replace(part, ""));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_mutant_is_equal_exactly_if_its_text_is() {
    let mut found = 0;
    for name in ["control.jax-0.12.0.1", "nested.jax-0.12.0.1", "sharded.jax-0.12.0.1"] {
        let original = export(name);
        let mutants = (0..60).filter_map(|seed| {
            let exported = Exported::read(&original).unwrap();
            let mut module = Bytecode::read(exported.module.as_borrowed().unwrap(), 0).unwrap();
            mutate_module(&mut module, &mut Random::new(seed));
            module.tree.use_orders.clear();
            // What only a reader can rule out, the writer takes for granted.
            let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| module.write().map(|module| module.to_vec())));
            let written =
                written.ok()?.ok().filter(|written| Bytecode::read(written, 0).is_ok_and(|module| module.unreadable.is_none()))?;
            Some((seed, common::with_module(&original, &written)))
        });
        let before = meaning(&original);
        for (seed, mutant) in mutants {
            let after = meaning(&mutant);
            let diff = compared(&original, &mutant);
            let other = before.iter().zip(&after).find(|(before, after)| before != after);
            assert_eq!(diff.equal, before == after, "{name}, mutation {seed}: {other:#?} {:#?}", lines(&diff));
            found += usize::from(!diff.equal);
        }
    }
    assert!(found > 60, "{found}");
}

#[test]
fn long_functions_take_no_quadratic_time() {
    let program = |length: usize, operation: &dyn Fn(usize) -> &'static str| {
        let mut text = "!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>\nfunc.func public @main(%0: !f32) -> !f32 {\n".to_owned();
        for at in 0..length {
            text.push_str(&format!("  %{} = \"vhlo.{}_v1\"(%{at}, %{at}) : (!f32, !f32) -> !f32\n", at + 1, operation(at)));
        }
        text + &format!("  func.return %{length} : !f32\n}}\n")
    };
    const NAMES: [&str; 4] = ["add", "subtract", "multiply", "divide"];
    let a = program(10_000, &|at| NAMES[at * 7 % 11 % 4]);
    let b = program(10_000, &|at| NAMES[at * 5 % 13 % 4]);
    let start = Instant::now();
    let found = diff(a.as_bytes(), b.as_bytes(), &DiffOptions::default().max_changes(10)).unwrap();
    assert!(found.is_cut && found.counts.operations > 1_000, "{:?}", found.counts);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
