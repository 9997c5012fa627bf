"""Programs to export for several platforms, each made so that the platforms compute different numbers.

The branches differ in plain arithmetic wherever possible, because such a split can be relabelled to "cpu" and run here:
a wrong branch then shows as a wrong number. Programs whose branches hold custom calls of one platform are marked
`portable=False`; only their CPU numbers can be checked, the rest of the truth comes from comparing graphs.
"""

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src import effects
from jax._src.interpreters import mlir
from jax.extend import core as jex_core
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

CPU_CUDA_TPU = ("cpu", "cuda", "tpu")
f32 = jnp.float32
i32 = jnp.int32
Spec = jax.ShapeDtypeStruct


class Unavailable(Exception):
    """The running JAX cannot build this program; the text is the reason a test skips with."""


@dataclasses.dataclass(frozen=True)
class Built:
    """A jitted function, the abstract arguments to export it with, and concrete ones to call it with."""

    function: Callable
    specs: tuple
    inputs: tuple
    kwspecs: dict = dataclasses.field(default_factory=dict)
    kwinputs: dict = dataclasses.field(default_factory=dict)
    disabled_checks: tuple = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """One row of the registry. `build` is called inside `context()` so that x64 holds from tracing to running."""

    name: str
    build: Callable[[], Built]
    platforms: tuple[str, ...] = CPU_CUDA_TPU
    vjp_order: int = 0
    x64: bool = False
    portable: bool = True
    not_relabelled: str = ""  # why this JAX cannot run the choice of another platform on CPU, in its own words
    not_run: str = ""  # why calling it here makes no sense
    # A direct export that calls a multi-platform one says "uses global constants" although nothing symbolic is left.
    # A split says what is true, so these programs name it.
    uses_global_constants: bool | None = None
    # Why the graph of the direct export differs although JAX meant the same; then the original, read for the platform,
    # is the only model.
    unlike_direct: str = ""
    # How many `case` operations of the user's own must be left, told apart by their number of branches.
    user_cases: tuple[int, int] | None = None

    def context(self) -> contextlib.AbstractContextManager:
        """The configuration under which everything about this program happens."""
        return enable_x64() if self.x64 else contextlib.nullcontext()

    def export(self, platforms: tuple[str, ...]) -> export.Exported:
        """Exports the source anew for `platforms`, so that nothing lowered before is shared."""
        built = self.build()
        do_export = export.export(
            built.function, platforms=list(platforms), disabled_checks=list(built.disabled_checks)
        )
        return do_export(*built.specs, **built.kwspecs)


PROGRAMS: dict[str, Program] = {}

# Before 0.7 collectives in a `shard_map` are numbered as they are lowered, and those of all platforms are.
CHANNELS = "" if jax.__version_info__ >= (0, 7) else "collectives have other channels, numbered across the platforms"


