"""An executor: tasks in processes of this machine.

In each process `Serial` runs one task at a time, retries it, and keeps the process's journal, from which accounts and
`swsdist status` are made.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.util import Finalize
from typing import NamedTuple

from swsdist.accounts.journal import DriverJournal, Journal
from swsdist.config.model import Executor as Settings
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution.executor import Outcomes, PartListener, Serial
from swsdist.pipeline.task import Failure, Receipt, Task
from swsdist.registry.entries import ExecutorEntry

_journal: Journal
_serial: Serial


class Process(NamedTuple):
    """A process, and its journal."""

    host: str
    pid: int
    journal: str


def start(context: Context, settings: Settings) -> None:
    """Begin a process."""
    global _journal, _serial
    _journal = Journal(context.run, "worker")
    _serial = Serial(context, _journal, settings)
    Finalize(None, _journal.close, exitpriority=1)


def work(task: Task, needs: Sequence[Needs]) -> tuple[Receipt | Failure, Process]:
    """Run a task; the outcome, and the process."""
    ((_, outcome),) = _serial.run([task], needs, lambda task, part: None)
    return outcome, Process(_journal.host, os.getpid(), _journal.name)


class Pool:
    """As many processes as `executor.workers`, from the first task of a run to its end.

    Args:
        context: what tasks need.
        journal: the driver's.
        settings: the section `executor` of the config.
        note: prints a message to the user.

    Attributes:
        start_seconds, stop_seconds: for the report; None: unknown.
    """

    start_seconds: float | None = None
    stop_seconds: float | None = None

    def __init__(
        self, context: Context, journal: DriverJournal, settings: Settings, note: Callable[[str], None]
    ) -> None:
        self._journal, spawn = journal, multiprocessing.get_context("spawn")
        self._processes = ProcessPoolExecutor(settings.workers, spawn, start, (context, settings))

    def run(self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
        """Run tasks, in any order; this one does not report parts of a task."""
        calls = {self._processes.submit(work, task, needs): task for task in tasks}
        for call in as_completed(calls):
            outcome, process = call.result()
            if process.pid not in self._journal.others:  # its time and memory are in its journal, not in the driver's
                self._journal.others.add(process.pid)
                self._journal.write("up", **process._asdict())
            yield calls[call], outcome

    def close(self) -> None:
        """End the processes."""
        clock = time.perf_counter()
        self._processes.shutdown(cancel_futures=True)
        self.stop_seconds = time.perf_counter() - clock


#: How the executor is registered.
EXECUTOR = ExecutorEntry(f"{__name__}:Pool")
