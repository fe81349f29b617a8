"""What the model says of its keys, in words."""

from __future__ import annotations

from typing import Any

import pytest

from swsdist.config.search import Search
from swsdist.config.template import allowed, dotted, find, is_path, keys, meant, shown
from swsdist.registry.registries import DISTANCES

FIELDS = {key.dotted: key.field for key in keys()}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", "path"),
        ("index.store", "path | null"),
        ("system", "text"),
        ("strict", "true | false"),
        ("storage", "mapping"),
        ("search.lanes", "integer > 0"),
        ("search.distance", " | ".join(DISTANCES)),
        ("reduce.overlap", "number >= 0 and <= 1"),
        ("score.tolerance", "number >= 0 | null"),
        ("calibrate.fit", "none | crossfit | oracle | path"),
        ("report.exports", "list of csv | stdlist | kwslist | labels | eaf | textgrid | clips | null"),
        ("search.candidates", "section with the keys least, per_second"),
    ],
)
def test_what_a_key_may_hold(name: str, words: str) -> None:
    assert allowed(FIELDS[name]) == words


def test_the_element_of_a_list() -> None:
    assert (
        allowed(FIELDS["report.exports"], element=True) == "csv | stdlist | kwslist | labels | eaf | textgrid | clips"
    )


def test_which_keys_are_paths() -> None:
    paths = {name for name, field in FIELDS.items() if is_path(field)}
    assert paths >= {"run", "corpus.documents", "corpus.queries", "corpus.references", "index.store", "calibrate.fit"}
    assert not paths & {"system", "features.name", "storage", "executor.address"}


def test_which_keys_are_effort() -> None:
    execution_only = {key.dotted for key in keys() if key.execution_only}
    assert execution_only >= {"strict", "search.lanes", "executor.kind"}
    assert not execution_only & {"search.distance", "run", "calibrate.fit"}


def test_find_drops_what_pydantic_puts_below_a_value() -> None:
    assert find(("calibrate", "fit", "constrained-str"))[1:] == (FIELDS["calibrate.fit"], ("calibrate", "fit"))
    assert find(("report", "exports", 1, "x"))[2] == ("report", "exports", 1)
    assert find(("search", "none")) == (Search, None, ("search", "none"))
    assert find(()) == (None, None, ())


def test_dotted_place() -> None:
    assert dotted(("report", "exports", 1)) == "report.exports[1]"
    assert dotted(()) == ""


def test_the_same_name_elsewhere_is_a_better_guess_than_a_like_name_here() -> None:
    assert meant("exports", Search, ("search",)) == ["report.exports"]
    assert meant("lane", Search, ("search",)) == ["search.lanes"]
    assert meant("qqqq", Search, ("search",)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("cosine", "cosine"),
        ("s3://b/k", "s3://b/k"),
        ("/a/b.c", "/a/b.c"),
        ("null", '"null"'),
        ("True", '"True"'),
        ("4", '"4"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("a:", '"a:"'),
        ("é\x85\n", '"é\\U00000085\\n"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (float("inf"), ".inf"),
        ([1, "x"], "[1, x]"),
        ({"a": [None]}, "{a: [null]}"),
    ],
)
def test_a_value_as_in_a_config(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    assert shown("a" * 100, 20) == "a" * 17 + "..."
