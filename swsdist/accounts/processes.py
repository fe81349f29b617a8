"""The work of one process, from its record: attempts at tasks, warm-up, CPU time.

CPU times are integers, ticks of 0.1 ms as in journals, so sums of differences are exact in any order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.hardware import Description
from swsdist.accounts.node_memory import NodeMemory

#: Ticks of CPU time in a second.
TICKS = 10_000


class Attempt(NamedTuple):
    """An attempt at a task of the plan: start in s, cost in ticks, and whether it finished."""

    fingerprint: str
    stage: str
    began: float
    ticks: int
    ended: bool


class Bar(NamedTuple):
    """An interval in which a process works on a stage, s."""

    stage: str
    start: float
    end: float


@dataclass
class Process:
    """The work of one process.

    Attributes:
        host, pid, role: identity of the process.
        hardware: hardware of its node.
        touched: whether it worked on a task of the plan.
        attempts: attempts at tasks of the plan, in order.
        intervals: intervals of finished attempts at tasks of the plan, by (stage, phase).
        starting: ticks until its first line.
        warm: ticks of warm-up, by stage.
        total: ticks of its finished life and of the daemons it started.
        last: ticks at its last line.
        at_work: ticks of all attempts, including those at tasks of other plans.
        busy: seconds in attempts.
        life: seconds from its first line to its last.
    """

    host: str
    pid: int
    role: str
    hardware: Description
    touched: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    intervals: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    starting: int = 0
    warm: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    total: int = 0
    last: int = 0
    at_work: int = 0
    busy: float = 0.0
    life: float = 0.0


def ticks(seconds: float) -> int:
    """Convert CPU seconds to ticks."""
    return round(seconds * TICKS)


def process_of(record: pa.Table, planned: Set[str]) -> Process:
    """Summarise a record.

    Args:
        record: ACCOUNTS of one process, lines in order.
        planned: fingerprints of the plan's tasks.
    """
    events = record.filter(pc.not_equal(record["event"], "sample")).drop_columns(["journal", "pss", "gpu", "part"])
    lines = events.to_pylist()
    first, final = lines[0], record.num_rows - 1
    process = Process(first["host"], first["pid"], first["role"], _hardware(first["more"]))
    process.starting = ticks(first["cpu"] - (first["earlier"] or 0.0))
    process.last = ticks(record["cpu"][final].as_py())
    process.life = record["t"][final].as_py() - first["t"]
    begun = None
    for line in lines:
        event = line["event"]
        if event == "warm":
            process.warm[line["stage"]] += ticks(line["spent"])
        elif event == "begin":
            begun = line
        elif event in ("end", "failed") and begun is not None:
            _record_attempt(process, begun, line["cpu"], line["t"], planned, ended=event == "end", finished=True)
            begun = None
    if begun is not None:  # killed during a task: its cost is known up to its last line
        cpu, t = record["cpu"][final].as_py(), record["t"][final].as_py()
        _record_attempt(process, begun, cpu, t, planned, ended=False, finished=False)
    daemons = record["daemons"].drop_null()  # processes that the driver has not waited for
    process.total = process.last - ticks(first["earlier"] or 0.0) + ticks(daemons[-1].as_py() if len(daemons) else 0.0)
    return process


def _record_attempt(
    process: Process,
    begun: dict[str, float | str],
    cpu: float,
    t: float,
    planned: Set[str],
    *,
    ended: bool,
    finished: bool,
) -> None:
    """Record an attempt that began with this line."""
    name, stage, began = str(begun["fingerprint"]), str(begun["stage"]), float(begun["t"])
    spent = ticks(cpu) - ticks(float(begun["cpu"]))
    process.at_work += spent
    process.busy += t - began
    if name not in planned:
        return
    process.touched = True
    process.attempts.append(Attempt(name, stage, began, spent, ended))
    if finished:
        process.intervals[stage, str(begun["phase"])].append((began, t))


def _hardware(more: str) -> Description:
    described: Description = json.loads(more)["hardware"]
    return described


def add_samples(record: pa.Table, seconds: NodeMemory) -> None:
    """Add the memory samples of a record to its node."""
    rows = record.filter(pc.equal(record["event"], "sample"))
    pss, gpu = (np.asarray(pc.fill_null(rows[name], 0).to_numpy()).astype(np.int64) for name in ("pss", "gpu"))
    seconds.add(rows["t"].to_numpy(), pss, gpu)


def bars_of(process: Process, most: int) -> tuple[Bar, ...]:
    """Intervals of work, at most `most`: the shortest gaps between tasks of a stage are closed."""
    bars = sorted(Bar(stage, *span) for (stage, _), spans in process.intervals.items() for span in spans)
    bars.sort(key=lambda bar: bar.start)
    gap = process.life / max(1, most)
    while len(bars) > most:
        joined: list[Bar] = []
        for bar in bars:
            if joined and joined[-1].stage == bar.stage and bar.start - joined[-1].end < gap:
                joined[-1] = Bar(bar.stage, joined[-1].start, bar.end)
            else:
                joined.append(bar)
        if gap > process.life:  # stages alternate all the time: draw only some intervals
            return tuple(joined[:: -(-len(joined) // most)])
        bars, gap = joined, 2 * gap
    return tuple(bars)
