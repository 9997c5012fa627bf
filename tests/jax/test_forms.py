"""Splits of modules that today's JAX does not write: forms of older versions, and forms that only a person writes.

Every form is a StableHLO text for several platforms with the text that it should become on each of them. The two are
held against each other as graphs and by the names of all operations, so that nothing dead may be left; where it can run
here, the numbers are those of the original called with the index of the platform.
"""

import collections
import dataclasses
import functools
import operator
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import artifacts
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph import Graph, compare
from jax import export
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from programs import enable_x64
from tool import Tool

PLATFORMS = ("cpu", "cuda", "tpu", "rocm")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Form:
    """A module for several platforms, and what it should become on the one of a number."""

    source: str
    # The text for each platform, if the module can be split.
    expected: Callable[[int], str] | None = None
    # What the refusal must say, if it cannot: regular expressions. With both, either will do.
    refused: tuple[str, ...] = ()
    platforms: int = 3
    # Whether CPU can run it, whichever the platform.
    runs: bool = True
    x64: bool = False
    # Sizes of arguments come from here instead of from the text if they are symbolic.
    specs: Callable[[], list] | None = None
    # Whether the output has exactly the operations of the expected text; else only its graph.
    exact: bool = True
    # Whether JAX's writer leaves the output as it is. It shares equal constants, which a number may be one of.
    canonical: bool = True
    # Patterns that the text of every output must have, and must not have.
    has: tuple[str, ...] = ()
    has_not: tuple[str, ...] = ()
    # Whether it may also be left as it is, with a number in place of the index.
    may_stay: bool = False


FORMS: dict[str, Callable[[], Form]] = {}


def form(build: Callable[[], Form]) -> Callable[[], Form]:
    """Registers a form under the name of the function."""
    assert build.__name__ not in FORMS
    FORMS[build.__name__] = build
    return build


def forms(*cases: tuple) -> Callable:
    """Registers one form for each tuple of arguments, the first of which is a name."""

    def register(build: Callable) -> Callable:
        for name, *arguments in cases:
            FORMS[f"{build.__name__}[{name}]"] = functools.partial(build, *arguments)
        return build

    return register


# ---------------------------------------------------------------- text

F32 = "tensor<f32>"
I32 = "tensor<i32>"
INDEX = '{jax.global_constant = "_platform_index"}'
MODULE_ATTRIBUTES = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"


def module(
    body: str,
    *,
    takes: str = "%x: tensor<f32>",
    gives: str = F32,
    others: str = "",
    index: str | None = None,
    symbolic: bool = False,
    attributes: str = MODULE_ATTRIBUTES,
) -> str:
    """A module with `main`; `index` is the type of the platform index, which is `%p`, in the original."""
    arguments = ", ".join(([f"%p: {index} {INDEX}"] if index else []) + ([takes] if takes else []))
    polymorphic = str(index is not None or symbolic).lower()
    return f"""
module @jit_f attributes {{jax.uses_shape_polymorphism = {polymorphic}, {attributes}}} {{
  func.func public @main({arguments}) -> ({gives}) {{
{textwrap.indent(textwrap.dedent(body), "    ")}
  }}
{textwrap.indent(textwrap.dedent(others), "  ")}
}}
"""


original = functools.partial(module, index=I32)


def function(name: str, takes: str, body: str, gives: str = F32, visibility: str = "private") -> str:
    return f"func.func {visibility} @{name}({takes}) -> ({gives}) {{\n{body}\n}}\n"


def branch(k: int, result: str = "%r", x: str = "%x") -> str:
    """What branch `k` does: every one multiplies by another number."""
    return f"""
{result}_c = stablehlo.constant dense<{k}.5> : tensor<f32>
{result} = stablehlo.multiply {x}, {result}_c : tensor<f32>
"""


def case(index: str, branches: int | tuple = 3, result: str = "%r", x: str = "%x", gives: str = F32) -> str:
    """A `case` on a value, with that many branches or with those given as pairs of operations and returned values."""
    if isinstance(branches, int):
        inner = result.replace("%", "%in_")
        branches = tuple((branch(k, inner, x), inner) for k in range(branches))
    regions = ", ".join(f"{{\n{body}\nstablehlo.return {value} : {gives}\n}}" for body, value in branches)
    return f'{result} = "stablehlo.case"({index}) ({regions}) : (tensor<i32>) -> {gives}\n'


def integers(**values: int) -> str:
    """Scalar constants by their names."""
    return "".join(f"%{name} = stablehlo.constant dense<{value}> : tensor<i32>\n" for name, value in values.items())


def table(index: str, values: list[str], result: str = "%t") -> str:
    """A `case` that returns values from outside."""
    return case(index, tuple(("", value) for value in values), result, gives=I32)


RETURN = "return %r : tensor<f32>\n"


def clip(value: int, branches: int = 3) -> int:
    """The branch that an index selects."""
    return value if 0 <= value < branches else branches - 1


def chooses(work: str, chosen: Callable[[int], int], branches: int = 3, on: str = "%t", **options) -> Form:
    """A form that computes `%t` from the index and then chooses by it; nothing but the branch is left."""
    others = options.pop("others", "")
    index = options.pop("index", I32)
    return Form(
        source=module(work + case(on, branches) + RETURN, others=others, index=index),
        expected=lambda k: module(branch(clip(chosen(k), branches)) + RETURN),
        **options,
    )


# ---------------------------------------------------------------- the index and integers that derive from it


@form
def plain_case() -> Form:
    return chooses("", lambda k: k, on="%p")


@form
def fewer_branches_than_platforms() -> Form:
    return chooses("", lambda k: k, branches=2, on="%p", platforms=4)


@form
def one_branch() -> Form:
    return chooses("", lambda k: k, branches=1, on="%p")


@form
def table_leads_out_of_range() -> Form:
    return chooses(integers(a=-1, b=7, c=1) + table("%p", ["%a", "%b", "%c"]), lambda k: (-1, 7, 1)[k])


@form
def table_of_constants_inside_its_branches() -> Form:
    values = (-3, 0, -2147483648)
    branches = tuple((integers(c=value), "%c") for value in values)
    return chooses(case("%p", branches, "%t", gives=I32), lambda k: values[k])


@form
def tables_four_deep() -> Form:
    work = integers(a=0, b=1, c=2)
    for before, after in (("%p", "%s"), ("%s", "%u"), ("%u", "%v"), ("%v", "%t")):
        work += table(before, ["%b", "%c", "%a"], after)
    return chooses(work, lambda k: (k + 4) % 3)


@form
def table_of_the_index_itself() -> Form:
    return chooses(integers(a=2) + table("%p", ["%p", "%a", "%p"]), lambda k: (0, 2, 2)[k])


@form
def table_with_computed_entries() -> Form:
    work = integers(one=1, two=2) + case(
        "%p",
        (
            ("%e = stablehlo.add %p, %one : tensor<i32>", "%e"),
            ("%e = stablehlo.subtract %two, %p : tensor<i32>\n%d = stablehlo.add %e, %one : tensor<i32>", "%d"),
            ("%e = stablehlo.remainder %p, %two : tensor<i32>", "%e"),
        ),
        "%t",
        gives=I32,
    )
    return chooses(work, lambda k: (1, 2, 0)[k])


@form
def cases_within_branches() -> Form:
    inner = case("%p", 3, "%y")
    source = original(case("%p", ((inner, "%y"), (branch(7, "%y"), "%y"), (inner, "%y"))) + RETURN)
    return Form(source=source, expected=lambda k: module(branch((0, 7, 2)[k]) + RETURN))


@form
def index_of_64_bits() -> Form:
    work = "%t = stablehlo.convert %p : (tensor<i64>) -> tensor<i32>\n"
    return chooses(work, lambda k: k, index="tensor<i64>", x64=True)


@form
def index_by_way_of_a_sharding_call() -> Form:
    """How JAX before 0.7 wrote where a value lives, also of the index that goes into a `shard_map`."""
    work = """
    %s = stablehlo.custom_call @Sharding(%p) {mhlo.sharding = "{replicated}"} : (tensor<i32>) -> tensor<i32>
    %t = stablehlo.custom_call @SPMDFullToShardShape(%s) {mhlo.sharding = "{manual}"} : (tensor<i32>) -> tensor<i32>
    """
    return chooses(work, lambda k: k)


@form
def index_of_64_bits_by_way_of_clamp() -> Form:
    work = """
    %low = stablehlo.constant dense<1> : tensor<i64>
    %high = stablehlo.constant dense<5> : tensor<i64>
    %q = stablehlo.clamp %low, %p, %high : tensor<i64>
    %t = stablehlo.convert %q : (tensor<i64>) -> tensor<i32>
    """
    return chooses(work, lambda k: max(k, 1), index="tensor<i64>", x64=True)


@form
def converted_there_and_back() -> Form:
    work = """
    %a = stablehlo.convert %p : (tensor<i32>) -> tensor<i64>
    %b = stablehlo.convert %a : (tensor<i64>) -> tensor<i32>
    %t = stablehlo.convert %b : tensor<i32>
    """
    return chooses(work, lambda k: k)


@forms(*((kind, kind) for kind in ("ui8", "ui16", "ui32", "i8", "i16", "i64")))
def wraps_around(kind: str) -> Form:
    """The type decides what is below zero, but every such index selects the last branch."""
    work = f"""
    %q = stablehlo.convert %p : (tensor<i32>) -> tensor<{kind}>
    %one = stablehlo.constant dense<1> : tensor<{kind}>
    %m = stablehlo.subtract %q, %one : tensor<{kind}>
    %t = stablehlo.convert %m : (tensor<{kind}>) -> tensor<i32>
    """
    return chooses(work, lambda k: k - 1)


@forms(("ui8", "ui8", (1, 0, 0)), ("i8", "i8", (0, 0, 0)), ("ui32", "ui32", (1, 0, 0)), ("i32", "i32", (0, 0, 0)))
def sign_of_a_wrapped_value(kind: str, chosen: tuple) -> Form:
    work = f"""
    %q = stablehlo.convert %p : (tensor<i32>) -> tensor<{kind}>
    %one = stablehlo.constant dense<1> : tensor<{kind}>
    %m = stablehlo.subtract %q, %one : tensor<{kind}>
    %limit = stablehlo.constant dense<100> : tensor<{kind}>
    %c = stablehlo.compare GT, %m, %limit : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
    %t = stablehlo.convert %c : (tensor<i1>) -> tensor<i32>
    """
    return chooses(work, lambda k: chosen[k], branches=2)


@form
def overflow_wraps() -> Form:
    work = """
    %big = stablehlo.constant dense<2147483647> : tensor<i32>
    %s = stablehlo.add %p, %big : tensor<i32>
    %t = stablehlo.subtract %s, %big : tensor<i32>
    """
    return chooses(work, lambda k: k)


@form
def converted_to_a_boolean() -> Form:
    work = """
    %a = stablehlo.convert %p : (tensor<i32>) -> tensor<i1>
    %t = stablehlo.convert %a : (tensor<i1>) -> tensor<i32>
    """
    return chooses(work, lambda k: int(k != 0))


BINARY = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "minimum": min,
    "maximum": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "divide": operator.floordiv,
    "remainder": operator.mod,
}


@forms(*((f"{name}-{value}", name, value) for name in BINARY for value in (1, 2)))
def arithmetic(name: str, value: int) -> Form:
    work = integers(c=value) + f"%t = stablehlo.{name} %p, %c : tensor<i32>\n"
    return chooses(work, lambda k: BINARY[name](k, value), platforms=4)


@forms(("negate", lambda k: -k), ("abs", abs), ("sign", lambda k: min(k, 1)), ("not", lambda k: ~k))
def arithmetic_on_one(chosen: Callable) -> Form:
    name = next(
        name for name in ("negate", "abs", "sign", "not") if FORMS[f"arithmetic_on_one[{name}]"].args == (chosen,)
    )
    work = integers(one=1, two=2) + f"%m = stablehlo.{name} %p : tensor<i32>\n"
    return chooses(work + "%t = stablehlo.add %m, %two : tensor<i32>\n", lambda k: chosen(k) + 2, branches=4)


@form
def negative_remainder_and_division_truncate() -> Form:
    work = (
        integers(five=-5, three=3, one=1)
        + """
    %m = stablehlo.subtract %five, %p : tensor<i32>
    %q = stablehlo.divide %m, %three : tensor<i32>
    %s = stablehlo.remainder %m, %three : tensor<i32>
    %d = stablehlo.subtract %q, %s : tensor<i32>
    %t = stablehlo.add %d, %one : tensor<i32>
    """
    )
    return chooses(work, lambda k: (-1 + 2, -2, -2 + 1)[k] + 1)


