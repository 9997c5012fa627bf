"""What a bound export can be part of, what is refused, and how long functions live."""

import concurrent.futures
import functools
import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import jaxprism
import numpy as np
import pytest
from callback_programs import HEARD, PROGRAMS, ROW, add, buffer, io, like, log, look, named, pure, see, symbolic
from callback_reference import lower_as_jax
from callback_running import run
from jax import export, lax
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

PLATFORMS = ("cpu", "cuda", "tpu")
X = np.arange(4, dtype=np.float32)


@named("negative")
def negative(x):
    return -np.asarray(x)


@named("plus hundred")
def plus_hundred(ctx, out, x):
    np.asarray(out)[0] += 100


def logged(x):
    """Its ordered callback doubles; `HEARD` says what it saw."""
    return io(pure(x, add), log, ordered=True)


def changed(x):
    jax.debug.print("first {}", x[0])
    return buffer(pure(x, negative), plus_hundred, input_output_aliases={0: 0})


FUNCTIONS = {"add": add, "log": log, "negative": negative, "plus hundred": plus_hundred}


@functools.cache
def written(function, **options) -> bytes:
    """The file of a function of `ROW`."""
    return jaxprism.serialize(jaxprism.export(jax.jit(function), platforms=PLATFORMS)(ROW), **options)


def loaded(function, **options) -> jaxprism.Loaded:
    return jaxprism.load(written(function, **options))


def bound(function, **options) -> jaxprism.Bound:
    module = loaded(function, **options)
    return module.bind({name: FUNCTIONS[name] for name in module.names})


def heard() -> list:
    """The first number of what `log` saw."""
    return [values[0] for name, values in HEARD if name == "log"]


# ---------------------------------------------------------------- together with others


def test_two_exports_and_three_callbacks_of_the_caller_in_one_program():
    first, second, said = bound(logged), bound(changed), []

    @jax.jit
    def outer(x):
        a = jax.pure_callback(lambda v: np.asarray(v) + 10, ROW, x)
        b = first.call(a)
        c = second.call(b)
        io_callback(lambda v: said.append(np.asarray(v).tolist()), None, c, ordered=True)
        d = first.call(c)
        return jax.pure_callback(lambda v: np.asarray(v) * 3, ROW, d)

    b = (X + 10 + 1) * 2
    c = -b
    c[0] += 100
    outcome = run(lambda: outer(X))
    np.testing.assert_array_equal(outcome.values, (c + 1) * 2 * 3)
    assert said == [c.tolist()]
    assert heard() == [11.0, c[0] + 1]
    assert outcome.printed == f"first {b[0]}\n"


def test_ordered_callbacks_keep_their_order_with_those_of_the_caller():
    inside, order = bound(logged), []

    def note(name):
        return lambda *_: order.append(name)

    inside = loaded(logged).bind({"add": add, "log": lambda x: order.append("loaded") or x})

    @jax.jit
    def outer(x):
        io_callback(note("before"), None, ordered=True)
        x = inside.call(x)
        io_callback(note("between"), None, ordered=True)
        x = inside.call(x)
        io_callback(note("after"), None, ordered=True)
        return x

    run(lambda: outer(X))
    assert order == ["before", "loaded", "between", "loaded", "after"]


def test_both_ordered_effects_go_through_a_call():
    def outer(call):
        def run(x):
            jax.debug.callback(see, x[0], ordered=True)
            x = call(x)
            jax.debug.callback(see, x[0], ordered=True)
            return io(call(x), log, ordered=True)

        return run

    inner = bound(logged)
    got = run(lambda: jax.jit(outer(inner.call))(X))
    wanted = run(lambda: jax.jit(outer(logged))(X))
    np.testing.assert_array_equal(got.values, wanted.values)
    for name in ("see", "log"):
        assert [each for each in got.heard if each[0] == name] == [each for each in wanted.heard if each[0] == name]


