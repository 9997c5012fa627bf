"""What docs/messages.md explains is what JAX and XLA say, here or in their source; `jaxprism explain` finds it."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export
from jax.experimental.buffer_callback import buffer_callback
from tool import ROOT, Tool

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="messages of older versions differ")

X = np.ones(4, np.float32)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
PAIR = ("cpu", "cuda")


def export_for(function, platforms, **options):
    return export.export(jax.jit(function), platforms=platforms, **options)(X)


def pure(x):
    return jax.pure_callback(lambda a: a, LIKE, x)


def buffer(x):
    return buffer_callback(lambda ctx, out, a: None, LIKE)(x)


def partitioned(x):
    jax.debug.callback(lambda a: None, x, partitioned=True)
    return x


def for_two():
    return export_for(lambda x: jax.lax.platform_dependent(x, cpu=jax.numpy.sin, default=jax.numpy.cos), PAIR)


def loaded():
    return export.deserialize(bytearray(for_two().serialize()))


def without_jax():
    """As a runtime does it that knows nothing of JAX: the module, and the arguments of the function."""
    from jax._src.lib import xla_client

    device = jax.devices()[0]
    devices = xla_client.DeviceList((device,))
    device.client.compile_and_load(for_two().mlir_module(), devices).execute([jax.device_put(X)])


class Own:
    def __init__(self, x):
        self.x = x


def own_container():
    jax.tree_util.register_pytree_node(Own, lambda own: ((own.x,), None), lambda _, children: Own(*children))
    return export.export(jax.jit(lambda own: own.x))(Own(X)).serialize()


def calling_convention():
    with jax._src.config.jax_export_calling_convention_version(3):
        export_for(lambda x: x, ("cpu",))


RAISED = {
    "multi-platform lowering for python_callback": lambda: export_for(pure, PAIR),
    "multi-platform lowering for buffer_callback": lambda: export_for(buffer, PAIR),
    "serialization of host_callbacks is not yet implemented": lambda: export_for(pure, ("cpu",)),
    "`buffer_callback` not supported on {platform} backend.": lambda: export_for(buffer, ("tpu",)),
    "Partitioned callback not implemented on {platform} backend.": lambda: export_for(partitioned, ("tpu",)),
    "Execution supplied {n} arguments but compiled program expected {m}": without_jax,
    "Function '{name}' was exported for platforms '{platforms}' but it is used on '{platform}'.": lambda: export_for(
        lambda x: x, ("cuda", "tpu")
    ).call(X),
    "Cannot serialize code with custom calls whose targets have no compatibility guarantees": lambda: export_for(
        lambda x: jax.ffi.ffi_call("mine", LIKE)(x), ("cpu",)
    ),
    "No FFI handler registered for jaxprism_callback": lambda: jax.jit(jax.ffi.ffi_call("jaxprism_callback", LIKE))(X),
    "No FFI handler registered for {target}": lambda: jax.jit(jax.ffi.ffi_call("mine", LIKE))(X),
    "MLIR translation rule for primitive '{primitive}' not found for platforms {platforms}": lambda: export_for(
        lambda x: jax.lax.platform_dependent(x, cuda=jax.numpy.sin), PAIR
    ),
    "MLIR translation rule for primitive '{primitive}' not found for platform {platform}": lambda: export_for(
        lambda x: jax.lax.platform_dependent(x, cuda=jax.numpy.sin), ("cpu",)
    ),
    "Function to be exported must be the result of `jit` but is: {function}": lambda: export.export(lambda x: x)(X),
    "Shape mismatch for {argument} (expected same constant): expected {shape} and called with {shape}": lambda: (
        loaded().call(np.ones(5, np.float32))
    ),
    "Rank mismatch for {argument}: expected {shape} and called with {shape}": lambda: loaded().call(X[None]),
    "Dtype mismatch for {argument}: expected {dtype} and called with {dtype}": lambda: loaded().call(
        np.ones(4, np.int32)
    ),
    "The invocation args and kwargs must have the same pytree structure as when the function '{name}' was exported": (
        lambda: loaded().call((X, X))
    ),
    "No VJP is available": lambda: loaded().vjp(),
    "serialization of an Exported that does not have vjps of high-enough order": lambda: loaded().serialize(
        vjp_order=1
    ),
    "The requested export calling convention version {version} is outside the range of supported versions": (
        calling_convention
    ),
    "Cannot serialize PyTreeDef containing an unregistered type {type}": own_container,
}

# What it takes to raise them is a bug of one version, devices, or a file of another version.
IN_SOURCE = [
    'can only concatenate list (not "tuple") to list',
    "cannot deserialize effect type {type}",
    "Effect {effect} must have a nullary class constructor that produces an equal effect object.",
    "Effect {effect} must have a nullary constructor to be serializable",
    "In multi-platform lowering either all or no lowering platforms should support donation.",
    "Function {name} was exported for {n} devices and is called in a context with {m} devices, which is not allowed.",
    "Exported being deserialized seems to be older than the 6-month backward-compatibility window and cannot be "
    "deserialized anymore.",
    "Cannot deserialize a PyTreeDef containing an unregistered type {type}",
]
# Python's own, and TensorFlow's (xla_call_module_loader.cc).
NOT_OF_JAX = [
    'can only concatenate list (not "tuple") to list',
    "The current platform {platform} is not among the platforms required by the module: {platforms}",
]


def messages() -> list[str]:
    """The messages of the document that are not ours."""
    found = []
    text = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    for section in re.split(r"\n\n(?=## )", text)[1:]:
        head, body = section.split("\n\n", 1)
        if body.startswith("From JAX") or body.startswith("From XLA"):
            # Two backquotes where the message has some of its own.
            found += [re.sub(r"^## (`` (.*) ``|`(.*)`)$", r"\2\3", heading) for heading in head.splitlines()]
    return found


def explained(tool: Tool, message: str) -> list[str]:
    done = tool.run("explain", message)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n\n")[0].splitlines()


def test_every_message_of_others_is_checked_here():
    assert sorted(messages()) == sorted({*RAISED, *IN_SOURCE, *NOT_OF_JAX})


@pytest.mark.parametrize("message", RAISED)
def test_jax_says_it(message: str, tool: Tool):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - which one it is, is what is tested
        RAISED[message]()
    assert message in explained(tool, f"{raised.type.__name__}: {raised.value}")


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="texts are those of the newest version")
@pytest.mark.parametrize("message", [message for message in IN_SOURCE if message not in NOT_OF_JAX])
def test_it_stands_in_the_source_of_jax(message: str, tool: Tool):
    # Strings that go on in the next line are joined.
    sources = [*Path(jax._src.__file__).parent.glob("export/*.py"), Path(jax._src.interpreters.mlir.__file__)]
    texts = [re.sub(r'["\']\s*\n\s*f?["\']', "", source.read_text(encoding="utf-8")) for source in sources]
    pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"`?\\{[^}]+\\}`?", re.escape(message)))
    assert any(pattern.search(text) for text in texts), message
    assert message in explained(tool, re.sub(r"\{\w+\}", "'x'", message))
