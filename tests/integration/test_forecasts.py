"""Forecasts of runs of every kind: each hour counts once, and each step is there, or what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.forecast.costs import Cluster, StepCost, costs_of, left_out
from swsdist.pipeline.forecast.forecast import forecast
from swsdist.pipeline.status import load_partial_run
from tests.support.coded import raises

GMM = {"name": "gmm", "options": {"components": 4, "iterations": 2, "hours": 1}}
FITTED = [{"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 8, "hours": 1}}, GMM]}]


def measured(scene: Any, run: str = "run") -> tuple[ChainRun, list[StepCost]]:
    chain_run = load_partial_run(Folder(str(scene.folder / run)))
    return chain_run, costs_of(chain_run)


def work_of(costs: list[StepCost], name: str) -> float:
    return sum(float(cost.work.sum()) for cost in costs if cost.name == name)


def test_tracks_do_not_multiply_hours(scene: Any) -> None:
    tracks = [{"name": "mfcc", "track": f"of-{count}", "options": {"n_mfcc": count}} for count in (10, 11, 12)]
    scene.run(f"features={json.dumps(tracks)}", "index.shards=2")
    chain_run, costs = measured(scene)
    hours = chain_run.chain.inputs.hours
    assert hours == pytest.approx(scene.report()["resources"]["audio_seconds"] / 3600)
    assert work_of(costs, "index") == pytest.approx(3 * 3600 * hours)
    told = forecast(costs, Cluster(start_s=0.0), chain_run.config.executor, hours, hours=10 * hours)
    tasks = {step.name: step.tasks for step in told.steps}
    assert (tasks["index"], tasks["search"]) == (60, 20)
    assert left_out(chain_run, costs) == []


def test_the_whole_run_is_in_its_forecast(scene: Any) -> None:
    """From its start to its report: of the run itself the forecast is what was measured."""
    scene.run()
    chain_run, costs = measured(scene)
    wall = scene.report()["resources"]["wall_s"]
    assert sum(cost.driver_s + cost.span_s for cost in costs) == pytest.approx(wall, abs=0.02)
    told = forecast(
        costs, Cluster(start_s=0.0), chain_run.config.executor, chain_run.chain.inputs.hours, driver_task_s=0.0
    )
    assert told.took is not None
    assert told.took[1:] == (pytest.approx(wall, abs=0.02), 1)
    assert told.wall_s == pytest.approx(wall, rel=0.1)
    assert (told.steps[0].name, told.steps[-1].name) == ("start", "report")


def test_what_increments_and_other_searches_leave(own_corpus: Any) -> None:
    scene = own_corpus
    table = scene.corpus / "docs.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[:4]))
    scene.base["corpus"] = {"documents": str(table), "queries": str(scene.corpus / "queries.csv")}
    scene.run()
    part = measured(scene)[0].chain.inputs.hours
    table.write_text("".join(lines))
    scene.run()
    chain_run, costs = measured(scene)
    hours = chain_run.chain.inputs.hours
    assert hours > 1.5 * part
    assert work_of(costs, "index") == pytest.approx(3600 * hours)
    assert {cost.processes for cost in costs} == {1}, "one at a time, in two calls"
    before = {cost.name: len(cost.work) for cost in costs}
    scene.run("search.distance=cosine-squared")
    chain_run, costs = measured(scene)
    assert chain_run.chain.inputs.hours == hours
    assert {cost.name: len(cost.work) for cost in costs} == before
    assert work_of(costs, "index") == pytest.approx(3600 * hours)
    search = next(cost for cost in costs if cost.name == "search")
    assert search.driver_s < 5, "what lay between two calls is no work of the driver"
    assert left_out(chain_run, costs) == []


def test_rounds_of_fitted_transforms(scene: Any) -> None:
    """Their frames and totals are gone, their receipts are not."""
    scene.run(f"features={json.dumps(FITTED)}")
    chain_run, costs = measured(scene)
    rounds = [cost for cost in costs if cost.name == "fit-transforms"]
    assert [cost.round for cost in rounds] == list(range(len(rounds)))
    assert len(rounds) >= 6, "sums and totals of both, and of each iteration"
    hours = chain_run.chain.inputs.hours
    told = forecast(costs, Cluster(start_s=0.0), chain_run.config.executor, hours, hours=1000 * hours)
    for cost in rounds:
        assert cost.grows_with_hours == ("same" if cost.work.max() <= 1 else "more")
    totals = sum(cost.grows_with_hours == "same" for cost in rounds)
    sums = len(rounds) - totals
    (step,) = (step for step in told.steps if step.name == "fit-transforms")
    assert totals == sums
    assert totals + sums < step.tasks <= totals + sums * (1 / hours + 1), (
        "up to an hour of documents, not all 1000 times"
    )
    scene.run(f"features={json.dumps(FITTED)}", "search.distance=cosine-squared")
    assert [(c.name, c.round) for c in measured(scene)[1]] == [(c.name, c.round) for c in costs]


def test_what_is_missing_is_said(scene: Any, tmp_path: Path) -> None:
    scene.run(selection=StepSelection(until="search"))
    chain_run, costs = measured(scene)
    lacking = left_out(chain_run, costs)
    assert {"reduce", "fit", "report"} <= set(lacking)
    assert not {"index", "search", "start"} & set(lacking)
    with raises(families.MISSING_INPUT):
        forecast(costs, Cluster(), chain_run.config.executor, 0.0)
    scene.run(f"index.store={tmp_path / 'store'}", run="first")
    scene.run(f"index.store={tmp_path / 'store'}", run="second")
    chain_run, costs = measured(scene, "second")
    assert work_of(costs, "index") == pytest.approx(3600 * chain_run.chain.inputs.hours), "of the run that made it"
    (tmp_path / "store/receipts/index.parquet").unlink()
    chain_run, costs = measured(scene, "second")
    assert left_out(chain_run, costs) == ["index"]