def test_one_export_with_two_bindings():
    module = loaded(logged)
    one = module.bind({"add": lambda x: np.asarray(x) + 1, "log": np.asarray})
    other = module.bind({"add": lambda x: np.asarray(x) + 1000, "log": np.asarray})
    np.testing.assert_array_equal(jax.jit(lambda x: other.call(one.call(x)))(X), X + 1001)


def test_donated_arguments():
    call = bound(changed).call
    x = jnp.array(X)
    wanted = -X
    wanted[0] += 100
    np.testing.assert_array_equal(jax.jit(call, donate_argnums=0)(x), wanted)
    assert x.is_deleted()


def test_in_a_loop():
    call = bound(logged).call
    run(lambda: jax.jit(lambda x: lax.scan(lambda c, _: (call(c), None), x, None, length=3)[0])(X))
    assert heard() == [1.0, 3.0, 7.0]
    run(lambda: jax.jit(lambda x: lax.cond(x[1] > 0, call, lambda x: x, x))(X))
    assert heard() == [1.0]
    run(lambda: jax.jit(lambda x: lax.fori_loop(0, 2, lambda _, x: call(x), x))(X))
    assert heard() == [1.0, 3.0]


def test_in_a_function_that_is_called_twice():
    inner = jax.jit(bound(logged).call)
    outcome = run(lambda: jax.jit(lambda x: inner(inner(x)))(X))
    np.testing.assert_array_equal(outcome.values, ((X + 1) * 2 + 1) * 2)
    assert heard() == [1.0, 3.0]


def test_compiled_ahead_of_time():
    compiled = jax.jit(bound(logged).call).lower(X).compile()
    run(lambda: compiled(X))
    assert heard() == [1.0]


def test_without_jit():
    outcome = run(lambda: bound(logged).call(X))
    np.testing.assert_array_equal(outcome.values, (X + 1) * 2)
    assert heard() == [1.0]


def test_arguments_by_name_and_trees():
    def function(tree, *, scale):
        return {"y": pure(tree["x"][0] * scale, add)}

    data = jaxprism.serialize(jaxprism.export(jax.jit(function), platforms=("cpu",))({"x": [ROW]}, scale=ROW))
    call = jaxprism.load(data).bind({"add": add}).call
    np.testing.assert_array_equal(call({"x": [X]}, scale=X)["y"], X * X + 1)
    with pytest.raises(ValueError, match="structural differences"):
        call({"x": [X, X]}, scale=X)


def test_results_of_callbacks_that_nobody_uses_do_not_matter():
    module = PROGRAMS["result_not_used"]
    call = jaxprism.load(jaxprism.serialize(module.export(PLATFORMS))).bind({"log": log}).call
    run(lambda: jax.jit(lambda x: (call(x), x)[1])(X))
    assert len(heard()) == 1


# ---------------------------------------------------------------- derivatives and vmap


def test_without_a_gradient_in_the_file_there_is_none():
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda x: bound(logged).call(x).sum())(X)


def test_the_gradient_needs_its_functions_only_when_it_is_called():
    exported = PROGRAMS["custom_vjp"].export(PLATFORMS)
    module = jaxprism.load(jaxprism.serialize(exported, vjp_order=1))
    assert module.names == ("forward", "backward")
    functions = jaxprism.bindings(exported)
    half = module.bind({"forward": functions["forward"]})
    np.testing.assert_allclose(half.call(X), np.sin(X).sum() * 2, rtol=1e-6)
    with pytest.raises(jaxprism.UnboundCallbackError, match="backward"):
        jax.grad(half.call)(X)
    np.testing.assert_allclose(jax.grad(module.bind(functions).call)(X), np.cos(X) * 2, rtol=1e-6)


def test_vmap_calls_it_for_each_row():
    call = bound(changed).call
    rows = np.stack([X, X + 5, X * 2])
    wanted = np.stack([np.asarray(call(row)) for row in rows])
    np.testing.assert_array_equal(jax.jit(jax.vmap(call))(rows), wanted)
    np.testing.assert_array_equal(jax.vmap(call, in_axes=1, out_axes=1)(rows.T), wanted.T)


def test_vmap_over_some_arguments():
    def function(x, y):
        return pure(x, add) + y

    data = jaxprism.serialize(jaxprism.export(jax.jit(function), platforms=("cpu",))(ROW, ROW))
    call = jaxprism.load(data).bind({"add": add}).call
    rows = np.stack([X, X + 5])
    np.testing.assert_array_equal(jax.vmap(call, in_axes=(0, None))(rows, X), rows + 1 + X)
    np.testing.assert_array_equal(
        jax.vmap(jax.vmap(call), in_axes=(None, 0))(rows, np.stack([rows] * 3)), [rows + 1 + rows] * 3
    )


def test_vmap_of_ordered_callbacks_is_refused():
    with pytest.raises(jaxprism.CallbackContextError, match="order matters") as error:
        jax.vmap(bound(logged).call)(np.stack([X, X]))
    assert "lax.map" in error.value.hint
    rows = jnp.stack([X, X])
    run(lambda: lax.map(bound(logged).call, rows))
    assert heard() == [1.0, 1.0]


# ---------------------------------------------------------------- exporting again


def test_an_export_of_a_caller_keeps_the_placeholders():
    inner = bound(logged)

    def outer(x):
        return inner.call(pure(x, negative)) * 2

    exported = jaxprism.export(jax.jit(outer), platforms=PLATFORMS)(ROW)
    assert jaxprism.bindings(exported) == {"negative": negative, "add": add, "log": log}
    again = jaxprism.load(jaxprism.serialize(exported))
    assert [slot.name for slot in again.slots] == ["negative", "add", "log"]
    outcome = run(lambda: again.bind(jaxprism.bindings(exported)).call(X))
    np.testing.assert_array_equal(outcome.values, (-X + 1) * 2 * 2)


def test_an_export_of_a_caller_of_an_export_that_was_not_written():
    inner = jaxprism.export(jax.jit(logged), platforms=PLATFORMS)(ROW)
    exported = jaxprism.export(jax.jit(lambda x: inner.call(inner.call(x))), platforms=PLATFORMS)(ROW)
    again = jaxprism.load(jaxprism.serialize(exported)).bind(jaxprism.bindings(exported))
    run(lambda: again.call(X))
    assert heard() == [1.0, 3.0]


def test_a_gradient_of_a_caller_keeps_the_placeholders():
    exported = PROGRAMS["custom_vjp"].export(PLATFORMS)
    inner = jaxprism.load(jaxprism.serialize(exported, vjp_order=1)).bind(
        jaxprism.bindings(exported) | FUNCTIONS_OF_SINE
    )
    outer = jaxprism.export(jax.jit(lambda x: inner.call(x * 3)), platforms=PLATFORMS)(ROW)
    again = jaxprism.load(jaxprism.serialize(outer, vjp_order=1))
    assert again.names == ("forward", "backward")
    gradient = jax.grad(again.bind(jaxprism.bindings(outer)).call)(X)
    np.testing.assert_allclose(gradient, np.cos(X * 3) * 6, rtol=1e-5)


FUNCTIONS_OF_SINE = {
    "backward": lambda x, cotangent: np.asarray(cotangent) * np.cos(np.asarray(x)),
}


def test_dimensions_are_said_in_the_words_of_the_caller():
    inner = PROGRAMS["pure_symbolic_larger"].export(PLATFORMS)
    ordered = PROGRAMS["io_ordered_symbolic"].export(PLATFORMS)
    call = jaxprism.load(jaxprism.serialize(inner)).bind(jaxprism.bindings(inner)).call
    call_ordered = jaxprism.load(jaxprism.serialize(ordered)).bind(jaxprism.bindings(ordered)).call
    (spec,) = symbolic("2*c, 4")
    exported = jaxprism.export(jax.jit(lambda x: (call(x[:, 0]), call_ordered(x))), platforms=PLATFORMS)(spec)
    again = jaxprism.load(jaxprism.serialize(exported))
    assert [slot.results[0].shape for slot in again.slots] == [("4*c + 1", "4"), ("2*c", "4")]
    x = np.ones((6, 4), np.float32)
    larger, doubled = run(lambda: again.bind(jaxprism.bindings(exported)).call(x)).values
    assert larger.shape == (13, 4)
    np.testing.assert_array_equal(doubled, x * 2)


