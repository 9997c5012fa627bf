"""Acceptance of `jaxprism merge` by real JAX.

Every program of `programs.py` is exported for each platform alone, merged, and held against two truths: the single
exports, by numbers and by graph, and the export that JAX itself makes of the source for all platforms.
"""

import dataclasses
import re
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph import Graph, compare
from jax import export, lax
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from programs import PROGRAMS, Program, Unavailable, ramp
from test_split import assert_same_numbers, chain, fields, load, relabelled, results
from tool import Tool

Exported = export.Exported
f32 = np.float32

# The judge compares pure functions of many operations as wholes, and what was `main` becomes one of them.
TOO_LARGE = ("deep_calls", "random_distributions", "special_functions")


def merge(tool: Tool, directory: Path, files: dict[str, bytes]) -> bytes:
    """The exports of some platforms as one."""
    arguments = []
    for platform, file in files.items():
        path = directory / f"{platform}.jax_exported"
        path.write_bytes(file)
        arguments.append(f"{platform}={path}")
    outcome = tool.run("merge", *arguments, "-o", directory / "fat.jax_exported", "--force")
    assert outcome.returncode == 0, outcome.stderr.decode()
    return (directory / "fat.jax_exported").read_bytes()


def serialize(
    function: object, *specs: object, platforms: tuple[str, ...], vjp_order: int = 0, **options: object
) -> bytes:
    """An export, written."""
    exported = export.export(function, platforms=list(platforms), **options)(*specs)
    return bytes(exported.serialize(vjp_order=vjp_order))


class Case:
    """A program, exported for each platform alone, and merged."""

    def __init__(self, program: Program, tool: Tool, directory: Path):
        self.program, self.tool, self.directory = program, tool, directory
        with program.context():
            files = {p: bytes(program.export((p,)).serialize(vjp_order=program.vjp_order)) for p in program.platforms}
            self.singles = {platform: load(file) for platform, file in files.items()}
            self.merged = load(merge(tool, directory, files))

    @cached_property
    def splits(self) -> dict[str, Exported]:
        """What `split` makes of the merged export."""
        outcome = self.tool.run("split", "-q", self.directory / "fat.jax_exported", "-o", f"{self.directory}/out/")
        assert outcome.returncode == 0, outcome.stderr.decode()
        with self.program.context():
            names = {p: self.directory / "out" / f"fat.{p}.jax_exported" for p in self.program.platforms}
            return {platform: load(path.read_bytes()) for platform, path in names.items()}


