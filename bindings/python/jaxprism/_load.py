"""Loads exports with callbacks, and binds Python functions to these by name.

    loaded = jaxprism.load("model.jax_exported")
    model = loaded.bind({"log": log})
    y = model.call(x)

Placeholders become JAX's own operations while JAX lowers the program that calls the export, so the functions are
numbered together with those of the program: `model.call` can stand under `jit`, `grad` and `vmap`, in loops, beside
other exports and other callbacks. A file whose callbacks were lowered is turned back first.
"""

import functools
import logging
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

# Its effect is not known to JAX before, and cannot be read from a file.
import jax.experimental.buffer_callback
import jax.export

from jaxprism import _arguments, _files, _host, _native
from jaxprism._arguments import Source
from jaxprism._errors import JaxprismError, UnboundCallbackError, UnknownCallbackError, UnlowerError
from jaxprism._host import ZEROS, Zeros
from jaxprism._slots import GUARD, Slot, find

LOGGER = logging.getLogger("jaxprism")

Function = Callable[..., Any]

# What to do about callbacks that no function was given for.
OnMissing = str | Callable[[Slot], Function | None]


def load(source: Source) -> "Loaded":
    """Reads an export, with or without callbacks, for one platform or several.

    Args:
      source: the path of a file, or what is in it: what `jaxprism.serialize`, `jax.export` or `jaxprism split` wrote.

    Returns:
      The export. Its callbacks are bound by `Loaded.bind`; before, it cannot be called.

    Raises:
      JaxprismError: the file cannot be read, or is malformed.
      UnlowerError: its callbacks were lowered, and cannot be turned back.
      ValueError: from `jax.export.deserialize`, as for other files.
    """
    data = _arguments.contents(source)
    # JAX and MLIR may do anything with malformed files.
    _native.validate(data)
    if GUARD in data:
        data = _placeholders_again(data)
    exported = jax.export.deserialize(bytearray(data))
    calls = known_calls()
    return Loaded(exported if calls is None else calls.with_own_effects(exported))


class Loaded:
    """An export that was read: what it calls, and the way to bind it.

    Attributes:
      exported: the export itself. To call it is an error of XLA as long as it has callbacks, unless `jaxprism.register`
        was called. Where JAX's internals are known, its effects are JAX's own.
    """

    def __init__(self, exported: jax.export.Exported):
        self.exported = exported
        self._bound: weakref.WeakValueDictionary[tuple, Bound] = weakref.WeakValueDictionary()

    @functools.cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Its callbacks, each once, in the order of the text; not those of its gradient.

        Raises `CallbackMetadataError`.
        """
        calls = known_calls()
        found = find(self.exported.mlir_module_serialized) if calls is None else calls.slots(self.exported)
        return tuple(found)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """What can be bound, in the function and its gradients; prints need nothing."""
        return tuple(
            dict.fromkeys(slot.name for level in self._levels() for slot in level.slots if slot.kind != "print")
        )

    def vjp(self) -> "Loaded":
        """Its gradient: a function of the flat arguments, and of the cotangents of the flat results.

        Raises `ValueError` if the file has none.
        """
        return self._vjp

    def bind(
        self, functions: Mapping[str, Function] = types.MappingProxyType({}), *, on_missing: OnMissing = "error"
    ) -> "Bound":
        """The export with functions for its callbacks.

        Args:
          functions: by name. They are called as the program calls them: with arrays of JAX that are on the CPU, or, for
            buffer callbacks, with a context and buffers. Of what they return the leaves count, whatever holds them.
          on_missing: what to do about names without a function. `"error"`; `"skip"`: nothing is called where there are
            no results, and others are errors; `"zeros"`: results are zeros; or a function that takes the `Slot` and
            returns the function to call, or `None` for an error.

        Returns:
          The same object for the same functions, as long as it is in use.

        Raises:
          UnknownCallbackError: the file has no callback of a name.
          UnboundCallbackError: a name that the function calls is missing. If only gradients call it, they raise it.
          CallbackArityError: a function cannot be called with the arguments of the program.
        """
        if not callable(on_missing) and on_missing not in ("error", "skip", "zeros"):
            raise ValueError(f'`on_missing` is "error", "skip", "zeros" or a function, not {on_missing!r}')
        if not isinstance(functions, Mapping):
            raise TypeError(f"functions are given by name, such as {{'log': log}}, and not as {functions!r}")
        _check_names(functions, self)
        key = (tuple(sorted((name, _identity(each)) for name, each in functions.items())), _identity(on_missing))
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound.setdefault(key, Bound(self, dict(functions), on_missing))
        return bound

    @functools.cached_property
    def _vjp(self) -> "Loaded":
        return Loaded(self.exported.vjp())

    def _levels(self) -> Iterable["Loaded"]:
        level = self
        yield level
        while level.exported.has_vjp():
            level = level.vjp()
            yield level

    def __repr__(self) -> str:
        return f"<jaxprism.Loaded {self.exported.fun_name}, callbacks {list(self.names)}>"


class Bound:
    """An export with functions for its callbacks; made by `Loaded.bind`.

    Two of them are equal if they are one object, and `bind` makes one for the same functions: so JAX does not compile
    again what it has compiled.
    """

    def __init__(self, loaded: Loaded, functions: Mapping[str, Function], on_missing: OnMissing):
        self._loaded = loaded
        self._given = functions
        self._on_missing = on_missing
        self._functions = _choose(loaded.slots, functions, on_missing, loaded.exported.fun_name)

    @property
    def exported(self) -> jax.export.Exported:
        """The export, with placeholders."""
        return self._loaded.exported

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Its callbacks, each once; not those of its gradient."""
        return self._loaded.slots

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function that was exported, as `jax.export.Exported.call` does.

        It can be differentiated as often as the file has gradients. Under `vmap` it is a loop, since that is all that
        can be done with an export; with ordered callbacks it is an error.

        Raises:
          CallbackPlatformError: a callback cannot be called on the platform.
          CallbackContextError: in `vmap`, or where `jax.export.export` exports what calls this.
          ValueError: as JAX does, for arguments of other shapes and types.
          JaxRuntimeError: a function raised an error, or returned something else than the program computes with.
        """
        return self._call(*args, **kwargs)

    def vjp(self) -> "Bound":
        """Its gradient with the same functions: of the flat arguments, and the cotangents of the flat results.

        Raises `UnboundCallbackError`, and `ValueError` if the file has no gradient.
        """
        return self._vjp

    def function(self, slot: Slot) -> Function | Zeros | None:
        """What is called for one of `slots`; prints call nothing of the user's."""
        return self._functions.get(slot)

    @functools.cached_property
    def _call(self) -> Function:
        calls = known_calls()
        if calls is None:
            from jaxprism import _ffi

            return _ffi.stock_call(self.exported, self._levels())
        return calls.function(self)

    @functools.cached_property
    def _vjp(self) -> "Bound":
        return Bound(self._loaded.vjp(), self._given, self._on_missing)

    def _levels(self) -> Iterable[Mapping[Slot, Function | Zeros]]:
        """The functions of all gradients as well, as far as they are bound."""
        yield self._functions
        if self.exported.has_vjp():
            try:
                gradient = self.vjp()
            except UnboundCallbackError:
                return
            yield from gradient._levels()

    def __repr__(self) -> str:
        return f"<jaxprism.Bound {self.exported.fun_name}, functions {list(self._given)}>"


