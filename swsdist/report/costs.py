"""Costs of a run: accounts from its journals, and ISF, SSF, PMU and PL, in total and by type of node.

Journals have more than receipts: peaks of nodes, warm-up, and lost attempts. The records of a run are read in one pass,
process by process; only a few numbers for each node and stage stay in memory. The work of a process is attempts at
tasks, warm-up, and CPU time. CPU times are integers, ticks of 0.1 ms as in journals, so sums of differences are exact
in any order.

The memory of a node, second by second, is the sum over its processes. In a second with samples a process counts with
the highest of them, in the seconds after it with the last. Processes are added one after the other, and only the sums
are kept: 24 bytes for each second of a node, whatever the number of processes.

ISF, SSF, PMU and PL are plain functions of numbers, from a run's accounts or measured otherwise. CPU time is the total
over all processors, "as if it was computed on a single CPU": 14 hours on 16 cores are 224 hours. Conventions: time in
s, memory in GB = 1e9 bytes; None: undefined.

**Two units of SSF.** Equation 46 divides a time by a product of two times, so it is 1/s or 1/h. The source's worked
example is in hours: 48 CPU hours for 0.25 h of queries in 300 h of audio. That is 0.64; the source prints 0.8, a slip.
`searching_speed_factor` is in 1/s, and 3600 times it is what the example computes. PL inherits the unit: name it.

By type of node, they are the cost of the run if all nodes were of that type. A stage's CPU time on a type is divided by
the type's share of the stage's work, in the stage's unit (seconds of audio, cells of the search, ...). A stage in which
a type had no part counts with its cost on the other nodes; a phase in which it had no part has no factor.

Source: Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web search task: system performance measures", 2013,
section 4.3, "Required amount of processing resources", equations 46 to 48.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.hardware import Description
from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.types import NODES
from swsdist.pipeline.task import Receipt

#: Most seconds for which a sample counts if the next is late; the last sample of a process counts for its own second.
_HOLDS = 5


class NodeMemory:
    """Bytes by second of one node: the sum over processes of memory, the maximum over processes of GPU memory."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._at, self._pss, self._gpu = none, none, none

    def add(self, t: Floats, pss: Ints, gpu: Ints) -> None:
        """Add a process.

        Args:
            t: float64 (N,), times of its samples, s, ascending.
            pss: int64 (N,), bytes.
            gpu: int64 (N,), bytes on all GPUs of the node; 0: unknown.
        """
        if not len(t):
            return
        second, first = np.unique(np.floor(t).astype(np.int64), return_index=True)
        most, seen = np.maximum.reduceat(pss, first), np.maximum.reduceat(gpu, first)
        last = pss[np.append(first[1:], len(t)) - 1]
        duration = np.minimum(np.append(np.diff(second), 1), _HOLDS)
        offset = np.arange(duration.sum()) - np.repeat(np.cumsum(duration) - duration, duration)
        at = np.repeat(second, duration) + offset
        self._merge(
            at, np.where(offset == 0, np.repeat(most, duration), np.repeat(last, duration)), np.repeat(seen, duration)
        )

    def _merge(self, at: Ints, pss: Ints, gpu: Ints) -> None:
        self._at, inverse = np.unique(np.concatenate([self._at, at]), return_inverse=True)
        sums, most = np.zeros(len(self._at), np.int64), np.zeros(len(self._at), np.int64)
        np.add.at(sums, inverse, np.concatenate([self._pss, pss]))
        np.maximum.at(most, inverse, np.concatenate([self._gpu, gpu]))
        self._pss, self._gpu = sums, most

    def peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """Highest sum in the seconds that overlap these intervals (s, s); None: no samples."""
        sums = self._pss[self._touched(during)]
        return int(sums.max()) if len(sums) else None

    def gpu_peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """Highest GPU memory in the seconds that overlap these intervals (s, s); None: no GPU."""
        sums = self._gpu[self._touched(during)]
        return int(sums.max()) or None if len(sums) else None

    @property
    def overall(self) -> list[tuple[float, float]]:
        """The interval of all samples, as a list of one; empty: no samples."""
        return [(float(self._at[0]), float(self._at[-1]))] if len(self._at) else []

    def _touched(self, during: Sequence[tuple[float, float]]) -> Bools:
        if not during:
            return np.zeros(len(self._at), np.bool_)
        bounds = np.floor(np.array(during)).astype(np.int64)
        steps = np.zeros(len(self._at) + 1, np.int64)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 0], "left"), 1)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 1], "right"), -1)
        sums: Bools = np.cumsum(steps[:-1]) > 0
        return sums

    def drawn(self, most: int) -> list[tuple[float, int]]:
        """Times and bytes for a plot, at most `most`: the highest sum of intervals of equal length."""
        if not len(self._at):
            return []
        width = max(1, -(-int(self._at[-1] - self._at[0] + 1) // most))
        place, first = np.unique((self._at - self._at[0]) // width, return_index=True)
        high = np.maximum.reduceat(self._pss, first)
        return [(float(self._at[0] + k * width), int(v)) for k, v in zip(place.tolist(), high.tolist(), strict=True)]


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


GB = 1e9

#: Most processes, intervals of a process, and points of a node in a timeline.
_SHOWN, _BARS, _MOMENTS = 48, 400, 400


class NodeCost(NamedTuple):
    """The work of a node: number of tasks, CPU s, GPU s, and peak memory and GPU memory in bytes by phase."""

    host: str
    tasks: int
    cpu_s: float
    gpu_s: float
    peaks: dict[str, int]
    gpu_peaks: dict[str, int]


class ProcessTimeline(NamedTuple):
    """Work intervals of a process, for the timeline."""

    host: str
    pid: int
    role: str
    bars: tuple[Bar, ...]


class Timeline(NamedTuple):
    """Work of processes and memory of nodes over time (s since 1970, bytes).

    Attributes:
        processes: the processes shown.
        left_out: number of other processes.
        memory: by node, highest sum of each interval of time.
    """

    processes: tuple[ProcessTimeline, ...]
    left_out: int
    memory: dict[str, list[tuple[float, int]]]


class CompletedWork(NamedTuple):
    """Sums over the receipts of a stage on a node: tasks, CPU s, work in the stage's unit, bytes, GPU s."""

    tasks: int = 0
    cpu: float = 0.0
    work: float = 0.0
    read: int = 0
    written: int = 0
    gpu: float = 0.0


class _Node:
    """Sums of a node; times in ticks."""

    def __init__(self) -> None:
        self.seconds = NodeMemory()
        self.intervals: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self.warm: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()
        self.starting = 0
        self.other = 0
        self.idle = 0.0
        self.phases: dict[str, int] = {}
        self.gpu_phases: dict[str, int] = {}
        self.stages: dict[str, tuple[int | None, int | None]] = {}
        self.overall: tuple[int | None, int | None] = None, None
        self.memory: list[tuple[float, int]] = []
        self.finished = False

    def finish(self) -> None:
        """Compute the peaks after the last process, and drop the samples."""
        if self.finished:
            return
        self.finished = True
        by_phase: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        by_stage: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for (stage, phase), spans in self.intervals.items():
            by_phase[phase] += spans
            by_stage[stage] += spans
        for phase, spans in by_phase.items():
            if (peak := self.seconds.peak(spans)) is not None:
                self.phases[phase] = peak
            if (peak := self.seconds.gpu_peak(spans)) is not None:
                self.gpu_phases[phase] = peak
        for stage, spans in by_stage.items():
            self.stages[stage] = self.seconds.peak(spans), self.seconds.gpu_peak(spans)
        overall = [(min(a for a, _ in spans), max(b for _, b in spans)) for spans in by_phase.values()]
        # Time between tasks counts for the node's peak, but not time of another run in the folder.
        overall = overall or self.seconds.overall
        self.overall = self.seconds.peak(overall), self.seconds.gpu_peak(overall)
        self.memory = self.seconds.drawn(_MOMENTS)
        self.seconds = NodeMemory()
        self.intervals.clear()


class Costs:
    """The costs of one run.

    Args:
        journals: records in the order of `accounts.records.records`.
        receipts: receipts of all tasks of the present plan.
    """

    def __init__(self, journals: Iterable[pa.Table], receipts: Sequence[Receipt]) -> None:
        self._receipts = receipts
        self._nodes: defaultdict[str, _Node] = defaultdict(_Node)
        self._kinds: dict[str, tuple[Description, set[str]]] = {}
        self._warm_up = 0
        self._tried_ticks = 0
        self._valid_ticks: Counter[tuple[str, str]] = (
            Counter()
        )  # ticks of attempts with valid receipts, by host and stage
        #: For each task that the present process finished: its attempt that began nearest to the receipt's start time.
        self._nearest: dict[str, tuple[float, int, str]] = {}
        self._shown: list[ProcessTimeline] = []
        self._left_out = 0
        self._drivers: dict[int, tuple[float, int, str]] = {}  # by pid: end of the last journal, ticks, host
        receipt_by_task = {receipt.fingerprint: receipt for receipt in receipts}
        before: str | None = None
        last: tuple[str, int] | None = None
        for record in journals:
            process = process_of(record, receipt_by_task.keys())
            if last is not None and last != (process.host, process.pid):
                self._count_valid(last[0])
            last = process.host, process.pid
            if process.role != "driver" and process.host != before:
                if before is not None:
                    self._nodes[before].finish()
                before = process.host
            self._add(process, record, receipt_by_task)
            if process.role == "driver":
                ended = (record["t"][-1].as_py(), process.last, process.host)
                self._drivers[process.pid] = max(ended, self._drivers.get(process.pid, ended))
        if last is not None:
            self._count_valid(last[0])
        for node in self._nodes.values():
            node.finish()
        self._done = _done(receipts)

    def _add(self, process: Process, record: pa.Table, receipt_by_task: Mapping[str, Receipt]) -> None:
        node = self._nodes[process.host]
        described = process.hardware
        self._kinds.setdefault(type_of(described), (described, set()))[1].add(process.host)
        add_samples(record, node.seconds)
        for key, spans in process.intervals.items():
            node.intervals[key] += spans
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
            self._tried_ticks += attempt.ticks
            node.tried[attempt.stage] += attempt.ticks
            receipt = receipt_by_task[attempt.fingerprint]
            if attempt.ended and (receipt.host, receipt.pid) == (process.host, process.pid):
                nearest = (abs(attempt.began - receipt.started), attempt.ticks, attempt.stage)
                self._nearest[attempt.fingerprint] = min(nearest, self._nearest.get(attempt.fingerprint, nearest))
        if process.touched and len(self._shown) < _SHOWN:
            self._shown.append(ProcessTimeline(process.host, process.pid, process.role, bars_of(process, _BARS)))
        elif process.touched:
            self._left_out += 1

    def _count_valid(self, host: str) -> None:
        """Count the valid attempts of a process after its last journal."""
        for _, spent, stage in self._nearest.values():
            self._valid_ticks[host, stage] += spent
        self._nearest = {}

    def peaks(self, phase: str) -> dict[str, int]:
        """Peak memory by host, bytes: the highest sum of PSS over the run's processes in a second."""
        return {host: node.phases[phase] for host, node in self._nodes.items() if phase in node.phases}

    def pmu(self, phase: str) -> float | None:
        """PMU, GB: the highest peak over nodes."""
        peaks = self.peaks(phase)
        return max(peaks.values()) / GB if peaks else None

    def gpu_peak(self, phase: str) -> float | None:
        """Highest GPU memory in use on a node, by any program, GB; None: no GPU."""
        peaks = [node.gpu_phases[phase] for node in self._nodes.values() if phase in node.gpu_phases]
        return max(peaks) / GB if peaks else None

    def gpu_peaks_by_stage(self) -> dict[str, float]:
        """Highest GPU memory in use on a node by stage, GB; stages without a GPU are left out."""
        peaks: dict[str, float] = {}
        for node in self._nodes.values():
            for stage, (_, gpu) in node.stages.items():
                if gpu is not None:
                    peaks[stage] = max(gpu / GB, peaks.get(stage, 0.0))
        return peaks

    def warm_up(self) -> float:
        """CPU s of warm-up: until a process's first line, and loading before a stage's first task."""
        return self._warm_up / TICKS

    def repeated(self) -> float:
        """CPU s of killed, failed and repeated attempts at the present plan's tasks."""
        return max(0, self._tried_ticks - sum(self._valid_ticks.values())) / TICKS

    def types(self) -> dict[str, tuple[Description, list[str]]]:
        """Types of nodes by short name, with the names of the nodes."""
        return {name: (described, sorted(hosts)) for name, (described, hosts) in sorted(self._kinds.items())}

    def done(self) -> dict[tuple[str, str], CompletedWork]:
        """Sums over receipts, by host and stage."""
        return dict(self._done)

    def nodes(self, phases: Sequence[str]) -> list[NodeCost]:
        """Cost of each node, with its peaks in these phases."""
        node_costs = []
        for host in self._hosts(phases):
            on_host = [done for (name, _), done in self._done.items() if name == host]
            peaks, gpu_peaks = (
                {phase: by_phase[phase] for phase in phases if phase in by_phase}
                for by_phase in (self._nodes[host].phases, self._nodes[host].gpu_phases)
            )
            cpu, gpu = math.fsum(d.cpu for d in on_host), math.fsum(d.gpu for d in on_host)
            node_costs.append(NodeCost(host, sum(d.tasks for d in on_host), cpu, gpu, peaks, gpu_peaks))
        return node_costs

    def _hosts(self, phases: Sequence[str]) -> list[str]:
        active = {host for host, node in self._nodes.items() if any(phase in node.phases for phase in phases)}
        return sorted({*active, *(host for host, _ in self._done)})

    def timeline(self) -> Timeline:
        """The timeline of the run."""
        memory = {host: node.memory for host, node in sorted(self._nodes.items()) if node.memory}
        return Timeline(tuple(self._shown), self._left_out, memory)

    def table(self, driver: tuple[int, float] | None = None) -> pa.Table:
        """Table NODES.

        Args:
            driver: pid and present CPU s of a driver that has closed its journal and still writes the report.
        """
        number, now = driver if driver is not None else (-1, 0.0)
        _, ticks_at_close, driver_host = self._drivers.get(number, (0.0, 0, ""))
        type_by_host = {host: name for name, (_, hosts) in self._kinds.items() for host in hosts}
        rows: list[dict[str, Any]] = []
        for host in sorted({*self._nodes, *(host for host, _ in self._done)}):
            node, first = self._nodes[host], len(rows)
            stages = sorted({*node.warm, *node.tried, *(stage for name, stage in self._done if name == host)})
            # A receipt has slightly less CPU time than its attempt, since it is written before the attempt ends.
            other_cpu = (node.other + (max(0, ticks(now) - ticks_at_close) if host == driver_host else 0)) / TICKS
            for stage in stages:
                done = self._done.get((host, stage), CompletedWork())
                valid_ticks = self._valid_ticks[host, stage]
                other_cpu += max(0.0, valid_ticks / TICKS - done.cpu) if valid_ticks else 0.0
                peak, gpu = node.stages.get(stage, (None, None))
                rows.append(
                    {
                        "stage": stage,
                        "tasks": done.tasks,
                        "useful_cpu_s": done.cpu,
                        "repeated_cpu_s": max(0, node.tried[stage] - valid_ticks) / TICKS,
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
            peak, gpu = node.overall
            overall = {"other_cpu_s": other_cpu, "idle_s": node.idle, "peak_bytes": peak, "gpu_peak_bytes": gpu}
            rows.append({"stage": None, **sums, **overall})
            for row in rows[first:]:
                row |= {"node": host, "type": type_by_host.get(host, "unknown")}
                row.setdefault("other_cpu_s", 0.0)
                row.setdefault("idle_s", 0.0)
        return pa.Table.from_pylist(rows, NODES)


_ADD = ("tasks", "useful_cpu_s", "repeated_cpu_s", "warm_up_cpu_s", "gpu_s", "bytes_read", "bytes_written")


def type_of(described: Description) -> str:
    """Short name of a type of node; equal hardware has equal names."""
    gpu = f", {described['gpu']}" if described.get("gpu") else ""
    brand = "" if described["brand"] == "unknown" else f"{described['brand']}, "
    return f"{brand}{described['cpu']}, {described['cores']} cores, {described['ram_gb']:g} GB{gpu}, {described['os']}"


def _done(receipts: Sequence[Receipt]) -> dict[tuple[str, str], CompletedWork]:
    sums_by_key: dict[tuple[str, str], CompletedWork] = {}
    for receipt in receipts:
        sums, cost = sums_by_key.get((receipt.host, receipt.stage), CompletedWork()), receipt.cost
        sums_by_key[receipt.host, receipt.stage] = CompletedWork(
            sums.tasks + 1,
            sums.cpu + cost.cpu,
            sums.work + receipt.work,
            sums.read + cost.bytes_read,
            sums.written + cost.bytes_written,
            sums.gpu + cost.gpu_s,
        )
    return sums_by_key


def indexing_speed_factor(cpu_s: float, audio_s: float) -> float | None:
    """ISF: CPU seconds of indexing, as if on a single CPU, per second of audio (section 4.3).

    The source's example, 224 CPU hours for 300 hours of audio, gives 0.7467. None where there was no audio.
    """
    return cpu_s / audio_s if audio_s > 0 else None


def query_seconds(examples: Mapping[str, Iterable[float]]) -> float:
    """T_Q of equation 47: the sum over queries q, and over the examples j in S(q) used to search for q, of T_j.

    Args:
        examples: query -> durations of its examples, s.
    """
    return math.fsum(seconds for durations in examples.values() for seconds in durations)


def searching_speed_factor(cpu_s: float, query_s: float, audio_s: float) -> float | None:
    """SSF = T_searching / (T_Q T_Omega), equation 46, with all three in s; so it is in 1/s.

    The source's example uses hours: 48 CPU hours, 0.25 hours of queries and 300 hours of audio give 0.64 (printed
    there as 0.8, a slip). That is 3600 times this function's value. None where there was nothing to search.

    Args:
        cpu_s: CPU seconds of searching, as if on a single CPU.
        query_s: T_Q of equation 47, see `query_seconds`.
        audio_s: T_Omega, the duration of the documents.
    """
    return cpu_s / (query_s * audio_s) if query_s > 0 and audio_s > 0 else None


def query_cost(cpu_s: float, queries: int, audio_s: float) -> float | None:
    """CPU seconds of searching per query and hour of audio: of written queries too, which have no duration.

    None where there was nothing to search.
    """
    return cpu_s / (queries * audio_s / 3600) if queries > 0 and audio_s > 0 else None


def peak_memory(gigabytes: Iterable[float]) -> float | None:
    """PMU of a phase: the single highest value over all steps and nodes (section 4.3). None if there are none.

    Args:
        gigabytes: highest memory of each node or step, GB.
    """
    return max(gigabytes, default=None)


def processing_load(
    isf: float | None, ssf: float | None, pmu_index_gb: float | None, pmu_search_gb: float | None, weight: float
) -> float | None:
    """PL = lambda ISF PMU_i + (1 - lambda) SSF PMU_s, equation 48; None where a factor is unknown.

    PL depends on the unit of `ssf` (1/s or 1/h): state it with the figure.

    Args:
        weight: lambda, from 0 to 1; the source suggests 0.1.

    Raises:
        UserError: lambda is outside 0 to 1.
    """
    if not 0 <= weight <= 1:
        raise families.INVALID_VALUE.of(UserError)(
            "the weight lambda of PL is {weight}", "give a number between 0 and 1", weight=weight
        )
    if isf is None or ssf is None or pmu_index_gb is None or pmu_search_gb is None:
        return None
    return weight * isf * pmu_index_gb + (1 - weight) * ssf * pmu_search_gb


@dataclass(frozen=True, kw_only=True)
class Factors:
    """All measures of cost.

    Attributes:
        isf: indexing speed factor.
        ssf: searching speed factor, 1/s.
        ssf_hours: the same with all times in hours.
        pmu_index_gb, pmu_search_gb: peak memory of the two phases, GB.
        pl: processing load with `ssf`.
        pl_hours: with `ssf_hours`.
        pl_lambda: the weight of indexing in both.
        index_gpu_s, search_gpu_s: s for which tasks reserved a GPU; not part of any factor.
        gpu_index_gb, gpu_search_gb: GPU memory in use, GB; not part of any factor.
    """

    isf: float | None
    ssf: float | None
    ssf_hours: float | None
    pmu_index_gb: float | None
    pmu_search_gb: float | None
    pl: float | None
    pl_hours: float | None
    pl_lambda: float
    index_gpu_s: float | None = None
    search_gpu_s: float | None = None
    gpu_index_gb: float | None = None
    gpu_search_gb: float | None = None


def factors(
    *,
    index_cpu_s: float | None = None,
    search_cpu_s: float | None = None,
    query_s: float | None = None,
    audio_s: float | None = None,
    index_peaks_gb: Iterable[float] = (),
    search_peaks_gb: Iterable[float] = (),
    weight: float = 0.1,
) -> Factors:
    """Compute all measures that the given values define; the others are None.

    Args:
        index_cpu_s: CPU s of indexing.
        search_cpu_s: CPU s of searching.
        query_s: duration of all query examples, before trimming, s.
        audio_s: duration of the documents, s.
        index_peaks_gb: peak memory of each node while indexing, GB.
        search_peaks_gb: the same while searching.
        weight: lambda of PL.

    Raises:
        UserError: a number is negative or not finite, or lambda is outside 0 to 1.
    """
    index_peaks, search_peaks = list(index_peaks_gb), list(search_peaks_gb)
    quantities: dict[str, list[float | None]] = {
        "CPU time of indexing": [index_cpu_s],
        "CPU time of searching": [search_cpu_s],
        "duration of the queries": [query_s],
        "duration of the audio": [audio_s],
        "peak memory": [*index_peaks, *search_peaks],
    }
    for name, values in quantities.items():
        for value in values:
            if value is not None and not 0 <= value < math.inf:
                raise families.INVALID_VALUE.of(UserError)(
                    "the {quantity} is {value}", "give a finite number that is not negative", quantity=name, value=value
                )
    isf = indexing_speed_factor(index_cpu_s, audio_s) if index_cpu_s is not None and audio_s is not None else None
    ssf = None
    if search_cpu_s is not None and query_s is not None and audio_s is not None:
        ssf = searching_speed_factor(search_cpu_s, query_s, audio_s)
    ssf_hours = None if ssf is None else 3600 * ssf
    pmu_index, pmu_search = peak_memory(index_peaks), peak_memory(search_peaks)
    return Factors(
        isf=isf,
        ssf=ssf,
        ssf_hours=ssf_hours,
        pmu_index_gb=pmu_index,
        pmu_search_gb=pmu_search,
        pl=processing_load(isf, ssf, pmu_index, pmu_search, weight),
        pl_hours=processing_load(isf, ssf_hours, pmu_index, pmu_search, weight),
        pl_lambda=weight,
    )


class TypeCost(NamedTuple):
    """A type of node: name, hardware, its nodes that worked, and its factors."""

    name: str
    hardware: Description
    nodes: tuple[str, ...]
    factors: Factors


def by_type(
    costs: Costs, phases: Mapping[str, str], *, query_s: float, audio_s: float, weight: float
) -> tuple[TypeCost, ...]:
    """Costs of each type of node that worked on the run's tasks.

    Args:
        costs: costs of the run.
        phases: phase of each stage, by name: `index`, `search`; others are not counted.
        query_s: duration of all query examples, s.
        audio_s: duration of the documents, s.
        weight: lambda of PL.
    """
    done = costs.done()
    worked = {host for host, _ in done}
    type_costs = []
    for name, (described, hosts) in costs.types().items():
        hosts_at_work = [host for host in hosts if host in worked]
        if not hosts_at_work:
            continue
        index, search = (
            _cpu(costs, hosts_at_work, [s for s, p in phases.items() if p == phase]) for phase in ("index", "search")
        )
        peaks = [
            [bytes_ / GB for host, bytes_ in costs.peaks(phase).items() if host in hosts_at_work]
            for phase in ("index", "search")
        ]
        factors_of_type = factors(
            index_cpu_s=index,
            search_cpu_s=search,
            query_s=query_s,
            audio_s=audio_s,
            index_peaks_gb=peaks[0],
            search_peaks_gb=peaks[1],
            weight=weight,
        )
        type_costs.append(TypeCost(name, described, tuple(hosts_at_work), factors_of_type))
    return tuple(type_costs)


def _cpu(costs: Costs, hosts: Sequence[str], stages: Sequence[str]) -> float | None:
    """CPU s of a phase if these nodes had done all of it."""
    parts, any_work = [], False
    for stage in stages:
        on_all = [item for (_, name), item in costs.done().items() if name == stage]
        on_these = [item for (host, name), item in costs.done().items() if name == stage and host in hosts]
        if not on_all:
            continue
        work, part = (math.fsum(item.work for item in some) for some in (on_all, on_these))
        if on_these and part > 0:
            any_work = True
            parts.append(math.fsum(item.cpu for item in on_these) * work / part)
        else:
            parts.append(math.fsum(item.cpu for item in on_all))
    return math.fsum(parts) if any_work else None