def enable_x64() -> contextlib.AbstractContextManager:
    """`jax.enable_x64` where it is a context manager, else its older home."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64 as older

    return older()


def program(**options) -> Callable:
    """Registers a function that returns a `Built` under its own name."""

    def register(build: Callable[[], Built]) -> Callable[[], Built]:
        PROGRAMS[build.__name__] = Program(build.__name__, build, **options)
        return build

    return register


def jit(function: Callable, *inputs, specs: tuple | None = None, disabled_checks: tuple = (), **options) -> Built:
    """A `Built` whose abstract arguments are those of its inputs, unless given."""
    if specs is None:
        specs = jax.tree.map(abstract, inputs)
    return Built(jax.jit(function, **options), specs, inputs, disabled_checks=disabled_checks)


def abstract(value: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype of a concrete array, keeping the dtype of PRNG keys."""
    value = value if hasattr(value, "dtype") else np.asarray(value)
    return Spec(value.shape, value.dtype)


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Distinct, well-conditioned numbers of a shape."""
    size = int(np.prod(shape))
    return (np.arange(1, size + 1, dtype=np.float64).reshape(shape) / (size + 1)).astype(dtype)


def differ(x: jax.Array) -> jax.Array:
    """x + 1 on cpu, x * 2 on cuda, x - 3 elsewhere."""
    one, two, three = (np.asarray(n, x.dtype) for n in (1, 2, 3))
    return lax.platform_dependent(x, cpu=lambda x: x + one, cuda=lambda x: x * two, default=lambda x: x - three)


def differ_more(x: jax.Array) -> jax.Array:
    """A second choice whose branches are numbered otherwise: cuda and tpu share one, cpu has its own."""
    return lax.platform_dependent(x, cuda=lambda x: x / 4, tpu=lambda x: x / 4, default=lambda x: x * 8)


def differ_per_group(x: jax.Array) -> jax.Array:
    """Two platforms of the usual three share the default, which is lowered once for both."""
    return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: differ_inner(x) * 2)


def differ_inner(x: jax.Array) -> jax.Array:
    """A choice to make inside a branch of another choice."""
    return lax.platform_dependent(x, tpu=lambda x: x - 7, default=lambda x: x + 9)


# ---------------------------------------------------------------- plain


@program()
def plain():
    return jit(differ, ramp(4))


@program(platforms=("tpu", "cuda", "cpu"))
def order_permuted():
    return jit(lambda x: (differ(x), differ_more(x)), ramp(4))


@program(platforms=("cpu", "cuda", "rocm", "tpu"))
def four_platforms():
    def choose(x):
        return lax.platform_dependent(
            x, cpu=lambda x: x + 1, cuda=lambda x: x * 2, rocm=lambda x: x / 3, tpu=lambda x: x - 4
        )

    return jit(lambda x: (choose(x), differ(x), differ_more(x), jnp.sort(choose(x))), ramp(5))


@program(platforms=("cpu", "cuda"))
def two_platforms():
    return jit(lambda x: differ(differ_more(x)), ramp(3))


@program(platforms=("cuda", "tpu"))
def without_cpu():
    return jit(lambda x: differ(differ_more(x)), ramp(3))


@program()
def no_platform_choice():
    """The index is an argument that nothing uses."""
    return jit(lambda x: jnp.tanh(x) + 1, ramp(3))


@program()
def no_arguments():
    return jit(lambda: differ(jnp.arange(4, dtype=f32)))


@program()
def tuple_outputs():
    def both(x, y):
        return lax.platform_dependent(
            x, y, cpu=lambda x, y: (x, y, x + y), cuda=lambda x, y: (y, x, x - y), default=lambda x, y: (y, y, x * y)
        )

    return jit(lambda x, y: (both(x, y), (), [both(y, x)[2]]), ramp(3), ramp(3) + 1)


@program()
def unused_argument():
    """`kept_var_idx` is not the whole range."""
    return jit(lambda x, unused, y: differ(x) + y, ramp(3), ramp(2), ramp(3))


@program()
def argument_only_one_platform_uses():
    return jit(
        lambda x, y: lax.platform_dependent(x, y, cpu=lambda x, y: x, cuda=lambda x, y: y, default=lambda x, y: x + y),
        ramp(3),
        ramp(3) * 5,
    )


@program()
def branch_returns_its_operand():
    return jit(
        lambda x: lax.platform_dependent(x, cpu=lambda x: x, cuda=lambda x: jnp.zeros_like(x), default=jnp.negative),
        ramp(3),
    )


@program()
def choice_inside_choice():
    return jit(lambda x: differ_per_group(differ(x)), ramp(4))


# ---------------------------------------------------------------- control flow


@program()
def scan():
    def step(carry, x):
        carry = differ(carry) * 0.5 + x
        return carry, differ_more(carry)

    return jit(lambda c, xs: lax.scan(step, c, xs), ramp(3), ramp(5, 3))


@program()
def scan_of_scan():
    def inner(c, x):
        return differ(c) * 0.25 + x, c

    def outer(c, xs):
        c, ys = lax.scan(inner, c, xs)
        return differ_more(c) * 0.5, ys

    return jit(lambda c, xs: lax.scan(outer, c, xs), ramp(2), ramp(3, 4, 2))


@program()
def while_loop():
    def run(n, x):
        return lax.while_loop(lambda s: differ(s[0]) < n, lambda s: (s[0] + 1, differ(s[1]) * 0.5), (i32(0), x))

    return jit(run, np.int32(9), ramp(4))


@program()
def fori_loop():
    return jit(lambda x: lax.fori_loop(0, 5, lambda i, c: differ(c) * 0.5 + i, x), ramp(4))


@program()
def cond():
    def run(x):
        return lax.cond(x.sum() > 0, differ, differ_more, differ(x))

    return jit(run, ramp(4))


@program()
def while_in_cond():
    def loop(x):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, differ(s[1]) * 0.5), (i32(0), x))[1]

    return jit(lambda x: lax.cond(x.sum() > 0, loop, differ_more, x), ramp(4))


@program()
def cond_in_while_in_cond():
    def body(s):
        i, x = s
        return i + 1, lax.cond(differ(i) > 2, lambda x: differ(x) * 0.5, lambda x: x + differ_more(x), x)

    def loop(x):
        return lax.while_loop(lambda s: s[0] < 4, body, (i32(0), x))[1]

    return jit(lambda x: lax.cond(x[0] > 0, loop, jnp.sin, x), ramp(3))


@program(user_cases=(5, 1))
def user_switch():
    def run(i, x):
        branches = [jnp.sin, jnp.cos, differ, lambda x: x * 10, lambda x: differ(x) - 1]
        return lax.switch(i, branches, differ(x))

    return jit(run, np.int32(2), ramp(4))


@program(user_cases=(5, 1))
def user_switch_on_constant():
    """The user's own constant choice is none of the platform's business and stays."""

    def run(x):
        branches = [jnp.sin, jnp.cos, lambda x: differ(x) * 3, jnp.tanh, jnp.exp]
        return lax.switch(2, branches, x) + differ(x)

    return jit(run, ramp(4))


@program(user_cases=(5, 1))
def user_switch_on_platform_value():
    """A platform decides the number that a user's own switch looks at: the number is arithmetic, not the index."""

    def run(x):
        i = lax.platform_dependent(x, cpu=lambda x: i32(1), cuda=lambda x: i32(3), default=lambda x: i32(4))
        branches = [jnp.sin, jnp.cos, jnp.tanh, lambda x: x * 10, lambda x: x - 9]
        return lax.switch(i + x.astype(i32).sum(), branches, x)

    return jit(run, ramp(4))


@program()
def constants_from_branches():
    """Branches return constants only, which feed a user's choice: platform-decided from end to end."""

    def run(x):
        i = lax.platform_dependent(cpu=lambda: i32(1), cuda=lambda: i32(0), default=lambda: i32(7))
        return lax.switch(i, [jnp.sin, lambda x: x * 10, lambda x: x - 9, jnp.exp], x)

    return jit(run, ramp(4))


