"""Files: splitting, merging, stripping and looking at them. Nothing here imports JAX."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

from jaxprism import _arguments, _native
from jaxprism._arguments import Source, Table

Emit = Literal["export", "mlirbc", "mlir"]
"""What is made of an export: all of it, or the module of the function alone, as MLIR bytecode or text."""

T = TypeVar("T", bytes, Path)


class Outputs(dict[str, T], Generic[T]):
    """What an export was split into, by platform, in the order of the export.

    Attributes:
      report: what was done for each platform and gradient level: `split --report` of the command line. `docs/json.md`
        describes it.
      manifest: the callbacks of the outputs, for hosts that bind them without JAX: `split --manifest`.
    """

    report: dict[str, Any]
    manifest: dict[str, Any]


def _output(emit: Emit, no_vjp: bool, strip_sdy: bool, target_version: str | None) -> "_native.OutputOptions":
    """What every function that makes an export is given."""
    version = _arguments.version(target_version, "target_version")
    return {"emit": emit, "no_vjp": no_vjp, "strip_sdy": strip_sdy, "target_version": version}


@overload
def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    exports: Mapping[str, Source] | None = None,
    table: Table | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: None = None,
) -> Outputs[bytes]: ...


@overload
def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    exports: Mapping[str, Source] | None = None,
    table: Table | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str],
) -> Outputs[Path]: ...


def split(
    source: Source,
    *,
    platforms: Iterable[str] | None = None,
    callbacks: str = "lower",
    callback: Mapping[str, str] | None = None,
    on_unsupported: str | None = None,
    exports: Mapping[str, Source] | None = None,
    table: Table | None = None,
    strip_locations: bool = False,
    redact_paths: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str] | None = None,
) -> Outputs[bytes] | Outputs[Path]:
    """Splits an export for several platforms into one export per platform, gradients included.

    >>> jaxprism.split("model.jax_exported", callback={"tpu:metrics.*": "strip"}, out="served/")  # doctest: +SKIP
    {'cpu': PosixPath('served/model.cpu.jax_exported'), 'tpu': PosixPath('served/model.tpu.jax_exported')}

    Args:
      source: the export: bytes, or the path of a file.
      platforms: those to write; all of the export by default.
      callbacks: the policy of all callbacks without a rule: `"lower"`, `"keep"`, `"strip"`, `"stub:zeros"`,
        `"stub:nan"`, `"stub:operand:K"`, `"stub:alias"`, `"host"`, `"unpartition"`, `"ffi:TARGET"`, `"call:EXPORT"`
        or `"refuse"`.
      callback: rules: the policy of the callbacks that `"[PLATFORM:]NAME"` names. Exact names come before those with
        `*` and `?`, a platform before none, and among alike the later one.
      on_unsupported: the policy of callbacks without a rule that a platform cannot run. By default that of `callbacks`,
        which refuses them if it is `"lower"`.
      exports: exports by the names that policies `"call:EXPORT"` have for them; other names are those of files. Such
        an export is for the platform, takes what the callback takes and returns what it returns.
      table: further platforms and targets that callbacks are lowered to.
      strip_locations: make every source location unknown.
      redact_paths: take the directories from the file names in source locations.
      no_vjp: leave out the gradients, as if the export had been made with `vjp_order=0`.
      strip_sdy: take the shardings out, so that the result is for one device.
      target_version: write modules that readers of this version of StableHLO read, such as `"1.9.0"`.
      emit: `"mlirbc"` or `"mlir"` for the module of the function alone, as MLIR bytecode or text.
      out: a directory, which is made if missing, or a name with `{platform}` and perhaps `{stem}`. All files are
        written or none: `model.cpu.jax_exported` and so on for `model.jax_exported`, `export.cpu.jax_exported` for
        bytes; a module alone has the extension `.mlirbc` or `.mlir`. Those that exist are replaced, never the input.

    Returns:
      A dict with the export of each platform as bytes, in the order of the export; with `out` the path of its file.

    Raises:
      JaxprismError: the input is malformed, the export is not for a platform, a callback is refused, a rule fits none,
        or a file cannot be read or written; or a module holds what `target_version` has not.
    """
    if strip_locations and redact_paths:
        raise ValueError("`strip_locations` and `redact_paths` exclude one another")
    options: _native.Options = {
        "platforms": _arguments.platforms(platforms),
        "callbacks": _arguments.policy(callbacks, "callbacks"),
        "rules": _arguments.rules(callback),
        "on_unsupported": None if on_unsupported is None else _arguments.policy(on_unsupported, "on_unsupported"),
        "table": _arguments.table(table),
        "exports": _arguments.exports([callbacks, on_unsupported, *(callback or {}).values()], exports),
        "locations": "stripped" if strip_locations else "redacted" if redact_paths else "kept",
        "output": _output(emit, no_vjp, strip_sdy, target_version),
    }
    if out is None:
        outputs, report, manifest = _native.split(_arguments.source(source), options)
        split_up: Outputs[Any] = Outputs(outputs)
    else:
        paths, report, manifest = _native.split_to_files(_arguments.source(source), options, _arguments.path(out))
        split_up = Outputs(paths)
    split_up.report, split_up.manifest = json.loads(report), json.loads(manifest)
    return split_up


@overload
def merge(
    sources: Mapping[str, Source],
    *,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: None = None,
) -> bytes: ...


@overload
def merge(
    sources: Mapping[str, Source],
    *,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str],
) -> Path: ...


def merge(
    sources: Mapping[str, Source],
    *,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str] | None = None,
) -> bytes | Path:
    """Merges exports for one platform each into one for all of them, gradients included: the inverse of `split`.

    Each platform keeps its code. An argument that is donated on some platforms only is donated on none, and callbacks
    that were lowered become placeholders again.

    >>> jaxprism.merge({"cpu": "a.jax_exported", "cuda": cuda}, out="model.jax_exported")  # doctest: +SKIP
    PosixPath('model.jax_exported')

    Args:
      sources: the export for each platform, as bytes or the path of a file, in the order that the platforms are to
        have.
      no_vjp: leave out the gradients, as if the exports had been made with `vjp_order=0`.
      strip_sdy: take the shardings out, so that the result is for one device. They need not agree then.
      target_version: write modules that readers of this version of StableHLO read, such as `"1.9.0"`.
      emit: `"mlirbc"` or `"mlir"` for the module of the function alone, as MLIR bytecode or text.
      out: the file to write. It is replaced if it exists, unless it is one of the sources.

    Returns:
      The export as bytes; with `out` the path of its file.

    Raises:
      JaxprismError: there are fewer than two, one is for another platform or for several, their signatures differ (the
        message names the first difference), one is malformed, or a file cannot be read or written.
    """
    inputs = _arguments.sources(sources)
    output = _output(emit, no_vjp, strip_sdy, target_version)
    if out is None:
        return _native.merge(inputs, output)[0]
    path = _arguments.path(out)
    _native.merge_to_file(inputs, output, path)
    return Path(path)


def strip(
    source: Source,
    *,
    callback: Mapping[str, str] | None = None,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
) -> bytes:
    """The export without its callbacks, for all the platforms it is for: tokens and effects go with them.

    Args:
      source: the export: bytes, or the path of a file.
      callback: rules `{"NAME": policy}` for callbacks that are not to be stripped: `"stub:…"` or `"keep"`.
      no_vjp: leave out the gradients, as if the export had been made with `vjp_order=0`.
      strip_sdy: take the shardings out, so that the result is for one device.
      target_version: write modules that readers of this version of StableHLO read, such as `"1.9.0"`.
      emit: `"mlirbc"` or `"mlir"` for the module of the function alone, as MLIR bytecode or text.

    Raises:
      JaxprismError: the results of a callback are used, and no rule says what stands for them; or the input is
        malformed.
    """
    output = _output(emit, no_vjp, strip_sdy, target_version)
    return _native.strip(_arguments.source(source), _arguments.rules(callback), output)


@overload
def retarget(
    source: Source,
    *,
    platforms: Iterable[str],
    targets_allowed: Iterable[str] = (),
    map_targets: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: None = None,
) -> bytes: ...


@overload
def retarget(
    source: Source,
    *,
    platforms: Iterable[str],
    targets_allowed: Iterable[str] = (),
    map_targets: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str],
) -> Path: ...


def retarget(
    source: Source,
    *,
    platforms: Iterable[str],
    targets_allowed: Iterable[str] = (),
    map_targets: bool = False,
    no_vjp: bool = False,
    strip_sdy: bool = False,
    target_version: str | None = None,
    emit: Emit = "export",
    out: str | os.PathLike[str] | None = None,
) -> bytes | Path:
    """The export for other platforms, if it does the same on every platform. `docs/retarget.md` says what binds it.

    >>> jaxprism.retarget("model.cuda.jax_exported", platforms=["cpu"], out="model.cpu.jax_exported")  # doctest: +SKIP
    PosixPath('model.cpu.jax_exported')

    Args:
      source: the export: bytes, or the path of a file.
      platforms: those that the result is for, in the order of their numbers.
      targets_allowed: custom call targets that the new platforms have; `*` stands for any characters.
      map_targets: rename custom calls from cuda to rocm, or back, where the handlers are the same in all but name.
      no_vjp: leave out the gradients, as if the export had been made with `vjp_order=0`.
      strip_sdy: take the shardings out, so that the result is for one device.
      target_version: write modules that readers of this version of StableHLO read, such as `"1.9.0"`.
      emit: `"mlirbc"` or `"mlir"` for the module of the function alone, as MLIR bytecode or text.
      out: the file to write. One that exists is replaced, never the input.

    Returns:
      The export as bytes; with `out` the path of the file.

    Raises:
      JaxprismError: something binds the export to its platforms, which the message lists with places; or the input is
        malformed, or a file cannot be read or written.
    """
    options: _native.RetargetOptions = {
        "platforms": _arguments.platforms(platforms),
        "targets_allowed": _arguments.texts(targets_allowed, "targets_allowed"),
        "map_targets": map_targets,
        "output": _output(emit, no_vjp, strip_sdy, target_version),
    }
    if out is not None:
        _native.retarget(_arguments.source(source), options, _arguments.path(out))
        return Path(os.fsdecode(out))
    made = _native.retarget(_arguments.source(source), options, None)
    assert made is not None, "without a file there are bytes"
    return made


def unlower(source: Source) -> bytes:
    """The export with placeholders again for the callbacks that `split` lowered: its inverse, at every gradient level.

    Raises:
      JaxprismError: the input is malformed, or its callbacks were lowered by something else.
    """
    return _native.unlower(_arguments.source(source))


def callbacks(source: Source, *, table: Table | None = None) -> dict[str, Any]:
    """The callbacks of an export: what they are, where they are called, and what each platform has for them.

    What `jaxprism callbacks --json` prints; `docs/json.md` describes it.

    Args:
      source: the export: bytes, or the path of a file.
      table: further platforms and targets.

    Raises:
      JaxprismError: the input is malformed.
    """
    return json.loads(_native.callbacks(_arguments.source(source), _arguments.table(table)))


def info(source: Source) -> dict[str, Any]:
    """What an export holds: platforms, arguments and results with their shapes, versions, and what each platform runs.

    What `jaxprism info --json` prints; `docs/json.md` describes it.

    Raises:
      JaxprismError: the input is malformed.
    """
    return json.loads(_native.info(_arguments.source(source)))


def size(source: Source) -> dict[str, Any]:
    """Where the bytes of an export are: by section, constant, function, file of locations, kind of attribute, and string.

    What `jaxprism size --json` prints; `docs/json.md` describes it.

    Raises:
      JaxprismError: the input is malformed.
    """
    return json.loads(_native.size(_arguments.source(source)))


def check(
    source: Source, *, platforms: Iterable[str] | None = None, targets_allowed: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """What makes an export depend on more than the export: callbacks, and custom calls that JAX does not guarantee.

    The sites of `jaxprism check --no-callbacks --json`; `docs/json.md` describes them. None if nothing does. With
    `platforms` there is one for each platform that runs it.

    Args:
      source: the export: bytes, or the path of a file.
      platforms: look only at what these run.
      targets_allowed: custom call targets of your own that are fine; `*` stands for any characters.

    Raises:
      JaxprismError: the input is malformed, or the export is not for a platform.
    """
    found = _native.check(
        _arguments.source(source), _arguments.platforms(platforms), _arguments.texts(targets_allowed, "targets_allowed")
    )
    return json.loads(found)["sites"]


def verify(
    split: Source,
    *,
    against: Source,
    ignore_locations: bool = False,
    table: Table | None = None,
    run: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Whether an export is another one specialised to a platform, worked out anew and without JAX.

    What `jaxprism verify --json` prints for one split; `docs/json.md` describes it.

    Args:
      split: the export for one platform: bytes, or the path of a file.
      against: the export that it was split from.
      ignore_locations: do not compare source locations: they were stripped or redacted.
      table: further platforms and targets that callbacks were lowered to.
      run: also run both in JAX on random arguments of the right shapes and types, callbacks returning zeros, and
        compare the numbers at every gradient level. The answer then has a field `run`: `device`, or why it was
        `skipped`; how many results are `identical` and how many `close`, in the last bits only; and the `differences`,
        with which it is not `verified` either. A platform that is not here runs on cpu, in another process, as far as
        cpu can.
      seed: of the random arguments.

    Raises:
      JaxprismError: a file is malformed or cannot be read.
    """
    split, against = _arguments.source(split), _arguments.source(against)
    found = json.loads(_native.verify(against, split, ignore_locations, _arguments.table(table)))
    if run and found["platform"] is not None:
        from jaxprism import _compare

        found["run"] = _compare.compare(
            _arguments.contents(against), _arguments.contents(split), found["platform"], seed
        )
        found["verified"] = found["verified"] and not found["run"]["differences"]
    return found


def diff(a: Source, b: Source, *, ignore: Iterable[str] = (), max_changes: int | None = None) -> dict[str, Any]:
    """How two exports differ as programs: their signatures, their functions, and operation by operation.

    What `jaxprism diff --json` prints but for the `paths`; `docs/json.md` describes it. `equal` says whether nothing
    differs but what is ignored, and `changes` lists what does.

    >>> jaxprism.diff("golden.jax_exported", "new.jax_exported", ignore=["locations"])["equal"]  # doctest: +SKIP
    True

    Args:
      a: the first export: bytes, or the path of a file. A module alone will do as well.
      b: the second one.
      ignore: what may differ: `"locations"` in the source; `"names"` of private functions, of meshes and of the module,
        and the order of functions; `"versions"` of JAX, StableHLO, schema and bytecode.
      max_changes: list no more changes than this; all are counted.

    Raises:
      JaxprismError: a file is malformed or cannot be read, or there is no such thing to ignore.
    """
    ours, theirs = _arguments.source(a), _arguments.source(b)
    return json.loads(_native.diff(ours, theirs, _arguments.texts(ignore, "ignore"), max_changes))
