"""What the work cost, in CPU time and memory; forecasts of runs from what was measured, and benchmarks."""

from __future__ import annotations

import json
import math
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from kept_receipts import receipts_in
from scipy.stats import t, ttest_ind

import swsdist
from swsdist.accounts.journal import _last_cpu, cpu_seconds, pss_bytes
from swsdist.bench import results as bench
from swsdist.bench.page import write_page
from swsdist.bench.results import BenchPoint, Measurement, Plan, Results, points_of, run_benchmark
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.errors import IncompleteError, UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.forecast.costs import Cluster, StepCost, costs_of, left_out
from swsdist.pipeline.forecast.forecast import forecast
from swsdist.pipeline.status import load_partial_run
from swsdist.report.page import from_numbers
from tests.support.coded import raises


@pytest.fixture(scope="module")
def counted(new_scene: Any, small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """A serial run, and what CPU time the kernel counted meanwhile."""
    scene, before = new_scene(tmp_path_factory.mktemp("counted"), small_corpus, {}), sum(cpu_seconds())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_last_cpu, os.getpid(), before)  # what the tests before this one took is none of this run's
        scene.run("index.shards=4")
    return scene, sum(cpu_seconds()) - before


def test_serial_accounts(counted: tuple[Any, float]) -> None:
    scene, spent = counted
    _check_balance(scene, spent)
    mine = scene.all_receipts()
    for receipt in mine:
        assert receipt.cost.cpu > 0
        assert receipt.cost.peak_bytes > 10_000_000
        assert receipt.pid == os.getpid()
        assert receipt.cost.bytes_written == sum(output.size for output in receipt.outputs)
        assert receipt.started <= receipt.finished
    report = scene.report()
    assert min(report["pmu_index_gb"], report["pmu_search_gb"]) > 0.05
    assert report["ssf"] > 0
    assert math.isclose(report["ssf_hours"], 3600 * report["ssf"])
    assert report["repeated_cpu"] == 0
    index = [receipt for receipt in mine if receipt.stage == "index"]
    assert sum(receipt.result["seconds"] for receipt in index) == pytest.approx(report["hours"] * 3600)
    assert math.isclose(report["isf"] * report["hours"] * 3600, sum(receipt.cost.cpu for receipt in index))
    sizes = sum(path.stat().st_size for path in (scene.corpus / "audio").iterdir())
    assert sum(receipt.cost.bytes_read for receipt in index) == pytest.approx(sizes, rel=0.1)  # in whole blocks
    searches = [receipt for receipt in mine if receipt.stage == "search"]
    assert len(searches) == 4
    made = sum(receipt.cost.bytes_written for receipt in index)
    assert made < sum(receipt.cost.bytes_read for receipt in searches) < 2 * made
    (queries,) = (receipt for receipt in mine if receipt.stage == "queries")
    cells = queries.result["frames"] * sum(receipt.result["frames"] for receipt in index)
    assert sum(receipt.cost.cells for receipt in searches) == cells


def test_work_done_again_is_counted_once(finished: Any) -> None:
    first = finished.report()
    finished.run(selection=StepSelection(redo_from="search"))
    again = finished.report()
    assert again["repeated_cpu"] > 0
    assert again["isf"] == first["isf"]
    assert again["ssf"] < 3 * first["ssf"]


