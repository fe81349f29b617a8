"""Accounts of a big run: what it takes to read the journals of a thousand workers, a line a second for ten hours.

The journals are fabricated; every line is as a worker writes it. They are packed into `accounts.parquet`, and the costs are
made from it, each in a process of its own, so that each has its own peak of memory.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, at_most, show
from swsdist.accounts.hardware import describe
from swsdist.accounts.records import NAME, pack, records
from swsdist.io.filesystem import Folder
from swsdist.pipeline.resources import Costs

#: Workers on a node, and seconds of a task.
_PER_NODE, _TASK = 4, 60
_BEGAN = 1_700_000_000.0
_LIMIT_MB = 300.0
#: Places in a fabricated text.
_HOST, _PID, _NAME = "@host", "@pid", "@@name@@"


class Cost(NamedTuple):
    """Of a fabricated receipt."""

    cpu: float
    bytes_read: int = 1_000_000
    bytes_written: int = 10_000


class Receipt(NamedTuple):
    """A fabricated receipt."""

    fingerprint: str
    stage: str
    work: float
    host: str
    pid: int
    started: float
    cost: Cost


def fabricate(folder: Path, workers: int, seconds: int) -> None:
    """Write the journals."""
    (folder / "accounts").mkdir(parents=True)
    texts = [_text(_BEGAN, seconds, random.Random(k)) for k in range(4)]
    for k in range(workers):
        host, pid, name = f"node-{k // _PER_NODE:04d}", 1000 + k, f"{k:08x}"
        text = texts[k % len(texts)].replace(_HOST, host).replace(f'"{_PID}"', str(pid)).replace(_NAME, name)
        (folder / f"accounts/worker-{host}-{pid}-{name}.jsonl").write_text(text)


def receipts_of(workers: int, seconds: int) -> list[Receipt]:
    """Of all tasks."""
    cost = Cost(0.97 * (_TASK - 1))
    return [
        Receipt(f"{k:08x}{n:024x}", "search", 1.0, f"node-{k // _PER_NODE:04d}", 1000 + k, _BEGAN + n * _TASK, cost)
        for k in range(workers)
        for n in range(seconds // _TASK)
    ]


def _text(began: float, seconds: int, rng: random.Random) -> str:
    """A worker's journal, with places for its host, number and name."""
    lines: list[dict[str, object]] = [{"t": began, "event": "open", "cpu": 1.5, "role": "worker", "host": _HOST}]
    lines[0] |= {"pid": _PID, "hardware": describe(), "earlier": 0.0}
    for second in range(seconds):
        t, cpu = began + second, 1.5 + 0.97 * second
        task = {"stage": "search", "fingerprint": f"{_NAME}{second // _TASK:024x}"}
        if second % _TASK == 0:
            lines.append({"t": t, "event": "begin", "cpu": round(cpu, 4), **task, "phase": "search"})
        line = {"t": t, "event": "sample", "cpu": round(cpu, 4), "phase": "search"}
        line |= {"pss": 300_000_000 + rng.randrange(50_000_000), "fingerprint": task["fingerprint"]}
        lines.append(line | {"part": round((second % _TASK) / _TASK, 4)})
        if second % _TASK == _TASK - 1:
            lines.append({"t": t + 0.9, "event": "end", "cpu": round(cpu, 4), **task})
    lines.append({"t": began + seconds, "event": "close", "cpu": round(1.5 + 0.97 * seconds, 4)})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _measured(
    queue: multiprocessing.Queue[dict[str, float]], what: str, folder: str, workers: int, seconds: int
) -> None:
    own, receipts = Folder(folder), receipts_of(workers, seconds) if what == "costs" else []
    before, clock = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    if what == "pack":
        pack(own)
    else:
        costs = Costs(records(own), receipts)
        assert costs.repeated() < 1e-3
        assert len(costs.peaks("search")) == len({one.host for one in receipts})
        costs.table()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue.put({"s": time.perf_counter() - clock, "more_mb": (most - before) / 1000})


def measure(workers: int, hours: float, place: str | None) -> list[Row]:
    """Fabricate, pack, read."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        seconds = int(3600 * hours)
        fabricate(Path(folder), workers, seconds)
        text = sum(path.stat().st_size for path in Path(folder, "accounts").iterdir())
        size = f"{workers} workers x {hours:g} h"
        rows = [Row(f"{size}: journals", text / 1e6, "MB"), Row(f"{size}: tasks", workers * (seconds // _TASK), "")]
        spawn = multiprocessing.get_context("spawn")
        for what in ("pack", "costs"):
            queue = spawn.Queue()
            process = spawn.Process(target=_measured, args=(queue, what, folder, workers, seconds))
            process.start()
            found = queue.get()
            process.join()
            rows.append(Row(f"{size}: {what}, wall", found["s"], "s"))
            name = f"{size}: {what}, memory beyond modules and receipts, at most"
            rows.append(Row(name, found["more_mb"], "MB", at_most(_LIMIT_MB)))
        rows.append(Row(f"{size}: accounts.parquet", Path(folder, NAME).stat().st_size / 1e6, "MB"))
        return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journals", description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument("--folder", metavar="FOLDER", help="where to fabricate them: 8 GB at the default size")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.workers, arguments.hours, arguments.folder)
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
