"""Journals tell more than receipts do: the peaks of nodes, warm-up, and lost attempts.

One pass over the records of a run, a process at a time; what stays is a few numbers a node and stage.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from swsdist.accounts.hardware import Description
from swsdist.accounts.node_memory import NodeMemory
from swsdist.accounts.processes import TICKS, Bar, Process, bars_of, process_of, sampled, ticks
from swsdist.core.types import NODES

GB = 1e9

#: Processes, stretches of a process, and moments of a node that a timeline shows at most.
_SHOWN, _BARS, _MOMENTS = 48, 400, 400


class _Spent(Protocol):
    @property
    def cpu(self) -> float: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def bytes_written(self) -> int: ...

    @property
    def gpu_s(self) -> float: ...


class CostedReceipt(Protocol):
    """The parts of a receipt that accounts read."""

    @property
    def fingerprint(self) -> str:
        """Of the task."""
        ...

    @property
    def stage(self) -> str:
        """Of the task."""
        ...

    @property
    def work(self) -> float:
        """How much it was, in the stage's unit."""
        ...

    @property
    def host(self) -> str:
        """Node that did it."""
        ...

    @property
    def pid(self) -> int:
        """Process that did it."""
        ...

    @property
    def started(self) -> float:
        """When, in s."""
        ...

    @property
    def cost(self) -> _Spent:
        """CPU seconds, bytes, and GPU seconds."""
        ...


class NodeCost(NamedTuple):
    """The work of a node: tasks, CPU s, and its peak of memory in bytes for each phase that it worked on."""

    host: str
    tasks: int
    cpu_s: float
    peaks: dict[str, int]


class ProcessTimeline(NamedTuple):
    """What a process worked on, for a timeline."""

    host: str
    pid: int
    role: str
    bars: tuple[Bar, ...]


class Timeline(NamedTuple):
    """Who worked on what, and the memory of nodes, over time (s since 1970, bytes).

    Attributes:
        processes: those that are shown.
        left_out: how many are not.
        memory: by node, highest sums of stretches of time.
    """

    processes: tuple[ProcessTimeline, ...]
    left_out: int
    memory: dict[str, list[tuple[float, int]]]


class CompletedWork(NamedTuple):
    """What stands by receipts of a stage on some node: tasks, CPU s, work in the stage's unit, bytes, GPU s."""

    tasks: int = 0
    cpu: float = 0.0
    work: float = 0.0
    read: int = 0
    written: int = 0
    gpu: float = 0.0


class _Node:
    """What is summed up of a node; times in ticks."""

    def __init__(self) -> None:
        self.seconds = NodeMemory()
        self.worked: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self.warm: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()
        self.starting = 0
        self.other = 0
        self.idle = 0.0
        self.phases: dict[str, int] = {}
        self.gpu_phases: dict[str, int] = {}
        self.stages: dict[str, tuple[int | None, int | None]] = {}
        self.whole: tuple[int | None, int | None] = None, None
        self.memory: list[tuple[float, int]] = []
        self.settled = False

    def settle(self) -> None:
        """No more process comes: peaks are known, and the seconds go."""
        if self.settled:
            return
        self.settled = True
        by_phase: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        by_stage: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for (stage, phase), spans in self.worked.items():
            by_phase[phase] += spans
            by_stage[stage] += spans
        for phase, spans in by_phase.items():
            if (peak := self.seconds.peak(spans)) is not None:
                self.phases[phase] = peak
            if (peak := self.seconds.gpu_peak(spans)) is not None:
                self.gpu_phases[phase] = peak
        for stage, spans in by_stage.items():
            self.stages[stage] = self.seconds.peak(spans), self.seconds.gpu_peak(spans)
        whole = [(min(a for a, _ in spans), max(b for _, b in spans)) for spans in by_phase.values()]
        # Seconds between tasks belong to the node's whole, too, but not those of another run in the folder.
        whole = whole or self.seconds.whole
        self.whole = self.seconds.peak(whole), self.seconds.gpu_peak(whole)
        self.memory = self.seconds.drawn(_MOMENTS)
        self.seconds = NodeMemory()
        self.worked.clear()


