"""An executor runs tasks; this module has the interface and the serial executor.

An executor is given tasks and yields, in any order, a receipt or a failure for each. What went wrong decides what follows:

- the user's mistake (`UserError`) is the same for every task, so it ends the run;
- broken data (`DataError`) would be broken again, so the task fails at once;
- an operating system's or network's error that may pass (`swsdist.io.failures`) is tried again after a pause, up to
  `executor.attempts` times; one that does not pass ends the run where something was to be written, else the task fails;
- anything else is a bug: the task fails, and the others go on.

The driver keeps the traceback of a task that failed in a file (`swsdist.pipeline.execution.failure_files`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from swsdist.accounts.hardware import gpu_count
from swsdist.accounts.journal import Journal
from swsdist.config.model import Executor as Settings
from swsdist.core.errors import DataError, StorageError, TransitError, UserError
from swsdist.core.needs import Needs
from swsdist.core.redaction import redacted
from swsdist.io.failures import explain
from swsdist.pipeline.execution.failure_files import origin
from swsdist.pipeline.execution.policy import pause
from swsdist.pipeline.execution.worker import Parts, Worker
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task


class Executor(Protocol):
    """An executor runs tasks somewhere.

    Attributes:
        start_seconds, stop_seconds: that starting and stopping took; None where nothing was started.
    """

    start_seconds: float | None
    stop_seconds: float | None

    def run(
        self, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do all tasks; each comes out once, when it has come to its end.

        Args:
            tasks: of one stage.
            needs: what a worker must have, alternatives, the best first.
            told: is told now and then how much of a task is done.
        """
        ...

    def close(self) -> None:
        """Give back what was started."""
        ...


def error_action(error: BaseException) -> str:
    """`stop` the run, `fail` the task, or `retry` it."""
    told = explain(error)
    if told is not None and told.passing:
        return "retry"
    if isinstance(error, UserError) or not isinstance(error, Exception):
        return "stop"
    if told is None and isinstance(error, OSError):
        return "retry"  # it has no number that tells
    if isinstance(error, TransitError):
        return "retry"
    return "fail"


def failure_of(task: Task, error: Exception, attempts: int, traceback: str) -> Failure:
    """The record of a task that an exception ended."""
    told = explain(error)
    if told is not None and (isinstance(error, StorageError) or told.cause != "missing"):
        return Failure(task, told.cause, str(told), attempts, traceback, told)
    if isinstance(error, DataError):
        return Failure(task, "data", str(error), attempts, traceback)
    reason = "system" if isinstance(error, OSError) else "bug"
    place = origin(traceback)
    message = redacted(f"{type(error).__name__}: {error}") + (f" ({place})" if place else "")
    return Failure(task, reason, message, attempts, traceback)


def note_retry(journal: Journal, task: Task, attempt: int, error: Exception) -> None:
    """Say in the driver's journal that a task will be tried again."""
    with suppress(StorageError):  # the disk may be full
        told = {"stage": task.stage, "task": task.fingerprint, "label": task.label}
        journal.write("retry", **told, attempt=attempt, message=str(error).partition("\n")[0][:500])


class Serial:
    """The serial executor runs one task after the other in this process."""

    start_seconds: float | None = None
    stop_seconds: float | None = None

    def __init__(self, context: Context, journal: Journal, settings: Settings) -> None:
        self._context = replace(context, granted=Needs(settings.cpus_per_worker, settings.memory_per_worker_gb))
        self._journal = journal
        self._settings = settings
        self._worker: Worker | None = None

    def run(
        self, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do all tasks in their order; what they need is taken to be here, but for a GPU, which is looked for."""
        fitting = [one for one in needs if not one.gpus or gpu_count()] or [*needs]
        self._context.granted = replace(self._context.granted, gpus=fitting[0].gpus)
        for task in tasks:
            if self._worker is None:
                self._worker = Worker(self._context, self._journal, self._settings.cpus_per_worker)
            self._worker.told = told
            yield task, self._one(self._worker, task)

    def _one(self, worker: Worker, task: Task) -> Receipt | Failure:
        for attempt in range(1, self._settings.attempts + 1):
            try:
                return worker.run(task)
            except Exception as error:
                what = error_action(error)
                if what == "stop":
                    raise
                text = traceback.format_exc()
                with suppress(StorageError):  # the disk may be full
                    self._journal.write("error", fingerprint=task.fingerprint, traceback=text)
                if what == "fail" or attempt == self._settings.attempts:
                    return failure_of(task, error, attempt, text)
                note_retry(self._journal, task, attempt, error)
            time.sleep(pause(attempt))
        raise AssertionError("attempts is at least 1")

    def close(self) -> None:
        """Nothing was started."""
