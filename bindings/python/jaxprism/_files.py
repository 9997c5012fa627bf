"""Files: splitting, stripping and looking at them. Nothing here imports JAX."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, overload

from jaxprism import _native

Source = bytes | bytearray | memoryview | str | os.PathLike[str]
"""An export: its bytes, or the path of a file."""


def _source(source: Source) -> bytes | str:
    """What the compiled part takes: bytes, or a path."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, (bytearray, memoryview)):
        return bytes(source)
    return os.fspath(source)


def _rules(callback: Mapping[str, str] | None) -> list[str]:
    return [f"{pattern}={policy}" for pattern, policy in (callback or {}).items()]


@overload
def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    table: str | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    out: None = None,
) -> dict[str, bytes]: ...


@overload
def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    table: str | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    out: str | os.PathLike[str],
) -> dict[str, Path]: ...


def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    table: str | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> dict[str, bytes] | dict[str, Path]:
    """Splits an export for several platforms into one export per platform, all vector-Jacobian products included.

    Args:
      source: the export: bytes, or the path of a file.
      platforms: the platforms to write; all of the export if ``None``.
      callbacks: the policy of all callbacks without a rule: ``"lower"``, ``"keep"``, ``"strip"``, ``"stub:zeros"``, ``"stub:nan"``,
        ``"stub:operand:K"``, ``"stub:alias"``, ``"host"``, ``"unpartition"``, ``"ffi:TARGET"`` or ``"refuse"``.
      callback: rules: the policy of the callbacks that ``"[PLATFORM:]NAME"`` names. Exact names come before those with ``*`` and ``?``, a
        platform before none, and among alike the later one.
      on_unsupported: the policy of callbacks without a rule that a platform cannot run.
      table: further platforms and targets that callbacks are lowered to, as JSON text.
      strip_locations: make every source location unknown.
      redact_paths: take the directories from the file names in source locations.
      out: a folder. Files are written there, all or none, as ``model.cpu.jax_exported`` for ``model.jax_exported``; existing ones are replaced.

    Returns:
      For each platform, in the export's order, the export as bytes; with ``out`` the path of its file.

    Raises:
      JaxprismError: the input is malformed, a platform is not in the export, or a callback is refused.
    """
    if strip_locations and redact_paths:
        raise ValueError("strip_locations and redact_paths exclude one another")
    options = _native.Options(
        platforms=list(platforms or ()),
        callbacks=callbacks,
        rules=_rules(callback),
        on_unsupported=on_unsupported,
        table=table,
        locations="stripped" if strip_locations else "redacted" if redact_paths else "kept",
    )
    given = _source(source)
    if out is None:
        outputs, _, _ = _native.split(given, options)
        return dict(outputs)
    name = Path(given) if isinstance(given, str) else Path("model.jax_exported")
    template = Path(out) / f"{name.stem}.{{platform}}{name.suffix}"
    paths, _, _ = _native.split_to_files(given, options, str(template))
    return {platform: Path(path) for platform, path in paths}


def strip(source: Source, *, callback: Mapping[str, str] | None = None) -> bytes:
    """The export without its callbacks, for the platforms it is for: tokens and effects go with them.

    Args:
      source: the export: bytes, or the path of a file.
      callback: rules ``{"NAME": policy}`` for callbacks that are not to be stripped: ``"stub:…"`` or ``"keep"``.

    Raises:
      JaxprismError: the results of a callback are used, and no rule says what stands for them.
    """
    output, _ = _native.strip(_source(source), _rules(callback))
    return output


def callbacks(source: Source, *, table: str | None = None) -> dict[str, Any]:
    """The callbacks of an export: what they are, where they are called, and what each platform has for them. ``docs/json.md`` describes it."""
    return json.loads(_native.callbacks(_source(source), table))


def info(source: Source) -> dict[str, Any]:
    """What an export holds: platforms, arguments, versions, and what each platform runs. ``docs/json.md`` describes it."""
    return json.loads(_native.info(_source(source)))


def check(source: Source, *, platforms: Iterable[str] = (), targets_allowed: Iterable[str] = ()) -> list[dict[str, Any]]:
    """What makes an export depend on the process that wrote it: callbacks, and custom calls that JAX does not guarantee. Empty if nothing does.

    Args:
      source: the export: bytes, or the path of a file.
      platforms: look only at what these platforms run.
      targets_allowed: custom call targets of your own that are fine; ``*`` stands for any characters.
    """
    return json.loads(_native.check(_source(source), list(platforms), "\n".join(targets_allowed)))["sites"]


def unlower(source: Source) -> bytes:
    """The export with placeholders again for the callbacks that were lowered, at every level: the inverse of lowering."""
    return _native.unlower(_source(source))


