"""Policies for callbacks: what each makes of them, which of several holds, and what is said about it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxprism
import pytest
from callback_case import (
    PLATFORMS,
    Case,
    Exported,
    assert_computes,
    calls,
    cases_of,
    effects,
    first_operand,
    graph_of,
    is_guarded,
    levels,
    load,
    load_guarded,
    module_of,
    nan,
    placeholders,
    replaced_by,
    zeros,
)
from callback_programs import ROW, SILENT, log, note, see
from callback_reference import CUSTOM_CALL_PLATFORMS, lower_as_jax
from graph import compare
from jax import export
from jax.experimental import io_callback
from test_split import rewritten
from tool import Tool

LARGE = ("everything", "all_effects", "gradients_with_debug")


@pytest.fixture(scope="module")
def cases(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    return cases_of(tool, tmp_path_factory)


# ---------------------------------------------------------------- every policy


POLICIES = {
    "keep": ["--callbacks", "keep"],
    "lower": ["--on-unsupported", "keep"],
    "stub:zeros": ["--callbacks", "stub:zeros"],
    "stub:nan": ["--callbacks", "stub:nan"],
    "stub:operand:0": ["--callbacks", "stub:operand:0"],
    "strip": ["--on-unsupported", "strip", "--callback", "watch=strip"],
    "host": ["--callbacks", "host"],
    "unpartition": ["--callbacks", "unpartition", "--on-unsupported", "keep"],
    "ffi": ["--callbacks", "ffi:my.target"],
    "mixed": ["--callback", "cpu:*=stub:zeros", "--callback", "jax.debug.*=strip", "--callback", "tpu:*=keep"],
    "one each": ["--callback", "see=ffi:my.target", "--callback", "cuda:log=keep", "--on-unsupported", "host"],
}
# A rule that matches nothing is an error: `all_effects` has all these names.
OPTIONS = {
    (name, policy): options
    for name in LARGE
    for policy, options in POLICIES.items()
    if name != "gradients_with_debug" or not any(word.startswith(("watch=", "cuda:log=")) for word in options)
}
OPTIONS = {key: options for key, options in OPTIONS.items() if key != ("everything", "strip")}


@pytest.mark.parametrize(("name", "policy"), OPTIONS, ids=lambda word: word.replace(" ", "_"))
def test_every_policy_gives_files_that_jax_reads(cases, name: str, policy: str):
    """But for lowered callbacks, which it refuses. The modules verify, and are written as JAX writes them."""
    case = cases(name)
    folder = f"policy-{policy.replace(':', '-').replace(' ', '-')}"
    for platform, path in case.split(folder, *OPTIONS[name, policy]).items():
        data = path.read_bytes()
        found = load_guarded(data)
        assert len(found) == 1 + case.program.vjp_order
        is_lowered = any(call.was is not None for level in found for call in calls(level))
        assert {is_guarded(level) for level in found} == {is_lowered}, platform
        if is_lowered:
            with pytest.raises(Exception, match="UnboundCallbacks"):
                load(data)
        else:
            load(data)
        for level in found:
            artifact = bytes(level.mlir_module_serialized)
            assert rewritten(artifact) == artifact, platform
            with module_of(level) as module:
                check_tokens(level, module)
    assert_recorded(case, folder)


def check_tokens(exported: Exported, module) -> None:
    """`main` takes and returns a token for each ordered effect, before everything else but its global constants."""
    main = next(f for f in module.body.operations if str(f.operation.attributes["sym_name"]) == '"main"')
    inputs, results = main.type.inputs, main.type.results
    count = len(exported.ordered_effects)
    assert [str(kind) for kind in results[:count]] == ["!stablehlo.token"] * count
    assert sum("token" in str(kind) for kind in results) == sum("token" in str(kind) for kind in inputs) == count


def assert_recorded(case: Case, folder: str) -> None:
    """The manifest and the report say what the modules hold."""
    manifest, report = case.record(folder, "manifest"), case.record(folder, "report")
    assert manifest["platforms"] == list(PLATFORMS)
    outputs = zip(manifest["outputs"], report["outputs"], strict=True)
    for told, reported in outputs:
        assert told["platform"] == reported["platform"]
        found = load_guarded(Path(case.directory / folder / f"model.{told['platform']}.jax_exported").read_bytes())
        for number, (level, line, exported) in enumerate(zip(told["levels"], reported["levels"], found, strict=True)):
            assert level["level"] == line["level"] == number
            assert [slot["slot"] for slot in level["slots"]] == list(range(len(level["slots"])))
            assert_slots(level["slots"], line["callbacks"], exported)


def assert_slots(slots: list[dict], lines: list[dict], exported: Exported) -> None:
    """Each slot has as many calls as it says, of its target, with its number."""
    found = calls(exported, "my.target")
    for slot, line in zip(slots, lines, strict=True):
        for key in ("name", "kind", "policy", "target", "index"):
            assert slot[key] == line[key]
        assert len(slot["calls"]) == line["calls"]
        # Older versions of JAX know only the names of what is inside of a `closed_call`.
        assert all(re.search(r"callback_programs\.py:\d+|^`.+`$", call["location"]) for call in slot["calls"])
    left = [slot for slot in slots if slot["target"] is not None]
    expected = [(slot["target"], slot["index"], call["function"]) for slot in left for call in slot["calls"]]
    assert sorted(map(str, expected)) == sorted(
        str((call.op.target, call.op.config.get("index"), call.op.function)) for call in found
    )
    for slot in slots:
        if slot["target"] is None:
            assert re.match("strip|stub:", slot["policy"])
    tokens = {call.op.config["index"]: "token" in str(call.op.operands[:1]) for call in found if call.was}
    assert all(slot["ordered"] == tokens[slot["index"]] for slot in left if slot["index"] is not None)


@pytest.mark.parametrize("policy", ["keep", "lower"])
@pytest.mark.parametrize(
    "name", ["custom_vjp", "pure_trees", "buffer_aliases_crossed", "pure_vmap_sequential_unrolled"]
)
def test_manifest_and_report_say_what_the_modules_hold(cases, name: str, policy: str):
    case = cases(name)
    case.split(policy, *POLICIES[policy])
    assert_recorded(case, policy)


def test_manifest_tells_types_and_aliases(cases):
    case = cases("buffer_aliases_crossed")
    case.split("kept", "--callbacks", "keep")
    (slot,) = case.record("kept", "manifest")["outputs"][0]["levels"][0]["slots"]
    assert slot["aliases"] == [[0, 1], [1, 0]]
    assert (slot["operands"], slot["results"]) == (["float32[4]", "int32[2]"], ["int32[2]", "float32[4]"])


# ---------------------------------------------------------------- stubs


def alias_or_first(function, types, operands):
    """The stub `alias`: of the operand that is the first result, and here the only one."""
    return first_operand(function, types, operands)


def mixed(function, types, operands):
    """`stub:nan` for `log`, `stub:operand:0` for what begins with an f, zeros for the others."""
    if function.__name__ == "log":
        return nan(function, types, operands)
    return (first_operand if function.__name__[0] == "f" else zeros)(function, types, operands)


MIXED = ["--callback", "log=stub:nan", "--callback", "cpu:f*=stub:operand:0", "--callbacks", "stub:zeros"]
STUBBED = {
    "everything first operand": ("everything", first_operand, ["--callbacks", "stub:operand:0"]),
    "everything mixed": ("everything", mixed, MIXED),
    "alias": ("buffer_alias", alias_or_first, ["--callbacks", "stub:alias"]),
    "scan": ("pure_in_scan", first_operand, ["--callbacks", "stub:operand:0"]),
    "ordered": ("io_ordered_in_while", first_operand, ["--callbacks", "stub:operand:0"]),
    "symbolic": ("io_ordered_symbolic", first_operand, ["--callbacks", "stub:operand:0"]),
}


@pytest.mark.parametrize("case", STUBBED, ids=lambda word: word.replace(" ", "_"))
def test_stubs_compute_what_they_stand_for(cases, case: str):
    name, stub, options = STUBBED[case]
    case = cases(name)
    path = case.split("stubs-" + "-".join(options).replace(":", "-").replace("*", "x"), *options, platforms=("cpu",))
    found = levels(load(path["cpu"].read_bytes()))
    with replaced_by(stub):
        assert_computes(found, case.program.build(SILENT), case.program.inputs(), name)


def test_crossed_aliases_are_no_stub_for_each_other(cases):
    """The operand of the alias has another type where it is not aliased at all, and is refused by number."""
    case = cases("buffer_trees")
    outcome = case.tool.run("split", case.path, "-o", f"{case.directory}/no/", "-p", "cpu", "--callbacks", "stub:alias")
    assert outcome.returncode == 1
    assert b"result 0 is no alias of an operand" in outcome.stderr
    outcome = case.tool.run("split", case.path, "-o", f"{case.directory}/no/", "--callbacks", "stub:operand:7")
    assert outcome.returncode == 1
    assert b"there is no operand 7" in outcome.stderr


def test_results_that_are_replaced_are_told(cases):
    case = cases("pure_in_plain")
    case.split("zeros", "--callbacks", "stub:zeros", platforms=("cpu", "cuda"))
    told = (case.directory / "zeros.stderr").read_text().splitlines()
    assert told == [
        f"note: on `{platform}` the results of pure callback `add` are replaced (`stub:zeros`)"
        for platform in ("cpu", "cuda")
    ]
    (callback,) = case.record("zeros", "report")["outputs"][0]["levels"][0]["callbacks"]
    assert callback["replaces_results"] is True


def test_results_that_nothing_uses_are_not_told(cases):
    case = cases("result_not_used")
    case.split("zeros", "--callbacks", "stub:zeros")
    assert (case.directory / "zeros.stderr").read_text() == ""
    case.split("stripped", "--callbacks", "strip")
    for path in case.split("stripped").values():
        assert effects(load(path.read_bytes())) == ([], [])


def test_stripping_a_result_that_is_used_is_refused(cases):
    case = cases("two_ordered_effects_in_loops")
    for verb in (
        ["split", "--callbacks", "strip", "-o", f"{case.directory}/no/"],
        ["strip", "-o", case.directory / "no"],
    ):
        outcome = case.tool.run(verb[0], case.path, *verb[1:])
        assert outcome.returncode == 1
        error = outcome.stderr.decode()
        assert re.search(
            r"result 0 of io callback `log` at .*callback_programs\.py:\d+:\d+ \(in `@.*`.*\) is used", error
        )
        assert "`--callback 'log=stub:zeros'`" in error
    assert not (case.directory / "no").exists()


# ---------------------------------------------------------------- ffi, host, unpartition


def test_a_target_of_the_users_own_is_written_as_jax_writes_one(cases):
    case = cases("pure_in_plain")
    path = case.split("ffi", "--callbacks", "ffi:my.target", platforms=("cpu",))["cpu"]
    ours = load(path.read_bytes())
    checks = [export.DisabledSafetyCheck.custom_call("my.target")]

    def native(x):
        return jax.ffi.ffi_call("my.target", ROW)(x, name="add")

    theirs = export.export(jax.jit(native), platforms=["cpu"], disabled_checks=checks)(ROW)
    (a,), (b,) = (
        [(call.op.target, call.op.operands, call.op.results, call.op.attributes) for call in calls(e, "my.target")]
        for e in (ours, theirs)
    )
    a[3].pop("sdy.sharding", None), a[3].pop("mhlo.sharding", None)
    assert a == b
    with pytest.raises(Exception, match=r"No FFI handler registered for my\.target"):
        jax.block_until_ready(ours.call(*case.program.inputs()))


def test_a_buffer_callback_becomes_a_host_callback(cases):
    """A pure one, or with side effects an io one, which JAX would have lowered to the same operation."""
    pure = cases("buffer_alias")
    for platform, path in pure.split("host", "--callbacks", "host").items():
        (call,) = calls(load_guarded(path.read_bytes())[0])
        assert "output_operand_aliases" not in call.op.attributes
        meta = placeholders(path)[0]
        assert (meta["kind"], meta["as"], meta["aliases"]) == ("pure", "buffer", [[0, 0]])
        expected = {"cpu": "xla_ffi_python_cpu_callback", "tpu": "jaxprism_callback"}
        assert call.op.target == expected.get(platform, "xla_ffi_python_gpu_callback")
    io = cases("buffer_side_effect")
    for path in io.split("host", "--callbacks", "host").values():
        (exported,) = load_guarded(path.read_bytes())
        assert placeholders(path)[0]["kind"] == "io"
        assert effects(exported) == ([], ["<class 'jax._src.callback.IOEffect'>"])


@pytest.mark.parametrize("name", ["debug_partitioned", "print_partitioned"])
def test_a_partitioned_callback_becomes_a_plain_one(cases, name: str):
    case = cases(name)
    outputs = case.split("plain", "--callbacks", "unpartition")
    for platform, path in outputs.items():
        (call,) = calls(load_guarded(path.read_bytes())[0])
        assert placeholders(path)[0]["partitioned"] is False
        expected = {"cpu": "xla_ffi_python_cpu_callback", "tpu": "jaxprism_callback"}
        assert call.op.target == expected.get(platform, "xla_ffi_python_gpu_callback")
    load(outputs["tpu"].read_bytes())


def test_a_partitioned_callback_becomes_the_operation_of_a_plain_one(cases):
    case = cases("debug_partitioned")

    def plain(x):
        jax.debug.callback(see, x)
        return jnp.sin(x) * 2

    plain.__name__ = case.program.name
    outputs = case.split("plain", "--callbacks", "unpartition")
    for platform in CUSTOM_CALL_PLATFORMS:
        (theirs,) = lower_as_jax(jax.jit(plain, **case.program.options), case.program.args, platform)
        (ours,) = load_guarded(outputs[platform].read_bytes())
        difference = compare(graph_of(ours, with_targets=False), graph_of(theirs, with_targets=False))
        assert difference is None, f"{platform}: left is the split, right is JAX\n{difference}"
        assert [call.op for call in calls(ours)] == [call.op for call in calls(theirs)]


# ---------------------------------------------------------------- tpu


def test_tpu_keeps_what_only_jax_can_lower(cases):
    for name in ("pure_in_plain", "io_ordered_in_scan", "debug_in_cond", "print_ordered_in_plain"):
        case = cases(name)
        path = case.split("tpu", platforms=("tpu",))["tpu"]
        assert path.read_bytes() == case.kept()["tpu"].read_bytes(), name


# The function of a loop's body, if it is one. Before 0.7 JAX gives it the text of no name.
CLOSED_CALL = "closed_call" if jax.__version_info__ >= (0, 7) else "None"

REFUSED = {
    "buffer_in_scan": (
        r"buffer callback `triple`: buffer callbacks have no target on `tpu`\n"
        rf" +at .*callback_programs\.py:\d+:\d+ \(in `@(main`, inside a while|{CLOSED_CALL}`)\)",
        "`--callback 'tpu:triple=host'` runs it as a host callback",
    ),
    "buffer_silent_in_plain": (r"buffer callback `watch`", "`--callback 'tpu:watch=strip'` removes it"),
    "debug_partitioned": (
        r"debug callback `see`: partitioned callbacks have no target on `tpu`\n +at .*callback_programs\.py:\d+:\d+ ",
        "`--callback 'tpu:see=unpartition'` runs it once for all shards",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tpu_cannot_do_is_refused_with_its_line_and_the_ways_out(cases, name: str, tmp_path: Path):
    case = cases(name)
    outcome = case.tool.run("split", case.path, "-o", f"{tmp_path}/out/")
    error = outcome.stderr.decode()
    assert outcome.returncode == 1
    pattern, hint = REFUSED[name]
    assert "cannot split for `tpu`" in error
    assert re.search(pattern, error), error
    assert hint in error
    assert not (tmp_path / "out").exists()
    # The hint does it.
    rule = re.search(r"--callback '([^']*)'", error)
    outcome = case.tool.run("split", case.path, "-o", f"{tmp_path}/out/", "--callback", rule.group(1))
    assert outcome.returncode == 0, outcome.stderr.decode()


@pytest.mark.parametrize("policy", ["host", "strip", "stub:zeros", "unpartition", "keep", "ffi:my.target"])
def test_what_tpu_cannot_do_takes_the_policy_for_that(cases, policy: str):
    """And nothing else does."""
    case = cases("debug_partitioned" if policy == "unpartition" else "buffer_silent_in_plain")
    folder = f"unsupported-{policy.replace(':', '-')}"
    outputs = case.split(folder, "--on-unsupported", policy)
    for platform in CUSTOM_CALL_PLATFORMS:
        assert outputs[platform].read_bytes() == case.lowered()[platform].read_bytes()
    found = calls(load(outputs["tpu"].read_bytes()), "my.target")
    targets = {"strip": [], "stub:zeros": [], "ffi:my.target": ["my.target"]}
    assert [call.op.target for call in found] == targets.get(policy, ["jaxprism_callback"])
    (slot,) = case.record(folder, "manifest")["outputs"][-1]["levels"][0]["slots"]
    assert slot["policy"] == policy


# ---------------------------------------------------------------- a table of the user


def test_a_table_adds_platforms_and_targets(tool: Tool, cases, tmp_path: Path):
    path, table = tmp_path / "model.jax_exported", tmp_path / "table.json"
    program = cases("everything").program
    exported = program.export(("cpu", "METAL", "my_npu"))
    path.write_bytes(jaxprism.serialize(exported, vjp_order=1))
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/")
    assert outcome.returncode == 1
    assert b"`METAL`, which the table does not have" in outcome.stderr
    rows = {
        "METAL": {"like": "cuda", "buffer": "metal_buffer", "command_buffer": None},
        "my_npu": {"host_transfer": True, "buffer": "npu_buffer"},
        "cpu": {"callback": "my_cpu_callback"},
    }
    table.write_text(json.dumps({"v": 1, "platforms": rows}))
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/", "--table", table)
    assert outcome.returncode == 0, outcome.stderr.decode()
    found = {}
    for platform in ("cpu", "METAL", "my_npu"):
        (first, _) = load_guarded((tmp_path / "out" / f"model.{platform}.jax_exported").read_bytes())
        targets = ("my_cpu_callback", "metal_buffer", "npu_buffer")
        found[platform] = {call.op.target for call in calls(first, *targets)}
        assert is_guarded(first)
    assert found == {
        "cpu": {"my_cpu_callback", "xla_buffer_python_cpu_callback"},
        "METAL": {"xla_ffi_python_gpu_callback", "metal_buffer"},
        "my_npu": {"jaxprism_callback", "npu_buffer"},
    }
    for platform in ("cpu", "METAL", "my_npu"):
        lowered = tmp_path / "out" / f"model.{platform}.jax_exported"
        assert tool.run("opt", lowered, "--pass", "unlower-callbacks", "-o", tmp_path / platform).returncode == 0
        load((tmp_path / platform).read_bytes())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not a table of callbacks"),
        ('{"v": 2, "platforms": {}}', "version 2 of the table"),
        ('{"v": 1, "platforms": {"x": {"like": "y"}}}', "`like` names `y`"),
        ('{"v": 1, "platforms": {"x": {"callback": "jaxprism_callback"}}}', "cannot be a target"),
    ],
)
def test_a_bad_table_is_refused(cases, tmp_path: Path, text: str, complaint: str):
    case = cases("pure_in_plain")
    (tmp_path / "table.json").write_text(text)
    outcome = case.tool.run("split", case.path, "-o", f"{tmp_path}/out/", "--table", tmp_path / "table.json")
    assert outcome.returncode == 1
    assert complaint in outcome.stderr.decode()
    assert "table.json" in outcome.stderr.decode()


# ---------------------------------------------------------------- which policy holds


LADDER = [
    # Each beats those before it, in whatever order they are given.
    (["--callbacks", "keep"], {"tpu": "keep", "cpu": "keep"}),
    (["--on-unsupported", "host"], {"tpu": "host", "cpu": "keep"}),
    (["--callback", "w*=stub:zeros"], {"tpu": "stub:zeros", "cpu": "stub:zeros"}),
    (["--callback", "tpu:w?tch=ffi:t"], {"tpu": "ffi:t", "cpu": "stub:zeros"}),
    (["--callback", "*:watch=stub:nan"], {"tpu": "stub:nan", "cpu": "stub:nan"}),
    (["--callback", "tpu:watch=strip"], {"tpu": "strip", "cpu": "stub:nan"}),
]


@pytest.mark.parametrize("step", range(len(LADDER)))
@pytest.mark.parametrize("turn", [1, -1], ids=["as_listed", "reversed"])
def test_the_closest_rule_holds(cases, step: int, turn: int):
    case = cases("all_effects")
    options = [word for rung, _ in LADDER[: step + 1][::turn] for word in rung]
    case.split(f"ladder-{step}-{turn}", *options)
    outputs = {
        o["platform"]: o["levels"][0]["slots"] for o in case.record(f"ladder-{step}-{turn}", "manifest")["outputs"]
    }
    for platform, policy in LADDER[step][1].items():
        (slot,) = (slot for slot in outputs[platform] if slot["name"] == "watch")
        assert slot["policy"] == policy
        assert all(slot["policy"] == "keep" for slot in outputs[platform] if slot["name"] != "watch")


def test_the_later_of_two_equal_rules_holds(cases):
    case = cases("all_effects")
    case.split("later", "--callbacks", "keep", "--callback", "see=strip", "--callback", "see=stub:zeros")
    slots = case.record("later", "manifest")["outputs"][0]["levels"][0]["slots"]
    assert [slot["policy"] for slot in slots if slot["name"] == "see"] == ["stub:zeros"]


def test_a_rule_that_matches_nothing_is_an_error(cases, tmp_path: Path):
    case = cases("all_effects")
    for rule, complaint in (
        ("se=strip", "matches no callback"),
        ("METAL:see=strip", "`METAL` is not a platform"),
        ("see=stirp", "is not a policy"),
    ):
        outcome = case.tool.run("split", case.path, "-o", f"{tmp_path}/out/", "--callback", rule)
        assert outcome.returncode in (1, 2)
        assert complaint in outcome.stderr.decode()
    # A rule for a platform that is not written is none.
    options = ["-p", "cpu", "--callback", "tpu:watch=host"]
    assert case.tool.run("split", case.path, "-o", f"{tmp_path}/out/", *options).returncode == 0


# ---------------------------------------------------------------- safety


def test_a_level_without_lowered_callbacks_is_guarded_with_the_others(cases, tmp_path: Path):
    """JAX reads the levels one by one: none may be loaded where another would crash."""
    case = cases("custom_vjp")
    for rule, forward, backward in (("forward=stub:zeros", 0, 1), ("backward=stub:zeros", 1, 0)):
        folder = rule.split("=")[0]
        path = case.split(folder, "--callback", rule, platforms=("cpu",))["cpu"]
        found = load_guarded(path.read_bytes())
        assert [len(calls(level)) for level in found] == [forward, backward]
        assert all(map(is_guarded, found))
        with pytest.raises(Exception, match="UnboundCallbacks"):
            load(path.read_bytes())


@pytest.mark.parametrize(
    "name", ["pure_in_plain", "io_ordered_in_scan", "buffer_in_cond", "debug_ordered_in_while", "print_in_nested_jit"]
)
def test_a_placeholder_that_nobody_bound_fails_cleanly(cases, name: str):
    case = cases(name)
    exported = load(case.kept()["cpu"].read_bytes())
    with pytest.raises(Exception, match="No FFI handler registered for jaxprism_callback"):
        jax.block_until_ready(jax.jit(exported.call)(*case.program.inputs()))


def test_a_file_without_callbacks_has_none_to_strip(tool: Tool, tmp_path: Path):
    path = tmp_path / "plain.jax_exported"
    path.write_bytes(export.export(jax.jit(jnp.sin), platforms=["cpu", "tpu"])(ROW).serialize())
    outcome = tool.run("strip", path, "-o", tmp_path / "out.jax_exported")
    assert outcome.returncode == 0
    assert b"no callbacks that can be stripped" in outcome.stderr
    before, after = load(path.read_bytes()), load((tmp_path / "out.jax_exported").read_bytes())
    assert bytes(before.mlir_module_serialized) == bytes(after.mlir_module_serialized)


# ---------------------------------------------------------------- twice


def test_lowering_in_two_steps_is_lowering_in_one(cases, tmp_path: Path):
    """What was kept gets the number that it would have had."""
    case = cases("everything")
    rules = ["--callback", "forward=keep", "--callback", "watch=keep", "--callback", "jax.debug.print=keep"]
    half = case.split("half", *rules, platforms=("cpu",))["cpu"]
    first = load_guarded(half.read_bytes())
    assert any(call.was is None for level in first for call in calls(level))
    assert all(map(is_guarded, first))
    outcome = case.tool.run("split", half, "-o", f"{tmp_path}/{{platform}}", "--manifest", tmp_path / "whole.json")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert (tmp_path / "cpu").read_bytes() == case.lowered()["cpu"].read_bytes()
    (whole,) = json.loads((tmp_path / "whole.json").read_text())["outputs"]
    assert whole == case.record("lowered", "manifest")["outputs"][0]
    outcome = case.tool.run("opt", half, "--pass", "lower-callbacks", "-o", tmp_path / "opt.jax_exported")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert (tmp_path / "opt.jax_exported").read_bytes() == case.lowered()["cpu"].read_bytes()


def test_a_lowered_file_is_done_with(cases, tmp_path: Path):
    case = cases("everything")
    lowered = case.lowered()["cpu"]
    outcome = case.tool.run("split", lowered, "-o", f"{tmp_path}/{{platform}}")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert (tmp_path / "cpu").read_bytes() == lowered.read_bytes()
    outcome = case.tool.run("split", lowered, "-o", f"{tmp_path}/no/", "--callback", "see=strip")
    assert outcome.returncode == 1
    assert b"matches no callback" in outcome.stderr


def test_strip_takes_lowered_callbacks_too(cases, tmp_path: Path):
    case = cases("two_ordered_effects")
    options = ["--callback", "log=stub:operand:0"]
    for name, path in (("lowered", case.lowered()["cpu"]), ("kept", case.kept()["cpu"])):
        outcome = case.tool.run("strip", path, "-o", tmp_path / name, *options)
        assert outcome.returncode == 0, outcome.stderr.decode()
    assert (tmp_path / "lowered").read_bytes() == (tmp_path / "kept").read_bytes()
    assert calls(load((tmp_path / "kept").read_bytes())) == []


def test_a_callback_goes_with_those_that_see_its_result(tool: Tool, tmp_path: Path):
    def run(x):
        y = io_callback(log, ROW, x, ordered=True)
        jax.debug.print("{}", y * 2)
        z = jax.pure_callback(log, ROW, y + x)
        io_callback(note, None, jnp.sin(z), ordered=True)
        return x

    path = tmp_path / "model.jax_exported"
    path.write_bytes(jaxprism.serialize(jaxprism.export(jax.jit(run), platforms=PLATFORMS)(ROW)))
    outcome = tool.run("strip", path, "-o", tmp_path / "none.jax_exported")
    assert outcome.returncode == 0, outcome.stderr.decode()
    found = load((tmp_path / "none.jax_exported").read_bytes())
    assert effects(found) == ([], [])
    assert "custom_call" not in found.mlir_module()
    # What stays sees it still.
    outcome = tool.run("strip", path, "-o", tmp_path / "some.jax_exported", "--callback", "note=keep")
    assert outcome.returncode == 1
    assert b"result 0 of pure callback `log`" in outcome.stderr or b"result 0 of io callback `log`" in outcome.stderr