# ---------------------------------------------------------------- names


def _check_names(functions: Mapping[str, Function], loaded: Loaded) -> None:
    unknown = [name for name in functions if name not in loaded.names]
    if unknown:
        prints = {slot.name for level in loaded._levels() for slot in level.slots if slot.kind == "print"}
        raise UnknownCallbackError(
            f"`{loaded.exported.fun_name}` has no callback {_listed(unknown)}; "
            f"it has {_listed(loaded.names) or 'none'}",
            hint="prints need no function"
            if prints.intersection(unknown)
            else "`{name: functions[name] for name in loaded.names}` leaves out what other files need",
        )
    for name, function in functions.items():
        _check_function(name, function)


def _check_function(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"`{name}` is bound to {function!r}, which is no function")


def _choose(
    slots: Sequence[Slot], functions: Mapping[str, Function], on_missing: OnMissing, called: str
) -> dict[Slot, Function | Zeros]:
    """The function of each slot."""
    chosen: dict[Slot, Function | Zeros] = {}
    missing = []
    for slot in slots:
        if slot.kind == "print":
            continue
        if slot.name in functions:
            chosen[slot] = functions[slot.name]
            _host.check_arity(slot, functions[slot.name])
        elif on_missing == "zeros" or (on_missing == "skip" and not slot.results):
            chosen[slot] = ZEROS
        elif callable(on_missing) and (function := on_missing(slot)) is not None:
            _check_function(slot.name, function)
            chosen[slot] = function
            _host.check_arity(slot, function)
        else:
            missing.append(slot)
    if missing:
        names = dict.fromkeys(slot.name for slot in missing)
        kinds = ", ".join(dict.fromkeys(f"`{slot.name}` ({slot.kind})" for slot in missing))
        example = ", ".join(f'"{name}": …' for name in names)
        raise UnboundCallbackError(
            f"`{called}` calls {kinds}, which no function is bound to",
            hint=f"`.bind({{{example}}})`, or `on_missing=` says what to do without",
        )
    return chosen


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _identity(function: Any) -> Any:
    """What makes two functions the same. Methods are made anew each time that they are taken from an object."""
    if isinstance(function, str):
        return function
    if isinstance(function, types.MethodType):
        return id(function.__self__), id(function.__func__)
    return (id(function),)


def _placeholders_again(data: bytes) -> bytes:
    try:
        return _files.unlower(data)
    except JaxprismError as error:
        raise UnlowerError(f"the callbacks of this file were lowered, and cannot be turned back: {error}") from error


# ---------------------------------------------------------------- calling


@functools.cache
def known_calls() -> Any:
    """The module that lowers calls, or none where JAX's internals are not those that it knows."""
    try:
        from jaxprism import _calls
    except (ImportError, AttributeError, TypeError, RuntimeError) as error:
        LOGGER.warning(
            "JAX %s is not known inside (%s): callbacks are bound as `jaxprism.register` does, on cpu and for the "
            "whole process",
            jax.__version__,
            error,
        )
        return None
    return _calls