@pytest.fixture(scope="module", params=list(PROGRAMS))
def case(request: pytest.FixtureRequest, tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Case:
    program = PROGRAMS[request.param]
    if len(program.platforms) < 2:
        pytest.skip("one platform")
    try:
        return Case(program, tool, tmp_path_factory.mktemp(program.name))
    except Unavailable as reason:
        pytest.skip(f"{program.name}: {reason}")


def test_each_platform_computes_what_its_own_export_does(case: Case):
    """On cpu as it is; other platforms under the name of cpu, on both sides."""
    if case.program.not_run:
        pytest.skip(case.program.not_run)
    with case.program.context():
        for number, platform in enumerate(case.program.platforms):
            if platform != "cpu" and (not case.program.portable or case.program.not_relabelled):
                continue
            for level, (single, merged) in enumerate(
                zip(chain(case.singles[platform]), chain(case.merged), strict=True)
            ):
                expected = results(dataclasses.replace(single, platforms=("cpu",)), case.program)
                found = results(relabelled(merged, number), case.program)
                assert_same_numbers(expected, found, f"{platform}, vjp level {level}")


def test_the_container_is_that_of_an_export_for_all_platforms(case: Case):
    """As JAX makes it, where JAX can."""
    with case.program.context():
        try:
            exported = case.program.export(case.program.platforms)
            model = load(exported.serialize(vjp_order=case.program.vjp_order))
        except (ValueError, NotImplementedError) as error:
            pytest.skip(f"JAX {jax.__version__} cannot export it for several platforms: {error}")
        for level, (merged, expected) in enumerate(zip(chain(case.merged), chain(model), strict=True)):
            assert fields(merged) == fields(expected), level
            assert merged.uses_global_constants == expected.uses_global_constants
            attribute = re.search(r"jax\.uses_shape_polymorphism = (\w+)", merged.mlir_module())
            assert attribute is not None
            assert attribute.group(1) == "true"
            main = next(line for line in merged.mlir_module().splitlines() if "@main(" in line)
            assert main.split("loc(")[0].startswith(
                '  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}'
            )


def test_each_platform_keeps_its_program(case: Case):
    """By graph, on the platform and after splitting; calls are followed there, so names do not matter."""
    if case.program.name in TOO_LARGE:
        pytest.skip("too large for the judge")
    for number, platform in enumerate(case.program.platforms):
        levels = zip(chain(case.singles[platform]), chain(case.merged), chain(case.splits[platform]), strict=True)
        for level, (single, merged, split) in enumerate(levels):
            where = f"{platform}, vjp level {level}"
            model = Graph.read(single.mlir_module_serialized)
            difference = compare(Graph.read(merged.mlir_module_serialized, number), model)
            assert difference is None, f"{where}: left is the merged one\n{difference}"
            difference = compare(Graph.read(split.mlir_module_serialized), model)
            assert difference is None, f"{where}: left is the split\n{difference}"
            assert fields(split) == fields(single), where


def test_splitting_is_proved(case: Case):
    assert case.splits
    splits = [case.directory / "out" / f"fat.{platform}.jax_exported" for platform in case.program.platforms]
    outcome = case.tool.run("verify", *splits, "--against", case.directory / "fat.jax_exported")
    assert outcome.returncode == 0, (outcome.stdout + outcome.stderr).decode()


# ---------------------------------------------------------------- what it exists for


def per_platform(
    make, *specs: object, platforms: tuple[str, ...] = ("cpu", "cuda"), **options: object
) -> dict[str, bytes]:
    """Exports of `make(platform)` for each platform: another program for each."""
    return {p: serialize(make(p), *specs, platforms=(p,), **options) for p in platforms}


def on(exported: Exported, number: int, *args: object) -> np.ndarray:
    """The one result that an export computes for the platform of that number, here."""
    (result,) = jax.tree.leaves(jax.jit(relabelled(exported, number).call)(*args))
    return np.asarray(result)


def test_programs_that_differ_by_platform(tool: Tool, tmp_path: Path):
    """As where `jax.default_backend()` decides while a program is traced."""
    make = {
        "cpu": lambda x: jnp.sort(x)[::-1],
        "cuda": lambda x: lax.scan(lambda c, x: (c + x, c * x), x[0], x)[1],
        "tpu": jnp.cumsum,
    }
    files = per_platform(
        lambda p: jax.jit(make[p]), jax.ShapeDtypeStruct((5,), f32), platforms=("cpu", "cuda", "tpu"), vjp_order=1
    )
    merged, x = load(merge(tool, tmp_path, files)), ramp(5)
    for number, function in enumerate(make.values()):
        assert on(merged, number, x).tobytes() == np.asarray(jax.jit(function)(x)).tobytes()
        assert np.allclose(on(merged.vjp(), number, x, x + 1), jax.vjp(function, x)[1](x + 1)[0])
    assert np.asarray(merged.call(x)).tolist() == sorted(x.tolist(), reverse=True)


def test_composites_of_each_platform(tool: Tool, tmp_path: Path):
    """Composites of one name with decompositions of their own."""

    def make(platform: str):
        scaled = lax.composite(lambda x: x * 3 if platform == "cpu" else jnp.exp(x) - 1, name="mine.scaled")
        return jax.jit(lambda x: scaled(x) + scaled(x + 1))

    merged, x = load(merge(tool, tmp_path, per_platform(make, jax.ShapeDtypeStruct((4,), f32)))), ramp(4)
    for number, platform in enumerate(("cpu", "cuda")):
        assert np.allclose(on(merged, number, x), make(platform)(x))
    assert merged.mlir_module().count('stablehlo.composite "mine.scaled"') == 4


def test_a_pallas_kernel_of_one_platform(tool: Tool, tmp_path: Path):
    """A kernel for tpu, and plain JAX on cpu: what runs here is what cpu has."""

    def kernel(x, o):
        o[...] = x[...] * 2 + 1

    def make(platform: str):
        if platform == "tpu":
            return jax.jit(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), f32)))
        return jax.jit(lambda x: x * 2 + 1)

    files = per_platform(make, jax.ShapeDtypeStruct((8, 128), f32), platforms=("cpu", "tpu"))
    fat, x = merge(tool, tmp_path, files), ramp(8, 128)
    assert np.array_equal(load(fat).call(x), x * 2 + 1)
    outcome = tool.run("split", "-q", tmp_path / "fat.jax_exported", "-o", f"{tmp_path}/out/")
    assert outcome.returncode == 0, outcome.stderr.decode()
    for platform, file in files.items():
        split = load((tmp_path / "out" / f"fat.{platform}.jax_exported").read_bytes())
        assert compare(Graph.read(split.mlir_module_serialized), Graph.read(load(file).mlir_module_serialized)) is None
        assert ("tpu_custom_call" in split.mlir_module()) == (platform == "tpu")