@form
def clamped() -> Form:
    work = integers(low=1, high=2) + "%t = stablehlo.clamp %low, %p, %high : tensor<i32>\n"
    return chooses(work, lambda k: min(max(k, 1), 2), branches=4, platforms=4)


@form
def clamped_with_bounds_in_disorder() -> Form:
    work = integers(low=2, high=1) + "%t = stablehlo.clamp %low, %p, %high : tensor<i32>\n"
    return chooses(work, lambda k: 1)


@form
def computed_from_constants_that_are_computed() -> Form:
    """Constants of the module may be made in several steps; the value derives from the index all the same."""
    work = """
    %small = stablehlo.constant dense<1> : tensor<i8>
    %one = stablehlo.convert %small : (tensor<i8>) -> tensor<i32>
    %t = stablehlo.add %p, %one : tensor<i32>
    """
    return chooses(work, lambda k: k + 1)


COMPARE = {"EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt}
COMPARE["GE"] = operator.ge


@forms(*((f"{name}-{kind}", name, kind) for name in COMPARE for kind in ("SIGNED", "UNSIGNED", "")))
def compared(name: str, kind: str) -> Form:
    of = "tensor<ui32>" if kind == "UNSIGNED" else I32
    work = f"""
    %q = stablehlo.convert %p : (tensor<i32>) -> {of}
    %one = stablehlo.constant dense<1> : {of}
    %c = stablehlo.compare {name}, %q, %one{f", {kind}" if kind else ""} : ({of}, {of}) -> tensor<i1>
    %t = stablehlo.convert %c : (tensor<i1>) -> tensor<i32>
    """
    return chooses(work, lambda k: int(COMPARE[name](k, 1)), branches=2)


# ---------------------------------------------------------------- predicates

IS_FIRST = integers(one=1) + "%first = stablehlo.compare LT, %p, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
IS_LAST = (
    integers(two=2) + "%last = stablehlo.compare EQ, %p, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
)


def if_(predicate: str, result: str = "%r") -> str:
    regions = ", ".join(f"{{{branch(k, '%b')}stablehlo.return %b : tensor<f32>\n}}" for k in (0, 1))
    return f'{result} = "stablehlo.if"({predicate}) ({regions}) : (tensor<i1>) -> tensor<f32>\n'


@form
def if_on_a_predicate() -> Form:
    return Form(
        source=original(IS_FIRST + if_("%first") + RETURN),
        expected=lambda k: module(branch(0 if k == 0 else 1) + RETURN),
    )


@forms(
    ("and", "%c = stablehlo.and %first, %last : tensor<i1>", lambda first, last: first and last),
    ("or", "%c = stablehlo.or %first, %last : tensor<i1>", lambda first, last: first or last),
    ("xor", "%c = stablehlo.xor %first, %last : tensor<i1>", lambda first, last: first != last),
    ("not", "%c = stablehlo.not %first : tensor<i1>", lambda first, last: not first),
    ("add", "%c = stablehlo.add %last, %last : tensor<i1>", lambda first, last: last),
    ("multiply", "%c = stablehlo.multiply %last, %last : tensor<i1>", lambda first, last: last),
    ("minimum", "%c = stablehlo.minimum %first, %last : tensor<i1>", lambda first, last: first and last),
    ("maximum", "%c = stablehlo.maximum %first, %last : tensor<i1>", lambda first, last: first or last),
    (
        "equal",
        "%c = stablehlo.compare EQ, %first, %last, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>",
        lambda first, last: first == last,
    ),
    (
        "greater",
        "%c = stablehlo.compare GT, %first, %last, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>",
        lambda first, last: first > last,
    ),
    ("select", "%c = stablehlo.select %first, %last, %first : tensor<i1>, tensor<i1>", lambda first, last: False),
)
def predicates(text: str, truth: Callable) -> Form:
    return Form(
        source=original(IS_FIRST + IS_LAST + text + "\n" + if_("%c") + RETURN),
        expected=lambda k: module(branch(0 if truth(k == 0, k == 2) else 1) + RETURN),
        # For the XLA of 0.6 true and true add up to false; StableHLO says true.
        runs="stablehlo.add" not in text or jax.__version_info__ >= (0, 7),
    )


@form
def predicate_with_a_constant_of_the_module() -> Form:
    work = (
        IS_FIRST
        + """
    %true = stablehlo.constant dense<true> : tensor<i1>
    %c = stablehlo.xor %first, %true : tensor<i1>
    """
    )
    return Form(
        source=original(work + if_("%c") + RETURN), expected=lambda k: module(branch(1 if k == 0 else 0) + RETURN)
    )


@form
def select_of_data() -> Form:
    work = branch(1, "%a") + branch(2, "%b")
    select = "%r = stablehlo.select %first, %a, %b : tensor<i1>, tensor<f32>\n"
    return Form(
        source=original(work + IS_FIRST + select + RETURN),
        expected=lambda k: module(branch(1 if k == 0 else 2) + RETURN),
    )


@form
def select_of_whole_tensors_by_one_predicate() -> Form:
    takes, gives = "%x: tensor<5xf32>, %y: tensor<5xf32>", "tensor<5xf32>"
    work = IS_FIRST + "%r = stablehlo.select %first, %x, %y : tensor<i1>, tensor<5xf32>\n"
    return Form(
        source=original(work + "return %r : tensor<5xf32>\n", takes=takes, gives=gives),
        expected=lambda k: module(f"return {'%x' if k == 0 else '%y'} : tensor<5xf32>\n", takes=takes, gives=gives),
    )


@form
def select_of_integers_leads_to_a_case() -> Form:
    work = integers(a=2, b=0) + IS_FIRST + "%t = stablehlo.select %first, %a, %b : tensor<i1>, tensor<i32>\n"
    return chooses(work, lambda k: 2 if k == 0 else 0)


@form
def nested_selects_lead_to_a_case() -> Form:
    work = (
        integers(a=2, b=0, c=1)
        + IS_FIRST
        + IS_LAST
        + """
    %s = stablehlo.select %last, %b, %c : tensor<i1>, tensor<i32>
    %t = stablehlo.select %first, %a, %s : tensor<i1>, tensor<i32>
    """
    )
    return chooses(work, lambda k: (2, 1, 0)[k])


def vmapped(splat: Callable[[str, int], str], broadcast: str, **options) -> Form:
    """How a batched choice was written: branches computed all, and the right one selected."""
    vector = "tensor<5xf32>"
    work = f"""
    %q = {broadcast}
    {splat("%one", 1)}
    {splat("%two", 2)}
    %a = stablehlo.sine %x : {vector}
    %b = stablehlo.cosine %x : {vector}
    %c = stablehlo.negate %x : {vector}
    %below = stablehlo.compare LT, %q, %one, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %next = stablehlo.compare LT, %q, %two, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %s = stablehlo.select %next, %b, %c : tensor<5xi1>, {vector}
    %r = stablehlo.select %below, %a, %s : tensor<5xi1>, {vector}
    return %r : {vector}
    """
    takes = f"%x: {vector}"

    def expected(k: int) -> str:
        operation = ("sine", "cosine", "negate")[k]
        return module(f"%r = stablehlo.{operation} %x : {vector}\nreturn %r : {vector}\n", takes=takes, gives=vector)

    return Form(source=original(work, takes=takes, gives=vector), expected=expected, **options)


def splat_constant(name: str, value: int) -> str:
    return f"{name} = stablehlo.constant dense<{value}> : tensor<5xi32>"


BROADCAST = "stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i32>) -> tensor<5xi32>"


@form
def vmapped_choice() -> Form:
    return vmapped(splat_constant, BROADCAST)


@form
def vmapped_choice_by_broadcast() -> Form:
    return vmapped(splat_constant, "stablehlo.broadcast %p, sizes = [5] : (tensor<i32>) -> tensor<5xi32>")


@form
def vmapped_choice_with_constants_that_are_broadcast() -> Form:
    """JAX writes `full_like` as a broadcast of a scalar constant."""

    def splat(name: str, value: int) -> str:
        scalar = f"{name}_scalar = stablehlo.constant dense<{value}> : tensor<i32>"
        return f"{scalar}\n{name} = {BROADCAST.replace('%p', f'{name}_scalar')}"

    return vmapped(splat, BROADCAST)


@form
def vmapped_choice_as_jax_writes_it() -> Form:
    """The lowering of a batched switch, with nothing but the index for its operand."""
    vector = "tensor<5xf32>"
    count = iter(range(100))

    def full(value: int) -> tuple[str, str]:
        n = next(count)
        kind = "(tensor<i32>) -> tensor<5xi32>"
        text = f"%c{n} = stablehlo.constant dense<{value}> : tensor<i32>\n"
        return text + f"%f{n} = stablehlo.broadcast_in_dim %c{n}, dims = [] : {kind}\n", f"%f{n}"

    def compared(direction: str, value: int, result: str) -> str:
        text, name = full(value)
        kind = "(tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>"
        return text + f"{result} = stablehlo.compare {direction}, %q, {name}, SIGNED : {kind}\n"

    low, high = full(0), full(2)
    work = f"%s = {BROADCAST}\n" + low[0] + high[0] + f"%q = stablehlo.clamp {low[1]}, %s, {high[1]} : tensor<5xi32>\n"
    for k, name in enumerate(("sine", "cosine", "negate")):
        work += compared("EQ", k, f"%eq{k}")
        work += f"%x{k} = stablehlo.select %eq{k}, %x, %x : tensor<5xi1>, {vector}\n"
        work += f"%y{k} = stablehlo.{name} %x{k} : {vector}\n"
    work += compared("LT", 1, "%lt1") + compared("LT", 2, "%lt2")
    work += f"%s1 = stablehlo.select %lt2, %y1, %y2 : tensor<5xi1>, {vector}\n"
    work += f"%r = stablehlo.select %lt1, %y0, %s1 : tensor<5xi1>, {vector}\n"
    options = {"takes": f"%x: {vector}", "gives": vector}
    end = f"return %r : {vector}\n"

    def expected(k: int) -> str:
        return module(f"%r = stablehlo.{('sine', 'cosine', 'negate')[k]} %x : {vector}\n{end}", **options)

    return Form(source=original(work + end, **options), expected=expected)


@form
def vmapped_index_that_is_reshaped_back() -> Form:
    work = """
    %a = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i32>) -> tensor<2x5xi32>
    %b = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x5xi32>) -> tensor<5x2xi32>
    %c = stablehlo.slice %b [1:4:2, 0:1] : (tensor<5x2xi32>) -> tensor<2x1xi32>
    %d = stablehlo.reverse %c, dims = [0] : tensor<2x1xi32>
    %e = stablehlo.slice %d [1:2, 0:1] : (tensor<2x1xi32>) -> tensor<1x1xi32>
    %t = stablehlo.reshape %e : (tensor<1x1xi32>) -> tensor<i32>
    """
    return chooses(work, lambda k: k)


@form
def index_as_a_vector_of_one() -> Form:
    work = """
    %a = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>
    %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %c = stablehlo.transpose %b, dims = [1, 0] : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %d = stablehlo.reshape %c : (tensor<1x1xi32>) -> tensor<1xi32>
    %e = stablehlo.slice %d [0:1] : (tensor<1xi32>) -> tensor<1xi32>
    %t = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>
    """
    return chooses(work, lambda k: k)


@form
def behind_a_barrier() -> Form:
    return chooses("%t = stablehlo.optimization_barrier %p : tensor<i32>\n", lambda k: k)


@form
def behind_a_barrier_beside_data() -> Form:
    """The data must stay behind the barrier; the index may stay in it as a number."""
    barrier = "%t:3 = stablehlo.optimization_barrier %x, {}, %x : tensor<f32>, tensor<i32>, tensor<f32>\n"
    return Form(
        source=original(barrier.format("%p") + case("%t#1", x="%t#2") + RETURN),
        expected=lambda k: module(integers(q=k) + barrier.format("%q") + branch(k, x="%t#2") + RETURN),
    )


@form
def used_as_a_number() -> Form:
    work = """
    %n = stablehlo.convert {} : (tensor<i32>) -> tensor<f32>
    %r = stablehlo.multiply %x, %n : tensor<f32>
    """
    return Form(
        source=original(work.format("%p") + RETURN),
        expected=lambda k: module(integers(q=k) + work.format("%q") + RETURN),
    )


@form
def used_as_a_number_and_in_a_choice() -> Form:
    work = """
    %n = stablehlo.convert {} : (tensor<i32>) -> tensor<f32>
    %y = stablehlo.multiply %x, %n : tensor<f32>
    """
    return Form(
        source=original(case("%p", x="%y").join([work.format("%p"), RETURN])),
        expected=lambda k: module(integers(q=k) + work.format("%q") + branch(k, x="%y") + RETURN),
    )


@form
def returned_by_main() -> Form:
    return Form(
        source=original("return %p, %x : tensor<i32>, tensor<f32>\n", gives="tensor<i32>, tensor<f32>"),
        expected=lambda k: module(
            integers(q=k) + "return %q, %x : tensor<i32>, tensor<f32>\n", gives="tensor<i32>, tensor<f32>"
        ),
    )


@form
def gathered_from_an_array() -> Form:
    """Nothing that the platform decides by a case: the number is data."""
    work = """
    %s = stablehlo.dynamic_slice %x, {}, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %r = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
    """
    takes = "%x: tensor<4xf32>"
    return Form(
        source=original(work.format("%p") + RETURN, takes=takes),
        expected=lambda k: module(integers(q=k) + work.format("%q") + RETURN, takes=takes),
    )


# ---------------------------------------------------------------- loops


def loop(carried: list[tuple[str, str, str]], work: str, after: list[str], *, test: str = "", name: str = "%w") -> str:
    """Three rounds of `work`; `carried` are names, first values and types, besides the counter `%i`, which is first."""
    names = [("%i", "%begin", I32), *carried]
    heads = ", ".join(f"{argument} = {first}" for argument, first, _ in names)
    types = ", ".join(of for _, _, of in names)
    return f"""
{name}:{len(names)} = stablehlo.while({heads}) : {types}
cond {{
  {test}
  %go = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %go : tensor<i1>
}} do {{
  {work}
  %j = stablehlo.add %i, %unit : tensor<i32>
  stablehlo.return {", ".join(["%j", *after])} : {types}
}}
"""


# Numbers that are no platform, so that one that is left stands out.
COUNTING = integers(begin=10, end=31, unit=7)
DATA = ("%a", "%x", F32)


def decided_loop(work: Callable[[str], str], **options) -> Form:
    """A form whose body is the same but for the choice, which `work` is given the text of."""
    return Form(
        source=original(COUNTING + work(case("%p", x="%a")), **options),
        expected=lambda k: module(COUNTING + work(branch(k, x="%a")), **options),
    )


@form
def captured_by_a_loop() -> Form:
    return decided_loop(lambda choice: loop([DATA], choice, ["%r"]) + "return %w#1 : tensor<f32>\n")


@forms(("first", 0), ("middle", 1), ("last", 2))
def carried_unchanged(position: int) -> Form:
    carried = [DATA, ("%b", "%x", F32)]
    carried.insert(position, ("%q", "%p", I32))
    after = ["%r", "%a"]
    after.insert(position, "%q")
    data = 1 if position > 0 else 2
    without = loop([DATA, ("%b", "%x", F32)], "WORK", ["%r", "%a"])
    return Form(
        source=original(COUNTING + loop(carried, case("%q", x="%a"), after) + f"return %w#{data} : tensor<f32>\n"),
        expected=lambda k: module(
            COUNTING + without.replace("WORK", branch(k, x="%a")) + "return %w#1 : tensor<f32>\n"
        ),
    )


def loop_with(carried: list, work: str, after: list, then: str = "return %w#1 : tensor<f32>\n", **options) -> Form:
    """A loop that carries more than data; what is left carries data alone, and chooses in the body."""
    left = loop([DATA], "WORK", ["%r"])
    before = options.pop("before", "")
    return Form(
        source=original(COUNTING + before + loop([DATA, *carried], work, ["%r", *after]) + then),
        expected=lambda k: module(COUNTING + left.replace("WORK", branch(k, x="%a")) + "return %w#1 : tensor<f32>\n"),
        **options,
    )


@form
def carried_twice_and_exchanged() -> Form:
    return loop_with([("%q", "%p", I32), ("%s", "%p", I32)], case("%s", x="%a"), ["%s", "%q"])


@form
def carried_behind_a_barrier() -> Form:
    work = case("%q", x="%a") + "%z:2 = stablehlo.optimization_barrier %r, %q : tensor<f32>, tensor<i32>\n"
    left = loop([DATA], "WORK%z:2 = stablehlo.optimization_barrier %r, %n : tensor<f32>, tensor<i32>\n", ["%z#0"])
    then = "return %w#1 : tensor<f32>\n"
    return Form(
        source=original(COUNTING + loop([DATA, ("%q", "%p", I32)], work, ["%z#0", "%z#1"]) + then),
        expected=lambda k: module(COUNTING + integers(n=k) + left.replace("WORK", branch(k, x="%a")) + then),
    )


@form
def carried_and_returned_from_outside() -> Form:
    return loop_with([("%q", "%p", I32)], case("%q", x="%a"), ["%p"])


@form
def carried_and_computed_anew_from_outside() -> Form:
    work = case("%q", x="%a") + "%again = stablehlo.minimum %p, %five : tensor<i32>\n"
    return loop_with([("%q", "%p", I32)], work, ["%again"], before=integers(five=5))


@form
def carried_and_returned_by_a_choice() -> Form:
    work = case("%q", x="%a") + table("%p", ["%q", "%q", "%q"], "%again")
    return loop_with([("%q", "%p", I32)], work, ["%again"])


@form
def carried_and_computed_to_be_the_same() -> Form:
    work = case("%q", x="%a") + "%again = stablehlo.minimum %q, %five : tensor<i32>\n"
    return loop_with([("%q", "%p", I32)], work, ["%again"], before=integers(five=5), may_stay=True)


@form
def carried_by_way_of_a_function() -> Form:
    work = case("%q", x="%a") + "%again = func.call @same(%q) : (tensor<i32>) -> tensor<i32>\n"
    same = function("same", "%q: tensor<i32>", "return %q : tensor<i32>", I32)
    left = loop([DATA], "WORK", ["%r"])
    then = "return %w#1 : tensor<f32>\n"
    return Form(
        source=original(COUNTING + loop([DATA, ("%q", "%p", I32)], work, ["%r", "%again"]) + then, others=same),
        expected=lambda k: module(COUNTING + left.replace("WORK", branch(k, x="%a")) + then),
        exact=False,
        may_stay=True,
    )


@form
def result_of_a_loop_decides() -> Form:
    then = case("%w#2", result="%s", x="%w#1") + "return %s : tensor<f32>\n"
    work = "%r = stablehlo.sine %a : tensor<f32>\n"
    return Form(
        source=original(COUNTING + loop([DATA, ("%q", "%p", I32)], work, ["%r", "%q"]) + then),
        expected=lambda k: module(
            COUNTING + loop([DATA], work, ["%r"]) + branch(k, "%s", x="%w#1") + "return %s : tensor<f32>\n"
        ),
    )


@form
def table_carried_by_a_loop() -> Form:
    before = integers(c=1, d=2, e=0) + table("%p", ["%d", "%e", "%c"], "%t")
    carried = [("%q", "%t", I32)]
    left = loop([DATA], "WORK", ["%r"])
    then = "return %w#1 : tensor<f32>\n"
    return Form(
        source=original(COUNTING + before + loop([DATA, *carried], case("%q", x="%a"), ["%r", "%q"]) + then),
        expected=lambda k: module(COUNTING + left.replace("WORK", branch((2, 0, 1)[k], x="%a")) + then),
    )


@form
def predicate_carried_by_a_loop() -> Form:
    left = loop([DATA], "WORK", ["%r"])
    then = "return %w#1 : tensor<f32>\n"
    work = if_("%q").replace("%x", "%a")
    return Form(
        source=original(COUNTING + IS_FIRST + loop([DATA, ("%q", "%first", "tensor<i1>")], work, ["%r", "%q"]) + then),
        expected=lambda k: module(COUNTING + left.replace("WORK", branch(int(k > 0), x="%a")) + then),
    )


@form
def splat_carried_by_a_loop() -> Form:
    work = """
    %splat = stablehlo.constant dense<1> : tensor<5xi32>
    %below = stablehlo.compare LT, %q, %splat : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %s = stablehlo.sine %a : tensor<5xf32>
    %c = stablehlo.cosine %a : tensor<5xf32>
    %r = stablehlo.select %below, %s, %c : tensor<5xi1>, tensor<5xf32>
    """
    vector = "tensor<5xf32>"
    data = ("%a", "%x", vector)
    options = {"takes": f"%x: {vector}", "gives": vector}
    then = f"return %w#1 : {vector}\n"
    carried = [data, ("%q", "%splat_p", "tensor<5xi32>")]
    return Form(
        source=original(COUNTING + f"%splat_p = {BROADCAST}\n" + loop(carried, work, ["%r", "%q"]) + then, **options),
        expected=lambda k: module(
            COUNTING + loop([data], f"%r = stablehlo.{'sine' if k == 0 else 'cosine'} %a : {vector}", ["%r"]) + then,
            **options,
        ),
    )


@form
def splat_of_nothing_carried_by_a_loop() -> Form:
    """A batch of no elements: no constant can be made of it, and nobody needs one."""
    work = """
    %n = stablehlo.convert %q : (tensor<0xi32>) -> tensor<0xf32>
    %r = stablehlo.add %a, %n : tensor<0xf32>
    """
    vector = "tensor<0xf32>"
    broadcast = "%splat_p = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i32>) -> tensor<0xi32>\n"
    carried = [("%a", "%x", vector), ("%q", "%splat_p", "tensor<0xi32>")]
    options = {"takes": f"%x: {vector}", "gives": vector}
    text = COUNTING + broadcast + loop(carried, work, ["%r", "%q"]) + f"return %w#1 : {vector}\n"
    # The loop uses the broadcast outside instead of carrying it.
    after = (
        COUNTING + broadcast + loop(carried[:1], work.replace("%q", "%splat_p"), ["%r"]) + f"return %w#1 : {vector}\n"
    )
    return Form(
        source=original(text, **options),
        expected=lambda k: module(integers(p=k) + after, **options),
        exact=False,
    )


def carries_data(carried: list, work: str, after: list, before: str = "", **options) -> Form:
    """A loop that changes what it carries: it stays as it is, with a number in place of the index."""
    text = COUNTING + before + loop([DATA, *carried], work, ["%r", *after]) + "return %w#1 : tensor<f32>\n"
    return Form(source=original(text), expected=lambda k: module(integers(p=k) + text), exact=False, **options)


@form
def carried_twice_and_exchanged_with_another_value() -> Form:
    before = "%next = stablehlo.add %p, %unit : tensor<i32>\n"
    return carries_data([("%q", "%p", I32), ("%s", "%next", I32)], case("%q", x="%a"), ["%s", "%q"], before)


@form
def carried_and_counted_up() -> Form:
    work = case("%q", x="%a") + "%up = stablehlo.add %q, %unit : tensor<i32>\n"
    return carries_data([("%q", "%p", I32)], work, ["%up"])


@form
def carried_and_replaced_by_data() -> Form:
    return carries_data([("%q", "%p", I32)], case("%q", x="%a"), ["%i"])


@form
def carried_and_replaced_by_another_constant() -> Form:
    return carries_data([("%q", "%p", I32)], case("%q", x="%a"), ["%end"])


@form
def carried_and_exchanged_with_a_constant() -> Form:
    """A constant that equals the index on one of the platforms is nothing that the platform decides."""
    return carries_data(
        [("%q", "%p", I32), ("%s", "%c", I32)], case("%q", x="%a"), ["%s", "%q"], integers(c=1), canonical=False
    )


@form
def carried_and_shifted_along() -> Form:
    """Three places in a row, the last of which is data from the start."""
    carried = [("%q", "%p", I32), ("%s", "%p", I32), ("%u", "%end", I32)]
    return carries_data(carried, case("%q", x="%a"), ["%s", "%u", "%u"])


def nested_loops(inner_after: str, outer_after: str) -> str:
    inner = loop(
        [("%d", "%a", F32), ("%s", "%q", I32)], case("%s", x="%d", result="%e"), ["%e", inner_after], name="%v"
    )
    inner = inner.replace("%i", "%m").replace("%j", "%n").replace("%go", "%on").replace("%mn_", "%in_")
    return loop([DATA, ("%q", "%p", I32)], inner, ["%v#1", outer_after]) + "return %w#1 : tensor<f32>\n"


@forms(("inner", "%v#2"), ("outer", "%q"))
def carried_by_nested_loops(outer_after: str) -> Form:
    inner = loop([("%d", "%a", F32)], "WORK", ["%e"], name="%v").replace("%i", "%m").replace("%j", "%n")
    left = loop([DATA], inner.replace("%go", "%on"), ["%v#1"]) + "return %w#1 : tensor<f32>\n"
    return Form(
        source=original(COUNTING + nested_loops("%s", outer_after)),
        expected=lambda k: module(COUNTING + left.replace("WORK", branch(k, "%e", x="%d"))),
    )


@form
def captured_by_condition_and_body() -> Form:
    """The condition chooses how many rounds there are."""
    test = (
        integers(c=17, d=24)
        + table("%p", ["%d", "%c", "%end"], "%limit")
        + """
    %early = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    """
    )
    text = loop([DATA], "WORK", ["%r"], test="TEST") + "return %w#1 : tensor<f32>\n"
    text = text.replace(
        "stablehlo.return %go", "%both = stablehlo.and %early, %go : tensor<i1>\nstablehlo.return %both"
    )

    def expected(k: int) -> str:
        limit = "%end" if k == 2 else "%d"
        test = integers(d=(24, 17, 31)[k]) if k < 2 else ""
        test += f"%early = stablehlo.compare LT, %i, {limit} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        return module(COUNTING + text.replace("TEST", test).replace("WORK", branch(k, x="%a")))

    source = text.replace("TEST", test).replace("WORK", case("%p", x="%a"))
    return Form(source=original(COUNTING + source), expected=expected)


@form
def loop_inside_a_resolved_branch() -> Form:
    inner = loop([DATA, ("%q", "%p", I32)], case("%q", x="%a"), ["%r", "%q"])
    left = loop([DATA], branch(0, x="%a"), ["%r"])
    branches = ((inner, "%w#1"), (branch(5, "%y"), "%y"), (branch(6, "%y"), "%y"))
    return Form(
        source=original(COUNTING + case("%p", branches, "%z") + "return %z : tensor<f32>\n"),
        expected=lambda k: module(
            COUNTING + left + "return %w#1 : tensor<f32>\n" if k == 0 else branch((5, 6)[k - 1]) + RETURN
        ),
    )


# ---------------------------------------------------------------- functions

G = "func.call @g"
TAKES = "%q: tensor<i32>, %y: tensor<f32>"
CHOICE = case("%q", x="%y") + RETURN


def chosen(k: int, name: str = "g", takes: str = "%y: tensor<f32>") -> str:
    """The function `name` when it is decided."""
    return function(name, takes, branch(k, x="%y") + RETURN)


def call(name: str, arguments: str, types: str, result: str = "%r", gives: str = F32) -> str:
    return f"{result} = func.call @{name}({arguments}) : ({types}) -> {gives}\n"


@form
def function_called_twice_with_one_value() -> Form:
    text = call("g", "{}%x", "{}", "%s") + call("g", "{}%s", "{}")
    before, after = text.replace("{}%", "%p, %").replace("{}", f"{I32}, {F32}"), text.replace("{}%", "%")
    return Form(
        source=original(before + RETURN, others=function("g", TAKES, CHOICE)),
        expected=lambda k: module(after.replace("{}", F32) + RETURN, others=chosen(k)),
    )


def different_values(
    indices: list[str], values: list[Callable], before: str, others: str = "", free: tuple = ()
) -> Form:
    """One call for each of `indices`; copies take the first free names."""
    source, left, name = before, "", "%x"
    names = list(dict.fromkeys(values))
    titles = dict(zip(names, ("g", *free), strict=False))
    for n, (index, value) in enumerate(zip(indices, values, strict=True)):
        source += call("g", f"{index}, {name}", f"{I32}, {F32}", f"%s{n}")
        left += call(titles[value], name, F32, f"%s{n}")
        name = f"%s{n}"
    end = f"return {name} : tensor<f32>\n"

    def expected(k: int) -> str:
        return module(left + end, others="".join(chosen(value(k), title) for value, title in titles.items()) + others)

    return Form(source=original(source + end, others=function("g", TAKES, CHOICE) + others), expected=expected)


NEXT = integers(c=1, d=2, e=0) + table("%p", ["%c", "%d", "%e"], "%t") + table("%t", ["%c", "%d", "%e"], "%u")


def same(k: int) -> int:
    return k


def once(k: int) -> int:
    return (k + 1) % 3


def twice(k: int) -> int:
    return (k + 2) % 3


@form
def function_called_with_two_values() -> Form:
    return different_values(["%p", "%t"], [same, once], NEXT, free=("g_0",))


@form
def function_called_with_three_values() -> Form:
    return different_values(["%p", "%t", "%u", "%p"], [same, once, twice, same], NEXT, free=("g_0", "g_1"))


@form
def names_of_copies_are_free() -> Form:
    taken = function("g_0", "%y: tensor<f32>", "return %y : tensor<f32>", visibility="public")
    formed = different_values(["%p", "%t", "%u"], [same, once, twice], NEXT, taken, free=("g_1", "g_2"))
    return dataclasses.replace(formed, has=(r"func\.func public @g_0\(", r"@g_1\(", r"@g_2\("))


@form
def function_called_with_a_known_and_an_unknown_value() -> Form:
    takes = "%x: tensor<f32>, %n: tensor<i32>"
    source = call("g", "%p, %x", f"{I32}, {F32}", "%s") + call("g", "%n, %s", f"{I32}, {F32}")
    left = call("g", "%x", F32, "%s") + call("g_0", "%n, %s", f"{I32}, {F32}")
    return Form(
        source=original(source + RETURN, takes=takes, others=function("g", TAKES, CHOICE)),
        expected=lambda k: module(left + RETURN, takes=takes, others=chosen(k) + function("g_0", TAKES, CHOICE)),
        has=(r'"stablehlo\.case"\(%arg0\)',),
    )


@form
def function_called_with_an_unknown_value_and_a_constant() -> Form:
    """No platform decides anything here."""
    takes = "%x: tensor<f32>, %n: tensor<i32>"
    text = integers(c=1) + call("g", "%c, %x", f"{I32}, {F32}", "%s") + call("g", "%n, %s", f"{I32}, {F32}")
    others = function("g", TAKES, CHOICE)
    return Form(
        source=original(
            text + case("%p", result="%z", x="%r") + "return %z : tensor<f32>\n", takes=takes, others=others
        ),
        expected=lambda k: module(
            text + branch(k, "%z", "%r") + "return %z : tensor<f32>\n", takes=takes, others=others
        ),
    )


@form
def chain_of_functions_each_with_its_own_numbers() -> Form:
    body = integers(c=1, d=2, e=0) + table("%q", ["%c", "%d", "%e"])
    types = f"{I32}, {F32}"
    others = (
        function("f", TAKES, body + call("g", "%t, %y", types) + RETURN)
        + function("g", TAKES, body + call("h", "%t, %y", types) + RETURN)
        + function("h", TAKES, CHOICE)
    )

    def expected(k: int) -> str:
        left = (
            function("f", "%y: tensor<f32>", call("g", "%y", F32) + RETURN)
            + function("g", "%y: tensor<f32>", call("h", "%y", F32) + RETURN)
            + chosen((k + 2) % 3, "h")
        )
        return module(call("f", "%x", F32) + RETURN, others=left)

    return Form(source=original(call("f", "%p, %x", types) + RETURN, others=others), expected=expected)


@form
def copies_of_a_function_call_copies() -> Form:
    """Two values go through one function into another: both are copied, and the copies belong together."""
    types = f"{I32}, {F32}"
    others = function("f", TAKES, call("g", "%q, %y", types) + RETURN) + function("g", TAKES, CHOICE)
    source = NEXT + call("f", "%p, %x", types, "%s") + call("f", "%t, %s", types) + RETURN

    def expected(k: int) -> str:
        left = "".join(
            function(f, "%y: tensor<f32>", call(g, "%y", F32) + RETURN) + chosen(value, g)
            for f, g, value in (("f", "g", k), ("f_0", "g_0", once(k)))
        )
        return module(call("f", "%x", F32, "%s") + call("f_0", "%s", F32) + RETURN, others=left)

    return Form(source=original(source, others=others), expected=expected)


@form
def index_between_other_arguments() -> Form:
    """Attributes of the others keep their places."""
    body = case("%q", x="%y") + "%s = stablehlo.add %r, %z : tensor<f32>\nreturn %s : tensor<f32>\n"
    takes = '%y: tensor<f32> {jax.first = "first"}, %z: tensor<f32>, %q: tensor<i32> {jax.index = "index"}, '
    takes += '%u: tensor<f32> {jax.last = "last"}'
    gives = 'tensor<f32> {jax.result = "result"}'
    left = branch(0, x="%y").replace("0.5", "{}.5") + body[body.index("%s =") :]
    kept = takes.replace('%q: tensor<i32> {jax.index = "index"}, ', "")
    return Form(
        source=original(
            call("g", "%x, %x, %p, %x", f"{F32}, {F32}, {I32}, {F32}") + RETURN,
            others=function("g", takes, body, gives),
        ),
        expected=lambda k: module(
            call("g", "%x, %x, %x", f"{F32}, {F32}, {F32}") + RETURN,
            others=function("g", kept, left.format(k), gives),
        ),
        has=(
            r'@g\(%\w+: tensor<f32> \{jax\.first = "first"\}, %\w+: tensor<f32>, '
            r'%\w+: tensor<f32> \{jax\.last = "last"\}\)',
        ),
        has_not=(r"jax\.index",),
    )


@form
def all_arguments_go() -> Form:
    body = integers(c=5, d=6) + case("%q", tuple((integers(e=n), "%e") for n in (5, 6, 7)), "%t", gives=I32)
    # What is chosen goes into arithmetic with data, so it stays a number.
    use = """
    %n = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
    %r = stablehlo.multiply %x, %n : tensor<f32>
    """
    others = function(
        "g", '%q: tensor<i32> {jax.index = "index"}, %u: tensor<i32>', body + "return %t : tensor<i32>\n", I32
    )
    source = call("g", "%p, %p", f"{I32}, {I32}", "%k", I32) + use + RETURN

    def expected(k: int) -> str:
        left = function("g", "", integers(e=5 + k) + "return %e : tensor<i32>\n", I32)
        return module(call("g", "", "", "%k", I32) + use + RETURN, others=left)

    return Form(source=original(source, others=others), expected=expected, has=(r"@g\(\)",), has_not=(r"jax\.index",))


@form
def function_returns_the_index() -> Form:
    """The choice at the caller is decided; the call may stay, since calls are not dead to JAX."""
    others = function(
        "g",
        "%q: tensor<i32>",
        integers(five=5) + "%t = stablehlo.minimum %q, %five : tensor<i32>\nreturn %t : tensor<i32>\n",
        I32,
    )
    source = call("g", "%p", I32, "%t", I32) + case("%t") + RETURN
    return Form(
        source=original(source, others=others),
        expected=lambda k: module(branch(k) + RETURN),
        exact=False,
        has_not=(r"stablehlo\.case",),
    )


@form
def function_returns_a_table_entry_that_another_takes() -> Form:
    others = function(
        "g",
        "%q: tensor<i32>",
        integers(c=2, d=0, e=1) + table("%q", ["%c", "%d", "%e"]) + "return %t : tensor<i32>\n",
        I32,
    )
    others += function("h", TAKES, CHOICE)
    source = call("g", "%p", I32, "%t", I32) + call("h", "%t, %x", f"{I32}, {F32}") + RETURN
    return Form(
        source=original(source, others=others),
        expected=lambda k: module(call("h", "%x", F32) + RETURN, others=chosen((2, 0, 1)[k], "h")),
        exact=False,
        has_not=(r"stablehlo\.case",),
    )


@form
def function_with_the_index_as_data_is_copied_later() -> Form:
    """The value that tells the two calls apart is known only after the function was looked at once."""
    pick = function(
        "pick",
        "%q: tensor<i32>",
        integers(c=2, d=0, e=1) + table("%q", ["%c", "%d", "%e"]) + "return %t : tensor<i32>\n",
        I32,
    )
    scale = "%n = stablehlo.convert %u : (tensor<i32>) -> tensor<f32>\n%z = stablehlo.multiply %y, %n : tensor<f32>\n"
    body = scale + case("%q", x="%z") + RETURN
    types = f"{I32}, {I32}, {F32}"
    takes = "%x: tensor<f32>, %n: tensor<i32>"
    others = pick + function("g", "%u: tensor<i32>, %q: tensor<i32>, %y: tensor<f32>", body)
    source = (
        call("pick", "%p", I32, "%t", I32)
        + call("g", "%p, %t, %x", types, "%s")
        + call("g", "%p, %n, %s", types)
        + RETURN
    )

    def expected(k: int) -> str:
        number = integers(u=k)
        left = function("g", "%y: tensor<f32>", number + scale + branch((2, 0, 1)[k], x="%z") + RETURN)
        left += function("g_0", TAKES, number + body)
        return module(
            call("g", "%x", F32, "%s") + call("g_0", "%n, %s", f"{I32}, {F32}") + RETURN, takes=takes, others=left
        )

    return Form(source=original(source, takes=takes, others=others), expected=expected, exact=False)


NAMING = "stablehlo.custom_call @target({}) {{called_computations = [@g], has_side_effect = {}}}"
NAMING += " : (tensor<f32>) -> tensor<f32>\n"


@form
def function_that_a_custom_call_names_too() -> Form:
    """How the custom call calls it is not known, so it must stay as it is."""
    naming = "%s = " + NAMING.format("%x", "true")
    text = naming + call("g", "%p, %s", f"{I32}, {F32}") + RETURN
    others = function("g", TAKES, CHOICE)
    return Form(
        source=original(text, others=others),
        expected=lambda k: module(
            naming + integers(p=k) + call("g", "%p, %s", f"{I32}, {F32}") + RETURN, others=others
        ),
        runs=False,
        has=(r"@g\(%arg0: tensor<i32>, %arg1: tensor<f32>\)",),
    )


@form
def function_that_a_custom_call_of_another_platform_names() -> Form:
    """The custom call goes, so nothing but calls is left, and the function can be decided."""
    naming = "%y = " + NAMING.format("%x", "false")
    work = case("%p", ((naming, "%y"), (branch(3, "%y"), "%y"), (branch(4, "%y"), "%y")), "%s")
    others = function("g", TAKES, CHOICE)
    source = original(work + call("g", "%p, %s", f"{I32}, {F32}") + RETURN, others=others)

    def expected(k: int) -> str:
        if k == 0:
            last = integers(p=k) + call("g", "%p, %s", f"{I32}, {F32}") + RETURN
            return module(naming.replace("%y", "%s") + last, others=others)
        return module(branch(2 + k, "%s") + call("g", "%s", F32) + RETURN, others=chosen(k))

    return Form(source=source, expected=expected, runs=False)


@form
def public_function() -> Form:
    """Whoever else may call it finds it as it was."""
    others = function("g", TAKES, CHOICE, visibility="public")
    text = call("g", "%p, %x", f"{I32}, {F32}") + RETURN
    return Form(
        source=original(text, others=others),
        expected=lambda k: module(integers(p=k) + text, others=others),
        has=(r"func\.func public @g\(%arg0: tensor<i32>, %arg1: tensor<f32>\)",),
    )


@form
def public_function_that_nobody_calls() -> Form:
    others = function("g", TAKES, call("h", "%q, %y", f"{I32}, {F32}") + RETURN, visibility="public")
    others += function("h", TAKES, CHOICE)
    text = call("h", "%p, %x", f"{I32}, {F32}") + RETURN

    def expected(k: int) -> str:
        public = function("g", TAKES, call("h", "%q, %y", f"{I32}, {F32}") + RETURN, visibility="public")
        left = public + function("h", TAKES, CHOICE) + chosen(k, "h_0")
        return module(call("h_0", "%x", F32) + RETURN, others=left)

    return Form(source=original(text, others=others), expected=expected)


@form
def dead_functions_that_call_others() -> Form:
    types = f"{I32}, {F32}"
    others = function("dead", TAKES, call("deader", "%q, %y", types) + RETURN)
    others += function("deader", TAKES, call("g", "%q, %y", types) + RETURN) + function("g", TAKES, CHOICE)
    return Form(
        source=original(call("g", "%p, %x", types) + RETURN, others=others),
        expected=lambda k: module(call("g", "%x", F32) + RETURN, others=chosen(k)),
    )


@form
def functions_called_in_dead_branches_alone() -> Form:
    work = case("%p", tuple((call(f"g{k}", "%x", F32, "%y"), "%y") for k in range(3)))
    others = [function(f"g{k}", "%y: tensor<f32>", branch(k, x="%y") + RETURN) for k in range(3)]
    return Form(
        source=original(work + RETURN, others="".join(others)),
        expected=lambda k: module(call(f"g{k}", "%x", F32) + RETURN, others=others[k]),
    )


@form
def functions_that_call_one_another() -> Form:
    others = function("g", TAKES, call("h", "%q, %y", f"{I32}, {F32}") + RETURN)
    others += function("h", TAKES, call("g", "%q, %y", f"{I32}, {F32}") + RETURN)
    source = original(call("g", "%p, %x", f"{I32}, {F32}") + RETURN, others=others)
    return Form(source=source, refused=(r"function `[gh]` calls itself",))


@form
def splat_taken_by_a_function() -> Form:
    """A batched index goes into a function; the function selects."""
    vector = "tensor<5xf32>"
    body = f"""
    %one = stablehlo.constant dense<1> : tensor<5xi32>
    %below = stablehlo.compare LT, %q, %one : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %s = stablehlo.sine %y : {vector}
    %c = stablehlo.cosine %y : {vector}
    %r = stablehlo.select %below, %s, %c : tensor<5xi1>, {vector}
    return %r : {vector}
    """
    options = {"takes": f"%x: {vector}", "gives": vector}
    end = f"return %r : {vector}\n"
    types = f"tensor<5xi32>, {vector}"
    source = f"%q = {BROADCAST}\n" + call("g", "%q, %x", types, gives=vector) + end

    def expected(k: int) -> str:
        operation = "sine" if k == 0 else "cosine"
        left = function("g", f"%y: {vector}", f"%r = stablehlo.{operation} %y : {vector}\n{end}", vector)
        return module(call("g", "%x", vector, gives=vector) + end, others=left, **options)

    others = function("g", f"%q: tensor<5xi32>, %y: {vector}", body, vector)
    return Form(source=original(source, others=others, **options), expected=expected, may_stay=True)


@form
def predicate_taken_by_a_function() -> Form:
    others = function("g", "%q: tensor<i1>, %y: tensor<f32>", if_("%q").replace("%x", "%y") + RETURN)
    source = IS_FIRST + call("g", "%first, %x", f"tensor<i1>, {F32}") + RETURN
    return Form(
        source=original(source, others=others),
        expected=lambda k: module(call("g", "%x", F32) + RETURN, others=chosen(int(k > 0))),
    )


@form
def nested_export_with_numbers_of_its_own() -> Form:
    """Its argument is marked as well, but by other numbers."""
    work = integers(c=1, d=0) + table("%p", ["%c", "%d", "%d"])
    others = function(
        "g",
        f"%q: tensor<i32> {INDEX}, %y: tensor<f32>",
        CHOICE.replace("%in_r_c = stablehlo.constant dense<2.5>", "%in_r_c = stablehlo.constant dense<9.5>"),
    )
    return Form(
        source=original(work + call("g", "%t, %x", f"{I32}, {F32}") + RETURN, others=others),
        expected=lambda k: module(call("g", "%x", F32) + RETURN, others=chosen((1, 0, 0)[k])),
    )


# ---------------------------------------------------------------- composites


def composite(name: str, operands: str, types: str, result: str = "%r", decomposition: str = "d") -> str:
    attributes = f"composite_attributes = {{level = 3 : i64}}, decomposition = @{decomposition}, version = 2 : i32"
    return f'{result} = stablehlo.composite "{name}" {operands} {{{attributes}}} : ({types}) -> tensor<f32>\n'


@form
def composite_takes_the_index() -> Form:
    return Form(
        source=original(composite("my.op", "%p, %x", f"{I32}, {F32}") + RETURN, others=function("d", TAKES, CHOICE)),
        expected=lambda k: module(composite("my.op", "%x", F32) + RETURN, others=chosen(k, "d")),
        has=(r'stablehlo\.composite "my\.op" %arg0 \{', r"level = 3", r"version = 2"),
    )


@form
def composites_share_a_decomposition() -> Form:
    before = composite("my.op", "%p, %x", f"{I32}, {F32}", "%s") + composite("my.op", "%p, %s", f"{I32}, {F32}")
    after = composite("my.op", "%x", F32, "%s") + composite("my.op", "%s", F32)
    return Form(
        source=original(before + RETURN, others=function("d", TAKES, CHOICE)),
        expected=lambda k: module(after + RETURN, others=chosen(k, "d")),
    )


@form
def composites_share_a_decomposition_with_different_values() -> Form:
    before = composite("my.op", "%p, %x", f"{I32}, {F32}", "%s") + composite("my.op", "%t, %s", f"{I32}, {F32}")
    after = composite("my.op", "%x", F32, "%s") + composite("my.op", "%s", F32, decomposition="d_0")
    return Form(
        source=original(NEXT + before + RETURN, others=function("d", TAKES, CHOICE)),
        expected=lambda k: module(after + RETURN, others=chosen(k, "d") + chosen(once(k), "d_0")),
    )


@form
def composite_and_call_share_a_function() -> Form:
    before = composite("my.op", "%p, %x", f"{I32}, {F32}", "%s") + call("d", "%p, %s", f"{I32}, {F32}")
    after = composite("my.op", "%x", F32, "%s") + call("d", "%s", F32)
    return Form(
        source=original(before + RETURN, others=function("d", TAKES, CHOICE)),
        expected=lambda k: module(after + RETURN, others=chosen(k, "d")),
    )


@form
def composite_returns_the_index() -> Form:
    """The composite itself stays, since composites are not dead to JAX."""
    body = integers(five=5) + "%t = stablehlo.minimum %q, %five : tensor<i32>\nreturn %t : tensor<i32>\n"
    text = composite("my.op", "%p", I32, "%t").replace("-> tensor<f32>", "-> tensor<i32>")
    return Form(
        source=original(text + case("%t") + RETURN, others=function("d", "%q: tensor<i32>", body, I32)),
        expected=lambda k: module(
            text.replace("%p", "").replace("(tensor<i32>)", "()") + branch(k) + RETURN,
            others=function("d", "", integers(q=k) + body, I32),
        ),
    )


# ---------------------------------------------------------------- regions

VECTOR = "tensor<4xf32>"
ZERO = "%nil = stablehlo.constant dense<0.0> : tensor<f32>\n"


def in_region(text: str, **options) -> Form:
    """A form with `CHOICE(x, y)`-like text in a region; its `WORK` makes `%r` of `%a`."""
    options = {"takes": f"%x: {VECTOR}", "gives": VECTOR, **options}
    others = options.pop("others", "")
    return Form(
        source=original(text.replace("WORK", case("%p", x="%a")), others=others, **options),
        expected=lambda k: module(text.replace("WORK", branch(k, x="%a")), others=others, **options),
        runs=False,  # XLA has no regions that capture, so it cannot run the original
    )


BODY = """^bb0(%a: tensor<f32>, %b: tensor<f32>):
WORK
%s = stablehlo.add %r, %b : tensor<f32>
stablehlo.return %s : tensor<f32>
"""


@form
def in_a_reduction() -> Form:
    text = f"""
    %z = "stablehlo.reduce"(%x, %nil) ({{
    {BODY}
    }}) {{dimensions = array<i64: 0>}} : ({VECTOR}, {F32}) -> {F32}
    return %z : {F32}
    """
    return in_region(ZERO + textwrap.dedent(text), gives=F32)


@form
def in_a_window_reduction() -> Form:
    text = f"""
    %z = "stablehlo.reduce_window"(%x, %nil) ({{
    {BODY}
    }}) {{window_dimensions = array<i64: 2>, window_strides = array<i64: 1>,
          padding = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({VECTOR}, {F32}) -> {VECTOR}
    return %z : {VECTOR}
    """
    return in_region(ZERO + text)


@form
def in_a_map() -> Form:
    text = f"""
    %z = "stablehlo.map"(%x, %x) ({{
    {BODY}
    }}) {{dimensions = array<i64: 0>}} : ({VECTOR}, {VECTOR}) -> {VECTOR}
    return %z : {VECTOR}
    """
    return in_region(text)


@form
def in_a_scatter() -> Form:
    text = f"""
    %at = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>
    %new = stablehlo.slice %x [0:2] : ({VECTOR}) -> tensor<2xf32>
    %z = "stablehlo.scatter"(%x, %at, %new) ({{
    {BODY}
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}}
      : ({VECTOR}, tensor<2x1xi32>, tensor<2xf32>) -> {VECTOR}
    return %z : {VECTOR}
    """
    return in_region(text)


@form
def in_a_sort() -> Form:
    """Ascending here, descending there, by the absolute value elsewhere."""

    def compare_by(direction: str) -> str:
        return f"%r = stablehlo.compare {direction}, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"

    text = f"""
    %z = "stablehlo.sort"(%x) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      WORK
      stablehlo.return %r : tensor<i1>
    }}) {{dimension = 0 : i64, is_stable = true}} : ({VECTOR}) -> {VECTOR}
    return %z : {VECTOR}
    """
    options = {"takes": f"%x: {VECTOR}", "gives": VECTOR}
    branches = tuple((compare_by(d).replace("%r", "%c"), "%c") for d in ("LT", "GT", "LE"))
    return Form(
        source=original(text.replace("WORK", case("%p", branches, gives="tensor<i1>")), **options),
        expected=lambda k: module(text.replace("WORK", compare_by(("LT", "GT", "LE")[k])), **options),
        runs=False,
    )


@form
def call_in_a_reduction() -> Form:
    text = f"""
    %z = "stablehlo.reduce"(%x, %nil) ({{
    {BODY}
    }}) {{dimensions = array<i64: 0>}} : ({VECTOR}, {F32}) -> {F32}
    return %z : {F32}
    """
    options = {"takes": f"%x: {VECTOR}", "gives": F32}
    before = (ZERO + text).replace("WORK", call("g", "%p, %a", f"{I32}, {F32}"))
    after = (ZERO + text).replace("WORK", call("g", "%a", F32))
    return Form(
        source=original(before, others=function("g", TAKES, CHOICE), **options),
        expected=lambda k: module(after, others=chosen(k), **options),
        runs=False,
    )


# ---------------------------------------------------------------- what the user wrote


def own(text: str, **options) -> Form:
    """A module in which the platform decides one thing, and `text` makes `%y` of `%x` without it; all of that stays."""
    extra = {name: options.pop(name) for name in ("takes", "others") if name in options}
    return Form(
        source=original(text + case("%p", x="%y") + RETURN, **extra),
        expected=lambda k: module(text + branch(k, x="%y") + RETURN, **extra),
        **options,
    )


@form
def own_case_on_a_constant() -> Form:
    return own(integers(c=1) + case("%c", 4, "%y"), has=(r'"stablehlo\.case"',))


@form
def own_case_of_one_branch() -> Form:
    return own(integers(c=0) + case("%c", 1, "%y"), has=(r'"stablehlo\.case"',))


@form
def own_case_on_an_argument() -> Form:
    return own(case("%n", 4, "%y"), takes="%x: tensor<f32>, %n: tensor<i32>", has=(r'"stablehlo\.case"\(%arg1\)',))


@form
def own_case_on_a_constant_that_equals_the_index() -> Form:
    text = integers(c=0, d=1, e=2)
    for name, result, x in (("%c", "%u", "%x"), ("%d", "%v", "%u"), ("%e", "%y", "%v")):
        text += case(name, 3, result, x)
    return own(text, has=(r'("stablehlo\.case"[\s\S]*){3}',))


@form
def own_case_on_an_entry_of_a_platform_table() -> Form:
    """The table uses the constant, and so does the user: only the first is decided."""
    text = integers(c=1, d=2) + case("%c", 4, "%y")
    return Form(
        source=original(text + table("%p", ["%c", "%d", "%c"]) + case("%t", x="%y") + RETURN),
        expected=lambda k: module(integers(c=1) + case("%c", 4, "%y") + branch((1, 2, 1)[k], x="%y") + RETURN),
    )


@form
def own_select_on_constants() -> Form:
    text = "%c = stablehlo.constant dense<true> : tensor<i1>\n" + branch(3, "%u") + branch(4, "%v")
    return own(text + "%y = stablehlo.select %c, %u, %v : tensor<i1>, tensor<f32>\n", has=(r"stablehlo\.select",))


@form
def own_arithmetic_on_constants() -> Form:
    text = integers(c=1, d=1) + "%e = stablehlo.add %c, %d : tensor<i32>\n" + case("%e", 4, "%y")
    return own(text, has=(r"stablehlo\.add",))


@form
def own_loop_that_carries_a_constant() -> Form:
    work = case("%q", x="%a")
    text = COUNTING + loop([DATA, ("%q", "%unit", I32)], work, ["%r", "%q"], name="%y")
    return Form(
        source=original(text + case("%p", result="%z", x="%y#1") + "return %z : tensor<f32>\n"),
        expected=lambda k: module(text + branch(k, "%z", "%y#1") + "return %z : tensor<f32>\n"),
    )


@form
def own_function_that_takes_a_constant() -> Form:
    text = integers(c=1) + call("g", "%c, %x", f"{I32}, {F32}", "%y")
    return own(text, others=function("g", TAKES, CHOICE))


@form
def dead_operations_go() -> Form:
    dead = "%d = stablehlo.sine %x : tensor<f32>\n%e = stablehlo.add %d, %d : tensor<f32>\n"
    return Form(
        source=original(dead + case("%p") + RETURN),
        expected=lambda k: module(branch(k) + RETURN),
        has_not=(r"stablehlo\.sine",),
    )


@form
def values_for_dead_branches_go() -> Form:
    values = "".join(f"%v{k} = stablehlo.{name} %x : tensor<f32>\n" for k, name in enumerate(("sine", "cosine", "tan")))
    branches = tuple(("", f"%v{k}") for k in range(3))
    return Form(
        source=original(values + case("%p", branches) + RETURN),
        expected=lambda k: module(values.splitlines()[k].replace(f"%v{k}", "%r") + "\n" + RETURN),
    )


def effect(name: str, x: str = "%x", result: str = "%e", *, has_side_effect: bool = True) -> str:
    return (
        f"{result} = stablehlo.custom_call @{name}({x}) {{has_side_effect = {str(has_side_effect).lower()}}}"
        " : (tensor<f32>) -> tensor<f32>\n"
    )


@form
def custom_call_without_effects_that_nothing_uses() -> Form:
    return Form(
        source=original(effect("quiet", has_side_effect=False) + case("%p") + RETURN),
        expected=lambda k: module(branch(k) + RETURN),
        runs=False,
    )


@form
def custom_call_with_effects_that_nothing_uses() -> Form:
    return own("%y = stablehlo.sine %x : tensor<f32>\n" + effect("loud"), runs=False)


@form
def effects_keep_their_order() -> Form:
    branches = tuple((effect(f"a{k}") + effect(f"b{k}", "%e", "%f"), "%f") for k in range(3))
    text = effect("before", result="%y"), effect("after", "%r", "%z")
    return Form(
        source=original(text[0] + case("%p", branches) + text[1] + "return %z : tensor<f32>\n"),
        expected=lambda k: module(text[0] + branches[k][0] + text[1].replace("%r", "%f") + "return %z : tensor<f32>\n"),
        runs=False,
        has=(r"@before[\s\S]*@a\d[\s\S]*@b\d[\s\S]*@after",),
    )


@form
def branches_without_results() -> Form:
    regions = ", ".join(f"{{\n{effect(f'e{k}')}stablehlo.return\n}}" for k in range(2)) + ", {\nstablehlo.return\n}"
    return Form(
        source=original(f'"stablehlo.case"(%p) ({regions}) : (tensor<i32>) -> ()\nreturn %x : tensor<f32>\n'),
        expected=lambda k: module((effect(f"e{k}") if k < 2 else "") + "return %x : tensor<f32>\n"),
        runs=False,
    )


@form
def branches_without_operands() -> Form:
    branches = tuple(
        (f"%e = stablehlo.custom_call @e{k}() {{has_side_effect = true}} : () -> tensor<f32>", "%e") for k in range(3)
    )
    return Form(
        source=original(case("%p", branches) + RETURN),
        expected=lambda k: module(branches[k][0] + "\nreturn %e : tensor<f32>\n"),
        runs=False,
    )


@form
def branches_of_several_results() -> Form:
    def text(k: int) -> str:
        return branch(k, "%b") + branch(k + 3, "%d")

    types = f"{F32}, {F32}"
    regions = ", ".join(f"{{{text(k)}stablehlo.return %b, {'%d' if k else '%x'} : {types}\n}}" for k in range(3))
    source = f'%r:2 = "stablehlo.case"(%p) ({regions}) : (tensor<i32>) -> ({types})\nreturn %r#1, %r#0 : {types}\n'

    def expected(k: int) -> str:
        end = f"return {'%d' if k else '%x'}, %b : {types}\n"
        return module((text(k) if k else branch(k, "%b")) + end, gives=types)

    return Form(source=original(source, gives=types), expected=expected)


@form
def user_case_around_a_platform_choice() -> Form:
    takes = "%x: tensor<f32>, %n: tensor<i32>"

    def text(inner: Callable[[str], str]) -> str:
        return case("%n", ((inner("%u"), "%u"), (branch(8, "%u"), "%u"))) + RETURN

    return Form(
        source=original(text(lambda result: case("%p", result=result)), takes=takes),
        expected=lambda k: module(text(lambda result: branch(k, result)), takes=takes),
    )


@form
def user_case_that_returns_the_index_either_way() -> Form:
    """Nothing but the platform decides the second choice, but no analysis need see it: the numbers count."""
    takes = "%x: tensor<f32>, %n: tensor<i32>"
    text = case("%n", (("", "%p"), ("", "%p")), "%t", gives=I32) + case("%t") + RETURN
    return Form(
        source=original(text, takes=takes), expected=lambda k: module(branch(k) + RETURN, takes=takes), may_stay=True
    )


@form
def user_case_that_returns_the_index_or_not() -> Form:
    takes = "%x: tensor<f32>, %n: tensor<i32>"
    text = integers(c=5) + case("%n", (("", "%p"), ("", "%c")), "%t", gives=I32) + case("%t") + RETURN
    return Form(
        source=original(text, takes=takes), expected=lambda k: module(integers(p=k) + text, takes=takes), exact=False
    )


@form
def user_select_between_index_and_data() -> Form:
    takes = "%x: tensor<f32>, %n: tensor<i32>, %c: tensor<i1>"
    text = "%t = stablehlo.select %c, %p, %n : tensor<i1>, tensor<i32>\n" + case("%t") + RETURN
    return Form(source=original(text, takes=takes), expected=lambda k: module(integers(p=k) + text, takes=takes))


# ---------------------------------------------------------------- refusals


@form
def into_a_custom_call() -> Form:
    text = """
    %r = stablehlo.custom_call @target(%p, %x) {has_side_effect = true}
      : (tensor<i32>, tensor<f32>) -> tensor<f32> loc("jit(f)/f"("model.py":12:34))
    """
    return Form(source=original(text + RETURN), refused=(r"custom_call", r"model\.py:12:34"))


@form
def computed_from_the_index_into_a_custom_call() -> Form:
    text = """
    %s = stablehlo.add %p, %one : tensor<i32>
    %r = stablehlo.custom_call @target(%s, %x) {has_side_effect = true}
      : (tensor<i32>, tensor<f32>) -> tensor<f32> loc(callsite("g"("model.py":12:34) at "f"("main.py":5:6)))
    """
    return Form(source=original(integers(one=1) + text + RETURN), refused=(r"custom_call", r"model\.py:12:34"))


@form
def into_a_custom_call_of_another_platform() -> Form:
    branches = ((branch(0, "%y"), "%y"), (branch(1, "%y"), "%y"))
    text = """
    %y = stablehlo.custom_call @target(%p, %x) {has_side_effect = true}
      : (tensor<i32>, tensor<f32>) -> tensor<f32> loc("model.py":12:34)
    """
    source = original(case("%p", (*branches, (text, "%y"))) + RETURN)
    return Form(source=source, refused=(r"custom_call", r"model\.py:12:34", r"tpu"))


@form
def into_a_custom_call_that_nothing_needs() -> Form:
    text = "%u = stablehlo.custom_call @target(%p) {has_side_effect = false} : (tensor<i32>) -> tensor<f32>\n"
    return Form(
        source=original(text + case("%p") + RETURN),
        expected=lambda k: module(branch(k) + RETURN),
        refused=(r"custom_call", r"-:4:10"),
        runs=False,
    )


@forms(("float", F32), ("vector", "tensor<2xi32>"), ("boolean", "tensor<i1>"))
def index_of_another_type(kind: str) -> Form:
    return Form(source=module("return %x : tensor<f32>\n", index=kind), refused=(r"main", r"scalar integer"))


@form
def main_without_arguments() -> Form:
    text = "%r = stablehlo.constant dense<1.0> : tensor<f32>\n"
    return Form(source=module(text + RETURN, takes=""), refused=(r"`main` has no arguments",))


# ---------------------------------------------------------------- Shardy

MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
OTHER_MESH = 'sdy.mesh @other = <["y"=2]>\n'
SHARDED = '<@mesh, [{"x"}]>'
WHOLE = "<@mesh, []>"


def manual(operands: list[tuple], results: list[tuple], work: str) -> str:
    """A manual computation.

    Operands are argument, operand, outer type, inner type, sharding; results are value, inner and outer type, sharding.
    """
    inputs = ", ".join(operand for _, operand, *_ in operands)
    arguments = ", ".join(f"{name}: {inner}" for name, _, _, inner, _ in operands)
    outer = ", ".join(of for _, _, of, _, _ in operands)
    return f"""
%m{f":{len(results)}" if len(results) > 1 else ""} = sdy.manual_computation({inputs})
  in_shardings=[{", ".join(sharding for *_, sharding in operands)}]
  out_shardings=[{", ".join(sharding for *_, sharding in results)}]
  manual_axes={{"x"}} ({arguments}) {{
  {work}
  sdy.return {", ".join(value for value, *_ in results)} : {", ".join(inner for _, inner, _, _ in results)}
}} : ({outer}) -> ({", ".join(of for _, _, of, _ in results)})
"""


OUTER, INNER = "tensor<4xf32>", "tensor<2xf32>"
SHARD = ("%a", "%x", OUTER, INNER, SHARDED)
MANUAL = {"takes": f"%x: {OUTER}", "gives": OUTER}
SHARDY = {"runs": False}


def per_platform(k: int, result: str = "%r", x: str = "%a", of: str = INNER) -> str:
    return f"{result} = stablehlo.{('sine', 'cosine', 'tan')[k]} {x} : {of}\n"


def sharded_case(index: str, x: str = "%a", of: str = INNER, result: str = "%r") -> str:
    return case(index, tuple((per_platform(k, "%b", x, of), "%b") for k in range(3)), result, gives=of)


@forms(("first", 0), ("second", 1))
def manual_computation_takes_the_index(position: int) -> Form:
    operands = [SHARD]
    operands.insert(position, ("%q", "%p", I32, I32, WHOLE))
    results = [("%r", INNER, OUTER, SHARDED)]
    end = f"return %m : {OUTER}\n"
    return Form(
        source=with_mesh(original(manual(operands, results, sharded_case("%q")) + end, **MANUAL)),
        expected=lambda k: with_mesh(module(manual([SHARD], results, per_platform(k)) + end, **MANUAL)),
        **SHARDY,
    )


def with_mesh(text: str, meshes: str = MESH) -> str:
    """The text with meshes at the start of the module."""
    head, rest = text.split("{\n  func.func public @main", 1)
    return f"{head}{{\n{meshes}  func.func public @main{rest}"


@form
def manual_computation_with_a_barrier() -> Form:
    results = [("%r", INNER, OUTER, SHARDED)]
    end = f"return %m : {OUTER}\n"
    work = "%t = stablehlo.optimization_barrier %q : tensor<i32>\n" + sharded_case("%t")
    operands = [("%q", "%p", I32, I32, WHOLE), SHARD]
    return Form(
        source=with_mesh(original(manual(operands, results, work) + end, **MANUAL)),
        expected=lambda k: with_mesh(module(manual([SHARD], results, per_platform(k)) + end, **MANUAL)),
        **SHARDY,
    )


@forms(("first", 0), ("second", 1))
def manual_computation_returns_the_index(position: int) -> Form:
    """As a vector of one, since a scalar has nothing to shard; it decides outside."""
    work = "%v = stablehlo.reshape %q : (tensor<i32>) -> tensor<1xi32>\n" + sharded_case("%q")
    operands = [SHARD, ("%q", "%p", I32, I32, WHOLE)]
    data = ("%r", INNER, OUTER, SHARDED)
    results = [data]
    results.insert(position, ("%v", "tensor<1xi32>", "tensor<1xi32>", "<@mesh, [{}]>"))
    outside = f"%t = stablehlo.reshape %m#{position} : (tensor<1xi32>) -> tensor<i32>\n"
    outside += sharded_case("%t", f"%m#{1 - position}", OUTER, "%z")
    end = f"return %z : {OUTER}\n"
    return Form(
        source=with_mesh(original(manual(operands, results, work) + outside + end, **MANUAL)),
        expected=lambda k: with_mesh(
            module(manual([SHARD], [data], per_platform(k)) + per_platform(k, "%z", "%m", OUTER) + end, **MANUAL)
        ),
        **SHARDY,
    )


@form
def manual_computation_takes_nothing_else() -> Form:
    text = "%c = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
    results = [("%r", INNER, OUTER, SHARDED)]
    end = f"%z = stablehlo.add %m, %x : {OUTER}\nreturn %z : {OUTER}\n"
    operands = [("%q", "%p", I32, I32, WHOLE)]
    return Form(
        source=with_mesh(original(manual(operands, results, text + sharded_case("%q", "%c")) + end, **MANUAL)),
        expected=lambda k: with_mesh(module(manual([], results, text + per_platform(k, x="%c")) + end, **MANUAL)),
        **SHARDY,
    )


@form
def manual_computation_returns_the_index_twice_and_nothing_else() -> Form:
    """Nothing is left of it."""
    index = ("%q", I32, I32, WHOLE)
    one = ("%v", "tensor<1xi32>", "tensor<1xi32>", "<@mesh, [{}]>")
    work = "%v = stablehlo.reshape %q : (tensor<i32>) -> tensor<1xi32>\n"
    outside = sharded_case("%m#0", "%x", OUTER) + "%t = stablehlo.reshape %m#1 : (tensor<1xi32>) -> tensor<i32>\n"
    outside += sharded_case("%t", "%r", OUTER, "%z") + f"return %z : {OUTER}\n"
    text = manual([("%q", "%p", I32, I32, WHOLE)], [index, one], work) + outside

    def expected(k: int) -> str:
        left = per_platform(k, "%r", "%x", OUTER) + per_platform(k, "%z", "%r", OUTER) + f"return %z : {OUTER}\n"
        return module(left, **MANUAL)

    return Form(source=with_mesh(original(text, **MANUAL)), expected=expected, **SHARDY)


@form
def manual_computation_returns_the_index_as_data() -> Form:
    """Main returns it in turn: a number, made outside."""
    index = ("%v", "tensor<1xi32>", "tensor<1xi32>", "<@mesh, [{}]>")
    data = ("%r", INNER, OUTER, SHARDED)
    work = "%v = stablehlo.reshape %q : (tensor<i32>) -> tensor<1xi32>\n" + sharded_case("%q")
    gives = f"{OUTER}, tensor<1xi32>"
    before = manual([SHARD, ("%q", "%p", I32, I32, WHOLE)], [index, data], work)
    takes = MANUAL["takes"]

    def expected(k: int) -> str:
        left = f"%c = stablehlo.constant dense<{k}> : tensor<1xi32>\n" + manual([SHARD], [data], per_platform(k))
        return with_mesh(module(left + f"return %m, %c : {gives}\n", takes=takes, gives=gives))

    source = original(before + f"return %m#1, %m#0 : {gives}\n", takes=takes, gives=gives)
    return Form(source=with_mesh(source), expected=expected, **SHARDY)


@form
def manual_computation_in_another() -> Form:
    both = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
    part = "tensor<1xf32>"
    within = ("%b", "%a", INNER, part, '<@mesh, [{"y"}]>')
    result = ("%e", part, INNER, '<@mesh, [{"y"}]>')
    outer = ("%n", INNER, OUTER, SHARDED)
    end = f"return %m : {OUTER}\n"

    def text(operands: list, inner: list, work: str) -> str:
        nested = manual(inner, [result], work).replace("%m", "%n").replace('manual_axes={"x"}', 'manual_axes={"y"}')
        return manual(operands, [outer], nested) + end

    choice = sharded_case("%s", "%b", part, "%e").replace("%b =", "%f =").replace("return %b", "return %f")
    before = text([("%q", "%p", I32, I32, WHOLE), SHARD], [within, ("%s", "%q", I32, I32, WHOLE)], choice)
    return Form(
        source=with_mesh(original(before, **MANUAL), both),
        expected=lambda k: with_mesh(
            module(text([SHARD], [within], per_platform(k, "%e", "%b", part)), **MANUAL), both
        ),
        **SHARDY,
    )


@form
def constrained_index() -> Form:
    """A sharding of a scalar says nothing."""
    work = "%t = sdy.sharding_constraint %p <@mesh, []> : tensor<i32>\n" + sharded_case("%t", "%x", OUTER)
    end = f"return %r : {OUTER}\n"
    return Form(
        source=with_mesh(original(work + end, **MANUAL)),
        expected=lambda k: module(per_platform(k, "%r", "%x", OUTER) + end, **MANUAL),
        may_stay=True,
        **SHARDY,
    )


@form
def loop_around_a_manual_computation() -> Form:
    data = ("%a", "%x", OUTER)
    inner = ("%b", "%a", OUTER, INNER, SHARDED)
    results = [("%r", INNER, OUTER, SHARDED)]
    end = f"return %w#1 : {OUTER}\n"
    before = manual(
        [("%s", "%q", I32, I32, WHOLE), inner],
        results,
        sharded_case("%s", "%b").replace("%b =", "%e =").replace("return %b", "return %e"),
    )
    return Form(
        source=with_mesh(original(COUNTING + loop([data, ("%q", "%p", I32)], before, ["%m", "%q"]) + end, **MANUAL)),
        expected=lambda k: with_mesh(
            module(COUNTING + loop([data], manual([inner], results, per_platform(k, x="%b")), ["%m"]) + end, **MANUAL)
        ),
        **SHARDY,
    )


def constraint(x: str, result: str, mesh: str, axis: str) -> str:
    return f'{result} = sdy.sharding_constraint {x} <@{mesh}, [{{"{axis}"}}]> : {OUTER}\n'


@form
def meshes_of_dead_branches_go() -> Form:
    branches = (
        (constraint("%x", "%b", "mesh", "x"), "%b"),
        (constraint("%x", "%b", "other", "y"), "%b"),
        (per_platform(2, "%b", "%x", OUTER), "%b"),
    )
    end = f"return %r : {OUTER}\n"

    def expected(k: int) -> str:
        text = module(branches[k][0].replace("%b", "%r") + end, **MANUAL)
        return with_mesh(text, (MESH, OTHER_MESH, "")[k])

    source = with_mesh(original(case("%p", branches, gives=OUTER) + end, **MANUAL), MESH + OTHER_MESH)
    return Form(source=source, expected=expected, **SHARDY)


@form
def meshes_that_others_use_stay() -> Form:
    takes = f'%x: {OUTER} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}'
    branches = tuple(
        (constraint("%x", "%b", *where), "%b") for where in (("mesh", "x"), ("other", "y"), ("other", "y"))
    )
    end = f"return %r : {OUTER}\n"

    def expected(k: int) -> str:
        text = module(branches[k][0].replace("%b", "%r") + end, takes=takes, gives=OUTER)
        return with_mesh(text, MESH if k == 0 else MESH + OTHER_MESH)

    source = with_mesh(original(case("%p", branches, gives=OUTER) + end, takes=takes, gives=OUTER), MESH + OTHER_MESH)
    return Form(source=source, expected=expected, **SHARDY)


# ---------------------------------------------------------------- symbolic dimensions


def symbolic_specs() -> list:
    (b,) = export.symbolic_shape("b")
    return [jax.ShapeDtypeStruct((b,), np.float32)]


DYNAMIC = "tensor<?xf32>"
B = '%b: tensor<i32> {jax.global_constant = "b"}'


def symbolic(work: Callable[[str], str], left: Callable[[int], str], **options) -> Form:
    """A module with a dimension `b`, that starts by making its shape `%shape`."""
    start = "%shape = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>\n" if options.pop("shape", False) else ""
    end = f"return %r : {DYNAMIC}\n"
    settings = {"takes": f"{B}, %x: {DYNAMIC}", "gives": DYNAMIC, "symbolic": True}
    return Form(
        source=original(start + work("%p") + end, **settings),
        expected=lambda k: module(start + left(k) + end, **settings),
        specs=symbolic_specs,
        runs=False,
        has=(r"jax\.uses_shape_polymorphism = true", r'jax\.global_constant = "b"'),
        has_not=("_platform_index",),
        **options,
    )


@form
def symbolic_shapes_stay() -> Form:
    return symbolic(
        lambda p: case(p, tuple((per_platform(k, "%c", "%x", DYNAMIC), "%c") for k in range(3)), gives=DYNAMIC),
        lambda k: per_platform(k, "%r", "%x", DYNAMIC),
    )


def dynamic_splat(operand: str, result: str) -> str:
    kind = "(tensor<i32>, tensor<1xi32>) -> tensor<?xi32>"
    return f"{result} = stablehlo.dynamic_broadcast_in_dim {operand}, %shape, dims = [] : {kind}\n"


COMPARED = "%below = stablehlo.compare LT, %q, %ones : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi1>\n"


@form
def vmapped_choice_over_a_symbolic_dimension() -> Form:
    select = f"%r = stablehlo.select %below, %u, %v : tensor<?xi1>, {DYNAMIC}\n"
    values = per_platform(0, "%u", "%x", DYNAMIC) + per_platform(1, "%v", "%x", DYNAMIC)
    ones = integers(one=1) + dynamic_splat("%one", "%ones")
    return dataclasses.replace(
        symbolic(
            lambda p: values + ones + dynamic_splat(p, "%q") + COMPARED + select,
            lambda k: per_platform(int(k > 0), "%r", "%x", DYNAMIC),
            shape=True,
        ),
        exact=False,
    )


@form
def dynamic_splat_carried_by_a_loop() -> Form:
    """No constant has a dynamic type: what needs one uses the broadcast outside."""
    numbers = (
        "%n = stablehlo.convert %q : (tensor<?xi32>) -> tensor<?xf32>\n%y = stablehlo.add %a, %n : tensor<?xf32>\n"
    )
    carried = [("%a", "%x", DYNAMIC), ("%q", "%splat", "tensor<?xi32>")]

    def text(looped: str) -> str:
        return COUNTING + dynamic_splat("{}", "%splat") + looped.replace("{", "{{").replace("}", "}}")

    before = text(loop(carried, numbers, ["%y", "%q"]))
    after = text(loop(carried[:1], numbers.replace("%q", "%splat"), ["%y"]))
    last = f"%r = stablehlo.sine %w#1 : {DYNAMIC}\n"
    return symbolic(
        lambda p: before.format(p) + last,
        lambda k: integers(k=k) + after.format("%k") + last,
        shape=True,
        exact=False,
    )


# ---------------------------------------------------------------- attributes


@form
def attributes_keep_their_places() -> Form:
    attributes = MODULE_ATTRIBUTES + ', my.note = "kept", my.list = [1, 2]'
    takes = (
        '%x: tensor<f32> {tf.aliasing_output = 1 : i32}, %y: tensor<f32> {mhlo.sharding = "{replicated}"}, '
        "%z: tensor<f32> {jax.buffer_donor = true}, %u: tensor<f32>"
    )
    gives = 'tensor<f32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}'
    text = "%s = stablehlo.add %y, %z : tensor<f32>\n"
    end = "return %s, %r : tensor<f32>, tensor<f32>\n"
    options = {"takes": takes, "gives": gives, "attributes": attributes}
    return Form(
        source=original(text + case("%p") + end, **options),
        expected=lambda k: module(text + branch(k) + end, **options),
        has=(
            r"@main\(%arg0: tensor<f32> \{tf\.aliasing_output = 1 : i32\}, "
            r'%arg1: tensor<f32> \{mhlo\.sharding = "\{replicated\}"\}, '
            r"%arg2: tensor<f32> \{jax\.buffer_donor = true\}, %arg3: tensor<f32>\)",
            r'result\[0\]"\}, tensor<f32> \{jax\.result_info = "result\[1\]"\}',
            r'my\.note = "kept"',
            r"jax\.uses_shape_polymorphism = false",
        ),
    )


@form
def attributes_of_main_itself() -> Form:
    def mark(text: str) -> str:
        return text.replace(f"-> ({F32}) {{\n", f"-> ({F32}) attributes {{my.function = 7 : i64}} {{\n", 1)

    return Form(
        source=mark(original(case("%p") + RETURN)),
        expected=lambda k: mark(module(branch(k) + RETURN)),
        has=(r"attributes \{my\.function = 7 : i64\}",),
    )


@form
def attributes_of_operations() -> Form:
    text = '%s = stablehlo.add %x, %x {mhlo.frontend_attributes = {a = "b"}} : tensor<f32>\n'
    return Form(
        source=original(text + case("%p", x="%s") + RETURN),
        expected=lambda k: module(text + branch(k, x="%s") + RETURN),
        has=(r'mhlo\.frontend_attributes = \{a = "b"\}',),
    )


@form
def main_with_nothing_but_the_index() -> Form:
    branches = tuple((f"%c = stablehlo.constant dense<{k}.5> : tensor<f32>", "%c") for k in range(3))
    return Form(
        source=original(case("%p", branches) + RETURN, takes=""),
        expected=lambda k: module(branches[k][0] + "\nreturn %c : tensor<f32>\n", takes=""),
        has=(r"@main\(\)",),
    )


# ---------------------------------------------------------------- writing, wrapping, splitting

VERSION = re.compile(rb"ML\xefR.StableHLO_v([\d.]+)\0", re.DOTALL)


def specs_of(text: str) -> list[jax.ShapeDtypeStruct]:
    """The arguments of `main`, without the index and dimension variables."""
    head = re.search(r"@main\((.*?)\) -> \(", text, re.DOTALL).group(1)
    found = re.findall(r"%\w+: tensor<([\w?]+)>(?! \{jax\.global_constant)", head)
    return [spec(kind) for kind in found]


def spec(kind: str) -> jax.ShapeDtypeStruct:
    """The abstract value of `4x2xf32`."""
    *shape, element = kind.split("x")
    names = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "i1": np.bool_}
    return jax.ShapeDtypeStruct(tuple(map(int, shape)), names[element])