def test_one_name_for_two_functions_is_refused_in_an_export():
    module = loaded(logged)
    one = module.bind({"add": lambda x: x, "log": log})
    other = module.bind({"add": lambda x: x * 2, "log": log})
    with pytest.raises(jaxprism.CallbackNameError, match="`add` is bound to two functions"):
        jaxprism.export(jax.jit(lambda x: other.call(one.call(x))), platforms=PLATFORMS)(ROW)


def test_what_is_called_and_what_is_loaded_may_be_one_function():
    def whole(x):
        jax.debug.callback(look, x)
        return pure(x, add)

    inner = loaded(whole).bind({"add": add, "callback_programs.look": look})

    for first, second in ((whole, inner.call), (inner.call, whole)):
        exported = jaxprism.export(jax.jit(lambda x, f=first, g=second: f(g(x))), platforms=PLATFORMS)(ROW)
        assert jaxprism.bindings(exported) == {"add": add, "callback_programs.look": look}
    other = loaded(whole).bind({"add": negative, "callback_programs.look": look})
    for first, second in ((whole, other.call), (other.call, whole)):
        with pytest.raises(jaxprism.CallbackNameError, match="`add` is bound to two functions"):
            jaxprism.export(jax.jit(lambda x, f=first, g=second: f(g(x))), platforms=PLATFORMS)(ROW)


def test_jax_does_not_export_a_caller():
    with pytest.raises(jaxprism.CallbackContextError, match=r"jax\.export") as error:
        export.export(jax.jit(bound(logged).call))(ROW)
    assert "jaxprism.export" in error.value.hint


def test_jax_exports_a_caller_of_an_export_without_callbacks():
    data = jaxprism.serialize(jaxprism.export(jax.jit(jnp.sin), platforms=PLATFORMS)(ROW))
    call = jaxprism.load(data).bind().call
    exported = export.export(jax.jit(call), platforms=PLATFORMS)(ROW)
    np.testing.assert_array_equal(exported.call(X), jnp.sin(X))


# ---------------------------------------------------------------- names


def test_a_name_that_is_not_there_is_an_error():
    with pytest.raises(jaxprism.UnknownCallbackError, match="no callback `nope`; it has `add`, `log`") as error:
        loaded(logged).bind({"add": add, "log": log, "nope": add})
    assert error.value.kind == "unknown"


def test_prints_need_no_function_and_take_none():
    module = loaded(changed)
    assert module.names == ("negative", "plus hundred")
    with pytest.raises(jaxprism.UnknownCallbackError) as error:
        module.bind({name: FUNCTIONS[name] for name in module.names} | {"jax.debug.print": print})
    assert error.value.hint == "prints need no function"


def test_missing_names_are_an_error_with_all_of_them():
    with pytest.raises(jaxprism.UnboundCallbackError, match=r"calls `add` \(pure\), `log` \(io\)") as error:
        loaded(logged).bind()
    assert '"add": …, "log": …' in error.value.hint
    with pytest.raises(jaxprism.UnboundCallbackError, match=r"calls `log` \(io\),"):
        loaded(logged).bind({"add": add})


