"""A benchmark of the small corpus from end to end, what is kept of it, and what two results say of each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import swsdist
from swsdist.bench.page import write_page
from swsdist.bench.results import (
    BenchPoint,
    Measurement,
    Plan,
    Results,
    compare_results,
    comparison_json,
    config_at,
    mean,
    multiplied,
    points_of,
    ratio,
    read_results,
    run_benchmark,
    settings_of,
    strong_scaling,
    weak_scaling,
)
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.errors import IncompleteError, UserError
from tests.support.coded import raises


def here(path: Path) -> None:
    """Run a config in this process, where a process of its own is not the point."""
    swsdist.run(path)


def test_points_are_in_random_order_and_each_comes_once() -> None:
    found = points_of([1, 2, 4], [1, 2], 3, seed=1)
    assert sorted(found) == [BenchPoint(w, x, r) for w in (1, 2, 4) for x in (1, 2) for r in range(3)]
    assert found == points_of([1, 2, 4], [1, 2], 3, seed=1)
    assert found != points_of([1, 2, 4], [1, 2], 3, seed=2)
    assert [one.repeat for one in found] == [0] * 6 + [1] * 6 + [2] * 6
    for wrong in ([], [0], [2, 2]):
        with pytest.raises(UserError, match="--workers"):
            points_of(wrong, [1], 1, 0)


def test_data_are_multiplied_by_name_alone(scene: Any) -> None:
    config = load_config(scene.config)
    table = multiplied(config, 3)
    names = table["doc_id"].to_pylist()
    assert len(names) == len(set(names)) == 24
    assert names[0] == "d001"
    assert names[8] == "d001~1"
    assert len(set(table["path"].to_pylist())) == 8
    with raises(families.CONFLICTING_OPTIONS, workers=2):
        config_at(config, BenchPoint(2, 1, 0), scene.folder)


@pytest.mark.slow
def test_from_end_to_end(scene: Any) -> None:
    config, folder = load_config(scene.config), scene.folder / "bench"
    told: list[str] = []
    plan = Plan([1], [1, 2], 1)
    results = run_benchmark(config, folder, plan, told.append, here)
    assert [one.point for one in results.measured] == [BenchPoint(1, 1, 0), BenchPoint(1, 2, 0)]
    once, twice = (one.figures for one in results.measured)
    assert once["audio_s"] is not None
    assert twice["audio_s"] == pytest.approx(2 * once["audio_s"])
    assert twice["query_s"] == once["query_s"]
    for name in ("isf", "ssf", "pmu_index_gb", "pmu_search_gb", "pl", "wall_s", "index_wall_s", "search_wall_s"):
        assert (once[name] or 0) > 0
    steps = results.measured[0].steps
    assert {"start", "index", "search", "fit", "score", "report"} <= steps.keys()
    assert sum(steps.values()) == pytest.approx(once["wall_s"], abs=0.05), "from start to report"
    assert 0 < (once["efficiency"] or 0) < 1
    assert (once["index_search_wall_s"] or 0) < (once["wall_s"] or 0)
    assert not (folder / "runs" / "w1-x1-r0").exists()
    assert results.measured[0].forecast.keys() == {"w1-x1", "w1-x2"}
    # Of the very run that it was told from, the forecast is what was measured.
    assert results.measured[0].forecast["w1-x1"] == pytest.approx(once["wall_s"], rel=0.25)

    write_page(results, folder)
    assert "<svg" in (folder / "bench.html").read_text("utf-8")
    assert not (folder / "strong-scaling.svg").exists(), "one number of workers"
    assert read_results(str(folder)) == results

    def refuse(path: Path) -> None:
        raise AssertionError(path)

    assert run_benchmark(config, folder, plan, told.append, refuse) == results  # all is there
    with pytest.raises(AssertionError, match="w1-x1-r1"):
        run_benchmark(config, folder, Plan([1], [1], 2), told.append, refuse)  # only what is new
    other = load_config(scene.config, ["reduce.overlap=0.3"])
    with raises(families.MISMATCH):
        run_benchmark(other, folder, plan, told.append, refuse)


def test_a_run_that_fails_is_told(scene: Any) -> None:
    config = load_config(scene.config)
    broken = config.model_copy(update={"corpus": config.corpus.model_copy(update={"queries": "/gone.csv"})})
    with pytest.raises(IncompleteError, match=r"gone\.csv"):
        run_benchmark(broken, scene.folder / "bench", Plan([1], [1], 1), lambda line: None)


def measured(workers: int, times: int, repeat: int, wall: float, **figures: float) -> Measurement:
    hardware = [{"nodes": 1, "brand": "x", "cpu": "Chip", "cores": 64, "clock_ghz": 3, "ram_gb": 8, "os": "L"}]
    values: dict[str, float | None] = {"wall_s": wall, **figures}
    forecast = {"w1-x1": 100.0, "w2-x1": 55.0}
    return Measurement(BenchPoint(workers, times, repeat), 0, values, {}, forecast, hardware, {"numpy": "2"}, 0.1)


def results(*all_of: Measurement, config: str = "a: 1\n") -> Results:
    return Results("s", config, "1", None, all_of)


def test_scaling_by_hand() -> None:
    walls = {(1, 1): [100.0, 100.0], (2, 1): [50.0, 50.0], (4, 1): [40.0], (2, 2): [110.0], (4, 4): [125.0]}
    found = {(one.workers, one.times): one for one in strong_scaling(walls)}
    assert found.keys() == {(2, 1), (4, 1)}
    assert found[2, 1].speedup.value == pytest.approx(2)
    assert found[4, 1].per_worker.value == pytest.approx(2.5 / 4)
    assert {(one.workers, one.times): round(one.per_worker.value, 4) for one in weak_scaling(walls)} == {
        (2, 2): round(100 / 110, 4),
        (4, 4): 0.8,
    }


def test_intervals_are_those_of_scipy() -> None:
    import numpy as np
    from scipy.stats import t, ttest_ind

    first, second = [10.0, 11.0, 12.5, 9.0], [8.0, 8.5, 9.5]
    logs = np.log(first)
    low, high = t.interval(0.95, 3, logs.mean(), logs.std(ddof=1) / 2)
    found = mean(first)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(np.exp(low)), pytest.approx(np.exp(high)))
    told, known = ratio(first, second), ttest_ind(np.log(first), np.log(second), equal_var=False)
    assert told is not None
    assert told.p == pytest.approx(known.pvalue)
    interval = known.confidence_interval(0.95)
    assert (told.low, told.high) == (pytest.approx(np.exp(interval.low)), pytest.approx(np.exp(interval.high)))
    assert mean([1.0]) == (pytest.approx(1.0), None, None, 1)
    assert mean([0.0, 1.0]) is None
    assert ratio([], [1.0]) is None


def test_two_results_beside_each_other() -> None:
    before = results(*(measured(1, 1, k, wall, isf=0.01 + 0.0001 * k) for k, wall in enumerate((100, 101, 99, 100.5))))
    after = results(*(measured(1, 1, k, wall, isf=0.01 + 0.00011 * k) for k, wall in enumerate((80, 81, 79, 80.5))))
    told = compare_results(before, after)
    found = {one.figure: one for one in told.differences}
    assert found["wall_s"].beyond_noise
    assert found["wall_s"].ratio.value == pytest.approx(0.8, abs=0.01)
    assert found["isf"].beyond_noise is False
    assert told.notices == ()
    assert json.loads(comparison_json(told))["differences"][0]["beyond_noise"] is True


def test_what_is_not_alike_is_told() -> None:
    before = results(measured(1, 1, 0, 100.0))
    chip = [{**before.measured[0].hardware[0], "cpu": "Other"}]
    one, more = (measured(w, 1, 0, 50.0)._replace(hardware=chip, versions={"numpy": "3"}) for w in (1, 2))
    told = compare_results(before, results(one, more, config="a: 2\n"))
    assert [one.beyond_noise for one in told.differences] == [None]
    said = "\n".join(told.notices)
    assert all(word in said for word in ("Chip", "numpy 2 against 3", "a: 2", "2 worker(s) at 1 times"))


def test_settings_are_of_the_work_alone(scene: Any) -> None:
    config = load_config(scene.config)
    assert settings_of(config) == settings_of(load_config(scene.config, ["executor.workers=3", "run=/elsewhere"]))
    assert settings_of(config) != settings_of(load_config(scene.config, ["search.distance=euclidean"]))


def test_what_is_no_result(tmp_path: Path) -> None:
    for text in ("", "{}", '{"schema": "swsdist-bench/0"}', "[1]"):
        (tmp_path / "bench.json").write_text(text)
        with raises(families.WRONG_KIND):
            read_results(str(tmp_path))
