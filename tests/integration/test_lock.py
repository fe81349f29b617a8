"""One driver at a time."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process

from swsdist.errors import LockedError
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.driver import Progress
from swsdist.pipeline.lock import Lock, alive, locked, read
from swsdist.store.maintaining import check
from swsdist.store.reading import Store

SLOW = ("features.name=saboteur", "index.shards=7")


@pytest.mark.slow
def test_a_second_driver_is_refused(scene: Any) -> None:
    scene.sabotage(seconds=1.5)
    store = f"index.store={scene.folder / 'store'}"
    first = scene.start(*SLOW, store)
    scene.wait(lambda: (scene.folder / "store" / "lock.json").exists(), first)
    for run in ("run", "other"):  # the same run folder; another one with the same store
        second = scene.go(*SLOW, store, run=run)
        assert second.returncode == 2
        assert f"process {first.pid} on {socket.gethostname()} is working here" in second.stderr
        assert "remedy: " in second.stderr
    assert first.poll() is None
    first.kill()
    first.communicate()
    scene.order.unlink()
    # Its lock is left, and known to be a dead one's at once.
    assert read(Folder(str(scene.folder / "run"))) is not None
    assert scene.go(*SLOW, store).returncode == 0
    assert read(Folder(str(scene.folder / "run"))) is None


def test_two_runs_share_a_store(scene: Any) -> None:
    store = f"index.store={scene.folder / 'store'}"
    first = scene.run(store, "index.shards=3", run="one")
    second = scene.run(store, "search.distance=cosine-squared", run="two")
    assert first.outcome.course.ended["index"].done == 3
    assert second.outcome.course.ended["index"].done == 0
    one, two = scene.digest("one"), scene.digest("two")
    assert one["features"] == two["features"]
    assert one["candidates"] != two["candidates"]
    assert scene.report("two")["isf"] == scene.report("one")["isf"] > 0


def test_held_and_given_back(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    with locked(folder):
        holder = read(folder)
        assert holder is not None
        assert holder["pid"] == os.getpid()
        assert alive(holder)
        with pytest.raises(LockedError, match=f"process {os.getpid()} on"), locked(folder):
            pass
    assert read(folder) is None


def test_one_of_many_gets_it(tmp_path: Path) -> None:
    """Of processes that begin at the same moment."""
    code = (
        "import sys, time\n"
        "from swsdist.errors import LockedError\n"
        "from swsdist.io.filesystem import Folder\n"
        "from swsdist.pipeline.lock import locked\n"
        "time.sleep(max(0.0, float(sys.argv[2]) - time.time()))\n"
        "try:\n"
        "    with locked(Folder(sys.argv[1])):\n"
        "        print('got', flush=True)\n"
        "        sys.stdin.read()\n"
        "except LockedError:\n"
        "    print('refused', flush=True)\n"
    )
    for stale in (False, True):
        if stale:
            (tmp_path / "lock.json").write_text(json.dumps({"host": "gone", "boot": "", "pid": 1, "t": 0.0}))
        start = str(time.time() + 2.0)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(tmp_path), start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        said = [process.stdout.readline().strip() for process in processes if process.stdout is not None]
        for process in processes:
            process.communicate()
        assert sorted(said) == ["got"] + ["refused"] * 5


def test_a_later_process_of_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    with locked(folder):
        holder = read(folder)
    assert holder is not None
    assert alive(holder)
    assert not alive({**holder, "born": holder["born"] - 1})


def test_a_lock_of_another_host_is_stale_after_a_minute(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    other = {"host": "elsewhere", "pid": os.getpid(), "boot": "other", "born": 1, "token": "x"}
    folder.write_bytes("lock.json", json.dumps({**other, "t": time.time() - 59}).encode())
    with pytest.raises(LockedError, match="on elsewhere"), locked(folder):
        pass
    folder.write_bytes("lock.json", json.dumps({**other, "t": time.time() - 61}).encode())
    with locked(folder):
        pass


def test_a_damaged_lock_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text('{"host": "a')
    with locked(Folder(str(tmp_path))):
        pass


def test_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_BEAT", 0.02)
    folder = Folder(str(tmp_path))
    with locked(folder):
        first = read(folder)
        deadline = time.monotonic() + 30
        while (now := read(folder)) == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert first is not None
        assert now is not None
        assert now["t"] > first["t"]
        assert now["token"] == first["token"]


def test_a_lost_lock_is_not_taken_back(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    mine = Lock(folder)
    mine.take()
    mine.check()
    theirs = {"host": "elsewhere", "pid": 1, "boot": "", "born": 1, "token": "theirs", "t": time.time()}
    folder.write_bytes("lock.json", json.dumps(theirs).encode())
    mine.beat()
    mine.release()
    assert read(folder) == theirs
    with pytest.raises(LockedError, match="the lock was lost"):
        mine.check()


def test_a_run_whose_lock_was_lost_stops(scene: Any) -> None:
    class Thief(Progress):
        def task(self, stage: Any, outcome: Any) -> None:
            if stage.name == "search":
                theirs = {"host": "elsewhere", "pid": 1, "boot": "", "token": "theirs", "t": time.time()}
                (scene.folder / "run" / "lock.json").write_text(json.dumps(theirs))

    with pytest.raises(LockedError, match="the lock was lost"):
        scene.run(progress=Thief())
    holder = read(Folder(str(scene.folder / "run")))
    assert holder is not None
    assert holder["token"] == "theirs"
    assert not (scene.folder / "run" / "report.json").exists()


@pytest.mark.slow
def test_a_store_in_its_run_folder_is_kept_while_it_is_indexed(scene: Any, undisturbed: dict[str, str]) -> None:
    """Neither a compaction nor another run that names this store may change it at the same time."""
    scene.sabotage(seconds=1.5)
    driver = scene.start(*SLOW)
    store = scene.folder / "run" / "store"
    scene.wait(lambda: list(store.glob("shards/*.parquet")), driver)
    compacted = in_this_process("store", "compact", str(store))
    other = scene.go("features.name=saboteur", f"index.store={store}", run="other")
    assert driver.poll() is None, "it had ended before the others began: nothing was shown"
    assert (compacted.code, other.returncode) == (2, 2)
    assert "is working here" in compacted.err
    assert "is working here" in other.stderr
    _, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, err
    assert list(check(Store(Folder(str(store))))) == []
    assert {name: scene.digest()[name] for name in ("documents", "features")} == {
        name: undisturbed[name] for name in ("documents", "features")
    }
