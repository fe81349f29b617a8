"""The fast alignment against every matching, and its indifference to rows and parts."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.score.align import align, score_limits
from tests.oracles.score import Detection, Reference, best_gain, kernel, matchings

# A coarse grid of times and few scores: overlaps, borders, duplicates and ties are the rule.
times = st.integers(0, 24).map(lambda n: n / 4) | st.integers(0, 600).map(lambda n: n / 100)
durations = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.86, 2.0])
scores = st.sampled_from([-3.0, -0.0, 0.0, 0.5, 0.5001, 2.0])
tolerances = st.sampled_from([0.0, 0.25, 0.5, 3.0])
keys = st.tuples(st.sampled_from("pq"), st.sampled_from("de"), st.integers(1, 2))
spans = st.builds(lambda start, length: (start, round(start + length, 4)), times, durations)
found_rows = st.tuples(spans, scores, st.sampled_from([True, False, None]))


def detections(rows: list[tuple[Any, Any]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            dict(zip(("query_id", "doc_id", "channel"), key, strict=True))
            | {"start": span[0], "end": span[1], "score": score, "decision": decision}
            for key, (span, score, decision) in rows
        ],
        DETECTIONS,
    )


def references(rows: list[tuple[Any, Any]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            dict(zip(("query_id", "doc_id", "channel"), key, strict=True)) | {"start": span[0], "end": span[1]}
            for key, span in rows
        ],
        REFERENCES,
    )


ONE = ("q", "d", 1)


@given(st.lists(found_rows, max_size=5), st.lists(spans, max_size=4), tolerances)
@settings(max_examples=300)
def test_the_best_of_all_matchings(found: list[Any], true: list[Any], tolerance: float) -> None:
    low, high = score_limits([score for _, score, _ in found])
    limits = {"tolerance": tolerance, "low": low, "high": high}
    table = align(detections([(ONE, row) for row in found]), references([(ONE, row) for row in true]), **limits)
    rows = table.to_pylist()
    pairs = [row for row in rows if row["start"] is not None and row["ref_start"] is not None]
    gain = Fraction(0)
    for row in pairs:
        value = kernel(
            Detection(row["start"], row["end"], row["score"]), Reference(row["ref_start"], row["ref_end"]), **limits
        )
        assert value is not None
        gain += Fraction(value) + 1
    plain = [Detection(*span, score) for span, score, _ in found], [Reference(*span) for span in true]
    best = best_gain(*plain, **limits)
    assert abs(gain - best) < 1e-14
    assert len(pairs) == max(len(chosen) for _, chosen in matchings(*plain, **limits))
    # Every row of either side is there once.
    assert sorted(r["start"] for r in rows if r["start"] is not None) == sorted(span[0] for span, _, _ in found)
    assert sorted(r["ref_start"] for r in rows if r["ref_start"] is not None) == sorted(span[0] for span in true)


@given(
    st.lists(st.tuples(keys, found_rows), max_size=25),
    st.lists(st.tuples(keys, spans), max_size=15),
    tolerances,
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_order_and_parts_do_not_show(found: list[Any], true: list[Any], tolerance: float, random: Any) -> None:
    low, high = score_limits([score for _, (_, score, _) in found])
    limits = {"tolerance": tolerance, "low": low, "high": high}
    whole = align(detections(found), references(true), **limits)
    order = [
        (*[row[name] for name in ("query_id", "doc_id", "channel")], next(t for t in times if t is not None))
        for row in whole.to_pylist()
        for times in [(row["start"], row["ref_start"])]
    ]
    assert order == sorted(order)

    shuffled = random.sample(found, len(found)), random.sample(true, len(true))
    assert align(detections(shuffled[0]), references(shuffled[1]), **limits).equals(whole)

    parts = [
        align(
            detections([row for row in found if row[0] == key]), references([r for r in true if r[0] == key]), **limits
        )
        for key, _ in groupby(sorted(key for key, _ in [*found, *true]))
    ]
    assert not parts or pa.concat_tables(parts).combine_chunks().equals(whole.combine_chunks())
