"""Where tasks run: the interface, and the serial executor.

An executor is given tasks and yields, in any order, a receipt or a failure for each. What went wrong decides what follows:

- the user's mistake (`UserError`) is the same for every task, so it ends the run;
- broken data (`DataError`) would be broken again, so the task fails at once;
- an operating system's or network's error may pass, so the task is tried again, up to `executor.attempts` times;
- anything else is a bug: the task fails with its traceback in the journal, and the others go on.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Protocol

from swsdist.accounts.journal import Journal
from swsdist.errors import DataError, UserError
from swsdist.pipeline.execution.worker import Worker
from swsdist.pipeline.task import Context, Failure, Receipt, Task


class Executor(Protocol):
    """Runs tasks somewhere."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Receipt | Failure]:
        """Do all tasks; each comes out once, when it has come to its end."""
        ...

    def close(self) -> None:
        """Give back what was started."""
        ...


def verdict(error: BaseException) -> str:
    """`stop` the run, `fail` the task, or `retry` it."""
    if isinstance(error, UserError) or not isinstance(error, Exception):
        return "stop"
    if isinstance(error, OSError | TimeoutError) and not isinstance(error, FileNotFoundError):
        return "retry"
    return "fail"


def failure(task: Task, error: Exception, attempts: int) -> Failure:
    """The record of a task that an exception ended."""
    if isinstance(error, DataError):
        return Failure(task, "data", str(error), attempts)
    reason = "system" if isinstance(error, OSError) else "bug"
    return Failure(task, reason, f"{type(error).__name__}: {error}", attempts)


def pause(attempt: int) -> None:
    """Wait before the next attempt: 0.5 s, 1 s, 2 s, ... up to 8 s."""
    time.sleep(min(8.0, 0.5 * 2 ** (attempt - 1)))


class Serial:
    """One task after the other in this process."""

    def __init__(self, context: Context, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._attempts = context.config.executor.attempts
        self._worker: Worker | None = None

    def run(self, tasks: Sequence[Task]) -> Iterator[Receipt | Failure]:
        """Do all tasks in their order."""
        for task in tasks:
            if self._worker is None:
                self._worker = Worker(self._context, self._journal, self._context.config.executor.cpus_per_worker)
            yield self._one(self._worker, task)

    def _one(self, worker: Worker, task: Task) -> Receipt | Failure:
        for attempt in range(1, self._attempts + 1):
            try:
                return worker.run(task)
            except Exception as error:
                what = verdict(error)
                if what == "stop":
                    raise
                self._journal.write("error", fingerprint=task.fingerprint, traceback=traceback.format_exc())
                if what == "fail" or attempt == self._attempts:
                    return failure(task, error, attempt)
            pause(attempt)
        raise AssertionError("attempts is at least 1")

    def close(self) -> None:
        """Nothing was started."""
