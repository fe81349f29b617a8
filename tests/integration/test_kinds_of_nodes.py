"""Nodes of different kinds in one stage, and a second attempt at what hangs: on a real cluster of two nodes on this machine.

One of the nodes says that it has a GPU, which numba's simulator of one takes the place of.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle
from ray.cluster_utils import Cluster

import swsdist
from swsdist.accounts.journal import DriverJournal
from swsdist.config.model import Executor as Settings
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.execution import ray_instance
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Receipt, Task, TaskOutput
from swsdist.stages import steps
from swsdist.stages.search import Search
from swsdist.testing.synthesis import make_corpus
from tests.support.journals import read_journals

pytestmark = pytest.mark.ray
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Idling(Stage):
    """Takes as long as a task says; where it says so, the first attempt hangs."""

    name = "idling"
    version = 1
    unit = "s"
    any_device = True
    tables = {"none": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """The test makes tasks itself."""
        yield from ()

    def run(self, task: Task, context: Context) -> TaskOutput:
        """Leave a file that says who was here."""
        place = context.run.local()
        assert place is not None
        (place / f"{task.label}-{os.getpid()}").write_text(f"{context.granted.gpus:g}")
        hangs = task.payload["hangs"] and len(list(place.glob(f"{task.label}-*"))) == 1
        time.sleep(600.0 if hangs else task.work)
        if hangs:
            (place / "it-was-waited-for").touch()
        return TaskOutput(())


class Together(Search):
    """A search in which a CPU waits until a GPU has done a task: else it might do all of them alone."""

    def run(self, task: Task, context: Context) -> TaskOutput:
        """Leave word, or wait for it."""
        place = context.run.local()
        assert place is not None
        word, deadline = place / "gpu", time.monotonic() + 120
        if context.granted.gpus:
            done = super().run(task, context)
            word.touch()
            return done
        while not word.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return super().run(task, context)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Two nodes of a CPU each; one says that it has a GPU, too."""
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")  # for what the nodes start
    place = tempfile.mkdtemp(prefix="t-", dir="/tmp")  # a socket's path is short
    head = {"num_cpus": 1, "num_gpus": 1, "include_dashboard": False, "temp_dir": place}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1)
        yield str(made.address)
    finally:
        made.shutdown()
        shutil.rmtree(place, ignore_errors=True)


def test_gpu_workers_and_cpu_workers_side_by_side_and_what_hangs_is_tried_again(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []  # of an autoscaler
    monkeypatch.setattr(ray_instance, "request_resources", lambda bundles: asked.append(bundles))
    stage: Any = Idling()
    folder = Folder(str(tmp_path))
    journal = DriverJournal(folder)
    settings = Settings(kind="ray", address=cluster, workers=2, memory_per_worker_gb=0.2)
    executor = RayExecutor(Context(folder, {"idling": stage}), journal, settings)
    tasks = [Task("idling", f"{k:032x}", f"t{k}", 0.3, {"hangs": False}) for k in range(8)]
    tasks.append(Task("idling", f"{8:032x}", "t8", 0.2, {"hangs": True}))
    try:
        needs = (Needs(gpus=1.0, memory_gb=0.2), Needs(memory_gb=0.2))
        ended = [one for _, one in executor.run(tasks, needs, lambda task, part: None)]
        assert not (tmp_path / "it-was-waited-for").exists()
        # The next stage is not held up by what the first left behind.
        later = [Task("idling", f"{k:032x}", f"t{k}", 0.1, {"hangs": False}) for k in range(9, 12)]
        after = [one for _, one in executor.run(later, needs, lambda task, part: None)]
    finally:
        executor.close()
        journal.close()
    assert len(ended) == 9
    assert all(isinstance(one, Receipt) for one in (*ended, *after))
    by_process = {path.name.split("-")[1]: path.read_text() for path in tmp_path.glob("t*-*")}
    assert sorted(by_process.values()) == ["0", "1"], "a worker with a GPU, and one without"
    assert len(list(tmp_path.glob("t8-*"))) == 2
    text = (tmp_path / journal.name).read_text()
    assert text.count('"event": "again"') == 1
    assert asked == [[{"CPU": 1, "memory": 200_000_000}] * 2, []], "room for its workers, and in the end for none"


@pytest.mark.compile
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="the extra gpu is not installed")
def test_a_gpu_and_a_cpu_search_one_run_and_find_the_bytes_of_a_cpu_alone(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_corpus(tmp_path / "corpus", documents=6, queries=3, voices=2)
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    config: dict[str, Any] = {
        "corpus": {name: str(tmp_path / "corpus" / f"{table}.csv") for name, table in tables.items()},
        "index": {"shards": 6},
    }
    alone = swsdist.run({**config, "run": str(tmp_path / "cpu"), "executor": {"kind": "serial"}})
    monkeypatch.setattr(steps, "Search", Together)
    ray = {"kind": "ray", "address": cluster, "memory_per_worker_gb": 0.2, "in_flight": 1}
    mixed = swsdist.run({**config, "run": str(tmp_path / "mixed"), "executor": ray, "search": {"backend": "auto"}})
    assert swsdist.digest(mixed.folder) == swsdist.digest(alone.folder)
    folder = Folder(str(tmp_path / "mixed"))
    ups = [line for lines in read_journals(folder) for line in lines if line["event"] == "up"]
    gpus = {line["pid"]: line["gpus"] for line in ups}  # type: ignore[typeddict-item]
    by = {gpus[pid] for pid in Ledger(folder).receipts("search", "").table()["pid"].to_pylist()}
    assert by == {0.0, 1.0}
