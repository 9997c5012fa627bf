"""Symbolic dimensions in the words of JAX, such as `2*b + 1`, and their sizes.

A callback's metadata says its shapes in the variables of the module that it was exported in. What is known when it is
called is the sizes of its operands, and those of the arguments of the module.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

# JAX's operations on dimensions, under the names that it writes them with.
_FUNCTIONS: dict[str, Callable[..., Any]] = {"floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


class UnknownDimension(Exception):
    """A dimension has a variable whose size is not known, or cannot be read."""


def size(text: str, sizes: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] = _FUNCTIONS) -> Any:
    """The size of a dimension, given those of its variables: an integer, or whatever these are and `functions` take.

    Raises `UnknownDimension`.
    """
    if text.isdecimal():
        return int(text)
    if text in sizes:
        return sizes[text]
    try:
        return _value(ast.parse(text.replace("^", "**"), mode="eval").body, sizes, functions)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UnknownDimension(text) from error


def shape(texts: Iterable[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of all dimensions of an array. Raises `UnknownDimension`."""
    return tuple(size(text, sizes) for text in texts)


def is_static(texts: Iterable[str]) -> bool:
    """Whether all dimensions are numbers."""
    return all(text.isdecimal() for text in texts)


def solve(symbolic: Iterable[Sequence[str]], actual: Iterable[Sequence[int]]) -> dict[str, int]:
    """Sizes of variables, from arrays whose sizes are known: those that stand alone, then those in linear terms."""
    # The integers of a key have a dimension more than the key, and what is not known stands for nothing.
    arrays = zip(symbolic, actual, strict=False)
    pairs = [pair for texts, sizes in arrays for pair in zip(texts, sizes, strict=False)]
    found = {text: known for text, known in pairs if text.isidentifier()}
    for text, known in pairs:
        if not text.isdecimal() and not text.isidentifier():
            found |= _solve_linear(text, known, found)
    return found


def variables(text: str) -> set[str]:
    """The variables of a dimension. Raises `UnknownDimension` for what is none."""
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise UnknownDimension(text) from error
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}


def _solve_linear(text: str, known: int, found: Mapping[str, int]) -> dict[str, int]:
    try:
        (name,) = variables(text) - found.keys()
        at_zero, at_one = (size(text, {**found, name: at}) for at in (0, 1))
        candidate = (known - at_zero) // (at_one - at_zero)
        return {name: candidate} if size(text, {**found, name: candidate}) == known else {}
    except (ValueError, ZeroDivisionError, UnknownDimension):
        return {}


def _value(node: ast.expr, sizes: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes, functions)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, sizes, functions), _value(right, sizes, functions))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in functions:
            return functions[name](*(_value(argument, sizes, functions) for argument in arguments))
    raise UnknownDimension(ast.unparse(node))