@program()
def constant_tables():
    """Branches return tables that are gathered from."""

    def run(i, x):
        table = lax.platform_dependent(
            cpu=lambda: jnp.array([2, 0, 1], i32), cuda=lambda: jnp.array([1, 2, 0], i32), default=lambda: jnp.arange(3)
        )
        return x[table[i]], x[table]

    return jit(run, np.int32(1), ramp(3))


# ---------------------------------------------------------------- transformations


@program()
def vmap():
    return jit(jax.vmap(lambda x, y: differ(x) + differ_more(y), in_axes=(0, None)), ramp(3, 2), ramp(2))


@program()
def vmap_of_scan_and_cond():
    def one(p, x):
        x = lax.cond(p, differ, differ_more, x)
        return lax.scan(lambda c, _: (differ(c) * 0.5, c), x, None, length=3)

    return jit(jax.vmap(one), np.array([True, False]), ramp(2, 3))


@program()
def vmap_of_while():
    def one(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, differ(s[1]) * 0.5), (i32(0), x))

    return jit(jax.vmap(one), np.array([1, 4], np.int32), ramp(2, 3))


@program()
def vmap_of_user_switch():
    def one(i, x):
        return lax.switch(i, [differ, jnp.sin, differ_more, jnp.cos, jnp.exp], x)

    return jit(jax.vmap(one), np.array([0, 2, 4], np.int32), ramp(3, 2))


@program(vjp_order=2)
def grad_twice():
    return jit(lambda x: (jnp.sin(differ(x)) * differ_more(x)).sum(), ramp(3))


@program(vjp_order=2)
def grad_of_scan():
    def run(c, xs):
        return lax.scan(lambda c, x: (jnp.sin(differ(c)) * x, c), c, xs)

    return jit(run, ramp(2), ramp(3, 2))


@program(vjp_order=1)
def grad_of_integers():
    """The cotangent of an integer argument has the type float0."""
    return jit(lambda i, x: (i + 1, differ(x) * i), np.arange(3, dtype=np.int32), ramp(3))


@program(vjp_order=1)
def custom_vjp():
    @jax.custom_vjp
    def clipped(x):
        return differ(x)

    clipped.defvjp(lambda x: (differ(x), x), lambda x, g: (differ_more(g) * x,))
    return jit(lambda x: (clipped(x), jax.grad(lambda x: clipped(x).sum())(x)), ramp(3))


@program(vjp_order=1)
def custom_jvp():
    @jax.custom_jvp
    def f(x):
        return differ(x)

    f.defjvp(lambda primals, tangents: (f(*primals), differ_more(tangents[0])))
    return jit(lambda x: (f(x), jax.jvp(f, (x,), (x,))[1]), ramp(3))


@program(vjp_order=1)
def remat():
    @jax.checkpoint
    def block(x):
        return jnp.sin(differ(jnp.cos(x)))

    return jit(lambda x: block(block(x)), ramp(4))


@program(vjp_order=1)
def remat_in_scan():
    @jax.checkpoint
    def step(c, x):
        return jnp.sin(differ(c)) * x, differ_more(c)

    return jit(lambda c, xs: lax.scan(step, c, xs), ramp(2), ramp(3, 2))


@program(vjp_order=1)
def grad_of_while_and_cond_in_scan():
    def step(c, x):
        c = lax.cond(x.sum() > 1, lambda c: jnp.sin(c), lambda c: c * c, differ_more(c))
        return lax.fori_loop(0, 2, lambda i, c: jnp.cos(differ(c)), c), c

    return jit(lambda c, xs: lax.scan(step, c, xs)[0], ramp(2), ramp(3, 2))


def index_in_an_array() -> Built:
    """Not in the registry: which branch was taken is stored in an array, the platform's choice with it.

    The gradient of a scan remembers for every step what the condition did, and the choice inside the condition leaves
    its index among what it remembers. The backward loop reads it from the array, where no analysis can know it.
    """

    def step(c, x):
        return lax.cond(x.sum() > 1, lambda c: jnp.sin(differ(c)), lambda c: differ_more(c) * c, c), c

    return jit(lambda c, xs: lax.scan(step, c, xs)[0], ramp(2), ramp(3, 2))


@program(vjp_order=1)
def vmap_of_grad_of_scan():
    def run(c, xs):
        return lax.scan(lambda c, x: (jnp.sin(differ(c)) * x, None), c, xs)[0].sum()

    return jit(jax.vmap(jax.grad(run), in_axes=(0, None)), ramp(2, 2), ramp(3, 2))


@program(vjp_order=1)
def parallel_scan_and_map():
    def run(xs):
        sums = lax.associative_scan(lambda a, b: a * 0.5 + differ(b), xs)
        return sums, lax.map(lambda x: differ_more(x).sum(), xs), lax.map(differ, xs, batch_size=2)

    return jit(run, ramp(4, 2))


@program(vjp_order=1)
def implicit_differentiation():
    def run(a):
        def solve(f, x):
            return lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] - 0.1 * f(s[0]), s[1] + 1), (x, 0))[0]

        return lax.custom_root(lambda x: differ(x) - a, a, solve, lambda g, y: y / g(jnp.ones_like(y)))

    return jit(run, np.float32(2))


@program()
def barrier():
    return jit(lambda x: differ_more(lax.optimization_barrier((differ(x), x))[0]), ramp(4))


# ---------------------------------------------------------------- functions


