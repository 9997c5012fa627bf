"""What a file says about its callbacks, read back: the other half of `_metadata`, which writes it.

Nothing in here needs JAX, except for building the pytrees that a callback is called with.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jaxprism._errors import CallbackMetadataError

# The target of placeholders. XLA's error for one that nobody bound says this name.
TARGET = "jaxprism_callback"

# The effect that a file lists if its callbacks were lowered; JAX refuses to load it. Never to be registered with JAX.
GUARD = b"<class 'jaxprism.UnboundCallbacks'>"

VERSION = 1
KINDS = ("pure", "io", "buffer", "debug", "print")

Json = Any


@dataclasses.dataclass(frozen=True)
class Array:
    """The type of an operand or result of a callback, as it was traced."""

    dtype: str  # in JAX's words; `key<fry>` stands for the integers of a key
    shape: tuple[str, ...]  # each a number, a variable or an expression of variables


@dataclasses.dataclass(frozen=True)
class Slot:
    """A callback of a file: what is called under which name, and with what. Equal slots are one callback.

    Attributes:
      kind: `pure`, `io`, `buffer`, `debug` or `print`.
      name: what it is bound by. Several slots may have one name, if a function is called in several ways.
      meta: all that the file says about it, as JSON.
    """

    kind: str
    name: str
    meta: str

    @classmethod
    def read(cls, meta: str) -> "Slot":
        """The slot of a placeholder with this metadata. Raises `CallbackMetadataError`."""
        try:
            says = json.loads(meta)
            slot = cls(says["kind"], says["name"], meta)
            version, tokens, _, _ = says["v"], slot.tokens, slot.arguments, slot.results
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CallbackMetadataError(f"the metadata of a callback cannot be read: {meta[:200]}") from error
        if version != VERSION:
            raise CallbackMetadataError(
                f"the callback `{slot.name}` is described in version {version}, and this is version {VERSION}",
                hint="a newer jaxprism reads it",
            )
        if slot.kind not in KINDS or tokens not in (0, 1):
            raise CallbackMetadataError(f"`{slot.name}` is a callback of a kind that is not known, `{slot.kind}`")
        return slot

    @functools.cached_property
    def says(self) -> Mapping[str, Json]:
        """The metadata."""
        return json.loads(self.meta)

    @functools.cached_property
    def arguments(self) -> tuple[Array, ...]:
        """The types of its operands, flat."""
        return _arrays(self.says["args"])

    @functools.cached_property
    def results(self) -> tuple[Array, ...]:
        """The types of its results, flat."""
        return _arrays(self.says["results"])

    @property
    def ordered(self) -> bool:
        """Whether its calls keep their order."""
        return bool(self.says.get("ordered", False))

    @property
    def tokens(self) -> int:
        """How many tokens stand before the other operands and before the other results."""
        return self.says.get("tokens", 0)

    @property
    def partitioned(self) -> bool:
        """Whether it is called for each device with its part."""
        return bool(self.says.get("partitioned", False))

    @property
    def takes_buffers(self) -> bool:
        """Whether its function fills buffers, instead of returning results."""
        return self.kind == "buffer" or self.says.get("as") == "buffer"

    @property
    def aliases(self) -> dict[int, int]:
        """For a buffer callback that became a host callback: the operand that a result starts as, by result."""
        return {result: operand for operand, result in self.says.get("aliases", ())}

    def __str__(self) -> str:
        return f"{self.kind} callback `{self.name}`"


def structure(tree: Json) -> Any:
    """The pytree that the metadata describes, as JAX's `PyTreeDef`. Raises `CallbackMetadataError`."""
    import jax

    return jax.tree_util.tree_structure(_build(tree))


def find(module: bytes) -> list[Slot]:
    """The slots of a module in MLIR bytecode, without reading it: every text in it that is a callback's metadata."""
    texts = (match.group() for match in re.finditer(rb'\{"a(?:rgs|liases)":[^\0]*\}', module))
    return list(dict.fromkeys(slot for text in texts for slot in _read_if_any(text)))


def _read_if_any(text: bytes) -> Iterator[Slot]:
    try:
        yield Slot.read(text.decode())
    except ValueError:
        return


def _arrays(described: Json) -> tuple[Array, ...]:
    return tuple(Array(str(dtype), tuple(map(str, shape))) for dtype, shape in described)


def _build(tree: Json) -> Any:
    match tree:
        case "*":
            return 0
        case None:
            return None
        case {"t": children}:
            return tuple(map(_build, children))
        case {"l": children}:
            return list(map(_build, children))
        case {"d": children, "k": keys}:
            return dict(zip(keys, map(_build, children), strict=True))
        case {"c": children, "n": name, "a": auxiliary}:
            from jaxprism import _seams

            registered = _seams.pytree_deserialization(name)
            if registered is None:
                raise CallbackMetadataError(
                    f"an argument or result of a callback holds a `{name}`, which is not registered in this process",
                    hint="`jax.export.register_pytree_node_serialization` or `register_namedtuple_serialization` does",
                )
            return registered(bytes.fromhex(auxiliary), tuple(map(_build, children)))
    raise CallbackMetadataError(f"the metadata of a callback describes a pytree that is not known: {tree}")
