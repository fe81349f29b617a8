"""What one process did, as its record tells: attempts at tasks, warm-up, CPU time.

CPU times are integers, ticks of 0.1 ms as journals have them: sums of differences are exact in any order.
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
    """At a task of the plan: when it began, in s, what it cost in ticks, and whether it came to its end."""

    fingerprint: str
    stage: str
    began: float
    ticks: int
    ended: bool


class Bar(NamedTuple):
    """A stretch of a process's time in which it worked on a stage, s."""

    stage: str
    start: float
    end: float


@dataclass
class Process:
    """One process.

    Attributes:
        host, pid, role: of it.
        hardware: of its node.
        touched: whether it worked on a task of the plan.
        attempts: at tasks of the plan, in their order.
        worked: stretches in which it worked at tasks of the plan and came to an end, by (stage, phase).
        starting: ticks until its first line.
        warm: ticks of what stages load, by stage.
        total: ticks of all its life, and of the daemons that it started.
        last: ticks of the process when it last said something.
        at_work: ticks of all attempts, those at tasks of other plans included.
        busy, life: s.
    """

    host: str
    pid: int
    role: str
    hardware: Description
    touched: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    worked: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    starting: int = 0
    warm: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    total: int = 0
    last: int = 0
    at_work: int = 0
    busy: float = 0.0
    life: float = 0.0


def ticks(seconds: float) -> int:
    """A CPU time in ticks."""
    return round(seconds * TICKS)


def process_of(record: pa.Table, planned: Set[str]) -> Process:
    """What a record tells.

    Args:
        record: ACCOUNTS, of one process, lines in their order.
        planned: fingerprints of the plan's tasks.
    """
    said = record.filter(pc.not_equal(record["event"], "sample")).drop_columns(["journal", "pss", "gpu", "part"])
    lines = said.to_pylist()
    first, final = lines[0], record.num_rows - 1
    found = Process(first["host"], first["pid"], first["role"], _hardware(first["more"]))
    found.starting = ticks(first["cpu"] - (first["earlier"] or 0.0))
    found.last = ticks(record["cpu"][final].as_py())
    found.life = record["t"][final].as_py() - first["t"]
    begun = None
    for line in lines:
        event = line["event"]
        if event == "warm":
            found.warm[line["stage"]] += ticks(line["spent"])
        elif event == "begin":
            begun = line
        elif event in ("end", "failed") and begun is not None:
            _book(found, begun, line["cpu"], line["t"], planned, ended=event == "end", whole=True)
            begun = None
    if begun is not None:  # killed at work: what is known is what it had used when it last wrote
        cpu, t = record["cpu"][final].as_py(), record["t"][final].as_py()
        _book(found, begun, cpu, t, planned, ended=False, whole=False)
    daemons = record["daemons"].drop_null()  # of those that the driver has not waited for
    found.total = found.last - ticks(first["earlier"] or 0.0) + ticks(daemons[-1].as_py() if len(daemons) else 0.0)
    return found


def _book(
    found: Process, begun: dict[str, float | str], cpu: float, t: float, planned: Set[str], *, ended: bool, whole: bool
) -> None:
    """An attempt that began with this line."""
    name, stage, began = str(begun["fingerprint"]), str(begun["stage"]), float(begun["t"])
    spent = ticks(cpu) - ticks(float(begun["cpu"]))
    found.at_work += spent
    found.busy += t - began
    if name not in planned:
        return
    found.touched = True
    found.attempts.append(Attempt(name, stage, began, spent, ended))
    if whole:
        found.worked[stage, str(begun["phase"])].append((began, t))


def _hardware(more: str) -> Description:
    described: Description = json.loads(more)["hardware"]
    return described


def sampled(record: pa.Table, seconds: NodeMemory) -> None:
    """Add the memory that a record tells of to that of its node."""
    rows = record.filter(pc.equal(record["event"], "sample"))
    pss, gpu = (np.asarray(pc.fill_null(rows[name], 0).to_numpy()).astype(np.int64) for name in ("pss", "gpu"))
    seconds.add(rows["t"].to_numpy(), pss, gpu)


def bars_of(process: Process, most: int) -> tuple[Bar, ...]:
    """Its work as stretches, so many at most: the shortest breaks between tasks of one stage are closed."""
    bars = sorted(Bar(stage, *span) for (stage, _), spans in process.worked.items() for span in spans)
    bars.sort(key=lambda bar: bar.start)
    gap = process.life / max(1, most)
    while len(bars) > most:
        joined: list[Bar] = []
        for bar in bars:
            if joined and joined[-1].stage == bar.stage and bar.start - joined[-1].end < gap:
                joined[-1] = Bar(bar.stage, joined[-1].start, bar.end)
            else:
                joined.append(bar)
        if gap > process.life:  # stages take turns all the time: what is drawn is a part
            return tuple(joined[:: -(-len(joined) // most)])
        bars, gap = joined, 2 * gap
    return tuple(bars)
