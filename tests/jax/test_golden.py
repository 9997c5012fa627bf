"""Golden files are what JAX takes for MLIR: jaxlib parses and verifies inputs that run, and modules that come of them.

What only jaxprism reads is left out: its own operations and attributes, and constants that are elided or hashed. So are
operations that an older jaxlib does not know.
"""

import re
from pathlib import Path

import jax
import pytest
from artifacts import context_with_vhlo
from jax._src.lib.mlir import ir
from tool import ROOT

GOLDEN = ROOT / "testdata" / "golden"
OURS = re.compile(r"""[#"{ ]jaxprism\.|dense<elided>|dense<hash """)
RUN = re.compile(r"^// RUN\[", re.MULTILINE)
OPERATION = re.compile(r'"(vhlo\.[\w-]+|sdy\.\w+)"\(')
IS_NEWEST = jax.__version_info__ >= (0, 12)


def unknown_operations(text: str) -> list[str]:
    context = context_with_vhlo()
    return [name for name in set(OPERATION.findall(text)) if not context.is_registered_operation(name)]


def is_for_jax(path: Path) -> bool:
    """Whether a file is a whole module that jaxlib should take."""
    text = path.read_text()
    is_module = RUN.search(text) if path.suffix == ".mlir" else text.startswith("module")
    return bool(is_module) and not OURS.search(text) and (IS_NEWEST or not unknown_operations(text))


def names(suffix: str) -> list[str]:
    return [str(path.relative_to(GOLDEN)) for path in sorted(GOLDEN.rglob(f"*{suffix}")) if is_for_jax(path)]


INPUTS, OUTPUTS = names(".mlir"), names(".stdout")


def test_most_golden_files_are_for_jax():
    assert len(INPUTS) >= 90
    assert len(OUTPUTS) >= 100


@pytest.mark.parametrize("name", INPUTS + OUTPUTS)
def test_golden_file_is_mlir(name: str):
    with context_with_vhlo():
        assert ir.Module.parse((GOLDEN / name).read_text()).operation.verify()
