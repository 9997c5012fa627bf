"""Every touch of what JAX keeps to itself, for JAX 0.6.2 to 0.12; the rest of the package sees public JAX only.

JAX is not patched: where one of its functions has to see something else than usual, a copy of the function does
(`_seeing`), and the module that other programs use stays as it was. All names below exist in all these versions unless
their comment says otherwise.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import buffer_callback as _buffer
from jax._src import callback as _callback
from jax._src import debugging as _debugging
from jax._src import effects as _effects
from jax._src import ffi as _ffi
from jax._src.export import _export
from jax._src.interpreters import mlir as _mlir
from jax._src.lib.mlir import ir

# The target of placeholders. XLA's error for one that nobody bound says this name.
TARGET = "jaxprism_callback"

Rule = Callable[..., Any]

# ---------------------------------------------------------------- lowering

# 0.7 and later print with a primitive of their own; before, a print is a debug callback of `_format_print_callback`.
_PRINT = getattr(_debugging, "debug_print_p", None)


def primitives() -> dict[str, Any]:
    """JAX's primitives that call Python, by kind."""
    found = {
        "pure": _callback.pure_callback_p,
        "io": _callback.io_callback_p,
        "debug": _debugging.debug_callback_p,
        "buffer": _buffer.buffer_callback_p,
    }
    if _PRINT is not None:
        found["print"] = _PRINT
    return found


def lower_as_placeholder(
    kind: str, ctx: Any, args: Sequence, params: Mapping[str, Any], config: Mapping[str, Any]
) -> Any:
    """Lowers a callback by JAX's own rule, except that the operation calls `TARGET` and is configured with `config`.

    Tokens, shardings, layouts, aliases and shape operands are therefore whatever this JAX gives its own operation.
    """

    def emit(ctx: Any, *args: Any, **options: Any) -> Any:
        # The function also describes shapes to XLA, which is needed on TPU only and fails for symbolic dimensions.
        copy = _seeing(
            _callback.emit_python_callback,
            ffi=_overlay(_ffi, build_ffi_lowering_function=_redirect(_ffi.build_ffi_lowering_function, config)),
            _aval_to_xla_shape=lambda aval: None,
        )
        return copy(_for_one_platform(ctx), *args, **options)

    if kind == "pure":
        rule = _seeing(_callback.pure_callback_lowering, emit_python_callback=emit)
    elif kind == "io":
        rule = _seeing(_callback.io_callback_lowering, emit_python_callback=emit)
    elif kind == "buffer":
        rule = _seeing(
            _buffer._buffer_callback_lowering,
            ffi=_overlay(_ffi, ffi_lowering=_redirect(_ffi.ffi_lowering, config)),
        )
        ctx = _for_one_platform(ctx)
    else:
        rule = _seeing(_debugging.debug_callback_lowering, cb=_overlay(_callback, emit_python_callback=emit))
        if kind == "print":
            rule = _seeing(_debugging.debug_print_lowering_rule, debug_callback_lowering=rule)
    return rule(ctx, *args, **params)


class _OnePlatform:
    """A module context that says what JAX's rules for one platform ask: they refuse several, and want a client.

    Neither makes a difference to the operation: on cpu, cuda, rocm and oneapi it differs in its target only. The
    object stands before the real context, which has slots since 0.10 and whose lists and caches belong to the module.
    """

    def __init__(self, real: Any):
        self.real = real
        self.platforms = ("cpu",)
        self.host_callbacks: list[Any] = []  # instead of those of the module: the operation calls none by number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def get_backend(self, *_: Any, **__: Any) -> None:
        return None

    def add_host_callback(self, callback: Any) -> None:
        self.host_callbacks.append(callback)


def _for_one_platform(ctx: Any) -> Any:
    return ctx.replace(module_context=_OnePlatform(ctx.module_context))


