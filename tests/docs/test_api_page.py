"""The page of the Python interface names all of it, with the signatures that there are."""

from __future__ import annotations

import ast
import importlib
import inspect
import re

import nbformat
import pytest
from markdown_pages import DOCS, rows, sections
from notebook_pages import NOTEBOOKS

import swsdist
from swsdist.registry import registries
from swsdist.registry.registry import Registry
from swsdist.testing import conformance

SECTIONS = sections(DOCS / "reference/api.md")


def _first_cells(title: str) -> list[str]:
    """The names that the list, or the table, of a section begins its items with."""
    items = re.findall(r"^- `([^`]+)`: ", SECTIONS[title].partition("\n### ")[0], re.M)
    return items or [row[0].strip("`") for row in rows(SECTIONS[title])]


def _named(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_public_name_has_a_row() -> None:
    names = {re.match(r"swsdist\.(\w+)", cell)[1] for cell in _first_cells("Functions")}
    assert names == set(swsdist.__all__) - {"__version__"}


@pytest.mark.parametrize("cell", [cell for cell in _first_cells("Functions") if "(" in cell])
def test_signatures(cell: str) -> None:
    name, shown = re.match(r"swsdist\.(\w+)\((.*)\)$", cell).groups()
    signature = inspect.signature(getattr(swsdist, name))
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    assert f"({shown})" == str(inspect.Signature(plain)).replace("'", '"')


def test_notebooks_use_what_is_named() -> None:
    named = {*_first_cells("Lists, figures and tables"), *(f"swsdist.{name}" for name in swsdist.__all__)}
    used = set()
    for path in NOTEBOOKS:
        code = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
        for one in ast.walk(ast.parse(code)):
            if isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[0] == "swsdist":
                used |= {f"{one.module}.{alias.name}" for alias in one.names}
    assert len(used) > 10
    assert used <= named


@pytest.mark.parametrize("cell", _first_cells("Lists, figures and tables"))
def test_what_is_named_exists(cell: str) -> None:
    assert _named(cell) is not None


def test_interfaces_exist() -> None:
    for cell in _first_cells("Interfaces"):
        assert inspect.isclass(_named(cell)), cell


def test_every_registry_has_a_row() -> None:
    found = {name: value for name, value in vars(registries).items() if isinstance(value, Registry)}
    table = {name.strip("`"): (entry, group) for name, _, entry, group in rows(SECTIONS["Registries"])}
    assert set(table) == set(found)
    for name, registry in found.items():
        entry, group = (cell.strip("`") for cell in table[name])
        assert group == registry.group
        assert all(isinstance(registry[one], _named(entry)) for one in registry)


def test_every_suite_has_a_row() -> None:
    assert _first_cells("Conformance suites") == list(conformance.__all__)
