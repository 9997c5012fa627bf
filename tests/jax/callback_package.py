"""The Python package of this repository, for tests that run without installing it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings" / "python"))

import jaxprism

__all__ = ["jaxprism"]