def test_symbolic_shapes(tool: Tool, tmp_path: Path):
    """Shapes are refined in every branch, once they are known."""

    def make(platform: str):
        inner = jax.jit(lambda x: x / x.sum(axis=0))
        if platform == "cpu":
            return jax.jit(lambda x: inner(x) + inner(jnp.concatenate([x, x]))[: x.shape[0]])
        return jax.jit(lambda x: inner(x * 2) - x.shape[0])

    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 2*c"), f32)
    merged = load(merge(tool, tmp_path, per_platform(make, spec, vjp_order=1)))
    for shape in [(3, 4), (5, 2)]:
        x = ramp(*shape)
        for number, platform in enumerate(("cpu", "cuda")):
            assert np.allclose(on(merged, number, x), make(platform)(x), rtol=1e-6)
            assert np.allclose(on(merged.vjp(), number, x, x), jax.vjp(make(platform), x)[1](x)[0], atol=1e-5)


def test_unused_and_donated_arguments(tool: Tool, tmp_path: Path):
    """Each platform uses arguments of its own; one of them is donated on one platform only."""

    def make(platform: str):
        if platform == "cpu":
            return jax.jit(lambda x, y, z: {"r": x + z}, donate_argnums=(2,))
        return jax.jit(lambda x, y, z: {"r": y * z})

    spec = jax.ShapeDtypeStruct((3,), f32)
    merged = load(merge(tool, tmp_path, per_platform(make, spec, spec, spec)))
    assert merged.module_kept_var_idx == (0, 1, 2)
    assert "donor" not in merged.mlir_module()
    assert "aliasing" not in merged.mlir_module()
    x, y, z = ramp(3), ramp(3) + 1, ramp(3) + 2
    assert np.array_equal(merged.call(x, y, z)["r"], x + z)
    found = jax.jit(relabelled(merged, 1).call)(x, y, z)["r"]
    assert np.array_equal(found, y * z)


