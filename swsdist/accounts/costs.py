"""Journals tell more than receipts do: the peaks of nodes, warm-up, and lost attempts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from swsdist.accounts.hardware import Description
from swsdist.accounts.journal import Line

GB = 1e9


class _Spent(Protocol):
    @property
    def cpu(self) -> float: ...


class Charged(Protocol):
    """The parts of a receipt that accounts read."""

    @property
    def fingerprint(self) -> str:
        """Of the task."""
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
        """CPU seconds."""
        ...


class NodeCost(NamedTuple):
    """The work of a node: tasks, CPU s, and its peak of memory in bytes for each phase that it worked on."""

    host: str
    tasks: int
    cpu_s: float
    peaks: dict[str, int]


class Costs:
    """The costs of one run.

    Args:
        journals: `accounts.journal.read_journals`.
        receipts: of all tasks of the present plan.
    """

    def __init__(self, journals: list[list[Line]], receipts: Sequence[Charged]) -> None:
        self._journals = journals
        self._receipts = receipts

    def peaks(self, phase: str) -> dict[str, int]:
        """Bytes by host: the highest sum of PSS over the run's processes there, second by second."""
        found: dict[str, int] = {}
        seconds: dict[tuple[str, int], dict[int, int]] = {}
        for k, lines in enumerate(self._journals):
            host = lines[0]["host"]
            # A process counts in every second of its life with what it last said.
            last: tuple[int, int] | None = None
            for line in (line for line in lines if line["event"] == "sample"):
                now = int(line["t"])
                if last is not None:
                    for second in range(last[0] + 1, min(now, last[0] + 5)):
                        seconds.setdefault((host, second), {})[k] = last[1]
                here = seconds.setdefault((host, now), {})
                here[k] = max(here.get(k, 0), line["pss"])
                last = (now, line["pss"])
        during = self._seconds_of(phase)
        for (host, second), by_process in seconds.items():
            if second in during.get(host, ()):
                found[host] = max(found.get(host, 0), sum(by_process.values()))
        return found

    def _seconds_of(self, phase: str) -> dict[str, set[int]]:
        """Seconds in which some process of a host worked on a phase, at tasks of the present plan."""
        planned = {receipt.fingerprint for receipt in self._receipts}
        found: dict[str, set[int]] = {}
        for lines in self._journals:
            begun: Line | None = None
            for line in lines:
                if line["event"] == "begin":
                    begun = line
                elif line["event"] in ("end", "failed") and begun is not None:
                    if begun["fingerprint"] in planned and begun["phase"] == phase:
                        worked = range(int(begun["t"]), int(line["t"]) + 1)
                        found.setdefault(lines[0]["host"], set()).update(worked)
                    begun = None
        return found

    def pmu(self, phase: str) -> float | None:
        """PMU in GB: the highest over nodes."""
        peaks = self.peaks(phase)
        return max(peaks.values()) / GB if peaks else None

    def warm_up(self) -> float:
        """CPU s of starting: until a process's first line, and what stages load before their first task."""
        planned = {receipt.fingerprint for receipt in self._receipts}
        return math.fsum(
            line["cpu"] - line.get("earlier", 0.0) if line["event"] == "open" else line["spent"]
            for lines in self._journals
            if any(line.get("fingerprint") in planned for line in lines)
            for line in lines
            if line["event"] in ("open", "warm")
        )

    def repeated(self) -> float:
        """CPU s of attempts at the present plan's tasks that were killed, failed, or done again."""
        standing = {(r.fingerprint, r.host, r.pid): r.started for r in self._receipts}
        planned = {receipt.fingerprint for receipt in self._receipts}
        spent: list[float] = []
        # The attempt whose receipt stands: of those that its process ended, the one that began when the receipt says.
        kept: dict[str, tuple[float, float]] = {}
        for lines in self._journals:
            for one in _attempts(lines):
                if one.fingerprint not in planned:
                    continue
                spent.append(one.cpu)
                started = standing.get((one.fingerprint, lines[0]["host"], lines[0]["pid"]))
                if one.ended and started is not None:
                    found = (abs(one.began - started), one.cpu)
                    kept[one.fingerprint] = min(found, kept.get(one.fingerprint, found))
        return max(0.0, math.fsum(spent) - math.fsum(cpu for _, cpu in kept.values()))

    def hardware(self) -> list[tuple[Description, int]]:
        """Types of nodes, as `accounts.hardware.describe` gives them, and how many there are of each."""
        kinds: dict[str, tuple[Description, set[str]]] = {}
        for lines in self._journals:
            described = lines[0]["hardware"]
            key = repr([described["brand"], described["cpu"], described["cores"], described["ram_gb"], described["os"]])
            kinds.setdefault(key, (described, set()))[1].add(lines[0]["host"])
        return [(described, len(hosts)) for _, (described, hosts) in sorted(kinds.items())]

    def nodes(self, phases: Sequence[str]) -> list[NodeCost]:
        """One a host, with its peaks in these phases."""
        peaks = {phase: self.peaks(phase) for phase in phases}
        tasks: Counter[str] = Counter()
        cpu: defaultdict[str, float] = defaultdict(float)
        for receipt in self._receipts:
            tasks[receipt.host] += 1
            cpu[receipt.host] += receipt.cost.cpu
        hosts = sorted({*tasks, *(host for found in peaks.values() for host in found)})
        return [
            NodeCost(host, tasks[host], cpu[host], {p: found[host] for p, found in peaks.items() if host in found})
            for host in hosts
        ]


class _Attempt(NamedTuple):
    """At a task: when it began, what it cost in CPU s, and whether it came to its end."""

    fingerprint: str
    began: float
    cpu: float
    ended: bool


def _attempts(lines: list[Line]) -> Iterator[_Attempt]:
    """The attempts that a process made."""
    begun: Line | None = None
    for line in lines:
        if line["event"] == "begin":
            begun = line
        elif line["event"] in ("end", "failed") and begun is not None:
            yield _Attempt(begun["fingerprint"], begun["t"], line["cpu"] - begun["cpu"], line["event"] == "end")
            begun = None
    if begun is not None:  # killed at work: what is known is what it had used when it last wrote
        yield _Attempt(begun["fingerprint"], begun["t"], lines[-1]["cpu"] - begun["cpu"], False)
