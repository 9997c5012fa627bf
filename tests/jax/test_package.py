"""Files in the Python package: what it is given, what it answers, and what it says to what it cannot take."""

import base64
import copy
import dataclasses
import hashlib
import json
import pickle
import re
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import jax
import jaxprism
import numpy as np
import pytest
from callback_programs import PROGRAMS
from tool import ROOT, Tool

DEMO = ROOT / "testdata" / "exports" / "demo.jax-0.12.0.1.jax_exported"
PLATFORMS = ["cpu", "cuda", "tpu"]


@pytest.fixture(scope="module")
def placeholders() -> bytes:
    """An export with all kinds of callbacks, for all platforms."""
    return jaxprism.serialize(PROGRAMS["all_effects"].export(PLATFORMS))


# ---------------------------------------------------------------- what it answers


def test_outputs_are_those_of_the_command_line(tool: Tool, tmp_path: Path):
    parts = jaxprism.split(DEMO)
    assert list(parts) == PLATFORMS
    done = tool.run("split", DEMO, "-o", tmp_path, "--report", tmp_path / "report.json")
    assert done.returncode == 0, done.stderr
    for platform, data in parts.items():
        assert (tmp_path / f"demo.jax-0.12.0.1.{platform}.jax_exported").read_bytes() == data
    report = json.loads((tmp_path / "report.json").read_text())
    assert parts.report["platforms"] == report["platforms"]
    without_path = [{key: value for key, value in each.items() if key != "path"} for each in report["outputs"]]
    for each in (*without_path, *parts.report["outputs"]):
        for level in each["levels"]:
            level.pop("milliseconds", None)
    assert parts.report["outputs"] == without_path


def test_files_are_written_all_or_none(tmp_path: Path):
    paths = jaxprism.split(DEMO, platforms=["tpu", "cpu"], out=tmp_path / "new" / "folder")
    assert list(paths) == ["cpu", "tpu"]
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {path.name for path in paths.values()}
    assert paths["cpu"].read_bytes() == jaxprism.split(DEMO)["cpu"]
    assert jaxprism.split(DEMO, out=tmp_path / "new" / "folder")["cpu"] == paths["cpu"], "replaces what is there"
    (tmp_path / "x.cuda.bin").mkdir()
    with pytest.raises(jaxprism.JaxprismError, match="it is a directory"):
        jaxprism.split(DEMO, out=tmp_path / "x.{platform}.bin")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "x.cuda.bin"]


def test_sizes_add_up_and_are_those_of_the_command_line(tool: Tool):
    size = jaxprism.size(DEMO)
    assert json.loads(tool.run("size", "--json", DEMO).stdout) == size == jaxprism.size(DEMO.read_bytes())
    assert size["bytes"] == DEMO.stat().st_size == size["container"] + sum(level["bytes"] for level in size["levels"])
    [level] = size["levels"]
    assert sum(level["sections"].values()) == level["bytes"]
    largest = level["constants"]["largest"][0]
    assert (largest["type"], largest["shape"], largest["bytes"]) == ("f32[16,16]", [16, 16], 16 * 16 * 4 + 4)
    with pytest.raises(jaxprism.JaxprismError, match="not a JAX export"):
        jaxprism.size(b"")


def test_the_page_of_sizes_allows_its_own_style_and_script_alone(tool: Tool):
    page = tool.run("size", "--html", "-", DEMO).stdout.decode()
    hashes = {}
    for tag in ("style", "script"):
        [text] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes[tag] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    policy = re.search('Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{hashes['style']}'",
        f"script-src 'sha256-{hashes['script']}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "http:" not in page
    assert "https:" not in page


def test_policies_are_those_of_the_command_line(placeholders: bytes):
    lowered = jaxprism.split(placeholders, on_unsupported="strip")
    assert b"xla_buffer_python_gpu_callback" in lowered["cuda"]
    assert b"xla_buffer" not in lowered["tpu"]
    kept = jaxprism.split(placeholders, callbacks="keep")
    assert jaxprism.unlower(lowered["cuda"]) == kept["cuda"]
    stubbed = jaxprism.split(placeholders, callbacks="strip", callback={"log": "keep", "cpu:log": "stub:operand:0"})
    slots = {name: jaxprism.callbacks(data)["levels"][0]["slots"] for name, data in stubbed.items()}
    assert [slot["name"] for slot in slots["tpu"]] == ["log"]
    assert slots["cpu"] == []
    assert stubbed.manifest["platforms"] == PLATFORMS


def test_an_export_is_stripped_for_all_its_platforms(placeholders: bytes):
    stripped = jaxprism.strip(placeholders, callback={"log": "stub:operand:0"})
    exported = jax.export.deserialize(bytearray(stripped))
    assert exported.platforms == tuple(PLATFORMS)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(exported.call(x), x)
    assert jaxprism.check(stripped) == []
    assert jaxprism.check(placeholders) != []


def test_tables_are_mappings_or_files(placeholders: bytes, tmp_path: Path):
    row = {"like": "cuda", "buffer": "my_buffer"}
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"v": 1, "platforms": {"cuda": row}}))
    nested = types.MappingProxyType({"v": 1, "platforms": types.MappingProxyType({"cuda": row})})
    for table in (path, str(path), nested):
        assert b"my_buffer" in jaxprism.split(placeholders, platforms=["cuda"], table=table)["cuda"]
        found = jaxprism.callbacks(placeholders, table=table)
        assert "my_buffer" in json.dumps(found)


