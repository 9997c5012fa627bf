"""Calls Python from placeholders themselves: the other way to bind, which needs nothing that JAX keeps to itself.

XLA calls the handler of a target through a C interface, with a *frame* that says where arguments and results are. One
handler, written with ctypes, serves all placeholders of the process: it looks up the function by the name in the
attributes of the operation. The structures below are those of `xla/ffi/api/c_api.h` in `jax.ffi.include_dir()`.
"""

import ctypes
import functools
import logging
import pathlib
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax

# Its effect is not known to JAX before, and cannot be read from a file.
import jax.experimental.buffer_callback
import jax.ffi
import numpy as np

from jaxprism import _host
from jaxprism._errors import CallbackNameError, UnboundCallbackError
from jaxprism._host import Zeros
from jaxprism._slots import TARGET, Slot

Function = Callable[..., Any]

# What was bound, by name and by the whole of what a file says. The latter counts for more.
_BY_NAME: dict[str, Function] = {}
_BY_SLOT: dict[Slot, Function | Zeros] = {}
_LOCK = threading.Lock()


def register(functions: Mapping[str, Function]) -> None:
    """Binds functions for the whole process, for exports that are called by `jax.export.deserialize(data).call`.

    It serves files with placeholders: those that `jaxprism.serialize` wrote, and those that were split with the policy
    `keep`; callbacks that were lowered need `jaxprism.load`. It serves cpu only. `load` is to be preferred, since here

    * a name means one function in the whole process, and another function takes its place;
    * the order between the callbacks of an export and the ordered callbacks of the caller is lost: `deserialize` makes
      an effect of its own;
    * a call takes longer, buffers are NumPy arrays, there is no context, and a partitioned callback is called once;
    * JAX does not compile ordered callbacks whose results have symbolic dimensions, and may not compile callbacks that
      are placed on another device than the first.

    Args:
      functions: by name. Prints need none, so the mapping may be empty.

    Raises:
      TypeError: something is no function.
    """
    if not isinstance(functions, Mapping):
        raise TypeError(f"functions are given by name, such as {{'log': log}}, and not as {functions!r}")
    for name, function in functions.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a callback is a text, not {name!r}")
        if not callable(function):
            raise TypeError(f"`{name}` is bound to {function!r}, which is no function")
    with _LOCK:
        _BY_NAME.update(functions)
    _install()


def stock_call(exported: jax.export.Exported, levels: Iterable[Mapping[Slot, Function | Zeros]]) -> Function:
    """`exported.call`, with functions for the callbacks of the export and its gradients.

    Raises `CallbackNameError` if the same callback is bound to another function already.
    """
    for functions in levels:
        with _LOCK:
            for slot, function in functions.items():
                if _BY_SLOT.setdefault(slot, function) is not function:
                    raise CallbackNameError(
                        f"{slot} is bound to another function in this process, and JAX {jax.__version__} is not known "
                        "well enough to tell them apart"
                    )
    _install()
    return exported.call


@functools.cache
def _install() -> None:
    """Gives the handler to XLA, once."""
    capsule = jax.ffi.pycapsule(ctypes.cast(_HANDLER, ctypes.c_void_p).value)
    jax.ffi.register_ffi_target(TARGET, capsule, platform="cpu", api_version=1)
    logging.getLogger("jaxprism").info("placeholders call Python through XLA's foreign function interface")


# ---------------------------------------------------------------- calling


@functools.lru_cache(maxsize=1024)
def _slot(meta: bytes) -> Slot:
    return Slot.read(meta.decode())


def _call(frame: "_Frame") -> None:
    """Calls the function that a frame names with its arguments, and writes its results."""
    slot = _slot(frame.attributes.text("meta"))
    function = _BY_SLOT.get(slot, _BY_NAME.get(slot.name))
    if function is None and slot.kind != "print":
        raise UnboundCallbackError(f"{slot} is not bound", hint=f'`jaxprism.register({{"{slot.name}": …}})` does')
    # After the operands come those that say the shapes of results, where these are dynamic.
    arguments = frame.arguments.arrays()[: len(slot.arguments)]
    results = frame.results.arrays()
    if slot.kind == "buffer":
        for argument in arguments:
            argument.flags.writeable = False
        _host.flat_function(slot, function, _host.run_publicly, {})(None, *arguments, *results)
        return
    # What XLA says about the results is what the program was compiled for.
    static = _host.with_result_shapes(slot, [result.shape for result in results])
    flat = _host.flat_function(static, function, _host.run_publicly, {})
    # The memory is XLA's again after the call, and JAX does not copy arrays on the CPU.
    for result, value in zip(results, flat(*(argument.copy() for argument in arguments)), strict=True):
        result[...] = value


