"""Makes the exports in `exports/`: small programs of our own, one file per program and JAX version.

    python testdata/make.py [PROGRAM …]       with the JAX of that interpreter; all programs without names

Run it once per JAX version to add. The files are kept forever, and are the same on every machine: the names of source files are reduced to
their last part; line numbers stay, so a change to this file changes what it makes. Old versions also need flatbuffers and absl-py. Programs
that a version of JAX cannot export are left out, with the reason. Programs with callbacks need the Python package of this repository and
what `tests/jax` knows of JAX; they work since JAX 0.6.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "exports")
sys.path += [os.path.join(HERE, "..", folder) for folder in ("bindings/python", "tests/jax")]
PLATFORMS = ("cpu", "cuda", "tpu")
f32 = np.float32
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def struct(*shape, dtype=f32):
    return jax.ShapeDtypeStruct(shape, dtype)


def by_platform(x):
    """The same value in three ways, told apart by their last bits."""

    def rational(x):
        return 2 / (1 + jnp.exp(-2 * x)) - 1

    def quotient(x):
        return jnp.sinh(x) / jnp.cosh(x)

    return lax.platform_dependent(x, cpu=jnp.tanh, cuda=rational, default=quotient)


@program
def demo():
    """One attention block with dropout: products, a running sum, random bits and a branch per platform."""
    rng = np.random.default_rng(7)
    wq, wk, wv = (rng.standard_normal((16, 16)).astype(f32) / 4 for _ in range(3))

    def attend(tokens, seed):
        scores = (tokens @ wq) @ (tokens @ wk).T / 4
        weights = jnp.where(jnp.tri(8, dtype=bool), jnp.exp(scores - scores.max(axis=1, keepdims=True)), 0)
        mixed = weights / weights.sum(axis=1, keepdims=True) @ (tokens @ wv)
        keep = jax.random.bernoulli(jax.random.key(seed), 0.9, mixed.shape)
        hidden = by_platform(tokens + jnp.where(keep, mixed / 0.9, 0))
        return hidden, jnp.cumsum(hidden.mean(axis=1))

    return export.export(jax.jit(attend), platforms=PLATFORMS)(struct(8, 16), struct(dtype=np.uint32)), 0


@program
def nested():
    """Calls another export, whose platforms are the same in another order."""
    inner = export.export(jax.jit(lambda x: by_platform(x) + 1), platforms=("tpu", "cpu", "cuda"))(struct(5))
    inner = export.deserialize(inner.serialize())

    def outer(x):
        return inner.call(x * 2) - lax.platform_dependent(x, tpu=jnp.negative, default=jnp.square)

    return export.export(jax.jit(outer), platforms=PLATFORMS)(struct(5)), 0


@program
def vjp():
    """Two levels of gradients, each a module of its own."""

    def loss(w, x):
        return jnp.sum(by_platform(x @ w) ** 2)

    return export.export(jax.jit(loss), platforms=PLATFORMS)(struct(3, 4), struct(2, 3)), 2


@program
def x64():
    """The platform index is an i64 here."""
    jax.config.update("jax_enable_x64", True)
    try:
        return export.export(jax.jit(lambda x, n: (by_platform(x) * n, jnp.cumsum(x)[n])), platforms=("cpu", "tpu"))(
            struct(6, dtype=np.float64), struct(dtype=np.int64)
        ), 0
    finally:
        jax.config.update("jax_enable_x64", False)


@program
def symbolic():
    """Dimension variables come beside the platform index."""
    batch, length = export.symbolic_shape("batch, 2*half")

    def normalize(x):
        centred = x - x.mean(axis=1, keepdims=True)
        return by_platform(centred).reshape(x.shape[0], 2, -1), x.shape[1] * jnp.ones(x.shape[0])

    return export.export(jax.jit(normalize), platforms=PLATFORMS)(struct(batch, length)), 0


@program
def sharded():
    """A mesh of two by two devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("rows", "columns"))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows", None))
    both = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows", "columns"))

    def product(a, b):
        return lax.with_sharding_constraint(by_platform(a @ b), rows).sum(axis=0)

    return export.export(jax.jit(product, in_shardings=(rows, both)), platforms=PLATFORMS)(struct(4, 8), struct(8, 4)), 0


@program
def linalg():
    """Every platform has its own library calls."""

    def factors(a):
        spd = a @ a.T + 8 * jnp.eye(4)
        return jnp.linalg.cholesky(spd), jnp.linalg.eigh(spd)[0]

    return export.export(jax.jit(factors), platforms=PLATFORMS)(struct(4, 4)), 0


