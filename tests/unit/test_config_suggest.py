"""What the model says of its keys, in words."""

from __future__ import annotations

from typing import Any

from swsdist.config.search import Search
from swsdist.config.template import allowed, dotted, find, is_path, keys, meant, shown
from swsdist.registry.registries import DISTANCES

FIELDS = {key.dotted: key.field for key in keys()}


def test_what_a_key_may_hold() -> None:
    exports = "csv | stdlist | kwslist | labels | eaf | textgrid | clips"
    for name, words in {
        "run": "path",
        "index.store": "path | null",
        "system": "text",
        "strict": "true | false",
        "storage": "mapping",
        "search.lanes": "integer > 0",
        "search.distance": " | ".join(DISTANCES),
        "reduce.overlap": "number >= 0 and <= 1",
        "score.tolerance": "number >= 0 | null",
        "calibrate.fit": "none | crossfit | oracle | path",
        "report.exports": f"list of {exports} | null",
        "search.candidates": "section with the keys least, per_second",
    }.items():
        assert allowed(FIELDS[name]) == words
    assert allowed(FIELDS["report.exports"], element=True) == exports


def test_which_keys_are_paths_and_which_effort() -> None:
    paths = {name for name, field in FIELDS.items() if is_path(field)}
    assert paths >= {"run", "corpus.documents", "corpus.queries", "corpus.references", "index.store", "calibrate.fit"}
    assert not paths & {"system", "features.name", "storage", "executor.address"}
    execution_only = {key.dotted for key in keys() if key.execution_only}
    assert execution_only >= {"strict", "search.lanes", "executor.kind"}
    assert not execution_only & {"search.distance", "run", "calibrate.fit"}


def test_find_drops_what_pydantic_puts_below_a_value() -> None:
    assert find(("calibrate", "fit", "constrained-str"))[1:] == (FIELDS["calibrate.fit"], ("calibrate", "fit"))
    assert find(("report", "exports", 1, "x"))[2] == ("report", "exports", 1)
    assert find(("search", "none")) == (Search, None, ("search", "none"))
    assert find(()) == (None, None, ())
    assert (dotted(("report", "exports", 1)), dotted(())) == ("report.exports[1]", "")


def test_the_same_name_elsewhere_is_a_better_guess_than_a_like_name_here() -> None:
    found = [meant(name, Search, ("search",)) for name in ("exports", "lane", "qqqq")]
    assert found == [["report.exports"], ["search.lanes"], []]


def test_a_value_as_in_a_config() -> None:
    for text in ("cosine", "s3://b/k", "/a/b.c"):
        assert shown(text) == text
    for text in ("null", "True", "4", "", "a: b", "a:"):
        assert shown(text) == f'"{text}"'
    values: list[Any] = ["é\x85\n", None, True, 1.5, float("inf"), [1, "x"], {"a": [None]}]
    texts = ['"é\\U00000085\\n"', "null", "true", "1.5", ".inf", "[1, x]", "{a: [null]}"]
    assert [shown(value) for value in values] == texts
    assert shown("a" * 100, 20) == "a" * 17 + "..."
