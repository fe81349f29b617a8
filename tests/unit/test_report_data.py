"""Formulas of the required resources, and the helpers that shrink curves and scores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from swsdist.errors import UserError
from swsdist.report.data import (
    DetCurve,
    Resources,
    indexing_speed_factor,
    processing_load,
    searching_speed_factor,
    thin_det,
)

COST = Resources(
    index_cpu_s=100.0,
    search_cpu_s=50.0,
    score_cpu_s=1.0,
    query_seconds=20.0,
    audio_seconds=1000.0,
    pmu_index_gb=2.0,
    pmu_search_gb=4.0,
    wall_s=90.0,
)


def test_worked_example_of_isf() -> None:
    assert indexing_speed_factor(224 * 3600, 300 * 3600) == pytest.approx(0.7467, abs=5e-5)


def test_worked_example_of_ssf_gives_what_its_equation_says() -> None:
    """48 CPU hours, 900 s of queries, 300 hours of audio: 0.64, where the source prints 0.8."""
    ssf = searching_speed_factor(48 * 3600, 900, 300 * 3600)
    assert ssf is not None
    assert 3600 * ssf == pytest.approx(0.64, rel=1e-12)


def test_processing_load_weighs_indexing_by_lambda() -> None:
    assert processing_load(0.5, 0.2, 2.0, 4.0, 0.1) == pytest.approx(0.1 * 0.5 * 2.0 + 0.9 * 0.2 * 4.0)
    assert processing_load(0.5, 0.2, 2.0, 4.0, 1.0) == pytest.approx(1.0)
    assert processing_load(0.5, 0.2, None, 4.0, 0.1) is None


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_processing_load_refuses_a_weight_outside_its_range(weight: float) -> None:
    with pytest.raises(UserError, match="lambda"):
        processing_load(0.5, 0.2, 2.0, 4.0, weight)


def test_derived_resources() -> None:
    assert COST.isf == pytest.approx(0.1)
    assert COST.ssf == pytest.approx(50 / (20 * 1000))
    assert COST.ssf_hours == pytest.approx(9.0)
    assert COST.pl == pytest.approx(0.1 * 0.1 * 2 + 0.9 * 0.0025 * 4)
    assert COST.pl_hours == pytest.approx(0.1 * 0.1 * 2 + 0.9 * 9 * 4)


def test_a_run_in_which_everything_was_rejected_has_no_factors() -> None:
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


@pytest.mark.parametrize("points", [0, 1, 2])
def test_thinning_leaves_short_curves_alone(points: int) -> None:
    values = np.linspace(0, 1, points)
    assert thin_det(DetCurve(values, values, values)).pfa.tolist() == values.tolist()