def test_sources_are_paths_and_whatever_has_bytes(tmp_path: Path):
    data = DEMO.read_bytes()
    expected = jaxprism.split(DEMO, platforms=["cpu"])
    for source in (DEMO, str(DEMO), data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert jaxprism.split(source, platforms=["cpu"]) == expected


def test_the_command_is_that_of_the_program(tool: Tool):
    for arguments in (["--version"], ["info", DEMO], ["split"], ["split", "missing"], ["split", DEMO, "-p", "metal"]):
        native = tool.run(*arguments)
        command = [sys.executable, "-m", "jaxprism", *map(str, arguments)]
        ours = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert (ours.returncode, ours.stdout, ours.stderr) == (native.returncode, native.stdout, native.stderr)
    assert jaxprism.__version__ in tool.run("--version").stdout.decode()


# ---------------------------------------------------------------- diff


def exported(scale: float, shape: tuple[int, ...] = (4,)) -> bytes:
    def model(x):
        y = jax.numpy.sin(x["w"]) * scale
        return jax.numpy.cumsum(y)

    arguments = {"w": jax.ShapeDtypeStruct(shape, np.float32)}
    return jax.export.export(jax.jit(model), platforms=["cpu"])(arguments).serialize()


def test_diff_of_two_exports_of_the_same_program(tmp_path: Path):
    ours = exported(2.0)
    assert jaxprism.diff(ours, ours)["identical"]
    # Another process, from another file: the places are others, the program is not.
    script = "import sys, test_package; sys.stdout.buffer.write(test_package.exported(2.0))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); {script}"]
    theirs = subprocess.run(command, capture_output=True, timeout=300, check=True).stdout
    found = jaxprism.diff(ours, theirs, ignore=["locations"])
    assert found["equal"] and found["changes"] == [], found["changes"]
    (tmp_path / "a").write_bytes(ours)
    (tmp_path / "b").write_bytes(theirs)
    assert jaxprism.diff(tmp_path / "a", str(tmp_path / "b"), ignore=["locations"]) == found


def test_diff_of_slightly_different_programs():
    ours = exported(2.0)
    # Whoever calls is in the places.
    found = jaxprism.diff(ours, exported(3.0), ignore=["locations"])
    assert not found["equal"]
    assert {name: count for name, count in found["counts"].items() if count} == {"operations": 1}
    (change,) = found["changes"]
    assert (change["kind"], change["how"], change["what"]) == ("operation", "changed", "vhlo.constant_v1")
    constants = {"a": "dense<2.0> : tensor<f32>", "b": "dense<3.0> : tensor<f32>"}
    assert change["details"] == [{"what": "attribute `value`", **constants}]
    assert "test_package.py" in change["a"]["place"]
    found = jaxprism.diff(ours, exported(2.0, (8,)), max_changes=2)
    signature = [(each["what"], each["a"]["text"], each["b"]["text"]) for each in found["changes"]]
    assert signature == [("args[0]['w']", "float32[4]", "float32[8]"), ("result", "float32[4]", "float32[8]")]
    assert found["is_cut"] and found["counts"]["operations"] > 0


def test_diff_of_what_is_no_export():
    with pytest.raises(jaxprism.JaxprismError) as raised:
        jaxprism.diff(DEMO, b"no export")
    assert raised.value.kind == "format" and "cannot read B" in str(raised.value)
    with pytest.raises(jaxprism.JaxprismError, match="`places` cannot be ignored"):
        jaxprism.diff(DEMO, DEMO, ignore=["places"])


