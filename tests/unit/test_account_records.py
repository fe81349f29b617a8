"""Journals as records, CPU time of child processes, GPU memory, and what a node is."""

import json
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from swsdist.accounts import hardware
from swsdist.accounts.child_processes import ChildProcesses
from swsdist.accounts.journal import Journal, cpu_seconds
from swsdist.accounts.records import NAME, pack, records, table_of
from swsdist.core.types import ACCOUNTS, NODES
from swsdist.io.filesystem import Folder
from swsdist.pipeline.execution.executor import Worker
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.report.costs import Costs, NodeMemory
from tests.support.journals import read_journals

HARDWARE = {"brand": "unknown", "cpu": "C", "cores": 2, "clock_ghz": None, "ram_gb": 8.0, "os": "Linux", "gpu": None}


def receipt(fingerprint: str, work: float, pid: int, started: float, cpu: float) -> Any:
    cost = SimpleNamespace(cpu=cpu, bytes_read=100, bytes_written=10, gpu_s=0.0)
    named = {"fingerprint": fingerprint, "stage": "search", "host": "a", "pid": pid, "started": started}
    return SimpleNamespace(**named, work=work, cost=cost)


def test_an_attempt_whose_receipt_cannot_be_written_has_failed(tmp_path: Path) -> None:
    def full(name: str, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    stage = SimpleNamespace(name="search", version=1, phase="search", warm=lambda *_: None)
    stage.run = lambda *_: TaskOutput(())
    context = SimpleNamespace(stages={"search": stage}, cache=None, granted=SimpleNamespace(gpus=0))
    context.folder = lambda task: SimpleNamespace(write_bytes=full)
    journal = Journal(Folder(str(tmp_path)), "worker")
    with pytest.raises(OSError, match="No space"):
        Worker(context, journal, 1).run(Task("search", "x", "a task", 1.0, None))
    journal.close()
    events = [json.loads(line)["event"] for line in (tmp_path / journal.name).read_text().splitlines()]
    assert [event for event in events if event in ("begin", "end", "failed")] == ["begin", "failed"]


def _lines(host: str, pid: int, *events: tuple[str, float, float, dict[str, Any]], role: str = "worker") -> str:
    told = [("open", 0.0, 1.0, {"role": role, "host": host, "pid": pid, "hardware": HARDWARE, "earlier": 0.0}), *events]
    return "".join(json.dumps({"t": t, "event": event, "cpu": cpu, **more}) + "\n" for event, t, cpu, more in told)


def _task(name: str, stage: str = "search") -> dict[str, Any]:
    return {"stage": stage, "phase": "search", "fingerprint": name}


def _two_nodes(folder: Path) -> list[Any]:
    """Two workers on node a, one on b that is killed at its second task, which a does again."""
    place = folder / "accounts"
    place.mkdir()
    memory = [("sample", t, 1.0 + t, {"pss": 100}) for t in (1.0, 2.0, 3.0)]
    first = [("warm", 0.5, 1.5, {"stage": "search", "spent": 0.5}), ("begin", 1.0, 2.0, _task("x"))]
    ended = [("end", 3.0, 4.5, _task("x")), ("close", 6.0, 5.0, {})]
    (place / "worker-a-1-00000001.jsonl").write_text(_lines("a", 1, *first, *memory, *ended))
    second = [("begin", 2.0, 1.0, _task("y")), ("sample", 2.5, 2.0, {"pss": 50}), ("sample", 4.2, 3.0, {"pss": 70})]
    ended = [("end", 4.5, 3.0, _task("y")), ("begin", 4.5, 3.0, _task("z")), ("end", 5.5, 4.0, _task("z"))]
    (place / "worker-a-2-00000002.jsonl").write_text(_lines("a", 2, *second, *ended, ("close", 6.0, 4.0, {})))
    killed = [("begin", 1.0, 1.0, _task("z")), ("sample", 2.0, 3.0, {"pss": 500})]
    (place / "worker-b-1-00000003.jsonl").write_text(_lines("b", 1, *killed) + '{"t": 3.0, "event": "sam')
    return [receipt("x", 2.0, 1, 1.0, 2.4), receipt("y", 1.0, 2, 2.0, 2.0), receipt("z", 1.0, 2, 4.5, 1.0)]


def _check(costs: Costs) -> None:
    assert costs.repeated() == 2.0, "what b had used when it last wrote"
    assert costs.warm_up() == 1.0 + 0.5 + 1.0 + 1.0
    # In second 2 one says 100 and the other 50; the latter holds through second 3.
    assert costs.peaks("search") == {"a": 150}
    rows = {(row["node"], row["stage"]): row for row in costs.table().to_pylist()}
    assert set(rows) - {("c", None)} == {("a", "search"), ("a", None), ("b", "search"), ("b", None)}
    whole = rows["a", None]
    assert whole["tasks"] == 3
    assert whole["useful_cpu_s"] == pytest.approx(5.4)
    assert whole["warm_up_cpu_s"] == 2.5
    assert whole["bytes_read"] == 300
    # Every CPU second of both processes is somewhere: 5.0 and 4.0.
    assert sum(whole[f"{kind}_cpu_s"] for kind in ("useful", "repeated", "warm_up", "other")) == pytest.approx(9.0)
    assert whole["idle_s"] == pytest.approx(6 - 2 + 6 - 3.5)
    assert rows["b", "search"]["repeated_cpu_s"] == 2.0
    assert rows["b", None]["tasks"] == 0


def test_costs_of_journals_and_of_what_they_are_packed_into(tmp_path: Path) -> None:
    receipts = _two_nodes(tmp_path)
    folder = Folder(str(tmp_path))
    before = read_journals(folder)
    _check(Costs(records(folder), receipts))
    pack(folder)
    assert list((tmp_path / "accounts").iterdir()) == [], "the process that was killed has said nothing for long"
    assert pq.ParquetFile(tmp_path / NAME).num_row_groups == 3
    assert read_journals(folder) == before
    _check(Costs(records(folder), receipts))
    # A later run adds its own; what was packed, and could not be removed, counts once.
    (tmp_path / "accounts/worker-a-1-00000001.jsonl").write_text(_lines("a", 1, ("close", 6.0, 5.0, {})))
    (tmp_path / "accounts/worker-c-1-00000004.jsonl").write_text(_lines("c", 1, ("close", 6.0, 5.0, {})))
    pack(folder)
    assert read_journals(folder)[:-1] == before
    _check(Costs(records(folder), receipts))
    assert Costs(records(folder), receipts).table().schema.equals(NODES)


def test_a_process_that_may_still_write_is_not_packed(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    journal = Journal(folder, "worker")
    pack(folder)
    assert (tmp_path / journal.name).exists()
    assert not (tmp_path / NAME).exists()
    journal.write("died", pid=1, lost=["a"], message="gone")
    journal.close()
    pack(folder)
    assert not (tmp_path / journal.name).exists()
    (lines,) = read_journals(folder)
    assert [line["event"] for line in lines if line["event"] != "sample"] == ["open", "died", "close"]
    died = next(line for line in lines if line["event"] == "died")
    assert (died["pid"], died["lost"], died["message"]) == (1, ["a"], "gone")  # type: ignore[typeddict-item]


def test_a_broken_line_ends_a_journal() -> None:
    whole = _lines("a", 1, ("sample", 1.0, 2.0, {"pss": 3}))
    for end in ("", '{"t": 2.0, "ev', '{"t": 2.0, "event": "sample", "cpu": tru}\n', "\x00\x00\n"):
        table = table_of("worker-a-1-0", (whole + end).encode())
        assert table is not None
        assert (table.num_rows, table.schema.equals(ACCOUNTS)) == (2, True)
    assert table_of("x", b'{"t": 1.0, "event": "close", "cpu": 1.0}\n') is table_of("x", b"") is None


class Bucket:
    """Stands for S3: what a journal puts."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.bytes = self.puts = 0

    def local(self, name: str) -> None: ...

    def write_bytes(self, name: str, data: bytes) -> None:
        self.objects[name] = data
        self.bytes, self.puts = self.bytes + len(data), self.puts + 1


def test_bytes_put_to_s3_grow_as_the_journal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter and half an hour of tasks of ten seconds: once 3.2 GB were put for a journal of 2 MB."""
    now, put = [0.0], []
    monkeypatch.setattr("swsdist.accounts.journal.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Journal, "_sample", lambda self: None)
    for hours in (0.25, 0.5):
        bucket: Any = Bucket()
        journal = Journal(bucket, "worker", "node")
        for second in range(round(hours * 3600)):
            now[0] += 1
            if second % 10 == 0:
                journal.write("begin", stage="search", phase="search", fingerprint="f" * 32)
            journal.write("sample", phase="search", pss=300_000_000, fingerprint="f" * 32, part=0.5)
            if second % 10 == 9:
                journal.write("end", stage="search", fingerprint="f" * 32)
        journal.close()
        whole = b"".join(bucket.objects[name] for name in sorted(bucket.objects))
        table = table_of("worker-node-1-0", whole)
        assert table is not None
        assert table.num_rows == hours * (3600 + 720) + 3
        assert bucket.puts <= hours * 360 + 5
        assert bucket.bytes < 15 * len(whole)
        put.append(bucket.bytes / hours)
    assert put[1] == pytest.approx(put[0], rel=0.2)


def test_a_process_counts_with_what_it_last_said() -> None:
    seconds = NodeMemory()
    none = np.zeros(2, np.int64)
    seconds.add(np.array([0.5, 20.2]), np.array([7, 9]), none)
    seconds.add(np.array([3.0, 4.9]), np.array([100, 200]), none)
    assert seconds.peak([(4.0, 4.0)]) == 207
    assert seconds.peak([(5.0, 6.0)]) is None, "five seconds after it last spoke a process is gone"
    assert seconds.peak([(0.0, 3.2), (20.0, 20.5)]) == 107
    assert seconds.gpu_peak([(0.0, 30.0)]) is None
    assert [value for _, value in seconds.drawn(2)] == [207, 9]


#: Takes 0.3 s of CPU, tells it, and waits for the end of its input.
_BURN = """
import sys, time
while time.process_time() < 0.3:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""
#: Starts such a process as a child; at each line of input it does what that says.
_PARENT = """
import signal, subprocess, sys
if {ignores}:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {burn!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), child.pid, flush=True)
sys.stdin.readline()
child.stdin.close()
child.wait()
print("ended", flush=True)
sys.stdin.readline()
"""


class Family:
    """A child of ours, and its child."""

    def __init__(self, ignores: bool) -> None:
        command = [sys.executable, "-c", _PARENT.format(ignores=ignores, burn=_BURN)]
        self.parent: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        seconds, number = self.parent.stdout.readline().split()
        self.burnt, self.grandchild = float(seconds), int(number)

    def go_on(self) -> None:
        self.parent.stdin.write("\n")
        self.parent.stdin.flush()


@pytest.fixture(params=[True, False], ids=["nobody waits", "its parent waits"])
def family(request: pytest.FixtureRequest) -> Iterator[Family]:
    made = Family(request.param)
    with made.parent:
        yield made
        made.parent.kill()


def test_each_second_is_counted_once_while_they_live_and_after(family: Family) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = ChildProcesses()
    alone = sum(cpu_seconds())
    assert {family.parent.pid, family.grandchild} <= set(started.look())
    both = started.seconds()
    assert both >= family.burnt - 0.02
    apart = started.seconds({family.grandchild})
    assert both - apart == pytest.approx(family.burnt, abs=0.06), "counted elsewhere"

    family.go_on()  # the grandchild ends
    assert family.parent.stdout.readline() == "ended\n"
    assert family.grandchild not in started.look()
    assert started.seconds() == pytest.approx(both, abs=0.06)
    assert started.seconds({family.grandchild}) == pytest.approx(apart, abs=0.06)

    family.go_on()  # the child ends, and is waited for: what it took is in our own account
    family.parent.wait()
    started.look()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    waited = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    assert waited + started.seconds() == pytest.approx(both, abs=0.06)
    own = sum(cpu_seconds()) - alone - waited
    assert own >= 0


def library(used: list[int], fails: str = "") -> SimpleNamespace:
    """Answers as NVIDIA's does; a call whose name is `fails` raises."""

    class NVMLError(Exception):
        """As NVIDIA's."""

    def call(name: str, answer: object) -> object:
        if name == fails:
            raise NVMLError(name)
        return answer

    def memory(handle: int) -> object:
        number = used[handle - 1]  # 0 is no handle
        return call("memory", SimpleNamespace(total=80, free=80 - number, used=number))

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: call("init", None),
        nvmlDeviceGetCount=lambda: call("count", len(used)),
        nvmlDeviceGetHandleByIndex=lambda index: call("handle", index + 1),
        nvmlDeviceGetMemoryInfo=memory,
    )


def test_bytes_of_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, stands, expected in (
        (2, library([5, 7]), 12),
        (1, library([0]), 0),
        (0, None, None),
        *((2, library([5], fails), None) for fails in ("init", "count", "handle", "memory")),
    ):
        hardware._handles.cache_clear()
        monkeypatch.setattr(hardware, "gpu_count", lambda count=count: count)
        monkeypatch.setitem(sys.modules, "pynvml", stands)
        assert [hardware.gpu_bytes(), hardware.gpu_bytes()] == [expected] * 2
    hardware._handles.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_machine_describes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found = hardware.describe()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"brand", "cpu", "cores", "clock_ghz", "ram_gb", "os", "gpu"}
    said = subprocess.run(["nproc"], env={}, capture_output=True, text=True, check=True).stdout
    assert found["cores"] == int(said), "those that this process may use"
    kibibytes = int(Path("/proc/meminfo").read_text().split()[1])
    assert (found["ram_gb"], found["os"]) == (round(kibibytes * 1024 / 1e9, 1), f"Linux {platform.release()}")
    # As in a container without /proc/cpuinfo and without a vendor.
    monkeypatch.setattr(hardware, "_first_line", lambda path: None)
    found = hardware.describe.__wrapped__()
    named = platform.processor() or platform.machine()
    assert (found["brand"], found["clock_ghz"], found["cpu"]) == ("unknown", None, named)
    known = dict(hardware.versions())  # every caller gets the same one
    assert known.pop("python") == platform.python_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", known.pop("libsndfile"))  # no package, but what decodes
    assert {"swsdist", "numpy", "numba", "pyarrow", "soxr"} <= set(known)
    assert known == {name: version(name) for name in known}


def test_ends_of_short_phases_share_a_measurement_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, measured = [5.0], iter(range(100, 1000, 100))
    monkeypatch.setattr("swsdist.accounts.journal.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Journal, "_sample", lambda self: None)
    monkeypatch.setattr(Journal, "memory", lambda self: next(measured))
    journal = Journal(Folder(str(tmp_path)), "worker")
    for phase, later in (("index", 0.05), ("search", 0.06), ("search", 0.05)):
        with journal.phase(phase):
            now[0] += later
    journal.sample()  # before processes end: always measured
    journal.close()
    (lines,) = read_journals(Folder(str(tmp_path)))
    found = [(line["phase"], line["pss"]) for line in lines if line["event"] == "sample"]  # type: ignore[typeddict-item]
    assert found == [("index", 100), ("search", 100), ("search", 200), ("search", 300), ("search", 400)]
