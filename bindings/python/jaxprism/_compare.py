"""Runs an export and its split on the same random arguments, and compares the numbers: `verify(…, run=True)`.

A platform that is not here is run on the CPU, in a process of its own: both exports are called as if that were theirs,
so that the original takes the branches of the platform. What only the platform can run is said to be skipped.
"""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.export
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxprism import _dimensions
from jaxprism._errors import JaxprismError
from jaxprism._load import Loaded, load

# Sizes of dimension variables, tried in this order until the constraints of the export hold.
SIZES = (8, 4, 16, 12, 6, 2, 3, 1, 32)

# Values that two compilations of one program may give: JAX's own last bits depend on what XLA fuses.
RELATIVE = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-4, "complex64": 1e-4}
RELATIVE_OF_SMALL = 5e-2


class Skipped(Exception):
    """It cannot be run here."""


def compare(original: bytes, split: bytes, platform: str, seed: int) -> dict[str, Any]:
    """What `verify` says under `run`, for a split that is for this platform."""
    if _devices(platform):
        return _compare_here(original, split, platform, seed)
    # XLA was not made to compile for one platform what is for another, and may end the process.
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("original", "split")]
        for path, data in zip(paths, (original, split), strict=True):
            with open(path, "wb") as file:
                file.write(data)
        command = [sys.executable, "-m", "jaxprism._compare", *paths, platform, str(seed)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    lines = [line for line in done.stderr.splitlines() if "Error" in line or "Check failed" in line]
    return _nothing() | {"skipped": f"the process that ran it ended with {done.returncode}: {' '.join(lines[-1:])}"}


def _compare_here(original: bytes, split: bytes, platform: str, seed: int) -> dict[str, Any]:
    first, second = load(original), load(split)
    found = _nothing()
    try:
        if platform not in first.exported.platforms:
            raise Skipped(f"the original is not for {platform}")
        found["device"], device = _device(platform, second.exported.nr_devices)
        for level, pair in enumerate(zip(first._levels(), second._levels(), strict=False)):
            _compare_level(level, pair, platform, device, seed, found)
    except Skipped as reason:
        found["skipped"] = str(reason)
    return found


def _nothing() -> dict[str, Any]:
    return {"device": None, "skipped": None, "identical": 0, "close": 0, "differences": []}


def _compare_level(
    level: int, pair: tuple[Loaded, Loaded], platform: str, device: Any, seed: int, found: dict[str, Any]
) -> None:
    arguments, expected = _run_first(_on(pair[0], platform, device.platform), seed + level, device)
    try:
        results = _run(_on(pair[1], platform, device.platform), arguments, device)
    except (ValueError, TypeError) as error:
        found["differences"].append({"level": level, "what": f"does not take the arguments of the original: {error}"})
        return
    if len(results) != len(expected):
        found["differences"].append({"level": level, "what": f"{len(results)} results instead of {len(expected)}"})
        return
    for number, (one, other) in enumerate(zip(expected, results, strict=True)):
        if (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes()):
            found["identical"] += 1
        elif _is_close(one, other):
            found["close"] += 1
        else:
            found["differences"].append({"level": level, "result": number, "what": _described(one, other)})


# ---------------------------------------------------------------- running


def _devices(platform: str) -> Sequence[Any]:
    try:
        return jax.devices("gpu" if platform in ("cuda", "rocm") else platform)
    except RuntimeError:
        return ()


def _device(platform: str, count: int) -> tuple[str, Any]:
    """What runs it, in words, and the first of its devices."""
    devices, name = _devices(platform), platform
    if not devices:
        devices, name = jax.devices("cpu"), f"cpu, as if it were {platform}"
    if len(devices) < count:
        flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
        raise Skipped(f"it is for {count} devices, and there are {len(devices)}: {flag} makes them on cpu")
    return name, devices[0]


def _on(loaded: Loaded, platform: str, device: str) -> Loaded:
    """The export with the name of what runs it where the platform's was."""
    runs = platform if device == "gpu" else device
    exported = loaded.exported
    names = [runs if each == platform else f"not {each}" for each in exported.platforms]
    return Loaded(dataclasses.replace(exported, platforms=tuple(names)))


def _run_first(loaded: Loaded, seed: int, device: Any) -> tuple[list[Any], list[np.ndarray]]:
    """Runs it with random arguments of sizes that it takes. Returns these as well."""
    avals = loaded.exported.in_avals
    variables = sorted({name for aval in avals for size in aval.shape for name in _dimensions.variables(str(size))})
    reason: Exception = Skipped("it has no dimensions")
    for sizes in _candidates(variables):
        arguments = _arguments(avals, sizes, seed)
        try:
            return arguments, _run(loaded, arguments, device)
        except ValueError as error:  # a constraint on dimensions
            if loaded.exported.nr_devices > 1:
                raise Skipped(f"it takes its arguments on a mesh that is not known here: {error}") from error
            if not variables:
                raise
            reason = error
    raise Skipped(f"no sizes of {', '.join(variables)} were found that it takes: {reason}")


def _run(loaded: Loaded, leaves: Sequence[Any], device: Any) -> list[np.ndarray]:
    exported = loaded.exported
    args, kwargs = jax.tree.unflatten(exported.in_tree, _placed(exported, leaves, device))
    try:
        results = jax.tree.leaves(jax.jit(loaded.bind(on_missing="zeros").call)(*args, **kwargs))
    except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
        if "UNIMPLEMENTED" in str(error) or "No registered implementation" in str(error) or "NOT_FOUND" in str(error):
            raise Skipped(f"{device.platform} cannot run it: {str(error).splitlines()[0]}") from error
        raise JaxprismError(f"the program failed: {error}", kind="refused") from error
    is_key = [jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key) for result in results]
    return [np.asarray(jax.random.key_data(each) if key else each) for each, key in zip(results, is_key, strict=True)]


