"""Every case of ../shared/golden/scoring: counts, values, curves and tables as STDEval 0.7 and KWSEval (F4DE 3.5) made them."""

import json
import re
from pathlib import Path

import pytest

from swsdist.report.evaluation import stdeval_report
from tests.support.golden import cases_below, nist, run_case, runner

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden" / "scoring"

pytestmark = [
    pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden cases beside the checkout ({GOLDEN})"),
    pytest.mark.filterwarnings("ignore:.*negative-false-alarm-rates"),
]

CASES = sorted(path.name for path in GOLDEN.glob("*"))
#: Cases that were not understood at first: a detection that reaches beyond its excerpt; equal scores, pooled twice.
OPEN = sorted(path.name for path in (GOLDEN.parent / "open").glob("*") if path.is_dir())
#: What a case may say of how it was treated, and which cases say it.
TREATED = {
    "STDEval died of the list": {"empty_output"},
    "KWSEval stops at inconsistent decisions": {"inconsistent_decisions", "m09_inconsistent"},
    "on the border of two segments": {"m18_segment"},
    "paired in equally good ways": {"m02_nist06_ties"},
    "with -inc KWSEval gave only": {"m16_include_no_targ"},
}


def test_there_are_cases_of_every_kind() -> None:
    assert len(CASES) >= 60
    assert set().union(*TREATED.values()) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    (found,) = cases_below(GOLDEN / name)
    case = run_case(found)
    assert case.differences == []
    assert case.compared >= 15
    for words, cases in TREATED.items():
        assert any(words in told for told in case.treated) == (name in cases), words


@pytest.mark.parametrize("name", OPEN)
def test_case_that_was_open(name: str) -> None:
    (found,) = cases_below(GOLDEN.parent / "open" / name)
    case = run_case(found)
    assert case.differences == []
    assert case.compared >= 80


@pytest.mark.parametrize("name", [name for name in CASES if list(GOLDEN.glob(f"{name}/report.stdeval.txt*"))])
def test_table_of_stdeval(name: str) -> None:
    """To the blank, but where a term's text ends with one."""
    with nist.inputs(GOLDEN / name) as folder:
        ours = stdeval_report(nist.score(folder, runner.values(GOLDEN / name, "params.json"), "stdeval"))
    theirs = runner.text(GOLDEN / name, "report.stdeval.txt")
    if name == "case_and_spaces":
        ours, theirs = (re.sub(" +", " ", text) for text in (ours, theirs))
    assert ours.splitlines() == theirs.splitlines()


def test_a_changed_number_is_off(tmp_path: Path) -> None:
    case = tmp_path / "score_ties"
    case.mkdir()
    for file in (GOLDEN / "score_ties").iterdir():
        (case / file.name).write_bytes(file.read_bytes())
    expected = json.loads((case / "expected.json").read_text())
    expected["stdeval"]["atwv"] += 1e-6
    expected["kwseval"]["totals"]["fa"] += 1
    expected["kwseval"]["optimum"]["twv"] -= 1e-6
    (case / "expected.json").write_text(json.dumps(expected))
    (found,) = cases_below(case)
    off = {difference.what for difference in run_case(found).differences}
    assert off == {"S: ATWV", "K: totals", "K: OTWV"}
