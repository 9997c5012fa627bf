"""Every program, exported with placeholders, loaded and bound: it runs as it was written, and is lowered as by JAX."""

import functools
import re
from collections.abc import Iterator

import jax
import jaxprism
import numpy as np
import pytest
from callback_programs import PROGRAMS, ROW, Program, buffer, io, pure
from callback_reference import (
    CUSTOM_CALL_PLATFORMS,
    CallbackOp,
    callback_ops,
    is_callback,
    meshes,
    operations,
    read,
    without_checks,
)
from callback_running import Outcome, arguments, assert_same, run, sharding, specs
from jaxlib.mlir import ir
from tool import Tool

PLATFORMS = (*CUSTOM_CALL_PLATFORMS, "tpu")

BUFFERS = [name for name in PROGRAMS if name.startswith("buffer_")]
DIFFERENTIABLE = [name for name, program in PROGRAMS.items() if program.vjp_order]


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


@functools.cache
def written(name: str) -> tuple[bytes, dict]:
    """The file of a program, with placeholders, and the functions that it calls."""
    program = PROGRAMS[name]
    exported = program.export(PLATFORMS)
    data = jaxprism.serialize(exported, vjp_order=program.vjp_order)
    return data, jaxprism.bindings(exported)


def split(tool: Tool, data: bytes, *options: str) -> bytes:
    """One file of a split."""
    done = tool.run("split", "-", *options, "-o", "-", "--quiet", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@functools.cache
def direct(name: str) -> Outcome:
    """What a program gives that was not exported."""
    program = PROGRAMS[name]
    return run(lambda: program.jitted()(*arguments(program)))


# ---------------------------------------------------------------- running


def test_a_bound_export_runs_as_the_function(program: Program):
    data, functions = written(program.name)
    bound = jaxprism.load(data).bind(functions)
    jitted = jax.jit(bound.call)
    assert_same(run(lambda: jitted(*arguments(program))), direct(program.name), bound.slots)
    # Once more, as it is compiled now.
    assert_same(run(lambda: jitted(*arguments(program))), direct(program.name), bound.slots)


def test_a_lowered_file_runs_as_the_function(program: Program, tool: Tool):
    data, functions = written(program.name)
    lowered = split(tool, data, "-p", "cpu")
    with pytest.raises(Exception, match="UnboundCallbacks"):
        jax.export.deserialize(bytearray(lowered))
    bound = jaxprism.load(lowered).bind(functions)
    assert bound.exported.platforms == ("cpu",)
    assert_same(run(lambda: jax.jit(bound.call)(*arguments(program))), direct(program.name), bound.slots)


@pytest.mark.parametrize("name", BUFFERS)
def test_arrays_stand_for_buffers_where_the_file_says_so(name: str, tool: Tool):
    program = PROGRAMS[name]
    data, functions = written(program.name)
    bound = jaxprism.load(split(tool, data, "-p", "cpu", "--callback", "*=host")).bind(functions)
    assert {(slot.kind, slot.takes_buffers) for slot in bound.slots} <= {("pure", True), ("io", True)}
    assert_same(run(lambda: jax.jit(bound.call)(*arguments(program))), direct(program.name), bound.slots)


def test_host_callbacks_run_on_tpu_as_pure_ones(tool: Tool):
    program = PROGRAMS["buffer_alias"]
    data, functions = written(program.name)
    bound = jaxprism.load(split(tool, data, "-p", "tpu", "--callback", "*=host")).bind(functions)
    assert {op.target for op in lowered(bound, program, "tpu")} == {"stablehlo.send", "stablehlo.recv"}


@pytest.mark.parametrize("form", ["placeholders", "lowered"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_call_the_functions(name: str, form: str, tool: Tool):
    program = PROGRAMS[name]
    data, functions = written(program.name)
    bound = jaxprism.load(split(tool, data, "-p", "cpu") if form == "lowered" else data).bind(functions)
    inputs = arguments(program)

    def pull(function):
        values, back = jax.vjp(function, *inputs)
        return values, back(jax.tree.map(np.ones_like, values))

    got, wanted = run(lambda: pull(jax.jit(bound.call))), run(lambda: pull(program.jitted()))
    for a, b in zip(jax.tree.leaves(got.values), jax.tree.leaves(wanted.values), strict=True):
        np.testing.assert_array_equal(a, b)
    # The gradient of an export starts from the arguments again, so it says again what the function said; and JAX leaves
    # out some of it when it differentiates loops itself.
    assert set(map(repr, got.heard)) >= set(map(repr, wanted.heard))
    assert set(got.printed.splitlines()) == set(wanted.printed.splitlines())


def test_gradients_of_gradients_call_the_functions():
    program = PROGRAMS["gradients_with_debug"]
    data, functions = written(program.name)
    bound = jaxprism.load(data).bind(functions)

    def curvature(function):
        return lambda x: jax.grad(lambda x: jax.grad(function)(x).sum())(x)

    got = run(lambda: jax.jit(curvature(bound.call))(*program.inputs()))
    wanted = run(lambda: jax.jit(curvature(program.jitted()))(*program.inputs()))
    np.testing.assert_allclose(got.values, wanted.values, rtol=1e-6)
    assert set(map(repr, got.heard)) == set(map(repr, wanted.heard))


def test_what_goes_to_the_log_of_jax_goes_there(caplog: pytest.LogCaptureFixture):
    program = PROGRAMS.get("print_to_log")
    if program is None:
        pytest.skip("this JAX does not log")
    data, functions = written(program.name)
    assert functions == {}
    call = jaxprism.load(data).bind().call
    records = []
    for each in (program.jitted(), jax.jit(call)):
        caplog.clear()
        run(lambda each=each: each(*program.inputs()))
        records.append(
            [
                (r.name, r.levelno, r.getMessage(), r.pathname, r.lineno)
                for r in caplog.records
                if "x is" in r.getMessage()
            ]
        )
    assert records[0] == records[1] != []


# ---------------------------------------------------------------- lowering


def lowered(bound: jaxprism.Bound, program: Program, platform: str) -> list[CallbackOp]:
    """What a call is lowered to, for a platform that need not be here."""
    return lowered_ops(jax.jit(bound.call, **placed(program)), program, platform)


def placed(program: Program) -> dict:
    where = sharding(program)
    return {} if where is None else {"in_shardings": where}


def lowered_ops(jitted, program: Program, platform: str) -> list[CallbackOp]:
    with without_checks():
        module = jitted.trace(*specs(program)).lower(lowering_platforms=(platform,)).compiler_ir()
    with module.context:
        return list(read_all(module))


def read_all(module: ir.Module) -> Iterator[CallbackOp]:
    for function, op in operations(module):
        if is_callback(op):
            yield read(op, function, meshes(module))


# Attributes that JAX writes although they say nothing, which portable artifacts leave out.
NOTHING = {
    "api_version": "1 : i32",
    "backend_config": '""',
    "called_computations": "[]",
    "has_side_effect": "false",
    "operand_layouts": "[]",
    "output_operand_aliases": "[]",
    "result_layouts": "[]",
}


def described(op: CallbackOp) -> tuple:
    """An operation without its numbers: those of functions count emissions in JAX, and callbacks here."""
    attributes = {name: value for name, value in op.attributes.items() if NOTHING.get(name) != value}
    for name in ("channel_handle", "mhlo.frontend_attributes"):
        if name in attributes:
            attributes[name] = re.sub(r"handle = \d+|\"\d+\"", "N", attributes[name])
    return op.target, sorted(op.config), op.operands, op.results, attributes


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "name", [name for name, program in PROGRAMS.items() if "symbolic" not in name and name != "everything"]
)
def test_operations_are_those_of_jax(name: str, platform: str):
    program = PROGRAMS[name]
    if platform == "tpu" and not program.tpu:
        pytest.skip("JAX does not lower it either")
    data, functions = written(program.name)
    ours = lowered(jaxprism.load(data).bind(functions), program, platform)
    theirs = lowered_ops(program.jitted(), program, platform)
    # JAX lowers a function once or once for each call, depending on the platform and the version.
    assert unique(ours) == unique(theirs)
    assert ours


def unique(ops: list[CallbackOp]) -> list[tuple]:
    found: list[tuple] = []
    for op in map(described, ops):
        if op not in found:
            found.append(op)
    return found


@pytest.mark.parametrize(
    "name", [name for name, program in PROGRAMS.items() if not program.tpu and "symbolic" not in name]
)
def test_what_tpu_cannot_call_is_an_error(name: str):
    program = PROGRAMS[name]
    data, functions = written(program.name)
    bound = jaxprism.load(data).bind(functions)
    with pytest.raises(jaxprism.CallbackPlatformError, match="cannot be called on tpu") as error:
        lowered(bound, program, "tpu")
    assert error.value.kind == "platform"
    assert ": 'host'" in error.value.hint or ": 'unpartition'" in error.value.hint


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.devices == 1])
def test_zeros_are_constants_on_every_platform(name: str, platform: str):
    """Also where JAX has nothing to call, and in memory that Python cannot fill."""
    program = PROGRAMS[name]
    slots = jaxprism.load(written(name)[0]).slots
    ops = lowered(jaxprism.load(written(name)[0]).bind(on_missing="zeros"), program, platform)
    assert bool(ops) == any(slot.kind == "print" for slot in slots)


