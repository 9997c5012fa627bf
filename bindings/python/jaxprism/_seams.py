"""Every touch of what JAX keeps to itself, for JAX 0.6.2 to 0.12; the rest of the package sees public JAX only.

JAX is not patched: where one of its functions has to see something else than usual, a copy of the function does
(`_seeing`), and the module that other programs use stays as it was. All names below exist in all these versions unless
their comment says otherwise.
"""

import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.export
import numpy as np
from jax._src import buffer_callback as _buffer
from jax._src import callback as _callback
from jax._src import core as _core
from jax._src import debugging as _debugging
from jax._src import dispatch as _dispatch
from jax._src import effects as _effects
from jax._src import ffi as _ffi
from jax._src import source_info_util as _source_info
from jax._src.export import _export
from jax._src.export import shape_poly as _shape_poly
from jax._src.interpreters import batching as _batching
from jax._src.interpreters import mlir as _mlir
from jax._src.lib.mlir import ir as ir

from jaxprism._slots import TARGET

Rule = Callable[..., Any]

# What JAX says about the source of an operation is where the user's program is, and not here.
if hasattr(_source_info, "register_exclusion"):
    _source_info.register_exclusion(os.path.dirname(__file__) + os.sep)

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


def export(jitted: Any, rules: Mapping[Any, Rule], **options: Any) -> Callable[..., jax.export.Exported]:
    """`jax.export.export` with other lowering rules for some primitives.

    The rules are part of the key under which JAX remembers lowered functions, and must be hashable: pairs in a tuple.
    """
    overrides = tuple(rules.items())
    return jax.export.export(jitted, _override_lowering_rules=overrides, **options)


def vjp_with(exported: jax.export.Exported, export: Callable[..., Any]) -> Callable[[jax.export.Exported], Any]:
    """The function that exports the gradient, with another `export`: JAX's own forgets the lowering rules."""
    return _seeing(exported._get_vjp, export=export)


def pytree_serialization(kind: type) -> tuple[str, Callable[[Any], bytes]] | None:
    """Name and writer of a pytree node that was registered with `jax.export`."""
    return _export.serialization_registry.get(kind)


def pytree_deserialization(name: str) -> Callable[[bytes, Sequence], Any] | None:
    """The maker of nodes of a pytree, of what was written and their children, by its name in `jax.export`."""
    registered = _export.deserialization_registry.get(name)
    if registered is None:
        return None
    _, read, build = registered
    return lambda auxiliary, children: build(read(auxiliary), children)


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

    written: str

    def __repr__(cls) -> str:
        return cls.written


def _stand_in(effect: type) -> Any:
    body = {
        "written": str(effect),
        "__eq__": lambda self, other: type(self) is type(other),
        "__hash__": lambda self: hash(type(self).written),
    }
    return _Named("StandIn", (_effects.Effect,), body)()


def with_own_effects(exported: jax.export.Exported) -> jax.export.Exported:
    """A deserialized export whose effects are JAX's own objects, at every gradient level, which is read once only.

    JAX makes new ones, which equal no others: an outer function would order the callbacks of the export by a token of
    their own, and not by that of its own callbacks.
    """
    own = {type(effect): effect for effect in _OWN_EFFECTS}
    make = exported._get_vjp
    gradient = functools.cache(lambda: with_own_effects(make(exported)))
    return dataclasses.replace(
        exported,
        ordered_effects=tuple(own.get(type(effect), effect) for effect in exported.ordered_effects),
        unordered_effects=tuple(own.get(type(effect), effect) for effect in exported.unordered_effects),
        _get_vjp=None if make is None else lambda _: gradient(),
    )


_OWN_EFFECTS = (
    _callback._IOEffect,
    _callback._OrderedIOEffect,
    _debugging.debug_effect,
    _debugging.ordered_debug_effect,
    _buffer._BufferCallbackEffect,
)


def zeros(shape: Sequence[int], dtype: np.dtype) -> ir.Value:
    """A constant at the insertion point. JAX writes what is broadcast as a scalar."""
    return _mlir.ir_constant(np.broadcast_to(np.zeros((), dtype), tuple(shape)))


# ---------------------------------------------------------------- calling what was loaded

# The newest JAX that all of this was tested with.
TESTED = (0, 12)


# What the functions below take from JAX. Some of it they look up as late as when a program is lowered.
_NEEDED = (
    (_mlir, "ir_constant"),
    (_export, "_call_exported_abstract_eval", "_call_exported_lowering", "call", "call_exported", "call_exported_p"),
    (_mlir, "TokenSet", "make_ir_context", "register_lowering"),
    (_mlir.ModuleContext, "add_host_callback"),
    (_callback, "emit_python_callback", "io_callback_impl", "pure_callback_impl"),
    (_debugging, "debug_callback_impl"),
    (_shape_poly, "ShapeEvaluator", "all_dim_vars", "solve_dim_vars"),
)


def missing() -> list[str]:
    """What this JAX does not have of what calling exports needs: then nothing of it is to be used."""
    return [f"{owner.__name__}.{name}" for owner, *names in _NEEDED for name in names if not hasattr(owner, name)]


def is_untested() -> bool:
    """Whether this JAX is newer than all that were tested."""
    return tuple(map(int, jax.__version__.split(".")[:2])) > TESTED


def parse(exported: jax.export.Exported) -> tuple[ir.Context, ir.Module]:
    """The module of an export, and the context it lives in. Before 0.10 JAX gives it as text only."""
    context = _mlir.make_ir_context()
    with context:
        if "serialized" in inspect.signature(exported.mlir_module).parameters:
            return context, exported.mlir_module(serialized=False)
        return context, ir.Module.parse(exported.mlir_module())


