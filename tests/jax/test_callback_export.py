"""Exports with callbacks: `jaxprism.export` leaves JAX's own operations, with another callee."""

import functools
import json
import re
import warnings

import jax
import jax.numpy as jnp
import jaxprism
import numpy as np
import pytest
from callback_programs import PROGRAMS, ROW, Program, add, look, note, product, see
from callback_reference import (
    CUSTOM_CALL_PLATFORMS,
    CallbackOp,
    callback_ops,
    chain,
    lower_as_jax,
    text_without_callees,
)
from jax import export
from jax.experimental import io_callback

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
KINDS = ("pure", "io", "buffer", "debug", "print")


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


def deserialize(data: bytes) -> export.Exported:
    return export.deserialize(bytearray(data))


def exported(function, *args, platforms=PLATFORMS, **options) -> export.Exported:
    return jaxprism.export(jax.jit(function), platforms=platforms, **options)(*args)


def metadata(op: CallbackOp) -> dict:
    return json.loads(op.config["meta"])


def names(module: export.Exported) -> list[str]:
    """The names of the callbacks in the order of the text."""
    return [op.config["name"] for op in callback_ops(module)]


def effects(module: export.Exported) -> tuple[list[str], list[str]]:
    """The classes of the effects; unordered ones are a set."""
    ordered = [str(type(effect)) for effect in module.ordered_effects]
    return ordered, sorted(str(type(effect)) for effect in module.unordered_effects)


# ---------------------------------------------------------------- every program


def test_every_program_is_written_and_read_by_jax(program: Program):
    original = program.export(PLATFORMS)
    read = deserialize(jaxprism.serialize(original, vjp_order=program.vjp_order))
    assert read.platforms == PLATFORMS
    for level, (a, b) in enumerate(
        zip(chain(original, program.vjp_order), chain(read, program.vjp_order), strict=True)
    ):
        ops = callback_ops(b)
        assert ops == callback_ops(a)
        assert ops or level > 0
        assert effects(a) == effects(b)
    assert not read.has_vjp() or program.vjp_order


def test_placeholders_describe_themselves(program: Program):
    for level in chain(program.export(PLATFORMS), program.vjp_order):
        for op in callback_ops(level):
            assert op.target == "jaxprism_callback"
            assert op.config.keys() == {"v", "kind", "name", "meta"}
            meta = metadata(op)
            assert (op.config["v"], op.config["kind"], op.config["name"]) == (1, meta["kind"], meta["name"])
            assert op.config["kind"] in KINDS
            assert op.config["meta"] == json.dumps(meta, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert meta["tokens"] == int(meta["ordered"]) == sum("token" in operand for operand in op.operands)
            shapes = op.attributes.get("indices_of_shape_operands", "").count(",") + 1 if is_dynamic(op) else 0
            assert len(op.operands) == meta["tokens"] + len(meta["args"]) + shapes
            assert len(op.results) == meta["tokens"] + len(meta["results"])


def is_dynamic(op: CallbackOp) -> bool:
    return "indices_of_shape_operands" in op.attributes


def test_operations_are_those_of_jax_on_every_platform(program: Program):
    ours = chain(program.export(CUSTOM_CALL_PLATFORMS), program.vjp_order)
    for platform in CUSTOM_CALL_PLATFORMS:
        theirs = lower_as_jax(program.jitted(), program.args, platform, vjp_order=program.vjp_order)
        for level, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            where = f"{platform}, vjp level {level}"
            ops = callback_ops(b)
            assert [op.shape() for op in callback_ops(a)] == [op.shape() for op in ops], where
            assert all(op.config.keys() == {"index"} for op in ops), where
            assert effects(a) == effects(b), where


def test_nothing_else_in_the_module_is_touched(program: Program):
    ours = chain(program.export(("cpu",)), program.vjp_order)
    theirs = lower_as_jax(program.jitted(), program.args, "cpu", vjp_order=program.vjp_order)
    for a, b in zip(ours, theirs, strict=True):
        assert text_without_callees(a) == text_without_callees(b)


def test_jax_lowers_for_tpu_what_the_table_says(program: Program):
    if not program.tpu:
        with pytest.raises((ValueError, NotImplementedError)):
            lower_as_jax(program.jitted(), program.args, "tpu")
        return
    (lowered,) = lower_as_jax(program.jitted(), program.args, "tpu")
    assert {op.target for op in callback_ops(lowered)} <= {"stablehlo.send", "stablehlo.recv"}
    assert effects(lowered) == effects(program.export(PLATFORMS))


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.says])
def test_silent_programs_have_only_callbacks_with_results(name: str):
    program = PROGRAMS[name]
    silent = jaxprism.export(program.jitted(program.without), platforms=PLATFORMS)(*program.args)
    assert all(metadata(op)["results"] for op in callback_ops(silent))
    assert len(callback_ops(silent)) < len(callback_ops(program.export(PLATFORMS)))


