"""What Ray costs: two Ray actors that share the tasks, against two plain processes that each do half of them.

Mboshi dev read ten times is indexed and searched with 120 queries. Both arms go through the same stages (index, queries,
search) with the same planning; a worker has one thread. Of each arm the wall seconds from its workers being ready to its
last result count; start-up and shutdown are reported apart. The halves are cut by work, as evenly as whole tasks allow, so
a plain process never asks for work: it is the cheapest dispatch there is.

Ray gives its workers a low priority (nice 15), so the plain processes take that of the actors: else whatever runs beside
them would slow one arm only. The arms alternate, and the median of the rounds' ratios counts, since a machine that others
use gives different times each round; the part of two cores that the tasks got tells how far a figure can be trusted.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.corpora import Corpus, base, repeated
from benchmarks.rows import Row, at_most, main, say
from swsdist.accounts.journal import DriverJournal, Journal
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.chain_run import StepSelection, prepare_chain_run
from swsdist.pipeline.execution.executor import Executor, PartListener, Worker
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.ledger import ONLY, Ledger, StepOutcome
from swsdist.pipeline.task import Failure, Receipt, Task

_ROUNDS = 3
_STAGES = ("index", "queries", "search")


class Arm(NamedTuple):
    """Wall seconds of one way through the stages, CPU seconds of all its tasks, and its workers' niceness."""

    work: float
    start: float
    stop: float
    cpu: float
    stages: dict[str, float]
    nice: int


def measure(scratch: Path) -> list[Row]:
    """Rounds of both arms, in turn first."""
    corpus = repeated(base(scratch), 10, scratch)
    rays: list[Arm] = []
    halves: list[Arm] = []
    for k in range(_ROUNDS):
        for ray in (True, False) if k % 2 == 0 else (False, True):
            arm = _run(corpus, scratch / "run", None if ray else rays[0].nice)
            (rays if ray else halves).append(arm)
            say(f"ray_cost: round {k + 1}, {'Ray' if ray else 'halves'}: {arm.work:.1f} s, CPU {arm.cpu:.1f} s")
    ratios = [one.work / other.work for one, other in zip(rays, halves, strict=True)]
    name = f"Ray against two serial halves, {corpus.name}"
    rows = [
        Row(f"{name}: wall from ready to last result", statistics.median(ratios), "ratio", at_most(1.15)),
        Row(f"{name}: the same, least round", min(ratios), "ratio"),
        Row(f"{name}: the same, greatest round", max(ratios), "ratio"),
        Row(f"{name}: CPU of the tasks", _median(a.cpu / b.cpu for a, b in zip(rays, halves, strict=True)), "ratio"),
    ]
    for who, arms in (("Ray", rays), ("two serial halves", halves)):
        rows.append(Row(f"{who}: part of two cores that the tasks got", _median(a.cpu / a.work / 2 for a in arms), ""))
    for stage in ("index", "search"):
        both = zip(rays, halves, strict=True)
        rows.append(
            Row(f"{name}: wall of {stage}", _median(a.stages[stage] / b.stages[stage] for a, b in both), "ratio")
        )
    return [
        *rows,
        Row("two serial halves: wall from ready to last result", _median(arm.work for arm in halves), "s"),
        Row("two serial halves: start-up", _median(arm.start for arm in halves), "s"),
        Row("Ray: wall from ready to last result", _median(arm.work for arm in rays), "s"),
        Row("Ray: start-up", _median(arm.start for arm in rays), "s"),
        Row("Ray: shutdown", _median(arm.stop for arm in rays), "s"),
    ]


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