def results_of(text: str) -> list[jax.ShapeDtypeStruct]:
    gives = re.search(r"@main\(.*?\) -> \((.*?)\)\s*(?:attributes[^\n]*)?\{\n", text, re.DOTALL).group(1)
    return [spec(kind) for kind in re.findall(r"tensor<([\w?]+)>", gives)]


WRAPPERS: dict[tuple, export.Exported] = {}


def wrapper(specs: list, results: list | None, platforms: tuple[str, ...]) -> export.Exported:
    """An export of a function that does nothing, with the signature of a module."""
    key = (str(specs), str(results), platforms)
    if key not in WRAPPERS:

        def nothing(*arguments):
            return arguments if results is None else tuple(jnp.zeros(r.shape, r.dtype) for r in results)

        WRAPPERS[key] = export.export(jax.jit(nothing, keep_unused=True), platforms=platforms)(*specs)
    return WRAPPERS[key]


def as_number(text: str, k: int) -> str:
    """The original with a constant in place of the index."""
    text = re.sub(r"%p: tensor<i32> \{[^}]*\}(, )?", "", text)
    return re.sub(r"(@main\(.*?\) -> \(.*?\) \{\n)", lambda head: head.group(1) + integers(p=k), text, count=1)


@functools.cache
def text_of(artifact: bytes) -> str:
    """The assembly, without locations."""
    with jax_mlir.make_ir_context():
        return str(artifacts.deserialize(artifact))


