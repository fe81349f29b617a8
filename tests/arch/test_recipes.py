"""Recipes are made of what any package may use: entry points and modules of swsdist, which knows none of them."""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

from tests.support.recipes import FOLDER

PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = FOLDER / "swsdist_recipes"
RECIPES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
TARGETS = [target for entries in PROJECT["entry-points"].values() for target in entries.values()]


def test_the_version_is_that_of_swsdist() -> None:
    ours = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert PROJECT["version"] == ours
    assert PROJECT["dependencies"] == [f"swsdist=={ours}"]


@pytest.mark.parametrize("target", TARGETS)
def test_entry_points_can_be_loaded(target: str) -> None:
    module, _, name = target.partition(":")
    assert not name or hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_a_page_tests_and_a_row(name: str) -> None:
    assert f"[{name}](swsdist_recipes/{name}/README.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert any((PACKAGE / name / "tests").glob("test_*.py"))


def test_recipes_use_nothing_private() -> None:
    private = [
        f"{path.relative_to(FOLDER)}:{node.lineno}: {node.module}.{alias.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("swsdist.")
        for alias in node.names
        if alias.name.startswith("_") or "._" in str(node.module)
    ]
    assert private == []


def test_swsdist_knows_no_recipe() -> None:
    package: Path = FOLDER.parent / "swsdist"
    assert [path for path in package.rglob("*.py") if PACKAGE.name in path.read_text(encoding="utf-8")] == []
