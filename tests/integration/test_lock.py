"""One driver at a time."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from io import UnsupportedOperation
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import LockedError, StorageError
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.lock import Lock, alive, locked, read
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.maintaining import check
from swsdist.store.reading import Store
from tests.support.coded import raises, says

SLOW = ("features.name=saboteur", "index.shards=7")


@pytest.mark.slow
def test_a_second_driver_is_refused(scene: Any) -> None:
    scene.sabotage(hold=0)
    store = f"index.store={scene.folder / 'store'}"
    first = scene.start(*SLOW, store)
    scene.wait(lambda: (scene.folder / "store" / "lock.json").exists(), first)
    for run in ("run", "other"):  # the same run folder; another one with the same store
        second = scene.go(*SLOW, store, run=run)
        assert second.returncode == 2
        assert says(second.stderr, codes.FOLDER_IN_USE)
        assert f"process {first.pid} on {socket.gethostname()} " in second.stderr
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
    assert first.outcome.chain_run.outcomes["index"].done == 3
    assert second.outcome.chain_run.outcomes["index"].done == 0
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


@pytest.mark.slow
@pytest.mark.parametrize("flock", [True, False], ids=["flock", "claims"])
@pytest.mark.parametrize("stale", [False, True], ids=["nobody", "stale"])
def test_one_of_many_gets_it(tmp_path: Path, flock: bool, stale: bool) -> None:
    """Of processes that begin at the same moment; without flock as on some network file systems."""
    code = (
        "import fcntl, sys\n"
        "from swsdist.core.errors import LockedError\n"
        "from swsdist.io.filesystem import Folder\n"
        "from swsdist.pipeline import lock\n"
        "def flock(*_): raise OSError(95, 'not supported')\n"
        f"if not {flock}: fcntl.flock = flock\n"
        "lock.STALE_AFTER = 1.0\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    with lock.locked(Folder(sys.argv[1])):\n"
        "        print('got', flush=True)\n"
        "        sys.stdin.read()\n"
        "except LockedError:\n"
        "    print('refused', flush=True)\n"
    )
    if stale:
        (tmp_path / "lock.json").write_text(json.dumps({"host": "gone", "boot": "", "pid": 1, "t": 0.0}))
    processes: list[Any] = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.stdout.readline().strip() for process in processes]
    for process in processes:
        process.communicate()
    assert sorted(said) == ["got"] + ["refused"] * 5


def test_who_read_nobody_just_before_another_began_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no flock: the winner's lock is not written over."""

    def flock(*_: Any) -> None:
        raise OSError(95, "not supported")

    folder = Folder(str(tmp_path))
    Lock(folder).take()
    winner = read(folder)
    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(Lock, "_watch", lambda self: None)
    with raises(codes.FOLDER_IN_USE):
        Lock(folder).take()
    assert read(folder) == winner
    assert not list((tmp_path / ".tmp").iterdir())


def test_who_died_alone_keeps_nobody_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no flock, a process that is killed may leave its claim."""

    def flock(*_: Any) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(lock, "STALE_AFTER", 0.2)
    claim = tmp_path / ".tmp" / "lock.claim"
    claim.parent.mkdir()
    claim.touch()
    with locked(Folder(str(tmp_path))):
        assert not claim.exists()


def test_a_later_process_of_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    with locked(folder):
        holder = read(folder)
    assert holder is not None
    assert alive(holder)
    assert not alive({**holder, "born": holder["born"] - 1})


@pytest.mark.parametrize("off", [-3600.0, 0.0, 3600.0])
def test_a_lock_of_another_host_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    """Whatever its clock says: it is not taken from a holder that lives, nor kept for one that is gone."""
    monkeypatch.setattr(lock, "STALE_AFTER", 0.5)
    monkeypatch.setattr(lock, "_LOOK", 0.02)
    folder = Folder(str(tmp_path))
    other = {"host": "elsewhere", "pid": 77, "boot": "other", "born": 1, "token": "x"}
    sleep = time.sleep

    def beat(seconds: float = 0.0) -> None:
        sleep(seconds)
        folder.write_bytes("lock.json", json.dumps({**other, "t": time.time() + off}).encode())

    beat()
    told: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", beat)  # it lives: its heart beats between two looks, however busy the machine is
        with pytest.raises(LockedError, match="process 77 on elsewhere"), locked(folder, told.append):
            pass
    assert told == [f"process 77 on elsewhere may work in {tmp_path}: waiting for a heartbeat"]
    began = time.monotonic()
    with locked(folder):
        assert time.monotonic() - began >= 0.5
        holder = read(folder)
        assert holder is not None
        assert holder["pid"] == os.getpid()


def test_one_dead_process_is_watched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a driver died it held the run and the store: who takes over waits for a sign of life of it, not of each lock."""
    monkeypatch.setattr(lock, "STALE_AFTER", 0.3)
    monkeypatch.setattr(lock, "_LOOK", 0.05)
    run, store, other = (Folder(str(tmp_path / name)) for name in ("run", "store", "other"))
    died = {"host": "elsewhere", "pid": 7, "boot": "one", "born": 70, "t": 0.0}
    for folder in (run, store):
        folder.write_bytes("lock.json", json.dumps({**died, "token": folder.root}).encode())
    other.write_bytes("lock.json", json.dumps({**died, "born": 71, "token": "other"}).encode())
    told: list[str] = []
    with locked(run, told.append) as mine:
        assert len(told) == 1
        with locked(store, told.append, mine.replaced):
            assert len(told) == 1
        with locked(other, told.append, mine.replaced):
            assert len(told) == 2, "another process, which has the dead one's number"


