"""Calls of exports whose callbacks are bound: what JAX does with them when it traces, maps, lowers and exports them.

A call is a primitive of our own with one parameter, the `Bound`. Importing this module fails where JAX's internals are
not those that `_seams` knows.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from jaxprism import _host, _placeholders, _seams
from jaxprism._errors import CallbackContextError
from jaxprism._slots import Slot

if TYPE_CHECKING:
    from jaxprism._load import Bound

if missing := _seams.missing():
    raise ImportError(f"there is no {', '.join(missing)}")

if _seams.is_untested():
    logging.getLogger("jaxprism").warning(
        "JAX %s is newer than %s, the newest that jaxprism was tested with: loading works as long as its internals are "
        "those that are expected",
        jax.__version__,
        ".".join(map(str, _seams.TESTED)),
    )

with_own_effects = _seams.with_own_effects


def slots(exported: jax.export.Exported) -> list[Slot]:
    """The callbacks of a module, each once, in the order of the text. Raises `CallbackMetadataError`."""
    context, module = _seams.parse(exported)
    with context:
        return list(dict.fromkeys(slot for _, slot in _placeholders.find([module.operation])))


def function(bound: "Bound") -> Callable[..., Any]:
    """The function that calls an export with bound callbacks."""
    return _seams.call_function(
        bound.exported,
        functools.partial(PRIMITIVE.bind, bound=bound),
        # JAX asks the export for its gradient, which is that of `bound.vjp()`.
        lambda _: function(bound.vjp()),
    )


def keep(ctx: Any, *args: Any, exported: jax.export.Exported) -> Sequence:
    """Lowers a call for an export: placeholders stay, and speak of the dimensions of the module they come into."""
    results, operations = _seams.lower_call(ctx, args, exported)
    _placeholders.rename(operations, _seams.dimension_sizes(exported, ctx.avals_in))
    return results


def _lower(ctx: Any, *args: Any, bound: "Bound") -> Sequence:
    """Lowers a call for running it."""
    results, operations = _seams.lower_call(ctx, args, bound.exported)
    found = list(_placeholders.find(operations))
    if not found:
        return results
    if _seams.is_export(ctx) or len(_seams.platforms(ctx)) > 1:
        raise CallbackContextError(
            f"`{bound.exported.fun_name}` has callbacks, which `jax.export` does not export",
            hint="`jaxprism.export` does; they are bound again after loading",
        )

    def make(slot: Slot, sizes: Mapping[str, int]) -> Callable[..., Any]:
        return _host.flat_function(slot, bound.function(slot), _seams.run_as_jax(slot.kind), sizes)

    def is_zero(slot: Slot) -> bool:
        return bound.function(slot) is _host.ZEROS

    _placeholders.bind(ctx, found, _seams.dimension_sizes(bound.exported, ctx.avals_in), make, is_zero)
    return results


def _batch(args: Sequence, dimensions: Sequence, *, bound: "Bound") -> tuple[Sequence, Sequence]:
    """An export is what it is: mapped, it is called in a loop."""
    if bound.exported.ordered_effects:
        raise CallbackContextError(
            f"cannot `vmap` `{bound.exported.fun_name}`: it has callbacks whose order matters",
            hint="`jax.lax.map` calls it for one row after the other",
        )
    is_mapped = [dimension is not None for dimension in dimensions]
    rows = [jnp.moveaxis(arg, axis, 0) for arg, axis in zip(args, dimensions, strict=True) if axis is not None]

    def call(row: Sequence) -> Sequence:
        rest = iter(row)
        flat = (next(rest) if mapped else arg for arg, mapped in zip(args, is_mapped, strict=True))
        return PRIMITIVE.bind(*flat, bound=bound)

    results = jax.lax.map(call, rows)
    return results, [0] * len(results)


PRIMITIVE = _seams.call_primitive(_lower, _batch)
