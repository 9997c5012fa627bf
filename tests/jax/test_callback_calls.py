"""The policy `call`: functions of other exports in the place of callbacks."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import callback_programs
import jax
import jax.numpy as jnp
import jaxprism
import numpy as np
import pytest
from callback_case import Case, assert_computes, calls, cases_of, effects, levels, load, replaced_by
from callback_programs import PROGRAMS, SILENT, f32, mesh
from jax import export
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from test_split import rewritten
from tool import Tool

Spec = jax.ShapeDtypeStruct


@pytest.fixture(scope="module")
def cases(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    return cases_of(tool, tmp_path_factory)


# ---------------------------------------------------------------- every program


def computed(types: list, operands: list) -> list:
    """What the exported functions compute: elements of their own of the first operand if it has the result's shape, as
    `vmap` wants it; else something of all operands. Something else for every result."""

    def result(number: int, of: Spec) -> jax.Array:
        if operands and jnp.shape(operands[0]) == of.shape:
            return (jnp.asarray(operands[0]) * 2 + 1 + number).astype(of.dtype)
        total = sum((jnp.sum(jnp.abs(jnp.asarray(x)).astype(f32)) for x in operands), start=jnp.float32(0.5))
        # A condition that does not hold for ever.
        value = total + number < 20 if of.dtype == bool else total + number
        return jnp.broadcast_to(value, of.shape).astype(of.dtype)

    return [result(number, of) for number, of in enumerate(types)]


def spec_of(text: str, scope: export.SymbolicScope) -> Spec:
    """`float32[2*b,4]` as a type."""
    dtype, shape = re.fullmatch(r"(\w+)\[(.*)\]", text).groups()
    return Spec(export.symbolic_shape(shape, scope=scope) if shape else (), jnp.dtype(dtype))


def exported(operands: Iterable[str], results: Iterable[str], platform: str) -> bytes:
    """A function of these types, in a file."""
    scope = export.SymbolicScope()
    types = [spec_of(text, scope) for text in results]

    def function(*args):
        return computed(types, list(args))

    return export.export(jax.jit(function), platforms=(platform,))(*[spec_of(t, scope) for t in operands]).serialize()


def called_in(case: Case, platform: str) -> list[str]:
    """Rules that call an exported function for every callback; none where a name has callbacks of several types."""
    case.kept()
    (output,) = [found for found in case.record("kept", "manifest")["outputs"] if found["platform"] == platform]
    types: dict[str, set[tuple]] = {}
    for slot in (slot for level in output["levels"] for slot in level["slots"]):
        types.setdefault(slot["name"], set()).add((tuple(slot["operands"]), tuple(slot["results"])))
    rules = []
    for number, (name, found) in enumerate(types.items()):
        if len(found) > 1:
            return []
        path = case.directory / f"function-{platform}-{number}.jax_exported"
        path.write_bytes(exported(*next(iter(found)), platform))
        rules += ["--callback", f"{platform}:{name}=call:{path}"]
    return rules


# Random keys have no numbers to add.
SKIPPED = {name for name in PROGRAMS if "key" in name}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SKIPPED])
def test_every_callback_can_be_a_function(cases, name: str):
    """The split computes what the program does with the functions in it, on every level, and no effect is left."""
    case = cases(name)
    rules = called_in(case, "cpu")
    if not rules:
        pytest.skip("a name has callbacks of several types")
    found = levels(load(case.split("called", *rules, platforms=("cpu",))["cpu"].read_bytes()))
    for level in found:
        assert rewritten(bytes(level.mlir_module_serialized)) == bytes(level.mlir_module_serialized)
        assert effects(level) == ([], [])
        assert not calls(level, "jaxprism_callback")
        assert not [check for check in level.disabled_safety_checks if "jaxprism" in str(check)]
    (output,) = case.record("called", "report")["outputs"]
    assert all(level["changes"]["callbacks_called"] for level in output["levels"] if level["callbacks"])
    with replaced_by(lambda function, types, operands: computed(types, operands)):
        assert_computes(found, case.program.build(SILENT), case.program.inputs(), name)


# ---------------------------------------------------------------- one program, looked at closely


def square(x):
    return x * x


def lookup(x):
    return np.asarray(x)


def program(x, y):
    """Two calls, of two shapes; one is in a function that is called twice, and one in a loop."""
    find = lambda x: jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)  # noqa: E731
    twice = jax.jit(lambda x: find(square(x)) + 1)
    z = jax.lax.fori_loop(0, 3, lambda _, z: find(z) * 2, y)
    return twice(x) + twice(x * 2), z


X, Y = jnp.arange(1.0, 5.0, dtype=f32), jnp.arange(1.0, 3.0, dtype=f32)
NAME = "*lookup"


def placeholders(
    function: Callable = program, *args: Any, platforms: tuple[str, ...] = ("cpu", "cuda", "tpu")
) -> bytes:
    return jaxprism.serialize(jaxprism.export(jax.jit(function), platforms=platforms)(*(args or (X, Y))))


def function(of: Callable, *args: Any, platforms: tuple[str, ...] = ("cpu",), **options: Any) -> bytes:
    return export.export(jax.jit(of), platforms=platforms, **options)(*args).serialize()


def any_size(of: Callable, **options: Any) -> bytes:
    return function(of, Spec(export.symbolic_shape("n"), f32), **options)


def called(data: bytes, name: str, exported: bytes, platform: str = "cpu") -> bytes:
    rule = {f"{platform}:{name}": "call:it"}
    return jaxprism.split(data, platforms=[platform], callback=rule, exports={"it": exported})[platform]


def same(found: Any, expected: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def in_program(implementation: Callable, run: Callable = program, *args: Any) -> Any:
    """What the program computes with the function in it."""
    with replaced_by(lambda _, types, operands: [implementation(*operands)]):
        return jax.jit(lambda *args: run(*args))(*(args or (X, Y)))


def implementation(x):
    return jnp.sin(square(x)) + 3


def test_a_function_of_any_size_is_called_for_every_shape():
    """The program has no symbolic dimensions, and the function is refined for each of its calls."""
    split = load(called(placeholders(), NAME, any_size(implementation)))
    assert split.uses_global_constants
    same(split.call(X, Y), in_program(implementation))
    assert len(re.findall(r"func private @implementation", str(split.mlir_module()))) == 2


def test_one_call_of_a_static_function_stands_once():
    run = lambda x: program(x, x)  # noqa: E731
    split = load(called(placeholders(run, X), NAME, function(implementation, X)))
    assert not split.uses_global_constants
    same(split.call(X), in_program(implementation, run, X))
    assert len(re.findall(r"func private @implementation", str(split.mlir_module()))) == 1


def test_names_of_the_program_stay_and_those_of_the_function_give_way():
    """Both have private functions `square`, which compute something else."""
    one = lambda x: jax.jit(square)(jax.pure_callback(lookup, Spec(x.shape, x.dtype), jax.jit(square)(x)))  # noqa: E731

    def other(x):
        def square(x):
            return jnp.cos(x)

        return jax.jit(square)(x) + jax.jit(square)(x * 2)

    split = load(called(placeholders(one, X), NAME, function(other, X)))
    same(split.call(X), in_program(other, one, X))


def test_a_function_may_be_made_for_several_platforms_and_use_what_it_likes():
    """Whatever its signature looks like, arrays are taken in order; one is not used at all."""
    results = (Spec((2,), jnp.int32), Spec((), f32))
    run = lambda a, b, c: jax.pure_callback(lookup, results, a, b, c)  # noqa: E731
    args = (X, Y, jnp.int32(4))

    def other(packed, *, c):
        first = jax.lax.platform_dependent(cpu=lambda: jnp.float32(1), default=lambda: jnp.float32(2))
        return [(packed["b"] * first).astype(jnp.int32) + c, packed["b"].sum()]

    exported = export.export(jax.jit(other), platforms=("cuda", "cpu"))({"a": X, "b": Y}, c=args[2]).serialize()
    same(
        load(called(placeholders(run, *args), NAME, exported)).call(*args), (np.array([5, 6], np.int32), np.float32(3))
    )
    cuda = called(placeholders(run, *args), NAME, exported, "cuda")
    assert rewritten(bytes(load(cuda).mlir_module_serialized)) == bytes(load(cuda).mlir_module_serialized)


def test_other_callbacks_and_platforms_keep_what_they_had():
    def run(x):
        x = jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)
        io_callback(print, None, x, ordered=True)
        return x

    split = jaxprism.split(
        placeholders(run, X),
        callback={"tpu:" + NAME: "call:it"},
        exports={"it": function(implementation, X, platforms=("tpu",))},
    )
    slots = {name: jaxprism.callbacks(data)["levels"][0]["slots"] for name, data in split.items()}
    assert [len(found) for found in slots.values()] == [2, 2, 1]
    report = {output["platform"]: output["levels"][0]["callbacks"] for output in split.report["outputs"]}
    first, second = report["tpu"]
    assert (first["policy"], first["target"], first["replaces_results"]) == ("call:it", None, False)
    assert (second["policy"], second["target"]) == ("lower", "jaxprism_callback")
    assert (
        effects(load(split["tpu"]))[0] == effects(load(jaxprism.strip(placeholders(run, X), callback={"*": "keep"})))[0]
    )


def test_an_ordered_callback_loses_its_token():
    def run(x):
        return callback_programs.io_callback(lookup, Spec(x.shape, x.dtype), x, ordered=True) + 1

    split = load(called(placeholders(run, X), NAME, function(implementation, X)))
    assert (split.ordered_effects, split.unordered_effects) == ((), ())
    same(split.call(X), in_program(implementation, run, X))


def test_a_function_may_be_sharded_as_its_caller_is():
    sharding = NamedSharding(mesh(), P("i"))
    run = lambda x: jax.pure_callback(lookup, Spec(x.shape, x.dtype), x * 2) + 1  # noqa: E731
    data = jaxprism.serialize(
        jaxprism.export(jax.jit(run, in_shardings=sharding, out_shardings=sharding), platforms=("cpu", "cuda"))(X)
    )
    other = lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), sharding)  # noqa: E731
    for exported in (
        export.export(jax.jit(other, in_shardings=sharding, out_shardings=sharding), platforms=["cpu"])(X).serialize(),
        function(jnp.sin, X),
    ):
        split = load(called(data, NAME, exported))
        x = jax.device_put(X, sharding)
        same(jax.jit(split.call)(x), jnp.sin(X * 2) + 1)
    with pytest.raises(jaxprism.JaxprismError, match="it is for 2 devices, and whoever calls it for 1"):
        called(
            placeholders(run, X),
            NAME,
            export.export(jax.jit(other, in_shardings=sharding), platforms=["cpu"])(X).serialize(),
        )


def test_what_jax_was_told_about_custom_calls_of_a_function_stays():
    call = jax.ffi.ffi_call("my_target", Spec(X.shape, X.dtype))
    check = export.DisabledSafetyCheck.custom_call("my_target")
    exported = function(lambda x: call(x), X, disabled_checks=[check])
    run = lambda x: jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)  # noqa: E731
    assert check in load(called(placeholders(run, X), NAME, exported)).disabled_safety_checks


def test_a_level_without_callbacks_has_no_check_of_them_either():
    @jax.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (x * 2, x), lambda x, ct: (jax.pure_callback(lookup, Spec(x.shape, x.dtype), x) * ct,))
    data = jaxprism.serialize(jaxprism.export(jax.jit(double), platforms=("cpu", "cuda"))(X), vjp_order=1)
    for split in (called(data, NAME, function(jnp.sin, X)), jaxprism.strip(data, callback={"*": "stub:zeros"})):
        assert [level.disabled_safety_checks for level in levels(load(split))] == [(), ()]
    kept = jaxprism.split(data, platforms=["cpu"], callbacks="keep")["cpu"]
    assert [len(level.disabled_safety_checks) for level in levels(load(kept))] == [1, 1]


def test_sizes_are_solved_as_jax_does():
    """Other names, other orders, multiples, and what is equal though it is written otherwise."""
    scope = export.SymbolicScope()
    a, b = export.symbolic_shape("a, b", scope=scope)
    args = (Spec((a,), f32), Spec((2 * b,), f32))
    run = lambda x, y: jax.pure_callback(lookup, Spec((2 * b + a,), f32), x, y)  # noqa: E731
    other = export.SymbolicScope()
    b2, n = export.symbolic_shape("b, n", scope=other)
    join = lambda x, y: jnp.concatenate([y, x])  # noqa: E731
    exported = function(join, Spec((b2,), f32), Spec((2 * n,), f32))
    split = load(called(placeholders(run, *args), NAME, exported))
    same(split.call(X, Y), join(X, Y))
    static = lambda x, y: jax.pure_callback(lookup, Spec((6,), f32), x, y)  # noqa: E731
    same(load(called(placeholders(static, X, Y), NAME, exported)).call(X, Y), join(X, Y))
    with pytest.raises(
        jaxprism.JaxprismError, match=r"operand 1 is float32\[3\], and the function takes float32\[2\*n\]"
    ):
        odd = lambda x, y: jax.pure_callback(lookup, Spec((7,), f32), x, y)  # noqa: E731
        called(placeholders(odd, X, jnp.ones(3, f32)), NAME, exported)


# ---------------------------------------------------------------- several devices


ROWS = P("i")


def shards(of: Callable, spec: P = ROWS, **options: Any) -> Callable:
    return callback_programs.shard_map(of, mesh(), in_specs=spec, out_specs=spec, **options)


def sharded(of: Callable, *args: Any, spec: P = ROWS, **options: Any) -> export.Exported:
    jitted = jax.jit(of, in_shardings=NamedSharding(mesh(), spec), out_shardings=NamedSharding(mesh(), spec))
    return jaxprism.export(jitted, platforms=["cpu"], **options)(*args)


def test_what_runs_for_every_shard_calls_functions_for_one_device():
    find = lambda x: jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)  # noqa: E731
    inner = jax.jit(lambda x: find(x * 2) + 1)
    summed = sharded(shards(lambda x: jax.lax.psum(x, "i"), P()), Y, spec=P()).serialize()
    for body in (lambda x: find(x * 2) + 1, inner, lambda x: jax.lax.cond(x.sum() > 0, inner, inner, x)):
        data = jaxprism.serialize(sharded(shards(body), X))
        x = jax.device_put(X, NamedSharding(mesh(), P("i")))
        same(jax.jit(load(called(data, NAME, function(jnp.sin, Y))).call)(x), jnp.sin(X * 2) + 1)
        with pytest.raises(
            jaxprism.JaxprismError, match="it runs once for every shard, and the function is for 2 devices"
        ) as error:
            called(data, NAME, summed)
        assert error.value.hint == "export the function for one device, for the shapes that a shard has"
    # Beside the shards it may be for all of them.
    beside = jaxprism.serialize(sharded(lambda x: shards(lambda x: x * 2)(x) + find(x), X))
    other = sharded(shards(lambda x: jax.lax.all_gather(x, "i", tiled=True)[:2] * jnp.float32(3)), X).serialize()
    if b"SPMDFullToShardShape" in beside:
        # GSPMD, as JAX before 0.7 has it, does not say where the shards begin and end.
        with pytest.raises(jaxprism.JaxprismError, match="it runs once for every shard"):
            called(beside, NAME, other)
        return
    found = jax.jit(load(called(beside, NAME, other)).call)(jax.device_put(X, NamedSharding(mesh(), ROWS)))
    same(found, X * 2 + jnp.array([3, 6, 3, 6], f32))


def test_collectives_of_one_device_are_refused_where_there_are_more():
    alone = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    whole = callback_programs.shard_map(lambda x: jax.lax.psum(x, "i"), alone, in_specs=P(), out_specs=P())
    exported = function(whole, X)
    find = lambda x: jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)  # noqa: E731
    with pytest.raises(
        jaxprism.JaxprismError,
        match=r"`vhlo.all_reduce_v\d` at .* is for one device, and whoever calls the function is for 2",
    ):
        called(jaxprism.serialize(sharded(find, X)), NAME, exported)
    same(load(called(placeholders(find, X), NAME, exported)).call(X), X)


# ---------------------------------------------------------------- what does not fit


def plain(x):
    return jax.pure_callback(lookup, Spec(x.shape, x.dtype), x)


I = jnp.arange(4, dtype=jnp.int32)  # noqa: E741
REFUSED = {
    "too few": (lambda: function(lambda: X), "the callback has 1 operand, the function takes 0"),
    "too many": (lambda: function(lambda x: (x, x), X), "the callback has 1 result, the function returns 2"),
    "operand": (
        lambda: function(lambda x: x * 1.0, I),
        r"operand 0 is float32\[4\], and the function takes int32\[4\] \(`args\[0\]`\)",
    ),
    "shape": (
        lambda: function(lambda x: x, Y),
        r"operand 0 is float32\[4\], and the function takes float32\[2\] \(`args\[0\]`\)",
    ),
    "result": (
        lambda: function(lambda x: {"a": x.astype(jnp.int32)}, X),
        r"result 0 is float32\[4\], and the function returns int32\[4\] \(`result\['a'\]`\)",
    ),
    "size of a result": (
        lambda: any_size(lambda x: jnp.concatenate([x, x])),
        r"result 0 is float32\[4\], and the function returns float32\[2\*n\] \(`result`\)",
    ),
    "platform": (lambda: function(implementation, X, platforms=("cuda",)), "the export has no platform `cpu`"),
    "callbacks": (lambda: placeholders(plain, X), "it has Python callbacks of its own"),
    "nothing": (lambda: any_size(lambda x: x), r"operand 0 is float32\[0\], and the function takes float32\[n\]"),
    "memory": (
        lambda: function(lambda x: jax.device_put(x, jax.memory.Space.Host), X),
        r"result 0 is float32\[4\], and the function returns float32<host>\[4\]",
    ),
    "no export": (lambda: b"nothing", "cannot call `it`"),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda word: word.replace(" ", "_"))
def test_a_function_that_does_not_fit_is_refused(case: str):
    make, says = REFUSED[case]
    if case == "memory" and not hasattr(jax, "memory"):
        pytest.skip("this JAX has no memory spaces")
    given = jnp.zeros(0, f32) if case == "nothing" else X
    with pytest.raises(jaxprism.JaxprismError, match=says) as raised:
        called(placeholders(plain, given), NAME, make())
    assert "call `it`" in str(raised.value)


def test_an_export_that_no_policy_calls_is_refused():
    with pytest.raises(jaxprism.JaxprismError, match="`exports` has 'other', and no policy calls it"):
        jaxprism.split(placeholders(plain, X), callbacks="keep", exports={"other": b""})
    with pytest.raises(TypeError, match="`exports` is a mapping"):
        jaxprism.split(placeholders(plain, X), exports=[b""])


def test_files_on_the_command_line(tool: Tool, tmp_path: Path):
    model, it = tmp_path / "model.jax_exported", tmp_path / "it.cpu.jax_exported"
    model.write_bytes(placeholders(plain, X))
    it.write_bytes(function(implementation, X))

    def run(*options: str):
        output = [] if "-o" in options else ["-o", f"{tmp_path}/out/"]
        return tool.run("split", model, "-p", "cpu", *output, *options)

    outcome = run("--callbacks", f"call:{it}", "--report", f"{tmp_path}/report.json")
    assert outcome.returncode == 0, outcome.stderr.decode()
    assert b"1 called" in outcome.stdout
    (callback,) = json.loads((tmp_path / "report.json").read_text())["outputs"][0]["levels"][0]["callbacks"]
    assert callback["policy"] == f"call:{it}"
    made = (tmp_path / "out/model.cpu.jax_exported").read_bytes()
    assert made == jaxprism.split(model, platforms=["cpu"], callbacks=f"call:{it}")["cpu"]
    same(load(made).call(X), implementation(X))
    missing = run("--force", "--on-unsupported", f"call:{tmp_path}/none")
    assert (missing.returncode, b"No such file" in missing.stderr) == (2, True)
    stdin = run("--force", "--callbacks", "call:-")
    assert (stdin.returncode, b"`-` is standard input" in stdin.stderr) == (2, True)
    before = it.read_bytes()
    over = run("--force", "--callbacks", f"call:{it}", "-o", f"{tmp_path}/it.{{platform}}.jax_exported")
    assert b"it is the input" in over.stderr
    assert it.read_bytes() == before
    strip = tool.run("strip", model, "-o", f"{tmp_path}/stripped", "--callback", f"{NAME}=call:{it}")
    assert b"is not for `strip`" in strip.stderr
    one = tmp_path / "one.jax_exported"
    jaxprism.split(model, platforms=["cpu"], callbacks="keep", out=f"{tmp_path}/{{platform}}.kept")
    opt = tool.run("opt", tmp_path / "cpu.kept", "--pass", "call-callbacks", "--callbacks", f"call:{it}", "-o", one)
    assert b"`jaxprism split` links the functions that it calls" in opt.stderr