def test_missing_functions_may_give_zeros():
    call = loaded(logged).bind({"add": add}, on_missing="zeros").call
    np.testing.assert_array_equal(call(X), X * 0)
    np.testing.assert_array_equal(loaded(changed).bind({"negative": negative}, on_missing="zeros").call(X), X * 0)
    program = PROGRAMS["pure_symbolic_larger"]
    call = jaxprism.load(jaxprism.serialize(program.export(PLATFORMS))).bind(on_missing="zeros").call
    np.testing.assert_array_equal(call(*program.inputs()), np.zeros((7, 4)))


def test_missing_functions_may_be_skipped_if_they_have_no_results():
    def function(x):
        jax.debug.callback(see, x, ordered=True)
        return pure(x, add)

    with pytest.raises(jaxprism.UnboundCallbackError, match=r"calls `add` \(pure\), which"):
        loaded(function).bind(on_missing="skip")
    outcome = run(lambda: loaded(function).bind({"add": add}, on_missing="skip").call(X))
    np.testing.assert_array_equal(outcome.values, X + 1)
    assert outcome.heard == []


def test_missing_functions_may_be_found_for_their_slots():
    asked = []

    def find(slot):
        asked.append((slot.name, slot.kind, slot.ordered, [array.dtype for array in slot.results]))
        return FUNCTIONS.get(slot.name)

    np.testing.assert_array_equal(loaded(logged).bind(on_missing=find).call(X), (X + 1) * 2)
    assert asked == [("add", "pure", False, ["float32"]), ("log", "io", True, ["float32"])]
    with pytest.raises(jaxprism.UnboundCallbackError):
        loaded(logged).bind(on_missing=lambda slot: None)
    with pytest.raises(ValueError, match="on_missing"):
        loaded(logged).bind(on_missing="ignore")


@pytest.mark.parametrize("function", [lambda: 0, lambda x, y: x, lambda *, x: x])
def test_functions_of_other_arguments_are_refused(function):
    with pytest.raises(jaxprism.CallbackArityError, match="`add` is called with 1 argument, which"):
        loaded(logged).bind({"add": function, "log": log})


def test_names_of_arguments_count():
    module = jaxprism.load(jaxprism.serialize(PROGRAMS["pure_trees"].export(PLATFORMS)))
    with pytest.raises(jaxprism.CallbackArityError, match="1 argument, `scale`, which"):
        module.bind({"trees": lambda d, factor: d})
    buffers = jaxprism.load(jaxprism.serialize(PROGRAMS["buffer_trees"].export(PLATFORMS)))
    with pytest.raises(jaxprism.CallbackArityError, match="3 arguments, `more`, which"):
        buffers.bind({"fill": lambda out, d, more: None})


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="which is no function"):
        loaded(logged).bind({"add": 3, "log": log})


# ---------------------------------------------------------------- what functions return

