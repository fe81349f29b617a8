"""Executors keep their interface's rules; on Dask, here and on a cluster, the bytes are those of a serial run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from swsdist.accounts.journal import DriverJournal
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import families
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.task import Task
from swsdist.testing.conformance import check_executor
from swsdist.testing.conformance.executor import Trial
from tests.support.coded import raises

SETS = ("executor.kind=dask", "executor.workers=2", "executor.memory_per_worker_gb=0.2", "index.shards=7")
SLOW = "features.name=saboteur"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serial", pytest.param("ray", marks=pytest.mark.ray)])
def test_rules_of_executors(name: str) -> None:
    check_executor(name)


@pytest.fixture
def installed() -> None:
    pytest.importorskip("distributed")


def left(process: Any) -> list[psutil.Process]:
    found = []
    for item in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if item.pid != process.pid == os.getpgid(item.pid) and item.status() != psutil.STATUS_ZOMBIE:
                found.append(item)
    return found


@pytest.mark.slow
def test_a_worker_that_is_killed(installed: None, scene: Any, undisturbed: dict[str, str]) -> None:
    scene.sabotage(seconds=3600.0)
    process = scene.start(*SETS, SLOW)

    def at_work() -> list[int]:
        found = []
        for lines in scene.journals():
            begun = [line["cpu"] for line in lines if line["event"] == "begin"]
            if lines[0]["role"] == "worker" and begun and lines[-1].get("cpu", 0.0) > begun[-1] + 0.2:
                found.append(lines[0]["pid"])
        return found

    os.kill(scene.wait(at_work, process)[0], signal.SIGKILL)
    scene.order.unlink()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert "distributed" not in err
    assert scene.digest() == undisturbed
    report = scene.report()
    assert report["repeated_cpu"] > 0
    assert report["resources"]["executor_start_s"] > 0
    journals = scene.journals()
    assert [lines[0]["role"] for lines in journals].count("worker") == 3
    assert sum(lines[-1]["event"] != "close" for lines in journals) == 1
    assert not left(process)


@pytest.mark.slow
def test_an_interrupted_run(installed: None, scene: Any) -> None:
    scene.sabotage(hold=3)
    process = scene.start(*SETS, SLOW)
    scene.wait(lambda: len(scene.receipts()) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert 2 <= len(scene.receipts()) < 30
    scene.wait(lambda: not left(process))


@pytest.fixture
def address(installed: None, env: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A cluster of Dask with two workers, which gives a task up after two deaths."""
    file, processes = tmp_path / "scheduler.json", []
    own = {**env, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    for words in ("scheduler --host=127.0.0.1 --port=0", "worker --nworkers=2 --nthreads=1 --resources=GPU=1"):
        command = [sys.executable, "-m", "dask", *words.split(), "--no-dashboard", f"--scheduler-file={file}"]
        with (tmp_path / f"{words[:6]}.log").open("w") as log:
            processes.append(subprocess.Popen(command, env=own, stdout=log, stderr=log, cwd=tmp_path))
    try:
        from distributed import Client

        with Client(scheduler_file=str(file), set_as_default=False, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            yield client.scheduler.address
            assert len(client.nthreads()) == 2, "the cluster goes on"
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


@pytest.mark.slow
def test_a_cluster_is_used_by_what_it_has(
    address: str, scene: Any, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    check_executor("dask", address=address)
    scene.env["DASK_SCHEDULER_ADDRESS"] = address
    done = scene.go(*SETS)
    assert done.returncode == 0, done.stderr
    assert scene.digest() == undisturbed
    assert all(lines[-1]["event"] == "close" for lines in scene.journals())
    from swsdist.pipeline.execution.dask_executor import DaskExecutor

    folder = Folder(str(tmp_path / "trial"))
    journal = DriverJournal(folder)
    settings = Settings(kind="dask", address=address, gpus_per_worker=0.5)
    executor = DaskExecutor(Context(folder, {"trial": Trial()}), journal, settings)
    tasks: list[Task] = [Task("trial", "a", "a", 1.0, "write")]

    def run(needs: Needs) -> Any:
        return next(executor.run(tasks, [needs], lambda *_: None))[1]

    try:
        assert run(Needs(gpus=1.0)).outputs
        for needs in (Needs(memory_gb=1e6), Needs(gpus=2.0, memory_gb=1e6)):
            with raises(families.NO_WORKER):
                run(needs)
    finally:
        executor.close()
        journal.close()