@functools.cache
def graph_of(text: str, version: str) -> Graph:
    """The graph of what a module should become; many forms become the same."""
    return Graph.read(written(text, version))


def written(text: str, version: str) -> bytes:
    """A portable artifact with everything that is in the text, dead operations too, where the writer can."""
    if "sdy." in text:
        return written_by_jax(text, version)
    return bytes(stablehlo.serialize_portable_artifact_str(text, version))


def written_by_jax(text: str, version: str) -> bytes:
    """A portable artifact as JAX writes it, which deletes dead operations."""
    if "sdy." in text and not artifacts.HOLD_SHARDY:
        pytest.skip(f"JAX {jax.__version__} writes Shardy's operations as custom calls")
    with jax_mlir.make_ir_context():
        return artifacts.serialize(ir.Module.parse(text), version)


@dataclasses.dataclass
class Run:
    """A form, wrapped and split."""

    form: Form
    version: str
    original: export.Exported
    code: int
    stderr: str
    directory: Path

    @classmethod
    def of(cls, built: Form, tool: Tool, directory: Path, write: Callable[[str, str], bytes] = written) -> "Run":
        specs = built.specs() if built.specs else specs_of(built.source)
        results = None if built.specs else results_of(built.source)
        exported = wrapper(specs, results, PLATFORMS[: built.platforms])
        version = VERSION.match(exported.mlir_module_serialized).group(1).decode()
        exported = dataclasses.replace(exported, mlir_module_serialized=write(built.source, version))
        path = directory / "model.jax_exported"
        path.write_bytes(exported.serialize())
        outcome = tool.run("split", path, "-o", f"{directory}/out/")
        return cls(built, version, exported, outcome.returncode, outcome.stderr.decode(), directory / "out")

    def splits(self) -> list[export.Exported]:
        assert self.code == 0, self.stderr
        paths = (self.directory / f"model.{platform}.jax_exported" for platform in self.original.platforms)
        return [export.deserialize(bytearray(path.read_bytes())) for path in paths]