def _redirect(build: Callable[..., Rule], config: Mapping[str, Any]) -> Callable[..., Rule]:
    """`build_ffi_lowering_function` or `ffi_lowering` for our target and configuration, whatever is asked for."""

    def build_placeholder(target: str, **options: Any) -> Rule:
        def lower(ctx: Any, *operands: Any, index: Any) -> Any:
            # Shape arithmetic is lowered, and may be shared, for the platforms of the module.
            ctx = ctx.replace(module_context=ctx.module_context.real)
            attributes = {key: _attribute(value) for key, value in config.items()}
            return build(TARGET, backend_config=attributes, **options)(ctx, *operands)

        return lower

    return build_placeholder


def _attribute(value: int | str) -> ir.Attribute:
    return ir.StringAttr.get(value) if isinstance(value, str) else _mlir.ir_attribute(np.int64(value))


# ---------------------------------------------------------------- export


def export(jitted: Any, rules: Mapping[str, Rule], **options: Any) -> Callable[..., jax.export.Exported]:
    """`jax.export.export` with other lowering rules for the primitives of some kinds.

    The rules are part of the key under which JAX remembers lowered functions, and must be hashable: pairs in a tuple.
    """
    found = primitives()
    overrides = tuple((found[kind], rule) for kind, rule in rules.items())
    return jax.export.export(jitted, _override_lowering_rules=overrides, **options)


def vjp_with(exported: jax.export.Exported, export: Callable[..., Any]) -> Callable[[jax.export.Exported], Any]:
    """The function that exports the gradient, with another `export`: JAX's own forgets the lowering rules."""
    return _seeing(exported._get_vjp, export=export)


def pytree_serialization(kind: type) -> tuple[str, Callable[[Any], bytes]] | None:
    """Name and writer of a pytree node that was registered with `jax.export`."""
    return _export.serialization_registry.get(kind)


# ---------------------------------------------------------------- debugging


def print_arguments(function: Any) -> dict[str, Any] | None:
    """What a function made for `jax.debug.print` prints: a partial of `_format_print_callback`.

    Its arguments are `fmt`, `np_printoptions`, since 0.7 `has_placeholders`, since 0.8 `logging_record`.
    """
    if getattr(function, "func", None) is not _debugging._format_print_callback:
        return None
    names = ("fmt", "np_printoptions", "has_placeholders", "logging_record")
    return dict(zip(names, function.args, strict=False))


# ---------------------------------------------------------------- effects


def is_ordered(effect: Any) -> bool:
    """Whether an effect is kept in order by a token."""
    return _effects.ordered_effects.contains(effect)


_EFFECTS = (
    _callback.IOEffect,
    _callback.OrderedIOEffect,
    _debugging.DebugEffect,
    _debugging.OrderedDebugEffect,
    _buffer.BufferCallbackEffect,
)


def writable_effect(effect: Any) -> Any:
    """An effect of a callback in a form that JAX writes into a file, under the name of its own class.

    JAX writes an effect only if a new object of its class equals it, which none of these does, and writes the text of
    the class. Leaving them out instead would let an outer `jit` drop calls whose results nobody uses.
    """
    return _stand_in(type(effect)) if type(effect) in _EFFECTS else effect


class _Named(type):
    """The type of a class that calls itself by another's name."""

    def __repr__(cls) -> str:
        return cls.written


def _stand_in(effect: type) -> Any:
    body = {
        "written": str(effect),
        "__eq__": lambda self, other: type(self) is type(other),
        "__hash__": lambda self: hash(type(self).written),
    }
    return _Named("StandIn", (_effects.Effect,), body)()


# ---------------------------------------------------------------- copies


def _seeing(function: Any, **names: Any) -> Any:
    """A copy of a function that finds other things under some global names."""
    unknown = names.keys() - function.__globals__.keys()
    if unknown:
        raise RuntimeError(
            f"JAX {jax.__version__} is not known: `{function.__name__}` has no {sorted(unknown)} to replace"
        )
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _overlay(module: Any, **names: Any) -> types.SimpleNamespace:
    """A module in which some names mean something else."""
    return types.SimpleNamespace(**{**vars(module), **names})
