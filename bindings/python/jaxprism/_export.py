"""Exports JAX functions that call Python, for any platforms, from one process and without their hardware.

JAX refuses to export callbacks: the operation names a function of the running process by its number. Here every
callback becomes a *placeholder*: the operation that JAX itself would emit, in everything but its target, which is
`jaxprism_callback`, and its configuration, which names the callback and says how to call it:

    mhlo.backend_config = {v = 1 : i64, kind = "pure|io|buffer|debug|print", name = "log", meta = "<JSON>"}

The functions themselves stay outside of the file. They are bound by name after loading; until then XLA refuses to
compile the module (`No FFI handler registered for jaxprism_callback`).
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export

from jaxprism import _arguments, _metadata, _seams
from jaxprism._errors import CallbackError, UnstableNameError, UnstableNameWarning
from jaxprism._host import ZEROS
from jaxprism._load import known_calls
from jaxprism._names import Names
from jaxprism._slots import TARGET


def export(
    jitted: Any,
    *,
    platforms: Sequence[str] | None = None,
    strict_names: bool = False,
    **jax_export_options: Any,
) -> Callable[..., jax.export.Exported]:
    """`jax.export.export` for functions with `pure_callback`, `io_callback`, `buffer_callback` and `jax.debug` calls.

    Args:
      jitted: the result of `jax.jit`.
      platforms: any of JAX's platforms, none of which has to be there; default as in `jax.export.export`.
      strict_names: whether a callback without a stable name is an error instead of a warning.
      **jax_export_options: options of `jax.export.export`, such as `disabled_checks`.

    Returns:
      A function that takes arguments or their `jax.ShapeDtypeStruct` and returns a `jax.export.Exported`.
      Write it with `serialize`; `bindings` are the functions that it calls.
    """
    if platforms is not None:
        platforms = _arguments.platforms(platforms)
    return _Exporter(strict_names).export(jitted, platforms=platforms, **jax_export_options)


def serialize(exported: jax.export.Exported, *, vjp_order: int = 0) -> bytes:
    """`Exported.serialize`, also for the effects of callbacks, which JAX does not write; they keep JAX's names."""
    _check_exported(exported)
    return bytes(_writable(exported).serialize(vjp_order=vjp_order))


def bindings(exported: jax.export.Exported) -> dict[str, Callable[..., Any]]:
    """The functions that an export calls, by name, and those of its gradients once they were made or serialized."""
    _check_exported(exported)
    if not isinstance(exported._get_vjp, _Vjp):
        raise CallbackError("`bindings` takes what `jaxprism.export` returned: a file does not hold the functions")
    return dict(exported._get_vjp.exporter.names.functions)


def _check_exported(exported: Any) -> None:
    if not isinstance(exported, jax.export.Exported):
        raise TypeError(f"what `jaxprism.export(…)(…)` returned is expected, and not {exported!r}")


class _Exporter:
    """One export with its gradients: they share names."""

    def __init__(self, strict_names: bool):
        self.strict_names = strict_names
        self.names = Names()
        self.reported = 0

    def export(
        self, jitted: Any, *, disabled_checks: Sequence[Any] = (), **options: Any
    ) -> Callable[..., jax.export.Exported]:
        """As `jax.export.export`, which JAX calls in this form for a gradient as well."""
        allowed = jax.export.DisabledSafetyCheck.custom_call(TARGET)
        checks = [*(check for check in disabled_checks if check != allowed), allowed]

        def do_export(*args: Any, **kwargs: Any) -> jax.export.Exported:
            # New rules each time: JAX does not lower again what it has lowered with the same rules, and no names would
            # be seen.
            rules = {primitive: self._rule(kind) for kind, primitive in _seams.primitives().items()}
            rules |= self._call_rules()
            exported = _seams.export(jitted, rules, disabled_checks=checks, **options)(*args, **kwargs)
            self._report()
            return dataclasses.replace(exported, _get_vjp=_Vjp(self, _seams.vjp_with(exported, self.export)))

        return do_export

    def _rule(self, kind: str) -> Callable[..., Any]:
        def lower(ctx: Any, *args: Any, **params: Any) -> Any:
            metadata = _metadata.describe(kind, params, ctx.avals_in, ctx.avals_out, self.names)
            config = {
                "v": metadata["v"],
                "kind": metadata["kind"],
                "name": metadata["name"],
                "meta": _metadata.text(metadata),
            }
            return _seams.lower_as_placeholder(kind, ctx, args, params, config)

        return lower

    def _call_rules(self) -> dict[Any, Callable[..., Any]]:
        """Rules for calls of exports that have callbacks: these stay placeholders, under the names that they have."""
        calls = known_calls()
        if calls is None:
            return {}

        def lower_bound(ctx: Any, *args: Any, bound: Any) -> Any:
            for slot in bound.slots:
                function = bound.function(slot)
                if function is not None and function is not ZEROS:
                    self.names.adopt(slot.name, function)
            return calls.keep(ctx, *args, exported=bound.exported)

        def lower_stock(ctx: Any, *args: Any, exported: jax.export.Exported) -> Any:
            if isinstance(exported._get_vjp, _Vjp):
                for name, function in bindings(exported).items():
                    self.names.adopt(name, function)
            return calls.keep(ctx, *args, exported=exported)

        return {calls.PRIMITIVE: lower_bound, _seams.stock_call_primitive(): lower_stock}

    def _report(self) -> None:
        """Says each name without a place of its own once."""
        new, self.reported = self.names.unstable[self.reported :], len(self.names.unstable)
        if not new:
            return
        listed = ", ".join(f"`{name}`" for name in new)
        message = (
            f"no stable name for {listed}: lambdas, inner functions, partials and second functions of one name "
            'are named by where they stand; give them names with `@jaxprism.named("…")`'
        )
        if self.strict_names:
            raise UnstableNameError(message)
        warnings.warn(message, UnstableNameWarning, stacklevel=3)


@dataclasses.dataclass(frozen=True, eq=False)
class _Vjp:
    """Makes the gradient of an export. It also carries the exporter, since it goes wherever the export is copied to."""

    exporter: _Exporter
    make: Callable[[jax.export.Exported], jax.export.Exported]

    def __call__(self, exported: jax.export.Exported) -> jax.export.Exported:
        return self.make(exported)


def _writable(exported: jax.export.Exported) -> jax.export.Exported:
    """The export with effects that JAX writes, at every gradient level."""
    make = exported._get_vjp
    return dataclasses.replace(
        exported,
        ordered_effects=tuple(map(_seams.writable_effect, exported.ordered_effects)),
        unordered_effects=tuple(map(_seams.writable_effect, exported.unordered_effects)),
        _get_vjp=None if make is None else lambda _: _writable(make(exported)),
    )