def _placed(exported: jax.export.Exported, leaves: Sequence[Any], device: Any) -> list[Any]:
    """On as many devices as the export is for, by its own shardings or replicated."""
    if exported.nr_devices == 1:
        return [leaf if _is_float0(leaf) else jax.device_put(leaf, device) for leaf in leaves]
    devices = np.array(jax.devices(device.platform)[: exported.nr_devices])
    return [
        jax.device_put(leaf, _sharding(sharding, devices))
        for leaf, sharding in zip(leaves, exported.in_shardings_jax(None), strict=True)
    ]


def _sharding(sharding: Any, devices: np.ndarray) -> NamedSharding:
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return NamedSharding(Mesh(devices, ("all",)), PartitionSpec())
    mesh = Mesh(devices.reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


# ---------------------------------------------------------------- arguments


def _candidates(variables: Sequence[str]) -> Iterator[dict[str, int]]:
    """All alike, then growing, then falling."""
    for size in SIZES if variables else (0,):
        yield dict.fromkeys(variables, size)
    for step, size in itertools.product((1, -1, 2), SIZES if variables else ()):
        yield {name: max(size + step * number, 1) for number, name in enumerate(variables)}


def _arguments(avals: Sequence[Any], sizes: dict[str, int], seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    return [
        _argument(aval.dtype, tuple(_dimensions.size(str(size), sizes) for size in aval.shape), random)
        for aval in avals
    ]


def _argument(dtype: Any, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """Random values; integers are small, so that they can be indices."""
    if dtype == jax.dtypes.float0:
        return np.zeros(shape, dtype)
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        key = jax.random.key(int(random.integers(1 << 30)), impl=str(jax.random.key_impl(jax.random.key(0))))
        return jax.random.split(key, shape)
    if jax.dtypes.issubdtype(dtype, np.bool_):
        return random.integers(0, 2, shape).astype(bool)
    if jax.dtypes.issubdtype(dtype, np.integer):
        return random.integers(0, 4, shape).astype(dtype)
    values = random.standard_normal(shape)
    if jax.dtypes.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def _is_float0(leaf: Any) -> bool:
    return bool(leaf.dtype == jax.dtypes.float0)


# ---------------------------------------------------------------- comparing


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    if (one.shape, one.dtype) != (other.shape, other.dtype) or not jax.dtypes.issubdtype(one.dtype, np.inexact):
        return False
    wide = np.complex128 if jax.dtypes.issubdtype(one.dtype, np.complexfloating) else np.float64
    one, tolerance, other = one.astype(wide), RELATIVE.get(str(one.dtype), RELATIVE_OF_SMALL), other.astype(wide)
    scale = float(np.nanmax(np.abs(one[np.isfinite(one)]), initial=0.0))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _described(one: np.ndarray, other: np.ndarray) -> str:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{other.dtype}{list(other.shape)} instead of {one.dtype}{list(one.shape)}"
    where = np.argwhere(np.atleast_1d(one != other))
    if not len(where):
        return "bits of numbers that are equal"
    at = tuple(int(index) for index in where[0])
    values = np.atleast_1d(other)[at], np.atleast_1d(one)[at]
    return f"{len(where)} of {one.size} numbers; at {list(at)} {values[0]} instead of {values[1]}"


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as one, open(sys.argv[2], "rb") as other:
        print(json.dumps(_compare_here(one.read(), other.read(), sys.argv[3], int(sys.argv[4]))))
