"""The program under test, as a user runs it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Tool:
    """Runs the program and captures what it says."""

    def __init__(self, binary: Path):
        self.binary = binary

    @classmethod
    def find(cls) -> "Tool":
        """`JAXPRISM_BIN`, else the release build of this repository."""
        binary = Path(os.environ.get("JAXPRISM_BIN", ROOT / "target" / "release" / "jaxprism")).absolute()
        if not binary.is_file() or not os.access(binary, os.X_OK):
            raise FileNotFoundError(f"no program at {binary}: run `cargo build --release` or set JAXPRISM_BIN")
        return cls(binary)

    def run(self, *arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess:
        """Runs one command; both outputs are bytes, and the exit status is for the caller to judge."""
        command = [str(self.binary), *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)
