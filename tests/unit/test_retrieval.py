"""Retrieval measures and document trials: worked numbers, ties, and what has no value."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.score.compare.paired import decided_at
from swsdist.score.measures.curve import Ranking
from swsdist.score.measures.retrieval import (
    RETRIEVAL,
    means,
    per_query,
)
from swsdist.score.trials import document_trials
from tests.support.coded import raises

Rows = list[tuple[str, float | None, bool | None, bool]]


def trials(rows: Rows) -> pa.Table:
    """Rows (query_id, score, decision, is it true)."""
    return pa.Table.from_pylist(
        [
            {"query_id": query, "doc_id": "d", "channel": 1, "score": score, "decision": decision}
            | {"start": None if score is None else 1.0, "ref_start": 1.0 if true else None}
            for query, score, decision, true in rows
        ],
        TRIALS,
    )


# b: hits at ranks 1 and 3 of 4, one missed; a: a hit and a false alarm tie at rank 1; c: none true.
LIST: Rows = [
    ("b", 0.9, True, True),
    ("b", 0.8, True, False),
    ("b", 0.7, False, True),
    ("b", 0.6, False, False),
    ("b", None, None, True),
    ("a", 0.5, True, False),
    ("a", 0.5, True, True),
    ("c", 0.99, True, False),
]


def test_ranking_by_hand() -> None:
    ranking = Ranking.of(trials(LIST))
    assert ranking.names.to_pylist() == ["a", "b"]
    assert ranking.ntrue.tolist() == [1, 3]
    assert ranking.query.tolist() == [0, 1, 1, 1, 1]
    assert ranking.score.tolist() == [0.5, 0.9, 0.8, 0.7, 0.6]
    assert ranking.hits.tolist() == [1, 1, 0, 1, 0]
    assert ranking.hits_above.tolist() == [0, 0, 1, 1, 2]
    assert ranking.false_above.tolist() == [0, 0, 0, 1, 1]


def test_per_query_by_hand() -> None:
    table = per_query(trials(LIST), n=2, trials=6)
    assert table.schema == RETRIEVAL
    a, b = table.to_pylist()
    assert (a["query_id"], a["ntrue"], a["accepted"], a["precision"], a["recall"]) == ("a", 1, 2, 0.5, 1.0)
    assert a["f"] == pytest.approx(2 / 3)
    assert (b["accepted"], b["precision"], b["recall"], b["f"]) == (2, 0.5, 1 / 3, 0.4)
    assert (a["p_at_n"], b["p_at_n"]) == (0.5, 0.5)
    assert (a["p_at_ntrue"], b["p_at_ntrue"]) == (0.5, pytest.approx(2 / 3))
    # Of a the hit is first or second, each as often.
    assert (a["average_precision"], b["average_precision"]) == (pytest.approx(3 / 4), pytest.approx((1 + 2 / 3) / 3))
    # a: 5 non-targets, of which one ties and four are below; b: 3: the hits beat 3 and 2, the missed one ties with one.
    assert (a["auc"], b["auc"]) == (pytest.approx(4.5 / 5), pytest.approx((3 + 2 + 0.5) / 9))
    found = means(table)
    assert (found["mean_precision"], found["mean_recall"]) == (0.5, pytest.approx(2 / 3))
    assert found["map"] == pytest.approx((3 / 4 + 5 / 9) / 2)
    assert found["auc"] == pytest.approx((0.9 + 5.5 / 9) / 2)
    # More false alarms than trials leave no area; a short list leaves ranks empty.
    crowded = per_query(trials(LIST), trials=4)
    assert (crowded["auc"].to_pylist(), means(crowded)["auc"]) == ([pytest.approx(2.5 / 3), None], None)
    assert per_query(trials([("a", 0.5, True, True)]), n=10)["p_at_n"].to_pylist() == [0.1]
    with raises(families.INVALID_VALUE, rank=0):
        per_query(trials(LIST), n=0)
    # A threshold in place of the decisions.
    a, b = per_query(decided_at(trials(LIST), 0.7)).to_pylist()
    assert (a["accepted"], a["precision"], a["recall"], a["f"]) == (0, 0.0, 0.0, 0.0)
    assert (b["accepted"], b["precision"], b["recall"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    for rows in ([], [("a", 0.5, True, False)]):
        assert per_query(trials(rows), trials=3).num_rows == 0
        assert means(per_query(trials(rows))) == {}


def test_undecided_detections() -> None:
    table = trials([*LIST, ("a", 0.1, None, False)])
    a, b = per_query(table).to_pylist()
    assert (a["accepted"], a["precision"], a["f"]) == (None, None, None)
    assert b["precision"] == 0.5
    assert means(per_query(table))["mean_precision"] is None
    assert means(per_query(table))["auc"] is None
    assert means(per_query(decided_at(table, 0.5)))["mean_precision"] is not None
    # Of a query without references it does not matter.
    assert means(per_query(trials([*LIST, ("c", 0.1, None, False)])))["mean_precision"] == 0.5


_COLUMNS = {"query_id": ["q", "q", "q", "p"], "doc_id": ["d", "d", "e", "d"], "channel": pa.array([1] * 4, pa.int32())}
SPANS = pa.table({**_COLUMNS, "start": [5.0, 1.0, 2.0, 3.0], "end": [6.0, 2.0, 3.0, 4.0]})


def test_a_yes_wins_among_equal_scores() -> None:
    detections = SPANS.slice(0, 2).append_column("score", pa.array([0.5, 0.5]))
    decided = detections.append_column("decision", pa.array([True, False]))
    row = document_trials(decided, SPANS.slice(0, 0)).to_pylist()
    assert (len(row), row[0]["decision"], row[0]["start"]) == (1, True, 5.0)
    assert document_trials(detections, SPANS.slice(0, 0))["start"].to_pylist() == [1.0]


def test_document_trials_of_nothing_and_of_what_is_no_number() -> None:
    nothing = SPANS.slice(0, 0).append_column("score", pa.array([], pa.float64()))
    assert document_trials(nothing, SPANS.slice(0, 0)).equals(TRIALS.empty_table())
    assert document_trials(nothing, SPANS)["query_id"].to_pylist() == ["p", "q", "q"]
    for score in (math.nan, math.inf, None):
        with raises(codes.NOT_FINITE_NUMBER):
            document_trials(SPANS.append_column("score", pa.array([0.5, 0.75, score, 0.5])), SPANS)
    with raises(codes.ABSENT_COLUMN, column="score"):
        document_trials(SPANS, SPANS)
