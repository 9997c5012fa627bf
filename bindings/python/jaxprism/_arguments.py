"""What users give to functions of the package, looked at before anything is done with it."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxprism._errors import JaxprismError

Source = bytes | bytearray | memoryview | str | os.PathLike[str]
"""An export: its bytes (any object with a buffer will do), or the path of a file."""

Table = Mapping[str, Any] | str | os.PathLike[str]
"""Further platforms and targets: what would be in a file for `--table`, or the path of one."""


def source(given: Source) -> bytes | str:
    """Bytes, or a path. Raises `TypeError`."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, (str, os.PathLike)):
        return path(given)
    try:
        return memoryview(given).tobytes()
    except TypeError:
        raise TypeError(
            f"an export is given as bytes or as the path of a file, not as {type(given).__name__}"
        ) from None


def sources(given: Mapping[str, Source]) -> list[tuple[str, bytes | str]]:
    """Exports by platform."""
    if not isinstance(given, Mapping):
        raise TypeError(f"`sources` is a mapping from platforms to exports, such as {{'cpu': …}}, not {given!r}")
    if given:
        platforms(given)
    return [(platform, source(export)) for platform, export in given.items()]


def path(given: str | os.PathLike[str]) -> str:
    """The path of a file, as a text that stands for its bytes."""
    name = os.fsdecode(given)
    os.fsencode(name)  # refuses what is no name on this system
    return name


def contents(given: Source) -> bytes:
    """What is in an export. Raises `JaxprismError` for files that cannot be read."""
    found = source(given)
    return found if isinstance(found, bytes) else read(found)


def read(name: str) -> bytes:
    """What is in a file. Raises `JaxprismError`."""
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise JaxprismError(f"cannot read `{name}`: {error.strerror}", kind="io") from error


def table(given: Table | None) -> str | None:
    """A table as JSON. Raises `JaxprismError` for files that cannot be read."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return json.dumps(given, default=_as_dict)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"`table` is a mapping or the path of a file, not {given!r}")
    try:
        return read(path(given)).decode()
    except UnicodeDecodeError as error:
        raise JaxprismError(f"`{Path(given)}` is no text: {error}", kind="format") from error


def _as_dict(given: Any) -> Any:
    if isinstance(given, Mapping):
        return dict(given)
    raise TypeError(f"`table` holds {given!r}, which is no JSON")


def rules(callback: Mapping[str, str] | None) -> list[str]:
    """The rules of `callback`, as on the command line."""
    if callback is None:
        return []
    if not isinstance(callback, Mapping):
        raise TypeError(f"`callback` is a mapping from names to policies, such as {{'log': 'strip'}}, not {callback!r}")
    for pattern, policy in callback.items():
        if not isinstance(pattern, str) or not isinstance(policy, str):
            raise TypeError(f"`callback` has the rule {pattern!r}: {policy!r}, and both are to be texts")
        if "=" in pattern:
            raise JaxprismError(f"`callback` has a rule for {pattern!r}, and no name holds a `=`", kind="refused")
    return [f"{pattern}={policy}" for pattern, policy in callback.items()]


def exports(policies: Iterable[str | None], given: Mapping[str, Source] | None) -> list[tuple[str, bytes | str]]:
    """The exports that policies `call:NAME` mean: those given by name, else files of that name."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"`exports` is a mapping from names to exports, such as {{'lookup': …}}, not {given!r}")
    called = sorted({policy.removeprefix("call:") for policy in policies if policy and policy.startswith("call:")})
    unused = next((name for name in given or {} if name not in called), None)
    if unused is not None:
        raise JaxprismError(
            f"`exports` has {unused!r}, and no policy calls it", kind="refused", hint=f"a policy is `call:{unused}`"
        )
    return [(name, source((given or {}).get(name, name))) for name in called]


def policy(given: str, what: str) -> str:
    """A policy by its name."""
    if not isinstance(given, str):
        raise TypeError(f"`{what}` is the name of a policy, such as 'strip', not {given!r}")
    return given


def texts(given: Iterable[str], what: str) -> list[str]:
    """Several texts; one alone would be taken for its letters."""
    example = ("cpu",) if what == "platforms" else ("mine",)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"`{what}` is several texts, such as {example!r}, not {given!r}")
    listed = [str(text) if isinstance(text, str) else text for text in given]
    for text in listed:
        if not isinstance(text, str) or not text or "\n" in text:
            raise TypeError(f"`{what}` holds {text!r}, which is no name")
    return listed


def platforms(given: Iterable[str] | None) -> list[str]:
    """Names of platforms, each once; none if all are meant."""
    if given is None:
        return []
    listed = texts(given, "platforms")
    if not listed:
        raise JaxprismError("`platforms` names no platform", kind="refused", hint="without it, all are meant")
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise JaxprismError(f"`platforms` names `{twice}` twice", kind="refused")
    if "gpu" in listed:
        raise JaxprismError("`gpu` is no platform of an export", kind="refused", hint="name `cuda` or `rocm`")
    return listed


def version(given: str | None, what: str) -> str | None:
    """A version, where one is given."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"`{what}` is a version, such as '1.9.0', not {given!r}")
    return given
