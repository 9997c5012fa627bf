"""JAX exports for several platforms, with the Python callbacks that JAX itself refuses to export.

    exported = jaxprism.export(jax.jit(f), platforms=("cpu", "cuda", "tpu"))(x)        # callbacks are placeholders
    files = jaxprism.split(jaxprism.serialize(exported), callback={"tpu:*": "strip"})  # one export per platform
    y = jaxprism.load(files["cpu"]).bind({"log": log}).call(x)                         # in any process

Importing this imports no JAX; `export`, `serialize`, `bindings`, `load` and `register` do.
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxprism._errors import (
    CallbackArityError,
    CallbackContextError,
    CallbackError,
    CallbackMetadataError,
    CallbackNameError,
    CallbackPlatformError,
    CallbackResultError,
    JaxprismError,
    UnboundCallbackError,
    UnknownCallbackError,
    UnlowerError,
    UnstableNameError,
    UnstableNameWarning,
)
from jaxprism._files import Outputs, callbacks, check, diff, info, merge, retarget, size, split, strip, unlower, verify
from jaxprism._names import named
from jaxprism._native import __version__ as __version__
from jaxprism._slots import TARGET, Array, Slot

if TYPE_CHECKING:
    from jaxprism._export import bindings, export, serialize
    from jaxprism._ffi import register
    from jaxprism._load import Bound, Loaded, load

__all__ = [
    "TARGET",
    "Array",
    "Bound",
    "CallbackArityError",
    "CallbackContextError",
    "CallbackError",
    "CallbackMetadataError",
    "CallbackNameError",
    "CallbackPlatformError",
    "CallbackResultError",
    "JaxprismError",
    "Loaded",
    "Outputs",
    "Slot",
    "UnboundCallbackError",
    "UnknownCallbackError",
    "UnlowerError",
    "UnstableNameError",
    "UnstableNameWarning",
    "bindings",
    "callbacks",
    "check",
    "diff",
    "export",
    "info",
    "load",
    "merge",
    "named",
    "register",
    "retarget",
    "serialize",
    "size",
    "split",
    "strip",
    "unlower",
    "verify",
]

# What imports JAX, by the module it is in.
_LAZY = {
    "Bound": "_load",
    "Loaded": "_load",
    "bindings": "_export",
    "export": "_export",
    "load": "_load",
    "register": "_ffi",
    "serialize": "_export",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