WRONG = {
    "shape": (lambda x: np.zeros(3, np.float32), r"returned float32\[3\] as result 0; the program has float32\[4\]"),
    "dtype": (lambda x: np.zeros(4, np.int32), r"returned int32\[4\] as result 0"),
    "count": (lambda x: (x, x), "returned 2 arrays; the program has 1 result"),
    "nothing": (lambda x: None, "returned 0 arrays"),
    "error": (lambda x: 1 / 0, "division by zero"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_results_are_errors(case: str):
    function, message = WRONG[case]
    for name, others in (("add", {"log": log}), ("log", {"add": add})):
        call = loaded(logged).bind({name: function, **others}).call
        with pytest.raises(Exception, match=message):
            run(lambda call=call: call(X))


def test_sizes_of_symbolic_results_are_checked():
    for name in ("pure_symbolic_larger", "io_ordered_symbolic"):
        program = PROGRAMS[name]
        module = jaxprism.load(jaxprism.serialize(program.export(PLATFORMS)))
        call = module.bind(
            {each: lambda x: np.zeros((3 if np.ndim(x) == 1 else 2, 4), np.float32) for each in module.names}
        ).call
        with pytest.raises(Exception, match=r"returned float32\[\d,4\] as result 0; the program has float32\[[37],4\]"):
            run(lambda call=call, program=program: call(*program.inputs()))


def test_a_function_of_buffers_returns_nothing():
    call = loaded(changed).bind({"negative": negative, "plus hundred": lambda ctx, out, x: 1}).call
    with pytest.raises(Exception, match="must not return any value"):
        run(lambda: call(X))


def test_numbers_of_64_bits_become_those_of_jax():
    call = loaded(logged).bind({"add": lambda x: np.asarray(x, np.float64) + 1, "log": log}).call
    np.testing.assert_array_equal(call(X), (X + 1) * 2)


def test_functions_get_arrays_of_jax_and_buffers():
    seen = []
    module = loaded(changed)
    functions = {"negative": lambda x: seen.append(x) or x, "plus hundred": lambda *args: seen.extend(args)}
    run(lambda: module.bind(functions).call(X))
    array, context, out, buffer = seen
    assert isinstance(array, jax.Array)
    assert not isinstance(out, np.ndarray)
    assert type(out) is type(buffer)
    assert type(context).__name__ == "ExecutionContext"


# ---------------------------------------------------------------- identity and lifetime


class Function:
    """A function that can be waited for to be freed."""

    def __call__(self, x):
        return np.asarray(x) + 1

    def method(self, x):
        return np.asarray(x) + 2


def test_the_same_functions_give_the_same_object():
    module, owner = loaded(logged), Function()
    one = module.bind({"add": owner.method, "log": log})
    assert module.bind({"log": log, "add": owner.method}) is one
    assert len({one, module.bind({"add": owner.method, "log": log})}) == 1
    assert module.bind({"add": Function().method, "log": log}) is not one
    assert module.bind({"add": owner.method, "log": log}, on_missing="zeros") is not one
    assert loaded(logged).bind({"add": owner.method, "log": log}) is not one


def test_binding_the_same_functions_again_compiles_nothing_again():
    module, functions = loaded(logged), {"add": add, "log": log}
    first = module.bind(functions)
    jitted = jax.jit(first.call)
    run(lambda: jitted(X))
    seen = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: seen.append(name))
    run(lambda: jax.jit(module.bind(functions).call)(X))
    assert [name for name in seen if "backend_compile" in name] == []
    run(lambda: jax.jit(module.bind(functions | {"add": negative}).call)(X))
    assert [name for name in seen if "backend_compile" in name]


def test_a_thousand_calls_call_a_thousand_times():
    jitted = jax.jit(bound(logged).call)
    run(lambda: jitted(X))
    gc.collect()
    before = len(gc.get_objects())
    HEARD.clear()
    for _ in range(1000):
        jitted(X)
    jax.effects_barrier()
    assert len(heard()) == 1000
    HEARD.clear()
    gc.collect()
    assert len(gc.get_objects()) - before < 500


def test_calls_from_several_threads():
    jitted = jax.jit(bound(changed).call)
    wanted = np.asarray(jitted(X))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for values in pool.map(lambda _: np.asarray(jitted(X)), range(200)):
            np.testing.assert_array_equal(values, wanted)


def test_programs_are_lowered_in_several_threads():
    module = loaded(logged)

    def once(number):
        call = module.bind({"add": lambda x: np.asarray(x) + number, "log": np.asarray}).call
        return np.asarray(jax.jit(call)(X))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number, values in enumerate(pool.map(once, range(12))):
            np.testing.assert_array_equal(values, X + number)


@pytest.mark.parametrize("ahead", [False, True])
def test_functions_live_as_long_as_what_was_compiled(ahead: bool):
    function = Function()
    alive = weakref.ref(function)
    model = loaded(logged).bind({"add": function, "log": np.asarray})
    jitted = jax.jit(model.call)
    compiled = [jitted.lower(X).compile() if ahead else jitted]
    run(lambda: compiled[0](X))
    del function, model, jitted
    gc.collect()
    np.testing.assert_array_equal(run(lambda: compiled[0](X)).values, X + 1)
    assert alive() is not None
    compiled.clear()
    jax.clear_caches()
    gc.collect()
    assert alive() is None


def test_what_was_compiled_may_go_while_its_function_runs():
    entered, leave = threading.Event(), threading.Event()

    def wait(x):
        entered.set()
        leave.wait(10)
        return np.asarray(x) + 1

    model = loaded(logged).bind({"add": wait, "log": np.asarray})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda call: np.asarray(jax.jit(call)(X)), model.call)
        assert entered.wait(30)
        del model
        jax.clear_caches()
        gc.collect()
        leave.set()
        np.testing.assert_array_equal(result.result(30), X + 1)


