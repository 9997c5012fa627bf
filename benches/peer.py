"""What one would write without jaxprism: a Python script that splits an export with the MLIR that ships in jaxlib.

    python benches/peer.py IN.jax_exported FOLDER

It edits the versioned operations as they are stored, parses once and clones per platform: the fastest way we know to do this in Python.
It follows the platform index through calls and branches, and knows no more than that: an index in a loop, a nested export with another
order of platforms, a gradient module or an index of 64 bits is beyond it. It is here to be measured, not to be used.
"""

import dataclasses
import io
import os
import re
import sys
import types

os.environ["JAX_PLATFORMS"] = "cpu"

from jax import export
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir

# Without this, every look at an operation of the dialect tries once more to import a module that is not there.
sys.modules["jaxlib.mlir.dialects.vhlo"] = types.ModuleType("jaxlib.mlir.dialects.vhlo")

OPEN, CLOSE = "<([{", ">)]}"


def text_of(attribute):
    """The characters of a string attribute."""
    return re.search(r'"(.*)"', str(attribute))[1]


def elements(text):
    """The parts of a list between its top-level commas. Both dialects write types and attributes so that brackets balance."""
    parts, depth, start, quoted, position = [], 0, 0, False, 0
    while position < len(text):
        here = text[position]
        if quoted:
            position += here == "\\"
            quoted = here != '"'
        elif here == '"':
            quoted = True
        elif text.startswith("->", position):
            position += 1
        elif here in OPEN:
            depth += 1
        elif here in CLOSE:
            depth -= 1
        elif here == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def closing(text, start):
    """Where the bracket closes that opened just before `start`."""
    depth, position = 1, start
    while True:
        if text.startswith("->", position):
            position += 2
            continue
        depth += (text[position] in OPEN) - (text[position] in CLOSE)
        if depth == 0:
            return position
        position += 1


def without_argument(function, number):
    """Takes an argument from a function's type and attributes; the block's argument goes separately."""
    head = "#vhlo.type_v1<!vhlo.func_v1<("
    text = str(function.attributes["function_type"])
    end = closing(text, len(head))
    inputs = elements(text[len(head) : end])
    del inputs[number]
    function.attributes["function_type"] = ir.Attribute.parse(head + ", ".join(inputs) + text[end:])
    if "arg_attrs" in function.attributes:
        inner = elements(str(function.attributes["arg_attrs"])[len("#vhlo.array_v1<[") : -2])
        if inner:
            del inner[number]
            function.attributes["arg_attrs"] = ir.Attribute.parse(f"#vhlo.array_v1<[{', '.join(inner)}]>")


def scalar(value):
    """The number a constant holds, or None."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "vhlo.constant_v1":
        return None
    match = re.match(r"#vhlo.tensor_v1<dense<(-?\d+)> : tensor<u?i\d+>>", str(value.owner.operation.attributes["value"]))
    return int(match[1]) if match else None


def cases_on(value):
    return [use.owner.operation for use in value.uses if use.owner.operation.name == "vhlo.case_v1"]


def take_branch(case, index):
    """Puts the chosen branch in the place of its case. Returns the cases that are decided by it in turn, with their index."""
    last = len(case.regions) - 1
    *body, leave = [one.operation for one in case.regions[index if 0 <= index < last else last].blocks[0].operations]
    for operation in body:
        operation.move_before(case)
    decided = []
    for result, value in zip(case.results, leave.operands, strict=True):
        number = scalar(value)
        if number is not None:
            decided += [(number, next_case) for next_case in cases_on(result)]
        result.replace_all_uses_with(value)
    case.erase()
    return decided


def call_without(call, number):
    """The same call with one operand less."""
    operands = list(call.operands)
    del operands[number]
    with ir.InsertionPoint(call), call.location:
        attributes = {name: call.attributes[name] for name in call.attributes}
        fresh = ir.Operation.create(call.name, [result.type for result in call.results], operands, attributes)
    for old, new in zip(call.results, fresh.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def resolve(module, platform):
    functions = {
        text_of(one.operation.attributes["sym_name"]): one.operation
        for one in module.regions[0].blocks[0].operations
        if one.operation.name == "vhlo.func_v1"
    }
    index_at, waiting = {"main": 0}, ["main"]
    while waiting:
        function = functions[name := waiting.pop()]
        block = function.regions[0].blocks[0]
        argument, decided = block.arguments[index_at[name]], []
        for use in list(argument.uses):
            user, number = use.owner.operation, use.operand_number
            if user.name == "vhlo.case_v1":
                decided.append((platform, user))
            elif user.name == "vhlo.call_v1":
                callee = text_of(user.attributes["callee"])
                if callee not in index_at:
                    index_at[callee] = number
                    waiting.append(callee)
                if index_at[callee] != number:
                    sys.exit(f"peer: {callee} takes the index in two places")
                call_without(user, number)
            else:
                sys.exit(f"peer: {user.name} takes the index")
        while decided:
            index, case = decided.pop()
            decided += take_branch(case, index)
        block.erase_argument(index_at[name])
        without_argument(function, index_at[name])
    drop_unreachable(functions)


def drop_unreachable(functions):
    reached, waiting = set(), ["main"]

    def visit(operation):
        for attribute in ("callee", "called_computations", "decomposition"):
            if attribute in operation.attributes:
                waiting.extend(name for name in re.findall(r'"([^"]*)"', str(operation.attributes[attribute])) if name in functions)
        return ir.WalkResult.ADVANCE

    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            functions[name].walk(visit)
    for name, function in functions.items():
        if name not in reached:
            function.erase()


def main(source, folder):
    data = bytearray(os.path.getsize(source))
    with open(source, "rb") as file:
        file.readinto(data)
    exported = export.deserialize(data)
    symbolic = any(not isinstance(size, int) for aval in (*exported.in_avals, *exported.out_avals) for size in aval.shape)
    with mlir.make_ir_context():
        # Reading any portable artifact makes the dialect known to the context.
        small = ir.Module.parse("module { func.func @main() { return } }")
        _jax.mlir.deserialize_portable_artifact(_jax.mlir.serialize_portable_artifact(small, "1.0.0", True))
        parsed = ir.Module.parse(exported.mlir_module_serialized).operation
        last = len(exported.platforms) - 1
        for number, platform in enumerate(exported.platforms):
            module = parsed if number == last else parsed.clone(False)
            resolve(module, number)
            if not symbolic and "jax.uses_shape_polymorphism" in module.attributes:
                module.attributes["jax.uses_shape_polymorphism"] = ir.Attribute.parse("#vhlo.bool_v1<false>")
            buffer = io.BytesIO()
            module.write_bytecode(buffer)
            one = dataclasses.replace(
                exported, platforms=(platform,), mlir_module_serialized=buffer.getvalue(), uses_global_constants=symbolic
            )
            name = os.path.basename(source).removesuffix(".jax_exported")
            with open(os.path.join(folder, f"{name}.{platform}.jax_exported"), "wb") as file:
                file.write(one.serialize())


if __name__ == "__main__":
    main(*sys.argv[1:3])