@program()
def called_twice():
    @jax.jit
    def inner(x):
        return differ(x) * 2

    @jax.jit
    def outer(x):
        return inner(inner(x)) + differ_more(x)

    return jit(lambda x: outer(outer(x)) + inner(x), ramp(4))


@program(vjp_order=1)
def gradient_of_a_function_called_twice():
    """What the forward function hands to the backward one makes copies of functions that hold such values already."""

    @jax.jit
    def inner(x):
        return differ(x)

    @jax.jit
    def outer(x):
        return inner(x) * jnp.cos(x)

    return jit(lambda x: outer(outer(x)), ramp(4))


@program()
def called_from_branches():
    """One cached function called from everywhere and from inside branches that only some platforms take."""

    @jax.jit
    def inner(x):
        return differ(x) * 2

    def run(x):
        y = lax.platform_dependent(x, cpu=inner, default=lambda x: inner(inner(x)) - 1)
        return inner(y), lax.platform_dependent(x, cuda=inner, default=lambda x: inner(x) + 2)

    return jit(run, ramp(4))


@program(not_run="XLA would inline 2**16 choices")
def deep_calls():
    """Two calls a level: inlined it has 2**16 choices, so whatever reads it must share."""

    def level(n):
        if n == 0:
            return jax.jit(differ)
        below = level(n - 1)
        return jax.jit(lambda x: below(x) * 0.5 + below(x + n))

    return jit(level(15), ramp(2))


@program(platforms=("cpu", "cuda"), uses_global_constants=False)
def nested_permuted():
    inner = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["cuda", "cpu"])(Spec((4,), f32))
    return jit(lambda x: inner.call(differ_more(x)) + differ(x), ramp(4))


@program(platforms=("cpu", "cuda"), uses_global_constants=False)
def nested_shared_function():
    """One function reached with two numberings: a copy per number is needed, or none where they agree."""
    inner = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["cuda", "tpu", "cpu"])(Spec((4,), f32))
    same = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["cpu", "cuda"])(Spec((4,), f32))

    @jax.jit
    def both(x):
        return inner.call(x) + same.call(x)

    return jit(lambda x: both(both(x)) + inner.call(x) + differ(x), ramp(4))


@program(uses_global_constants=False)
def nested_three_levels():
    spec = Spec((4,), f32)
    low = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["tpu", "cuda", "rocm", "cpu"])(spec)
    low = export.deserialize(low.serialize())
    middle = export.export(
        jax.jit(lambda x: lax.scan(lambda c, _: (low.call(c) * 0.25, None), differ(x), None, length=2)[0]),
        platforms=["cuda", "tpu", "cpu"],
    )(spec)
    return jit(lambda x: middle.call(differ(x)) + low.call(x), ramp(4))


@program(platforms=("cpu", "cuda"), uses_global_constants=False)
def nested_in_loop_and_branch():
    spec = Spec((3,), f32)
    inner = export.export(jax.jit(differ), platforms=["cuda", "tpu", "cpu"])(spec)

    def run(x):
        y = lax.fori_loop(0, 3, lambda i, c: inner.call(c) * 0.5, x)
        return lax.cond(y.sum() > 0, inner.call, differ, y)

    return jit(run, ramp(3))


@program(platforms=("cpu", "cuda"), vjp_order=1, uses_global_constants=False)
def nested_grad():
    inner = export.export(jax.jit(lambda x: jnp.sin(differ(x))), platforms=["cuda", "cpu"])(Spec((3,), f32))
    inner = export.deserialize(inner.serialize(vjp_order=2))
    return jit(lambda x: (inner.call(x) * differ(x)).sum(), ramp(3))


@program()
def composite():
    @functools.partial(lax.composite, name="test.scaled", version=3)
    def scaled(x, *, factor):
        return jnp.tanh(x) * factor

    def run(x):
        return scaled(differ(x), factor=np.float32(2.5))

    return jit(run, ramp(3))


@program()
def composite_of_choice():
    """The decomposition itself takes the index."""

    @functools.partial(lax.composite, name="test.chosen")
    def chosen(x, *, factor):
        return differ(x) * factor

    return jit(lambda x: chosen(x, factor=np.float32(2.5)) + chosen(x, factor=np.float32(0.5)), ramp(3))


# ---------------------------------------------------------------- types and sizes


@program(x64=True)
def x64():
    """The index is an i64."""

    def run(n, x):
        x = lax.scan(lambda c, _: (differ(c) * 0.5, c), differ(x), None, length=3)[0]
        return differ(n), differ_more(x), x[differ(n) % 4]

    return jit(run, np.int64(3), ramp(4, dtype=np.float64))


@program(x64=True, platforms=("cpu", "cuda"), uses_global_constants=False)
def x64_nested():
    inner = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["cuda", "tpu", "cpu"])(Spec((4,), jnp.float64))
    return jit(lambda x: inner.call(differ(x)), ramp(4, dtype=np.float64))


@program(x64=True, platforms=("cpu", "cuda"), uses_global_constants=False)
def x64_calls_i32_export():
    """The callee was exported without x64, so the index is converted at the call."""
    with disable_x64():
        inner = export.export(jax.jit(lambda x: differ(x) * 3), platforms=["cuda", "tpu", "cpu"])(Spec((4,), f32))
    return jit(lambda x: inner.call(differ(x)), ramp(4))