# ---------------------------------------------------------------- verify


def by_platform(x):
    return jax.lax.platform_dependent(x, cpu=jax.numpy.sin, default=lambda x: 2 * x)


def with_gradient() -> bytes:
    exported = jaxprism.export(jax.jit(by_platform), platforms=PLATFORMS)(np.ones((2, 3), np.float32))
    return jaxprism.serialize(exported, vjp_order=1)


def test_splits_are_proved_and_run():
    original = with_gradient()
    for platform, data in jaxprism.split(original).items():
        found = jaxprism.verify(data, against=original, run=True)
        assert found["verified"]
        assert found["platform"] == platform
        assert found["run"]["skipped"] is None
        assert found["run"]["differences"] == []
        assert found["run"]["identical"] + found["run"]["close"] == 2, "the function and its gradient"


def test_other_numbers_are_found_by_running():
    original = with_gradient()
    for_cuda = jaxprism.split(original, platforms=["cuda"])["cuda"]
    as_cpu = jax.export.deserialize(bytearray(for_cuda))
    as_cpu = jaxprism.serialize(relabelled(as_cpu, "cpu"))
    found = jaxprism.verify(as_cpu, against=original, run=True)
    assert not found["verified"]
    assert found["differences"]
    (difference,) = (each for each in found["run"]["differences"] if each["level"] == 0)
    assert difference["what"].startswith("6 of 6 numbers; at [0, 0] ")


def relabelled(exported: jax.export.Exported, platform: str) -> jax.export.Exported:
    return dataclasses.replace(exported, platforms=(platform,), _get_vjp=None)


def test_symbolic_sizes_are_found():
    shape = jax.export.symbolic_shape("a, b", constraints=("a >= 3", "mod(b, 4) == 0"))
    argument = jax.ShapeDtypeStruct(shape, np.float32)
    original = jaxprism.serialize(jaxprism.export(jax.jit(by_platform), platforms=PLATFORMS)(argument))
    found = jaxprism.verify(jaxprism.split(original)["cpu"], against=original, run=True)
    assert found["verified"]
    assert found["run"] == {"device": "cpu", "skipped": None, "identical": 1, "close": 0, "differences": []}


def test_what_cannot_be_run_is_said(placeholders: bytes):
    def solve(x):
        return jax.numpy.linalg.cholesky(x)

    original = jaxprism.serialize(jaxprism.export(jax.jit(solve), platforms=PLATFORMS)(np.eye(3, dtype=np.float32)))
    found = jaxprism.verify(jaxprism.split(original)["cuda"], against=original, run=True)
    assert found["verified"]
    assert "cannot run it" in found["run"]["skipped"] or "ended with" in found["run"]["skipped"]
    assert found["run"]["identical"] == 0
    # Callbacks return zeros in both.
    cpu = jaxprism.split(placeholders, platforms=["cpu"])["cpu"]
    found = jaxprism.verify(cpu, against=placeholders, run=True)
    assert found["verified"]
    assert found["run"]["identical"] == 1