def test_calls_after_caches_were_cleared():
    model = bound(logged)
    run(lambda: model.call(X))
    jax.clear_caches()
    run(lambda: model.call(X))
    assert heard() == [1.0]


# ---------------------------------------------------------------- files


def test_files_are_read_by_path_and_from_memory(tmp_path):
    path = tmp_path / "model.jax_exported"
    path.write_bytes(written(logged))
    for source in (path, str(path), written(logged), bytearray(written(logged)), memoryview(written(logged))):
        assert jaxprism.load(source).names == ("add", "log")


def test_what_is_loaded_describes_itself():
    module = loaded(logged)
    assert repr(module) == "<jaxprism.Loaded logged, callbacks ['add', 'log']>"
    first, second = module.slots
    assert (first.kind, first.name, first.ordered, first.says["fn"]) == ("pure", "add", False, "callback_programs:add")
    assert (second.kind, second.ordered, second.tokens) == ("io", True, 1)
    assert second.arguments == second.results == (jaxprism.Array("float32", ("4",)),)
    assert module.exported.fun_name == "logged"


def test_metadata_of_another_version_is_refused():
    data = written(logged).replace(b'"v":1', b'"v":7')
    with pytest.raises(jaxprism.CallbackMetadataError, match="described in version 7"):
        _ = jaxprism.load(data).slots


def test_functions_of_another_process_are_refused():
    """As in a lowered file without what it was lowered from; XLA would call what has the number here."""
    (lowered,) = lower_as_jax(jax.jit(logged), (ROW,), "cpu")
    module = jaxprism.Loaded(lowered)
    with pytest.raises(jaxprism.CallbackMetadataError, match="`xla_ffi_python_cpu_callback` at"):
        module.bind(on_missing="zeros")


def test_effects_are_those_of_jax():
    inner = jaxprism.load(jaxprism.serialize(PROGRAMS["all_effects"].export(PLATFORMS))).exported
    original = PROGRAMS["all_effects"].export(PLATFORMS)
    assert set(inner.ordered_effects) == set(original.ordered_effects)
    assert set(inner.unordered_effects) == set(original.unordered_effects)


def test_an_unbound_export_fails_cleanly():
    with pytest.raises(Exception, match="No FFI handler registered for jaxprism_callback"):
        jax.block_until_ready(loaded(changed).exported.call(X))


def test_a_pytree_node_of_the_user_is_given_to_functions():
    @jax.tree_util.register_pytree_node_class
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten(self):
            return (self.x, self.y), "axes"

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    export.register_pytree_node_serialization(
        Point, serialized_name=f"test.Point.{id(Point)}", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    )

    @named("length")
    def length(point):
        return np.asarray(point.x) + np.asarray(point.y)

    def function(x):
        return jax.pure_callback(length, like(x), Point(x, x * 2))

    np.testing.assert_array_equal(loaded(function).bind({"length": length}).call(X), X * 3)


def test_buffers_of_several_results_are_in_their_places():
    def function(x):
        return buffer_callback(both, (ROW, like(x[:2])))(x)

    @named("both")
    def both(ctx, out, x):
        np.asarray(out[0])[...] = np.asarray(x) + 1
        np.asarray(out[1])[...] = np.asarray(x)[:2] * 5

    first, second = loaded(function).bind({"both": both}).call(X)
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X[:2] * 5)