@program(x64=True)
def x64_tables_and_random():
    def run(key, x):
        table = lax.platform_dependent(
            cpu=lambda: jnp.array([2, 0, 1]), cuda=lambda: jnp.array([1, 2, 0]), default=lambda: jnp.arange(3)
        )
        return x[table], jax.random.uniform(jax.random.wrap_key_data(key), (3,)), jnp.argsort(x)

    return jit(run, np.array([1, 2], np.uint32), ramp(3, dtype=np.float64))


@program()
def narrow_types():
    def run(x):
        out = []
        for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"):
            dtype = getattr(jnp, name)
            table = jnp.asarray(np.array([1, 2, 4], dtype))
            out.append(differ(x.astype(dtype).astype(f32) + table.astype(f32)).astype(dtype).astype(f32))
        for name in ("int4", "uint4"):
            dtype = getattr(jnp, name)
            chosen = lax.platform_dependent(
                cpu=lambda dtype=dtype: jnp.asarray(np.array([1, 2, 3], dtype)),
                default=lambda dtype=dtype: jnp.asarray(np.array([3, 0, 7], dtype)),
            )
            out.append(chosen.astype(f32))
        flag = lax.platform_dependent(cpu=lambda: jnp.array([True, False, True]), default=lambda: jnp.full(3, True))
        return out, flag, differ(x.astype(jnp.complex64))

    return jit(run, ramp(3))


@program()
def large_constants():
    """A megabyte and more in every branch; only one of them belongs into each output."""
    tables = [np.random.RandomState(seed).randn(512, 512 * (1 + seed)).astype(np.float32) for seed in range(3)]

    def run(x):
        return lax.platform_dependent(
            x,
            cpu=lambda x: x @ tables[0],
            cuda=lambda x: x @ tables[1][:, :512],
            default=lambda x: x @ tables[2][:, -512:],
        )

    return jit(run, ramp(2, 512))


Point = collections.namedtuple("Point", ["x", "y"])
export.register_namedtuple_serialization(Point, serialized_name="jaxprism_test.Point")


@program()
def pytrees():
    def run(params, scale, *, bias=None, extra):
        y = differ(params["w"][0]) * scale + extra.y
        return {"out": (y, None), "point": Point(extra.x, differ_more(params["b"]))}, bias

    specs = ({"w": [Spec((3,), f32)], "b": Spec((), f32)}, Spec((), f32))
    kwspecs = {"bias": None, "extra": Point(Spec((2,), i32), Spec((3,), f32))}
    inputs = ({"w": [ramp(3)], "b": np.float32(2)}, np.float32(3))
    kwinputs = {"bias": None, "extra": Point(np.arange(2, dtype=np.int32), ramp(3))}
    return Built(jax.jit(run), specs, inputs, kwspecs, kwinputs)


# ---------------------------------------------------------------- shapes


@program()
def symbolic():
    b, c = export.symbolic_shape("b, 2*c+1")

    def run(x, y):
        z = differ(x).sum(1) + y.sum(1)
        return differ_more(z), jnp.arange(x.shape[0]) + 1, jnp.concatenate([differ(y), y]).reshape(-1)

    return jit(run, ramp(4, 3), ramp(4, 5), specs=(Spec((b, 3), f32), Spec((b, c), f32)))


@program()
def symbolic_control_flow():
    (b,) = export.symbolic_shape("b", constraints=("b >= 2",))

    def run(x):
        def branch(x):
            return lax.platform_dependent(
                x, cpu=lambda x: x + jnp.arange(x.shape[0]), cuda=lambda x: x * x.shape[0], default=lambda x: x[::-1]
            )

        y = lax.fori_loop(0, x.shape[0], lambda i, c: branch(c) * 0.5, x)
        return lax.cond(y.sum() > 0, branch, lambda x: x, y), jnp.sort(y), jnp.cumsum(y)

    return jit(run, ramp(4), specs=(Spec((b,), f32),))


@program(uses_global_constants=True)
def nested_symbolic():
    """A symbolic export called at a static shape: the shapes inside stay symbolic."""
    (b,) = export.symbolic_shape("b")
    inner = export.export(jax.jit(lambda x: differ(x) + jnp.arange(x.shape[0])), platforms=["tpu", "cuda", "cpu"])(
        Spec((b,), f32)
    )
    return jit(lambda x: inner.call(x) + differ(x), ramp(4))


@program(x64=True)
def x64_symbolic():
    (b,) = export.symbolic_shape("b")
    return jit(lambda x: differ(x) + x.shape[0], ramp(4, dtype=np.float64), specs=(Spec((b,), jnp.float64),))


# ---------------------------------------------------------------- devices


def mesh_2x2() -> Mesh:
    """Four devices of the host as a square; the suite asks XLA for four."""
    if len(jax.devices()) < 4:
        raise Unavailable("needs XLA_FLAGS=--xla_force_host_platform_device_count=4")
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))


@program()
def sharded():
    mesh = mesh_2x2()
    shard = NamedSharding(mesh, P("x", "y"))

    def run(a, b):
        c = lax.with_sharding_constraint(differ(a) @ b, NamedSharding(mesh, P("x", None)))
        return differ(c) * 2

    return jit(run, ramp(8, 8), ramp(8, 8) + 1, in_shardings=(shard, shard), out_shardings=shard)


@program()
def sharding_inside_branches():
    mesh = mesh_2x2()

    def run(x):
        def rows(x):
            return lax.with_sharding_constraint(x + 1, NamedSharding(mesh, P("x", None)))

        def columns(x):
            return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, "y")))

        return lax.platform_dependent(x, cpu=rows, cuda=columns, default=lambda x: x - 3)

    return jit(run, ramp(4, 4), in_shardings=NamedSharding(mesh, P("x", "y")))