def test_verify_with_run_on_the_command_line(tmp_path: Path):
    path = tmp_path / "model.jax_exported"
    path.write_bytes(with_gradient())
    parts = jaxprism.split(path, out=tmp_path)
    command = [sys.executable, "-m", "jaxprism", "verify", str(parts["cpu"]), "--against", str(path), "--run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"`{parts['cpu']}` is proved to be `{path}` on cpu",
        "  run on cpu: 2 results are identical",
    ]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout)["splits"][0]["run"]["identical"] == 2
    command[4] = str(path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: jaxprism.split(b""), jaxprism.JaxprismError, "it is empty"),
        (lambda: jaxprism.split("missing"), jaxprism.JaxprismError, "cannot read `missing`"),
        (lambda: jaxprism.split(3), TypeError, "as the path of a file, not as int"),
        (lambda: jaxprism.load(3), TypeError, "as the path of a file, not as int"),
        (lambda: jaxprism.load("missing"), jaxprism.JaxprismError, "cannot read `missing`"),
        (lambda: jaxprism.load(b"text"), jaxprism.JaxprismError, "not a JAX export"),
        (lambda: jaxprism.split(DEMO, platforms="cpu"), TypeError, "several texts, such as"),
        (lambda: jaxprism.split(DEMO, platforms=[None]), TypeError, "holds None"),
        (lambda: jaxprism.split(DEMO, platforms=[]), jaxprism.JaxprismError, "names no platform"),
        (lambda: jaxprism.split(DEMO, platforms=["cpu", "cpu"]), jaxprism.JaxprismError, "`cpu` twice"),
        (lambda: jaxprism.split(DEMO, platforms=["metal"]), jaxprism.JaxprismError, "no platform `metal`"),
        (lambda: jaxprism.split(DEMO, callbacks=None), TypeError, "name of a policy"),
        (lambda: jaxprism.split(DEMO, callbacks="no"), jaxprism.JaxprismError, "`no` is not a policy"),
        (lambda: jaxprism.split(DEMO, callbacks="ffi: "), jaxprism.JaxprismError, "not a policy"),
        (lambda: jaxprism.split(DEMO, callback="log=strip"), TypeError, "mapping from names to policies"),
        (lambda: jaxprism.split(DEMO, callback={"a=b": "keep"}), jaxprism.JaxprismError, "no name holds a `=`"),
        (lambda: jaxprism.split(DEMO, callback={1: "keep"}), TypeError, "both are to be texts"),
        (lambda: jaxprism.split(DEMO, callback={"no": "keep"}), jaxprism.JaxprismError, "no=keep"),
        (lambda: jaxprism.split(DEMO, table=5), TypeError, "`table` is a mapping"),
        (lambda: jaxprism.split(DEMO, table="missing"), jaxprism.JaxprismError, "cannot read `missing`"),
        (lambda: jaxprism.split(DEMO, table={"v": 1, "platforms": {"x": None}}), jaxprism.JaxprismError, "a row of"),
        (lambda: jaxprism.split(DEMO, table={"v": {1, 2}}), TypeError, "which is no JSON"),
        (lambda: jaxprism.check(DEMO, targets_allowed="x"), TypeError, "several texts"),
        (lambda: jaxprism.check(DEMO, targets_allowed=["a\nb"]), TypeError, "is no name"),
        (lambda: jaxprism.split(DEMO, strip_locations=True, redact_paths=True), ValueError, "exclude one another"),
        (lambda: jaxprism.export(jax.jit(by_platform), platforms="cpu"), TypeError, "several texts"),
        (lambda: jaxprism.export(jax.jit(by_platform), platforms=["gpu"]), jaxprism.JaxprismError, "cuda"),
        (lambda: jaxprism.serialize(None), TypeError, "is expected, and not None"),
        (lambda: jaxprism.bindings(b""), TypeError, "is expected, and not b''"),
        (lambda: jaxprism.register(None), TypeError, "by name"),
        (lambda: jaxprism.register({1: print}), TypeError, "the name of a callback is a text"),
        (lambda: jaxprism.load(DEMO).bind([]), TypeError, "by name"),
        (lambda: jaxprism.load(DEMO).bind(on_missing=5), ValueError, "`on_missing` is"),
        (lambda: jaxprism.named("q")(None), TypeError, "gives names to functions"),
        (lambda: jaxprism.named("tpu:x"), jaxprism.CallbackNameError, "`:`"),
    ],
)
def test_what_is_wrong_is_said(call, error: type, says: str):
    with pytest.raises(error) as raised:
        call()
    assert says in str(raised.value)


def test_a_class_can_be_named():
    assert jaxprism.named("integer")(int)("7") == 7


def test_what_on_missing_returns_is_a_function(placeholders: bytes):
    with pytest.raises(TypeError, match="which is no function"):
        jaxprism.load(placeholders).bind(on_missing=lambda slot: 5)


def test_errors_say_where_and_what_to_do():
    data = bytearray(DEMO.read_bytes())
    data[200:] = b""
    with pytest.raises(jaxprism.JaxprismError) as raised:
        jaxprism.split(data)
    error = raised.value
    assert isinstance(error, ValueError)
    assert error.kind == "format"
    assert error.offset is not None
    assert str(error).endswith(f"hint: {error.hint}")
    for again in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.kind, again.offset, again.hint) == (str(error), "format", error.offset, error.hint)


def test_hints_are_for_python(placeholders: bytes):
    with pytest.raises(jaxprism.JaxprismError) as raised:
        jaxprism.split(placeholders)
    assert "`callback={'tpu:watch': 'host'}` runs it" in raised.value.hint
    assert "`callback={'tpu:watch': 'strip'}` removes it" in raised.value.hint
    assert "--" not in raised.value.hint


