"""Acceptance of `jaxprism split` by real JAX.

Every program of `programs.py` is exported for several platforms, split, and held against two truths: the numbers that
the original computes for each platform, and the direct export of the same source for that platform alone.
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import artifacts
import jax
import numpy as np
import pytest
from graph import Graph, compare
from jax import export
from jax._src.interpreters import mlir as jax_mlir
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, Sharding
from jax.sharding import PartitionSpec as P
from programs import PROGRAMS, Program, Unavailable, index_in_an_array, mesh_2x2
from tool import Tool

Exported = export.Exported


# ---------------------------------------------------------------- one program, exported and split once


class Case:
    """A program with its original, its splits and its direct exports; every one as a reader of the file sees it."""

    def __init__(self, program: Program, tool: Tool, directory: Path):
        self.program = program
        self.path = directory / "model.jax_exported"
        with program.context():
            exported = program.export(program.platforms)
            self.path.write_bytes(exported.serialize(vjp_order=program.vjp_order))
            self.original = load(self.path.read_bytes())
        self.directory = directory / "out"
        self.outcome = tool.run("split", self.path, "-o", f"{self.directory}/")

    @cached_property
    def splits(self) -> dict[str, Exported]:
        """What the program wrote, by platform."""
        if self.outcome.returncode != 0:
            pytest.fail(f"exit {self.outcome.returncode}: {self.outcome.stderr.decode(errors='replace')}")
        expected = {f"model.{platform}.jax_exported" for platform in self.program.platforms}
        assert {path.name for path in self.directory.iterdir()} == expected
        with self.program.context():
            return {p: load((self.directory / f"model.{p}.jax_exported").read_bytes()) for p in self.program.platforms}

    @cached_property
    def directs(self) -> dict[str, Exported]:
        """The source exported for each platform alone, written and read back."""
        program = self.program
        with program.context():
            return {p: load(program.export((p,)).serialize(vjp_order=program.vjp_order)) for p in program.platforms}

    def levels(self) -> Iterator[tuple[str, Exported, Exported]]:
        """Every split with its direct export, at every level of the vjp chain."""
        for platform in self.program.platforms:
            split, direct = list(chain(self.splits[platform])), list(chain(self.directs[platform]))
            assert len(split) == len(direct) == 1 + self.program.vjp_order, "the vjp chain is not as long as it was"
            for level, (a, b) in enumerate(zip(split, direct, strict=True)):
                yield f"{platform}, vjp level {level}", a, b

    @cached_property
    def graphs(self) -> list[tuple[str, Graph, Graph]]:
        """Every split module with the direct one, read by jaxlib."""
        return [
            (where, Graph.read(split.mlir_module_serialized), Graph.read(direct.mlir_module_serialized))
            for where, split, direct in self.levels()
        ]

    def originals(self, *, resolved: bool) -> Iterator[Graph]:
        """The original at each level, in the order of `graphs`: as it is on each platform, or as it stands."""
        for number in range(len(self.program.platforms)):
            for original in chain(self.original):
                yield Graph.read(original.mlir_module_serialized, number if resolved else None)


def load(data: bytes) -> Exported:
    """Deserializes an export; JAX wants a buffer of its own."""
    return export.deserialize(bytearray(data))


def chain(exported: Exported) -> Iterator[Exported]:
    """The export, its vjp, and so on as far as the file goes."""
    yield exported
    while exported.has_vjp():
        exported = exported.vjp()
        yield exported


@pytest.fixture(scope="module", params=list(PROGRAMS))
def case(request: pytest.FixtureRequest, tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """One program; module scope makes pytest run all tests of a program before the next one."""
    program = PROGRAMS[request.param]
    try:
        return Case(program, tool, tmp_path_factory.mktemp(program.name))
    except Unavailable as reason:
        pytest.skip(f"{program.name}: {reason}")
    except ValueError as error:
        if "but decomposition has" in str(error):
            pytest.skip(f"JAX {jax.__version__} cannot export a composite for several platforms")
        raise


# ---------------------------------------------------------------- numbers


@cache
def inputs(program: Program) -> list:
    """The concrete flat arguments of a program."""
    built = program.build()
    return jax.tree.leaves((built.inputs, built.kwinputs))


def leaves_for(exported: Exported, program: Program) -> list:
    """Concrete flat arguments: the inputs of the program, then cotangents for the levels of the vjp chain."""
    leaves = list(inputs(program))
    for aval in exported.in_avals[len(leaves) :]:
        if aval.dtype == jax.dtypes.float0:
            leaves.append(np.zeros(aval.shape, jax.dtypes.float0))
        else:
            size = int(np.prod(aval.shape))
            leaves.append((np.arange(1, size + 1).reshape(aval.shape) / 7).astype(aval.dtype))
    if exported.nr_devices == 1:
        return leaves
    return [jax.device_put(leaf, sharding) for leaf, sharding in zip(leaves, shardings(exported), strict=True)]


def shardings(exported: Exported) -> list[Sharding]:
    """Where the arguments are, by the export or replicated. Before 0.9 an export says it without meshes."""
    devices, replicated = jax.devices()[: exported.nr_devices], NamedSharding(mesh_2x2(), P())
    if not hasattr(exported, "_in_named_shardings"):
        return [replicated if hlo is None else GSPMDSharding(devices, hlo) for hlo in exported.in_shardings_hlo]

    def named(sharding: NamedSharding | None) -> NamedSharding:
        if sharding is None or sharding.mesh.empty:
            return replicated
        mesh = Mesh(np.array(devices).reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names)
        return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)

    return [named(sharding) for sharding in exported.in_shardings_jax(None)]


def results(exported: Exported, program: Program) -> list[tuple]:
    """What an export computes here, as bytes, so that not a bit may differ; keys by their data."""
    args, kwargs = jax.tree.unflatten(exported.in_tree, leaves_for(exported, program))
    outputs = jax.tree.leaves(jax.jit(exported.call)(*args, **kwargs))
    outputs = [jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in outputs]
    return [(x.shape, str(x.dtype), np.asarray(x).tobytes(), np.asarray(x)) for x in outputs]


def assert_same_numbers(expected: list[tuple], found: list[tuple], where: str) -> None:
    """Bit for bit; the message shows the numbers."""
    assert len(expected) == len(found), where
    for position, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert a[:3] == b[:3], f"{where}: result {position} is\n{b[3]}\nand should be\n{a[3]}"


def relabelled(original: Exported, number: int) -> Exported:
    """The original with platform `number` under the name "cpu", so that calling it here takes that platform's way."""
    names = (f"other{i}" for i in range(len(original.platforms)))
    return dataclasses.replace(
        original, platforms=tuple("cpu" if i == number else name for i, name in enumerate(names))
    )


