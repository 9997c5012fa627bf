"""Placeholders in a module: finding them, and making of them the operations that JAX itself emits.

On cpu, cuda, rocm and oneapi a placeholder is JAX's operation already, except for its target and its configuration,
which is the number of a function. On tpu a callback is several operations, which JAX's own rule puts in its place.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxprism import _dimensions, _metadata, _seams
from jaxprism._errors import CallbackMetadataError, CallbackPlatformError
from jaxprism._host import dtype, static_shapes
from jaxprism._seams import ir
from jaxprism._slots import TARGET, Array, Slot

LOGGER = logging.getLogger("jaxprism")

GPUS = ("cuda", "rocm", "oneapi")
# What JAX lowers callbacks to.
LOWERED = frozenset(
    target
    for device in ("cpu", "gpu")
    for target in (
        f"xla_ffi_python_{device}_callback",
        f"xla_ffi_partitioned_python_{device}_callback",
        f"xla_buffer_python_{device}_callback",
        f"xla_buffer_python_{device}_callback_cmd_buffer",
    )
)
CONFIG = "mhlo.backend_config"
SHAPE_OPERANDS = "indices_of_shape_operands"

# Makes the function of flat arrays for a slot, given the sizes of dimension variables.
MakeFunction = Callable[[Slot, Mapping[str, int]], Callable[..., Any]]


def find(operations: Iterable[ir.Operation]) -> Iterator[tuple[ir.Operation, Slot]]:
    """The placeholders in operations and inside of these, in the order of the text.

    Raises `CallbackMetadataError`, also for calls of functions by a number that this process did not give them: XLA
    would call any function, or none, and take the process down.
    """
    for op in _walk(operations):
        if op.name == "stablehlo.custom_call":
            target = _text(op.attributes["call_target_name"])
            if target == TARGET:
                yield op, _slot(op)
            elif target in LOWERED:
                raise CallbackMetadataError(
                    f"the module calls a function of the process that exported it: `{target}` at {op.location}",
                    hint="export with `jaxprism.export`, and keep `jaxprism.callback` beside what was lowered",
                )


def bind(
    ctx: Any,
    found: Iterable[tuple[ir.Operation, Slot]],
    sizes: Mapping[str, int],
    make: MakeFunction,
    is_zero: Callable[[Slot], bool],
) -> None:
    """Makes placeholders calls of functions, which `make` makes: one for each slot that is not zeros.

    Functions are numbered in the order of the text. JAX keeps compiled programs by their text, and gives them the
    functions of the process that runs them: so the numbers must not depend on these.

    Raises `CallbackPlatformError`.
    """
    (platform,) = _seams.platforms(ctx)
    numbers: dict[Slot, int] = {}
    for op, slot in found:
        if is_zero(slot):
            _replace_by_zeros(op, slot, sizes)
        elif not _can_call(slot, platform):
            _refuse(op, slot, platform)
        elif platform == "tpu":
            _transfer(ctx, op, slot, sizes, make(slot, sizes))
        else:
            if slot.tokens and SHAPE_OPERANDS in op.attributes:
                op = _with_static_results(op, slot, sizes)
            if slot not in numbers:
                function = make(slot, sizes)
                numbers[slot] = _seams.add_host_callback(ctx, _passing_token(function) if slot.tokens else function)
            op.attributes["call_target_name"] = ir.StringAttr.get(_target(slot, platform))
            index = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), numbers[slot])
            op.attributes[CONFIG] = ir.DictAttr.get({"index": index})


def rename(operations: Iterable[ir.Operation], sizes: Mapping[str, Any]) -> None:
    """Says the shapes in the metadata in the dimensions of the module that a module became part of."""
    if not sizes:
        return
    for op, slot in list(find(operations)):
        says = dict(slot.says)
        for key, arrays in (("args", slot.arguments), ("results", slot.results)):
            says[key] = [[array.dtype, [str(_renamed(text, sizes)) for text in array.shape]] for array in arrays]
        config = ir.DictAttr(op.attributes[CONFIG])
        entries = {named.name: named.attr for named in config}
        op.attributes[CONFIG] = ir.DictAttr.get(entries | {"meta": ir.StringAttr.get(_metadata.text(says))})


# ---------------------------------------------------------------- platforms


def _can_call(slot: Slot, platform: str) -> bool:
    if slot.kind == "buffer":
        return platform in ("cpu", *GPUS)
    if slot.partitioned:
        return platform in ("cpu", *GPUS) and not slot.results
    return platform in ("cpu", "tpu", *GPUS)


def _target(slot: Slot, platform: str) -> str:
    device = "cpu" if platform == "cpu" else "gpu"
    if slot.kind == "buffer":
        recordable = device == "gpu" and slot.says.get("cmd_buffer")
        return f"xla_buffer_python_{device}_callback{'_cmd_buffer' if recordable else ''}"
    return f"xla_ffi{'_partitioned' if slot.partitioned else ''}_python_{device}_callback"


def _refuse(op: ir.Operation, slot: Slot, platform: str) -> None:
    """A branch for other platforms keeps its placeholder: XLA takes the branch away before it looks for targets."""
    kind = f"partitioned {slot}" if slot.partitioned else str(slot)
    if any(around.name == "stablehlo.case" and _is_of_platform(around.operands[0]) for around in _around(op)):
        LOGGER.info(
            "%s cannot be called on %s; it stays as it is, in a branch that the platform decides", kind, platform
        )
        return
    if platform == "tpu":
        policy = "host" if slot.kind == "buffer" else "unpartition"
    else:
        policy = "stub:zeros" if slot.results else "strip"
    raise CallbackPlatformError(
        f"{kind} cannot be called on {platform}",
        hint=f"split the file with `callback={{'{platform}:{slot.name}': '{policy}'}}`",
    )


def _passing_token(function: Callable[..., Any]) -> Callable[..., Any]:
    def with_token(token: Any, *arguments: Any) -> tuple:
        return (token, *function(*arguments))

    with_token.__name__ = function.__name__
    return with_token


# ---------------------------------------------------------------- dynamic shapes


def _with_static_results(op: ir.Operation, slot: Slot, sizes: Mapping[str, int]) -> ir.Operation:
    """The same operation with results of known shapes, converted back to what its users expect.

    StableHLO does not refine the types of an operation that has a token and results of dynamic shapes.
    """
    shape_operands = {int(index) for index in ir.DenseIntElementsAttr(op.attributes[SHAPE_OPERANDS])}
    types = [result.type for result in op.results]
    static = types[: slot.tokens] + [
        ir.RankedTensorType.get(shape, ir.RankedTensorType(of).element_type)
        for shape, of in zip(static_shapes(slot, sizes), types[slot.tokens :], strict=True)
    ]
    attributes = _attributes(op)
    del attributes[SHAPE_OPERANDS]
    layouts = ir.ArrayAttr(attributes["operand_layouts"])
    attributes["operand_layouts"] = ir.ArrayAttr.get(
        [layout for index, layout in enumerate(layouts) if index not in shape_operands]
    )
    operands = [operand for index, operand in enumerate(op.operands) if index not in shape_operands]
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create(op.name, results=static, operands=operands, attributes=attributes)
        for old, result in zip(op.results, new.results, strict=True):
            if result.type != old.type:
                result = ir.Operation.create("stablehlo.convert", results=[old.type], operands=[result]).result
            old.replace_all_uses_with(result)
    op.erase()
    return new


def _replace_by_zeros(op: ir.Operation, slot: Slot, sizes: Mapping[str, int]) -> None:
    results = list(op.results)
    with ir.InsertionPoint(op), op.location:
        if slot.tokens:
            results.pop(0).replace_all_uses_with(op.operands[0])
        for number, (result, array) in enumerate(zip(results, slot.results, strict=True)):
            of = ir.RankedTensorType(result.type)
            # Keys have a dimension more than their metadata says, and never a dynamic one.
            zeros = _seams.zeros(
                of.shape if of.has_static_shape else static_shapes(slot, sizes)[number], dtype(array.dtype)
            )
            if zeros.type != result.type:
                zeros = ir.Operation.create("stablehlo.convert", results=[result.type], operands=[zeros]).result
            result.replace_all_uses_with(zeros)
    op.erase()


def _renamed(text: str, sizes: Mapping[str, Any]) -> Any:
    try:
        return _dimensions.size(text, sizes, _seams.DIMENSION_FUNCTIONS)
    except _dimensions.UnknownDimension:
        return text


# ---------------------------------------------------------------- transfers


def _transfer(ctx: Any, op: ir.Operation, slot: Slot, sizes: Mapping[str, int], function: Callable[..., Any]) -> None:
    """Replaces a placeholder by what JAX emits on tpu: sends to the host and receives from it."""
    values = list(op.operands)[: slot.tokens + len(slot.arguments)]
    token, operands = (values[0], values[1:]) if slot.tokens else (None, values)
    results = list(op.results)
    side_effect = "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value
    with ir.InsertionPoint(op), op.location:
        new, last = _seams.emit_callback(
            ctx,
            function,
            token,
            operands,
            [_type(array, operand, sizes) for array, operand in zip(slot.arguments, operands, strict=True)],
            [
                (shape, dtype(array.dtype))
                for shape, array in zip(static_shapes(slot, sizes), slot.results, strict=True)
            ],
            has_side_effect=side_effect,
            # JAX waits for debug callbacks whether they are ordered or not.
            returns_token=bool(slot.tokens) or slot.kind in ("debug", "print"),
        )
        _share(op, slot, token, last)
        for old, result in zip(results, [*([last] if slot.tokens else []), *new], strict=True):
            if result.type != old.type:
                result = ir.Operation.create("stablehlo.convert", results=[old.type], operands=[result]).result
            old.replace_all_uses_with(result)
    op.erase()


def _type(array: Array, operand: ir.Value, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an operand. The integers of a key have a dimension more than the key."""
    of = ir.RankedTensorType(operand.type)
    known = [None if of.is_dynamic_dim(axis) else of.get_dim_size(axis) for axis in range(of.rank)]
    try:
        shape = [
            _dimensions.size(array.shape[axis], sizes) if known_size is None else known_size
            for axis, known_size in enumerate(known)
        ]
    except _dimensions.UnknownDimension as error:
        raise CallbackMetadataError(f"the size of the dimension `{error}` of an operand is not known") from None
    return tuple(shape), dtype(array.dtype)