def test_damaged_files_are_refused_before_jax_sees_them(placeholders: bytes):
    """Some of these make JAX raise anything, or end the process, if it is given them."""
    random = np.random.default_rng(0)
    refused = []
    for number in range(300):
        data = bytearray(placeholders)
        if number % 3 == 0:
            del data[random.integers(len(data)) :]
        else:
            data[random.integers(len(data))] = random.integers(256)
        try:
            jaxprism.split(data)
            jaxprism.strip(data, callback={"log": "stub:operand:0"})
        except jaxprism.JaxprismError as error:
            refused.append(error.kind)
        if number % 3 == 0:
            with pytest.raises(jaxprism.JaxprismError):
                jaxprism.load(data)
    assert len(refused) > 100
    assert set(refused) <= {"format", "unsupported", "refused"}


# ---------------------------------------------------------------- threads


def test_other_threads_run_while_one_splits():
    data, ticks, done = DEMO.read_bytes(), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    jaxprism.split(data)
    end = time.monotonic()
    done.set()
    thread.join()
    assert any(start < at < end for at in ticks)


# ---------------------------------------------------------------- other platforms, fewer levels, no shardings


def test_exports_are_retargeted_or_said_to_be_bound(tmp_path: Path):
    exports = ROOT / "testdata" / "exports"
    several = jaxprism.retarget(exports / "single.jax-0.12.0.1.jax_exported", platforms=["rocm", "tpu"])
    assert jaxprism.info(several)["levels"][0]["signature"]["platforms"] == ["rocm", "tpu"]
    path = jaxprism.retarget(several, platforms=["cpu"], out=tmp_path / "cpu.jax_exported")
    assert path.read_bytes() == jaxprism.retarget(several, platforms=["cpu"])
    with pytest.raises(
        jaxprism.JaxprismError, match="custom call `lapack_spotrf_ffi`: it is for `cpu`, not for `rocm`"
    ):
        jaxprism.retarget(exports / "linalg.jax-0.12.0.1.jax_exported", platforms=["rocm"])


def test_gradients_and_shardings_are_left_out():
    exports = ROOT / "testdata" / "exports"
    parts = jaxprism.split(exports / "sharded.jax-0.12.0.1.jax_exported", strip_sdy=True)
    assert {jaxprism.info(part)["levels"][0]["signature"]["nr_devices"] for part in parts.values()} == {1}
    assert len(jaxprism.info(jaxprism.strip(exports / "vjp.jax-0.12.0.1.jax_exported", no_vjp=True))["levels"]) == 1


def test_modules_are_written_for_older_readers():
    single = ROOT / "testdata" / "exports" / "single.jax-0.12.0.1.jax_exported"
    written = [
        jaxprism.strip(single, target_version="1.9.0"),
        jaxprism.split(single, target_version="1.9.0")["cpu"],
        jaxprism.retarget(single, platforms=["cpu"], target_version="1.9.0"),
    ]
    assert written[0] == written[1] == written[2]
    parts = {"cpu": single, "rocm": jaxprism.retarget(single, platforms=["rocm"])}
    merged = jaxprism.merge(parts, target_version="1.9.0")
    assert jaxprism.info(merged)["levels"][0]["module"]["producer"] == "StableHLO_v1.9.0"
    assert jaxprism.info(written[0])["levels"][0]["module"]["producer"] == "StableHLO_v1.9.0"
    with pytest.raises(jaxprism.JaxprismError, match=r"`vhlo.composite_v2` with regions came with 1\.14\.0"):
        jaxprism.split(ROOT / "testdata" / "exports" / "demo.jax-0.12.0.1.jax_exported", target_version="1.0.0")
    with pytest.raises(jaxprism.JaxprismError, match=r"`1\.9` is no version of StableHLO"):
        jaxprism.strip(single, target_version="1.9")
    with pytest.raises(TypeError, match=r"`target_version` is a version, such as '1\.9\.0', not 1\.9"):
        jaxprism.strip(single, target_version=1.9)


