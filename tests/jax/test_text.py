"""MLIR text of `jaxprism print`: jaxlib's own MLIR reads it, and it tells programs apart as the documentation says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from artifacts import context_with_vhlo
from jax import export
from jaxlib.mlir import ir
from tool import ROOT, Tool

EXPORTS = sorted((ROOT / "testdata" / "exports").glob("*.jax_exported"))


def printed(tool: Tool, *arguments: object, stdin: bytes = b"") -> str:
    outcome = tool.run("print", *arguments, stdin=stdin)
    assert outcome.returncode == 0, outcome.stderr.decode()
    return outcome.stdout.decode()


# ---------------------------------------------------------------- jaxlib reads the text


def modules(path: Path, tool: Tool) -> Iterator[tuple[int, bytes]]:
    """The modules of an export, by level. JAX itself no longer loads the oldest exports."""
    levels = json.loads(tool.run("info", "--json", path).stdout)["levels"]
    for level in range(len(levels)):
        yield level, tool.run("opt", path, "--level", level, "--emit", "mlirbc").stdout


def operations(module: ir.Module, *, locations: bool) -> list[tuple]:
    """Everything that jaxlib knows of each operation; functions as `func.func`, which is how text has them."""
    names = {"vhlo.func_v1": "func.func", "vhlo.call_v1": "func.call", "vhlo.return_v1": "func.return"}
    found = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = names.get(operation.name, operation.name)
        items = [operation.attributes[position] for position in range(len(operation.attributes))]
        attributes = {item.name: str(item.attr) for item in items if not item.name.startswith("jaxprism.")}
        if name.startswith("func."):
            # What these say is in other words, but for the attributes that JAX put there.
            own = {"arg_attrs", "res_attrs", "function_type", "sym_name", "sym_visibility", "callee"}
            attributes = {name: value for name, value in attributes.items() if name not in own}
        # jaxlib's text of a location may be of one inside others, which is enough.
        place = str(operation.location) if locations else ""
        blocks = [
            [str(argument.type) for argument in block.arguments] for region in operation.regions for block in region
        ]
        operands = [str(value.type) for value in operation.operands]
        found.append((name, attributes, operands, [str(value.type) for value in operation.results], blocks, place))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


@cache
def is_known(module: bytes) -> bool:
    """Whether this jaxlib can read the module at all; it may be from a newer one."""
    try:
        with context_with_vhlo():
            ir.Module.parse(module)
    except (ir.MLIRError, ValueError):
        return False
    return True


READ: list[str] = []
LEFT_OUT: list[str] = []
TOO_NEW: list[str] = []


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_jaxlib_reads_what_is_printed(path: Path, tool: Tool):
    for level, module in modules(path, tool):
        where = f"{path.stem}, level {level}"
        for locations in (False, True):
            text = printed(tool, path, "--level", level, "--constants", "all", *(["--locations"] if locations else []))
            if not is_known(module):
                TOO_NEW.append(where)
                break
            if "#jaxprism.entry<" in text or "!jaxprism.entry<" in text:
                LEFT_OUT.append(where)
                break
            with context_with_vhlo():
                read = ir.Module.parse(text)
                assert read.operation.verify()
                expected = operations(ir.Module.parse(module), locations=locations)
                assert operations(read, locations=locations) == expected, where
        else:
            READ.append(where)


def test_few_exports_hold_what_only_jaxprism_reads():
    """Their attributes have no spelling of their own, such as sharding rules, or this jaxlib is too old for them.

    Exports that are newer than this JAX do not count before 0.10.
    """
    if len(READ) + len(LEFT_OUT) + len(TOO_NEW) < len(EXPORTS):
        pytest.skip("not all of them were looked at")
    print(f"jaxlib read {len(READ)} modules; left out: {', '.join(LEFT_OUT)}; too new: {', '.join(TOO_NEW)}")
    is_new = jax.__version_info__ >= (0, 10)
    assert len(READ) >= (15 if is_new else 10)
    left_out = LEFT_OUT + TOO_NEW if is_new else LEFT_OUT
    assert len(left_out) <= 8, left_out


# ---------------------------------------------------------------- canonical text of what JAX exports


def exported(inner: str, other: str, *, scale: float = 2.0, weights: int = 0) -> bytes:
    """A program with two inner functions of these names, and a large constant."""
    table = np.random.default_rng(weights).standard_normal((8, 8)).astype(np.float32)

    def first(x):
        return jnp.sin(x) * scale

    def second(x):
        return jnp.where(x > 0, jnp.cos(x), table @ x)

    first.__name__, second.__name__ = inner, other
    first, second = jax.jit(first), jax.jit(second)

    def program(x):
        return second(first(x)) + first(second(x))

    shape = jax.ShapeDtypeStruct((8,), jnp.float32)
    return export.export(jax.jit(program), platforms=("cpu", "cuda"))(shape).serialize()


def canonical(tool: Tool, model: bytes) -> str:
    return printed(tool, "-", "--canonical", stdin=model)


def test_canonical_text_does_not_depend_on_names(tool: Tool):
    names = [("first", "second"), ("zebra", "ant"), ("ant", "zebra")]
    models = [exported(*pair) for pair in names]
    texts = {canonical(tool, model) for model in models}
    assert len(texts) == 1
    assert len({printed(tool, "-", stdin=model) for model in models}) == len(models), "otherwise it shows nothing"
    text = texts.pop()
    assert "function_0" in text
    assert not re.search("@(zebra|ant|first|second)", text)


def test_canonical_text_shows_other_weights_in_one_line(tool: Tool):
    before, after = (canonical(tool, exported("f", "g", weights=seed)).splitlines() for seed in (0, 1))
    differing = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert differing
    assert all('dense<hash "' in line for pair in differing for line in pair)
    assert len(differing) == 1


def test_canonical_text_shows_another_program(tool: Tool):
    assert canonical(tool, exported("f", "g")) != canonical(tool, exported("f", "g", scale=3.0))


# ---------------------------------------------------------------- the recipe of docs/golden-tests.md


def test_the_recipe_for_pytest_works_as_shown(tool: Tool, tmp_path: Path):
    document = (ROOT / "docs" / "golden-tests.md").read_text()
    (recipe,) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    test = tmp_path / "test_golden.py"
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "jaxprism").symlink_to(tool.binary)

    def run(text: str, **variables: str) -> subprocess.CompletedProcess:
        test.write_text(text)
        environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", **variables}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    assert run(recipe).returncode == 1, "there is nothing to compare with"
    blessed = run(recipe, UPDATE_GOLDEN="1")
    assert blessed.returncode == 0, blessed.stdout + blessed.stderr
    assert len(list((tmp_path / "golden").iterdir())) == 2
    assert run(recipe).returncode == 0
    assert run(recipe.replace("normalize", "rescale")).returncode == 0, "a name is no part of the program"
    changed = run(recipe.replace("jnp.tanh", "jnp.sin"))
    assert changed.returncode == 1
    assert "vhlo.sine" in changed.stdout