@pytest.fixture(params=list(FORMS))
def built(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]()


@pytest.fixture(autouse=True)
def precision(request: pytest.FixtureRequest):
    """Sixty-four bits where the form wants them."""
    found = request.getfixturevalue("built") if "built" in request.fixturenames else None
    if found is None or not found.x64:
        yield
        return
    with enable_x64():
        yield


NUMBERS: dict[str, list[bytes]] = {}


def numbers(exported: export.Exported, arguments: list) -> list[bytes]:
    """What an export computes; many forms become the same module, which need not run again."""
    text = text_of(exported.mlir_module_serialized)
    if text not in NUMBERS:
        NUMBERS[text] = [np.asarray(x).tobytes() for x in jax.tree.leaves(jax.jit(exported.call)(*arguments))]
    return NUMBERS[text]


def argument(spec: jax.ShapeDtypeStruct, position: int) -> np.ndarray:
    """Distinct numbers that multiplication keeps exact, in whichever order; integers and booleans are small."""
    size = int(np.prod(spec.shape))
    if spec.dtype == np.float32:
        return ((np.arange(size) + 1.25 + position) / 4).reshape(spec.shape).astype(spec.dtype)
    return np.ones(spec.shape, spec.dtype)


def runnable(exported: export.Exported) -> export.Exported:
    """The export as one for CPU, whose shapes need no refinement."""
    return dataclasses.replace(exported, platforms=("cpu",), uses_global_constants=False)


