"""What IREE compiles of exports, their splits, and splits without shardings: the table in docs/consumers.md.

Runs where `iree-compile` is on the path, or named by `IREE_COMPILE`.
"""

import os
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from tool import ROOT, Tool

COMPILER = os.environ.get("IREE_COMPILE") or shutil.which("iree-compile")
OPTIONS = [
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no `iree-compile`: install iree-base-compiler")

# Of the bare module, of the split for cpu, and of that without shardings: whether it compiles, else what IREE says.
CUSTOM_CALL = "failed to legalize operation 'stablehlo.custom_call'"
SDY = "dialect 'sdy' does not implement the bytecode interface"
DYNAMIC = "failed to legalize operation 'stablehlo.dynamic_broadcast_in_dim'"
TABLE = {
    "demo.jax-0.12.0.1": (None, None, None),
    "nested.jax-0.12.0.1": (None, None, None),
    "control.jax-0.12.0.1": (None, None, None),
    "vjp.jax-0.12.0.1": (None, None, None),
    "x64.jax-0.12.0.1": (None, None, None),
    "kernel": (CUSTOM_CALL, None, None),
    "sharded.jax-0.12.0.1": (SDY, SDY, None),
    "sharded.jax-0.5.3": (CUSTOM_CALL, CUSTOM_CALL, None),
    "linalg.jax-0.12.0.1": (SDY, SDY, CUSTOM_CALL),
    "symbolic.jax-0.12.0.1": (DYNAMIC, DYNAMIC, DYNAMIC),
}


def kernel() -> bytes:
    """A custom call in the branch of another platform."""
    call = jax.ffi.ffi_call("my_kernel", jax.ShapeDtypeStruct((4,), np.float32))
    function = jax.jit(lambda x: lax.platform_dependent(x, cuda=lambda x: call(x), default=jnp.tanh) + 1)
    checks = [export.DisabledSafetyCheck.custom_call("my_kernel")]
    return bytes(
        export.export(function, platforms=("cpu", "cuda"), disabled_checks=checks)(np.ones(4, np.float32)).serialize()
    )


def compiled(module: bytes, directory: Path) -> str | None:
    """None if IREE compiles it, else what it says."""
    (directory / "in.mlirbc").write_bytes(module)
    command = [COMPILER, *OPTIONS, str(directory / "in.mlirbc"), "-o", str(directory / "out.vmfb")]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    return None if done.returncode == 0 else done.stderr.decode(errors="replace")


@pytest.mark.parametrize("name", TABLE)
def test_what_compiles(tool: Tool, tmp_path: Path, name: str):
    data = kernel() if name == "kernel" else (ROOT / "testdata" / "exports" / f"{name}.jax_exported").read_bytes()
    commands = [
        ("opt", "-", "--emit", "mlirbc", "--level", "0", "-o", "-"),
        ("split", "-", "-p", "cpu", "--emit", "mlirbc", "-o", "-"),
        ("split", "-", "-p", "cpu", "--emit", "mlirbc", "--strip-sdy", "-o", "-"),
    ]
    for command, expected in zip(commands, TABLE[name], strict=True):
        done = tool.run(*command, stdin=data)
        assert done.returncode == 0, done.stderr.decode()
        said = compiled(done.stdout, tmp_path)
        assert (said is None) == (expected is None), said
        if expected is not None:
            assert expected in said


def test_callbacks_are_stubbed_away(tool: Tool, tmp_path: Path):
    data = (ROOT / "testdata" / "exports" / "callbacks.jax-0.12.0.1.jax_exported").read_bytes()
    done = tool.run("split", "-", "-p", "cpu", "--callbacks", "stub:zeros", "--emit", "mlirbc", "-o", "-", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    assert compiled(done.stdout, tmp_path) is None
