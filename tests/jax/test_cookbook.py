"""What docs/cookbook.md and README.md show in Python: files are written, commands run, and print what is shown."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tool import ROOT, Tool

COOKBOOK, README = ROOT / "docs" / "cookbook.md", ROOT / "README.md"
ANYTHING = "…"
# What a recipe may need beside JAX, and what runs it.
OPTIONAL = {"apache_beam": "make test-beam"}
# The export that a recipe begins with, if it makes none.
MODEL = ROOT / "testdata" / "exports" / "demo.jax-0.12.0.1.jax_exported"


class Recipe(NamedTuple):
    title: str
    files: dict[str, str]
    commands: list[tuple[str, list[str]]]  # with the lines that they print


def recipes() -> list[Recipe]:
    found = []
    sections = [
        section for file in (COOKBOOK, README) for section in file.read_text(encoding="utf-8").split("\n## ")[1:]
    ]
    for section in sections:
        if "\n```python\n" not in section:
            continue
        recipe = Recipe(section.splitlines()[0], {}, [])
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            if language == "python":
                head, rest = text.split("\n", 1)
                recipe.files[head.removeprefix("# ")] = rest
                continue
            if language == "sh":  # tests/documents.rs runs it
                continue
            assert language == "console", f"a block in `{language}` is not run"
            for line in text.splitlines():
                if line.startswith("$ "):
                    recipe.commands.append((line.removeprefix("$ "), []))
                else:
                    recipe.commands[-1][1].append(line)
        found.append(recipe)
    return found


def as_shown(shown: list[str], printed: str) -> bool:
    """Whether the lines are those of the document, in which `…` stands for anything."""
    pattern = re.escape("\n".join(shown)).replace(ANYTHING, ".*")
    return re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL) is not None


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.title.replace(" ", "-"))
def test_recipes_do_what_they_say(recipe: Recipe, tmp_path: Path, tool: Tool):
    assert recipe.files, "a recipe has files"
    assert recipe.commands, "and commands"
    for module, target in OPTIONAL.items():
        if any(f"import {module}" in text for text in recipe.files.values()) and not importlib.util.find_spec(module):
            pytest.skip(f"{module} is not installed: `{target}` runs this recipe")
    shutil.copy(MODEL, tmp_path / "model.jax_exported")
    for name, text in recipe.files.items():
        assert re.fullmatch(r"\w+\.py", name), f"a file begins with its name, and not with {name!r}"
        (tmp_path / name).write_text(text, encoding="utf-8")
    programs = [str(Path(sys.executable).parent), str(tool.binary.parent)]
    environment = os.environ | {"PATH": os.pathsep.join([*programs, os.environ["PATH"]]), "XLA_FLAGS": ""}
    for command, shown in recipe.commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr[-3000:]}"
        assert as_shown(shown, done.stdout), f"$ {command}\n{done.stdout}\n-- and not\n" + "\n".join(shown)
    assert not [name for name in recipe.files if not any(name in command for command, _ in recipe.commands)]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ([], "", True),
        ([], "x\n", False),
        (["a", "b"], "a\nb\n", True),
        (["a", "…"], "a\nb\nc\n", True),
        (["a…"], "b\n", False),
        (["(x)"], "x\n", False),
    ],
)
def test_what_is_shown_is_compared(shown: list[str], printed: str, same: bool):
    assert as_shown(shown, printed) is same
