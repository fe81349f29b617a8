"""A dash says why: in a report's table and page, in a paper's table, of a list, of resources."""

from __future__ import annotations

import math

import pytest

from swsdist.evaluation.evaluate import evaluate, more_values, values
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import make_system
from swsdist.registry.registries import MEASURES
from swsdist.report.costs import factors
from swsdist.report.data import Measures, quantity_of
from swsdist.report.evaluation import measures_table
from swsdist.report.page import measures_table as of_run
from swsdist.report.page import resource_lines
from swsdist.report.summary import NOTHING, undefined_note, undefined_reasons
from swsdist.report.tables import Table, latex, markdown, text_lines
from swsdist.score.events import why_undefined


def test_every_measure_says_when_it_is_not_defined() -> None:
    for name in MEASURES:
        keys = [one.key for one in MEASURES[name].gives]
        told = why_undefined(dict.fromkeys(keys))
        assert list(told) == keys
        assert not any("does not say" in why for why in told.values())
        assert why_undefined(dict.fromkeys(keys, 0.5)) == {}
        assert why_undefined({keys[0]: math.nan}) == {keys[0]: told[keys[0]]}
    found = undefined_reasons({"auc": None, "map": 0.5, "fom": None, "eer": None, "otwv_pmiss": None})
    assert list(found) == ["AUC", "EER", "FOM"]
    assert undefined_note(found).count(NOTHING) == 2  # reasons that are the same are told once
    assert undefined_note({}) == ""
    names = {"pooled_pair_auc": "pooled pair AUC", "p_at_10": "P@10", "of_another_package": "of another package"}
    assert {name: quantity_of(name).name for name in names} == names


def test_a_table_with_a_dash_says_what_it_means() -> None:
    table = Table("Points", ["point", "mtwv"], [["a", "0.5"], ["b", NOTHING]], "Of lists.")
    told = table.footnote.removeprefix("Of lists. –")
    assert len(told) > 9
    assert text_lines(table)[-1].endswith(told)
    assert all(told in written for written in (markdown([table]), latex([table])))
    assert Table("Points", ["point"], [["a"]], "Of lists.").footnote == "Of lists."
    lines = {line[:10].strip(): line for line in resource_lines(factors(index_cpu_s=10.0, audio_s=100.0))}
    known = {name: "not known" not in lines[name] for name in ("ISF", "SSF, hours", "PL")}
    assert known == {"ISF": True, "SSF, hours": False, "PL": False}


@pytest.mark.parametrize(("seconds", "pfa"), [(10.0, None), (100.0, 40 / 95)])
def test_no_rate_is_above_one(seconds: float, pfa: float | None) -> None:
    """NIST's programs count the false alarms of all queries against the trials of one: what comes of it is told as none."""
    rows = [(f"q{query}", f"d{k}", 0.0, 0.5, 0.1 * (k == 9) + 0.01 * k) for query in range(5) for k in range(1, 10)]
    columns = dict(zip(("query_id", "doc_id", "start", "end", "score"), zip(*rows, strict=True), strict=True))
    true = {name: columns[name][8::9] for name in ("query_id", "doc_id", "start", "end")}
    true["doc_id"] = ["d1"] * 5  # the last of each list: all false alarms stand before it
    result = evaluate(make_task(true, total_seconds=seconds, protocol="sws2013"), make_system(columns))
    found = {**values(result), **more_values(result)}
    assert found["pooled_maximum"] > 0
    assert found["pooled_maximum_pfa"] == (None if pfa is None else pytest.approx(pfa))
    assert found["pooled_maximum_pmiss"] == 0
    table = measures_table(result, found)
    assert ("occurrence-weighted maximum Pfa", NOTHING) in table.rows or pfa is not None
    assert table.footnote.endswith(" –: not defined.")  # ATWV is not: no decisions
    page = of_run(Measures.of(found, calibration="none"))
    (row,) = [row for row in page.rows if row[0] == "occurrence-weighted maximum"]
    assert row[4] == (NOTHING if pfa is None else f"{pfa:.6f}")
    assert ("occurrence-weighted maximum Pfa" in page.footnote) == (pfa is None)
