"""JAX exports for several platforms, with the Python callbacks that JAX itself refuses to export.

Nothing here imports JAX until something is asked for that needs it.
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
    UnboundCallbackError,
    UnknownCallbackError,
    UnlowerError,
    UnstableNameError,
    UnstableNameWarning,
)
from jaxprism._names import named
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
    "Loaded",
    "Slot",
    "UnboundCallbackError",
    "UnknownCallbackError",
    "UnlowerError",
    "UnstableNameError",
    "UnstableNameWarning",
    "bindings",
    "export",
    "load",
    "named",
    "register",
    "serialize",
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