def skip_unless_it_runs(case: Case) -> None:
    if case.program.not_run:
        pytest.skip(case.program.not_run)


def test_cpu_computes_the_same_bits(case: Case):
    if "cpu" not in case.program.platforms:
        pytest.skip("an export without cpu")
    skip_unless_it_runs(case)
    with case.program.context():
        for level, (original, split) in enumerate(zip(chain(case.original), chain(case.splits["cpu"]), strict=True)):
            expected, found = results(original, case.program), results(split, case.program)
            assert_same_numbers(expected, found, f"vjp level {level}")


def test_other_platforms_compute_their_own_numbers(case: Case):
    skip_unless_it_runs(case)
    if not case.program.portable:
        pytest.skip("the branches of other platforms hold custom calls that do not exist on CPU")
    if case.program.not_relabelled:
        pytest.skip(f"JAX {jax.__version__}: {case.program.not_relabelled}")
    with case.program.context():
        for number, platform in enumerate(case.program.platforms):
            if platform == "cpu":
                continue
            levels = zip(chain(case.original), chain(case.splits[platform]), strict=True)
            for level, (original, split) in enumerate(levels):
                expected = results(relabelled(original, number), case.program)
                found = results(dataclasses.replace(split, platforms=("cpu",)), case.program)
                assert_same_numbers(expected, found, f"{platform}, vjp level {level}")


