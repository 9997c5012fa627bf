"""What the types of the package say to users; `make lint` has mypy check it, nothing runs it."""

from pathlib import Path
from typing import Any, assert_type

import jaxprism

EXPORT = Path("model.jax_exported")

assert_type(jaxprism.split(EXPORT)["cpu"], bytes)
assert_type(jaxprism.split(b"", platforms=["cpu"], callback={"tpu:log": "stub:zeros"}, out="out/")["cpu"], Path)
assert_type(jaxprism.split(b"", callbacks="call:it", exports={"it": Path("it.jax_exported")}), jaxprism.Outputs[bytes])
assert_type(jaxprism.split("model").report, dict[str, Any])
assert_type(jaxprism.strip(EXPORT, callback={"log": "keep"}), bytes)
assert_type(jaxprism.strip(EXPORT, emit="mlir"), bytes)
assert_type(jaxprism.merge({"cpu": EXPORT, "tpu": b""}, emit="mlirbc", out="model.mlirbc"), Path)
assert_type(jaxprism.retarget(EXPORT, platforms=["cpu"], strip_sdy=True, emit="mlir"), bytes)
assert_type(jaxprism.unlower(EXPORT), bytes)
assert_type(jaxprism.check(EXPORT, targets_allowed=["mine*"]), list[dict[str, Any]])
assert_type(jaxprism.load(EXPORT), jaxprism.Loaded)
assert_type(jaxprism.load(EXPORT).bind({"log": print}, on_missing="skip"), jaxprism.Bound)
assert_type(jaxprism.load(EXPORT).slots[0].arguments[0].shape, tuple[str, ...])
assert_type(jaxprism.JaxprismError("").offset, int | None)

jaxprism.split(EXPORT, None)  # type: ignore[call-overload]
jaxprism.split(3)  # type: ignore[call-overload]
jaxprism.split(EXPORT, emit="text")  # type: ignore[call-overload]
jaxprism.strip(EXPORT, callback=["log"])  # type: ignore[arg-type]


@jaxprism.named("log")
def log(x: float) -> None:
    """A callback keeps its type."""


assert_type(log(1.0), None)