def _share(op: ir.Operation, slot: Slot, first: ir.Value | None, last: ir.Value) -> None:
    """Gives the sharding of a placeholder to the operations that stand for it: all those between two tokens.

    The rule for tokens is JAX's: they have the devices of the first result.
    """
    attributes = _attributes(op)
    if "sdy.sharding" in attributes:
        name, shardings = "sdy.sharding", list(_shardings(attributes["sdy.sharding"]))
        # There is one for the token where there are results; a token alone, or nothing, has one as well.
        array = shardings[slot.tokens] if len(shardings) > slot.tokens else shardings[0]
        token = array[: array.index(",")] + ", []>"
        sent, received = (ir.Attribute.parse(_per_value(each)) for each in ([token], [array, token]))
    elif "mhlo.sharding" in attributes:
        name, sent = "mhlo.sharding", attributes["mhlo.sharding"]
        received = sent
    else:
        return
    value = last
    while (first is None or value != first) and value.owner.name in ("stablehlo.send", "stablehlo.recv"):
        new = value.owner
        new.attributes[name] = sent if new.name == "stablehlo.send" else received
        value = new.operands[len(new.operands) - 1]


def _shardings(attribute: ir.Attribute) -> Iterator[str]:
    """The texts of the shardings of several values: `#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, []>]>`."""
    text = str(attribute)
    depth = start = 0
    for index, letter in enumerate(text):
        if letter == "<":
            depth += 1
            start = index if depth == 2 else start
        elif letter == ">":
            if depth == 2:
                yield text[start : index + 1]
            depth -= 1