# ---------------------------------------------------------------- graphs


def test_module_equals_the_original_on_its_platform(case: Case):
    for (where, split, _), original in zip(case.graphs, case.originals(resolved=True), strict=True):
        difference = compare(split, original)
        assert difference is None, f"{where}: left is the split, right the original\n{difference}"


def test_verify_proves_every_split(case: Case, tool: Tool):
    """The other judge of splits: `jaxprism verify`, which needs no JAX and compares more strictly, locations included."""
    assert case.splits
    splits = [case.directory / f"model.{platform}.jax_exported" for platform in case.program.platforms]
    outcome = tool.run("verify", *splits, "--against", case.path)
    assert outcome.returncode == 0, (outcome.stdout + outcome.stderr).decode()


def test_module_equals_the_direct_export(case: Case):
    if case.program.unlike_direct:
        pytest.skip(case.program.unlike_direct)
    for where, split, direct in case.graphs:
        difference = compare(split, direct)
        assert difference is None, f"{where}: left is the split, right the direct export\n{difference}"


def test_no_more_operations_than_the_direct_export(case: Case):
    for where, split, direct in case.graphs:
        assert split.operations <= direct.operations, where


def test_nothing_looks_at_a_platform_index(case: Case):
    for (where, split, direct), original in zip(case.graphs, case.originals(resolved=False), strict=True):
        complaints = split.platform_remains(original)
        assert not complaints, "\n".join([where, *complaints])
        own = original.constant_cases()
        new = [decided for decided in split.decided if (decided.branches, decided.location) not in own]
        assert len(new) <= sum(decided.computed for decided in direct.decided), f"{where}: decided but left: {new}"


def test_what_the_platform_does_not_decide_stays(case: Case):
    """Choices that are constant in the source, a user's own ones and those inside JAX, are left as they are."""
    resolved, unresolved = case.originals(resolved=True), case.originals(resolved=False)
    for (where, split, _), here, everywhere in zip(case.graphs, resolved, unresolved, strict=True):
        own = {(decided.branches, decided.location) for decided in here.decided} & everywhere.constant_cases()
        lost = own - split.constant_cases()
        assert not lost, f"{where}: resolved although no platform decides it"
    if case.program.user_cases is not None:
        branches, count = case.program.user_cases
        for where, *graphs in case.graphs:
            assert [graph.case_operations().count(branches) for graph in graphs] == [count, count], where


# ---------------------------------------------------------------- the file


def fields(exported: Exported) -> dict[str, object]:
    """The container fields that a split must share with a direct export, in comparable form."""

    def avals(values: tuple) -> list:
        # Symbolic dimensions of different files belong to different scopes: compare what they say.
        return [(str(a.shape), str(a.dtype), a.weak_type, str(getattr(a, "memory_space", None))) for a in values]

    compared = {
        "fun_name": exported.fun_name,
        "in_tree": exported.in_tree,
        "in_avals": avals(exported.in_avals),
        "out_tree": exported.out_tree,
        "out_avals": avals(exported.out_avals),
        "platforms": exported.platforms,
        "ordered_effects": exported.ordered_effects,
        "unordered_effects": exported.unordered_effects,
        "disabled_safety_checks": list(exported.disabled_safety_checks),
        "calling_convention_version": exported.calling_convention_version,
        "module_kept_var_idx": exported.module_kept_var_idx,
        "nr_devices": exported.nr_devices,
    }
    for name in ("in_shardings_hlo", "out_shardings_hlo", "_in_named_shardings", "_out_named_shardings"):
        if hasattr(exported, name):
            compared[name] = [str(sharding) for sharding in getattr(exported, name)]
    return compared


def test_container_equals_the_direct_export(case: Case):
    for where, split, direct in case.levels():
        assert fields(split) == fields(direct), where


def test_shape_refinement_only_where_shapes_are_symbolic(case: Case):
    for where, split, direct in case.levels():
        expected = case.program.uses_global_constants
        if expected is None:
            expected = direct.uses_global_constants
        assert split.uses_global_constants == expected, where
        attribute = re.search(r"jax\.uses_shape_polymorphism = (\w+)", split.mlir_module())
        assert attribute is not None, where
        assert attribute.group(1) == str(expected).lower(), where


