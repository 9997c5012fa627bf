"""Programs with Python callbacks: every kind in every context that JAX lowers on its own.

A program is built with a `Voice`, through which it makes the calls that have no results: debug callbacks, prints, and
others that return nothing. Built with the voice `SILENT` it is the same program as if they had not been written, which
is what removing them from an export has to give.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxprism
import numpy as np
from jax import export, lax
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

f32 = jnp.float32
i32 = jnp.int32
Spec = jax.ShapeDtypeStruct
named = jaxprism.named

ROW = Spec((4,), f32)
ROWS = Spec((3, 4), f32)
SIZES = {"b": 3}  # what symbolic dimensions are when a program runs


# ---------------------------------------------------------------- voices


class Voice:
    """Makes the calls that have no results."""

    debug = staticmethod(jax.debug.callback)
    print = staticmethod(jax.debug.print)
    log = staticmethod(getattr(jax.debug, "log", None))

    @staticmethod
    def io(function: Callable, *args: Any, **options: Any) -> None:
        io_callback(function, None, *args, **options)

    @staticmethod
    def buffer(function: Callable, *args: Any) -> None:
        buffer_callback(function, (), has_side_effect=True)(*args)


class Silence(Voice):
    """Makes none of them."""

    debug = print = log = io = buffer = staticmethod(lambda *_, **__: None)


LOUD, SILENT = Voice(), Silence()


# ---------------------------------------------------------------- the table


@dataclasses.dataclass(frozen=True)
class Program:
    """A function for `jax.jit`, what to export it with, and what is known about it."""

    name: str
    build: Callable[[Voice], Callable]
    args: tuple
    vjp_order: int = 0
    # Whether it has calls that can be left out; `without` is the program that never had them.
    says: bool = False
    # Whether JAX lowers it for tpu: there are no buffer callbacks, no partitioned ones, and results of static shapes.
    tpu: bool = True
    devices: int = 1
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # of jax.jit

    @property
    def function(self) -> Callable:
        """As it is written."""
        return self.build(LOUD)

    @property
    def without(self) -> Callable | None:
        """As if the calls without results had not been written."""
        return self.build(SILENT) if self.says else None

    def jitted(self, function: Callable | None = None) -> Any:
        """A new jitted function each time, so that nothing lowered before is shared."""
        function = function or self.function

        def fresh(*args):
            return function(*args)

        fresh.__name__ = self.name
        return jax.jit(fresh, **self.options)

    def export(self, platforms: tuple[str, ...], **options: Any) -> export.Exported:
        """With placeholders."""
        return jaxprism.export(self.jitted(), platforms=platforms, **options)(*self.args)

    def inputs(self) -> tuple:
        """Concrete arguments, distinct numbers."""
        return tuple(concrete(spec) for spec in self.args)


PROGRAMS: dict[str, Program] = {}


def program(*args: Any, when: bool = True, **known: Any) -> Callable:
    """Registers a builder under its name, where this JAX has what it needs."""

    def register(build: Callable[[Voice], Callable]) -> Callable[[Voice], Callable]:
        if when:
            assert build.__name__ not in PROGRAMS
            PROGRAMS[build.__name__] = Program(build.__name__, build, args, **known)
        return build

    return register


def programs(*variants: str, args: tuple, **known: Any) -> Callable:
    """Registers one program for each variant, which the builder takes after the voice."""

    def register(build: Callable[[Voice, str], Callable]) -> Callable[[Voice, str], Callable]:
        for variant in variants:
            name = f"{build.__name__}_{variant}"
            PROGRAMS[name] = Program(name, partial(build, variant=variant), args, **known)
        return build

    return register


def concrete(spec: Any) -> Any:
    """Numbers of a shape whose symbolic dimensions are `SIZES`."""
    shape = tuple(size if isinstance(size, int) else SIZES[str(size)] for size in spec.shape)
    if jnp.issubdtype(spec.dtype, jax.dtypes.prng_key):
        return jax.random.split(jax.random.key(1), shape) if shape else jax.random.key(1)
    size = int(np.prod(shape))
    return np.arange(1, size + 1).reshape(shape).astype(spec.dtype)


def symbolic(*shape: Any) -> tuple:
    """Arguments of symbolic shapes in one scope, each a text."""
    scope = export.SymbolicScope()
    return tuple(Spec(export.symbolic_shape(text, scope=scope), f32) for text in shape)


def like(x: Any) -> jax.ShapeDtypeStruct:
    """The type of a value."""
    return Spec(x.shape, x.dtype)


def mesh() -> Mesh:
    """Two of the devices that the tests have."""
    return Mesh(np.array(jax.devices()[:2]), ("i",))


def mesh_2x2() -> Mesh:
    """All four of them."""
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("i", "j"))


def shard_map(function: Callable, mesh: Mesh, **options: Any) -> Callable:
    """`jax.shard_map`, since 0.7; before, in experimental."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, **options)
    from jax.experimental.shard_map import shard_map as older

    names = options.pop("axis_names", None)
    if names is not None:
        options["auto"] = frozenset(mesh.axis_names) - names
    return older(function, mesh, **options)


