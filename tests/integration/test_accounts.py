"""What the work cost: every task's CPU time, memory by phase, attempts that were lost."""

from __future__ import annotations

import math
import os
from typing import Any

import psutil
import pytest


def test_serial_accounts(scene: Any) -> None:
    cpu = sum(psutil.Process().cpu_times()[:2])
    result = scene.run("index.shards=4")
    spent = sum(psutil.Process().cpu_times()[:2]) - cpu
    mine = scene.all_receipts()
    assert all(receipt.cost.cpu > 0 for receipt in mine)
    assert all(receipt.cost.peak_bytes > 10_000_000 for receipt in mine)
    assert all(receipt.pid == os.getpid() for receipt in mine)
    # CPU times of all tasks are parts of the process's; the kernel counts in ticks of 10 ms, so a little more is possible.
    assert sum(receipt.cost.cpu for receipt in mine) <= spent + 0.1
    report = scene.report()
    assert report["pmu_index_gb"] > 0.05
    assert report["pmu_search_gb"] > 0.05
    assert report["isf"] > 0
    assert report["ssf"] > 0
    assert math.isclose(report["ssf_hours"], 3600 * report["ssf"])
    assert report["repeated_cpu"] == 0
    index = [receipt for receipt in mine if receipt.stage == "index"]
    assert sum(receipt.told["seconds"] for receipt in index) == pytest.approx(report["hours"] * 3600)
    assert math.isclose(report["isf"] * report["hours"] * 3600, sum(receipt.cost.cpu for receipt in index))
    searches = [receipt for receipt in mine if receipt.stage == "search"]
    assert len(searches) == 4
    cells = sum(receipt.cost.cells for receipt in searches)
    (queries,) = (receipt for receipt in mine if receipt.stage == "queries")
    assert cells == queries.told["frames"] * sum(receipt.told["frames"] for receipt in index)
    for receipt in mine:
        assert receipt.cost.bytes_written == sum(output.size for output in receipt.outputs)
        assert receipt.started <= receipt.finished
    assert result.report is not None


def test_work_done_again_is_counted_once(scene: Any) -> None:
    from swsdist.pipeline.course import Choice

    scene.run()
    first = scene.report()
    scene.run(choice=Choice(redo_from="search"))
    again = scene.report()
    assert again["repeated_cpu"] > 0
    assert again["isf"] == first["isf"]
    assert again["ssf"] < 3 * first["ssf"]


@pytest.mark.ray
def test_ray_accounts(scene: Any) -> None:
    scene.sabotage(seconds=0.5)
    done = scene.go("executor.kind=ray", "executor.workers=2", "index.shards=8", "features.name=saboteur")
    assert done.returncode == 0, done.stderr
    mine = scene.all_receipts()
    index = [receipt for receipt in mine if receipt.stage == "index"]
    assert all(receipt.cost.cpu >= 0.45 for receipt in index), "what its threads did in a worker counts"
    assert len({receipt.pid for receipt in index}) == 2
    report = scene.report()
    journals = scene.journals()
    roles = sorted(lines[0]["role"] for lines in journals)
    assert roles == ["driver", "worker", "worker"]
    assert all(lines[-1]["event"] == "close" for lines in journals)
    (driver,) = (lines for lines in journals if lines[0]["role"] == "driver")
    daemons = max(line["pss"] for line in driver if line["event"] == "sample")
    workers = [max(line["pss"] for line in lines if line["event"] == "sample") for lines in journals if lines != driver]
    assert daemons > 100_000_000, "Ray's own processes are the run's, too"
    assert max(workers) / 1e9 < report["pmu_index_gb"] <= (daemons + sum(workers)) / 1e9 + 1e-9
    assert len(report["nodes"]) == 1
    assert report["nodes"][0]["tasks"] == len(mine)
    assert report["resources"]["ray_start_s"] > 0