def test_modules_are_made_alone(tmp_path: Path):
    """As the command line writes them: bytecode that JAX's parser reads, or text."""
    export = ROOT / "testdata" / "exports" / "vjp.jax-0.12.0.1.jax_exported"
    parts = jaxprism.split(export)
    modules = {p: jax.export.deserialize(bytearray(part)).mlir_module_serialized for p, part in parts.items()}
    alone = jaxprism.split(export, emit="mlirbc")
    assert alone == modules
    assert [output["bytes"] for output in alone.report["outputs"]] == [len(module) for module in modules.values()]
    paths = jaxprism.split(export, emit="mlir", out=tmp_path)
    assert paths["cpu"] == tmp_path / "vjp.jax-0.12.0.1.cpu.mlir"
    text = paths["cpu"].read_bytes()
    assert text.startswith(b"module @jit_loss ")
    assert text == jaxprism.split(export, platforms=["cpu"], emit="mlir")["cpu"]
    assert len(text) == jaxprism.split(export, emit="mlir").report["outputs"][0]["bytes"]
    stripped = jax.export.deserialize(bytearray(jaxprism.strip(export)))
    assert jaxprism.strip(export, emit="mlirbc") == stripped.mlir_module_serialized
    assert b"_platform_index" in jaxprism.strip(export, emit="mlir")

    merged = jax.export.deserialize(bytearray(jaxprism.merge(parts)))
    assert jaxprism.merge(parts, emit="mlirbc") == merged.mlir_module_serialized
    assert jaxprism.merge(parts, emit="mlir", out=tmp_path / "m").read_bytes() == jaxprism.merge(parts, emit="mlir")

    cpu = ROOT / "testdata" / "exports" / "single.jax-0.12.0.1.jax_exported"
    moved = jaxprism.retarget(cpu, platforms=["tpu"])
    module = jaxprism.retarget(cpu, platforms=["tpu"], emit="mlirbc")
    assert module == jax.export.deserialize(bytearray(moved)).mlir_module_serialized
    assert jaxprism.retarget(cpu, platforms=["tpu"], emit="mlirbc", out=tmp_path / "t").read_bytes() == module
    with pytest.raises(jaxprism.JaxprismError, match="`text` cannot be written") as error:
        jaxprism.strip(export, emit="text")  # type: ignore[arg-type]
    assert error.value.hint == "there are `export`, `mlirbc`, `mlir`"


# ---------------------------------------------------------------- merge


def test_merge_is_the_inverse_of_split(tmp_path: Path):
    original = export_bytes(lambda x: jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 2))
    parts = jaxprism.split(original)
    merged = jaxprism.merge(parts)
    assert list(jax.export.deserialize(bytearray(merged)).platforms) == list(parts)
    again = jaxprism.split(merged)
    assert all(jaxprism.verify(again[platform], against=merged)["verified"] for platform in parts)
    x = np.arange(3, dtype=np.float32)
    assert jax.export.deserialize(bytearray(merged)).call(x).tolist() == [1, 2, 3]

    paths = jaxprism.split(original, out=tmp_path)
    out = jaxprism.merge(paths, out=tmp_path / "merged")
    assert out == tmp_path / "merged"
    assert out.read_bytes() == merged
    with pytest.raises(jaxprism.JaxprismError, match="it is the input"):
        jaxprism.merge(paths, out=paths["cpu"])


def test_merge_leaves_out_gradients_and_shardings():
    exports = ROOT / "testdata" / "exports"
    parts = jaxprism.split(exports / "vjp.jax-0.12.0.1.jax_exported")
    assert len(jaxprism.info(jaxprism.merge(parts, no_vjp=True))["levels"]) == 1
    parts = jaxprism.split(exports / "sharded.jax-0.12.0.1.jax_exported")
    merged = jax.export.deserialize(bytearray(jaxprism.merge(parts, strip_sdy=True)))
    assert merged.nr_devices == 1
    assert "sdy" not in merged.mlir_module()


def test_merge_says_what_does_not_fit():
    part = jaxprism.split(export_bytes(lambda x: x + 1))["cpu"]
    with pytest.raises(jaxprism.JaxprismError, match="two exports or more"):
        jaxprism.merge({"cpu": part})
    with pytest.raises(jaxprism.JaxprismError, match="it is for `cpu`, not for `tpu`"):
        jaxprism.merge({"cpu": part, "tpu": part})
    with pytest.raises(TypeError, match="mapping from platforms to exports"):
        jaxprism.merge([part, part])  # type: ignore[arg-type]


def export_bytes(function: types.FunctionType) -> bytes:
    """An export of a function of three numbers, for cpu and cuda."""
    exported = jax.export.export(jax.jit(function), platforms=("cpu", "cuda"))(np.zeros(3, np.float32))
    return bytes(exported.serialize())