def test_form_is_split(built: Form, tool: Tool, tmp_path: Path):
    run = Run.of(built, tool, tmp_path)
    if built.refused and (run.code != 0 or built.expected is None):
        assert run.code == 1, run.stderr
        for pattern in built.refused:
            assert re.search(pattern, run.stderr), f"{pattern} is not in:\n{run.stderr}"
        assert not run.directory.exists() or not list(run.directory.iterdir())
        return
    splits = run.splits()
    for number, split in enumerate(splits):
        where = split.platforms[0]
        graph, text = Graph.read(split.mlir_module_serialized), text_of(split.mlir_module_serialized)
        expected = graph_of(built.expected(number), run.version)
        left = graph_of(as_number(built.source, number), run.version) if built.may_stay else expected
        if len(graph.raw_operations()) == len(left.raw_operations()):
            expected = left
        difference = compare(graph, expected)
        assert difference is None, f"{where}: left is the split, right the expected\n{difference}\n{text}"
        if built.exact:
            found, wanted = (collections.Counter(raw.name for raw in g.raw_operations()) for g in (graph, expected))
            assert found == wanted, f"{where}: more {found - wanted}, fewer {wanted - found}\n{text}"
            assert sorted(graph.functions) == sorted(expected.functions), f"{where}\n{text}"
        assert "_platform_index" not in text.split("@main", 1)[1].split("\n", 1)[0], where
        for pattern in built.has:
            assert re.search(pattern, text), f"{where}: {pattern} is not in\n{text}"
        for pattern in built.has_not:
            assert not re.search(pattern, text), f"{where}: {pattern} is in\n{text}"
        assert split.uses_global_constants == (built.specs is not None), where
    paths = [run.directory / f"model.{platform}.jax_exported" for platform in run.original.platforms]
    outcome = tool.run("verify", *paths, "--against", tmp_path / "model.jax_exported")
    assert outcome.returncode == 0, (outcome.stdout + outcome.stderr).decode()
    if built.runs:
        assert_numbers(built, run, splits)


