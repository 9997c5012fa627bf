"""One program of `callback_programs.py`, its export, and what the program under test makes of it; each made once."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import artifacts
import callback_programs
import jax
import jax.numpy as jnp
import jaxprism
import numpy as np
import pytest
from callback_programs import Program
from callback_reference import CUSTOM_CALL_PLATFORMS, CallbackOp, attributes_of, is_callback, meshes, operations, read
from graph import Graph
from jax import export
from jax._src import effects as jax_effects
from jax._src.export import serialization
from jax._src.interpreters import mlir as jax_mlir
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir
from tool import Tool

Exported = export.Exported

PLATFORMS = (*CUSTOM_CALL_PLATFORMS, "tpu")
GUARD = "<class 'jaxprism.UnboundCallbacks'>"
WRAPPER = "_wrapped_jax_export_main"


# ---------------------------------------------------------------- files


class Case:
    """A program, exported for every platform."""

    def __init__(self, program: Program, tool: Tool, directory: Path):
        self.program = program
        self.tool = tool
        self.directory = directory

    @cached_property
    def path(self) -> Path:
        """The export, with all its gradients."""
        path = self.directory / "model.jax_exported"
        path.write_bytes(jaxprism.serialize(self.program.export(PLATFORMS), vjp_order=self.program.vjp_order))
        return path

    @cached_property
    def original(self) -> list[Exported]:
        """It and its gradients."""
        return levels(load(self.path.read_bytes()))

    def split(self, folder: str, *options: str, platforms: tuple[str, ...] = PLATFORMS) -> dict[str, Path]:
        """The outputs by platform; made once for each folder. The report and the manifest are beside them."""
        out = self.directory / folder
        if not out.exists():
            chosen = [option for platform in platforms for option in ("-p", platform)]
            records = ["--report", f"{out}.report.json", "--manifest", f"{out}.manifest.json"]
            outcome = self.tool.run("split", self.path, "-o", f"{out}/", *chosen, *records, *options)
            assert outcome.returncode == 0, outcome.stderr.decode()
            out.with_suffix(".stderr").write_bytes(outcome.stderr)
        return {platform: out / f"model.{platform}.jax_exported" for platform in platforms}

    def lowered(self) -> dict[str, Path]:
        """Every callback lowered where it can be."""
        return self.split("lowered", "--on-unsupported", "keep")

    def kept(self) -> dict[str, Path]:
        """Every callback left as it is."""
        return self.split("kept", "--callbacks", "keep")

    def record(self, folder: str, what: str) -> dict:
        """The `report` or the `manifest` of a split."""
        return json.loads((self.directory / f"{folder}.{what}.json").read_text())

    @cached_property
    def silent_names(self) -> list[str]:
        """The names of the callbacks that have no results, at any level."""
        self.kept()
        (output, *_) = self.record("kept", "manifest")["outputs"]
        slots = [slot for level in output["levels"] for slot in level["slots"]]
        loud = {slot["name"] for slot in slots if slot["results"]}
        return sorted({slot["name"] for slot in slots} - loud)


def load(data: bytes) -> Exported:
    """Deserializes an export as anyone does; JAX wants a buffer of its own."""
    return export.deserialize(bytearray(data))


def levels(exported: Exported) -> list[Exported]:
    """The export, its vjp, and so on as far as the file goes."""
    found = [exported]
    while found[-1].has_vjp():
        found.append(found[-1].vjp())
    return found


class Guard(jax_effects.Effect):
    """Stands for the effect that JAX refuses."""


def load_guarded(data: bytes) -> list[Exported]:
    """The levels of an export that JAX refuses to read because it holds lowered callbacks. Nothing of it may run."""
    theirs = serialization._deserialize_effect

    def deserialize_effect(effect: Any) -> jax_effects.Effect:
        return Guard() if effect.TypeName().decode() == GUARD else theirs(effect)

    with mock.patch.object(serialization, "_deserialize_effect", deserialize_effect):
        return levels(load(data))


# ---------------------------------------------------------------- what they say


def effects(exported: Exported) -> tuple[list[str], list[str]]:
    """The classes of the effects; the order of unordered ones means nothing. The guard is none of them."""
    ordered, unordered = exported.ordered_effects, exported.unordered_effects
    return [str(type(e)) for e in ordered], sorted(str(type(e)) for e in unordered if not isinstance(e, Guard))


def is_guarded(exported: Exported) -> bool:
    """Whether it lists the effect that makes JAX refuse it."""
    return any(isinstance(effect, Guard) for effect in exported.unordered_effects)


@contextlib.contextmanager
def module_of(exported: Exported) -> Iterator[ir.Module]:
    """The module as JAX reads it from the file, verified."""
    with jax_mlir.make_ir_context():
        module = artifacts.deserialize(exported.mlir_module_serialized)
        assert module.operation.verify()
        yield module


def graph_of(exported: Exported, *, with_targets: bool = True) -> Graph:
    """The module as a graph, perhaps without what tells a lowered callback from the one that JAX emits."""
    with module_of(exported) as module:
        if not with_targets:
            for _, op in operations(module):
                if op.name == "stablehlo.custom_call" and "mhlo.backend_config" in attributes_of(op):
                    del op.attributes["mhlo.backend_config"]
                    if "jaxprism.callback" in attributes_of(op):
                        del op.attributes["jaxprism.callback"]
        return Graph.of(module)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a callback that is a custom call, lowered or not."""

    op: CallbackOp  # as JAX writes it: without what a lowered callback was
    config: str  # `mhlo.backend_config` in full
    was: str | None  # of a lowered one, what the placeholder had there


def calls(exported: Exported, *targets: str) -> list[Call]:
    """The calls of callbacks in the order of the text, and of further targets."""
    found = []
    with module_of(exported) as module:
        for function, op in operations(module):
            if op.name == "stablehlo.custom_call" and (is_callback(op) or target_of(op) in targets):
                attributes = attributes_of(op)
                config, was = str(attributes["mhlo.backend_config"]), attributes.get("jaxprism.callback")
                if was is not None:
                    del op.attributes["jaxprism.callback"]
                found.append(Call(read(op, function, meshes(module)), config, None if was is None else str(was)))
    return found


def target_of(op: ir.Operation) -> str:
    """What a custom call calls."""
    return ir.StringAttr(op.attributes["call_target_name"]).value


def placeholders(path: Path) -> list[dict]:
    """The metadata of the callbacks in the module of a file, lowered or not."""
    (exported, *_) = load_guarded(path.read_bytes())
    found = []
    with module_of(exported) as module:
        for _, op in operations(module):
            if op.name == "stablehlo.custom_call" and is_callback(op):
                attributes = attributes_of(op)
                config = attributes.get("jaxprism.callback", attributes["mhlo.backend_config"])
                found.append(json.loads(ir.StringAttr(ir.DictAttr(config)["meta"]).value))
    return found


def text_order(found: list[Call]) -> list[Call]:
    """The order in which callbacks are numbered: `main` first."""
    return sorted(found, key=lambda call: call.op.function != "main")


def functions_of(exported: Exported) -> list[str]:
    """The names of the functions of a module."""
    return re.findall(r"func\.func (?:\w+ )?@([\w.]+)", exported.mlir_module())


# ---------------------------------------------------------------- running


def cotangent(spec: Any) -> np.ndarray:
    """Numbers for the derivative of a result."""
    size = int(np.prod(spec.shape))
    return (np.arange(1, size + 1).reshape(spec.shape) / 7).astype(spec.dtype)


def anew(function: Callable) -> Callable:
    """The function jitted for the first time: JAX remembers what a function was when it was traced."""
    return jax.jit(lambda *args: function(*args))


def gradient(function: Callable, count: int) -> Callable:
    """The function of `count` arguments and the cotangents of its results that `Exported.vjp` is of an export."""

    def of(*leaves: Any) -> tuple:
        results, pull_back = jax.vjp(function, *leaves[:count])
        return pull_back(jax.tree.unflatten(jax.tree.structure(results), leaves[count:]))

    return of


def run(exported: Exported, leaves: list) -> list:
    """What it computes, on as many devices as it wants."""
    meshes = {2: callback_programs.mesh, 4: callback_programs.mesh_2x2}
    if exported.nr_devices > 1:
        devices = meshes[exported.nr_devices]()
        leaves = [jax.device_put(leaf, NamedSharding(devices, P())) for leaf in leaves]
    args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
    return jax.tree.leaves(jax.jit(exported.call)(*args, **kwargs))


def assert_computes(found: list[Exported], function: Callable, inputs: tuple, where: str) -> None:
    """The export and its gradients compute what the function does."""
    leaves = list(inputs)
    for level, exported in enumerate(found):
        expected = jax.tree.leaves(anew(function)(*leaves))
        outputs = run(exported, leaves)
        assert len(outputs) == len(expected), where
        for a, b in zip(outputs, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), where
            a, b = (np.asarray(x.astype(jnp.float32) if x.dtype == jnp.bfloat16 else x) for x in (a, b))
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=f"{where}, vjp level {level}")
        function, leaves = gradient(function, len(leaves)), leaves + [cotangent(x) for x in expected]


@contextlib.contextmanager
def replaced_by(stub: Callable[[Callable, list, list], list]) -> Iterator[None]:
    """Lets the callbacks of `callback_programs` return what `stub` makes of a function, result types and operands."""

    def results_of(function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        leaves, tree = jax.tree.flatten(types)
        return jax.tree.unflatten(tree, stub(function, leaves, jax.tree.leaves((args, kwargs))))

    def call(function: Callable, types: Any, *args: Any, vmap_method=None, sharding=None, ordered=False, **kwargs):
        return results_of(function, types, args, kwargs)

    def buffer_call(function: Callable, types: Any, **options: Any) -> Callable:
        return lambda *args, **kwargs: results_of(function, types, args, kwargs)

    # JAX remembers what functions were when it traced them.
    jax.clear_caches()
    with (
        mock.patch.object(jax, "pure_callback", call),
        mock.patch.object(callback_programs, "io_callback", call),
        mock.patch.object(callback_programs, "buffer_callback", buffer_call),
    ):
        yield
    jax.clear_caches()


def zeros(function: Callable, types: list, operands: list) -> list:
    """The stub `zeros`."""
    return [jnp.zeros(t.shape, t.dtype) for t in types]


def nan(function: Callable, types: list, operands: list) -> list:
    """The stub `nan`."""
    return [jnp.full(t.shape, jnp.nan, t.dtype) for t in types]


def first_operand(function: Callable, types: list, operands: list) -> list:
    """The stub `operand:0`."""
    return [operands[0] for _ in types]


# ---------------------------------------------------------------- fixtures


def case_of(name: str, tool: Tool, factory: pytest.TempPathFactory) -> Case:
    """A new case of the program of that name."""
    return Case(callback_programs.PROGRAMS[name], tool, factory.mktemp(name))


def cases_of(tool: Tool, factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Cases by name, each made once."""
    made: dict[str, Case] = {}

    def get(name: str) -> Case:
        if name not in made:
            made[name] = case_of(name, tool, factory)
        return made[name]

    return get
