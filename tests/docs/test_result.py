"""Numbers that pages show say where they are from, and are what our own runs give."""

import re
from pathlib import Path
from typing import Any

import pytest

from swsdist import RunResult
from tools.markdown_pages import ROOT
from tools.quoted_results import RUNS, all_quoted, renewed, run_of

QUOTED = all_quoted()
FORMS = {"checked": r".+ by \S+", "measured": r"[0-9a-f]{8}, \S.*", "cited": r"\S.*", "defined": r"\S+"}


def test_where_numbers_are_from() -> None:
    """The page, the line, and the form that it lacks."""
    lacking = [f"{one.page.relative_to(ROOT)}, line {one.line}" for one in QUOTED if not one.statements]
    assert not lacking, "below `<!-- measured: COMMIT, MACHINE -->`, or as tools/quoted_results.py says"
    for one in QUOTED:
        for kind, text in one.statements:
            assert re.fullmatch(FORMS[kind], text), (one.page, one.line, kind, text)
            assert kind != "defined" or (ROOT / text).is_file(), text
        assert {run for _, run in one.checks} <= set(RUNS)


@pytest.mark.docs
def test_of_the_readmes_run(mboshi_dev: RunResult) -> None:
    _compare("mboshi-dev", mboshi_dev)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RUNS if name != "mboshi-dev"])
def test_of_further_runs(name: str, mboshi_dev: Any, tmp_path: Path) -> None:
    _compare(name, run_of(name, tmp_path, f"{mboshi_dev.folder}/store"))


def _compare(name: str, result: RunResult) -> None:
    of_run = [one for one in QUOTED if any(run == name for _, run in one.checks)]
    assert of_run
    for one in of_run:
        found = renewed(one, name, result).splitlines()
        assert found == one.text.splitlines(), f"{one.page}, line {one.line}; `make quoted` writes it"