# ---------------------------------------------------------------- what is called

HEARD: list[tuple] = []


def plain(value: Any) -> Any:
    """A value as it is written down in `HEARD`."""
    return value if isinstance(value, str) else np.asarray(value).tolist()


@named("add")
def add(x):
    return np.asarray(x) + 1


@named("trees")
def trees(d, *, scale):
    return {"sum": np.asarray(d["x"]) + np.asarray(d["more"][0]), "pair": (np.asarray(scale) * 2, np.float32(7))}


@named("below five")
def below_five(x):
    return np.asarray(np.asarray(x).reshape(-1)[0] < 5)


@named("log")
def log(x):
    HEARD.append(("log", plain(x)))
    return np.asarray(x) * 2


@named("note")
def note(x):
    HEARD.append(("note", plain(x)))


@named("see")
def see(*args, **kwargs):
    HEARD.append(("see", [plain(a) for a in args], {k: plain(v) for k, v in sorted(kwargs.items())}))


def look(*args):
    """Has the name of its place: `callback_programs.look`."""
    HEARD.append(("look", [plain(a) for a in args]))


@named("forward")
def forward(x):
    return np.sin(np.asarray(x))


@named("backward")
def backward(x, cotangent):
    return np.asarray(cotangent) * np.cos(np.asarray(x))


@named("triple")
def triple(ctx, out, x):
    np.asarray(out)[...] = np.asarray(x) * 3


@named("first of 42")
def first_of_42(ctx, out, x):
    np.asarray(out)[..., 0] = 42


@named("swap")
def swap(ctx, out, x, y):
    np.asarray(out[0])[...] += 1
    np.asarray(out[1])[...] -= 1


@named("fill")
def fill(ctx, out, d, *, more):
    np.asarray(out["sum"])[...] = np.asarray(d["x"]) + np.asarray(more)
    np.asarray(out["count"][0])[...] = 7


@named("watch")
def watch(ctx, out, x):
    HEARD.append(("watch", plain(x)))


def pure(x, function=add, **options):
    """A pure callback of the type of its operand."""
    return jax.pure_callback(function, like(x), x, **options)


def io(x, function=log, **options):
    """An io callback of the type of its operand."""
    return io_callback(function, like(x), x, **options)


def buffer(x, function=triple, **options):
    """A buffer callback of the type of its operand."""
    return buffer_callback(function, like(x), **options)(x)


@jax.custom_vjp
def sine(x):
    """The sine, computed by Python in both directions."""
    return pure(x, forward)


sine.defvjp(lambda x: (pure(x, forward), x), lambda x, ct: (jax.pure_callback(backward, like(x), x, ct),))


# ---------------------------------------------------------------- contexts


def in_scan(call: Callable) -> Callable:
    return lambda x: lax.scan(lambda c, _: (call(c), c), x, None, length=3)


def in_while(call: Callable) -> Callable:
    return lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, call(s[1])), (i32(0), x))


def in_cond(call: Callable) -> Callable:
    return lambda x: lax.cond(x.sum() > 0, call, lambda x: x - 1, x)


def in_nested_jit(call: Callable) -> Callable:
    """Called twice: one function of the module, so one operation."""
    inner = jax.jit(call)
    return lambda x: inner(inner(x) * 2)


CONTEXTS = {
    "plain": lambda call: call,
    "scan": in_scan,
    "while": in_while,
    "cond": in_cond,
    "nested_jit": in_nested_jit,
}


@programs(*CONTEXTS, args=(ROW,))
def pure_in(voice, variant):
    return CONTEXTS[variant](pure)


@programs(*CONTEXTS, args=(ROW,))
def io_in(voice, variant):
    return CONTEXTS[variant](io)


@programs(*CONTEXTS, args=(ROW,))
def io_ordered_in(voice, variant):
    return CONTEXTS[variant](partial(io, ordered=True))


@programs(*CONTEXTS, args=(ROW,), tpu=False)
def buffer_in(voice, variant):
    return CONTEXTS[variant](buffer)


def after(say: Callable) -> Callable:
    """A computation that says something about its operand on the way."""

    def call(x):
        say(x)
        return jnp.sin(x) * 2

    return call