def test_zeros_of_buffers_and_in_order():
    def run(x):
        y = io(x, ordered=True)
        return buffer(y) + x, y

    exported = jaxprism.export(jax.jit(run), platforms=PLATFORMS)(ROW)
    bound = jaxprism.load(jaxprism.serialize(exported)).bind(on_missing="zeros")
    x = np.arange(4, dtype=np.float32)
    total, y = jax.jit(bound.call)(x)
    np.testing.assert_array_equal(total, x)
    np.testing.assert_array_equal(y, x * 0)


def test_branches_for_other_platforms_may_have_what_tpu_cannot_call():
    def run(x):
        return jax.lax.platform_dependent(x, cpu=buffer, tpu=pure, default=jax.numpy.sin)

    exported = jaxprism.export(jax.jit(run), platforms=PLATFORMS)(ROW)
    bound = jaxprism.load(jaxprism.serialize(exported)).bind(jaxprism.bindings(exported))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(bound.call)(x), x * 3)
    with without_checks():
        jax.jit(bound.call).trace(x).lower(lowering_platforms=("tpu",))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "symbolic" in name and not name.startswith("buffer")])
def test_results_of_symbolic_shapes_have_known_ones_on_tpu(name: str):
    """JAX itself does not lower these for tpu; called with known sizes they are static."""
    program = PROGRAMS[name]
    data, functions = written(program.name)
    ops = lowered(jaxprism.load(data).bind(functions), program, "tpu")
    assert {op.target for op in ops} <= {"stablehlo.send", "stablehlo.recv"}
    assert all("?" not in result for op in ops for result in op.results)


def test_functions_are_numbered_in_the_order_of_the_text():
    program = PROGRAMS["everything"]
    data, functions = written(program.name)
    backwards = dict(reversed(list(functions.items())))
    numbers = []
    for each in (functions, backwards):
        ops = lowered(jaxprism.load(data).bind(each), program, "cpu")
        numbers.append([op.config["index"] for op in ops])
    assert numbers[0] == numbers[1]
    assert list(dict.fromkeys(numbers[0])) == list(range(len(set(numbers[0]))))


def test_placeholders_are_where_they_were(program: Program):
    """Loading changes nothing in the module."""
    data, _ = written(program.name)
    stock = jax.export.deserialize(bytearray(data))
    assert callback_ops(jaxprism.load(data).exported) == callback_ops(stock)