def _run(corpus: Corpus, run: Path, nice: int | None) -> Arm:
    """One arm: Ray, or, if a niceness is given, plain processes of that niceness."""
    ray = nice is None
    config = corpus.config(
        run,
        index={"shard_hours": 0.25},
        executor={"kind": "ray" if ray else "serial", "workers": 2, "cpus_per_worker": 1},
    )
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run)), StepSelection())
    journal = DriverJournal(chain_run.run)
    context = Context(chain_run.run, {step.stage.name: step.stage for step in chain_run.steps})
    executor: Executor = RayExecutor(context, journal, config.executor) if nice is None else Halves(context, nice)
    begun = time.perf_counter()
    ready = 0.0
    stages: dict[str, float] = {}
    receipts: list[Receipt] = []
    for name in _STAGES:
        step = chain_run.chain.step(name)
        tasks = list(step.stage.plan(chain_run.inputs(step)))
        clock = time.perf_counter()
        if not ready:
            begun = clock
        done, first = _do(executor, tasks)
        last = time.perf_counter()
        if not ready:
            # An actor may begin before the other is ready; then its first task's beginning counts.
            ready = min(clock + (executor.start_seconds or 0.0), first)
            clock = ready
        stages[name] = last - clock
        receipts += done
        for task, receipt in zip(tasks, done, strict=True):
            chain_run.ledger.note(task, receipt)
        chain_run.outcomes[name] = StepOutcome(receipts=done, done=len(done))
        step.stage.finish(chain_run.inputs(step))
    work = last - ready
    found = psutil.Process(receipts[0].pid).nice()
    executor.close()
    journal.close()
    shutil.rmtree(run)
    cpu = sum(receipt.cost.cpu for receipt in receipts)
    return Arm(work, ready - begun, executor.stop_seconds or 0.0, cpu, stages, int(found))


def _do(executor: Executor, tasks: Sequence[Task]) -> tuple[list[Receipt], float]:
    """Receipts of all tasks, and when the first of them began, on the clock of `perf_counter`."""
    found: dict[str, Receipt] = {}
    for task, outcome in executor.run(tasks, [Needs()], lambda task, part: None):
        if not isinstance(outcome, Receipt):
            raise RuntimeError(f"a task failed: {outcome.message}")
        found[task.fingerprint] = outcome
    done = [found[task.fingerprint] for task in tasks]
    return done, time.perf_counter() - (time.time() - min(receipt.started for receipt in done))


class Halves:
    """Two plain processes, each with the half of a stage's tasks that is laid out for it beforehand.

    Args:
        context: config and folders.
        nice: niceness of the processes.

    Attributes:
        start_seconds: wall seconds until both are ready.
        stop_seconds: wall seconds until both have ended.
    """

    def __init__(self, context: Context, nice: int) -> None:
        self._context = context
        self._nice = nice
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._pipes: list[Connection] = []
        self.start_seconds: float | None = None
        self.stop_seconds: float | None = None

    def _start(self) -> None:
        clock = time.perf_counter()
        spawn = multiprocessing.get_context("spawn")
        for _ in range(2):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_half, args=(self._context, self._nice, there), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
            self._pipes.append(here)
        for pipe in self._pipes:
            pipe.recv()
        self.start_seconds = time.perf_counter() - clock

    def run(
        self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do all tasks."""
        if not self._processes:
            self._start()
        for pipe, half in zip(self._pipes, halved(tasks), strict=True):
            pipe.send(half)
        left, known = len(tasks), {task.fingerprint: task for task in tasks}
        while left:
            ready = wait(self._pipes)
            for pipe in self._pipes:
                if pipe in ready:
                    receipt = pipe.recv()
                    yield known[receipt.fingerprint], receipt
                    left -= 1

    def close(self) -> None:
        """Let both processes end."""
        clock = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()
        self.stop_seconds = time.perf_counter() - clock


def halved(tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
    """Two lists of about equal work: the largest task left goes to the list that has less."""
    halves: tuple[list[Task], list[Task]] = ([], [])
    work = [0.0, 0.0]
    for task in sorted(tasks, key=lambda task: -task.work):
        k = int(work[1] < work[0])
        halves[k].append(task)
        work[k] += task.work
    return halves


def _half(context: Context, nice: int, pipe: Connection) -> None:
    """A process of the plain arm: the same worker as everywhere, fed through a pipe."""
    os.nice(nice - os.nice(0))
    journal = Journal(context.run, "worker")
    worker = Worker(context, journal, 1)
    pipe.send("ready")
    while (tasks := pipe.recv()) is not None:
        for task in tasks:
            pipe.send(worker.run(task))
    journal.close()


if __name__ == "__main__":
    main(measure, __doc__)