class Costs:
    """The costs of one run.

    Args:
        journals: `accounts.records.records`, in its order.
        receipts: of all tasks of the present plan.
    """

    def __init__(self, journals: Iterable[pa.Table], receipts: Sequence[CostedReceipt]) -> None:
        self._receipts = receipts
        self._nodes: defaultdict[str, _Node] = defaultdict(_Node)
        self._kinds: dict[str, tuple[Description, set[str]]] = {}
        self._warm_up = 0
        self._tried = 0
        self._kept: Counter[tuple[str, str]] = Counter()  # ticks of attempts whose receipt stands, by host and stage
        #: Of the present process: of its attempts at a task that it ended, the one that began when the receipt says.
        self._nearest: dict[str, tuple[float, int, str]] = {}
        self._shown: list[ProcessTimeline] = []
        self._left_out = 0
        self._drivers: dict[int, tuple[float, int, str]] = {}  # by number: end of the last journal, ticks, host
        standing = {receipt.fingerprint: receipt for receipt in receipts}
        before: str | None = None
        last: tuple[str, int] | None = None
        for record in journals:
            process = process_of(record, standing.keys())
            if last is not None and last != (process.host, process.pid):
                self._keep(last[0])
            last = process.host, process.pid
            if process.role != "driver" and process.host != before:
                if before is not None:
                    self._nodes[before].settle()
                before = process.host
            self._add(process, record, standing)
            if process.role == "driver":
                ended = (record["t"][-1].as_py(), process.last, process.host)
                self._drivers[process.pid] = max(ended, self._drivers.get(process.pid, ended))
        if last is not None:
            self._keep(last[0])
        for node in self._nodes.values():
            node.settle()
        self._done = _done(receipts)

    def _add(self, process: Process, record: pa.Table, standing: Mapping[str, CostedReceipt]) -> None:
        node = self._nodes[process.host]
        described = process.hardware
        self._kinds.setdefault(type_of(described), (described, set()))[1].add(process.host)
        sampled(record, node.seconds)
        for key, spans in process.worked.items():
            node.worked[key] += spans
        warm = process.starting + sum(process.warm.values())
        if process.touched:
            self._warm_up += warm
            node.starting += process.starting
            node.warm.update(process.warm)
        if process.touched or process.role == "driver":
            node.other += max(0, process.total - process.at_work - (warm if process.touched else 0))
        if process.touched and process.role != "driver":
            node.idle += max(0.0, process.life - process.busy)
        for attempt in process.attempts:
            self._tried += attempt.ticks
            node.tried[attempt.stage] += attempt.ticks
            receipt = standing[attempt.fingerprint]
            if attempt.ended and (receipt.host, receipt.pid) == (process.host, process.pid):
                found = (abs(attempt.began - receipt.started), attempt.ticks, attempt.stage)
                self._nearest[attempt.fingerprint] = min(found, self._nearest.get(attempt.fingerprint, found))
        if process.touched and len(self._shown) < _SHOWN:
            self._shown.append(ProcessTimeline(process.host, process.pid, process.role, bars_of(process, _BARS)))
        elif process.touched:
            self._left_out += 1

    def _keep(self, host: str) -> None:
        """No more journals come of the present process."""
        for _, spent, stage in self._nearest.values():
            self._kept[host, stage] += spent
        self._nearest = {}

    def peaks(self, phase: str) -> dict[str, int]:
        """Bytes by host: the highest sum of PSS over the run's processes there, second by second."""
        return {host: node.phases[phase] for host, node in self._nodes.items() if phase in node.phases}

    def pmu(self, phase: str) -> float | None:
        """PMU in GB: the highest over nodes."""
        peaks = self.peaks(phase)
        return max(peaks.values()) / GB if peaks else None

    def gpu_peak(self, phase: str) -> float | None:
        """GB in use on the GPUs of a node, by whoever: the highest over nodes; None where there is none."""
        peaks = [node.gpu_phases[phase] for node in self._nodes.values() if phase in node.gpu_phases]
        return max(peaks) / GB if peaks else None

    def warm_up(self) -> float:
        """CPU s of starting: until a process's first line, and what stages load before their first task."""
        return self._warm_up / TICKS

    def repeated(self) -> float:
        """CPU s of attempts at the present plan's tasks that were killed, failed, or done again."""
        return max(0, self._tried - sum(self._kept.values())) / TICKS

    def hardware(self) -> list[tuple[Description, int]]:
        """Types of nodes, as `accounts.hardware.describe` gives them, and how many there are of each."""
        return [(described, len(hosts)) for _, (described, hosts) in sorted(self._kinds.items())]

    def types(self) -> dict[str, tuple[Description, list[str]]]:
        """Types of nodes by their short names, with the names of the nodes."""
        return {name: (described, sorted(hosts)) for name, (described, hosts) in sorted(self._kinds.items())}

    def done(self) -> dict[tuple[str, str], CompletedWork]:
        """What stands by receipts, by host and stage."""
        return dict(self._done)

    def nodes(self, phases: Sequence[str]) -> list[NodeCost]:
        """One a host, with its peaks in these phases."""
        found = []
        for host in self._hosts(phases):
            mine = [done for (name, _), done in self._done.items() if name == host]
            peaks = {phase: self._nodes[host].phases[phase] for phase in phases if phase in self._nodes[host].phases}
            found.append(NodeCost(host, sum(d.tasks for d in mine), math.fsum(d.cpu for d in mine), peaks))
        return found

    def _hosts(self, phases: Sequence[str]) -> list[str]:
        worked = {host for host, node in self._nodes.items() if any(phase in node.phases for phase in phases)}
        return sorted({*worked, *(host for host, _ in self._done)})

    def timeline(self) -> Timeline:
        """Who worked on what and when."""
        memory = {host: node.memory for host, node in sorted(self._nodes.items()) if node.memory}
        return Timeline(tuple(self._shown), self._left_out, memory)

    def table(self, driver: tuple[int, float] | None = None) -> pa.Table:
        """Table NODES.

        Args:
            driver: number and present CPU s of a driver that has closed its journal and still works: on the report.
        """
        number, now = driver if driver is not None else (-1, 0.0)
        _, said, at = self._drivers.get(number, (0.0, 0, ""))
        type_by_host = {host: name for name, (_, hosts) in self._kinds.items() for host in hosts}
        rows: list[dict[str, Any]] = []
        for host in sorted({*self._nodes, *(host for host, _ in self._done)}):
            node, first = self._nodes[host], len(rows)
            stages = sorted({*node.warm, *node.tried, *(stage for name, stage in self._done if name == host)})
            # What a receipt holds is a little less than its attempt took: the receipt itself is written after it.
            about = (node.other + (max(0, ticks(now) - said) if host == at else 0)) / TICKS
            for stage in stages:
                done = self._done.get((host, stage), CompletedWork())
                stands = self._kept[host, stage]
                about += max(0.0, stands / TICKS - done.cpu) if stands else 0.0
                peak, gpu = node.stages.get(stage, (None, None))
                rows.append(
                    {
                        "stage": stage,
                        "tasks": done.tasks,
                        "useful_cpu_s": done.cpu,
                        "repeated_cpu_s": max(0, node.tried[stage] - stands) / TICKS,
                        "warm_up_cpu_s": node.warm[stage] / TICKS,
                        "peak_bytes": peak,
                        "gpu_s": done.gpu,
                        "gpu_peak_bytes": gpu,
                        "bytes_read": done.read,
                        "bytes_written": done.written,
                    }
                )
            sums = {name: sum(row[name] for row in rows[first:]) for name in _ADD}
            sums["warm_up_cpu_s"] += node.starting / TICKS
            peak, gpu = node.whole
            whole = {"other_cpu_s": about, "idle_s": node.idle, "peak_bytes": peak, "gpu_peak_bytes": gpu}
            rows.append({"stage": None, **sums, **whole})
            for row in rows[first:]:
                row |= {"node": host, "type": type_by_host.get(host, "unknown")}
                row.setdefault("other_cpu_s", 0.0)
                row.setdefault("idle_s", 0.0)
        return pa.Table.from_pylist(rows, NODES)


_ADD = ("tasks", "useful_cpu_s", "repeated_cpu_s", "warm_up_cpu_s", "gpu_s", "bytes_read", "bytes_written")


def type_of(described: Description) -> str:
    """The short name of a type of node: nodes that are alike have the same."""
    gpu = f", {described['gpu']}" if described.get("gpu") else ""
    brand = "" if described["brand"] == "unknown" else f"{described['brand']}, "
    return f"{brand}{described['cpu']}, {described['cores']} cores, {described['ram_gb']:g} GB{gpu}, {described['os']}"


def _done(receipts: Sequence[CostedReceipt]) -> dict[tuple[str, str], CompletedWork]:
    found: dict[tuple[str, str], CompletedWork] = {}
    for receipt in receipts:
        sums, cost = found.get((receipt.host, receipt.stage), CompletedWork()), receipt.cost
        found[receipt.host, receipt.stage] = CompletedWork(
            sums.tasks + 1,
            sums.cpu + cost.cpu,
            sums.work + receipt.work,
            sums.read + cost.bytes_read,
            sums.written + cost.bytes_written,
            sums.gpu + cost.gpu_s,
        )
    return found
