"""ISF, SSF, PMU and PL: the source's examples, and what is refused."""

from __future__ import annotations

import math

import pytest

from swsdist.core.codes import families
from swsdist.report.costs import (
    factors,
    peak_memory,
    processing_load,
    query_seconds,
)
from tests.support.coded import raises

HOUR = 3600.0


def test_processing_load_weighs_indexing_by_lambda() -> None:
    assert processing_load(0.5, 0.2, 2.0, 4.0, 0.1) == pytest.approx(0.1 * 0.5 * 2.0 + 0.9 * 0.2 * 4.0)
    assert processing_load(0.5, 0.2, 2.0, 4.0, 1.0) == pytest.approx(1.0)
    assert processing_load(0.5, 0.2, None, 4.0, 0.1) is None


def test_all_figures_of_the_sources_example() -> None:
    """14 hours on 16 cores for 300 hours of audio; 48 CPU hours for 900 s of queries: 0.64, where the source prints 0.8."""
    given = {"index_cpu_s": 224 * HOUR, "search_cpu_s": 48 * HOUR, "query_s": 900, "audio_s": 300 * HOUR}
    found = factors(**given, index_peaks_gb=[1.0, 4.0], search_peaks_gb=[2.0])
    assert found.isf == pytest.approx(0.7467, abs=5e-5)
    assert found.ssf_hours == pytest.approx(0.64, rel=1e-12)
    assert (found.pmu_index_gb, found.pmu_search_gb) == (4.0, 2.0)
    assert found.pl_hours == pytest.approx(0.1 * 224 / 300 * 4 + 0.9 * 0.64 * 2)
    assert found.pl == pytest.approx(0.1 * 224 / 300 * 4 + 0.9 * 0.64 / 3600 * 2)
    assert query_seconds({"a": [0.5, 0.25], "b": [1.0], "c": []}) == 1.75
    assert (query_seconds({}), peak_memory([])) == (0.0, None)


def test_what_is_not_known_leaves_the_rest() -> None:
    found = factors(search_cpu_s=10, query_s=5, audio_s=100)
    assert found.ssf == pytest.approx(0.02)
    assert (found.isf, found.pmu_index_gb, found.pl) == (None, None, None)
    nothing = factors(index_cpu_s=1, search_cpu_s=1, query_s=0, audio_s=0)
    assert (nothing.isf, nothing.ssf, nothing.ssf_hours) == (None, None, None)


def test_impossible_numbers_are_refused() -> None:
    for name, given, named in (
        ("index_cpu_s", -1.0, "CPU time of indexing"),
        ("audio_s", math.inf, "duration of the audio"),
        ("query_s", math.nan, "duration of the queries"),
        ("search_peaks_gb", [1.0, -2.0], "peak memory"),
    ):
        with raises(families.INVALID_VALUE, quantity=named):
            factors(**{name: given})  # type: ignore[arg-type]
    for weight in (-0.1, 1.1, math.nan):
        with raises(families.INVALID_VALUE):
            processing_load(0.5, 0.2, 2.0, 4.0, weight)