@program()
def two_meshes():
    """The second mesh is used by one branch only, so only one output needs it."""
    mesh = mesh_2x2()
    line = Mesh(np.array(jax.devices()[:4]), ("z",))

    def run(x):
        def other(x):
            return lax.with_sharding_constraint(x * 2, NamedSharding(line, P("z")))

        return lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=other, default=lambda x: x - 3)

    return jit(run, ramp(4, 4), in_shardings=NamedSharding(mesh, P("x", "y")))


@program(vjp_order=1, unlike_direct=CHANNELS)
def shard_map():
    mesh = mesh_2x2()

    def body(a):
        a = differ(a)
        return lax.psum(a, "x") + lax.ppermute(a, "x", [(0, 1), (1, 0)]) + lax.all_gather(a, "y", tiled=True).sum()

    run = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    return jit(lambda x: differ_more(run(x)), ramp(4, 4))


@program()
def shard_map_with_loop():
    mesh = mesh_2x2()

    def body(a):
        def step(c, _):
            return differ(c) * 0.5 + lax.psum(c, "x") * 0, None

        return lax.scan(step, lax.psum(a, "x"), None, length=3)[0]

    run = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    return jit(run, ramp(4, 4))


@program(unlike_direct=CHANNELS)
def shard_map_of_branches_with_collectives():
    mesh = mesh_2x2()

    def body(a):
        return lax.platform_dependent(
            a, cpu=lambda a: lax.psum(a, "x"), cuda=lambda a: lax.pmax(a, "x"), default=lambda a: lax.pmin(a, "x")
        )

    run = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    return jit(run, ramp(4, 4))


@program(vjp_order=2)
def grad_of_scan_in_shard_map():
    mesh = mesh_2x2()

    def body(a, b):
        return lax.scan(lambda c, x: (jnp.sin(differ(c)) * x, None), a, b)[0]

    return jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x")), ramp(4), ramp(6, 2))


@program()
def partly_manual_shard_map():
    mesh = mesh_2x2()

    def body(a):
        return differ(lax.psum(a, "x")) + differ_more(a)

    run = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    return jit(run, ramp(4, 4), in_shardings=NamedSharding(mesh, P(None, "y")))


