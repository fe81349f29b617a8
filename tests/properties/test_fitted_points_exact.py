"""Thresholds that are fitted at many betas, and MTWV, are those that a run fits and scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate import rescoring as fitted_thresholds
from swsdist.calibrate.procedure import Procedure, fit_procedure
from swsdist.calibrate.rescoring import Rescoring, compact_list, rescore_fitted
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.types import TRIALS
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv, mtwv, twv_curve

TRIALS_N = 500

_row = st.tuples(
    st.sampled_from([f"q{k}" for k in range(6)]),
    st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.25, 3.0]), st.floats(-5, 5)),
    st.booleans(),
)


def table(rows: list[Any]) -> pa.Table:
    found = []
    for query, score, true in rows:
        base = {"query_id": query, "doc_id": "d", "channel": 1, "start": None, "end": None, "decision": None}
        if score is None and not true:
            continue
        found.append({**base, "score": score, "ref_start": 0.0 if true else None, "ref_end": None})
    return pa.Table.from_pylist(found, TRIALS)


@settings(max_examples=150)
@given(
    rows=st.lists(_row, max_size=60),
    folds=st.sampled_from([1, 2, 3, 5]),
    rejects=st.booleans(),
    block=st.sampled_from([1, 2, 7, 256]),
)
def test_thresholds_and_maxima_are_those_of_a_run(rows: list[Any], folds: int, rejects: bool, block: int) -> None:
    aligned = table([("q0", None, True), *rows])
    part = compact_list(aligned, tolerance=None, conventions="stdeval", probabilities=False)
    whole = Rescoring.of([part], tolerance=None, conventions="stdeval")
    betas = np.array([0.01, 1.0, 10.0, 66.66, 5000.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted_thresholds, "_BLOCK", block)
        found = rescore_fitted(whole, folds, betas, trials=TRIALS_N, rejects_all=rejects)
    for p, beta in enumerate(betas.tolist()):
        point = TwvParameters(TRIALS_N, beta)
        threshold = fit_procedure(
            lambda: [aligned], Procedure(()), folds=folds, own_threshold=True, point=point, trained_on={}
        )
        decided = Counts.of(threshold.apply(aligned))
        direct = atwv(decided, trials=TRIALS_N, beta=beta)
        assert tuple(column[p] for column in found.decided.points) == direct[:3]
        best = mtwv(twv_curve(decided, trials=TRIALS_N, beta=beta, reject_all=rejects))
        assert tuple(column[p] for column in found.best.points) == best[:3]
        assert found.threshold[p] == best.threshold or (best.threshold is None and math.isnan(found.threshold[p]))
