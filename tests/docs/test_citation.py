"""CITATION.cff has what version 1.2.0 of its schema requires, and says what pyproject.toml says."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from markdown_pages import ROOT
from ruamel.yaml import YAML


@pytest.fixture
def citation() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def test_required_keys(citation: dict[str, Any]) -> None:
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["authors"]
    assert all(set(author) == {"name"} and author["name"] for author in citation["authors"])
    assert all(isinstance(citation[key], str) for key in ("message", "title", "version", "license", "abstract"))


def test_it_agrees_with_the_package(citation: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    assert all(citation[key] == value for key, value in citation["preferred-citation"].items() if key != "year")