@programs(*CONTEXTS, args=(ROW,), says=True)
def io_silent_in(voice, variant):
    return CONTEXTS[variant](after(partial(voice.io, note)))


@programs(*CONTEXTS, args=(ROW,), says=True)
def io_silent_ordered_in(voice, variant):
    return CONTEXTS[variant](after(partial(voice.io, note, ordered=True)))


@programs(*CONTEXTS, args=(ROW,), says=True)
def debug_in(voice, variant):
    return CONTEXTS[variant](after(partial(voice.debug, see)))


@programs(*CONTEXTS, args=(ROW,), says=True)
def debug_ordered_in(voice, variant):
    return CONTEXTS[variant](after(partial(voice.debug, see, ordered=True)))


@programs(*CONTEXTS, args=(ROW,), says=True)
def print_in(voice, variant):
    return CONTEXTS[variant](after(lambda x: voice.print("x is {x}", x=x)))


@programs(*CONTEXTS, args=(ROW,), says=True)
def print_ordered_in(voice, variant):
    return CONTEXTS[variant](after(lambda x: voice.print("x is {}", x, ordered=True)))


@programs(*CONTEXTS, args=(ROW,), says=True, tpu=False)
def buffer_silent_in(voice, variant):
    return CONTEXTS[variant](after(partial(voice.buffer, watch)))


# ---------------------------------------------------------------- vmap


@programs("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", args=(ROWS,))
def pure_vmap(voice, variant):
    return jax.vmap(partial(pure, vmap_method=variant))


@program(ROWS, ROW)
def pure_vmap_of_one_argument(voice):
    """The other one gets a dimension of size 1."""
    call = partial(jax.pure_callback, product, ROW, vmap_method="expand_dims")
    return jax.vmap(call, in_axes=(0, None))


@named("two")
def product(x, y):
    return np.asarray(x) * np.asarray(y)


@programs("sequential", "expand_dims", args=(ROWS,), tpu=False)
def buffer_vmap(voice, variant):
    return jax.vmap(partial(buffer, vmap_method=variant))


@program(ROWS)
def io_vmap(voice):
    return jax.vmap(io)


@program(ROWS, says=True)
def debug_vmap(voice):
    return jax.vmap(after(partial(voice.debug, see)))


@program(ROWS, says=True)
def print_vmap(voice):
    return jax.vmap(after(lambda x: voice.print("row {x}", x=x)))


# ---------------------------------------------------------------- derivatives


@program(ROW, vjp_order=1)
def custom_vjp(voice):
    return lambda x: sine(x).sum() * 2


@program(ROW)
def custom_vjp_grad(voice):
    return jax.grad(lambda x: sine(x).sum())


@program(ROW, vjp_order=1)
def custom_jvp(voice):
    @jax.custom_jvp
    def call(x):
        return pure(x, forward)

    call.defjvp(lambda primals, tangents: (call(*primals), tangents[0] * pure(primals[0], add)))
    return lambda x: call(x).sum()


@program(ROW, vjp_order=1, says=True)
def remat(voice):
    """The gradient calls again what the function called."""
    return jax.checkpoint(lambda x: jnp.sin(after(partial(voice.debug, see))(x)).sum())


@program(ROW, vjp_order=2, says=True)
def gradients_with_debug(voice):
    def run(x):
        voice.debug(see, x, ordered=True)
        voice.print("sum {}", x.sum())
        return (jnp.sin(x) * x).sum()

    return run


@program(ROW, vjp_order=1)
def scan_of_custom_vjp(voice):
    return lambda x: lax.scan(lambda c, _: (sine(c), None), x, None, length=3)[0]


# ---------------------------------------------------------------- devices


@program(ROW, devices=2)
def pure_shard_map(voice):
    return shard_map(pure, mesh(), in_specs=P("i"), out_specs=P("i"))


@program(ROW, devices=2, says=True)
def io_silent_shard_map(voice):
    return shard_map(after(partial(voice.io, note)), mesh(), in_specs=P("i"), out_specs=P("i"))


@program(ROW, devices=2, says=True)
def debug_shard_map(voice):
    return shard_map(after(partial(voice.debug, see)), mesh(), in_specs=P("i"), out_specs=P("i"))


@program(ROW, devices=2, says=True)
def print_shard_map(voice):
    return shard_map(after(lambda x: voice.print("x {}", x)), mesh(), in_specs=P("i"), out_specs=P("i"))