def assert_numbers(built: Form, run: Run, splits: list[export.Exported]) -> None:
    """The original runs with the index as an ordinary first argument."""
    specs = specs_of(built.source)
    index = np.int64 if built.x64 else np.int32
    asked = wrapper([jax.ShapeDtypeStruct((), index), *specs], results_of(built.source), ("cpu",))
    asked = dataclasses.replace(asked, mlir_module_serialized=run.original.mlir_module_serialized)
    arguments = [argument(spec, position) for position, spec in enumerate(specs)]
    program = jax.jit(runnable(asked).call)
    for number, split in enumerate(splits):
        expected = [np.asarray(x).tobytes() for x in jax.tree.leaves(program(index(number), *arguments))]
        assert numbers(runnable(split), arguments) == expected, split.platforms[0]


def test_form_is_written_as_jax_writes_it(built: Form, tool: Tool, tmp_path: Path):
    if built.refused and built.expected is None:
        pytest.skip("nothing is written")
    if not built.canonical:
        pytest.skip("JAX's writer shares the number with a constant")
    run = Run.of(built, tool, tmp_path, written_by_jax)

    def rewritten(artifact: bytes) -> bytes:
        with jax_mlir.make_ir_context():
            return artifacts.serialize(artifacts.deserialize(artifact), run.version)

    source = bytes(run.original.mlir_module_serialized)
    if rewritten(source) != source:
        pytest.skip("JAX itself writes it differently when it writes it again")
    for split in run.splits():
        artifact = bytes(split.mlir_module_serialized)
        assert rewritten(artifact) == artifact, f"{split.platforms[0]}\n{text_of(artifact)}"
