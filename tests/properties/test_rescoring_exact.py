"""A list that is scored anew at a point counts what deciding, aligning and counting it at that point would."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate import rescoring as fitted_thresholds
from swsdist.calibrate.procedure import Procedure, fit_procedure
from swsdist.calibrate.rescoring import Rescoring, compact_list, query_values, rescore_fitted
from swsdist.calibrate.steps.by_term import METHODS, Thresholding
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.codes import score as codes
from swsdist.core.types import DETECTIONS, REFERENCES, TRIALS
from swsdist.score.align import align, contested, score_limits
from swsdist.score.conventions import conventions_of
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv, mtwv, per_term, twv_curve
from tests.support.coded import raises

TRIALS_N = 900

#: Few places and few scores, so that much is contested and much is equal.
_detection = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["d1", "d2"]),
    st.integers(0, 12),
    st.integers(1, 6),
    # The last so near that overlap may decide, by what alpha makes of them.
    st.sampled_from([0.0, 0.01, 0.5, 0.99, 1.0])
    | st.floats(0, 1)
    | st.integers(0, 40).map(lambda k: 0.01 + 0.0002 * k),
)
_reference = st.tuples(
    st.sampled_from(["a", "b"]), st.sampled_from(["d1", "d2"]), st.integers(0, 12), st.integers(1, 4)
)


def tables(detections: list[Any], references: list[Any]) -> tuple[pa.Table, pa.Table]:
    def places(rows: list[Any]) -> list[dict[str, Any]]:
        return [
            {"query_id": q, "doc_id": d, "channel": 1, "start": 0.3 * s, "end": 0.3 * (s + n)} for q, d, s, n in rows
        ]

    found = [
        place | {"score": row[4]}
        for place, row in zip(places([row[:4] for row in detections]), detections, strict=True)
    ]
    names = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
    schema = pa.schema([DETECTIONS.field(name) for name in names])
    return pa.Table.from_pylist(found, schema), pa.Table.from_pylist(places(references), REFERENCES)


def aligned(detections: pa.Table, references: pa.Table, conventions: str) -> pa.Table:
    low = high = None
    if conventions_of(conventions).list_limits:
        low, high = score_limits(detections["score"].to_numpy())
    return align(detections, references, tolerance=0.5, low=low, high=high, conventions=conventions)


@settings(max_examples=120)
@given(
    detections=st.lists(_detection, max_size=40),
    references=st.lists(_reference, min_size=1, max_size=15),
    alpha=st.sampled_from([0.1, 0.3, 0.9, 1.5, 20.0]),
    beta=st.sampled_from([1.0, 66.66, 999.9]),
    conventions=st.sampled_from(["stdeval", "kwseval"]),
)
def test_points_are_those_of_the_direct_way(detections, references, alpha, beta, conventions) -> None:
    found, true = tables(detections, references)
    first = aligned(found, true, conventions)
    ntrue: dict[str, int] = {}
    for query in true["query_id"].to_pylist():
        ntrue[query] = ntrue.get(query, 0) + 1
    # In buckets of queries, in any order.
    names = first["query_id"].to_pylist()
    masks = [pa.array([name in some for name in names], pa.bool_()) for some in ("b", "ca")]
    parts = [compact_list(first.filter(mask), tolerance=0.5, conventions=conventions) for mask in masks]
    whole = Rescoring.of(parts, tolerance=0.5, conventions=conventions)
    for method in METHODS:
        how = Thresholding(method, TRIALS_N, beta, alpha)
        decided = how.apply(found, true=ntrue)
        trials = aligned(decided, true, conventions)
        direct = atwv(Counts.of(trials), trials=TRIALS_N, beta=beta)
        swept = whole.at(method, [alpha], [beta], trials=TRIALS_N)
        assert (swept.points.twv[0], swept.points.pmiss[0], swept.points.pfa[0]) == direct[:3]
        rows = [row for row in per_term(trials, trials=TRIALS_N, beta=beta).to_pylist() if row["ntrue"]]
        assert whole.names.to_pylist() == [row["query_id"] for row in rows]
        assert swept.hits[:, 0].tolist() == [row["ncorr"] for row in rows]
        assert swept.false_alarms[:, 0].tolist() == [row["nfa"] for row in rows]
        kept = swept.hits[:, 0], swept.false_alarms[:, 0]
        assert query_values(whole.ntrue, *kept, beta=beta, trials=TRIALS_N).tolist() == [row["twv"] for row in rows]


@settings(max_examples=120)
@given(detections=st.lists(_detection, max_size=30), references=st.lists(_reference, min_size=1, max_size=12))
def test_what_is_not_contested_is_paired_alike_by_any_scores(detections: list[Any], references: list[Any]) -> None:
    found, true = tables(detections, references)
    place = found.schema.get_field_index("score")
    other = found.set_column(place, found.schema.field(place), pa.array(1.0 - found["score"].to_numpy()))
    pairs = []
    for table in (found, other):
        trials = aligned(table, true, "stdeval")
        free = trials.filter(pa.array(~contested(trials, tolerance=0.5, conventions="stdeval")))
        columns = ("query_id", "doc_id", "start", "end", "ref_start", "ref_end")
        pairs.append(sorted(map(str, zip(*(free[name].to_pylist() for name in columns), strict=True))))
    assert pairs[0] == pairs[1]


def test_alpha_changes_pairs() -> None:
    """Of two detections near one occurrence the one that overlaps it is paired, until alpha spreads their scores."""
    rows = [("a", "d1", 2, 2, 0.0204), ("a", "d1", 3, 2, 0.0200), ("b", "d2", 0, 2, 1.0), ("b", "d2", 9, 2, 0.0)]
    found, true = tables(rows, [("a", "d1", 3, 2)])
    whole = Rescoring.of_list(aligned(found, true, "stdeval"), found, tolerance=0.5, conventions="stdeval")
    assert whole.contest is not None
    assert whole.probability.tolist() == [0.0204, 0.02]
    alphas = np.geomspace(0.01, 10, 400)
    swept = whole.at("kst", alphas, 66.66, trials=TRIALS_N)
    kept = swept.hits[0] + swept.false_alarms[0]
    # Between the thresholds of both only the first is kept: it is a hit, or a false alarm.
    assert {1, 2} <= set(kept.tolist())
    for k in np.flatnonzero(kept == 1):
        how = Thresholding("kst", TRIALS_N, 66.66, float(alphas[k]))
        direct = atwv(Counts.of(aligned(how.apply(found), true, "stdeval")), trials=TRIALS_N, beta=66.66)
        assert swept.points.twv[k] == direct.twv


def test_nothing_to_score_is_told() -> None:
    found, true = tables([("c", "d1", 0, 1, 0.5)], [])
    part = compact_list(aligned(found, true, "stdeval"), tolerance=0.5, conventions="stdeval")

    with raises(codes.NO_REFERENCES):
        Rescoring.of([part], tolerance=0.5, conventions="stdeval")


# Thresholds that are fitted at many betas, and MTWV, are those that a run fits and scores

_row = st.tuples(
    st.sampled_from([f"q{k}" for k in range(6)]),
    st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.25, 3.0]), st.floats(-5, 5)),
    st.booleans(),
)


def listed(rows: list[Any]) -> pa.Table:
    names = ("query_id", "score", "ref_start", "doc_id", "channel")
    rows = [(q, score, 0.0 if true else None, "d", 1) for q, score, true in rows if true or score is not None]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], TRIALS)


@settings(max_examples=150)
@given(
    rows=st.lists(_row, max_size=60),
    folds=st.sampled_from([1, 2, 3, 5]),
    rejects=st.booleans(),
    block=st.sampled_from([1, 2, 7, 256]),
)
def test_thresholds_and_maxima_are_those_of_a_run(rows: list[Any], folds: int, rejects: bool, block: int) -> None:
    trials = listed([("q0", None, True), *rows])
    part = compact_list(trials, tolerance=None, conventions="stdeval", probabilities=False)
    whole = Rescoring.of([part], tolerance=None, conventions="stdeval")
    betas = np.array([0.01, 1.0, 10.0, 66.66, 5000.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted_thresholds, "_BLOCK", block)
        found = rescore_fitted(whole, folds, betas, trials=TRIALS_N, rejects_all=rejects)
    for p, beta in enumerate(betas.tolist()):
        point = TwvParameters(TRIALS_N, beta)
        threshold = fit_procedure(
            lambda: [trials], Procedure(()), folds=folds, own_threshold=True, point=point, trained_on={}
        )
        decided = Counts.of(threshold.apply(trials))
        direct = atwv(decided, trials=TRIALS_N, beta=beta)
        assert tuple(column[p] for column in found.decided.points) == direct[:3]
        best = mtwv(twv_curve(decided, trials=TRIALS_N, beta=beta, reject_all=rejects))
        assert tuple(column[p] for column in found.best.points) == best[:3]
        assert found.threshold[p] == best.threshold or (best.threshold is None and math.isnan(found.threshold[p]))
