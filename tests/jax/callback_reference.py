"""What JAX itself makes of callbacks: lowered for one platform by JAX's own rules, without the platform's hardware.

JAX exports no callbacks and lowers them only for platforms that are there. Both are checks beside the lowering, which
does not look at the hardware: `without_checks` is the one place where they are taken out. Nothing of it is to run.
"""

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jaxprism
from jax import export
from jax._src import buffer_callback as jax_buffer
from jax._src import callback as jax_callback
from jax._src.export import _export
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir

# The targets of JAX's callbacks, as in its sources. TPU has none: it sends to the host and receives from it.
TARGETS = tuple(
    target
    for device in ("cpu", "gpu")
    for target in (
        f"xla_ffi_python_{device}_callback",
        f"xla_ffi_partitioned_python_{device}_callback",
        f"xla_buffer_python_{device}_callback",
        f"xla_buffer_python_{device}_callback_cmd_buffer",
    )
)

# Older rules do not know oneapi.
CUSTOM_CALL_PLATFORMS = tuple(
    platform
    for platform in ("cpu", "cuda", "rocm", "oneapi")
    if all(
        f'"{platform}"' in inspect.getsource(rule)
        for rule in (jax_callback.emit_python_callback, jax_buffer._buffer_callback_lowering)
    )
)


# ---------------------------------------------------------------- lowering


class Client:
    """Stands for the client of a platform that is not here; JAX asks it for the host's end of a transfer only."""

    def make_python_callback_from_host_send_and_recv(self, *arguments: Any) -> tuple:
        return arguments


@contextlib.contextmanager
def without_checks() -> Iterator[None]:
    """Lowers callbacks for platforms that are not here, for symbolic dimensions, and exports the result."""
    with contextlib.ExitStack() as stack:
        for owner, name, instead in (
            (jax_mlir.ModuleContext, "get_backend", lambda *_, **__: Client()),
            # Shapes for the client, which have no symbolic dimensions.
            (jax_callback, "_aval_to_xla_shape", lambda aval: None),
            (_export, "_check_lowering", lambda lowering: None),
        ):
            stack.enter_context(mock.patch.object(owner, name, instead))
        yield


def lower_as_jax(function: Callable, args: tuple, platform: str, *, vjp_order: int = 0) -> list[export.Exported]:
    """The export for one platform that JAX would make if it exported callbacks, and its gradients.

    `function` is jitted. What `jax.export` says about the module is in the `Exported`: its portable artifact, of the
    version that JAX exports, is `mlir_module_serialized`; effects are JAX's own objects.
    """
    checks = [export.DisabledSafetyCheck.custom_call(target) for target in TARGETS]
    with without_checks():
        levels = [export.export(function, platforms=[platform], disabled_checks=checks)(*args)]
        for _ in range(vjp_order):
            levels.append(levels[-1].vjp())
    return levels


def chain(exported: export.Exported, vjp_order: int) -> list[export.Exported]:
    """An export and its gradients."""
    levels = [exported]
    for _ in range(vjp_order):
        levels.append(levels[-1].vjp())
    return levels


# ---------------------------------------------------------------- reading


@dataclasses.dataclass(frozen=True)
class CallbackOp:
    """A callback operation as plain data: what it calls, and everything else."""

    target: str
    config: dict[str, Any]  # mhlo.backend_config
    function: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: dict[str, str]  # all others; meshes are written out

    def shape(self) -> tuple:
        """What a placeholder has in common with the operation that JAX emits."""
        return self.function, self.operands, self.results, self.attributes


def callback_ops(module: export.Exported | str) -> list[CallbackOp]:
    """The callbacks of a module in the order of its text: custom calls, and transfers between host and TPU."""
    text = module if isinstance(module, str) else module.mlir_module()
    with jax_mlir.make_ir_context():
        parsed = ir.Module.parse(text)
        return [read(op, function, meshes(parsed)) for function, op in operations(parsed) if is_callback(op)]


def operations(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """All operations in the order of the text, with the name of the function that they are in."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            name = ir.StringAttr(function.attributes["sym_name"]).value
            for op in inside(function.operation):
                yield name, op


def inside(operation: ir.Operation) -> Iterator[ir.Operation]:
    """The operations in the regions of another one."""
    for region in operation.regions:
        for block in region:
            for op in block.operations:
                yield op.operation
                yield from inside(op.operation)


def is_callback(op: ir.Operation) -> bool:
    """Whether an operation calls Python."""
    if op.name == "stablehlo.custom_call":
        return ir.StringAttr(op.attributes["call_target_name"]).value in (*TARGETS, jaxprism.TARGET)
    return op.name in ("stablehlo.send", "stablehlo.recv")


def read(op: ir.Operation, function: str, named_meshes: dict[str, str]) -> CallbackOp:
    attributes = attributes_of(op)
    target = attributes.pop("call_target_name", None)
    config = attributes.pop("mhlo.backend_config", None)
    return CallbackOp(
        op.name if target is None else ir.StringAttr(target).value,
        {} if config is None else {name: plain(value) for name, value in attributes_of(ir.DictAttr(config)).items()},
        function,
        tuple(str(operand.type) for operand in op.operands),
        tuple(str(result.type) for result in op.results),
        {name: re.sub(r"@[\w.]+", lambda m: named_meshes[m[0]], str(value)) for name, value in attributes.items()},
    )


def attributes_of(owner: ir.Operation | ir.DictAttr) -> dict[str, ir.Attribute]:
    """Attributes by name. An operation's are iterated as names since 0.9, before as pairs; a dictionary's are pairs."""
    items = owner if isinstance(owner, ir.DictAttr) else owner.attributes
    return {name: items[name] for name in (item if isinstance(item, str) else item.name for item in items)}


def plain(attribute: ir.Attribute) -> int | str:
    """A text or a number."""
    try:
        return ir.StringAttr(attribute).value
    except ValueError:
        return ir.IntegerAttr(attribute).value


def meshes(module: ir.Module) -> dict[str, str]:
    """The meshes of a module by their symbol: shardings name them, and symbols are numbered as they come."""
    found = {"@empty_mesh": "@empty_mesh"}
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            found["@" + ir.StringAttr(op.attributes["sym_name"]).value] = str(op.attributes["mesh"])
    return found


def text_without_callees(exported: export.Exported) -> str:
    """The text of a module in which targets and configurations of callbacks are left out."""
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        for _, op in operations(module):
            if op.name == "stablehlo.custom_call" and is_callback(op):
                op.attributes["call_target_name"] = ir.StringAttr.get("callback")
                del op.attributes["mhlo.backend_config"]
        return module.operation.get_asm(enable_debug_info=False)