# ---------------------------------------------------------------- one fact each


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.endswith("in_plain")])
def test_a_call_that_nobody_bound_fails_cleanly(name: str):
    program = PROGRAMS[name]
    read = deserialize(jaxprism.serialize(program.export(PLATFORMS)))
    with pytest.raises(Exception, match="No FFI handler registered for jaxprism_callback"):
        jax.block_until_ready(read.call(*program.inputs()))


def test_effects_are_written_under_the_names_of_jax():
    blob = jaxprism.serialize(PROGRAMS["all_effects"].export(PLATFORMS))
    for name in (
        "callback.IOEffect",
        "callback.OrderedIOEffect",
        "debugging.DebugEffect",
        "debugging.OrderedDebugEffect",
        "buffer_callback.BufferCallbackEffect",
    ):
        assert f"<class 'jax._src.{name}'>".encode() in blob


def test_a_gradient_holds_placeholders_of_its_own():
    program = PROGRAMS["custom_vjp"]
    original = program.export(PLATFORMS)
    assert names(original) == ["forward"]
    assert list(jaxprism.bindings(original)) == ["forward"]
    read = deserialize(jaxprism.serialize(original, vjp_order=1))
    assert names(read) == ["forward"]
    assert names(read.vjp()) == ["backward"]
    assert list(jaxprism.bindings(original)) == ["forward", "backward"]


def test_gradients_of_gradients_hold_placeholders():
    program = PROGRAMS["gradients_with_debug"]
    read = deserialize(jaxprism.serialize(program.export(PLATFORMS), vjp_order=2))
    assert [sorted(set(names(level))) for level in chain(read, 2)] == [["jax.debug.print", "see"]] * 3


def test_everything_holds_all_kinds():
    program = PROGRAMS["everything"]
    forward, backward = chain(program.export(PLATFORMS), 1)
    assert {op.config["kind"] for op in callback_ops(forward)} == set(KINDS)
    assert "backward" in names(backward)
    assert {type(effect).__name__ for effect in forward.ordered_effects} == {"OrderedIOEffect", "OrderedDebugEffect"}


def test_operations_of_one_callback_share_a_slot():
    ops = callback_ops(PROGRAMS["one_slot_three_operations"].export(PLATFORMS))
    assert len(ops) == 3
    assert len({op.config["meta"] for op in ops}) == 1
    ops = callback_ops(PROGRAMS["one_function_in_two_kinds"].export(PLATFORMS))
    assert [op.config["kind"] for op in ops] == ["pure", "io", "io"]
    assert len({op.config["meta"] for op in ops}) == 3


def test_metadata_of_an_io_callback():
    (op,) = callback_ops(PROGRAMS["io_ordered_in_plain"].export(PLATFORMS))
    assert metadata(op) == {
        "v": 1,
        "kind": "io",
        "name": "log",
        "fn": "callback_programs:log",
        "stable": True,
        "ordered": True,
        "tokens": 1,
        "in_tree": {"t": [{"t": ["*"]}, {"d": [], "k": []}]},
        "args": [["float32", ["4"]]],
        "results": [["float32", ["4"]]],
    }


