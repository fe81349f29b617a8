"""Breakdowns by hand, and what a dash says: why there is no value."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import REFERENCES, TERMS, TRIALS
from swsdist.evaluation.evaluate import evaluate, more_values, values
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import make_system
from swsdist.registry.registries import MEASURES
from swsdist.report.data import Measures, quantity_of
from swsdist.report.evaluation import measures_table
from swsdist.report.page import measures_table as of_run
from swsdist.report.summary import NOTHING, undefined_note, undefined_reasons
from swsdist.score.compare.breakdown import (
    breakdown,
    by_document,
    by_edges,
    by_value,
    difference,
    grouped,
    quantile_bins,
    reference_durations,
    unit_bins,
    word_counts,
)
from swsdist.score.events import why_undefined
from swsdist.score.measures.twv import PER_TERM
from tests.support.coded import raises


def row(query: str, ntrue: int, ncorr: int, nfa: int, twv: float | None) -> dict:
    pmiss = (ntrue - ncorr) / ntrue if ntrue else None
    values = {"query_id": query, "ntrue": ntrue, "ncorr": ncorr, "nfa": nfa, "nmiss": ntrue - ncorr}
    return {**values, "pmiss": pmiss, "pfa": nfa / 100, "twv": twv}


_TERMS = [row("d", 4, 1, 2, 0.1), row("a", 1, 1, 0, 1.0), row("b", 2, 1, 0, 0.5), row("c", 0, 0, 3, None)]
TERMS_TABLE = pa.Table.from_pylist(_TERMS, PER_TERM)


def scored_terms(terms: pa.Table) -> pa.Table:
    """Queries with references, by id."""
    return terms.filter(pc.greater(terms["ntrue"], 0)).sort_by("query_id")


SCORED = scored_terms(TERMS_TABLE)


def test_values_of_groups_and_bins_by_hand() -> None:
    first, second = breakdown(SCORED, by_value(["en", "es", "en"])).to_pylist()
    assert list(first.values()) == pytest.approx(["en", 2, 5, 2, 2, 3, 0.375, 0.01, 0.55, 1.1 / 3, None, None])
    assert (second["group"], second["terms"], second["total"]) == ("es", 1, pytest.approx(0.5 / 3))
    undecided = pa.Table.from_pylist([{"query_id": "a", "ntrue": 2}, row("b", 2, 1, 0, 0.5)], PER_TERM)
    first, second = breakdown(undecided, by_value([1, 2])).to_pylist()
    assert (first["ntrue"], first["ncorr"], first["twv"], first["total"], second["twv"]) == (2, None, None, None, 0.5)
    with raises(families.UNDEFINED):
        breakdown(TERMS_TABLE, by_value([1, 1, 1, 1]))
    with raises(families.MISMATCH, queries=3, members=2):
        breakdown(SCORED, by_value([1, 2]))
    with raises(codes.DIFFERENT_QUERIES):
        difference(SCORED, SCORED.slice(1), by_value([1, 1, 1]))
    with raises(codes.UNDECIDED_QUERY, query="a", value="best_twv"):
        difference(SCORED, SCORED, by_value([1, 1, 1]), "best_twv")
    for groups, labels, members in (
        (by_value([2, None, 10, 2]), ("2", "10", None), [0, 2, 1, 0]),  # what is not known is a group
        (by_value([0.5, math.nan]), ("0.5", None), [0, 1]),
        (by_value(["10", "es", "2", None, "inf"]), ("2", "10", "es", "inf", None), [1, 2, 0, 4, 3]),
        (
            by_edges([0.5, 1.0, 2.0, math.nan, 0.4999], [0.5, 1, 1.5, 2]),
            ("< 0.5", "[0.5, 1)", "[1, 1.5)", "[1.5, 2)", ">= 2", None),
            [1, 2, 4, 5, 0],
        ),
        (by_edges([0.7], [0.5, 1, 1.5]), ("[0.5, 1)", "[1, 1.5)"), [0]),
        (unit_bins([0.0, 0.99, 1.0, 3.2]), ("[0, 1)", "[1, 2)", "[2, 3)", "[3, 4)"), [0, 0, 1, 3]),
        (unit_bins([math.nan]), (None,), [0]),
        (quantile_bins([1, 1, 1, 2, 3, 4], 3), ("[1, 3)", ">= 3"), [0, 0, 0, 0, 1, 1]),  # equal values stay together
        (quantile_bins([5, 5], 4), (">= 5",), [0, 0]),
    ):
        assert (groups.labels, groups.member.tolist()) == (labels, members)
    column = pa.chunked_array([[1, 2, None, 9]])
    assert grouped(column).labels == ("1", "2", "9", None)
    assert grouped(column, "unit").labels[-2:] == ("[9, 10)", None)
    assert grouped(column, "q2").labels == ("[1, 2)", ">= 2", None)
    assert grouped(column, "2,5").labels == ("< 2", "[2, 5)", ">= 5", None)
    for code, call in (
        (families.TOO_LARGE, lambda: unit_bins([0.0, 1e9])),
        (families.TOO_FEW, lambda: quantile_bins([1.0], 0)),
        *((families.UNKNOWN_NAME, lambda bins=bins: grouped(column, bins)) for bins in ("qx", "few", "")),
        *((families.INVALID_VALUE, lambda bins=bins: grouped(column, bins)) for bins in ("2,1", "1,nan")),
        (families.INVALID_VALUE, lambda: grouped(pa.chunked_array([["en", "es"]]), "q2")),
    ):
        with raises(code):
            call()


def test_difference_of_two_systems_and_columns_that_can_be_made() -> None:
    other = pa.Table.from_pylist([row("a", 1, 0, 0, 0.0), row("b", 2, 1, 0, 0.5), row("d", 4, 2, 0, 0.5)], PER_TERM)
    found = difference(SCORED, other, by_value([1, 2, 1])).to_pylist()
    first = {"group": "1", "terms": 2, "first": 0.55, "second": 0.25, "mean": 0.3, "total": 0.2}
    assert found[0] == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in first.items()}
    assert (found[1]["mean"], found[1]["total"]) == (0.0, 0.0)
    rows = [("a", 0.0, 0.5), ("b", 1.0, 2.0), ("a", 3.0, 3.7)]
    references = pa.Table.from_pylist(
        [{"query_id": q, "doc_id": "d", "channel": 1, "start": s, "end": e} for q, s, e in rows], REFERENCES
    )
    durations = reference_durations(references).to_pylist()
    assert durations == [{"query_id": "a", "duration": pytest.approx(0.6)}, {"query_id": "b", "duration": 1.0}]
    terms = pa.Table.from_pylist([{"query_id": "a", "term": "new  york city"}, {"query_id": "b", "term": "b"}], TERMS)
    assert word_counts(terms)["words"].to_pylist() == [3, 1]


def hit(query: str, document: str, decision: bool | None, *, found: bool = True, true: bool = True) -> dict:
    side = {"start": 1.0, "end": 2.0, "score": 0.5, "decision": decision} if found else {}
    return {"query_id": query, "doc_id": document, "channel": 1, **side, **({"ref_start": 1.0} if true else {})}


ALIGNED = pa.Table.from_pylist(
    [
        hit("q1", "d1", True),
        hit("q1", "d2", None, found=False),
        hit("q1", "d2", True, true=False),
        hit("q2", "d1", True, true=False),
        hit("q2", "d3", True),
        hit("q3", "d1", True, true=False),
    ],
    TRIALS,
)
DOCUMENTS = pa.table({"doc_id": ["d1", "d2", "d3"], "seconds": [101.0, 51.0, 50.0], "language": ["en", "es", "es"]})


def test_documents_restrict_references_false_alarms_and_trials() -> None:
    def by_language(documents: pa.Table) -> list[dict[str, Any]]:
        return by_document(ALIGNED, documents, "language", trials_per_second=1.0, beta=10.0).to_pylist()

    en, es = by_language(DOCUMENTS)
    assert (en["group"], en["terms"], en["ntrue"], en["ncorr"], en["nfa"]) == ("en", 1, 1, 1, 1)
    assert en["twv"] == 1.0  # q1 alone; q2's false alarm is counted, but q2 has no reference here
    assert (es["terms"], es["ntrue"], es["ncorr"], es["nfa"], es["nmiss"]) == (2, 2, 1, 1, 1)
    assert es["twv"] == pytest.approx(((1 - 1 - 10 / 100) + 1) / 2)
    assert es["total"] is None
    twice = pa.concat_tables([DOCUMENTS, pa.table({"doc_id": ["d1"], "seconds": [1.0], "language": ["es"]})])
    for documents, code, told in (
        (DOCUMENTS.drop_columns("language"), codes.ABSENT_COLUMN, {"column": "language"}),
        (DOCUMENTS.slice(1), codes.UNSEARCHED_DOCUMENT, {"doc_id": "d1"}),
        (twice, families.CONFLICTING_ROWS, {"doc_id": "d1", "column": "language"}),
        (DOCUMENTS.set_column(1, "seconds", pa.array([0.0, 51.0, 50.0])), families.MISMATCH, {"seconds": 0.0}),
    ):
        with raises(code, **told):
            by_language(documents)


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