@program(Spec((4, 4), f32), devices=4, says=True)
def print_partly_manual(voice):
    """JAX gathers the other axes and prints under a condition, all by a debug callback."""
    call = after(lambda x: voice.print("x {}", x))
    return shard_map(call, mesh_2x2(), in_specs=P("i"), out_specs=P("i"), axis_names=frozenset({"i"}))


@program(ROW, devices=2, tpu=False)
def buffer_shard_map(voice):
    return shard_map(buffer, mesh(), in_specs=P("i"), out_specs=P("i"))


@program(ROW, devices=2, options={"in_shardings": NamedSharding(mesh(), P("i"))})
def pure_of_sharded_argument(voice):
    return pure


@program(ROW, devices=2, options={"in_shardings": NamedSharding(mesh(), P("i"))})
def io_on_second_device(voice):
    return partial(io, sharding=SingleDeviceSharding(jax.devices()[1]))


@program(ROW, devices=2, options={"in_shardings": NamedSharding(mesh(), P("i"))}, says=True, tpu=False)
def debug_partitioned(voice):
    """Called with the part of each device."""
    return after(partial(voice.debug, see, partitioned=True))


@program(ROW, devices=2, options={"in_shardings": NamedSharding(mesh(), P("i"))}, says=True, tpu=False)
def print_partitioned(voice):
    return after(lambda x: voice.print("part {}", x, partitioned=True))


# ---------------------------------------------------------------- symbolic dimensions


@program(*symbolic("b, 4"), tpu=False)
def pure_symbolic(voice):
    return pure


@program(*symbolic("b, 4"), tpu=False)
def io_ordered_symbolic(voice):
    return partial(io, ordered=True)


@program(*symbolic("b"), tpu=False)
def pure_symbolic_larger(voice):
    """The result has a dimension that has to be computed."""
    return lambda x: jax.pure_callback(twice, Spec((2 * x.shape[0] + 1, 4), f32), x)


@named("twice")
def twice(x):
    return np.ones((2 * np.shape(x)[0] + 1, 4), np.float32)


@program(*symbolic("b, 4"))
def pure_symbolic_vmap(voice):
    return jax.vmap(partial(pure, vmap_method="sequential"))


@program(*symbolic("b, 4"), says=True)
def debug_symbolic(voice):
    def run(x):
        voice.debug(see, x, "batch", size=x.shape[0], ordered=True)
        voice.print("{} rows", x.shape[0])
        return x * 2

    return run


@program(*symbolic("b, 4"), tpu=False)
def buffer_symbolic(voice):
    return partial(buffer, function=first_of_42, input_output_aliases={0: 0})


@program(*symbolic("b, 4"), says=True)
def io_silent_symbolic_in_scan(voice):
    return in_scan(after(partial(voice.io, note, ordered=True)))


# ---------------------------------------------------------------- arguments and results


@program(ROW)
def pure_trees(voice):
    results = {"sum": ROW, "pair": (ROW, Spec((), f32))}
    return lambda x: jax.pure_callback(trees, results, {"x": x, "more": [x * 2]}, scale=x)


@program(ROW)
def pure_condition(voice):
    """The callback decides when the loop ends."""
    return lambda x: lax.while_loop(lambda x: jax.pure_callback(below_five, Spec((), bool), x), lambda x: x + 1, x)


@program(ROW)
def pure_without_arguments(voice):
    return lambda x: x + jax.pure_callback(ones, ROW)


@named("ones")
def ones():
    return np.ones(4, np.float32)


@program(Spec((), jax.random.key(0).dtype), ROW)
def io_of_a_key(voice):
    """An operand of the key's integers."""
    return lambda key, x: io_callback(log_key, ROW, key, x)


@named("log key")
def log_key(key, x):
    return np.asarray(x)


@program(Spec((0, 4), f32), Spec((2,), jnp.bfloat16), Spec((), jnp.uint8), Spec((3,), bool))
def pure_types(voice):
    """An empty array, and types of other sizes."""
    return lambda *args: jax.pure_callback(same, tuple(map(like, args)), *args)


@named("same")
def same(*args):
    return args


@program(ROW, says=True)
def debug_static_arguments(voice):
    """Texts are in the metadata, and no operands."""

    def run(x):
        voice.debug(see, "first", x, scale=3, unit="metre", nothing=None)
        return x * 2

    return run


@program(ROW, says=True)
def debug_no_arguments(voice):
    return after(lambda _: voice.debug(see))


@program(ROW, says=True)
def print_forms(voice):
    def run(x):
        voice.print("no placeholder")
        voice.print("{:.2f} {} {unit} {{}}", x[0], "text", unit="metre")
        voice.print("Größe {size}\n“quoted” \\ {{\t}}", size=x, ordered=True)
        return x * 2

    return run


