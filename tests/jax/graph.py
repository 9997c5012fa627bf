"""Reads a StableHLO portable artifact through jaxlib and compares two of them as graphs.

This is the judge of the acceptance suite, so it shares nothing with the tool it judges: jaxlib parses, and everything
after that happens on plain Python objects. Two modules are equal if they return the same values and have the same side
effects in the same order, where

- calls are inlined, and symbol names of private functions, locations and the order of pure operations do not matter;
- constants are compared by value, wherever they stand;
- a `case` whose index is a constant, that has one branch, or whose branches agree is what its branch is (JAX leaves
  such cases behind); an index may be the result of integer arithmetic on constants;
- pure operations that nothing uses do not exist, nor do loop-carried values and operands of manual computations that
  nothing depends on. What is pure is what JAX's own writer deletes when it is unused;
- meshes are compared by what they say, not by their symbol.

How it works: `_Reader` copies the MLIR into `RawOperation`s. `_Evaluator` runs the functions symbolically from `main`
and makes one `Node` per operation (pure ones without regions are shared). `_Liveness` finds what the results and the
effects need. `_Numbering` gives equal nodes equal numbers, across both modules. Every step goes through the nodes in
the order in which they were made, so nothing recurses over the length of a program.
"""

import collections
import dataclasses
import hashlib
import re
import sys

import artifacts
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir

# Functions bigger than this, fully inlined, are compared once instead of at every call.
LARGEST_INLINED = 1000

# Operations that JAX's writer keeps although nothing uses their results.
KEPT_WHEN_UNUSED = {
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.composite",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.reduce_scatter",
    "stablehlo.rng",
    "stablehlo.send",
}
PLATFORM_INDEX = 'jax.global_constant = "_platform_index"'


def differences(left: bytes, right: bytes) -> str | None:
    """The first difference between two portable artifacts, in words, or None if they are equal as graphs."""
    return compare(Graph.read(left), Graph.read(right))


def compare(left: "Graph", right: "Graph") -> str | None:
    """The first difference between two graphs, in words, or None if they are equal."""
    for what in ("module attributes", "arguments", "results"):
        first, second = left.signature[what], right.signature[what]
        if first != second:
            return f"{what} differ:\n  left:  {first}\n  right: {second}"
    numbering = _Numbering()
    for graph in (left, right):
        numbering.add(graph)
    for what in ("effects", "results"):
        first = numbering.roots(left, what)
        second = numbering.roots(right, what)
        for position, (a, b) in enumerate(zip(first, second, strict=False)):
            if a != b:
                return f"{what[:-1]} {position} differs:\n" + numbering.explain(a, b)
        if len(first) != len(second):
            extra = (first + second)[min(len(first), len(second)) :][-1]
            return f"{len(first)} {what} left, {len(second)} right; one more is {numbering.describe(extra)}"
    first, second = numbering.annotations(left), numbering.annotations(right)
    if first != second:
        return f"attributes of private functions differ:\n  left:  {first - second}\n  right: {second - first}"
    return None


@dataclasses.dataclass
class RawOperation:
    """An operation as it stands in the file. Values are numbers that are unique in the module."""

    name: str
    attributes: str
    operands: list[int]
    results: list[int]
    types: list[str]
    regions: list["RawRegion"]
    location: str
    constant: int | None = None
    symbols: tuple[str, ...] = ()
    shardings: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    kept: bool = False


@dataclasses.dataclass
class RawRegion:
    """A block with its arguments; the last operation is its terminator."""

    arguments: list[int]
    types: list[str]
    operations: list[RawOperation]


@dataclasses.dataclass
class RawFunction:
    """A function; the attributes of arguments and results are texts, "" for none."""

    name: str
    body: RawRegion
    argument_attributes: list[str]
    result_attributes: list[str]
    result_types: list[str]


