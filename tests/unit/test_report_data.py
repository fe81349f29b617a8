"""Resources that are derived from others, and the helpers that shrink curves and scores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from swsdist.report.data import DetCurve, Resources, thin_det

_CPU = {"index_cpu_s": 100.0, "search_cpu_s": 50.0, "score_cpu_s": 1.0, "wall_s": 90.0}
_SECONDS = {"query_seconds": 20.0, "searched_query_seconds": 16.0, "audio_seconds": 1000.0}
COST = Resources(**_CPU, **_SECONDS, pmu_index_gb=2.0, pmu_search_gb=4.0)


def test_derived_resources() -> None:
    assert COST.isf == pytest.approx(0.1)
    assert COST.ssf == pytest.approx(50 / (20 * 1000))
    assert COST.ssf_hours == pytest.approx(9.0)
    assert COST.pl == pytest.approx(0.1 * 0.1 * 2 + 0.9 * 0.0025 * 4)
    assert COST.pl_hours == pytest.approx(0.1 * 0.1 * 2 + 0.9 * 9 * 4)
    nothing = dataclasses.replace(COST, query_seconds=0.0, audio_seconds=0.0)
    assert (nothing.isf, nothing.ssf, nothing.ssf_hours, nothing.pl, nothing.pl_hours) == (None,) * 5


def test_thinning_keeps_the_ends_and_the_shape() -> None:
    pfa = np.linspace(0.0, 0.5, 200_001)
    pmiss = (1 - pfa) ** 3
    curve = DetCurve(pmiss, pfa, np.arange(len(pfa), dtype=np.float64))
    thin = thin_det(curve)
    assert len(thin) < 4000
    assert (thin.threshold[0], thin.threshold[-1]) == (0, 200_000)
    # What is left are points of the curve, and a line through them passes close to those that went.
    np.testing.assert_array_equal(thin.pmiss, pmiss[thin.threshold.astype(int)])
    assert np.abs(np.interp(pfa, thin.pfa, thin.pmiss) - pmiss).max() < 0.002
    for points in range(3):
        values = np.linspace(0, 1, points)
        assert thin_det(DetCurve(values, values, values)).pfa.tolist() == values.tolist()