@program(ROW, says=True, when=hasattr(jax.debug, "log"))
def print_to_log(voice):
    return after(lambda x: voice.log("x is {}", x))


@program(ROW, tpu=False)
def buffer_alias(voice):
    return lambda x: buffer(x + 1, first_of_42, input_output_aliases={0: 0})


@program(ROW, Spec((2,), i32), tpu=False)
def buffer_aliases_crossed(voice):
    """The first operand becomes the second result."""

    def run(x, y):
        return buffer_callback(swap, (like(y), like(x)), input_output_aliases={0: 1, 1: 0})(x * 2, y + 1)

    return run


@program(ROW, tpu=False)
def buffer_trees(voice):
    results = {"sum": ROW, "count": (Spec((), i32),)}
    return lambda x: buffer_callback(fill, results)({"x": x}, more=x)


@program(ROW, tpu=False)
def buffer_command_buffer(voice):
    return partial(buffer, command_buffer_compatible=True)


@program(ROW, tpu=False)
def buffer_side_effect(voice):
    return partial(buffer, has_side_effect=True)


# ---------------------------------------------------------------- several at once


@program(ROW, says=True)
def two_ordered_effects(voice):
    """Two chains of tokens."""

    def run(x):
        voice.debug(see, x, ordered=True)
        x = io(x, ordered=True)
        voice.print("then {}", x[0], ordered=True)
        return io(x, ordered=True)

    return run


@program(ROW, says=True)
def two_ordered_effects_in_loops(voice):
    """Both chains go through a loop in a condition in a function that is called twice."""

    def step(x):
        voice.debug(see, x, ordered=True)
        return io(x, ordered=True)

    return in_nested_jit(in_cond(lambda x: in_scan(step)(x)[0]))


@program(ROW, says=True)
def chain_only_in_one_branch(voice):
    """The other branch hands the token on."""

    def run(x):
        x = lax.cond(x[0] > 0, after(partial(voice.io, note, ordered=True)), lambda x: x, x)
        voice.debug(see, x, ordered=True)
        return x

    return run


@program(ROW, says=True, tpu=False)
def all_effects(voice):
    """Two ordered effects and three that are not."""

    def run(x):
        voice.debug(see, x, ordered=True)
        voice.io(note, x, ordered=True)
        voice.print("x {}", x)
        voice.buffer(watch, x)
        return io(x)

    return run


@program(ROW)
def one_function_in_two_kinds(voice):
    """One name, three slots."""
    return lambda x: io(pure(x, add), add) + io(x, add, ordered=True)


@program(ROW)
def one_slot_three_operations(voice):
    return lambda x: pure(pure(pure(x) * 2) * 3)


@program(ROW, says=True)
def automatic_name(voice):
    return after(partial(voice.debug, look))


@program(ROW)
def result_not_used(voice):
    """Only the effect keeps the call."""

    def run(x):
        io(x)
        return x * 2

    return run


@program(*symbolic("b, 4", "b"), vjp_order=1, says=True, tpu=False)
def everything(voice):
    """All kinds in scan, while, cond, vmap, a nested jit and custom_vjp, for symbolic dimensions, with a gradient."""

    @jax.jit
    def counted(x):
        voice.debug(see, x, "counted", ordered=True)
        return sine(x)

    def step(c, x):
        voice.print("carry {} {unit}", c.sum(), unit="metre", ordered=True)
        voice.io(note, lax.stop_gradient(c), ordered=True)
        c = lax.cond(c.sum() > 0, lambda c: sine(c) + log_aside(c), lambda c: c * 2, c)
        return c, counted(c * x)

    def log_aside(x):
        # Callbacks that have no derivative see a value that has none.
        return io(lax.stop_gradient(x), ordered=True)

    def turn(state):
        i, x = state
        voice.debug(look, x)
        return i + 1, buffer(x, first_of_42, input_output_aliases={0: 0})

    def run(x, y):
        still = lax.stop_gradient(x)
        voice.buffer(watch, still)
        last, rows = lax.scan(step, x[0] * 0 + 1, x)
        _, turned = lax.while_loop(lambda s: s[0] < 2, turn, (i32(0), buffer(still, command_buffer_compatible=True)))
        mapped = jax.vmap(partial(pure, vmap_method="sequential"))(still)
        spread = jax.vmap(partial(pure, vmap_method="broadcast_all"))(still)
        voice.print("{} rows", x.shape[0])
        voice.debug(see, y, scale=2)
        return counted(rows) + mapped + spread + turned, last, (y * io(lax.stop_gradient(y))).sum()

    return run
