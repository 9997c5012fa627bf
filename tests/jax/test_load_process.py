"""What needs a process of its own: other functions than those that were exported, caches on disk, and `register`."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.experimental
import jaxprism
import numpy as np
import pytest
from callback_programs import PROGRAMS
from tool import ROOT, Tool

HERE = Path(__file__).resolve().parent
PLATFORMS = ("cpu", "cuda", "tpu")

# What each program below begins with.
HEAD = """
import json, logging, sys
import conftest  # four host devices, before JAX starts
import jaxprism

heard = []

def say(**what):
    print("SAYS", json.dumps(what))
"""


def python(program: str, *arguments: object, **environment: str) -> dict:
    """Runs a program in a new process, and returns what it says."""
    command = [sys.executable, "-c", HEAD + textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(
        command, cwd=HERE, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (said,) = (line for line in done.stdout.splitlines() if line.startswith("SAYS "))
    return json.loads(said.removeprefix("SAYS ")) | {"stderr": done.stderr, "stdout": done.stdout}


def written(name: str, folder: Path) -> Path:
    program = PROGRAMS[name]
    path = folder / f"{name}.jax_exported"
    path.write_bytes(jaxprism.serialize(program.export(PLATFORMS), vjp_order=program.vjp_order))
    return path


# ---------------------------------------------------------------- another process


def test_a_file_is_called_in_a_process_that_did_not_export_it(tmp_path: Path):
    said = python(
        """
        import jax, numpy as np
        log = lambda x: heard.append(np.asarray(x).tolist()) or np.asarray(x) * 2
        model = jaxprism.load(sys.argv[1]).bind({"log": log})
        y, _ = jax.jit(model.call)(np.arange(4, dtype=np.float32))
        jax.effects_barrier()
        say(y=np.asarray(y).tolist(), heard=heard)
        """,
        written("io_ordered_in_scan", tmp_path),
    )
    assert said["y"] == [0, 8, 16, 24]
    assert said["heard"] == [[0, 1, 2, 3], [0, 2, 4, 6], [0, 4, 8, 12]]


def test_a_gradient_is_called_in_a_process_that_did_not_export_it(tmp_path: Path):
    said = python(
        """
        import jax, numpy as np
        square, slope = lambda x: np.asarray(x) ** 2, lambda x, c: np.asarray(c) * np.asarray(x) * 2
        model = jaxprism.load(sys.argv[1]).bind({"forward": square, "backward": slope})
        say(gradient=np.asarray(jax.jit(jax.grad(model.call))(np.arange(4, dtype=np.float32))).tolist())
        """,
        written("custom_vjp", tmp_path),
    )
    assert said["gradient"] == [0, 4, 8, 12]


def test_a_lowered_file_with_buffers_and_prints_is_called_in_another_process(tmp_path: Path, tool: Tool):
    done = tool.run(
        "split", written("all_effects", tmp_path), "-p", "cpu", "-o", tmp_path / "{stem}.{platform}", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    said = python(
        """
        import jax, numpy as np
        note = lambda name: lambda *args: heard.append(name)
        functions = {name: note(name) for name in ("see", "note", "watch")} | {"log": np.asarray}
        model = jaxprism.load(sys.argv[1]).bind(functions)
        y = jax.jit(model.call)(np.arange(4, dtype=np.float32))
        jax.effects_barrier()
        say(y=np.asarray(y).tolist(), heard=sorted(heard), names=model.exported.platforms)
        """,
        tmp_path / "all_effects.cpu",
    )
    assert said["y"] == [0, 1, 2, 3]
    assert said["heard"] == ["note", "see", "watch"]
    assert "x [0. 1. 2. 3.]" in said["stdout"]


def two_callbacks(x: jax.Array) -> jax.Array:
    """In one order: JAX gives the order of several ordered effects by chance, and the text of the program with it."""
    jax.experimental.io_callback(jaxprism.named("see")(lambda x: None), None, x, ordered=True)
    y = jax.experimental.io_callback(jaxprism.named("log")(lambda x: x), x, x, ordered=True)
    return jax.experimental.io_callback(jaxprism.named("log")(lambda x: x), x, y, ordered=True)


def test_programs_kept_on_disk_call_the_functions_of_the_process(tmp_path: Path):
    path = tmp_path / "two_callbacks.jax_exported"
    exported = jaxprism.export(jax.jit(two_callbacks), platforms=PLATFORMS)(np.ones(4, np.float32))
    path.write_bytes(jaxprism.serialize(exported))

    def run(factor: int) -> dict:
        return python(
            """
            import jax, numpy as np
            path, cache, factor = sys.argv[1], sys.argv[2], float(sys.argv[3])
            jax.config.update("jax_compilation_cache_dir", cache)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
            hits = []
            jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if "cache_hit" in name else None)

            def log(x):
                heard.append(float(np.asarray(x)[0]))
                return np.asarray(x) * np.float32(factor)

            functions = {"log": log, "see": lambda x: heard.append("see")}
            # The order in which functions are given does not matter.
            model = jaxprism.load(path).bind(dict(sorted(functions.items(), reverse=factor > 2)))
            y = jax.block_until_ready(jax.jit(model.call)(np.ones(4, np.float32)))
            jax.effects_barrier()
            count = len(hits)
            # What is not exported at all.
            spec = jax.ShapeDtypeStruct((4,), np.float32)
            native = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x), spec, x))
            native(np.ones(4, np.float32)).block_until_ready()
            say(y=np.asarray(y).tolist(), heard=heard, hits=count, native=len(hits) - count)
            """,
            path,
            tmp_path / "cache",
            factor,
        )

    first, second = run(2), run(5)
    assert first["hits"] == 0
    # JAX 0.10 and older keep no programs with callbacks.
    assert (second["hits"] > 0) == (second["native"] > 0)
    assert (first["y"], second["y"]) == ([4] * 4, [25] * 4)
    assert second["heard"] == ["see", 1, 5]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_calls_leave_nothing_behind(tmp_path: Path):
    """All kinds of callbacks: from call 100 to call 1,000 neither memory nor objects grow."""
    said = python(
        """
        import gc, os, jax, numpy as np
        calls = {}
        note = lambda name: lambda *args: calls.update({name: calls.get(name, 0) + 1})
        functions = {name: note(name) for name in ("see", "note", "watch")} | {"log": lambda x: np.asarray(x)}
        call = jax.jit(jaxprism.load(sys.argv[1]).bind(functions).call)
        x = np.arange(4, dtype=np.float32)
        # Prints are not kept.
        sys.stdout, stdout = open(os.devnull, "w"), sys.stdout

        def measure():
            jax.effects_barrier()
            gc.collect()
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE"), len(gc.get_objects())

        for number in range(1001):
            if number == 100:
                before = measure()
            call(x).block_until_ready()
        after = measure()
        sys.stdout = stdout
        say(bytes=after[0] - before[0], objects=after[1] - before[1], calls=calls)
        """,
        written("all_effects", tmp_path),
    )
    assert said["calls"] == {"see": 1001, "note": 1001, "watch": 1001}
    assert said["bytes"] < 2 << 20
    assert abs(said["objects"]) <= 50


# ---------------------------------------------------------------- lowered files


def test_a_damaged_lowered_file_is_an_error(tmp_path: Path):
    lowered = jaxprism.split(written("pure_in_plain", tmp_path))["cpu"]
    with pytest.raises(jaxprism.UnlowerError, match="callbacks of this file were lowered, and cannot be") as error:
        jaxprism.load(lowered.replace(b"v1", b"v\xff"))
    assert error.value.kind == "unlower"
    assert isinstance(error.value.__cause__, jaxprism.JaxprismError)
    assert "at offset" in str(error.value)


def test_the_guard_is_not_known_to_jax(tmp_path: Path):
    lowered = jaxprism.split(written("pure_in_plain", tmp_path), platforms=["cpu"])["cpu"]
    for _ in range(2):  # before and after loading
        with pytest.raises(
            NotImplementedError, match=r"cannot deserialize effect type <class 'jaxprism.UnboundCallbacks'>"
        ):
            jax.export.deserialize(bytearray(lowered))
        jaxprism.load(lowered)


# ---------------------------------------------------------------- register


NOT_SERVED = ("debug_partitioned", "print_partitioned", "io_ordered_symbolic", "io_on_second_device")
REGISTERED = [name for name in PROGRAMS if name not in NOT_SERVED]


def test_registered_functions_are_called_by_stock_exports(tmp_path: Path):
    """All programs but those that `register` says it does not serve."""
    said = python(
        """
        import jax, jax.export, numpy as np
        from callback_programs import PROGRAMS
        from callback_running import arguments, assert_same, run
        failed = {}
        for name in sys.argv[1:]:
            program = PROGRAMS[name]
            exported = program.export(("cpu", "tpu"))
            data = jaxprism.serialize(exported)
            jaxprism.register(jaxprism.bindings(exported))
            inputs = arguments(program)
            wanted = run(lambda: program.jitted()(*inputs))
            got = run(lambda: jax.jit(jax.export.deserialize(bytearray(data)).call)(*inputs))
            try:
                # Effects are others than those of the program; the order inside of the export is the same.
                assert_same(got, wanted, jaxprism.load(data).slots)
            except AssertionError as error:
                failed[name] = str(error)[:300]
        say(failed=failed)
        """,
        *REGISTERED,
    )
    assert said["failed"] == {}


def test_registered_functions_may_be_replaced_and_have_to_be_right(tmp_path: Path):
    said = python(
        """
        import jax, jax.export, numpy as np
        x = np.arange(4, dtype=np.float32)
        read = lambda path: jax.export.deserialize(bytearray(open(path, "rb").read())).call
        jaxprism.register({})
        call = read(sys.argv[1])
        errors = []

        def attempt():
            try:
                jax.block_until_ready(call(x))
            except Exception as error:
                errors.append(str(error))

        attempt()
        jaxprism.register({"add": lambda x: np.zeros(3, np.float32)})
        attempt()
        jaxprism.register({"add": lambda x: 1 / 0})
        attempt()
        jaxprism.register({"add": lambda x: np.asarray(x) + 7})
        jaxprism.register({"triple": lambda ctx, out, x: np.asarray(out).fill(3)})
        say(errors=errors, y=np.asarray(call(x)).tolist(), z=np.asarray(read(sys.argv[2])(x)).tolist())
        """,
        written("pure_in_plain", tmp_path),
        written("buffer_in_plain", tmp_path),
    )
    unbound, short, raised = said["errors"]
    assert "pure callback `add` is not bound" in unbound
    assert "returned float32[3] as result 0; the program has float32[4]" in short
    assert "ZeroDivisionError" in raised
    assert said["y"] == [7, 8, 9, 10]
    assert said["z"] == [3] * 4


# ---------------------------------------------------------------- a JAX that is not known


# A name that is another one by now.
MOVED = (
    "jax._src.export._export._call_exported_lowering",
    "jax._src.callback.pure_callback_impl",
    "jax._src.core.max_dim",
)


@pytest.mark.parametrize("name", MOVED)
def test_where_jax_is_not_known_functions_are_registered(name: str, tmp_path: Path):
    said = python(
        """
        import importlib, jax, numpy as np
        import jax.experimental.buffer_callback
        module, _, name = sys.argv[2].rpartition(".")
        module = importlib.import_module(module)
        setattr(module, name + "_by_another_name", getattr(module, name))
        delattr(module, name)
        logging.basicConfig()
        x = np.arange(4, dtype=np.float32)
        module = jaxprism.load(sys.argv[1])
        model = module.bind({"forward": np.sin, "backward": lambda x, c: np.asarray(c) * np.cos(np.asarray(x))})
        y, gradient = jax.jit(model.call)(x), jax.grad(model.call)(x)
        try:
            module.bind({"forward": np.cos, "backward": lambda x, c: c}).call(x)
        except jaxprism.CallbackNameError as error:
            refused = str(error)
        say(y=float(y), gradient=np.asarray(gradient).tolist(), names=module.names, refused=refused)
        """,
        written("custom_vjp", tmp_path),
        name,
    )
    x = np.arange(4, dtype=np.float32)
    assert said["names"] == ["forward", "backward"]
    np.testing.assert_allclose(said["y"], np.sin(x).sum() * 2, rtol=1e-6)
    np.testing.assert_allclose(said["gradient"], np.cos(x) * 2, rtol=1e-6)
    assert "is not known inside" in said["stderr"]
    assert "bound to another function in this process" in said["refused"]


def test_a_newer_jax_is_said_to_be_untested(tmp_path: Path):
    said = python(
        """
        from jaxprism import _seams
        _seams.TESTED = (0, 5)
        logging.basicConfig()
        import numpy as np
        model = jaxprism.load(sys.argv[1]).bind({"add": lambda x: np.asarray(x) + 1})
        say(y=np.asarray(model.call(np.zeros(4, np.float32))).tolist())
        """,
        written("pure_in_plain", tmp_path),
    )
    assert said["y"] == [1] * 4
    assert "is newer than 0.5, the newest that jaxprism was tested with" in said["stderr"]


# ---------------------------------------------------------------- importing


def test_importing_does_not_import_jax():
    """Nor does what works on files."""
    program = """
import jaxprism, sys
jaxprism.named("n")(print)
parts = jaxprism.split(sys.argv[1])
jaxprism.strip(sys.argv[1]), jaxprism.info(sys.argv[1]), jaxprism.check(sys.argv[1]), jaxprism.callbacks(sys.argv[1])
jaxprism.verify(parts["cpu"], against=sys.argv[1])
assert "jax" not in sys.modules and "numpy" not in sys.modules
"""
    demo = ROOT / "testdata" / "exports" / "demo.jax-0.12.0.1.jax_exported"
    subprocess.run([sys.executable, "-c", program, str(demo)], cwd=HERE, check=True, timeout=60)
    assert {"load", "register", "export", "named"} <= set(dir(jaxprism))
    with pytest.raises(AttributeError, match="no attribute 'unload'"):
        _ = jaxprism.unload