def _per_value(shardings: Sequence[str]) -> str:
    return f"#sdy.sharding_per_value<[{', '.join(shardings)}]>"


# ---------------------------------------------------------------- reading


def _walk(operations: Iterable[ir.Operation]) -> Iterator[ir.Operation]:
    """Operations and those inside of them, each before what is inside of it."""
    waiting = [iter(operations)]
    while waiting:
        op = next(waiting[-1], None)
        if op is None:
            waiting.pop()
            continue
        op = op.operation
        # What comes after may be replaced by who looks at the operation, what is inside may not.
        yield op
        waiting.extend(
            iter(list(block.operations)) for region in reversed(list(op.regions)) for block in reversed(list(region))
        )


def _around(op: ir.Operation) -> Iterator[ir.Operation]:
    while (op := op.parent) is not None:
        op = op.operation
        yield op


def _is_of_platform(value: ir.Value) -> bool:
    """Whether a value is computed from the number of the platform, which a module for several has as an argument."""
    waiting = [value]
    for _ in range(64):  # JAX needs no more than a few cases for it
        if not waiting:
            break
        value = waiting.pop()
        owner = value.owner
        if isinstance(owner, ir.Block):
            says = owner.owner.attributes
            number = ir.BlockArgument(value).arg_number
            attributes = ir.ArrayAttr(says["arg_attrs"])[number] if "arg_attrs" in says else None
            if attributes is not None and "_platform_index" in str(attributes):
                return True
        else:
            waiting.extend(owner.operands)
    return False


def _slot(op: ir.Operation) -> Slot:
    attributes = _attributes(op)
    try:
        meta = ir.DictAttr(attributes[CONFIG])["meta"]
    except (KeyError, ValueError):
        raise CallbackMetadataError(f"a placeholder at {op.location} has no metadata") from None
    slot = Slot.read(_text(meta))
    shape_operands = len(ir.DenseIntElementsAttr(attributes[SHAPE_OPERANDS])) if SHAPE_OPERANDS in attributes else 0
    operands = slot.tokens + len(slot.arguments)
    results = slot.tokens + len(slot.results)
    if not operands <= len(op.operands) <= operands + shape_operands or len(op.results) != results:
        raise CallbackMetadataError(
            f"{slot} has {len(op.operands)} operands and {len(op.results)} results; "
            f"its metadata says {operands} and {results}: {json.dumps(slot.says)[:200]}"
        )
    return slot


def _text(attribute: ir.Attribute) -> str:
    return ir.StringAttr(attribute).value


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Attributes by name. They are iterated as names since 0.9, before as pairs."""
    names = (item if isinstance(item, str) else item.name for item in op.attributes)
    return {name: op.attributes[name] for name in names}
