"""Makes the exports that the benchmarks split, for cpu, cuda and tpu.   python benches/make_inputs.py FOLDER [n1e5] [w128]

n1e5   a hundred thousand operations in several hundred functions, hardly any constants
w128   128 MB of constants in a few hundred operations

A file that is there is kept. Both are far from typical models on purpose: each strains one thing.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

PLATFORMS = ("cpu", "cuda", "tpu")
f32 = np.float32


def by_platform(x):
    return lax.platform_dependent(x, cpu=jnp.sin, cuda=lambda x: jnp.cos(x - f32(1.5)), default=lambda x: x - x**3 / 6)


def n1e5():
    """A chain of small recurrent cells, each a function with numbers of its own, so that nothing can be shared."""

    def cell(number):
        decay, shift = f32(1 - 1 / (number + 2)), f32(number / 100)

        def step(state, key):
            for turn in range(12):
                gate = 1 / (1 + jnp.exp(-state * decay - f32(turn)))
                state = gate * jnp.tanh(state + shift) + (1 - gate) * jax.nn.log_softmax(state, axis=1)
                state = jnp.clip(state, f32(-4 - turn), f32(4 + turn))
            state = by_platform(state @ state.T / 8)
            if number % 3 == 0:
                state = jnp.where(jax.random.uniform(jax.random.fold_in(key, number), state.shape) < 0.9, state, 0)
            if number % 25 == 0:
                state = state + jnp.linalg.qr(state)[1]
            return jnp.cumsum(state, axis=0) / 8

        step.__name__ = f"cell_{number}"
        return jax.jit(step)

    cells = [cell(number) for number in range(307)]

    def run(state, seed):
        key = jax.random.key(seed)
        for one in cells:
            state = one(state, key)
        return state

    return run, (jax.ShapeDtypeStruct((8, 8), f32), jax.ShapeDtypeStruct((), np.uint32))


def w128():
    """Four layers of 32 MB each, filled with random bits that no encoding makes smaller."""
    rng = np.random.default_rng(128)
    layers = [np.frombuffer(rng.bytes(1 << 25), np.uint32) >> 9 | 0x3F800000 for _ in range(4)]
    layers = [bits.view(f32).reshape(2048, 4096) - f32(1.5) for bits in layers]

    def run(x, seed):
        for number, weights in enumerate(layers):
            kept = jax.random.bernoulli(jax.random.fold_in(jax.random.key(seed), number), 0.9, x.shape)
            x = by_platform((jnp.where(kept, x, 0) @ weights).reshape(-1, 2, 2048).sum(axis=1) / 64)
        return x

    return run, (jax.ShapeDtypeStruct((1, 2048), f32), jax.ShapeDtypeStruct((), np.uint32))


def main(folder, names):
    os.makedirs(folder, exist_ok=True)
    for name in names or ("n1e5", "w128"):
        path = os.path.join(folder, f"{name}.jax_exported")
        if os.path.exists(path):
            continue
        run, arguments = {"n1e5": n1e5, "w128": w128}[name]()
        data = export.export(jax.jit(run), platforms=PLATFORMS)(*arguments).serialize()
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)
        print(f"{path}: {len(data):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