def _handle(pointer: Any) -> int | None:
    """Answers XLA: nothing if all is well, else an error."""
    frame = pointer.contents
    try:
        if frame.extension and frame.extension.contents.type == _METADATA:
            metadata = ctypes.cast(frame.extension, ctypes.POINTER(_MetadataExtension)).contents.metadata.contents
            metadata.version.major, metadata.version.minor = _api_version()
            metadata.traits = 0
        elif frame.stage == _EXECUTE:
            _call(frame)
        return None
    except UnboundCallbackError as error:
        return frame.error(str(error), _FAILED_PRECONDITION)
    except BaseException:  # nothing that Python raises may pass through C
        return frame.error(f"a Python callback failed:\n{traceback.format_exc()}", _INTERNAL)


@functools.cache
def _api_version() -> tuple[int, int]:
    """The version of the interface, which XLA asks for: that of the header that comes with it."""
    header = pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    versions = (re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR"))
    major, minor = (int(version[1]) for version in versions if version)
    return major, minor


# ---------------------------------------------------------------- the interface in C

_METADATA = 1  # the extension of a frame that asks who the handler is
_EXECUTE = 3  # the stage of a frame that is to be carried out
_TOKEN = 17
_FAILED_PRECONDITION, _INTERNAL = 9, 13

# XLA's numbers of types. Those smaller than a byte are left out.
_DTYPES = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "uint8",
    7: "uint16",
    8: "uint32",
    9: "uint64",
    10: "float16",
    11: "float32",
    12: "float64",
    15: "complex64",
    16: "bfloat16",
    18: "complex128",
    19: "float8_e5m2",
    20: "float8_e4m3fn",
    23: "float8_e4m3b11fnuz",
    24: "float8_e5m2fnuz",
    25: "float8_e4m3fnuz",
    28: "float8_e4m3",
    29: "float8_e3m4",
    33: "float8_e8m0fnu",
}


class _Extension(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


# All others begin with their size and an extension.
_HEAD = (("size", ctypes.c_size_t), ("extension", ctypes.POINTER(_Extension)))


class _Version(ctypes.Structure):
    _fields_ = (*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("version", _Version),
        ("traits", ctypes.c_uint32),
        ("state_type", ctypes.c_int64),
    )


class _MetadataExtension(ctypes.Structure):
    _fields_ = (("extension", _Extension), ("metadata", ctypes.POINTER(_Metadata)))


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dimensions", ctypes.POINTER(ctypes.c_int64)),
    )

    def array(self) -> np.ndarray:
        """The memory as an array."""
        name = _DTYPES.get(self.dtype)
        if name is None:
            raise TypeError(f"arrays of XLA's type {self.dtype} cannot be given to Python")
        dtype, shape = _host.dtype(name), tuple(self.dimensions[axis] for axis in range(self.rank))
        size = int(np.prod(shape)) * dtype.itemsize
        if size == 0:
            return np.empty(shape, dtype)
        return np.frombuffer((ctypes.c_char * size).from_address(self.data), dtype).reshape(shape)


class _Buffers(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("values", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )

    def arrays(self) -> list[np.ndarray]:
        """All but tokens."""
        buffers = (self.values[index].contents for index in range(self.count))
        return [buffer.array() for buffer in buffers if buffer.dtype != _TOKEN]


class _Span(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))

    def bytes(self) -> bytes:
        """A copy."""
        return ctypes.string_at(self.data, self.size)


class _Attributes(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(_Span))),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
    )

    def text(self, name: str) -> bytes:
        """The attribute of that name, which is a text."""
        for index in range(self.count):
            if self.names[index].contents.bytes() == name.encode():
                return ctypes.cast(self.values[index], ctypes.POINTER(_Span)).contents.bytes()
        raise KeyError(name)


class _ErrorArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _Api(ctypes.Structure):
    """The beginning of XLA's table of functions."""

    _fields_ = (*_HEAD, ("version", _Version), ("internal", ctypes.c_void_p), ("create_error", ctypes.c_void_p))


class _Frame(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )

    def error(self, message: str, code: int) -> int:
        """A new error of XLA."""
        create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorArguments))(self.api.contents.create_error)
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), code)
        return create(ctypes.byref(arguments))


# As long as the process lives, since XLA keeps its address.
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))(_handle)