def rewritten(artifact: bytes) -> bytes:
    """The artifact as JAX's own writer writes it, for the version that it says it was written for."""
    version = re.match(rb"ML\xefR.StableHLO_v([\d.]+)\0", artifact, re.DOTALL)
    assert version is not None, "not a StableHLO portable artifact"
    with jax_mlir.make_ir_context():
        module = artifacts.deserialize(artifact)
        return artifacts.serialize(module, version.group(1).decode())


def test_module_is_written_as_jax_writes_it(case: Case):
    for where, split, direct in case.levels():
        artifact, model = bytes(split.mlir_module_serialized), bytes(direct.mlir_module_serialized)
        once = rewritten(artifact)
        if rewritten(model) == model:
            assert once == artifact, where
        else:
            # JAX itself widens the version of a composite from 32 to 64 bits when it writes the module again.
            assert rewritten(once) == once, where


def test_stdout_is_a_table_of_the_outputs(case: Case):
    header, *rows = case.outcome.stdout.decode().splitlines()
    assert header.split()[:2] == ["platform", "operations"]
    assert [row.split()[0] for row in rows] == list(case.program.platforms)


def test_index_in_an_array_is_refused_or_harmless(tool: Tool, tmp_path: Path):
    """What no analysis can decide is either left as data, with the right numbers, or refused in words that help."""
    program = Program("index_in_an_array", index_in_an_array, vjp_order=1)
    path = tmp_path / "model.jax_exported"
    path.write_bytes(program.export(program.platforms).serialize(vjp_order=1))
    original = load(path.read_bytes())
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/")
    if outcome.returncode != 0:
        assert outcome.returncode == 1
        assert names(tmp_path / "out") == []
        assert b"platform" in outcome.stderr
        assert b"programs.py" in outcome.stderr, "a refusal names the line of the source"
        return
    for number, platform in enumerate(program.platforms):
        split = load((tmp_path / "out" / f"model.{platform}.jax_exported").read_bytes())
        for level, (before, after) in enumerate(zip(chain(original), chain(split), strict=True)):
            expected = results(relabelled(before, number), program)
            found = results(dataclasses.replace(after, platforms=("cpu",)), program)
            assert_same_numbers(expected, found, f"{platform}, vjp level {level}")


@pytest.mark.parametrize("option", ["--strip-locations", "--redact-paths"])
def test_the_same_numbers_and_graph_without_places_in_the_source(tool: Tool, tmp_path: Path, option: str):
    program = PROGRAMS["grad_of_scan"]
    path = tmp_path / "model.jax_exported"
    path.write_bytes(program.export(program.platforms).serialize(vjp_order=program.vjp_order))
    original = load(path.read_bytes())
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/", option)
    assert outcome.returncode == 0, outcome.stderr.decode()
    for number, platform in enumerate(program.platforms):
        split = load((tmp_path / "out" / f"model.{platform}.jax_exported").read_bytes())
        for level, (before, after) in enumerate(zip(chain(original), chain(split), strict=True)):
            where = f"{platform}, vjp level {level}"
            artifact = bytes(after.mlir_module_serialized)
            assert os.path.dirname(__file__).encode() not in artifact, where
            assert (b"programs.py" in artifact) == (option == "--redact-paths"), where
            assert rewritten(artifact) == artifact, where
            difference = compare(Graph.read(artifact), Graph.read(bytes(before.mlir_module_serialized), number))
            assert difference is None, f"{where}: left is the split, right the original\n{difference}"
            expected = results(relabelled(before, number), program)
            assert_same_numbers(expected, results(dataclasses.replace(after, platforms=("cpu",)), program), where)


