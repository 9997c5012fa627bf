"""The Python function that XLA calls for a callback: flat arrays in, flat arrays out, and nothing unchecked.

XLA believes what a callback returns: of an array that is too small it reads what lies behind it. So every result is
compared with what the program was compiled for.
"""

import functools
import inspect
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxprism import _dimensions
from jaxprism._errors import CallbackArityError, CallbackResultError
from jaxprism._slots import Slot, structure

# Takes a function of flat arguments and the arguments, and calls it as JAX calls callbacks of some kind.
Run = Callable[[Callable[..., Any], Sequence[Any]], Sequence[Any]]

Function = Callable[..., Any]


class Zeros:
    """Stands for a function that nobody bound: its callback does nothing, and its results are zeros."""

    def __repr__(self) -> str:
        return "zeros"


ZEROS = Zeros()


def flat_function(slot: Slot, function: Function | Zeros | None, run: Run, sizes: Mapping[str, int]) -> Function:
    """The function of flat arrays for a slot, without its token. For a buffer callback it takes a context and buffers.

    Args:
      slot: what is called.
      function: what the user bound to it; for a print nothing is looked at.
      run: how JAX calls functions of this kind.
      sizes: those of the variables of the module, where they are known.
    """
    if slot.kind == "buffer":
        return _of_buffers(slot, function)
    call = _call(slot, function, sizes)
    is_static = all(_dimensions.is_static(result.shape) for result in slot.results)
    static = _shapes(slot, (), {}) if is_static else None

    def flat(*arguments: Any) -> tuple[np.ndarray, ...]:
        # Numbers and objects of other libraries are arrays to JAX as well.
        results = tuple(map(np.asarray, run(call, arguments)))
        return _checked(slot, results, _shapes(slot, arguments, sizes) if static is None else static)

    flat.__name__ = slot.name
    return flat


def run_publicly(call: Function, arguments: Sequence[Any]) -> Sequence[Any]:
    """Calls a function with arrays of JAX on the CPU."""
    cpu = jax.local_devices(backend="cpu")[0]
    with jax.default_device(cpu):
        return jax.tree.map(np.asarray, call(*jax.device_put(arguments, cpu)))


def check_arity(slot: Slot, function: Function) -> None:
    """Refuses a function that cannot be called as the slot says, as far as its signature tells."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    args, kwargs = _arguments(slot)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = "".join(f", `{name}`" for name in kwargs)
        raise CallbackArityError(
            f"`{slot.name}` is called with {_counted(len(args), 'argument')}{names}, which {function!r} does not take: "
            f"{error}"
        ) from None


def with_result_shapes(slot: Slot, shapes: Sequence[tuple[int, ...]]) -> Slot:
    """The same slot, if the shapes of its results are known already."""
    if all(_dimensions.is_static(result.shape) for result in slot.results):
        return slot
    results = [[result.dtype, list(map(str, shape))] for result, shape in zip(slot.results, shapes, strict=True)]
    return Slot(slot.kind, slot.name, json.dumps({**slot.says, "results": results}))


def static_shapes(slot: Slot, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the results, if the sizes of variables are all that is known. Raises `CallbackResultError`."""
    return _shapes(slot, (), sizes)


# ---------------------------------------------------------------- calling


def _call(slot: Slot, function: Any, sizes: Mapping[str, int]) -> Function:
    """The function that takes flat arguments and returns flat results."""
    if slot.kind == "print":
        return _without_results(slot, _printer(slot))
    if isinstance(function, Zeros):
        return lambda *arguments: _empty(slot, arguments, sizes)
    if slot.kind == "debug":
        return _without_results(slot, function)
    tree = structure(slot.says["in_tree"])
    if slot.takes_buffers:
        return _on_arrays(slot, function, tree, sizes)

    def call(*arguments: Any) -> list[Any]:
        args, kwargs = jax.tree.unflatten(tree, arguments)
        return jax.tree.leaves(function(*args, **kwargs))

    return call


def _without_results(slot: Slot, function: Function) -> Function:
    """For `jax.debug`: arguments that are no arrays are in the file, by their position among all."""
    described = slot.says.get("in_tree")
    tree = None if described is None else structure(described)
    static = {int(position): value for position, value in slot.says.get("static_args", {}).items()}

    def call(*arguments: Any) -> tuple[()]:
        if tree is None:
            function(*arguments)
            return ()
        given = iter(arguments)
        count = len(static) + len(arguments)
        leaves = [static[position] if position in static else next(given) for position in range(count)]
        args, kwargs = jax.tree.unflatten(tree, leaves)
        function(*args, **kwargs)
        return ()

    return call


def _of_buffers(slot: Slot, function: Any) -> Function:
    in_tree, out_tree = structure(slot.says["in_tree"]), structure(slot.says["out_tree"])

    def flat(context: Any, *buffers: Any) -> tuple[()]:
        arguments, results = buffers[: in_tree.num_leaves], buffers[in_tree.num_leaves :]
        if isinstance(function, Zeros):
            for result in results:
                _clear(result)
            return ()
        _fill(slot, function, context, (in_tree, arguments), (out_tree, results))
        return ()

    flat.__name__ = slot.name
    return flat