def test_the_same_code_over_other_arguments(tool: Tool, tmp_path: Path):
    """One function, which each platform calls with an argument of its own, in the gradient too."""

    def make(platform: str):
        return jax.jit((lambda x, y: x * x) if platform == "cpu" else (lambda x, y: y * y))

    spec = jax.ShapeDtypeStruct((3,), f32)
    merged = load(merge(tool, tmp_path, per_platform(make, spec, spec, vjp_order=1)))
    x, y, cotangent = ramp(3), ramp(3) + 1, ramp(3) + 2
    for number, platform in enumerate(("cpu", "cuda")):
        assert np.array_equal(on(merged, number, x, y), make(platform)(x, y))
        gradients = jax.jit(relabelled(merged.vjp(), number).call)(x, y, cotangent)
        wanted = jax.vjp(make(platform), x, y)[1](cotangent)
        assert [np.asarray(found).tolist() for found in gradients] == [np.asarray(want).tolist() for want in wanted]


def test_meshes_and_collectives(tool: Tool, tmp_path: Path):
    """Different collectives of one channel number, on one mesh."""
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(4), ("x",))
    sharding = NamedSharding(mesh, P("x"))

    def make(platform: str):
        def local(x):
            if platform == "cpu":
                return lax.psum(x, "x") + x
            return lax.all_gather(x, "x").sum(axis=0) - lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)])

        return jax.jit(
            jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x")),
            in_shardings=sharding,
            out_shardings=sharding,
        )

    merged = load(merge(tool, tmp_path, per_platform(make, jax.ShapeDtypeStruct((8,), f32))))
    x = jax.device_put(ramp(8), sharding)
    for number, platform in enumerate(("cpu", "cuda")):
        assert np.allclose(on(merged, number, x), make(platform)(x))


def test_sharded_arguments_that_one_platform_does_not_use(tool: Tool, tmp_path: Path):
    """Their gradients have no shardings there; without gradients or without shardings nothing is in the way."""
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(4), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    make = {"cpu": lambda x, y: x * 2, "cuda": lambda x, y: x * y}
    spec = jax.ShapeDtypeStruct((8,), f32, sharding=sharding)
    paths = []
    for platform, function in make.items():
        jitted = jax.jit(function, in_shardings=(sharding, sharding))
        paths.append(tmp_path / platform)
        paths[-1].write_bytes(serialize(jitted, spec, spec, platforms=(platform,), vjp_order=1))
    outcome = tool.run("merge", *paths, "-o", tmp_path / "fat")
    assert outcome.returncode == 1
    assert b"result[1]: no sharding on cpu, P('x') on ('x': 4)" in outcome.stderr
    assert b"hint: the gradient of an argument that a platform does not use has no sharding there" in outcome.stderr
    assert tool.run("merge", *paths, "-o", tmp_path / "short", "--no-vjp").returncode == 0
    assert not load((tmp_path / "short").read_bytes()).has_vjp()
    assert tool.run("merge", *paths, "-o", tmp_path / "fat", "--strip-sdy").returncode == 0
    merged, x, y = load((tmp_path / "fat").read_bytes()), ramp(8), ramp(8) + 1
    assert merged.nr_devices == 1
    for number, function in enumerate(make.values()):
        assert np.array_equal(on(merged, number, x, y), function(x, y))
        gradients = jax.jit(relabelled(merged.vjp(), number).call)(x, y, x)
        assert all(np.array_equal(*pair) for pair in zip(gradients, jax.vjp(function, x, y)[1](x), strict=True))


def test_a_difference_is_named_by_its_path(tool: Tool, tmp_path: Path):
    for platform, size in [("cpu", 4), ("cuda", 8)]:
        spec = {"b": jax.ShapeDtypeStruct((2,), f32), "w": jax.ShapeDtypeStruct((size,), f32)}
        function = jax.jit(lambda tree: tree["w"].sum())
        (tmp_path / platform).write_bytes(serialize(function, spec, platforms=(platform,)))
    outcome = tool.run("merge", tmp_path / "cpu", tmp_path / "cuda", "-o", tmp_path / "fat")
    assert outcome.returncode == 1
    assert b"args[0]['w']: float32[4] on cpu, float32[8] on cuda" in outcome.stderr
    assert not (tmp_path / "fat").exists()