def call_primitive(lower: Rule, batch: Callable[..., Any]) -> Any:
    """A primitive that calls an export, `bound.exported`, and is lowered by `lower(ctx, *args, bound=…)`.

    `batch(args, dimensions, bound=…)` is its rule for `vmap`. JAX's own primitive for exports has none, and is lowered
    without a place where callbacks could be put in.
    """
    primitive = _core.Primitive("jaxprism_call")
    primitive.multiple_results = True
    primitive.def_effectful_abstract_eval(
        lambda *avals, bound: _export._call_exported_abstract_eval(*avals, exported=bound.exported)
    )
    primitive.def_impl(functools.partial(_dispatch.apply_primitive, primitive))
    _batching.primitive_batchers[primitive] = batch
    # Each call has callbacks of its own, so no two calls share a function. Since 0.7; before, nothing was shared.
    shared = "cacheable" in inspect.signature(_mlir.register_lowering).parameters
    _mlir.register_lowering(primitive, lower, **({"cacheable": False} if shared else {}))
    return primitive


def call_function(
    exported: jax.export.Exported, bind: Callable[..., Any], call_gradient: Callable[[jax.export.Exported], Any]
) -> Callable[..., Any]:
    """`exported.call`, with `bind(*flat)` instead of JAX's primitive, and another function for calling the gradient.

    Flattening, errors about arguments and differentiation are therefore those of JAX.
    """
    primitive = types.SimpleNamespace(bind=lambda *flat, exported: bind(*flat))
    return _seeing(_export.call, call_exported_p=primitive, call_exported=call_gradient)(exported)


def stock_call_primitive() -> Any:
    """The primitive of `exported.call`."""
    return _export.call_exported_p


def lower_call(ctx: Any, args: Sequence, exported: jax.export.Exported) -> tuple[Sequence, list[ir.Operation]]:
    """Lowers a call of an export by JAX's own rule: the results, and what came into the module for it."""
    body = ctx.module_context.module.body
    known = {_symbol(op) for op in body.operations}
    results = _export._call_exported_lowering(ctx, *args, exported=exported)
    if ctx.tokens_out is not None:
        # JAX sets a tuple of one token each, and forgets those of other effects. It does no harm to its own primitive,
        # which becomes a function of its own; before 0.7 it does.
        tokens = {
            effect: token[0] if isinstance(token, (tuple, list)) else token for effect, token in ctx.tokens_out.items()
        }
        ctx.tokens_out = ctx.tokens_in.update_tokens(_mlir.TokenSet(tokens))
    return results, [op.operation for op in body.operations if _symbol(op) not in known]


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.operation.attributes["sym_name"]).value


def platforms(ctx: Any) -> Sequence[str]:
    """What a module is lowered for."""
    return ctx.module_context.platforms


def is_export(ctx: Any) -> bool:
    """Whether a module is lowered to be exported."""
    return ctx.module_context.lowering_parameters.for_export


def dimension_sizes(exported: jax.export.Exported, avals: Sequence) -> dict[str, Any]:
    """The sizes of an export's dimension variables for arguments of these types: integers, or symbolic themselves."""
    names = _shape_poly.all_dim_vars(exported.in_avals)
    if not names:
        return {}
    solution, _, synthetic = _shape_poly.solve_dim_vars(exported.in_avals, args_kwargs_tree=exported.in_tree)
    evaluator = _shape_poly.ShapeEvaluator({name: avals[arg].shape[dim] for name, arg, dim in synthetic})
    return {name: evaluator.evaluate(solution[name]) for name in names}


# What a dimension can be computed with, by JAX's names, for sizes that are symbolic themselves.
DIMENSION_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": _core.max_dim,
    "min": _core.min_dim,
}


def add_host_callback(ctx: Any, callback: Callable[..., Any]) -> int:
    """Gives a function to the program that is lowered; it is called by the number."""
    ctx.module_context.add_host_callback(callback)
    return len(ctx.module_context.host_callbacks) - 1


def emit_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: ir.Value | None,
    operands: Sequence[ir.Value],
    types_in: Sequence[tuple[tuple[int, ...], np.dtype]],
    types_out: Sequence[tuple[tuple[int, ...], np.dtype]],
    *,
    has_side_effect: bool,
    returns_token: bool,
) -> tuple[Sequence[ir.Value], ir.Value]:
    """Lowers a callback by JAX's own function, where it has no operation for it: the results and the token.

    It says no shardings; types are shape and dtype.
    """
    avals_in, avals_out = ([_core.ShapedArray(*each) for each in all_types] for all_types in (types_in, types_out))
    options: dict[str, Any] = {"has_side_effect": has_side_effect}
    # Since 0.7; before, a callback without results is not waited for.
    if "returns_token" in inspect.signature(_callback.emit_python_callback).parameters:
        options["returns_token"] = returns_token
    results, token, _ = _callback.emit_python_callback(
        ctx.replace(avals_in=avals_in, avals_out=avals_out),
        callback,
        token,
        list(operands),
        avals_in,
        avals_out,
        **options,
    )
    return results, token


def run_as_jax(kind: str) -> Callable[[Callable[..., Any], Sequence[Any]], Sequence[Any]]:
    """How JAX calls functions of a kind: with arrays on the CPU, and since 0.10 outside of the mesh of the program.

    The implementations take more parameters, other ones in each version, and use none of them.
    """
    by_kind = {"pure": _callback.pure_callback_impl, "io": _callback.io_callback_impl}
    implementation = by_kind.get(kind, _debugging.debug_callback_impl)
    parameters = inspect.signature(implementation).parameters.values()
    unused = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "callback"}
    return lambda function, arguments: implementation(*arguments, callback=function, **unused)


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