@pytest.mark.parametrize("server", ["conditions", "heedless", "none"])
def test_on_s3(s3: Any, monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    """By conditional writes; or without, where the server does not heed them, or says that it does not know them."""
    monkeypatch.setattr(lock, "STALE_AFTER", 0.3)
    monkeypatch.setattr(lock, "_LOOK", 0.05)
    monkeypatch.setattr(lock, "_SETTLE", 0.05)
    folder = Folder(f"s3://{s3.bucket}/lock-{server}", s3.storage)
    if server == "heedless":
        write = lambda self, name, data, _: self.write_bytes(name, data) or "identity"  # noqa: E731
        monkeypatch.setattr(Folder, "write_if_unchanged", write)
    elif server == "none":

        def unknown(*_: Any) -> None:
            raise UnsupportedOperation("not implemented")

        monkeypatch.setattr(Folder, "write_if_unchanged", unknown)
    mine, late = Lock(folder), Lock(folder)
    mine.take()
    mine.beat()
    mine.check()
    if server == "conditions":
        monkeypatch.setattr(late, "_watch", lambda: None)  # it read "nobody" just before
        with raises(codes.LOCK_CONFLICT):
            late.take()
        monkeypatch.undo()
        mine.check()
    with raises(codes.FOLDER_IN_USE):
        late.take()
    theirs = {"host": "elsewhere", "pid": 1, "boot": "", "born": 1, "token": "theirs", "t": time.time()}
    folder.write_bytes("lock.json", json.dumps(theirs).encode())
    mine.beat()
    assert read(folder) == theirs, "a heartbeat is not written over another's lock"
    monkeypatch.setattr(lock, "STALE_AFTER", 0.3)
    late.take()
    late.check()
    late.release()
    assert read(folder) is None


def test_a_conditional_write(s3: Any, tmp_path: Path) -> None:
    folder = Folder(f"s3://{s3.bucket}/conditional", s3.storage)
    first = folder.write_if_unchanged("file", b"one", None)
    assert first == folder.identity("file")
    assert folder.write_if_unchanged("file", b"two", None) is None
    second = folder.write_if_unchanged("file", b"three", first)
    assert second == folder.identity("file") != first
    assert folder.write_if_unchanged("file", b"four", first) is None
    assert folder.read_bytes("file") == b"three"
    assert folder.write_if_unchanged("nothing", b"five", first) is None
    with pytest.raises(UnsupportedOperation):
        Folder(str(tmp_path)).write_if_unchanged("file", b"one", None)
    with pytest.raises(StorageError, match="no such bucket"):
        Folder("s3://no-such-bucket-here/a", s3.storage).write_if_unchanged("file", b"one", None)


def test_a_damaged_lock_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text('{"host": "a')
    with locked(Folder(str(tmp_path))):
        pass


def test_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_BEAT", 0.02)
    folder = Folder(str(tmp_path))
    with locked(folder):
        first = read(folder)
        deadline = time.monotonic() + 240
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
    with raises(codes.LOCK_LOST):
        mine.check()


@pytest.mark.slow
def test_a_store_in_its_run_folder_is_kept_while_it_is_indexed(scene: Any, undisturbed: dict[str, str]) -> None:
    """Neither a compaction nor another run that names this store may change it at the same time."""
    scene.sabotage(hold=2)  # of which one fills a shard
    driver = scene.start(*SLOW)
    store = scene.folder / "run" / "store"
    scene.wait(lambda: list(store.glob("shards/*.parquet")), driver)
    compacted = in_this_process("store", "compact", str(store))
    other = scene.go("features.name=saboteur", f"index.store={store}", run="other")
    assert driver.poll() is None, "it had ended before the others began: nothing was shown"
    assert (compacted.code, other.returncode) == (2, 2)
    assert says(compacted.err, codes.FOLDER_IN_USE)
    assert says(other.stderr, codes.FOLDER_IN_USE)
    scene.order.unlink()
    _, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, err
    assert list(check(Store(Folder(str(store))))) == []
    assert {name: scene.digest()[name] for name in ("documents", "features")} == {
        name: undisturbed[name] for name in ("documents", "features")
    }


class Taken(Progress):
    """Another driver takes the run's folder over when a stage has ended, and writes its plan."""

    def __init__(self, run: Path, stage: str) -> None:
        self._run, self._stage = run, stage

    def step_ends(self, step: Any, wall: float) -> None:
        """That stage has ended."""
        if step.name == self._stage:
            holder = json.loads((self._run / "lock.json").read_text())
            (self._run / "lock.json").write_text(json.dumps({**holder, "token": "theirs"}))
            (self._run / "plan.json").write_text("theirs")


@pytest.mark.parametrize("stage", ["index", "search", "decide", "summarise", "format", "export"])
def test_what_another_driver_wrote_since_it_took_over_stays(scene: Any, stage: str) -> None:
    run = scene.folder / "run"
    with raises(codes.LOCK_LOST):
        scene.run(progress=Taken(run, stage))
    assert (run / "plan.json").read_text() == "theirs"
    assert not (run / "report.json").exists()
