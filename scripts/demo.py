"""Runs an export and its split for this platform on the same arguments, and compares.   python scripts/demo.py ORIGINAL SPLIT"""

import os
import sys

import jax
import numpy as np
from jax import export


def run(path):
    with open(path, "rb") as file:
        exported = export.deserialize(bytearray(file.read()))
    rng = np.random.default_rng(0)
    arguments = [(8 * rng.random(aval.shape)).astype(aval.dtype) for aval in exported.in_avals]
    results = [np.asarray(result) for result in jax.tree.leaves(exported.call(*arguments))]
    index = "the platform index and " if "_platform_index" in exported.mlir_module() else ""
    print(os.path.basename(path))
    print(f"    made for  {', '.join(exported.platforms)}")
    print(f"    size      {os.path.getsize(path):,} bytes")
    print(f"    takes     {index}{len(arguments)} arguments")
    print(f"    computes  {' '.join(f'{value:.6f}' for value in results[-1].ravel()[:4])} …")
    return results


def identical(a, b):
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


original, split = map(run, sys.argv[1:3])
same = len(original) == len(split) and all(map(identical, original, split))
print(f"\nThe results of both are {'bit-identical' if same else 'DIFFERENT'}.")
sys.exit(not same)