class _Reader:
    """Copies a module out of MLIR, so that attributes are printed once and nothing depends on a context."""

    def __init__(self, module: ir.Module):
        self.values: dict[ir.Value, int] = {}
        self.count = 0
        self.meshes: dict[str, str] = {}
        self.functions: dict[str, RawFunction] = {}
        tops = [operation.operation for operation in module.body.operations]
        for top in tops:
            if top.name == "sdy.mesh":
                content = {name: str(top.attributes[name]) for name in _names(top) if name != "sym_name"}
                self.meshes[ir.StringAttr(top.attributes["sym_name"]).value] = repr(sorted(content.items()))
        for top in tops:
            if top.name == "func.func":
                function = self.function(top)
                self.functions[function.name] = function
            elif top.name != "sdy.mesh":
                raise ValueError(f"unexpected operation {top.name} in the module")
        self.attributes = {
            name: str(module.operation.attributes[name])
            for name in _names(module.operation)
            # The name of the module is a symbol; whether shapes are symbolic is for the caller to judge.
            if name not in ("sym_name", "jax.uses_shape_polymorphism")
        }

    def function(self, operation: ir.Operation) -> RawFunction:
        kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        return RawFunction(
            name=ir.StringAttr(operation.attributes["sym_name"]).value,
            body=self.region(operation.regions[0]),
            argument_attributes=self.dictionaries(operation, "arg_attrs", len(kind.inputs)),
            result_attributes=self.dictionaries(operation, "res_attrs", len(kind.results)),
            result_types=[str(t) for t in kind.results],
        )

    def dictionaries(self, operation: ir.Operation, name: str, count: int) -> list[str]:
        if name not in operation.attributes:
            return [""] * count
        texts = [self.text(attribute) for attribute in ir.ArrayAttr(operation.attributes[name])]
        return ["" if text == "{}" else text for text in texts]

    def region(self, region: ir.Region) -> RawRegion:
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise ValueError(f"a region of {len(blocks)} blocks")
        arguments = list(blocks[0].arguments)
        numbers = [self.number(argument) for argument in arguments]
        operations = [self.operation(operation.operation) for operation in blocks[0].operations]
        return RawRegion(numbers, [str(argument.type) for argument in arguments], operations)

    def number(self, value: ir.Value) -> int:
        self.values[value] = self.count
        self.count += 1
        return self.values[value]

    def operation(self, operation: ir.Operation) -> RawOperation:
        if operation.name == "stablehlo.constant":
            return self.constant(operation)
        attributes = {name: operation.attributes[name] for name in _names(operation)}
        symbols: list[str] = []
        for name in ("callee", "decomposition"):
            if name in attributes:
                symbols.append(ir.FlatSymbolRefAttr(attributes.pop(name)).value)
        if "called_computations" in attributes:
            called = ir.ArrayAttr(attributes.pop("called_computations"))
            symbols += [ir.FlatSymbolRefAttr(symbol).value for symbol in called]
        shardings = None
        if operation.name == "sdy.manual_computation":
            shardings = tuple(self.shardings(attributes.pop(name)) for name in ("in_shardings", "out_shardings"))
        raw = RawOperation(
            name=operation.name,
            attributes="",
            operands=[self.values[operand] for operand in operation.operands],
            results=[],
            types=[str(result.type) for result in operation.results],
            regions=[self.region(region) for region in operation.regions],
            location=str(operation.location),
            symbols=tuple(symbols),
            shardings=shardings,
        )
        raw.results = [self.number(result) for result in operation.results]
        texts = {name: self.text(attribute) for name, attribute in attributes.items()}
        raw.attributes = ", ".join(f"{name} = {_shorten(texts[name])}" for name in sorted(texts))
        raw.kept = raw.name in KEPT_WHEN_UNUSED or texts.get("has_side_effect") == "true"
        return raw

    def constant(self, operation: ir.Operation) -> RawOperation:
        """A constant by its text: jaxlib's Python has no class for some elements, complex ones for instance."""
        text = operation.get_asm(use_local_scope=True).split("stablehlo.constant ", 1)[1]
        kind, location = str(operation.results[0].type), str(operation.location)
        raw = RawOperation(operation.name, _shorten(text), [], [], [kind], [], location, _splat_integer(text))
        raw.results = [self.number(operation.results[0])]
        return raw

    def shardings(self, attribute: ir.Attribute) -> tuple[str, ...]:
        """One text per value of `#sdy.sharding_per_value<[<@mesh, …>, …]>`."""
        inner = re.fullmatch(r"#sdy\.sharding_per_value<\[(.*)\]>", self.text(attribute), re.DOTALL)
        if inner is None:
            raise ValueError(f"unexpected shardings {attribute}")
        return tuple(_split(inner.group(1)))

    def text(self, attribute: ir.Attribute) -> str:
        """An attribute as text, with the content of meshes in place of their symbols."""
        text = str(attribute)
        if "@" in text and self.meshes:
            return re.sub(r'@("[^"]*"|[\w.$-]+)', lambda m: self.meshes.get(m.group(1).strip('"'), m.group(0)), text)
        return text


