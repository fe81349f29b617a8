"""Killed at any moment and started again, a run goes on where it was, and the bytes are the same."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import pyarrow.parquet as pq
import pytest

from swsdist import open_store
from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import status

SHARDS = ("index.shards=7", "reduce.buckets=5")
SLOW = ("features.name=saboteur",)


@pytest.mark.slow
def test_driver_killed_serial(scene: Any, undisturbed: dict[str, str]) -> None:
    chance = random.Random(1)
    for _ in range(3):
        process = scene.start(*SHARDS)
        before = len(scene.receipts())
        target = before + chance.randrange(0, 9)
        while process.poll() is None and len(scene.receipts()) < target:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.1 if target > before else chance.random() * 3)
        process.kill()
        process.communicate()
    receipts = scene.receipts()
    scene.run(*SHARDS)
    assert scene.digest() == undisturbed
    assert receipts.items() <= scene.receipts().items(), "a task that had its receipt was done again"
    assert scene.reported()
    assert not (scene.folder / "run" / "lock.json").exists()


@pytest.mark.ray
def test_driver_killed_ray(scene: Any, undisturbed: dict[str, str], ray_left: Any) -> None:
    scene.sabotage(seconds=0.3)
    ray = ("executor.kind=ray", "executor.workers=2", *SLOW, *SHARDS)
    for target in (2, 9):
        process = scene.start(*ray)
        scene.wait(lambda target=target: len(scene.receipts()) >= target, process)
        assert ray_left.processes()
        process.kill()
        process.communicate()
        assert status(Folder(str(scene.folder / "run"))).state == "died"
        scene.wait(lambda: not ray_left.processes())
        assert not ray_left.folders()
    receipts = scene.receipts()
    last = scene.go(*SLOW, *SHARDS)  # what was begun on Ray goes on without, as the second driver went on with it
    assert last.returncode == 0, last.stderr
    assert scene.digest() == undisturbed
    assert receipts.items() <= scene.receipts().items()
    assert status(Folder(str(scene.folder / "run"))).state == "done"
    assert not ray_left.folders()
    assert not ray_left.processes()


def workers_at(scene: Any, stage: str, event: str = "begin") -> list[int]:
    """Processes of workers whose last task is of a stage and goes on."""
    found = []
    for lines in scene.journals():
        mine = [line for line in lines if line["event"] in ("begin", "end")]
        if lines[0]["role"] == "worker" and mine and mine[-1]["event"] == event and mine[-1]["stage"] == stage:
            found.append(lines[0]["pid"])
    return found


def _has_worked(scene: Any, pid: int) -> bool:
    """Whether a worker has told of CPU time that its last task took."""
    (lines,) = (lines for lines in scene.journals() if lines[0]["pid"] == pid)
    begun = max(k for k, line in enumerate(lines) if line["event"] == "begin")
    return lines[-1].get("cpu", 0.0) > lines[begun]["cpu"] + 0.2


@pytest.mark.ray
def test_worker_killed(scene: Any, undisturbed: dict[str, str]) -> None:
    scene.sabotage(seconds=3600.0)
    process = scene.start("executor.kind=ray", "executor.workers=2", *SLOW, *SHARDS)
    killed = []
    for _ in range(2):
        pids = scene.wait(lambda: [pid for pid in workers_at(scene, "index") if pid not in killed], process)
        scene.wait(lambda pid=pids[0]: _has_worked(scene, pid), process)
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])
    scene.order.unlink()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert scene.digest() == undisturbed
    report = scene.report()
    assert report["repeated_cpu"] > 0
    assert scene.rejected() == []
    roles = [lines[0]["role"] for lines in scene.journals()]
    assert roles.count("worker") == 4
    dead = [lines for lines in scene.journals() if lines[0]["pid"] in killed]
    assert all(lines[-1]["event"] != "close" for lines in dead)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "kind"),
    [
        (signal.SIGTERM, 143, "serial"),
        (signal.SIGINT, 130, "serial"),
        pytest.param(signal.SIGTERM, 143, "ray", marks=pytest.mark.ray),
        pytest.param(signal.SIGINT, 130, "ray", marks=pytest.mark.ray),
    ],
)
def test_signals(scene: Any, ray_left: Any, number: int, code: int, kind: str) -> None:
    scene.sabotage(hold=3)  # recordings, of which two may be a task's
    process = scene.start(f"executor.kind={kind}", "executor.workers=2", *SLOW, *SHARDS)
    scene.wait(lambda: len(scene.receipts()) >= 2, process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    scene.order.unlink()  # what is in hand may come to its end
    _, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert not (scene.folder / "run" / "lock.json").exists()
    scene.wait(lambda: not ray_left.processes())
    assert not ray_left.folders()
    done = len(scene.receipts())
    assert 2 <= done < 30
    assert not list((scene.folder / "run").glob("**/.tmp/*"))
    ended = "interrupted" if number == signal.SIGINT else "terminated"
    assert status(Folder(str(scene.folder / "run"))).state == ended
    indexed = sum(name.startswith("index-") for name in scene.receipts())
    assert len(open_store(str(scene.folder / "run" / "store")).manifest.shards) == indexed


@pytest.mark.ray
def test_terminated_while_ray_starts(scene: Any, ray_left: Any) -> None:
    process = scene.start("executor.kind=ray")
    scene.wait(ray_left.folders, process)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 143, err
    scene.wait(lambda: not ray_left.processes())
    assert not ray_left.folders()
    assert not (scene.folder / "run" / "lock.json").exists()


@pytest.mark.until("decide")
def test_lost_outputs_are_made_again(scene: Any, undisturbed: dict[str, str]) -> None:
    scene.run(*SHARDS)
    first = scene.receipts()
    victims = sorted((scene.folder / "run" / "tables" / "candidates").iterdir())[:2]
    victims[0].unlink()
    victims[1].write_bytes(victims[1].read_bytes()[:-1])
    pack = scene.folder / "run" / "receipts" / "reduce.parquet"
    pq.write_table(pq.read_table(pack).slice(1), pack)  # a receipt is gone
    result = scene.run(*SHARDS)
    assert {name: ended.done for name, ended in result.outcome.chain_run.outcomes.items() if ended.done} == {
        "search": 2,
        "reduce": 1,
    }
    assert scene.digest() == undisturbed
    assert sum(first[name] == time for name, time in scene.receipts().items()) == len(first) - 3


def test_what_killed_writers_left_is_removed(scene: Any) -> None:
    place = scene.folder / "run" / "store" / ".tmp"
    place.mkdir(parents=True)
    old, new = place / "swsdist-old.parquet", place / "swsdist-new.parquet"
    for path in (old, new):
        path.write_bytes(b"half a shard")
    os.utime(old, (time.time() - 4000, time.time() - 4000))
    scene.run(until="index")
    assert [path.name for path in place.iterdir()] == ["swsdist-new.parquet"]
