"""Scoring as a whole, from tables in memory: what counts, what is refused, and what a pandas user gives."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import score as evaluation_codes
from swsdist.core.codes import score as score_codes
from swsdist.core.types import EXCERPTS, LEXEMES
from swsdist.evaluation import evaluate, make_system, make_task, values
from swsdist.score.align import align
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.protocol import protocol
from swsdist.score.trials import align_segments, segments
from tests.support.coded import raises, says

TRUE = {"query_id": ["a", "a", "b"], "doc_id": ["x", "x", "y"], "start": [1.0, 5.0, 2.0], "end": [1.5, 5.5, 3.0]}
FOUND = {
    "query_id": ["a", "b", "a", "c"],
    "doc_id": ["x", "y", "y", "x"],
    "start": [1.1, 2.0, 7.0, 3.0],
    "end": [1.6, 2.5, 8.0, 4.0],
    "score": [0.9, 0.8, 0.3, 0.7],
    "decision": ["YES", "YES", "NO", "YES"],
}


def test_any_kind_of_table_is_taken_and_what_is_wrong_refused() -> None:
    terms = {"query_id": ["a", "b"], "term": ["a", "b"]}
    for kind in (dict, pd.DataFrame, pa.table, lambda rows: pd.DataFrame(rows).to_dict("records")):
        task = make_task(kind(TRUE), total_seconds=1000.0, protocol="stdeval", terms=terms)
        found = values(evaluate(task, make_system(kind(FOUND))))
        assert (found["atwv"], found["precision"], found["recall"]) == (0.75, 1.0, 2 / 3)
        assert "are not of the term list" in str(task.notices)
    found, true = (pd.DataFrame(rows).drop(columns="decision", errors="ignore") for rows in (FOUND, TRUE))
    aligned = align(found.assign(channel=1), true.assign(channel=1), tolerance=0.5, low=0.3, high=0.9)
    assert Counts.of(aligned.to_pandas()) == Counts.of(aligned)
    with raises(families.DUPLICATE_NAME, where="terms", count=1):
        make_task(TRUE, total_seconds=10.0, terms={"query_id": ["a", "a"], "term": ["x", "y"]})
    twice = {name: [*column, column[0]] for name, column in TRUE.items()}
    with raises(families.DUPLICATE_NAME, where="references", count=1):
        make_task(twice, total_seconds=10.0)
    with raises(families.UNSUPPORTED, protocol="stdeval", unit="document"):
        make_task(TRUE, total_seconds=10.0, protocol=protocol("stdeval", trials="document"))
    with raises(families.BAD_CELL, decision="MAYBE"):
        make_system({**FOUND, "decision": ["YES", "MAYBE", "NO", "YES"]})
    with raises(families.MALFORMED_FILE):
        make_task({"query_id": ["a"], "start": [1.0, 2.0]}, total_seconds=10.0)
    with raises(families.INVALID_VALUE):
        make_task(TRUE, total_seconds=1e300)


def test_a_query_in_every_document_is_left_out_and_too_many_references_told(recwarn: pytest.WarningsRecorder) -> None:
    true = {name: [*column, new] for (name, column), new in zip(TRUE.items(), ["a", "y", 1.0, 2.0], strict=True)}
    task = make_task(true, total_seconds=100.0, protocol=protocol("sws2011", trials="document"), documents=2)
    result = evaluate(task, make_system(FOUND))
    assert result.overall.per_term["query_id"].to_pylist() == ["b"]
    assert says(str(task.notices), evaluation_codes.TERMS_IN_EVERY_DOCUMENT)
    task = make_task(TRUE, total_seconds=1.0, protocol="stdeval", terms={"query_id": ["a"], "term": ["a"]})
    found = values(evaluate(task, make_system(FOUND)))
    assert found["atwv_pfa"] == 0
    assert says(str(task.notices), score_codes.NEGATIVE_FALSE_ALARM_RATES)
    assert not [w for w in recwarn if "negative" in str(w.message)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=12), st.integers(0, 9))
def test_a_threshold_for_each_query_is_no_oddity(found: list[tuple[str, int]], other: int) -> None:
    """Whatever the scores: by a threshold for each query there is no warning, and a NO above a YES of its query is one."""
    thresholds = {"a": 5, "b": other}

    def notices(decisions: list[bool]) -> tuple[str, int]:
        task = make_task(TRUE, total_seconds=1000.0)
        start = [float(k) for k in range(len(found))]
        rows = {"query_id": [q for q, _ in found], "doc_id": ["x"] * len(found), "start": start}
        rows |= {"end": [s + 0.5 for s in start], "score": [float(score) for _, score in found], "decision": decisions}
        evaluate(task, make_system(rows))
        return str(task.notices), len(task.notices.requested)

    by_query = [score >= thresholds[query] for query, score in found]
    assert not says(notices(by_query)[0], evaluation_codes.INCONSISTENT_DECISIONS)
    pairs = [(q, s, p, t) for (q, s), yes in zip(found, by_query, strict=True) if yes for (p, t) in found]
    reversible = any(q == p and t < s and t < thresholds[p] for q, s, p, t in pairs)
    text, informed = notices([not yes for yes in by_query])
    assert says(text, evaluation_codes.INCONSISTENT_DECISIONS) == reversible
    assert not (reversible and informed)


def excerpt(file: str, start: float, duration: float) -> dict:
    return {"file": file, "channel": 1, "start": start, "duration": duration, "source_type": "cts", "language": None}


def speech(doc_id: str, start: float, duration: float) -> dict:
    return dict(zip(LEXEMES.names, (doc_id, 1, start, duration, "", None, None), strict=True))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_segments_do_not_depend_on_the_order_of_the_ecf(order: tuple[int, ...]) -> None:
    rows = [excerpt("f1.sph", 0, 10), excerpt("g.sph", 0, 20), excerpt("f1.sph", 10, 10)]
    talk = [speech("f1", 0, 10), speech("g", 0, 20), speech("f1", 10, 10)]
    cut = segments(pa.Table.from_pylist([rows[k] for k in order], EXCERPTS), pa.Table.from_pylist(talk, LEXEMES))
    assert cut["speech"].to_pylist() == [True, True, True]
    word = {"query_id": ["q"], "doc_id": ["f1"], "channel": [1], "start": [10.0], "end": [10.5]}
    hit = pa.table({**word, "start": [10.1], "end": [10.6], "score": [0.5]})
    (row,) = align_segments(hit, pa.table(word), cut).to_pylist()
    assert (row["doc_id"], row["ref_start"], row["ref_end"], row["score"]) == ("f1", 10.0, 20.0, 0.5)