def _names(operation: ir.Operation) -> list[str]:
    """Names of the attributes; iterating over them gives names or named attributes, depending on the version."""
    return sorted(getattr(entry, "name", entry) for entry in operation.attributes)


def _shorten(text: str) -> str:
    """Large constants by their digest: the same text has the same one."""
    return text if len(text) < 400 else f"{text[:40]}… sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _splat_integer(text: str) -> int | None:
    """The value of an integer or boolean constant whose elements are all the same."""
    match = re.fullmatch(r"dense<(-?\d+|true|false)> : tensor<(?:[\d?]+x)*(?:ui|i)(\d+)>", text)
    if match is None:
        return None
    if match.group(1) in ("true", "false"):
        return int(match.group(1) == "true")
    return int(match.group(1))


def _split(text: str) -> list[str]:
    """Splits at the commas that stand outside of all brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<[({":
            depth += 1
        elif character in ">])}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []


class Node:
    """An operation, or an argument of a region, that symbolic execution met."""

    __slots__ = ("always", "attributes", "depth", "effect", "flows", "kind", "location", "name", "operands")
    __slots__ += ("order", "position", "raw", "regions", "types")

    def __init__(self, order: int, kind: str, name: str, types: list[str]):
        self.order = order
        self.kind = kind  # "parameter", "plain", "case", "while", "manual" or "apply"
        self.name = name
        self.types = types
        self.attributes = ""
        self.location = ""
        self.operands: list[Value] = []
        self.regions: list[Region] = []
        self.always: list[Value] = []  # what it needs whichever of its results are used
        self.flows: dict[int, list[Value]] = {}  # what it needs for one result (for a parameter: 0)
        self.effect: int | None = None  # how many effects of its region come before it
        self.depth = 0
        self.position: tuple = ()  # of a parameter: which region of its operation and which argument
        self.raw: RawOperation | None = None


Value = tuple[Node, int]


@dataclasses.dataclass(eq=False)
class Region:
    """What a region does: its parameters, its side effects in order, and the values it ends with."""

    parameters: list[Node]
    effects: list[Node]
    terminator: str
    returns: list[Value]


@dataclasses.dataclass
class Outcome:
    """What a function does on given arguments."""

    returns: list[Value]
    operations: int
    pure: bool


@dataclasses.dataclass
class Decided:
    """A `case` that has several branches but whose choice is a constant."""

    branches: int
    computed: bool  # by arithmetic, as a user's own switch does it, or a constant as it stands
    location: str


class _Evaluator:
    """Runs a module symbolically."""

    def __init__(self, functions: dict[str, RawFunction]):
        self.functions = functions
        self.nodes: list[Node] = []
        self.shared: dict[tuple, Node] = {}
        self.outcomes: dict[tuple, Outcome] = {}
        self.summaries: dict[tuple, tuple[Region, Outcome, int]] = {}
        self.folded: dict[Value, int | None] = {}
        self.annotations: list[tuple[str, Value]] = []
        self.decided: dict[int, Decided] = {}
        self.undecided: dict[int, RawOperation] = {}
        self.computed: set[Value] = set()
        self.platform: set[Value] = set()  # the index of the platform that a module is read for
        self.operations = 0

    def node(self, kind: str, name: str, types: list[str]) -> Node:
        node = Node(len(self.nodes), kind, name, types)
        self.nodes.append(node)
        return node

    def parameters(self, types: list[str], depth: int, region: int) -> list[Node]:
        nodes = []
        for index, kind in enumerate(types):
            node = self.node("parameter", f"argument {index}", [kind])
            node.depth, node.position = depth, (region, index)
            nodes.append(node)
        return nodes

    # ---- functions

    def call(self, raw: RawOperation, arguments: list[Value], effects: list[Node], depth: int) -> list[Value]:
        function = self.functions[raw.symbols[0]]
        for text, value in zip(function.argument_attributes, arguments, strict=True):
            self.annotate(text, value)
        key = (function.name, depth, tuple((node.order, index) for node, index in arguments))
        outcome = self.outcomes.get(key)
        if outcome is None:
            region, summary, size = self.summary(function, arguments)
            if summary.pure and size > LARGEST_INLINED:
                outcome = Outcome(self.apply(function, region, arguments), summary.operations, True)
            else:
                outcome = self.body(function, arguments, effects, depth)
            if outcome.pure:
                self.outcomes[key] = outcome
        self.operations += outcome.operations
        for text, value in zip(function.result_attributes, outcome.returns, strict=True):
            self.annotate(text, value)
        return outcome.returns

    def annotate(self, text: str, value: Value) -> None:
        """Remembers the attributes of an argument or a result of a private function: they must fit the value."""
        if text and PLATFORM_INDEX not in text:
            self.annotations.append((text, value))

    def body(self, function: RawFunction, arguments: list[Value], effects: list[Node], depth: int) -> Outcome:
        before, self.operations, count = self.operations, 0, len(effects)
        environment = dict(zip(function.body.arguments, arguments, strict=True))
        _, returns = self.block(function.body, environment, effects, depth)
        outcome = Outcome(returns, self.operations, len(effects) == count)
        self.operations = before
        return outcome

    def summary(self, function: RawFunction, arguments: list[Value]) -> tuple[Region, Outcome, int]:
        """The function on formal arguments, with the integers among the actual ones that are known."""
        known = tuple(self.fold(value) for value in arguments)
        key = (function.name, known)
        if key not in self.summaries:
            formals = [(node, 0) for node in self.parameters(function.body.types, -1, 0)]
            for formal, argument in zip(formals, arguments, strict=True):
                self.assume(formal, argument)
            effects: list[Node] = []
            annotations = len(self.annotations)
            outcome = self.body(function, formals, effects, 0)
            del self.annotations[annotations:]
            region = Region([node for node, _ in formals], effects, "func.return", outcome.returns)
            self.summaries[key] = (region, outcome, len(_Liveness().run(outcome.returns, effects).nodes))
        return self.summaries[key]

    def apply(self, function: RawFunction, region: Region, arguments: list[Value]) -> list[Value]:
        """A call that is not inlined, because the function is large."""
        node = self.node("apply", "call", function.result_types)
        node.operands, node.regions = arguments, [region]
        node.flows = {index: [value] for index, value in enumerate(region.returns)}
        for parameter, argument in zip(region.parameters, arguments, strict=True):
            parameter.flows.setdefault(0, []).append(argument)
        return [(node, index) for index in range(len(node.types))]

    # ---- blocks and operations

    def block(self, region: RawRegion, environment: dict, effects: list[Node], depth: int) -> tuple[str, list[Value]]:
        """Runs a block and returns its terminator with the values it ends with."""
        for raw in region.operations[:-1]:
            operands = [environment[number] for number in raw.operands]
            if raw.name != "stablehlo.constant":
                self.operations += 1
            if raw.name == "func.call" and not raw.attributes:
                self.operations -= 1
                values = self.call(raw, operands, effects, depth)
            elif raw.name == "stablehlo.case":
                values = self.case(raw, operands, environment, effects, depth)
            elif raw.name == "stablehlo.select" and self.fold(operands[0]) is not None:
                values = [operands[1] if self.fold(operands[0]) else operands[2]]
            elif raw.regions or raw.symbols:
                values = self.with_regions(raw, operands, environment, effects, depth)
            else:
                values = self.plain(raw, operands, effects, depth)
            environment.update(zip(raw.results, values, strict=True))
        last = region.operations[-1]
        return f"{last.name} {last.attributes}", [environment[number] for number in last.operands]

    def plain(self, raw: RawOperation, operands: list[Value], effects: list[Node], depth: int) -> list[Value]:
        key = (raw.name, raw.attributes, tuple(raw.types), tuple((node.order, index) for node, index in operands))
        node = None if raw.kept else self.shared.get(key)
        if node is None:
            node = self.make("plain", raw, operands, depth)
            node.always = operands
            if raw.kept:
                self.effect(node, effects)
            else:
                self.shared[key] = node
        return [(node, index) for index in range(len(raw.types))]

    def make(self, kind: str, raw: RawOperation, operands: list[Value], depth: int) -> Node:
        node = self.node(kind, raw.name, raw.types)
        node.attributes, node.location, node.operands = raw.attributes, raw.location, operands
        node.depth, node.raw = depth, raw
        return node

    @staticmethod
    def effect(node: Node, effects: list[Node]) -> None:
        node.effect = len(effects)
        effects.append(node)

    def case(
        self, raw: RawOperation, operands: list[Value], environment: dict, effects: list, depth: int
    ) -> list[Value]:
        index = self.fold(operands[0])
        if len(raw.regions) == 1:
            index = 0
        if index is not None:
            # StableHLO: an index outside the range selects the last branch.
            choice = index if 0 <= index < len(raw.regions) else len(raw.regions) - 1
            if len(raw.regions) > 1:
                self.decided[id(raw)] = Decided(len(raw.regions), operands[0] in self.computed, raw.location)
            self.operations -= 1
            return self.block(raw.regions[choice], environment, effects, depth)[1]
        before = self.operations
        regions = [self.region(region, [], environment, depth + 1) for region in raw.regions]
        node = self.region_node("case", raw, operands, regions, effects, depth)
        node.always = operands
        node.flows = {j: [region.returns[j] for region in regions] for j in range(len(raw.types))}
        values = []
        for j in range(len(raw.types)):
            choices = node.flows[j]
            agree = node.effect is None and all(choice == choices[0] for choice in choices)
            values.append(choices[0] if agree else (node, j))
        if values and all(value[0] is not node for value in values):
            self.operations = before - 1
        else:
            self.undecided[id(raw)] = raw
        return values

    def region(self, raw: RawRegion, parameters: list[Value], environment: dict, depth: int) -> Region:
        inner: list[Node] = []
        environment.update(zip(raw.arguments, parameters, strict=True))
        terminator, returns = self.block(raw, environment, inner, depth)
        return Region([node for node, _ in parameters], inner, terminator, returns)

    def region_node(
        self, kind: str, raw: RawOperation, operands: list[Value], regions: list[Region], effects: list, depth: int
    ) -> Node:
        node = self.make(kind, raw, operands, depth)
        node.regions = regions
        if raw.kept or any(region.effects for region in regions):
            self.effect(node, effects)
        return node

    def with_regions(
        self, raw: RawOperation, operands: list[Value], environment: dict, effects: list, depth: int
    ) -> list[Value]:
        if raw.name == "stablehlo.while":
            return self.loop(raw, operands, environment, effects, depth)
        bodies = raw.regions or [self.functions[symbol].body for symbol in raw.symbols]
        regions = []
        for position, body in enumerate(bodies):
            parameters = [(node, 0) for node in self.parameters(body.types, depth + 1, position)]
            if raw.name in ("sdy.manual_computation", "stablehlo.composite", "func.call"):
                for parameter, operand in zip(parameters, operands, strict=True):
                    self.assume(parameter, operand)
            regions.append(self.region(body, parameters, environment, depth + 1))
        if raw.name == "sdy.manual_computation":
            node = self.region_node("manual", raw, operands, regions, effects, depth)
            node.flows = {index: [value] for index, value in enumerate(regions[0].returns)}
            for parameter, operand in zip(regions[0].parameters, operands, strict=True):
                parameter.flows = {0: [operand]}
            for index, value in enumerate(regions[0].returns):
                self.assume((node, index), value)
        else:
            if raw.name == "stablehlo.composite":
                own = [i for i, operand in enumerate(operands) if operand not in self.platform]
                operands = [operands[i] for i in own]
                regions[0].parameters = [regions[0].parameters[i] for i in own]
                for place, parameter in enumerate(regions[0].parameters):
                    parameter.position = (0, place)
            node = self.region_node("plain", raw, operands, regions, effects, depth)
            node.always = operands + [value for region in regions for value in region.returns]
        return [(node, index) for index in range(len(raw.types))]

    def loop(
        self, raw: RawOperation, operands: list[Value], environment: dict, effects: list, depth: int
    ) -> list[Value]:
        """A while loop. What it carries around unchanged and is a known integer is known inside and after it."""
        condition, body = raw.regions
        ends = body.operations[-1].operands
        nodes = [self.parameters(region.types, depth + 1, n) for n, region in enumerate((condition, body))]
        unchanged = [i for i in range(len(operands)) if ends[i] == body.arguments[i]]
        for i in unchanged:
            for parameters in nodes:
                self.assume((parameters[i], 0), operands[i])
        regions = [
            self.region(region, [(node, 0) for node in parameters], environment, depth + 1)
            for region, parameters in zip((condition, body), nodes, strict=True)
        ]
        node = self.region_node("while", raw, operands, regions, effects, depth)
        node.always = regions[0].returns
        for i, operand in enumerate(operands):
            node.flows[i] = [operand, regions[1].returns[i]]
            for parameters in nodes:
                parameters[i].flows = {0: [(node, i)]}
        for i in unchanged:
            self.assume((node, i), operands[i])
        return [(node, i) for i in range(len(operands))]

    # ---- integers that are known

    def assume(self, value: Value, source: Value) -> None:
        """`value` has the elements of `source`: if these are known, so are those."""
        known = self.fold(source)
        if known is not None:
            self.folded[value] = known
            for kind in (self.computed, self.platform):
                if source in kind:
                    kind.add(value)

    def fold(self, value: Value) -> int | None:
        """The integer that a value is, if it is the same in all its elements and known."""
        if value not in self.folded:
            known = self.fold_node(value[0])
            self.folded[value] = known
        return self.folded[value]

    def fold_node(self, node: Node) -> int | None:
        if node.raw is None or node.kind != "plain" or len(node.types) != 1:
            return None
        if node.name == "stablehlo.constant":
            return node.raw.constant
        width = re.fullmatch(r"tensor<(?:[\d?]+x)*(u?i)(\d+)>", node.types[0])
        operation = FOLDERS.get(node.name.removeprefix("stablehlo."))
        if width is None or operation is None:
            return None
        operands = [self.fold(operand) for operand in node.operands]
        if any(operand is None for operand in operands):
            return None
        result = operation(node, *operands)
        if result is not None:
            self.computed.add((node, 0))
            bits = int(width.group(2))
            result &= (1 << bits) - 1
            if width.group(1) == "i" and bits > 1 and result >= 1 << (bits - 1):
                result -= 1 << bits
        return result


def _compare_integers(node: Node, a: int, b: int) -> int | None:
    """`compare` by its direction."""
    match = re.search(r"comparison_direction[< ]+(\w+)", node.attributes)
    tests = {"EQ": a == b, "NE": a != b, "LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b}
    return None if match is None else int(tests[match.group(1)])


def _reshard(node: Node, *operands: int) -> int | None:
    """The custom calls by which JAX says shardings where it does not use Shardy."""
    known = re.search(r'call_target_name = "(Sharding|SPMDFullToShardShape|SPMDShardToFullShape)"', node.attributes)
    return operands[0] if known and len(operands) == 1 else None


FOLDERS = {
    "add": lambda node, a, b: a + b,
    "and": lambda node, a, b: a & b,
    "broadcast_in_dim": lambda node, a: a,
    "clamp": lambda node, low, a, high: min(max(a, low), high),
    "compare": _compare_integers,
    "convert": lambda node, a: int(a != 0) if node.types[0].endswith("i1>") else a,
    "custom_call": _reshard,
    "maximum": lambda node, a, b: max(a, b),
    "minimum": lambda node, a, b: min(a, b),
    "multiply": lambda node, a, b: a * b,
    "not": lambda node, a: ~a,
    "optimization_barrier": lambda node, a: a,
    "or": lambda node, a, b: a | b,
    "reshape": lambda node, a: a,
    "subtract": lambda node, a, b: a - b,
}


class _Liveness:
    """What results and effects need. A value flows into a parameter or a result only if that is needed itself."""

    def __init__(self):
        self.values: set[Value] = set()
        self.nodes: set[Node] = set()
        self.pending: list[Value] = []

    def run(self, results: list[Value], effects: list[Node]) -> "_Liveness":
        for node in effects:
            self.touch(node)
        for value in results:
            self.mark(value)
        while self.pending:
            node, index = self.pending.pop()
            self.touch(node)
            for value in node.flows.get(index, ()):
                self.mark(value)
        return self

    def mark(self, value: Value) -> None:
        if value not in self.values:
            self.values.add(value)
            self.pending.append(value)

    def touch(self, start: Node) -> None:
        stack = [start]
        while stack:
            node = stack.pop()
            if node in self.nodes:
                continue
            self.nodes.add(node)
            for value in node.always:
                self.mark(value)
            for region in node.regions:
                stack.extend(region.effects)


class Graph:
    """A module as a graph, with what else a test wants to know about it."""

    def __init__(self, functions: dict[str, RawFunction], attributes: dict[str, str], platform: int | None = None):
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20000))
        main = functions["main"]
        self.functions = functions
        evaluator = _Evaluator(functions)
        arguments = evaluator.parameters(main.body.types, 0, 0)
        if platform is not None:
            evaluator.folded[arguments[0], 0] = platform
            evaluator.platform.add((arguments[0], 0))
        self.effects: list[Node] = []
        outcome = evaluator.body(main, [(node, 0) for node in arguments], self.effects, 0)
        self.results = outcome.returns
        self.nodes = evaluator.nodes
        self.annotations = evaluator.annotations
        self.operations = outcome.operations
        self.decided = list(evaluator.decided.values())
        self.undecided = list(evaluator.undecided.values())
        self.signature = {
            "module attributes": sorted(attributes.items()),
            "arguments": list(zip(main.body.types, main.argument_attributes, strict=True)),
            "results": list(zip(main.result_types, main.result_attributes, strict=True)),
        }
        if platform is not None:
            del self.signature["arguments"][0]
            for node in arguments:
                node.position = (0, node.position[1] - 1)
        self.live = _Liveness().run(self.results, self.effects)

    @classmethod
    def read(cls, artifact: bytes, platform: int | None = None) -> "Graph":
        """Reads a portable artifact as it stands in an export; with `platform`, as it is on that platform."""
        with jax_mlir.make_ir_context():
            return cls.of(artifacts.deserialize(artifact), platform)

    @classmethod
    def of(cls, module: ir.Module, platform: int | None = None) -> "Graph":
        """Reads a StableHLO module."""
        reader = _Reader(module)
        return cls(reader.functions, reader.attributes, platform)

    def case_operations(self) -> list[int]:
        """The number of branches of every `case` in the file, resolved or not, in functions that are reached or not."""
        return [len(raw.regions) for raw in self.raw_operations() if raw.name == "stablehlo.case"]

    def raw_operations(self) -> list[RawOperation]:
        """Every operation of the file."""
        found = []
        regions = [function.body for function in self.functions.values()]
        while regions:
            for raw in regions.pop().operations:
                found.append(raw)
                regions.extend(raw.regions)
        return found

    def constant_cases(self) -> set[tuple[int, str]]:
        """Every `case` whose choice is certain, by its number of branches and where it comes from.

        In a module that is read for no platform these are the ones that have nothing to do with the platform.
        """
        single = {(1, raw.location) for raw in self.raw_operations() if _is_case_of_one(raw)}
        return single | {(case.branches, case.location) for case in self.decided}

    def platform_remains(self, original: "Graph | None" = None) -> list[str]:
        """Complaints about everything that still looks at the number of a platform; empty for a proper split.

        What the original, read for no platform, decides by itself is none of the platform's business and may stay.
        """
        own = original.constant_cases() if original else set()
        complaints = [
            f"argument {position} of @{function.name} is still marked: {text}"
            for function in self.functions.values()
            for position, text in enumerate(function.argument_attributes)
            if PLATFORM_INDEX in text
        ]
        complaints += [
            f"a case of {case.branches} branches looks at a constant, at {case.location}"
            for case in self.decided
            if not case.computed and (case.branches, case.location) not in own
        ]
        complaints += [
            f"a case of one branch is left, at {raw.location}"
            for raw in self.raw_operations()
            if _is_case_of_one(raw) and (1, raw.location) not in own
        ]
        return complaints


def _is_case_of_one(raw: RawOperation) -> bool:
    """Whether it is a choice without a choice."""
    return raw.name == "stablehlo.case" and len(raw.regions) == 1


class _Numbering:
    """Numbers for nodes: equal ones have the same number, in whichever graph they are."""

    def __init__(self):
        self.keys: dict[tuple, int] = {}
        self.known: list[tuple] = []
        self.locations: dict[int, list[str]] = collections.defaultdict(list)
        self.numbers: dict[Node, int] = {}
        self.places: dict[Node, int] = {}

    def add(self, graph: Graph) -> None:
        """Numbers what is alive in a graph."""
        for node in graph.live.nodes:
            if node.kind in ("while", "manual", "apply"):
                for region in node.regions:
                    self.places.update((p, place) for place, p in enumerate(self.needed(node, region, graph.live)))
        for node in graph.nodes:
            parameter_is_live = node.kind == "parameter" and (node, 0) in graph.live.values
            if node in graph.live.nodes or parameter_is_live:
                self.numbers[node] = self.intern(self.key(node, graph.live), node.location)

    def intern(self, key: tuple, location: str) -> int:
        if key not in self.keys:
            self.keys[key] = len(self.known)
            self.known.append(key)
        number = self.keys[key]
        if len(self.locations[number]) < 2:
            self.locations[number].append(location)
        return number

    def key(self, node: Node, live: _Liveness) -> tuple:
        """What a node is: name, attributes, types, operands, regions; reduced to what is needed of it."""
        if node.kind == "parameter":
            place = self.places.get(node, node.position[1])
            return ("argument", node.depth, node.position[0], place, node.types[0])
        results = [i for i in range(len(node.types)) if node.kind == "plain" or (node, i) in live.values]
        operands, regions, attributes = node.operands, node.regions, node.attributes
        if node.kind == "while":
            operands = [operands[i] for i in results]
            ends = [regions[0].returns, [regions[1].returns[i] for i in results]]
            parameters = [self.needed(node, region, live) for region in regions]
        elif node.kind in ("manual", "apply"):
            used = [i for i, parameter in enumerate(regions[0].parameters) if (parameter, 0) in live.values]
            operands = [operands[i] for i in used]
            parameters = [self.needed(node, regions[0], live)]
            ends = [[regions[0].returns[i] for i in results]]
            if node.kind == "manual":
                inner, outer = node.raw.shardings
                attributes += f" in {[inner[i] for i in used]} out {[outer[i] for i in results]}"
        elif node.kind == "case":
            parameters = [[] for _ in regions]
            ends = [[region.returns[i] for i in results] for region in regions]
        else:
            parameters = [region.parameters for region in regions]
            ends = [region.returns for region in regions]
        return (
            node.name,
            attributes,
            tuple(node.types[i] for i in results),
            tuple(self.value(value, live) for value in operands),
            tuple(
                (
                    tuple(parameter.types[0] for parameter in parameters[i]),
                    tuple(self.numbers[effect] for effect in region.effects),
                    region.terminator,
                    tuple(self.value(value, live) for value in ends[i]),
                )
                for i, region in enumerate(regions)
            ),
            None if node.effect is None else (node.depth, node.effect),
        )

    @staticmethod
    def needed(node: Node, region: Region, live: _Liveness) -> list[Node]:
        """The parameters of a region that are needed; a loop has them in pairs, with the result."""
        if node.kind == "while":
            return [parameter for i, parameter in enumerate(region.parameters) if (node, i) in live.values]
        return [parameter for parameter in region.parameters if (parameter, 0) in live.values]

    def value(self, value: Value, live: _Liveness) -> tuple[int, int]:
        """A result by the number of its node and its position among the results that are needed."""
        node, index = value
        if node.kind in ("case", "while", "manual", "apply"):
            index = sum((node, i) in live.values for i in range(index))
        return self.numbers[node], index

    def roots(self, graph: Graph, what: str) -> list[tuple[int, int]]:
        if what == "effects":
            return [(self.numbers[node], 0) for node in graph.effects]
        return [self.value(value, graph.live) for value in graph.results]

    def annotations(self, graph: Graph) -> set[tuple]:
        """Attributes of private functions with the values they are about, as far as these are alive."""
        return {
            (text, self.describe(self.value(value, graph.live)), self.value(value, graph.live))
            for text, value in graph.annotations
            if value[0] in self.numbers and (value[0].kind == "plain" or value in graph.live.values)
        }

    # ---- saying what differs

    def describe(self, value: tuple[int, int]) -> str:
        key = self.known[value[0]]
        if key[0] == "argument":
            return f"argument {key[3]} (of region {key[2]} at depth {key[1]}) : {key[4]}"
        return f"{key[0]} {{{key[1]}}} : {', '.join(key[2])}"

    def explain(self, first: tuple[int, int], second: tuple[int, int]) -> str:
        """Follows the first difference down to where it begins."""
        path = []
        while True:
            a, b = self.known[first[0]], self.known[second[0]]
            path.append(f"{self.describe(first)}{self.where(first[0])}")
            if first[0] == second[0] or "argument" in (a[0], b[0]) or a[:3] != b[:3] or a[5] != b[5]:
                break
            step = self.step(a, b)
            if step is None:
                break
            label, first, second = step
            path.append(f"  {label}")
        if len(path) > 24:
            path = [*path[:6], f"  … {len(path) - 18} lines …", *path[-12:]]
        right = f"{self.describe(second)}{self.where(second[0])}"
        return (
            "\n".join(path)
            + f"\n  left:  {self.describe(first)} result {first[1]}\n  right: {right} result {second[1]}"
        )

    def where(self, number: int) -> str:
        found = [location for location in self.locations[number] if location]
        return f" at {found[0][:200]}" if found else ""

    @staticmethod
    def step(a: tuple, b: tuple) -> tuple | None:
        """The first operand or region in which two nodes that look alike differ."""
        for position, (x, y) in enumerate(zip(a[3], b[3], strict=False)):
            if x != y:
                return f"operand {position}", x, y
        for position, (x, y) in enumerate(zip(a[4], b[4], strict=False)):
            for effect, (p, q) in enumerate(zip(x[1], y[1], strict=False)):
                if p != q:
                    return f"region {position}, effect {effect}", (p, 0), (q, 0)
            for result, (p, q) in enumerate(zip(x[3], y[3], strict=False)):
                if p != q:
                    return f"region {position}, returned value {result}", p, q
        return None