@program(platforms=("cpu", "cuda"), uses_global_constants=False)
def nested_sharded():
    """An export with shardings and manual computations inside another one with another mesh."""
    mesh = mesh_2x2()
    line = Mesh(np.array(jax.devices()[:4]), ("z",))
    body = jax.shard_map(lambda a: differ(lax.psum(a, "x")), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    inner = export.export(
        jax.jit(body, in_shardings=NamedSharding(mesh, P("x", "y"))), platforms=["cuda", "tpu", "cpu"]
    )(Spec((4, 4), f32))
    return jit(lambda x: inner.call(differ(x)), ramp(4, 4), in_shardings=NamedSharding(line, P("z")))


@program()
def explicit_shardings():
    """Shardings in types: every result is annotated."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    shard = NamedSharding(mesh, P("x", "y"))
    spec = Spec((4, 4), f32, sharding=shard)
    return jit(lambda a: differ(a) * differ_more(a), jax.device_put(ramp(4, 4), shard), specs=(spec,))


@program()
def donated():
    return jit(lambda x, y: (differ(y) * 2, x + 1), ramp(4), ramp(4), donate_argnums=(1,))


@program()
def donated_and_sharded():
    mesh = mesh_2x2()
    shard = NamedSharding(mesh, P("x"))
    return jit(
        lambda x, y: differ(x) + y, ramp(4), ramp(4), donate_argnums=0, in_shardings=(shard, shard), out_shardings=shard
    )


@program(
    not_relabelled=""
    if jax.__version_info__ >= (0, 10)
    else "Side-effect ops cannot be replicated: custom_call_target=annotate_device_placement"
)
def memory_kinds():
    """The layout of arguments in host memory travels as argument attributes."""
    if "pinned_host" not in {m.kind for m in jax.devices()[0].addressable_memories()}:
        raise Unavailable("this backend has no pinned_host memory")
    sharding = NamedSharding(mesh_2x2(), P("x"), memory_kind="pinned_host")
    return jit(lambda x: differ(jax.device_put(x, sharding.with_memory_kind("device"))), ramp(4), in_shardings=sharding)


# ---------------------------------------------------------------- random numbers


@program()
def random_bits():
    def run(seed):
        a, b = jax.random.split(jax.random.key(seed))
        return jax.random.uniform(a, (3,)), jax.random.normal(b, (3,)), jax.random.bits(a, (2,))

    return jit(run, np.int32(42))


@program()
def random_in_scan():
    def step(key, x):
        key, sub = jax.random.split(key)
        return key, differ(x) * jax.random.normal(sub, x.shape) + jax.random.uniform(sub, x.shape)

    return jit(lambda seed, xs: lax.scan(step, jax.random.key(seed), xs)[1], np.int32(1), ramp(3, 4))


@program()
def random_keys_as_arguments():
    def run(key, x):
        return jax.random.permutation(key, x), jax.random.fold_in(key, 3), jax.random.randint(key, (2,), 0, 9)

    key = jax.random.key(7)
    return jit(run, key, ramp(5))


@program()
def random_in_branches():
    def run(raw, x):
        key = jax.random.wrap_key_data(raw)
        return lax.platform_dependent(
            x,
            cpu=lambda x: x + jax.random.uniform(key, x.shape),
            cuda=lambda x: x * jax.random.normal(key, x.shape),
            default=lambda x: x - jax.random.uniform(jax.random.fold_in(key, 1), x.shape),
        )

    return jit(run, np.array([3, 4], np.uint32), ramp(4))


@program(unlike_direct="inside a multi-platform export JAX lowers some of threefry once for all platforms")
def random_distributions():
    """Rejection sampling: while loops that draw, under vmap."""

    def run(seed, x):
        a, b, c = jax.random.split(jax.random.key(seed), 3)
        return jax.random.gamma(a, x), jax.random.categorical(b, x), jax.random.poisson(c, 3.0, (3,))

    return jit(run, np.int32(5), ramp(3) + 1)


@program()
def random_other_generators():
    def run(seed):
        return jax.random.uniform(jax.random.key(seed, impl="rbg"), (3,)), jax.random.bits(
            jax.random.key(seed, impl="unsafe_rbg"), (2,)
        )

    return jit(run, np.int32(5))


# ---------------------------------------------------------------- operations that JAX lowers per platform


def spd(n: int) -> np.ndarray:
    """A well-conditioned symmetric positive definite matrix."""
    a = ramp(n, n)
    return (a @ a.T + n * np.eye(n)).astype(np.float32)


@program(portable=False)
def cholesky():
    return jit(lambda a: jnp.linalg.cholesky(a) + differ(a), spd(4))


@program(portable=False)
def qr():
    return jit(lambda a: tuple(jnp.linalg.qr(a)), spd(4))


@program(portable=False)
def eigh():
    return jit(lambda a: tuple(jnp.linalg.eigh(a)), spd(4))


@program(portable=False)
def lu_and_solve():
    return jit(lambda a, b: (jax.scipy.linalg.lu(a), jnp.linalg.solve(a, b), jnp.linalg.det(a)), spd(4), ramp(4))


@program(portable=False)
def svd():
    return jit(lambda a: (tuple(jnp.linalg.svd(a)), jnp.linalg.svd(a, compute_uv=False)), spd(4))


@program(portable=False, vjp_order=1)
def grad_of_cholesky_in_scan():
    def run(a):
        return lax.scan(lambda c, _: (c + jnp.linalg.cholesky(c + a), None), a, None, length=2)[0].sum()

    return jit(run, spd(3))


@program(portable=False)
def vmap_of_cholesky():
    return jit(jax.vmap(lambda a: jnp.linalg.cholesky(differ(a) + 9 * jnp.eye(3))), np.stack([spd(3), spd(3) * 2]))


@program(platforms=("cpu", "cuda"), portable=False)
def linalg_x64_symbolic():
    (b,) = export.symbolic_shape("b")
    return jit(jnp.linalg.cholesky, np.stack([spd(3)] * 2), specs=(Spec((b, 3, 3), f32),))


@program()
def sorting():
    def run(x, k):
        return jnp.sort(differ(x)), jnp.argsort(x), lax.sort((x, k), num_keys=1), lax.top_k(x, 2), jnp.argmax(x)

    return jit(run, ramp(2, 5)[:, ::-1].copy(), np.arange(10, dtype=np.int32).reshape(2, 5))


@program(portable=False)
def cumulative():
    """Not portable: XLA's compiler for CPU aborts on what JAX writes for cuda."""

    def run(x):
        return jnp.cumsum(differ(x)), jnp.cumprod(x), lax.cummax(x, reverse=True), lax.cumlogsumexp(x)

    return jit(run, ramp(40))


@program()
def convolution():
    def run(x, w):
        y = lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return differ(lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"))

    return jit(run, ramp(1, 8, 8, 3), ramp(3, 3, 3, 4))


@program(vjp_order=1)
def dots():
    def run(a, b):
        c = jnp.einsum("bij,bjk->bik", differ(a), b, preferred_element_type=f32)
        return c, lax.dot_general(c, b, (((2,), (2,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)

    return jit(run, ramp(2, 3, 4), ramp(2, 4, 5))


@program()
def mixed_dots():
    def run(a, b):
        return (
            lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=f32),
            a @ b,
            jnp.vdot(a, a),
        )

    return jit(run, ramp(3, 3), ramp(3, 3) + 1)


@program()
def fft():
    return jit(lambda x: (jnp.fft.fft(differ(x)), jnp.fft.irfft(jnp.fft.rfft(x))), ramp(8))


NEAREST_EVEN = lax.RoundingMethod.TO_NEAREST_EVEN


@program()
def special_functions():
    def run(x):
        near = lax.nextafter(x, x + 1), lax.reduce_precision(x, 5, 7), lax.round(x * 9, NEAREST_EVEN)
        gamma = lax.lgamma(x + 1), lax.digamma(x + 1), lax.igamma(x, x), lax.betainc(x, x, x)
        other = lax.erf_inv(x), jax.scipy.special.i0e(x), lax.cbrt(x), lax.expm1(x), lax.population_count(x.astype(i32))
        return near, gamma, other

    return jit(run, ramp(3))


@program(portable=False)
def approximate_top_k():
    return jit(lambda x: lax.approx_max_k(differ(x), 3), ramp(40))


@program()
def attention():
    def run(q, k, v):
        return jax.nn.dot_product_attention(differ(q), k, v, is_causal=True)

    return jit(run, ramp(1, 4, 2, 8), ramp(1, 4, 2, 8) + 1, ramp(1, 4, 2, 8) * 2)


@program()
def gather_and_scatter():
    def run(x, i, u):
        g = differ(x)[i]
        s = x.at[i].add(differ(u)).at[i[0]].multiply(2)
        return g, s, x.at[:, i].max(1.0), lax.dynamic_update_slice(x, u[:1], (differ(i[0]), 0))

    return jit(run, ramp(6, 4), np.array([3, 1, 2], np.int32), ramp(3, 4))


@program()
def reductions():
    """Regions with captured nothing but many kinds: generic reduce, window, select-and-scatter by its gradient."""

    def run(x):
        a = lax.reduce(differ(x), np.float32(0), lambda a, b: a + b * 0.5, (0,))
        b = lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID")
        g = jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum())(x)
        return a, b, g, jnp.median(x), jnp.linalg.norm(x)

    return jit(run, ramp(4, 4))


@program()
def network():
    """A small transformer block with its gradient: hundreds of operations, most dots chosen per platform."""

    def layer(x, p):
        h = jax.nn.standardize(x)
        q, k, v = (differ(h @ p[n]) for n in ("q", "k", "v"))
        x = x + jax.nn.softmax(q @ k.T) @ v
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"], None

    def loss(params, x):
        x = lax.scan(layer, x, params)[0]
        return jnp.mean(jnp.square(differ_more(x)))

    shapes = {"q": (2, 8, 8), "k": (2, 8, 8), "v": (2, 8, 8), "up": (2, 8, 16), "down": (2, 16, 8)}
    params = {name: ramp(*shape) * 0.1 for name, shape in shapes.items()}
    return jit(jax.value_and_grad(loss), params, ramp(4, 8))


# ---------------------------------------------------------------- effects


@dataclasses.dataclass(frozen=True)
class NoteEffect(effects.Effect):
    """An ordered effect of our own: JAX threads a token through everything that has it."""


NOTE = NoteEffect()
effects.lowerable_effects.add_type(NoteEffect)
effects.ordered_effects.add_type(NoteEffect)
effects.control_flow_allowed_effects.add_type(NoteEffect)
note_p = jex_core.Primitive("note")
note_p.multiple_results = True
note_p.def_effectful_abstract_eval(lambda *_: ((), {NOTE}))


def lower_note(ctx, *operands):
    """A foreign call that takes a token and returns one."""
    token = ctx.tokens_in.get(NOTE)
    call = mlir.custom_call(
        "note_in_order",
        backend_config={},
        result_types=[mlir.token_type()],
        operands=[token, *operands],
        has_side_effect=True,
        api_version=4,
    )
    ctx.set_tokens_out(mlir.TokenSet({NOTE: call.result}))
    return ()


mlir.register_lowering(note_p, lower_note)

FOREIGN = "there is nothing behind its foreign calls here"


def foreign_note(name: str) -> Callable[[], tuple]:
    """A call of foreign code for its effect alone; there is nothing behind it, so such a program is never run."""

    def note(*operands):
        jax.ffi.ffi_call(name, (), has_side_effect=True)(*operands)
        return ()

    return note


def allowed(*names: str) -> tuple:
    """The checks to disable so that foreign calls of these names may be exported."""
    return tuple(export.DisabledSafetyCheck.custom_call(name) for name in names)


@program(not_run=FOREIGN)
def branches_of_effects_only():
    def run(x):
        for _ in range(2):
            lax.platform_dependent(
                x, cpu=foreign_note("note_cpu"), cuda=foreign_note("note_cuda"), default=lambda x: ()
            )
        foreign_note("note_all")(x)
        return differ(x)

    return jit(run, ramp(3), disabled_checks=allowed("note_cpu", "note_cuda", "note_all"))


@program(not_run=FOREIGN)
def effects_in_loop():
    def step(c, x):
        lax.platform_dependent(c, cpu=foreign_note("note_cpu"), default=foreign_note("note_other"))
        return differ(c) * 0.5, x

    return jit(lambda c, xs: lax.scan(step, c, xs), ramp(3), ramp(2), disabled_checks=allowed("note_cpu", "note_other"))


@program(not_run=FOREIGN)
def foreign_calls_in_branches():
    def foreign(name):
        def call(x):
            return jax.ffi.ffi_call(name, Spec(x.shape, x.dtype))(x, eps=np.float32(1e-5), n=np.int64(3), name=name)

        return call

    def run(x):
        return lax.platform_dependent(x, cpu=foreign("mine_cpu"), cuda=foreign("mine_cuda"), default=lambda x: x - 3)

    return jit(run, ramp(3), disabled_checks=allowed("mine_cpu", "mine_cuda"))


def disable_x64() -> contextlib.AbstractContextManager:
    """The opposite of `enable_x64`."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(False)
    from jax.experimental import disable_x64 as older

    return older()


@program(not_run=FOREIGN)
def ordered_effects():
    """Tokens go through calls, loops and the branches of a choice, and are arguments and results of main."""

    def note(c):
        note_p.bind(c)
        return ()

    def step(c, x):
        lax.platform_dependent(c, cpu=note, default=lambda c: note(c * 2))
        return differ(c) * 0.5, None

    def run(x):
        note_p.bind(x)
        return jax.jit(lambda x: lax.scan(step, differ(x), None, length=2)[0])(x)

    return jit(run, ramp(3), disabled_checks=allowed("note_in_order"))