def test_metadata_of_a_buffer_callback():
    (op,) = callback_ops(PROGRAMS["buffer_trees"].export(PLATFORMS))
    meta = metadata(op)
    assert meta["in_tree"] == {"t": [{"t": [{"d": ["*"], "k": ["x"]}]}, {"d": ["*"], "k": ["more"]}]}
    assert meta["out_tree"] == {"d": [{"t": ["*"]}, "*"], "k": ["count", "sum"]}
    assert meta["results"] == [["int32", []], ["float32", ["4"]]]
    assert (meta["cmd_buffer"], meta["vmap_method"]) == (False, None)
    (op,) = callback_ops(PROGRAMS["buffer_command_buffer"].export(PLATFORMS))
    assert metadata(op)["cmd_buffer"] is True


def test_metadata_of_a_pure_callback_with_symbolic_dimensions():
    (op,) = callback_ops(PROGRAMS["pure_symbolic_larger"].export(PLATFORMS))
    assert metadata(op)["args"] == [["float32", ["b"]]]
    assert metadata(op)["results"] == [["float32", ["2*b + 1", "4"]]]


def test_metadata_keeps_static_arguments_and_formats():
    (op,) = callback_ops(PROGRAMS["debug_static_arguments"].export(PLATFORMS))
    meta = metadata(op)
    # Numbers are operands; the position is that among the leaves, where `None` is none.
    assert meta["static_args"] == {"0": "first", "3": "metre"}
    assert len(meta["args"]) == 2
    plain, forms, unicode = map(metadata, callback_ops(PROGRAMS["print_forms"].export(PLATFORMS)))
    assert (plain["fmt"], plain["ordered"]) == ("no placeholder", False)
    assert (forms["fmt"], forms["static_args"]) == ("{:.2f} {} {unit} {{}}", {"1": "text", "2": "metre"})
    assert (unicode["fmt"], unicode["ordered"]) == ("Größe {size}\n“quoted” \\ {{\t}}", True)
    assert dict(map(tuple, forms["np_printoptions"]))["precision"] == np.get_printoptions()["precision"]


def test_partitioned_callbacks_say_so():
    for name, kind in (("debug_partitioned", "debug"), ("print_partitioned", "print")):
        (op,) = callback_ops(PROGRAMS[name].export(PLATFORMS))
        assert (op.config["kind"], metadata(op)["partitioned"]) == (kind, True)
        (jax_op,) = callback_ops(lower_as_jax(PROGRAMS[name].jitted(), (ROW,), "cuda")[0])
        assert jax_op.target == "xla_ffi_partitioned_python_gpu_callback"


def test_export_does_not_change_jax():
    with pytest.raises(NotImplementedError, match="serialization of host_callbacks is not yet implemented"):
        export.export(PROGRAMS["pure_in_plain"].jitted(), platforms=["cpu"])(ROW)
    program = PROGRAMS["debug_in_plain"]
    program.export(PLATFORMS)
    assert np.allclose(jax.jit(program.function)(*program.inputs()), np.sin(program.inputs()[0]) * 2)


def test_other_checks_stay_on():
    def foreign(x):
        return jax.ffi.ffi_call("not_stable", ROW)(x)

    with pytest.raises(ValueError, match="not_stable"):
        exported(foreign, ROW)
    check = export.DisabledSafetyCheck.custom_call("not_stable")
    assert check in exported(foreign, ROW, disabled_checks=[check]).disabled_safety_checks


# ---------------------------------------------------------------- names


def test_names_are_given_or_those_of_the_place():
    def run(x):
        jax.debug.callback(see, x)
        jax.debug.callback(look, x)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = exported(run, ROW, strict_names=True)
    assert names(module) == ["see", "callback_programs.look"]
    assert jaxprism.bindings(module) == {"see": see, "callback_programs.look": look}


def calls(*functions):
    """A program that hands its argument to each of them."""

    def run(x):
        for function in functions:
            jax.debug.callback(function, x)
        return x

    return run


def inner():
    def function(x):
        pass

    return function