# ---------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def multi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small export for three platforms."""
    path = tmp_path_factory.mktemp("command") / "net.v1.jax_exported"
    path.write_bytes(PROGRAMS["scan"].export(PROGRAMS["scan"].platforms).serialize())
    return path


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for one platform."""
    path = tmp_path_factory.mktemp("command") / "single.jax_exported"
    path.write_bytes(PROGRAMS["scan"].export(("cuda",)).serialize())
    return path


def names(directory: Path) -> list[str]:
    """What is in a directory; nothing if there is none."""
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def test_outputs_are_named_after_input_and_platform(tool: Tool, multi: Path, tmp_path: Path):
    outcome = tool.run("split", multi, "-o", f"{tmp_path}/")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert names(tmp_path) == [f"net.v1.{platform}.jax_exported" for platform in ("cpu", "cuda", "tpu")]


def test_single_platform_is_one_output_and_a_remark(tool: Tool, single: Path, tmp_path: Path):
    outcome = tool.run("split", single, "-o", f"{tmp_path}/")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert names(tmp_path) == ["single.cuda.jax_exported"]
    assert re.search(rb"one platform|single platform|only platform|1 platform", outcome.stderr), outcome.stderr
    assert b"cuda" in outcome.stderr
    before, after = load(single.read_bytes()), load((tmp_path / "single.cuda.jax_exported").read_bytes())
    assert fields(before) == fields(after)
    assert bytes(before.mlir_module_serialized) == bytes(after.mlir_module_serialized)


def test_splitting_a_split_changes_nothing(tool: Tool, multi: Path, tmp_path: Path):
    assert tool.run("split", multi, "-o", f"{tmp_path}/once/").returncode == 0
    first = tmp_path / "once" / "net.v1.tpu.jax_exported"
    assert tool.run("split", first, "-o", f"{tmp_path}/twice/").returncode == 0
    (second,) = (tmp_path / "twice").iterdir()
    once, twice = load(first.read_bytes()), load(second.read_bytes())
    assert bytes(once.mlir_module_serialized) == bytes(twice.mlir_module_serialized)


def test_the_same_input_gives_the_same_bytes(tool: Tool, multi: Path, tmp_path: Path):
    for attempt in ("a", "b"):
        assert tool.run("split", multi, "-o", f"{tmp_path}/{attempt}/").returncode == 0
    for name in names(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_chosen_platforms_are_the_same_bytes_as_in_a_full_split(tool: Tool, multi: Path, tmp_path: Path):
    assert tool.run("split", multi, "-o", f"{tmp_path}/all/").returncode == 0
    outcome = tool.run("split", multi, "-o", f"{tmp_path}/some/", "-p", "tpu", "-p", "cpu")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert names(tmp_path / "some") == ["net.v1.cpu.jax_exported", "net.v1.tpu.jax_exported"]
    for name in names(tmp_path / "some"):
        assert (tmp_path / "some" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()


@pytest.mark.parametrize("platforms", [("rocm",), ("cpu", "rocm")])
def test_unknown_platform_is_refused_and_leaves_nothing(tool: Tool, multi: Path, tmp_path: Path, platforms: tuple):
    options = [option for platform in platforms for option in ("-p", platform)]
    outcome = tool.run("split", multi, "-o", f"{tmp_path}/", *options)
    assert outcome.returncode in (1, 2)
    for platform in (b"rocm", b"cpu", b"cuda", b"tpu"):
        assert platform in outcome.stderr
    assert names(tmp_path) == []


def test_unknown_platform_of_a_single_platform_export_is_refused(tool: Tool, single: Path, tmp_path: Path):
    outcome = tool.run("split", single, "-o", f"{tmp_path}/", "-p", "cpu")
    assert outcome.returncode in (1, 2)
    assert b"cuda" in outcome.stderr
    assert names(tmp_path) == []


def test_existing_output_is_kept_unless_forced(tool: Tool, multi: Path, tmp_path: Path):
    existing = tmp_path / "net.v1.tpu.jax_exported"
    existing.write_bytes(b"mine")
    outcome = tool.run("split", multi, "-o", f"{tmp_path}/")
    assert outcome.returncode in (1, 2)
    assert existing.name.encode() in outcome.stderr
    assert names(tmp_path) == [existing.name]
    assert existing.read_bytes() == b"mine"
    assert tool.run("split", multi, "-o", f"{tmp_path}/", "--force").returncode == 0
    assert len(names(tmp_path)) == 3
    assert load(existing.read_bytes()).platforms == ("tpu",)


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "module"])
def test_damaged_input_is_refused_and_leaves_nothing(tool: Tool, multi: Path, tmp_path: Path, damage: str):
    data = multi.read_bytes()
    start = data.index(b"ML\xefR")
    damaged = {
        "truncated": data[: len(data) // 2],
        "empty": b"",
        "text": b"module @jit_f {}\n" * 40,
        "module": data[: start + 60] + b"\xff" * 200 + data[start + 260 :],
    }
    path = tmp_path / "damaged.jax_exported"
    path.write_bytes(damaged[damage])
    outcome = tool.run("split", path, "-o", f"{tmp_path}/out/")
    assert outcome.returncode == 1, outcome.stderr.decode(errors="replace")
    assert b"error" in outcome.stderr
    assert b"panicked" not in outcome.stderr
    assert names(tmp_path / "out") == []


def test_missing_input_is_refused(tool: Tool, tmp_path: Path):
    outcome = tool.run("split", tmp_path / "none.jax_exported", "-o", f"{tmp_path}/out/")
    assert outcome.returncode in (1, 2)
    assert b"none.jax_exported" in outcome.stderr
    assert names(tmp_path / "out") == []


def test_input_from_stdin(tool: Tool, multi: Path, tmp_path: Path):
    assert tool.run("split", multi, "-o", f"{tmp_path}/file/").returncode == 0
    outcome = tool.run("split", "-", "-o", f"{tmp_path}/stdin/", stdin=multi.read_bytes())
    assert outcome.returncode == 0, outcome.stderr.decode()
    written = sorted((tmp_path / "stdin").iterdir())
    assert [path.name.split(".")[-2] for path in written] == ["cpu", "cuda", "tpu"]
    for path, expected in zip(written, sorted((tmp_path / "file").iterdir()), strict=True):
        assert path.read_bytes() == expected.read_bytes()


def test_input_is_never_changed(tool: Tool, multi: Path, tmp_path: Path):
    copy = tmp_path / "model.jax_exported"
    copy.write_bytes(multi.read_bytes())
    assert tool.run("split", copy, "-o", f"{tmp_path}/", "--force").returncode == 0
    assert copy.read_bytes() == multi.read_bytes()


# ---------------------------------------------------------------- files of others


def samples() -> list[Path]:
    """The exports below `JAXPRISM_SAMPLES`, but not those that are malformed on purpose."""
    root = os.environ.get("JAXPRISM_SAMPLES")
    if not root:
        return []
    return sorted(path for path in Path(root).rglob("*.jax_exported") if "hostile" not in path.parts)


@pytest.mark.parametrize("path", samples(), ids=lambda path: "/".join(path.parts[-2:]))
def test_sample(tool: Tool, path: Path, tmp_path: Path):
    try:
        original = load(path.read_bytes())
        for level in chain(original):
            Graph.read(bytes(level.mlir_module_serialized))
    except Exception as error:
        # An older JAX reads the container of a newer one, but not always the operations in it.
        pytest.skip(f"JAX {jax.__version__} cannot read it: {str(error)[:100]}")
    outcome = tool.run("split", path, "-o", f"{tmp_path}/")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert names(tmp_path) == sorted(f"{path.stem}.{platform}.jax_exported" for platform in original.platforms)
    for number, platform in enumerate(original.platforms):
        split = load((tmp_path / f"{path.stem}.{platform}.jax_exported").read_bytes())
        assert split.platforms == (platform,)
        for before, after in zip(chain(original), chain(split), strict=True):
            artifact = bytes(after.mlir_module_serialized)
            source = bytes(before.mlir_module_serialized)
            graph = Graph.read(artifact)
            if len(original.platforms) > 1:
                assert graph.platform_remains(Graph.read(source)) == []
                assert compare(graph, Graph.read(source, number)) is None
            if rewritten(source) == source:
                assert rewritten(artifact) == artifact
