"""Writes the exports of `callback_programs.py`: `python callback_samples.py FOLDER [PROGRAM…]`."""

import sys
from pathlib import Path

import conftest  # noqa: F401  # four host devices, before JAX starts
import jaxprism
from callback_programs import PROGRAMS

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def main(folder: str, *names: str) -> None:
    """Writes FOLDER/PROGRAM.jax_exported, for `PLATFORMS`, with as many gradient levels as the program has."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        program = PROGRAMS[name]
        data = jaxprism.serialize(program.export(PLATFORMS), vjp_order=program.vjp_order)
        Path(folder, f"{name}.jax_exported").write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