FITTED = [{"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 8, "hours": 1}}]}]
QUANTISED = {"name": "quantised", "factor": 2, "sample": 0, "windows": {"least": 3}}
#: With all that is made of documents before any query.
MADE = [f"features={json.dumps(FITTED)}", f"search.first_pass={json.dumps(QUANTISED)}"]


def _isfs(scene: Any, run: str) -> dict[str, float | None]:
    """ISF of a run, by where it is told; and what its stages' rows of the report come to."""
    report = scene.report(run)
    chain_run = load_partial_run(Folder(str(scene.folder / run)))
    phases = {step.name: step.phase for step in chain_run.chain.steps}
    index = math.fsum(row["cpu_s"] for row in report["stages"] if phases[row["stage"]] == "index")
    lines = (scene.folder / run / "system-description.md").read_text().splitlines()
    rows = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines if line.count("|") > 8}
    types = {name: float(text) for name, text in rows.items() if name in ("type A alone", "all")}
    assert len(types) == 2
    return {
        "report": report["isf"],
        "resources": from_numbers(str(scene.folder / run)).isf,
        "stages": index / report["resources"]["audio_seconds"],
        **types,
    }


@pytest.mark.slow
def test_one_isf_in_all_places_whoever_indexed(scene: Any) -> None:
    sets = ["index.shards=3", f"index.store={scene.folder / 'store'}", *MADE]
    scene.run(*sets, run="first")
    stages = {"index", "fit-transforms", "quantise"}
    spent = [one for one in receipts_in(Folder(str(scene.folder / "store"))) if one.stage in stages]
    assert {one.stage for one in spent} == stages
    isf = math.fsum(one.cost.cpu for one in spent) / scene.report("first")["resources"]["audio_seconds"]
    scene.run(*sets, "reduce.overlap=0.3", run="second")  # on the store that is there
    for run in ("first", "second"):
        for place, value in _isfs(scene, run).items():
            assert value == pytest.approx(isf, rel=1e-2 if place in ("type A alone", "all") else 1e-9), (run, place)
    # A benchmark makes a store of its own.
    config = load_config(scene.config, [*MADE, f"run={scene.folder / 'benched'}"])
    benched = bench.measure_point(config, 0, BenchPoint(1, 1, 0), [], swsdist.run, keep=True)
    assert benched.figures["isf"] == pytest.approx(_isfs(scene, "benched")["stages"])


#: Files of control groups of version 2 and 1, and the unit of their CPU time in them, of a second.
_COUNTERS = {"/sys/fs/cgroup": ("cpu.stat", 1e6), "/sys/fs/cgroup/cpuacct": ("cpuacct.usage", 1e9)}


def _cgroup() -> tuple[Path, float] | None:
    """A new control group's counter, where that is allowed: it counts every process of a tree, whoever waits for it."""
    for root, (file, unit) in _COUNTERS.items():
        place = Path(root) / f"swsdist-test-{os.getpid()}"
        with suppress(OSError):
            place.mkdir()
            if (place / file).exists():
                return place / file, unit
            place.rmdir()
    return None


def _cpu_and_memory_of_tree(scene: Any, *sets: str) -> tuple[float, int]:
    """CPU seconds of a driver and all that it starts, as the kernel counts them; by samples without control groups.

    And the highest sum of their memory (PSS, bytes), by samples.
    """
    group = _cgroup()
    process = scene.start(*sets)
    if group is not None:
        (group[0].parent / "cgroup.procs").write_text(str(process.pid))
    seen: dict[int, float] = {}
    most = 0
    while process.poll() is None:
        with suppress(psutil.Error):
            tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            most = max(most, sum(pss_bytes(one.pid) for one in tree))
            for one in tree:
                with suppress(psutil.Error):
                    times = one.cpu_times()
                    seen[one.pid] = max(seen.get(one.pid, 0.0), times.user + times.system)
        time.sleep(0.2)
    assert process.returncode == 0, process.communicate()
    if group is None:
        return sum(seen.values()), most
    file, unit = group
    spent = int(file.read_text().removeprefix("usage_usec").split()[0]) / unit
    with suppress(OSError):  # Ray's last processes may go a little later
        file.parent.rmdir()
    return spent, most


def _check_balance(scene: Any, counted: float) -> None:
    """All CPU seconds are told, within 5 %."""
    nodes = pq.read_table(scene.folder / "run/nodes.parquet").to_pylist()
    whole = [row for row in nodes if row["stage"] is None]
    kinds = {kind: sum(row[f"{kind}_cpu_s"] for row in whole) for kind in ("useful", "repeated", "warm_up", "other")}
    assert sum(kinds.values()) == pytest.approx(counted, rel=0.05), kinds
    assert kinds["useful"] == pytest.approx(sum(one.cost.cpu for one in scene.all_receipts()), abs=1e-3)


@pytest.mark.ray
def test_cpu_and_memory_on_ray_are_what_the_kernel_counts(scene: Any) -> None:
    scene.sabotage(seconds=1.0)
    sets = ("executor.kind=ray", "executor.workers=2", "index.shards=8", "features.name=saboteur")
    cpu, memory = _cpu_and_memory_of_tree(scene, *sets)
    _check_balance(scene, cpu)
    (node,) = (row for row in pq.read_table(scene.folder / "run/nodes.parquet").to_pylist() if row["stage"] is None)
    assert node["peak_bytes"] == pytest.approx(memory, rel=0.05)
    mine = scene.all_receipts()
    index = [receipt for receipt in mine if receipt.stage == "index"]
    assert all(receipt.cost.cpu >= 0.95 for receipt in index), "what its threads did in a worker counts"
    assert len({receipt.pid for receipt in index}) == 2
    report, journals = scene.report(), scene.journals()
    assert sorted(lines[0]["role"] for lines in journals) == ["driver", "worker", "worker"]
    assert all(lines[-1]["event"] == "close" for lines in journals)
    (driver,) = (lines for lines in journals if lines[0]["role"] == "driver")
    daemons = max(line["pss"] for line in driver if line["event"] == "sample")
    workers = [max(line["pss"] for line in lines if line["event"] == "sample") for lines in journals if lines != driver]
    assert daemons > 100_000_000, "Ray's own processes are the run's, too"
    assert max(workers) / 1e9 < report["pmu_index_gb"] <= (daemons + sum(workers)) / 1e9 + 1e-9
    assert [one["tasks"] for one in report["nodes"]] == [len(mine)]
    assert report["resources"]["executor_start_s"] > 0


GMM = {"name": "gmm", "options": {"components": 4, "iterations": 2, "hours": 1}}


def measured(scene: Any, run: str = "run") -> tuple[ChainRun, list[StepCost]]:
    chain_run = load_partial_run(Folder(str(scene.folder / run)))
    return chain_run, costs_of(chain_run)


def work_of(costs: list[StepCost], name: str) -> float:
    return sum(float(cost.work.sum()) for cost in costs if cost.name == name)


def test_tracks_do_not_multiply_hours(scene: Any) -> None:
    tracks = [{"name": "mfcc", "track": f"of-{count}", "options": {"n_mfcc": count}} for count in (10, 11, 12)]
    scene.run(f"features={json.dumps(tracks)}", "index.shards=2", until="search")
    chain_run, costs = measured(scene)
    hours = chain_run.chain.inputs.hours
    assert work_of(costs, "index") == pytest.approx(3 * 3600 * hours)
    told = forecast(costs, Cluster(start_s=0.0), chain_run.config.executor, hours, hours=10 * hours)
    tasks = {step.name: step.tasks for step in told.steps}
    assert (tasks["index"], tasks["search"]) == (60, 20)


def test_the_whole_run_is_in_its_forecast(counted: tuple[Any, float]) -> None:
    """From its start to its report: of the run itself the forecast is what was measured."""
    scene, _ = counted
    chain_run, costs = measured(scene)
    used, hours = scene.report()["resources"], chain_run.chain.inputs.hours
    assert hours == pytest.approx(used["audio_seconds"] / 3600)
    assert left_out(chain_run, costs) == []
    assert sum(cost.driver_s + cost.span_s for cost in costs) == pytest.approx(used["wall_s"], abs=0.02)
    told = forecast(costs, Cluster(start_s=0.0), chain_run.config.executor, hours, driver_task_s=0.0)
    assert told.took is not None
    assert told.took[1:] == (pytest.approx(used["wall_s"], abs=0.02), 1)
    assert told.wall_s == pytest.approx(used["wall_s"], rel=0.1)
    assert (told.steps[0].name, told.steps[-1].name) == ("start", "report")


@pytest.mark.until("search")
def test_what_is_missing_is_said(scene: Any, tmp_path: Path) -> None:
    store = f"index.store={tmp_path / 'store'}"
    scene.run(store, run="first", until="index")
    scene.run(store, run="second")
    chain_run, costs = measured(scene, "second")
    lacking = left_out(chain_run, costs)
    assert {"reduce", "fit", "report"} <= set(lacking)
    assert not {"index", "search", "start"} & set(lacking)
    with raises(families.MISSING_INPUT):
        forecast(costs, Cluster(), chain_run.config.executor, 0.0)
    assert work_of(costs, "index") == pytest.approx(3600 * chain_run.chain.inputs.hours), "of the run that made it"
    (tmp_path / "store/receipts/index.parquet").unlink()
    assert {*left_out(*measured(scene, "second"))} == {"index", *lacking}


def test_points_are_in_random_order_and_each_comes_once() -> None:
    found = points_of([1, 2, 4], [1, 2], 3, seed=1)
    assert sorted(found) == [BenchPoint(w, x, r) for w in (1, 2, 4) for x in (1, 2) for r in range(3)]
    assert found == points_of([1, 2, 4], [1, 2], 3, seed=1)
    assert found != points_of([1, 2, 4], [1, 2], 3, seed=2)
    assert [one.repeat for one in found] == [0] * 6 + [1] * 6 + [2] * 6
    for wrong in ([], [0], [2, 2]):
        with pytest.raises(UserError, match="--workers"):
            points_of(wrong, [1], 1, 0)


@pytest.mark.slow
def test_from_end_to_end(scene: Any) -> None:
    config, folder, plan = load_config(scene.config), scene.folder / "bench", Plan([1], [1, 2], 1)
    results = run_benchmark(config, folder, plan, print, swsdist.run)
    assert [one.point for one in results.measured] == [BenchPoint(1, 1, 0), BenchPoint(1, 2, 0)]
    once, twice = (one.figures for one in results.measured)
    assert twice["audio_s"] == pytest.approx(2 * once["audio_s"])
    assert twice["query_s"] == once["query_s"]
    for name in ("isf", "ssf", "pmu_index_gb", "pmu_search_gb", "pl", "wall_s", "index_wall_s", "search_wall_s"):
        assert once[name] > 0
    steps = results.measured[0].steps
    assert {"start", "index", "search", "fit", "score", "report"} <= steps.keys()
    assert sum(steps.values()) == pytest.approx(once["wall_s"], abs=0.05), "from start to report"
    assert 0 < once["efficiency"] < 1
    assert once["index_search_wall_s"] < once["wall_s"]
    assert not (folder / "runs" / "w1-x1-r0").exists()
    assert results.measured[0].forecast.keys() == {"w1-x1", "w1-x2"}
    # Of the very run that it was told from, the forecast is what was measured.
    assert results.measured[0].forecast["w1-x1"] == pytest.approx(once["wall_s"], rel=0.25)

    write_page(results, folder)
    assert "<svg" in (folder / "bench.html").read_text("utf-8")
    assert not (folder / "strong-scaling.svg").exists(), "one number of workers"
    assert bench.read_results(str(folder)) == results

    def refuse(path: Path) -> None:
        raise AssertionError(path)

    assert run_benchmark(config, folder, plan, print, refuse) == results  # all is there
    with pytest.raises(AssertionError, match="w1-x1-r1"):
        run_benchmark(config, folder, Plan([1], [1], 2), print, refuse)  # only what is new
    with raises(families.MISMATCH):
        run_benchmark(load_config(scene.config, ["reduce.overlap=0.3"]), folder, plan, print, refuse)


def test_a_run_that_fails_is_told(scene: Any) -> None:
    config = load_config(scene.config)
    broken = config.model_copy(update={"corpus": config.corpus.model_copy(update={"queries": "/gone.csv"})})
    with pytest.raises(IncompleteError, match=r"gone\.csv"):
        run_benchmark(broken, scene.folder / "bench", Plan([1], [1], 1), lambda line: None)


def measurement(workers: int, times: int, repeat: int, wall: float, **figures: float) -> Measurement:
    hardware = [{"nodes": 1, "brand": "x", "cpu": "Chip", "cores": 64, "clock_ghz": 3, "ram_gb": 8, "os": "L"}]
    values: dict[str, float | None] = {"wall_s": wall, **figures}
    forecast = {"w1-x1": 100.0, "w2-x1": 55.0}
    return Measurement(BenchPoint(workers, times, repeat), 0, values, {}, forecast, hardware, {"numpy": "2"}, 0.1)


def results(*all_of: Measurement, config: str = "a: 1\n") -> Results:
    return Results("s", config, "1", None, all_of)


def test_scaling_by_hand() -> None:
    walls = {(1, 1): [100.0, 100.0], (2, 1): [50.0, 50.0], (4, 1): [40.0], (2, 2): [110.0], (4, 4): [125.0]}
    found = {(one.workers, one.times): one for one in bench.strong_scaling(walls)}
    assert found.keys() == {(2, 1), (4, 1)}
    assert found[2, 1].speedup.value == pytest.approx(2)
    assert found[4, 1].per_worker.value == pytest.approx(2.5 / 4)
    weak = {(one.workers, one.times): one.per_worker.value for one in bench.weak_scaling(walls)}
    assert weak == {(2, 2): pytest.approx(100 / 110), (4, 4): pytest.approx(0.8)}


def test_intervals_are_those_of_scipy() -> None:
    first, second = [10.0, 11.0, 12.5, 9.0], [8.0, 8.5, 9.5]
    logs = np.log(first)
    low, high = t.interval(0.95, 3, logs.mean(), logs.std(ddof=1) / 2)
    found: Any = bench.mean(first)
    assert (found.low, found.high) == (pytest.approx(np.exp(low)), pytest.approx(np.exp(high)))
    known = ttest_ind(np.log(first), np.log(second), equal_var=False)
    told: Any = bench.ratio(first, second)
    assert told.p == pytest.approx(known.pvalue)
    interval = known.confidence_interval(0.95)
    assert (told.low, told.high) == (pytest.approx(np.exp(interval.low)), pytest.approx(np.exp(interval.high)))
    assert bench.mean([1.0]) == (pytest.approx(1.0), None, None, 1)
    assert bench.mean([0.0, 1.0]) is None
    assert bench.ratio([], [1.0]) is None


def test_two_results_beside_each_other() -> None:
    walls = {0.0001: (100, 101, 99, 100.5), 0.00011: (80, 81, 79, 80.5)}
    before, after = (
        results(*(measurement(1, 1, k, wall, isf=0.01 + step * k) for k, wall in enumerate(of)))
        for step, of in walls.items()
    )
    told = bench.compare_results(before, after)
    found = {one.figure: one for one in told.differences}
    assert found["wall_s"].beyond_noise
    assert found["wall_s"].ratio.value == pytest.approx(0.8, abs=0.01)
    assert found["isf"].beyond_noise is False
    assert told.notices == ()
    assert json.loads(bench.comparison_json(told))["differences"][0]["beyond_noise"] is True


def test_what_is_not_alike_is_told() -> None:
    before = results(measurement(1, 1, 0, 100.0))
    chip = [{**before.measured[0].hardware[0], "cpu": "Other"}]
    one, more = (measurement(w, 1, 0, 50.0)._replace(hardware=chip, versions={"numpy": "3"}) for w in (1, 2))
    told = bench.compare_results(before, results(one, more, config="a: 2\n"))
    assert [one.beyond_noise for one in told.differences] == [None]
    said = "\n".join(told.notices)
    assert all(word in said for word in ("Chip", "numpy 2 against 3", "a: 2", "2 worker(s) at 1 times"))


def test_what_is_no_result(tmp_path: Path) -> None:
    for text in ("", "{}", '{"schema": "swsdist-bench/0"}', "[1]"):
        (tmp_path / "bench.json").write_text(text)
        with raises(families.WRONG_KIND):
            bench.read_results(str(tmp_path))