@program
def control():
    """Branches in loops, under vmap and beside choices that are the user's own and must stay."""

    def body(carry, x):
        return by_platform(carry + x), lax.cond(x > 0, jnp.sin, jnp.cos, x)

    def steps(xs, choice):
        last, ys = lax.scan(body, f32(0), xs)
        until = lax.while_loop(lambda s: s < 10, lambda s: s + 1 + jnp.abs(by_platform(s)), last)
        chosen = lax.switch(choice, [jnp.exp, jnp.log1p, by_platform], until)
        fixed = lax.switch(jnp.int32(1), [jnp.exp, jnp.negative], chosen)
        return ys, fixed, jax.vmap(by_platform)(xs)

    return export.export(jax.jit(steps), platforms=("tpu", "cpu"))(struct(6), struct(dtype=np.int32)), 0


@program
def single():
    """One platform: nothing to resolve."""
    return export.export(jax.jit(lambda x: by_platform(x) + jnp.arange(3.0)), platforms=("cpu",))(struct(3)), 0


def calls_python(shape, *, buffers=True):
    """A function with every kind of callback, and its argument; tpu has no buffer callbacks, and no results of symbolic shapes."""
    from jax.experimental import io_callback
    from jax.experimental.buffer_callback import buffer_callback

    from jaxprism import named

    def like(x):
        return struct(*x.shape, dtype=x.dtype)

    @named("forward")
    def forward(x):
        return np.sin(x)

    @named("backward")
    def backward(x, cotangent):
        return np.cos(x) * cotangent

    @named("log")
    def log(total):
        print(total)

    @named("draw")
    def draw(x):
        return np.random.default_rng().normal(x)

    @named("warm up")
    def warm_up(x):
        return x

    @named("see")
    def see(x, where):
        print(where, x)

    @named("fill")
    def fill(ctx, out, x):
        np.asarray(out)[..., 0] = 42

    @named("watch")
    def watch(ctx, out, x):
        print(x)

    @jax.custom_vjp
    def sine(x):
        return jax.pure_callback(forward, like(x), x, vmap_method="expand_dims")

    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (jax.pure_callback(backward, like(x), x, ct),))

    def step(total, x):
        io_callback(log, None, lax.stop_gradient(total), ordered=True)
        return total + sine(x).sum(), None

    def run(x):
        still = lax.stop_gradient(x)
        total, _ = lax.scan(step, f32(0), sine(sine(x)))
        total += io_callback(draw, like(still), still).sum()
        total += lax.platform_dependent(still, cuda=lambda x: jax.pure_callback(warm_up, like(x), x), default=jnp.negative).sum()
        if buffers:
            total += buffer_callback(fill, like(still), input_output_aliases={0: 0}, command_buffer_compatible=True)(still).sum()
            buffer_callback(watch, (), has_side_effect=True)(still)
        jax.debug.callback(see, still, "after all")
        jax.debug.print("total {} {unit}", total, unit="metres")
        return total

    return jax.jit(run), struct(*export.symbolic_shape(shape))


@program
def callbacks():
    """Placeholders for Python callbacks, and for others in the gradient; tpu has no buffer callbacks."""
    import jaxprism

    function, argument = calls_python("b, 4")
    return jaxprism.serialize(jaxprism.export(function, platforms=PLATFORMS)(argument), vjp_order=1), None


@program
def lowered():
    """Callbacks as JAX lowers them for cuda. Running it would call whatever Python function has that number."""
    import jaxprism
    from callback_reference import lower_as_jax

    function, argument = calls_python("b, 4")
    return jaxprism.serialize(lower_as_jax(function, (argument,), "cuda")[0]), None


@program
def transfers():
    """Callbacks as JAX lowers them for tpu."""
    import jaxprism
    from callback_reference import lower_as_jax

    function, argument = calls_python("2, 4", buffers=False)
    return jaxprism.serialize(lower_as_jax(function, (argument,), "tpu")[0]), None


@program
def fill():
    """What the callback of that name does, in JAX."""

    def join(x):
        return jnp.concatenate([jnp.full_like(x[..., :1], 42), x[..., 1:]], -1)

    def run(x):
        return lax.platform_dependent(x, cuda=join, default=lambda x: x.at[..., 0].set(42))

    return export.export(jax.jit(run), platforms=PLATFORMS)(struct(*export.symbolic_shape("rows, 4"))), 0


def main(names):
    os.makedirs(FOLDER, exist_ok=True)
    for name in names or PROGRAMS:
        try:
            exported, order = PROGRAMS[name]()
            data = exported if isinstance(exported, bytes) else exported.serialize(vjp_order=order)
        except (AttributeError, ImportError, NotImplementedError, TypeError, ValueError) as error:
            print(f"{name}: left out, {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        path = f"{name}.jax-{jax.__version__}.jax_exported"
        with open(os.path.join(FOLDER, path), "wb") as file:
            file.write(data)
        print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
