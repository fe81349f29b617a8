"""Settings that are given in Python are refused as a config's are, in words of what the caller has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swsdist
from swsdist.config.loader import section_from
from swsdist.config.model import Calibrate, Executor
from swsdist.config.search import Search
from swsdist.core.codes import Code, families
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from tests.support.coded import raises


@pytest.mark.parametrize(
    ("kind", "name", "given", "where", "code", "values"),
    [
        (
            Search,
            "search",
            {"distanc": "cosine"},
            "search.distanc",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean search.distance?"},
        ),
        (
            Search,
            "search",
            {"distance": "cosin"},
            "search.distance",
            families.INVALID_VALUE,
            {"value": "cosin", "meant": "; did you mean cosine?"},
        ),
        (Search, "search", {"first_pass": {"nam": "a"}}, "search.first_pass.nam", codes.UNKNOWN_KEY, {}),
        (
            Executor,
            "executor",
            {"kind": "rya"},
            "executor.kind",
            families.INVALID_VALUE,
            {"meant": "; did you mean ray?"},
        ),
        (
            Executor,
            "executor",
            {"worker": 2},
            "executor.worker",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean executor.workers?"},
        ),
        (
            Calibrate,
            "calibrate",
            {"step": []},
            "calibrate.step",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean calibrate.steps?"},
        ),
        (Search, "search", "distance=cosine", "search", families.INVALID_YAML, {"value": "'distance=cosine'"}),
    ],
)
def test_a_section_says_what_was_meant(
    kind: Any, name: str, given: Any, where: str, code: Code[ConfigError], values: dict[str, object]
) -> None:
    with raises(code, **values) as caught:
        section_from(kind, name, None, {}, given)
    assert caught.value.where == where


@pytest.mark.parametrize("sets", ["run=abc", None, 5, [5]])
@pytest.mark.parametrize("function", [swsdist.run, swsdist.sweep])
def test_sets_are_a_list(function: Any, sets: Any, tmp_path: Path) -> None:
    """A text is no list of its letters."""
    with raises(families.INVALID_VALUE) as caught:
        function(str(tmp_path / "none.yaml"), sets=sets)
    assert caught.value.where == "sets"
    if isinstance(sets, str):
        assert caught.value.remedy == "give a list: sets=['run=abc']"


@pytest.mark.parametrize("given", [None, 5, ["a.yaml"]])
@pytest.mark.parametrize(("function", "name"), [(swsdist.run, "config"), (swsdist.sweep, "path")])
def test_what_is_no_config(function: Any, name: str, given: Any) -> None:
    with raises(families.INVALID_VALUE) as caught:
        function(given)
    assert caught.value.where == name
    assert "YAML file" in str(caught.value.remedy)