def _on_arrays(slot: Slot, function: Function, in_tree: Any, sizes: Mapping[str, int]) -> Function:
    """A function that fills buffers, where there are none: NumPy's arrays stand for them."""
    out_tree = structure(slot.says["out_tree"])

    def call(*arguments: Any) -> list[np.ndarray]:
        arrays = [np.asarray(argument) for argument in arguments]
        results = _empty(slot, arguments, sizes)
        for result, operand in slot.aliases.items():
            results[result] = arrays[operand].copy()
        _fill(slot, function, None, (in_tree, arrays), (out_tree, results))
        return results

    return call


def _fill(slot: Slot, function: Function, context: Any, inputs: tuple[Any, Any], outputs: tuple[Any, Any]) -> None:
    args, kwargs = jax.tree.unflatten(*inputs)
    if function(context, jax.tree.unflatten(*outputs), *args, **kwargs) is not None:
        raise CallbackResultError(f"{slot}: it has to fill its buffers, and must not return any value")


def _clear(buffer: Any) -> None:
    """Fills a buffer with zeros, which is possible from here if it is on the CPU."""
    try:
        array = np.asarray(buffer)
    except Exception as error:
        raise CallbackResultError(
            "a buffer that is not on the CPU cannot be filled with zeros: bind a function"
        ) from error
    array[...] = 0


def _printer(slot: Slot) -> Function:
    """What `jax.debug.print` and `jax.debug.log` do; the text is in the file."""
    text, log = slot.says["fmt"], slot.says.get("log")
    # Options that this NumPy does not have belong to another one.
    known = inspect.signature(np.set_printoptions).parameters
    options = {name: value for name, value in slot.says.get("np_printoptions", ()) if name in known}

    def show(*args: Any, **kwargs: Any) -> None:
        if slot.says.get("placeholders", True):
            with np.printoptions(**options):
                message = text.format(*args, **kwargs)
        else:
            message = " ".join((text, *map(str, args)))
        if log is None:
            sys.stdout.write(message + "\n")
            return
        logger = logging.getLogger("jax._src.debugging")  # the one that JAX logs to
        logger.handle(logger.makeRecord(logger.name, log["level"], log["path"], log["line"], message, (), None))

    return show


# ---------------------------------------------------------------- checking


def _shapes(slot: Slot, arguments: Sequence[Any], sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the results. What the operands say counts for more than what the module's arguments say."""
    if not all(_dimensions.is_static(result.shape) for result in slot.results):
        known = _dimensions.solve(
            [argument.shape for argument in slot.arguments], [np.shape(argument) for argument in arguments]
        )
        sizes = {**sizes, **known}
    try:
        return [_dimensions.shape(result.shape, sizes) for result in slot.results]
    except _dimensions.UnknownDimension as error:
        raise CallbackResultError(f"{slot}: the size of the dimension `{error}` of a result is not known") from None


def _empty(slot: Slot, arguments: Sequence[Any], sizes: Mapping[str, int]) -> list[np.ndarray]:
    shapes = _shapes(slot, arguments, sizes)
    return [np.zeros(shape, dtype(result.dtype)) for result, shape in zip(slot.results, shapes, strict=True)]


def _checked(slot: Slot, results: tuple[np.ndarray, ...], shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    if len(results) != len(shapes):
        counts = f"{_counted(len(results), 'array')}; the program has {_counted(len(shapes), 'result')} of it"
        raise CallbackResultError(f"{slot} returned {counts}")
    numbers = range(len(results))
    return tuple(_checked_one(slot, *each) for each in zip(numbers, results, slot.results, shapes, strict=True))


def _checked_one(slot: Slot, number: int, result: np.ndarray, expected: Any, shape: tuple[int, ...]) -> np.ndarray:
    wanted = dtype(expected.dtype)
    if result.dtype != wanted and jax.dtypes.canonicalize_dtype(result.dtype) == wanted:
        # As JAX does: 64 bits become 32 unless they are enabled.
        result = result.astype(wanted)
    if result.shape != shape or result.dtype != wanted:
        raise CallbackResultError(
            f"{slot} returned {_described(result.dtype, result.shape)} as result {number}; "
            f"the program has {_described(wanted, shape)}"
        )
    return result


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _described(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


@functools.cache
def dtype(name: str) -> np.dtype:
    """The NumPy type of an array by JAX's name; that of a key is the type of its integers."""
    if name.startswith("key<"):
        return np.dtype(np.uint32)
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def _arguments(slot: Slot) -> tuple[list[Any], dict[str, Any]]:
    """Stand-ins for what the function is called with."""
    described = slot.says.get("in_tree")
    if described is None:
        return [None] * len(slot.arguments), {}
    args, kwargs = described["t"]
    before = [None, None] if slot.takes_buffers else []
    return before + [None] * len(args["t"]), dict.fromkeys(kwargs["k"])
