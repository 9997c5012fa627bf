"""Exports that do the same on every platform, given other platforms: JAX loads them, and they compute the same bits."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tool import ROOT, Tool

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
W = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)


def affine(x, w):
    return jnp.tanh(x @ w), lax.fori_loop(0, 3, lambda i, s: s + jnp.sin(x[i]).sum(), jnp.float32(0))


def exported(function, platforms, *arguments, vjp_order=0, **options) -> bytes:
    return bytes(export.export(jax.jit(function), platforms=platforms, **options)(*arguments).serialize(vjp_order))


def load(data: bytes) -> export.Exported:
    return export.deserialize(bytearray(data))


def retarget(tool: Tool, data: bytes, platforms: str, *options: object) -> bytes:
    done = tool.run("retarget", "-", "--platforms", platforms, "-o", "-", *options, stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def bindings(tool: Tool, data: bytes, platforms: str, directory: Path, *options: object) -> list[dict]:
    out = directory / "out.jax_exported"
    done = tool.run("retarget", "-", "--platforms", platforms, "-o", out, "--json", *options, stdin=data)
    assert done.returncode == 1, done.stderr.decode()
    assert not out.exists(), "nothing is written"
    return json.loads(done.stdout)["bindings"]


def same_bits(left, right):
    left, right = jax.tree.leaves(left), jax.tree.leaves(right)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("before", [("cuda",), ("cuda", "rocm"), ("tpu", "rocm", "cuda")])
@pytest.mark.parametrize("after", ["cpu", "tpu,cpu", "cpu,cuda,rocm"])
def test_a_neutral_program_computes_the_same_bits(tool: Tool, before: tuple[str, ...], after: str):
    data = exported(affine, before, X, W, vjp_order=2)
    found, direct = load(retarget(tool, data, after)), load(exported(affine, ("cpu",), X, W, vjp_order=2))
    cotangents = (np.full((3, 2), 0.5, np.float32), np.float32(2))
    inputs = [X, W, *cotangents]
    for _ in range(2):
        assert found.platforms == tuple(after.split(","))
        same_bits(
            jax.jit(found.call)(*inputs[: len(found.in_avals)]), jax.jit(direct.call)(*inputs[: len(direct.in_avals)])
        )
        found, direct = found.vjp(), direct.vjp()


def test_the_calling_convention_is_that_of_jax(tool: Tool):
    for before, after in [(("cuda",), "cuda,rocm"), (("cuda", "rocm"), "cuda"), (("cuda", "rocm"), "cpu,tpu,cuda")]:
        found = load(retarget(tool, exported(affine, before, X, W), after))
        direct = load(exported(affine, tuple(after.split(",")), X, W))
        assert found.uses_global_constants == direct.uses_global_constants
        assert found.calling_convention_version == direct.calling_convention_version
        signature = "public @main("
        lines = [
            [line for line in each.mlir_module().splitlines() if signature in line or line.startswith("module ")]
            for each in (found, direct)
        ]
        without_places = [[line.split(" loc(")[0].split("attributes")[0] for line in each] for each in lines]
        assert without_places[0] == without_places[1]
        assert ("_platform_index" in found.mlir_module()) == ("," in after)


def test_a_case_that_does_the_same_for_all_is_none(tool: Tool, tmp_path: Path):
    def same(x):
        return lax.platform_dependent(x, cuda=jnp.negative, default=jnp.negative)

    def different(x):
        return lax.platform_dependent(x, cuda=jnp.negative, default=jnp.square)

    data = exported(same, ("cuda", "tpu"), X)
    same_bits(load(retarget(tool, data, "cpu,cuda")).call(X), -X)
    (found,) = bindings(tool, exported(different, ("cuda", "tpu"), X), "cpu", tmp_path)
    assert found["kind"] == "platform_case"
    assert "test_retarget.py" in found["place"]
    assert found["reason"] == "it has one branch for `cuda`, another for `tpu`"


def test_narrowing_needs_no_knowledge_of_targets(tool: Tool, tmp_path: Path):
    call = jax.ffi.ffi_call("my_kernel", jax.ShapeDtypeStruct(X.shape, X.dtype))
    checks = [export.DisabledSafetyCheck.custom_call("my_kernel")]
    data = exported(lambda x: call(x) + 1, ("cuda", "rocm"), X, disabled_checks=checks)
    narrow = load(retarget(tool, data, "rocm"))
    assert narrow.platforms == ("rocm",)
    assert [check.is_custom_call() for check in narrow.disabled_safety_checks] == ["my_kernel"]
    (found,) = bindings(tool, data, "rocm,cpu", tmp_path)
    assert (found["kind"], found["target"], found["platforms"]) == ("custom_call", "my_kernel", None)
    assert load(retarget(tool, data, "rocm,cpu", "--allow", "my_*")).platforms == ("rocm", "cpu")
    (tmp_path / "ours.txt").write_text("my_kernel  # on cpu too\n")
    assert load(retarget(tool, data, "cpu", "--targets-allowed", tmp_path / "ours.txt")).platforms == ("cpu",)


def test_linear_algebra_is_bound_and_can_be_mapped(tool: Tool, tmp_path: Path):
    def solve(x):
        return jnp.linalg.cholesky(x), tuple(jnp.linalg.eigh(x)), jax.scipy.linalg.lu(x)

    square = np.eye(3, dtype=np.float32)
    data = exported(solve, ("cuda",), square)
    targets = {found["target"] for found in bindings(tool, data, "rocm", tmp_path)}
    assert {"cusolver_potrf_ffi", "cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"} <= targets
    assert all(found["platforms"] == ["cuda"] for found in bindings(tool, data, "cpu", tmp_path))
    mapped, direct = (
        load(each).mlir_module()
        for each in (retarget(tool, data, "rocm", "--map-targets"), exported(solve, ("rocm",), square))
    )

    def calls(module: str) -> list[str]:
        return sorted(line.split("@")[1].split("(")[0] for line in module.splitlines() if "custom_call @" in line)

    assert calls(mapped) == calls(direct)
    assert all(call.startswith("hip") for call in calls(mapped))
    back = retarget(tool, retarget(tool, data, "rocm", "--map-targets"), "cuda", "--map-targets")
    assert calls(load(back).mlir_module()) == calls(load(data).mlir_module())


def test_a_composite_that_xla_replaces_binds(tool: Tool, tmp_path: Path):
    data = exported(lambda x: jnp.cumsum(x, axis=1), ("cuda",), X)
    if "chlo.scan" not in load(data).mlir_module():
        pytest.skip("this JAX writes no scan for cuda")
    (found,) = bindings(tool, data, "cpu", tmp_path)
    assert (found["kind"], found["target"]) == ("composite", "chlo.scan")
    assert load(retarget(tool, data, "rocm")).platforms == ("rocm",)


def test_shapes_stay_symbolic(tool: Tool):
    (batch,) = export.symbolic_shape("b")
    argument = jax.ShapeDtypeStruct((batch, 4), np.float32)
    data = exported(lambda x: jnp.tanh(x) * x.shape[0], ("cuda",), argument)
    for platforms in ("cpu", "tpu,cpu"):
        found = load(retarget(tool, data, platforms))
        assert found.uses_global_constants
        same_bits(found.call(X), load(exported(lambda x: jnp.tanh(x) * x.shape[0], ("cpu",), argument)).call(X))
        narrow = load(retarget(tool, retarget(tool, data, platforms), "cpu"))
        same_bits(narrow.call(X), found.call(X))


def test_shardings_and_placements_stay(tool: Tool):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    sharding = NamedSharding(mesh, P("a", "b"))

    def product(x):
        return lax.with_sharding_constraint(x * 2, sharding) + 1

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    program = jax.jit(product, in_shardings=sharding)
    data = bytes(export.export(program, platforms=("cuda",))(x).serialize())
    found = load(retarget(tool, data, "cpu,cuda"))
    assert found.nr_devices == 4
    same_bits(jax.jit(found.call, in_shardings=sharding)(x), x * 2 + 1)

    def placed(x):
        return jax.device_put(jax.device_put(x * 2, jax.memory.Space.Host), jax.memory.Space.Device) + 1

    if hasattr(jax, "memory"):
        same_bits(jax.jit(load(retarget(tool, exported(placed, ("cuda",), X), "cpu")).call)(X), X * 2 + 1)


def test_disabled_checks_stay(tool: Tool):
    data = exported(affine, ("cuda",), X, W, disabled_checks=[export.DisabledSafetyCheck.platform()])
    found = load(retarget(tool, data, "tpu"))
    assert list(found.disabled_safety_checks) == [export.DisabledSafetyCheck.platform()]


def test_lowered_callbacks_bind_and_effects_stay(tool: Tool, tmp_path: Path):
    shipped = (ROOT / "testdata" / "exports" / "lowered.jax-0.12.0.1.jax_exported").read_bytes()
    found = bindings(tool, shipped, "rocm", tmp_path)
    assert {each["target"].rsplit("_callback", 1)[0] for each in found} == {
        "xla_ffi_python_gpu",
        "xla_buffer_python_gpu",
    }
    assert all("process that wrote it" in each["reason"] for each in found)


def test_without_gradients_as_with_order_0(tool: Tool):
    data = exported(affine, ("cuda",), X, W, vjp_order=1)
    found = load(retarget(tool, data, "cpu", "--no-vjp"))
    assert not found.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        found.vjp()
    same_bits(found.call(X, W), load(retarget(tool, data, "cpu")).call(X, W))


# ---------------------------------------------------------------- shardings taken out


def sharded(x, w):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    constrained = lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("a", None)))
    return jnp.sin(constrained), constrained.sum()


def test_without_shardings_one_device_computes_the_same_bits(tool: Tool):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    rows = NamedSharding(mesh, P("a", None))
    x, w = np.arange(16, dtype=np.float32).reshape(4, 4) / 7, W
    program = jax.jit(sharded, in_shardings=(rows, None))
    data = bytes(export.export(program, platforms=("cpu", "cuda"))(x, w).serialize(vjp_order=1))
    assert load(data).nr_devices == 4
    done = tool.run("split", "-", "-p", "cpu", "--strip-sdy", "-o", "-", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    for found in (load(done.stdout), load(retarget(tool, done.stdout, "cpu,tpu"))):
        assert found.nr_devices == 1
        assert set(found.in_shardings_jax(mesh)) == {None}
        one = jax.devices()[0]
        results = jax.jit(found.call)(jax.device_put(x, one), jax.device_put(w, one))
        assert all(result.devices() == {one} for result in results)

        def plain(x, w):
            product = x @ w
            return jnp.sin(product), product.sum()

        direct = load(exported(plain, ("cpu",), x, w, vjp_order=1))
        same_bits(results, direct.call(x, w))
        cotangents = (np.ones((4, 2), np.float32), np.float32(2))
        same_bits(found.vjp().call(x, w, *cotangents), direct.vjp().call(x, w, *cotangents))


def test_manual_computations_are_refused_with_their_place(tool: Tool):
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    by_hand = jax.shard_map(lambda x: lax.psum(x, "a"), mesh=mesh, in_specs=P("a"), out_specs=P())
    data = bytes(export.export(jax.jit(by_hand), platforms=("cpu",))(np.ones(8, np.float32)).serialize())
    done = tool.run("strip", "-", "--strip-sdy", "-o", "-", stdin=data)
    assert done.returncode == 1
    message = done.stderr.decode()
    assert "test_retarget.py" in message
    assert "on one device the program would compute something else" in message
