"""Loads exports in JAX, each as far as its module in MLIR: `python load_accepted.py FOLDER`.

The files are what `make mutate` keeps of the inputs that were accepted. Whatever jaxprism accepts it must write as
something JAX loads. Children do the work, since jaxlib may end the process. The exit status says whether all were loaded.
"""

import collections
import pathlib
import re
import subprocess
import sys

CHILD = """
import os, sys, tempfile
import jax
from jax import export
# Files of old versions are loaded as well.
jax.config.update("jax_export_deserialize_expired_versions", True)
said = tempfile.TemporaryFile()
os.dup2(said.fileno(), 2)
for path in sys.stdin.read().split("\\n"):
    said.truncate(0), said.seek(0)
    print(">", path, flush=True)
    try:
        exported = export.deserialize(bytearray(open(path, "rb").read()))
        while exported is not None:
            exported.mlir_module()
            exported = exported.vjp() if exported.has_vjp() else None
    except Exception as error:
        said.seek(0)
        lines = [line for line in said.read().decode(errors="replace").splitlines() if "error: " in line]
        why = lines[0][lines[0].index("error: ") + 7 :] if lines else f"{type(error).__name__}: {' '.join(str(error).split())}"
        print("< refused:", why[:600], flush=True)
    else:
        print("< loaded", flush=True)
"""


def load(paths):
    """What became of each file: `loaded`, an error, or how the process ended."""
    results = {}
    while paths:
        child = subprocess.run(
            [sys.executable, "-c", CHILD],
            input="\n".join(map(str, paths)),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        now = None
        for line in child.stdout.splitlines():
            if line.startswith("> "):
                now = line[2:]
            elif line.startswith("< "):
                results[now] = line[2:]
        if now is None:
            raise SystemExit(f"JAX does not start: {child.stderr}")
        if now not in results:
            results[now] = f"ended the process with {child.returncode}: {' '.join(child.stderr.split())[-600:]}"
        paths = paths[[str(path) for path in paths].index(now) + 1 :]
    return results


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.jax_exported"), key=lambda path: int(path.stem))
    results = load(paths)
    kinds = collections.defaultdict(list)
    for path, result in results.items():
        kinds[re.sub(r"[\"'%#@<0-9][^ ]*", "…", result)[:160]].append((path, result))
    for found in sorted(kinds.values(), key=len, reverse=True):
        path, result = found[0]
        print(f"{len(found):>5}  {result[:400]}" + ("" if result == "loaded" else f"\n       for instance {path}"))
    sys.exit(any(result != "loaded" for result in results.values()))


if __name__ == "__main__":
    main()
