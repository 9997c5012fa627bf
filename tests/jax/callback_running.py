"""Runs the programs of `callback_programs.py`, and compares what came out, what was heard and what was printed."""

import contextlib
import dataclasses
import io
from collections.abc import Callable
from typing import Any

import jax
import jaxprism
import numpy as np
from callback_programs import HEARD, Program, mesh, mesh_2x2
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


@dataclasses.dataclass
class Outcome:
    """What one run gave."""

    values: Any
    heard: list[tuple]
    printed: str


def run(call: Callable[[], Any]) -> Outcome:
    """Calls something until all its callbacks are done."""
    HEARD.clear()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        values = jax.block_until_ready(call())
        jax.effects_barrier()
    return Outcome(jax.tree.map(np.asarray, values), list(HEARD), printed.getvalue())


def sharding(program: Program) -> NamedSharding | None:
    """Where the arguments of a program for several devices are."""
    if program.devices == 1:
        return None
    return NamedSharding(mesh() if program.devices == 2 else mesh_2x2(), P("i"))


def arguments(program: Program) -> tuple:
    """Concrete ones, on the devices that the program is for."""
    where = sharding(program)
    return tuple(x if where is None else jax.device_put(x, where) for x in program.inputs())


def specs(program: Program) -> tuple:
    """Their types."""
    return tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in program.inputs())


def assert_same(got: Outcome, wanted: Outcome, slots: tuple[jaxprism.Slot, ...]) -> None:
    """Values are the same, and each callback heard the same: in the same order, where there is one."""
    assert jax.tree.structure(got.values) == jax.tree.structure(wanted.values)
    for a, b in zip(jax.tree.leaves(got.values), jax.tree.leaves(wanted.values), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    ordered = {slot.name for slot in slots} - {slot.name for slot in slots if not slot.ordered}
    assert by_name(got.heard, ordered) == by_name(wanted.heard, ordered)
    if "jax.debug.print" in ordered:
        assert got.printed == wanted.printed
    else:
        assert sorted(got.printed) == sorted(wanted.printed)


def by_name(heard: list[tuple], ordered: set[str]) -> dict[str, list]:
    """What each callback heard; JAX gives no order between callbacks of different effects, or without one."""
    found: dict[str, list] = {}
    for name, *what in heard:
        found.setdefault(name, []).append(what)
    places = {"callback_programs.look": "look"}
    keeps = {places.get(name, name) for name in ordered}
    return {name: whats if name in keeps else sorted(whats, key=repr) for name, whats in found.items()}