UNSTABLE = {
    "lambda": (lambda: calls(lambda x: None), "<lambda>"),
    "inner function": (lambda: calls(inner()), "inner.<locals>.function"),
    "partial": (lambda: calls(functools.partial(look, 1)), "callback_programs.look"),
}


@pytest.mark.parametrize("case", UNSTABLE)
def test_unstable_names_warn_and_strict_ones_are_errors(case: str):
    make, name = UNSTABLE[case]
    with pytest.warns(jaxprism.UnstableNameWarning, match=re.escape(name)):
        module = exported(make(), ROW)
    assert metadata(*callback_ops(module))["stable"] is False
    with pytest.raises(ValueError, match=re.escape(name)) as error:
        exported(make(), ROW, strict_names=True)
    assert error.type is jaxprism.UnstableNameError


def test_another_function_of_a_name_is_numbered():
    first, second = inner(), inner()
    second.__defaults__ = (1,)
    with pytest.warns(jaxprism.UnstableNameWarning):
        module = exported(calls(first, second, first), ROW)
    base = "test_callback_export.inner.<locals>.function"
    assert names(module) == [base, f"{base}#2", base]
    assert jaxprism.bindings(module) == {base: first, f"{base}#2": second}


def test_a_function_made_anew_is_the_same():
    with pytest.warns(jaxprism.UnstableNameWarning):
        module = exported(calls(inner(), inner()), ROW)
    assert len(set(names(module))) == 1


def test_functions_of_a_given_name_share_it():
    module = exported(calls(jaxprism.named("n")(inner()), jaxprism.named("n")(inner())), ROW, strict_names=True)
    assert names(module) == ["n", "n"]


def test_what_takes_no_attributes_can_be_named():
    class Logger:
        def write(self, x):
            return x

    for function in (Logger().write, print, functools.partial(look, 1)):
        assert names(exported(calls(jaxprism.named("n")(function)), ROW, strict_names=True)) == ["n"]


def test_a_second_name_leaves_the_first():
    other = jaxprism.named("other")(note)
    assert names(exported(calls(note, other), ROW)) == ["note", "other"]


def test_a_name_that_is_another_functions_place_is_refused():
    taken = jaxprism.named("callback_programs.look")(inner())
    with pytest.raises(jaxprism.CallbackNameError, match="automatic name of callback_programs:look"):
        exported(calls(look, taken), ROW)


@pytest.mark.parametrize("name", ["", " log", "a=b", "a#2", "a\nb", 3])
def test_names_that_options_cannot_write_are_refused(name):
    with pytest.raises(jaxprism.CallbackNameError):
        jaxprism.named(name)


# ---------------------------------------------------------------- what cannot be written


def test_static_arguments_that_are_no_json_are_refused():
    def run(x):
        jax.debug.callback(see, x, object)
        return x

    with pytest.raises(jaxprism.CallbackMetadataError, match="neither an array nor a text"):
        exported(run, ROW)


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), "auxiliary"

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_pytrees_are_written_as_jax_export_knows_them():
    def run(x):
        return io_callback(add, ROW, Pair(x, x))

    with pytest.raises(jaxprism.CallbackMetadataError, match="register_pytree_node_serialization"):
        exported(run, ROW)
    export.register_pytree_node_serialization(
        Pair, serialized_name="test.Pair", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    )
    (op,) = callback_ops(exported(run, ROW))
    assert metadata(op)["in_tree"]["t"][0] == {"t": [{"c": ["*", "*"], "n": "test.Pair", "a": b"auxiliary".hex()}]}


def test_bindings_are_those_of_an_export_of_ours():
    module = export.export(jax.jit(jnp.sin), platforms=["cpu"])(ROW)
    with pytest.raises(jaxprism.CallbackError, match="a file does not hold the functions"):
        jaxprism.bindings(module)


def test_one_callback_of_two_arguments_keeps_their_order():
    (op,) = callback_ops(exported(lambda x: jax.pure_callback(product, ROW, x, x[0]), ROW))
    assert metadata(op)["args"] == [["float32", ["4"]], ["float32", []]]
