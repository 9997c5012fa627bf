"""Names of callbacks: what a file calls the functions that stay outside of it.

A name is given with `named`, or is the function's module and qualified name. It is *stable* if the same source gives
the same name however the program around it is edited: names of lambdas, of functions inside functions and of partials
say where the function stood, not what it is.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from jaxprism._errors import CallbackNameError

F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE = "__jaxprism_name__"


def named(name: str) -> Callable[[F], F]:
    """Gives a callback the name by which it is bound after loading.

    >>> @named("log")
    ... def log(x): ...

    Functions that share a given name share one binding. An object that takes no attributes (a bound method, a builtin),
    or that has another name already, is wrapped instead of changed.
    """
    _check(name)

    def give(function: F) -> F:
        if not callable(function):
            raise TypeError(f"`named` gives names to functions, not to {function!r}")
        if getattr(function, ATTRIBUTE, name) == name:
            try:
                setattr(function, ATTRIBUTE, name)
                return function
            except (AttributeError, TypeError):
                pass

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        functools.update_wrapper(wrapper, function)
        setattr(wrapper, ATTRIBUTE, name)
        return wrapper  # type: ignore[return-value]

    return give


class Name(NamedTuple):
    """The name of a callback in one export."""

    text: str
    stable: bool
    function: str  # module:qualname, for people


class Names:
    """The functions of one export, and of its gradients, by name."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.unstable: list[str] = []
        self._given: set[str] = set()
        self._adopted: set[str] = set()

    def name(self, function: Callable[..., Any]) -> Name:
        """The name of `function`: the same one whenever the same function is met."""
        origin, stable = _origin(function)
        given = getattr(function, ATTRIBUTE, None) or getattr(origin, ATTRIBUTE, None)
        if given is not None:
            return Name(self._give(given, function), True, _place(origin))
        base = _place(origin).replace(":", ".", 1)
        number, text = 1, base
        while text in self.functions and (text in self._given or not same(self.functions[text], function)):
            number += 1
            text = f"{base}#{number}"
        # Which of several functions of one name is the second depends on the order of the program.
        stable = stable and number == 1
        if text not in self.functions:
            self.functions[text] = function
            if not stable:
                self.unstable.append(text)
        return Name(text, stable, _place(origin))

    def adopt(self, name: str, function: Callable[..., Any]) -> None:
        """Takes over what was bound to a name in an export that this one calls.

        Raises `CallbackNameError` if the name means another function here already: the file has one for each name.
        """
        self._check_adopted(name, function)
        self._adopted.add(name)
        self.functions.setdefault(name, function)

    def _check_adopted(self, name: str, function: Callable[..., Any]) -> None:
        known = self.functions.get(name, function)
        if not same(known, function):
            raise CallbackNameError(
                f"`{name}` is bound to two functions in what is exported, {_place(_origin(known)[0])} and "
                f"{_place(_origin(function)[0])}: after loading it would be one"
            )

    def _give(self, name: str, function: Callable[..., Any]) -> str:
        if name in self._adopted:
            self._check_adopted(name, function)
        elif name in self.functions and name not in self._given:
            raise CallbackNameError(
                f"`{name}` is the automatic name of {_place(_origin(self.functions[name])[0])}: "
                f"give {_place(_origin(function)[0])} another one"
            )
        self._given.add(name)
        self.functions.setdefault(name, function)
        return name


def same(one: Any, other: Any) -> bool:
    """Whether two objects are the same callback.

    A function inside a function is made anew whenever JAX traces what is around it; it counts as the same if its code
    is, and everything that it sees.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, functools.partial):
        return (
            same(one.func, other.func) and _all_same(one.args, other.args) and _same_dicts(one.keywords, other.keywords)
        )
    if isinstance(one, types.MethodType):
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    if isinstance(one, types.FunctionType):
        return (
            one.__code__ is other.__code__
            and _all_same(one.__defaults__ or (), other.__defaults__ or ())
            and _same_dicts(one.__kwdefaults__ or {}, other.__kwdefaults__ or {})
            and _all_same(_cells(one), _cells(other))
        )
    return False


def _cells(function: types.FunctionType) -> list[Any]:
    empty = object()  # a cell that is not filled yet equals nothing
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:
            contents.append(empty)
    return contents


def _all_same(ones: Any, others: Any) -> bool:
    return len(ones) == len(others) and all(a is b for a, b in zip(ones, others, strict=True))


def _same_dicts(ones: dict[str, Any], others: dict[str, Any]) -> bool:
    return ones.keys() == others.keys() and all(ones[key] is others[key] for key in ones)


def _origin(function: Any) -> tuple[Any, bool]:
    """The function inside all partials, and whether its name is stable."""
    origin = function
    while isinstance(origin, functools.partial):
        origin = origin.func
    return origin, origin is function and "<" not in _qualname(origin)


def _qualname(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _place(function: Any) -> str:
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{_qualname(function)}"


def _check(name: str) -> None:
    """Refuses names that an option `PLATFORM:NAME=POLICY` cannot say, or that an automatic `#2` could collide with."""
    if not isinstance(name, str) or not name:
        raise CallbackNameError(f"the name of a callback is a text that is not empty, not {name!r}")
    if name != name.strip() or not name.isprintable() or set(name) & set("=#:*?"):
        raise CallbackNameError(
            f"the name {name!r} of a callback has `=`, `#`, `:`, `*`, `?`, outer blanks or unprintable characters"
        )
