"""CITATION.cff has what version 1.2.0 of its schema requires, and says what pyproject.toml says."""

import tomllib
from typing import Any

from markdown_pages import ROOT
from ruamel.yaml import YAML


def test_citation() -> None:
    citation: dict[str, Any] = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["authors"]
    assert all(set(author) == {"name"} and author["name"] for author in citation["authors"])
    assert all(isinstance(citation[key], str) for key in ("message", "title", "version", "license", "abstract"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {key: citation[key] for key in ("version", "license", "keywords")}.items() <= project.items()
    assert all(citation[key] == value for key, value in citation["preferred-citation"].items() if key != "year")
