"""Callbacks through `split`, `opt` and `strip`, for every program: held against what JAX itself writes."""

import re
from pathlib import Path

import jaxprism
import pytest
from callback_case import (
    GUARD,
    PLATFORMS,
    WRAPPER,
    Case,
    Exported,
    assert_computes,
    calls,
    case_of,
    effects,
    functions_of,
    graph_of,
    is_guarded,
    levels,
    load,
    load_guarded,
    module_of,
    nan,
    replaced_by,
    text_order,
    zeros,
)
from callback_programs import PROGRAMS
from callback_reference import CUSTOM_CALL_PLATFORMS, chain, lower_as_jax
from graph import compare
from jax import export
from test_split import fields, rewritten
from tool import Tool


@pytest.fixture(scope="module", params=list(PROGRAMS))
def case(request: pytest.FixtureRequest, tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """One program; module scope makes pytest run all tests of a program before the next one."""
    return case_of(request.param, tool, tmp_path_factory)


@pytest.fixture
def saying(case: Case) -> Case:
    """A program with calls that can be left out."""
    if not case.program.says:
        pytest.skip("all its callbacks have results that it uses")
    return case


# ---------------------------------------------------------------- lower


def test_lowered_callbacks_are_those_of_jax(case: Case):
    """In type, order, function and all attributes but for what the placeholder was, and the number."""
    for platform in CUSTOM_CALL_PLATFORMS:
        theirs = lower_as_jax(case.program.jitted(), case.program.args, platform, vjp_order=case.program.vjp_order)
        ours = load_guarded(case.lowered()[platform].read_bytes())
        for level, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            where = f"{platform}, vjp level {level}"
            found, expected = calls(a), calls(b)
            assert [call.op.target for call in found] == [call.op.target for call in expected], where
            assert [call.op.shape() for call in found] == [call.op.shape() for call in expected], where
            for call in found + expected:
                assert re.fullmatch(r"\{index = \d+ : ui64\}", call.config), where
            assert effects(a) == effects(b), where
            if platform in ("cpu", "cuda"):
                difference = compare(graph_of(a, with_targets=False), graph_of(b, with_targets=False))
                assert difference is None, f"{where}: left is the split, right is JAX\n{difference}"


def test_callbacks_are_numbered_as_they_come(case: Case):
    for platform, path in case.lowered().items():
        for level, exported in enumerate(load_guarded(path.read_bytes())):
            found = text_order(calls(exported))
            slots = list(dict.fromkeys(call.was or call.config for call in found))
            for call in found:
                if call.was is not None:
                    assert call.op.config == {"index": slots.index(call.was)}, f"{platform}, vjp level {level}"


def test_a_lowered_callback_keeps_what_it_was(case: Case):
    for platform, path in case.lowered().items():
        kept = levels(load(case.kept()[platform].read_bytes()))
        for a, b in zip(load_guarded(path.read_bytes()), kept, strict=True):
            assert [call.was or call.config for call in calls(a)] == [call.config for call in calls(b)], platform


def test_lowered_files_are_refused_by_jax(case: Case):
    for platform in CUSTOM_CALL_PLATFORMS:
        data = case.lowered()[platform].read_bytes()
        with pytest.raises(Exception, match=re.escape(f"cannot deserialize effect type {GUARD}")):
            load(data)
        assert all(map(is_guarded, load_guarded(data))), platform
    tpu = load_guarded(case.lowered()["tpu"].read_bytes())
    assert not any(map(is_guarded, tpu)), "nothing is lowered for tpu"


# ---------------------------------------------------------------- unlower


def unlowered(case: Case, path: Path) -> bytes:
    """The file after `unlower-callbacks`."""
    out = path.with_suffix(".unlowered")
    outcome = case.tool.run("opt", path, "--pass", "unlower-callbacks", "-o", out)
    assert outcome.returncode == 0, outcome.stderr.decode()
    return out.read_bytes()


def test_unlower_undoes_lower(case: Case):
    for platform, path in case.lowered().items():
        assert unlowered(case, path) == case.kept()[platform].read_bytes(), platform


def test_unlower_undoes_lower_before_splitting(case: Case, tmp_path: Path):
    """Lowered for one platform, the export for all of them comes back byte for byte, as it is without any pass."""
    path, same = tmp_path / "lowered.jax_exported", tmp_path / "same.jax_exported"
    for options in (["--pass", "lower-callbacks", "--platform", "cpu", "-o", path], ["-o", same]):
        outcome = case.tool.run("opt", case.path, *options)
        assert outcome.returncode == 0, outcome.stderr.decode()
    with pytest.raises(Exception, match=re.escape(GUARD)):
        load(path.read_bytes())
    assert unlowered(case, path) == same.read_bytes()
    for ours, theirs in zip(levels(load(same.read_bytes())), case.original, strict=True):
        assert bytes(ours.mlir_module_serialized) == bytes(theirs.mlir_module_serialized)


# ---------------------------------------------------------------- keep


def test_what_is_kept_is_what_jax_would_write_with_placeholders(case: Case):
    for platform in ("cpu", "tpu"):
        theirs = jaxprism.export(case.program.jitted(), platforms=(platform,))(*case.program.args)
        theirs = levels(load(jaxprism.serialize(theirs, vjp_order=case.program.vjp_order)))
        for level, (a, b) in enumerate(zip(levels(load(case.kept()[platform].read_bytes())), theirs, strict=True)):
            assert_alike(a, b, f"{platform}, vjp level {level}")


def assert_alike(ours: Exported, theirs: Exported, where: str) -> None:
    """The same fields, the same graph, written as JAX writes it."""
    found, expected = (
        {name: value for name, value in fields(exported).items() if not name.endswith("ordered_effects")}
        for exported in (ours, theirs)
    )
    assert found == expected, where
    assert effects(ours) == effects(theirs), where
    assert ours.uses_global_constants == theirs.uses_global_constants, where
    difference = compare(graph_of(ours), graph_of(theirs))
    assert difference is None, f"{where}: left is ours, right the direct export\n{difference}"
    artifact = bytes(ours.mlir_module_serialized)
    assert rewritten(artifact) == artifact, where


# ---------------------------------------------------------------- strip


def without(case: Case, platforms: tuple[str, ...]) -> list[Exported]:
    """The program in which the callbacks without results were never written, exported for these platforms."""
    program = case.program
    jitted, args = program.jitted(program.without), program.args
    exported = jaxprism.export(jitted, platforms=platforms)(*args)
    if not any(map(calls, chain(exported, program.vjp_order))):
        exported = export.export(jitted, platforms=platforms)(*args)
    return levels(load(jaxprism.serialize(exported, vjp_order=program.vjp_order)))


def rules(case: Case) -> list[str]:
    """Options that strip what has no results."""
    return [option for name in case.silent_names for option in ("--callback", f"{name}=strip")]


def test_stripping_is_as_if_they_had_not_been_written(saying: Case):
    split = saying.split("stripped", "--callbacks", "keep", *rules(saying), platforms=("cuda", "tpu"))
    for platform in ("cuda", "tpu"):
        found = levels(load(split[platform].read_bytes()))
        for level, (a, b) in enumerate(zip(found, without(saying, (platform,)), strict=True)):
            where = f"{platform}, vjp level {level}"
            assert_alike(a, b, where)
            assert (WRAPPER in functions_of(a)) == (WRAPPER in functions_of(b)), where


def test_strip_is_as_if_they_had_not_been_written(saying: Case):
    path = saying.directory / "strip.jax_exported"
    kept = {slot["name"] for slot in all_slots(saying)} - set(saying.silent_names)
    options = [option for name in sorted(kept) for option in ("--callback", f"{name}=keep")]
    outcome = saying.tool.run("strip", saying.path, "-o", path, *options)
    assert outcome.returncode == 0, outcome.stderr.decode()
    found = levels(load(path.read_bytes()))
    for level, (a, b) in enumerate(zip(found, without(saying, PLATFORMS), strict=True)):
        assert_alike(a, b, f"vjp level {level}")
        assert (WRAPPER in functions_of(a)) == (WRAPPER in functions_of(b)), level


def all_slots(case: Case) -> list[dict]:
    """All callbacks, as the manifest has them."""
    case.kept()
    (output, *_) = case.record("kept", "manifest")["outputs"]
    return [slot for level in output["levels"] for slot in level["slots"]]


# ---------------------------------------------------------------- running


@pytest.mark.parametrize("stub", [zeros, nan], ids=lambda stub: stub.__name__)
def test_without_callbacks_it_runs_and_computes_what_is_said(case: Case, stub):
    """What has no results is stripped, other results are replaced. `nan` is for floating point alone."""
    if case.program.name == "pure_condition":
        pytest.skip("the callback decides when the loop ends, and it would never end")
    options = ["--callbacks", f"stub:{stub.__name__}", *rules(case)]
    types = {text.split("[")[0] for slot in all_slots(case) for text in slot["results"]}
    if stub is nan and any(not re.match(r"b?float|complex", text) for text in types):
        outcome = case.tool.run("split", case.path, "-o", f"{case.directory}/nan/", "-p", "cpu", *options)
        assert outcome.returncode == 1
        assert b"no such value" in outcome.stderr
        assert b"stub:zeros" in outcome.stderr
        return
    path = case.split(stub.__name__, *options, platforms=("cpu",))["cpu"]
    found = levels(load(path.read_bytes()))
    for exported in found:
        assert not calls(exported)
        assert effects(exported) == ([], [])
        with module_of(exported):
            pass
    with replaced_by(stub):
        function = case.program.without or case.program.function
        assert_computes(found, function, case.program.inputs(), stub.__name__)
