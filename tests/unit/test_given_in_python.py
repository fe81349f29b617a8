"""Settings that are given in Python are refused as a config's are, in words of what the caller has."""

from __future__ import annotations

from pathlib import Path

import swsdist
from swsdist.config.loader import section_from
from swsdist.config.model import Calibrate, Executor
from swsdist.config.search import Search
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from tests.support.coded import raises


def test_a_section_says_what_was_meant() -> None:
    for kind, given, key, code, meant in (
        (Search, {"distanc": "cosine"}, "search.distanc", codes.UNKNOWN_KEY, "search.distance"),
        (Search, {"distance": "cosin"}, "search.distance", families.INVALID_VALUE, "cosine"),
        (Search, {"first_pass": {"nam": "a"}}, "search.first_pass.nam", codes.UNKNOWN_KEY, None),
        (Executor, {"kind": "rya"}, "executor.kind", families.INVALID_VALUE, "ray"),
        (Executor, {"worker": 2}, "executor.worker", codes.UNKNOWN_KEY, "executor.workers"),
        (Calibrate, {"step": []}, "calibrate.step", codes.UNKNOWN_KEY, "calibrate.steps"),
        (Search, "distance=cosine", "search", families.INVALID_YAML, None),
    ):
        values = {"meant": f"; did you mean {meant}?"} if meant else {}
        with raises(code, **values) as caught:
            section_from(kind, key.partition(".")[0], None, {}, given)
        assert caught.value.where == key


def test_what_is_no_config_or_list_of_sets(tmp_path: Path) -> None:
    """A text is no list of its letters."""
    for function, name in ((swsdist.run, "config"), (swsdist.sweep, "path")):
        for sets in ("run=abc", None, 5, [5]):
            with raises(families.INVALID_VALUE, where="sets"):
                function(str(tmp_path / "none.yaml"), sets=sets)
        for given in (None, 5, ["a.yaml"]):
            with raises(families.INVALID_VALUE, where=name):
                function(given)
