"""JAX exports for several platforms, with the Python callbacks that JAX itself refuses to export."""

from jaxprism._errors import (
    CallbackError,
    CallbackMetadataError,
    CallbackNameError,
    UnstableNameError,
    UnstableNameWarning,
)
from jaxprism._export import bindings, export, serialize
from jaxprism._names import named
from jaxprism._seams import TARGET

__all__ = [
    "TARGET",
    "CallbackError",
    "CallbackMetadataError",
    "CallbackNameError",
    "UnstableNameError",
    "UnstableNameWarning",
    "bindings",
    "export",
    "named",
    "serialize",
]
