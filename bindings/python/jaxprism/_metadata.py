"""What a placeholder says about its callback: everything that is needed to call the function again, as JSON.

Equal texts are one slot, so the text holds nothing that differs between two calls that one function can serve, and its
keys are sorted. What the operation itself says (aliases, layouts, sharding, side effect) is not repeated.
"""

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxprism import _seams
from jaxprism._errors import CallbackMetadataError
from jaxprism._names import Names

VERSION = 1

Json = Any


def describe(
    kind: str, params: Mapping[str, Any], avals_in: Sequence, avals_out: Sequence, names: Names
) -> dict[str, Json]:
    """The metadata of one callback, from the parameters of JAX's primitive."""
    common = {
        "v": VERSION,
        "args": [_array(aval) for aval in avals_in],
        "results": [_array(aval) for aval in avals_out],
    }
    about = {
        "pure": _pure_or_io,
        "io": _pure_or_io,
        "buffer": _buffer,
        "debug": _debug,
        "print": _print,
    }[kind](kind, params, names)
    about["tokens"] = int(about["ordered"])
    return common | about


def text(metadata: Mapping[str, Json]) -> str:
    """The one way to write the metadata, so that equal slots are equal texts."""
    return json.dumps(metadata, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def tree(structure: Any) -> Json:
    """A pytree: `*` is a leaf; tuples, lists and dicts have their first letter, other nodes `jax.export`'s name."""
    data = structure.node_data()
    if data is None:
        return "*" if structure.num_leaves == 1 else None
    kind, auxiliary = data
    if kind is type(None):
        return None
    children = [tree(child) for child in structure.children()]
    if kind is tuple:
        return {"t": children}
    if kind is list:
        return {"l": children}
    if kind is dict:
        for key in auxiliary:
            if type(key) not in (str, int):
                raise CallbackMetadataError(
                    f"the key {key!r} of an argument of a callback is neither a text nor an integer"
                )
        return {"d": children, "k": list(auxiliary)}
    registered = _seams.pytree_serialization(kind)
    if registered is None:
        raise CallbackMetadataError(
            f"an argument or result of a callback holds a {kind.__module__}.{kind.__qualname__}: register it with "
            "`jax.export.register_pytree_node_serialization` or `jax.export.register_namedtuple_serialization`"
        )
    name, serialize = registered
    return {"c": children, "n": name, "a": serialize(auxiliary).hex()}


def _pure_or_io(kind: str, params: Mapping[str, Any], names: Names) -> dict[str, Json]:
    callback = params["callback"]
    about = _function(kind, callback.callback_func, names) | {
        "in_tree": tree(callback.in_tree),
        "ordered": bool(params.get("ordered", False)),
    }
    if kind == "pure":
        about["vmap_method"] = params["vmap_method"]
    return about


def _buffer(kind: str, params: Mapping[str, Any], names: Names) -> dict[str, Json]:
    return _function(kind, params["callback"], names) | {
        "in_tree": tree(params["in_tree"]),
        "out_tree": tree(params["out_tree"]),
        "ordered": False,
        "cmd_buffer": bool(params["command_buffer_compatible"]),
        "vmap_method": params["vmap_method"],
    }


def _debug(kind: str, params: Mapping[str, Any], names: Names) -> dict[str, Json]:
    seen = _closure(params["callback"])
    common: dict[str, Json] = {
        "ordered": _seams.is_ordered(params["effect"]),
        "partitioned": bool(params["partitioned"]),
    }
    if not {"callback", "in_tree", "static_args"} <= seen.keys():
        # JAX's own tools bind the primitive with functions of flat arguments.
        return _function(kind, params["callback"], names) | common | {"in_tree": None, "static_args": {}}
    common |= {"in_tree": tree(seen["in_tree"]), "static_args": _static(seen["static_args"])}
    printed = _seams.print_arguments(seen["callback"])
    if printed is not None:
        return _printed(printed) | common
    return _function(kind, seen["callback"], names) | common


def _print(kind: str, params: Mapping[str, Any], names: Names) -> dict[str, Json]:
    return _printed(params) | {
        "ordered": bool(params["ordered"]),
        "partitioned": bool(params["partitioned"]),
        "in_tree": tree(params["in_tree"]),
        "static_args": _static(params["static_args"]),
    }


def _printed(params: Mapping[str, Any]) -> dict[str, Json]:
    """What is printed is in the file as a whole: nobody has to bind anything."""
    options = dict(params.get("np_printoptions") or ())
    record = params.get("logging_record")
    about = {
        "kind": "print",
        "name": "jax.debug.print" if record is None else "jax.debug.log",
        "stable": True,
        "fmt": params["fmt"],
        "placeholders": bool(params.get("has_placeholders", True)),
        "np_printoptions": [[key, options[key]] for key in sorted(options) if _is_scalar(options[key])],
    }
    if record is not None:
        about["log"] = {"level": record.levelno, "path": record.pathname, "line": record.lineno}
    return about


def _function(kind: str, function: Any, names: Names) -> dict[str, Json]:
    name = names.name(function)
    return {"kind": kind, "name": name.text, "stable": name.stable, "fn": name.function}


def _closure(function: Any) -> Mapping[str, Any]:
    """What JAX hides in the closure around the user's function: `callback`, `in_tree`, `static_args`."""
    try:
        return inspect.getclosurevars(function).nonlocals
    except TypeError:
        return {}


def _array(aval: Any) -> Json:
    """Dtype and dimensions; a symbolic dimension as JAX writes it."""
    return [str(aval.dtype), [str(size) for size in aval.shape]]


def _static(arguments: Any) -> dict[str, Json]:
    """Arguments that are no arrays, by their position among the leaves."""
    arguments = dict(arguments)
    for position, value in arguments.items():
        if not _is_scalar(value):
            raise CallbackMetadataError(
                f"argument {position} of a debug callback is {value!r}, which is neither an array nor a text, number, "
                "bool or None: give it to the callback when it is bound"
            )
    return {str(position): value for position, value in sorted(arguments.items())}


def _is_scalar(value: Any) -> bool:
    return value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))
