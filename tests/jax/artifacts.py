"""Portable artifacts as JAX reads and writes them, in the current context; and a context for what is inside them.

Before 0.10 jaxlib gives JAX modules as text, which would be written again as other bytes, so StableHLO's own reader is
asked; and takes them as bytecode, without a choice for mixed artifacts before 0.7.
"""

from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

_read, _write = _jax.mlir.deserialize_portable_artifact, _jax.mlir.serialize_portable_artifact
_GIVES_MODULES = "-> str" not in _read.__doc__

# Whether operations of Shardy stay what they are beside those of VHLO.
HOLD_SHARDY = "use_mixed_serialization" in _write.__doc__


def deserialize(artifact: bytes) -> ir.Module:
    """The module of an artifact."""
    artifact = bytes(artifact)
    return _read(artifact) if _GIVES_MODULES else stablehlo.deserialize_portable_artifact(ir.Context.current, artifact)


def serialize(module: ir.Module, version: str) -> bytes:
    """The artifact of a module, without the operations that JAX's writer deletes because nothing uses them."""
    mixed = (True,) if HOLD_SHARDY else ()
    return bytes(_write(module if _GIVES_MODULES else jax_mlir.module_to_bytecode(module), version, *mixed))


def context_with_vhlo() -> ir.Context:
    """A context for modules of VHLO. Before 0.8 JAX's own has VHLO only after an artifact has been read in it."""
    context = jax_mlir.make_ir_context()
    stablehlo.deserialize_portable_artifact(context, stablehlo.serialize_portable_artifact_str("module {}", "1.0.0"))
    return context
