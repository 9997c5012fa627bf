"""The functions that are written in Rust.

For now they run the command line program, which `JAXPRISM_TOOL` or the search path names.
"""

import os
import shutil
import subprocess

from jaxprism._errors import UnlowerError


def _native_unlower(data: bytes) -> bytes:
    """An export in which callbacks were lowered, with placeholders again, at every gradient level.

    Raises `UnlowerError`.
    """
    program = os.environ.get("JAXPRISM_TOOL") or shutil.which("jaxprism")
    if program is None:
        raise UnlowerError(
            "the callbacks of this file were lowered, and the program that turns them back is not there",
            hint="put `jaxprism` on the search path",
        )
    command = [program, "opt", "-", "--pass", "unlower-callbacks", "-o", "-", "--emit", "export"]
    run = subprocess.run(command, input=data, capture_output=True, check=False)
    if run.returncode != 0:
        raise UnlowerError(f"`{' '.join(command)}` failed: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout
