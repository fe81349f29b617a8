"""A run is looked at, cancelled and cleaned up by its folder alone; one driver at a time; progress within tasks."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import UnsupportedOperation
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process

from swsdist.accounts.journal import Journal, last_part
from swsdist.cli.progress import _Pace, events_to, with_point_count
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline import status as inspected
from swsdist.pipeline.chain_run import Outcome
from swsdist.pipeline.execution import executor
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.lock import Lock, alive, locked, read
from swsdist.pipeline.operation import cleaning as cancelling
from swsdist.pipeline.operation import monitor as watching
from swsdist.pipeline.operation import progress as run_status
from swsdist.pipeline.operation.cleaning import clean, readers_of
from swsdist.pipeline.operation.monitor import EVENTS, Follower, RunMonitor, monitored
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import _process, status
from swsdist.pipeline.task import Failure, Task
from swsdist.store.maintaining import check
from swsdist.store.reading import Store
from tests.support.coded import raises, says
from tests.support.journals import read_journals

SHARDS = ("index.shards=7", "reduce.buckets=5")
SLOW = ("features.name=saboteur",)
swsdist = expecting(in_this_process)


def events_of(run: Path) -> list[dict[str, Any]]:
    return list(Follower(Folder(str(run))).new())


@pytest.mark.slow
def test_events_tell_a_run_from_its_first_to_its_last(scene: Any, tmp_path: Path) -> None:
    """In the run folder and in the file that was asked for, with the fields that the schema has."""
    done = scene.here(*SHARDS, flags=("--events", str(tmp_path / "events.jsonl")))
    assert done.code == 0, done.err
    told = events_of(scene.folder / "run")
    assert told == [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [told[0]["event"], told[-1]["event"], told[-1]["state"]] == ["run-begun", "run-ended", "done"]
    for line in told:
        assert set(line) == {"event", "t", "run", *EVENTS[line["event"]]}
    ended = {line["task"] for line in told if line["event"] == "task-ended"}
    assert ended == {name.rpartition("-")[2] for name in scene.receipts()}
    stages = [line["stage"] for line in told if line["event"] == "stage-begun"]
    assert stages == [line["stage"] for line in told if line["event"] == "stage-ended"]
    again = scene.here(*SHARDS, flags=("--events", "-"))
    nothing = [json.loads(line) for line in again.out.splitlines()]
    assert [line["event"] for line in nothing] == ["run-begun", "run-ended"]
    assert events_of(scene.folder / "run") == [*told, *nothing]


def test_retries_and_failures_are_told(scene: Any) -> None:
    length = soundfile.info(next((scene.corpus / "audio").glob("d003.*"))).frames
    scene.sabotage(how="system", samples=[length])
    done = scene.go("executor.attempts=2", *SLOW, *SHARDS)
    assert done.returncode == 4, done.stderr
    told = events_of(scene.folder / "run")
    assert [line["attempt"] for line in told if line["event"] == "task-retried"] == [1]
    (failed,) = (line for line in told if line["event"] == "task-failed")
    assert failed["attempts"] == 2
    assert "sabotaged disk" in failed["message"]
    assert told[-1]["state"] == "incomplete"
    found = status(Folder(str(scene.folder / "run")))
    assert (found.state, found.ended) == ("incomplete", told[-1]["message"])


@pytest.mark.slow
def test_status_of_a_run_that_works_reads_no_receipts(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the driver's word and the ends of journals."""
    scene.sabotage(hold=2)
    process = scene.start(*SLOW, *SHARDS)
    run = Folder(str(scene.folder / "run"))
    try:
        scene.wait(
            lambda: any(one.done for one in (run_status.read(run) or run_status.RunStatus("", "", 0)).stages), process
        )
        read: list[str] = []
        whole = Folder.read_bytes
        monkeypatch.setattr(Folder, "read_bytes", lambda self, name: read.append(name) or whole(self, name))
        found = status(run)
        monkeypatch.undo()
        assert found.state == "running"
        assert {*read} <= {"lock.json", "status.json"}
        assert found.stages[0].stage == "index"
        assert 0 < found.stages[0].done <= 7 == found.stages[0].tasks
        assert [one.role for one in found.processes] == ["driver"]
        assert found.eta_s is not None
    finally:
        process.kill()
        process.communicate()
    assert status(run).state == "died"


def test_a_long_journal_is_read_from_its_end(tmp_path: Path) -> None:
    run = Folder(str(tmp_path))
    journal = Journal(run, "worker")
    journal.write("begin", stage="search", phase="search", fingerprint="abc")
    with (tmp_path / journal.name).open("a") as file:
        file.writelines(
            '{"event": "sample", "t": 1.0, "cpu": 1.0, "phase": "search", "pss": 1000}\n' for _ in range(9000)
        )
    journal.close = lambda: None  # type: ignore[method-assign]
    lines = inspected._end(run, journal.name, None)
    assert inspected._process(lines).stage == "search"
    assert lines[0]["event"] == "open"


def test_a_journal_that_is_put_anew_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    run = Folder(str(tmp_path))
    journal = Journal(run, "worker")
    journal.close()
    left = [storage_codes.OBJECT_CHANGED(where="x")] * 4
    whole = Folder.open
    monkeypatch.setattr(
        Folder, "open", lambda self, name, **how: throw(left.pop()) if left else whole(self, name, **how)
    )
    assert inspected._end(run, journal.name, None)[0]["event"] == "open"
    left += [storage_codes.PERMISSION_DENIED(where="x", detail="")]
    with raises(storage_codes.PERMISSION_DENIED):
        inspected._end(run, journal.name, None)


def throw(error: Exception) -> NoReturn:
    raise error


@pytest.mark.ray
def test_cancel(scene: Any, undisturbed: dict[str, str], ray_left: Any) -> None:
    """The driver ends before its tasks have, keeps what it has, says so, and the next one goes on to the same bytes."""
    scene.sabotage(hold=3)  # recordings, of which two may be a task's
    sets = ("executor.kind=ray", "executor.workers=2", *SLOW, *SHARDS)
    process = scene.start(*sets)
    scene.wait(lambda: len(scene.receipts()) >= 2, process)
    assert swsdist("cancel", str(scene.folder / "run")).out == "cancelled\n"
    out, err = process.communicate(timeout=240)
    assert process.returncode == 143, err
    assert says(err, codes.RUN_CANCELLED)
    assert "Traceback" not in out + err
    run = Folder(str(scene.folder / "run"))
    assert status(run).state == "cancelled"
    swsdist("status", "--check", run.root, code=143)
    assert not run.exists("lock.json")
    assert not run.exists("cancel.json")
    assert events_of(scene.folder / "run")[-1]["state"] == "cancelled"
    assert {lines[-1]["event"] for lines in scene.journals() if lines[0]["role"] == "driver"} == {"close"}
    scene.wait(lambda: not ray_left.processes())
    receipts = scene.receipts()
    assert 2 <= len(receipts) < 30
    scene.order.unlink()
    assert scene.go(*SLOW, *SHARDS).returncode == 0
    assert scene.digest() == undisturbed
    assert receipts.items() <= scene.receipts().items()
    assert status(run).state == "done"


@pytest.fixture
def asked_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunMonitor]:
    """A driver that works in a folder, and heeds SIGTERM as the command line does; somebody wants it to end."""
    monkeypatch.setattr(watching, "_LOCAL", 0.02)
    monkeypatch.setattr(watching, "_PATIENCE", 0.1)
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    run = Folder(str(tmp_path))
    try:
        with lock.locked(run) as mine:
            text = json.dumps({"token": mine.identity()["token"], "host": "h", "t": time.time()})
            run.write_bytes(cancelling.NAME, text.encode())
            with monitored(Outcome(Ledger(run), {}, time.time()), Progress()) as watch:
                watch._open()
                yield watch
    finally:
        signal.signal(signal.SIGTERM, before)


def test_no_signal_breaks_what_is_closed_after_a_request(asked_to_end: RunMonitor, tmp_path: Path) -> None:
    def heed() -> NoReturn:
        while True:
            asked_to_end._obey()
            time.sleep(0.01)

    with raises(codes.RUN_CANCELLED, host="h"):
        heed()
    time.sleep(0.5)  # as Ray takes to close
    asked_to_end.finish("cancelled", "")
    found = run_status.read(Folder(str(tmp_path)))
    assert found is not None
    assert found.state == "cancelled"


def test_a_run_that_heeds_no_request_is_ended_by_a_signal(asked_to_end: RunMonitor) -> None:
    with pytest.raises(SystemExit, match="143"):
        threading.Event().wait(240)  # the signal ends it
    assert asked_to_end.cancel_requested


def test_a_signal_at_the_very_end_leaves_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Folder(str(tmp_path))
    written: list[str] = []
    whole = Folder.write_bytes

    def write(self: Folder, name: str, data: bytes) -> None:
        written.append(name)
        if written.count(run_status.NAME) == 1 and name == run_status.NAME:
            sys.exit(143)
        whole(self, name, data)

    def work() -> None:
        with monitored(Outcome(Ledger(run), {}, time.time()), Progress()) as watch:
            watch._open()
            watch._stop.set()
            watch._thread.join()

    with lock.locked(run):
        monkeypatch.setattr(Folder, "write_bytes", write)
        with pytest.raises(SystemExit, match="143"):
            work()
    found = run_status.read(run)
    assert found is not None
    assert found.state == "done"
    assert [line["event"] for line in events_of(tmp_path)] == ["run-begun", "run-ended"]


def test_a_request_for_another_driver_ends_nobody(finished: Any) -> None:
    run = Folder(str(finished.folder / "run"))
    assert says(swsdist("cancel", run.root, code=2).err, families.NOT_RUNNING)
    run.write_bytes(cancelling.NAME, json.dumps({"token": "an earlier one", "host": "h", "t": 0.0}).encode())
    assert cancelling.requested(run, "mine") is None
    finished.run("reduce.buckets=3", until="reduce")


@pytest.mark.ray
def test_sigterm_ends_a_run_though_a_task_is_long(scene: Any, ray_left: Any) -> None:
    scene.sabotage(hold=0)
    process = scene.start("executor.kind=ray", "executor.workers=2", *SLOW, *SHARDS)
    begun = lambda: [lines for lines in scene.journals() if lines[0]["role"] == "worker" and lines[-1].get("phase")]  # noqa: E731
    scene.wait(begun, process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 143, err
    scene.wait(lambda: not ray_left.processes())
    assert not ray_left.folders()
    assert events_of(scene.folder / "run")[-1]["state"] == "terminated"
    assert {lines[-1]["event"] for lines in scene.journals() if lines[0]["role"] == "driver"} == {"close"}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_clean_removes_what_dead_processes_left(finished: Any) -> None:
    run = finished.folder / "run"
    (run / ".tmp").mkdir(exist_ok=True)
    for name, age in (("old.parquet", 7200), ("new.parquet", 60)):
        (run / ".tmp" / name).write_bytes(b"half")
        os.utime(run / ".tmp" / name, (time.time() - age, time.time() - age))
    gone = {**lock.Lock(Folder(str(run))).identity(), "pid": 2**22 - 1, "born": 1, "t": time.time()}
    (run / "lock.json").write_text(json.dumps(gone))
    (run / "cancel.json").write_text("{}")
    (run / "store" / "readers").mkdir()
    (run / "store" / "readers" / "x.json").write_text(json.dumps(gone))
    names = {one.name for one in clean(Folder(str(run)), 1.0, dry=False)[0]}
    assert names == {".tmp/old.parquet", "lock.json", "cancel.json", "readers/x.json"}
    assert (run / ".tmp" / "new.parquet").exists()
    assert not (run / "lock.json").exists()


@pytest.mark.slow
def test_clean_and_compact_leave_what_a_reader_holds(own_corpus: Any) -> None:
    """A run that searches a store marks it; until it has ended, or died, earlier states of the store stay."""
    own_corpus.select(*range(1, 7))
    own_corpus.run("index.shards=3")
    own_corpus.select(*range(1, 6))
    own_corpus.run("index.shards=3")
    store = own_corpus.folder / "run" / "store"
    folder = Folder(str(store))
    other = {**lock.Lock(folder).identity(), "pid": 1, "born": lock._born(1), "t": time.time()}
    (store / "readers").mkdir()
    (store / "readers" / "other.json").write_text(json.dumps(other))
    assert [one["pid"] for one in readers_of(folder).living] == [1]
    found, kept = clean(folder, 0.0, dry=True)
    assert found == []
    assert "process 1 on" in kept[0].why
    shards = files(store / "shards")
    told = swsdist("store", "compact", str(store)).out
    assert f"the old shards are kept; to remove them after an hour: swsdist clean {store}" in told
    assert shards < files(store / "shards")
    (store / "readers" / "other.json").unlink()
    own_corpus.run("index.shards=3")  # else the run beside the store names the state before
    assert clean(folder, 1.0, dry=True)[0] == [], "it changed just now"
    swsdist("clean", str(store), "--older", "0")
    assert not shards & files(store / "shards")
    assert swsdist("store", "check", str(store)).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("off", [-3600, 3600])
def test_a_reader_or_driver_whose_clock_is_off_lives(off: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another host: it is watched, and what its clock says is not believed."""
    monkeypatch.setattr(lock, "_LOOK", 0.02)
    monkeypatch.setattr(lock, "_BEAT", 0.2)
    run = Folder(str(tmp_path))
    late = {**lock.Lock(run).identity(), "host": "elsewhere", "t": time.time() + off}

    def put(name: str, beat: int) -> None:
        run.write_bytes(name, json.dumps({**late, "beat": beat}).encode())

    put("lock.json", 0)
    put("readers/a.json", 0)
    assert not lock.lives(run, late)
    assert cancelling.wait(run, late["token"], 9) == "ended"
    assert readers_of(run).dead == ["readers/a.json"]
    ended = threading.Event()

    def beat() -> None:
        for k in itertools.count(1):
            put("lock.json", k)
            put("readers/a.json", k)
            if ended.wait(0.1):
                return

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        assert lock.lives(run, late)
        with raises(codes.STILL_RUNNING):
            cancelling.wait(run, late["token"], 0.5)
        assert readers_of(run).dead == []
        assert [one["host"] for one in readers_of(run).living] == ["elsewhere"], "its number is that of this process"
    finally:
        ended.set()
        thread.join()


def test_a_worker_that_died_is_told_by_its_journal(tmp_path: Path) -> None:
    """Not by its number: one that never came up has none, and those of two hosts may be equal."""
    watch = RunMonitor(Outcome(Ledger(Folder(str(tmp_path))), {}, time.time()), Progress())
    names = [f"accounts/worker-ip-10-0-0-7-{pid}-ab.jsonl" for pid in (4, 5)]
    for pid, name in zip((4, 5), names, strict=True):
        watch.journal_event("up", {"host": "h", "pid": pid, "journal": name})
    watch.journal_event("died", {"pid": 0, "journal": "", "lost": [], "message": ""})
    assert watch._status.journals == names
    watch.journal_event("died", {"pid": 4, "journal": names[0], "lost": [], "message": ""})
    assert watch._status.journals == names[1:]


SEVEN = ("features.name=saboteur", "index.shards=7")


@pytest.mark.slow
def test_a_second_driver_is_refused(scene: Any, undisturbed: dict[str, str]) -> None:
    """So are a compaction and another run that names the store of the first; what a dead one leaves is taken over at once."""
    scene.sabotage(hold=2)  # of which one fills a shard
    first = scene.start(*SEVEN)
    store = scene.folder / "run" / "store"
    scene.wait(lambda: list(store.glob("shards/*.parquet")), first)
    assert says(swsdist("store", "compact", str(store), code=2).err, codes.FOLDER_IN_USE)
    for run, sets in (("run", SEVEN), ("other", ("features.name=saboteur", f"index.store={store}"))):
        second = scene.go(*sets, run=run)
        assert second.returncode == 2
        assert says(second.stderr, codes.FOLDER_IN_USE)
        assert f"process {first.pid} on {socket.gethostname()} " in second.stderr
        assert "remedy: " in second.stderr
    assert first.poll() is None, "it had ended before the others began: nothing was shown"
    first.kill()
    first.communicate()
    scene.order.unlink()
    assert read(Folder(str(scene.folder / "run"))) is not None
    assert scene.go(*SEVEN).returncode == 0
    assert read(Folder(str(scene.folder / "run"))) is None
    assert list(check(Store(Folder(str(store))))) == []
    assert scene.digest() == undisturbed


def test_held_and_given_back(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    (tmp_path / "lock.json").write_text('{"host": "a')  # a damaged lock is nobody's
    with locked(folder):
        holder = read(folder)
        assert holder is not None
        assert holder["pid"] == os.getpid()
        assert alive(holder)
        assert not alive({**holder, "born": holder["born"] - 1}), "a later process of the same number"
        with raises(codes.FOLDER_IN_USE), locked(folder):
            pass
    assert read(folder) is None


#: Tries to take a folder's lock for each line of input, until the next; `claims` is without flock, as on some network disks.
TAKER = """
import fcntl, sys
from swsdist.core.errors import LockedError
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
def unsupported(*_): raise OSError(95, 'not supported')
lock.STALE_AFTER = 1.0
flock = fcntl.flock
print('ready', flush=True)
for line in sys.stdin:
    how, folder = line.split()
    fcntl.flock = unsupported if how == 'claims' else flock
    try:
        with lock.locked(Folder(folder)):
            print('got', flush=True)
            sys.stdin.readline()
    except LockedError:
        print('refused', flush=True)
        sys.stdin.readline()
"""


@pytest.mark.slow
def test_one_of_many_gets_it(tmp_path: Path) -> None:
    """Of processes that begin at the same moment."""
    command, pipe = [sys.executable, "-c", TAKER], subprocess.PIPE
    processes: list[Any] = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for how, stale in itertools.product(("flock", "claims"), (False, True)):
        folder = tmp_path / f"{how}-{stale}"
        folder.mkdir()
        if stale:
            (folder / "lock.json").write_text(json.dumps({"host": "gone", "boot": "", "pid": 1, "t": 0.0}))
        for process in processes:
            process.stdin.write(f"{how} {folder}\n")
            process.stdin.flush()
        said = [process.stdout.readline().strip() for process in processes]
        assert sorted(said) == ["got"] + ["refused"] * 5, (how, stale)
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
    for process in processes:
        process.communicate()


@pytest.fixture
def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some network file systems."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: throw(OSError(95, "not supported")))


def test_who_read_nobody_just_before_another_began_is_refused(
    tmp_path: Path, no_flock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    Lock(folder).take()
    winner = read(folder)
    monkeypatch.setattr(Lock, "_watch", lambda self: None)
    with raises(codes.FOLDER_IN_USE):
        Lock(folder).take()
    assert read(folder) == winner, "it is not written over"
    assert not list((tmp_path / ".tmp").iterdir())


def test_who_died_alone_keeps_nobody_away(tmp_path: Path, no_flock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "STALE_AFTER", 0.2)
    claim = tmp_path / ".tmp" / "lock.claim"
    claim.parent.mkdir()
    claim.touch()
    with locked(Folder(str(tmp_path))):
        assert not claim.exists()


@pytest.mark.parametrize("off", [-3600.0, 3600.0])
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
        with raises(codes.FOLDER_IN_USE), locked(folder, told.append):
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


@pytest.mark.parametrize("server", ["conditions", "heedless", "none", "a disk"])
def test_a_lost_lock_is_not_taken_back(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    """By conditional writes; or without, where a server of S3 does not heed them, or says that it does not know them."""
    monkeypatch.setattr(lock, "STALE_AFTER", 0.3)
    monkeypatch.setattr(lock, "_LOOK", 0.05)
    monkeypatch.setattr(lock, "_SETTLE", 0.05)
    disk = server == "a disk"
    folder = Folder(str(tmp_path)) if disk else Folder(f"s3://{s3.bucket}/lock-{server}", s3.storage)
    if server == "heedless":
        write = lambda self, name, data, _: self.write_bytes(name, data) or "identity"  # noqa: E731
        monkeypatch.setattr(Folder, "write_if_unchanged", write)
    elif server == "none":
        monkeypatch.setattr(Folder, "write_if_unchanged", lambda *_: throw(UnsupportedOperation("not implemented")))
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
    mine.release()
    assert read(folder) == theirs, "neither a heartbeat nor nobody is written over another's lock"
    with raises(codes.LOCK_LOST):
        mine.check()
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
    with raises(storage_codes.NO_SUCH_BUCKET):
        Folder("s3://no-such-bucket-here/a", s3.storage).write_if_unchanged("file", b"one", None)


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


@pytest.mark.parametrize("stage", ["index", "decide", "export"])
def test_what_another_driver_wrote_since_it_took_over_stays(scene: Any, stage: str) -> None:
    run = scene.folder / "run"
    with raises(codes.LOCK_LOST):
        scene.run(progress=Taken(run, stage))
    assert (run / "plan.json").read_text() == "theirs"
    assert not (run / "report.json").exists()


@dataclass
class Heard(Progress):
    """All that a driver tells."""

    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    parts: dict[str, list[float]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step_begins(self, step: Any, todo: int, skipped: int, work: float, hours: float) -> None:
        self.stages[step.name] = work, hours

    def part(self, step: Any, task: Any, part: float) -> None:
        assert step.name not in self.ended
        self.parts.setdefault(step.name, []).append(part)

    def step_ends(self, step: Any, wall: float) -> None:
        self.ended.append(step.name)


@pytest.fixture
def talk(tmp_path: Path, small_corpus: Path) -> Path:
    """A folder with one recording of twenty minutes."""
    parts = [soundfile.read(path, dtype="float32") for path in sorted((small_corpus / "audio").glob("*.flac"))]
    once = np.concatenate([samples for samples, _ in parts])
    rate = parts[0][1]
    (tmp_path / "talks").mkdir()
    soundfile.write(tmp_path / "talks" / "talk.wav", np.resize(once, 1200 * rate), rate)
    return tmp_path / "talks"


def sets(talk: Path) -> tuple[str, ...]:
    """A config on it, which nothing is scored in."""
    return f"corpus.documents={talk}", "corpus.references=null", "calibrate.fit=none"


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_long_recording_moves_the_bar(scene, talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process, as often as one likes."""
    monkeypatch.setattr(executor, "REPORT_INTERVAL", 0.0)
    heard = Heard()
    scene.run(*sets(talk), progress=heard)
    for stage in ("index", "search"):
        parts = heard.parts[stage]
        assert len(parts) >= 20, stage
        assert parts == sorted(parts)
        assert parts[0] < 0.1
        assert 0.99 < parts[-1] <= 1.0
    assert heard.stages["index"][0] == pytest.approx(1200, abs=1)
    assert heard.stages["index"][1] == heard.stages["search"][1] == pytest.approx(1200 / 3600, rel=1e-3)


@pytest.mark.until("index")
def test_an_hour_counts_once_however_many_tracks_go_through_it(scene) -> None:
    """Also where a part of the tracks is there; work is that of all tracks."""
    one = {"name": "mfcc"}
    others = [{**one, "track": f"more{k}", "options": {"n_mfcc": 7 + k}} for k in range(2)]
    told = []
    for features in ([one, *others[:1]], [one, *others]):
        heard = Heard()
        scene.run(f"features={json.dumps(features)}", "index.shards=3", progress=heard)
        told.append(heard.stages["index"])
    hours = told[0][1]
    assert hours == pytest.approx(told[0][0] / 2 / 3600)
    assert told[1] == pytest.approx((told[0][0] / 2, hours))
    heard = Heard()
    scene.run(f"features={json.dumps([one, *others])}", run="anew", progress=heard)
    assert heard.stages["index"] == pytest.approx((3 * told[1][0], hours))


@pytest.mark.ray
@pytest.mark.until("index")
def test_workers_tell_it_through_their_journals(scene, cluster, talk: Path) -> None:
    samples, rate = soundfile.read(talk / "talk.wav", dtype="float32")
    soundfile.write(talk / "talk.wav", np.tile(samples, 4), rate)
    heard = Heard()
    scene.run(*sets(talk), *cluster.sets, progress=heard)
    assert any(0 < part < 1 for part in heard.parts["index"])
    assert heard.parts["index"] == sorted(heard.parts["index"])


def test_a_journal_says_how_far_its_task_is(tmp_path: Path) -> None:
    """Its last sample does; one of a task that has ended says nothing."""
    folder = Folder(str(tmp_path))
    journal = Journal(folder, "worker")
    journal.write("begin", stage="index", phase="index", fingerprint="abc")
    assert last_part(folder, journal.name) is None
    journal.part = "abc", 0.25
    with journal.phase("index"):
        pass
    assert last_part(folder, journal.name) == ("abc", 0.25)
    (lines,) = read_journals(folder)
    assert _process(lines).part == 0.25
    with (tmp_path / journal.name).open("a") as file:
        file.write('{"event": "sample", "part": 0.5, "finger')  # it writes while it is read
    assert last_part(folder, journal.name) == ("abc", 0.25)
    with (tmp_path / journal.name).open("a") as file:
        file.write('print": "abc"}\n')
    assert last_part(folder, journal.name) == ("abc", 0.5)
    journal.part = None
    journal.close()
    assert last_part(folder, journal.name) is None
    assert last_part(folder, "accounts/gone.jsonl") is None
    assert last_part(Folder("s3://bucket/run"), journal.name) is None


def test_the_bar_counts_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of tasks that run and of tasks that have ended, whatever their order; another attempt begins anew."""
    clock = 1000.0
    monkeypatch.setattr("swsdist.cli.progress.time", SimpleNamespace(monotonic=lambda: clock))
    step: Any = SimpleNamespace(stage=SimpleNamespace(unit="cells"))
    small, large = (Task("search", name, "", work, {}) for name, work in (("a", 30.0), ("b", 70.0)))
    pace = _Pace(step, 2, 0, 100.0, 10.0)
    pace.part(small, 0.02)
    assert pace.text() == "0.06 of 10 h of audio, 0/2 tasks", "what so little says of the rest is mostly wrong"
    pace.part(small, 0.0)
    pace.part(large, 0.5)
    assert "ETA" not in pace.text(), "so short a time says nothing either"
    clock += 70.0
    assert pace.text().endswith("0.0491 h/s, ETA 2 min 12 s"), "since the first news"
    assert pace.done == 35
    assert "3.5 of 10 h of audio, 0/2 tasks" in pace.text()
    pace.part(large, 0.1)
    pace.part(small, 0.9)
    assert pace.done == pytest.approx(34)
    pace.add(Failure(small, "data", "broken", 1))
    assert pace.done == pytest.approx(37)
    assert "1/2 tasks, 1 FAILED" in pace.text()
    step.stage.unit = "detections"
    counted = _Pace(step, 2, 1, 100.0, 10.0)
    assert counted.text() == "0/2 tasks, 1 done before"


def test_a_note_reaches_the_display_through_those_who_listen_too(tmp_path: Path) -> None:
    heard = Heard()
    with events_to(str(tmp_path / "events.jsonl"), with_point_count(heard)) as outer:
        outer.note("a lock is watched")
    assert heard.notes == ["a lock is watched"]
