"""The interface of executors, the serial executor, and files of failed tasks.

An executor yields a receipt or a failure for each task, in any order. Errors are handled by their kind:

- a user's mistake (`UserError`) is the same for every task, so it ends the run;
- broken data (`DataError`) stay broken, so the task fails at once;
- a transient error of the operating system or the network (`swsdist.io.failures`) is tried again after a pause, with at
  most `executor.attempts` attempts in all; a permanent one ends the run if it is an error of writing, otherwise the task fails;
- any other error is a bug: the task fails, and the others go on.

The driver keeps the traceback of a failed task in a file of the folder `failed/` in the run folder, until the task is
done. A failure in an extension names the line of the extension, not that of a library that it calls.
"""

from __future__ import annotations

import gc
import os
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Protocol

from swsdist.accounts.hardware import gpu_count
from swsdist.accounts.journal import Journal, cpu_seconds, peak_bytes, reset_peak
from swsdist.config.model import Executor as Settings
from swsdist.core.codes.storage import MISSING_FILE
from swsdist.core.errors import DamagedTransferError, DataError, StorageError, TransientError, UserError
from swsdist.core.needs import Needs
from swsdist.core.text import redacted
from swsdist.io.failures import explain
from swsdist.io.filesystem import Folder
from swsdist.io.local import bytes_read
from swsdist.pipeline.chain import Context, Stage
from swsdist.pipeline.execution.policy import pause
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.task import Cost, Failure, Receipt, Task
from swsdist.store.memory import Cache, use

#: Called with a running task and its finished part, 0 to 1.
PartListener = Callable[[Task, float], None]
#: Tasks that have ended, with their receipts or failures.
Outcomes = Iterator[tuple[Task, Receipt | Failure]]

#: Least seconds between two reports of a running task.
REPORT_INTERVAL = 0.2


class Worker:
    """Runs tasks one after the other, and accounts for their cost.

    Args:
        context: config and folders.
        journal: journal of this process.
        threads: threads of the numeric libraries.
        dedicated: whether the process does nothing else, so that the worker may release memory.

    Attributes:
        on_part: called with the finished part of the present task, a few times a second at most; None: not called.
    """

    def __init__(self, context: Context, journal: Journal, threads: int, dedicated: bool = False) -> None:
        self._context = context
        self._dedicated = dedicated
        self._journal = journal
        self.on_part: PartListener | None = None
        self._warm: set[str] = set()
        limit_threads(threads)
        if dedicated:
            use_system_memory()
        use(None if context.cache is None else Cache(*context.cache))

    def run(self, task: Task) -> Receipt:
        """Run a task; the receipt is written last."""
        stage = self._context.stages[task.stage]
        self._warm_up(stage, task)
        if self._dedicated:
            release_memory()
        self._journal.write("begin", stage=task.stage, phase=stage.phase, fingerprint=task.fingerprint)
        try:
            receipt = self._attempt(task, stage)
        except BaseException as error:
            self._journal.write("failed", stage=task.stage, fingerprint=task.fingerprint, error=repr(error))
            raise
        self._journal.write("end", stage=task.stage, fingerprint=task.fingerprint)
        return receipt

    def _attempt(self, task: Task, stage: Stage) -> Receipt:
        context = self._context
        reset_peak()
        started, clock, cpu, read = time.time(), time.perf_counter(), cpu_seconds(), bytes_read()
        context.listener = self._listener(task)
        with self._journal.phase(stage.phase):
            try:
                done = stage.run(task, context)
            finally:
                context.listener, self._journal.part = None, None
        user, system = (after - before for after, before in zip(cpu_seconds(), cpu, strict=True))
        wall = time.perf_counter() - clock
        cost = Cost(
            cpu_user=round(user, 6),
            cpu_system=round(system, 6),
            wall=round(wall, 6),
            peak_bytes=peak_bytes(),
            bytes_read=bytes_read() - read,
            bytes_written=sum(output.size for output in done.outputs),
            cells=done.cells,
            gpu_s=round(wall * context.granted.gpus, 6),
        )
        receipt = Receipt(
            stage=task.stage,
            version=stage.version,
            fingerprint=task.fingerprint,
            label=task.label,
            work=task.work,
            outputs=done.outputs,
            result={} if done.result is None else done.result._asdict(),
            rejected=done.rejected,
            cost=cost,
            host=self._journal.host,
            pid=os.getpid(),
            started=started,
            finished=time.time(),
            round=task.round,
        )
        context.folder(task).write_bytes(receipt_name(task.stage, task.fingerprint), receipt.to_json().encode())
        return receipt

    def _listener(self, task: Task) -> Callable[[float], None]:
        """Pass the finished part to the journal's next sample and to `on_part`."""
        reported = 0.0

        def listen(part: float) -> None:
            nonlocal reported
            self._journal.part = task.fingerprint, part
            if self.on_part is not None and (now := time.monotonic()) - reported >= REPORT_INTERVAL:
                reported = now
                self.on_part(task, part)

        return listen

    def _warm_up(self, stage: Stage, task: Task) -> None:
        """Load what a stage needs before its first task; the cost is recorded as warm-up."""
        if stage.name in self._warm:
            return
        before = sum(cpu_seconds())
        stage.warm(task, self._context)
        self._warm.add(stage.name)
        if self._dedicated:
            # Modules and compiled code stay: frozen, they do not slow down later collections.
            gc.collect()
            gc.freeze()
        self._journal.write("warm", stage=stage.name, spent=round(sum(cpu_seconds()) - before, 4))


def use_system_memory() -> None:
    """Let Arrow use the C library's allocator: its own allocators keep about 100 MB of freed memory."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def release_memory() -> None:
    """Release the memory of the previous task: reference cycles, and freed memory that allocators keep."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()


def limit_threads(threads: int) -> Any:
    """Limit the threads of BLAS, numba and Arrow; without it numba uses all cores of the node in an actor."""
    import numba
    import pyarrow as pa
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(2, threads))
    return threadpool_limits(limits=threads)


FOLDER = "failed"

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OURS = str(PurePath(__file__).parents[2])


def failure_file(task: Task) -> str:
    """File name of a task's failure in the run folder."""
    return f"{FOLDER}/{task.stage}-{task.fingerprint}.txt"


def origin(traceback: str) -> str | None:
    """File, line and function that raised an exception.

    If swsdist called another package, the innermost line of that package; libraries below it say little. Otherwise the
    innermost line of swsdist.

    Args:
        traceback: Python's traceback; of chained exceptions the last counts.
    """
    frames = list(_FRAME.finditer(traceback.rpartition("Traceback (most recent call last)")[2]))
    if not frames:
        return None
    own_frames = [k for k, frame in enumerate(frames) if _package(frame["file"]) == _OURS]
    called = frames[own_frames[-1] + 1 :] if own_frames else frames
    if called:
        frame = [item for item in called if _package(item["file"]) == _package(called[0]["file"])][-1]
    else:
        frame = frames[-1]
    return f"{frame['file']}, line {frame['line']}, in {frame['function']}"


def _package(file: str) -> str:
    """The folder of a file's package, or its parent folder."""
    parts = PurePath(file).parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return "/".join(parts[: parts.index(name) + 2])
    return _OURS if file.startswith(f"{_OURS}/") else str(PurePath(file).parent)


def save_failure(run: Folder, failure: Failure) -> Failure:
    """Write a failure to a file, and return it with the file's name; unchanged if nothing can be written."""
    text = redacted(_COLOURS.sub("", failure.traceback)) or "No traceback: the process died.\n"
    text_of_file = (
        f"{failure.task.stage}, {failure.task.label}: {failure.message}\nattempts: {failure.attempts}\n\n{text}"
    )
    name = failure_file(failure.task)
    with suppress(StorageError):
        run.write_bytes(name, text_of_file.encode())
        return replace(failure, file=name)
    return failure


def remove_failures(run: Folder, names: Iterable[str]) -> None:
    """Remove the files of tasks that are done."""
    for name in names:
        run.remove(name)


class Executor(Protocol):
    """Runs tasks.

    Attributes:
        start_seconds, stop_seconds: duration of starting and stopping; None: nothing was started.
    """

    start_seconds: float | None
    stop_seconds: float | None

    def run(self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
        """Run all tasks; yields each once, when it has ended.

        Args:
            tasks: tasks of one stage.
            needs: alternative resources of a worker, the best first.
            on_part: called with the finished part of running tasks.
        """
        ...

    def close(self) -> None:
        """Stop what was started."""
        ...


def error_action(error: BaseException) -> str:
    """`stop` the run, `fail` the task, or `retry` it."""
    storage_error = explain(error)
    if isinstance(storage_error, TransientError):
        return "retry"
    if isinstance(error, UserError) or not isinstance(error, Exception):
        return "stop"
    if storage_error is None and isinstance(error, OSError):
        return "retry"  # without an errno it may be transient
    if isinstance(error, DamagedTransferError):
        return "retry"
    return "fail"


def failure_of(task: Task, error: Exception, attempts: int, traceback: str) -> Failure:
    """The failure of a task that raised an error."""
    storage_error = explain(error)
    if storage_error is not None and (isinstance(error, StorageError) or storage_error.code != MISSING_FILE.name):
        return Failure(task, storage_error.code or "storage", str(storage_error), attempts, traceback, storage_error)
    if isinstance(error, DataError):
        return Failure(task, "data", str(error), attempts, traceback)
    reason = "system" if isinstance(error, OSError) else "bug"
    place = origin(traceback)
    message = redacted(f"{type(error).__name__}: {error}") + (f" ({place})" if place else "")
    return Failure(task, reason, message, attempts, traceback)


def note_retry(journal: Journal, task: Task, attempt: int, error: Exception) -> None:
    """Record in the driver's journal that a task is tried again."""
    with suppress(StorageError):  # the disk may be full
        fields = {"stage": task.stage, "task": task.fingerprint, "label": task.label}
        journal.write("retry", **fields, attempt=attempt, message=str(error).partition("\n")[0][:500])


#: Message of a failure: the number of deaths follows from `format`.
KILLED = "the process that worked on it died {} times (out of memory, or native code crashed)"


class Serial:
    """Runs one task after the other in this process.

    Args:
        context: of the tasks.
        journal: of this process.
        settings: section `executor` of the config.
        dedicated: whether the process does nothing else (`Worker`).
    """

    start_seconds: float | None = None
    stop_seconds: float | None = None

    def __init__(
        self, context: Context, journal: Journal, settings: Settings, *_: object, dedicated: bool = False
    ) -> None:
        self._dedicated = dedicated
        self._context = replace(context, granted=Needs(settings.cpus_per_worker, settings.memory_per_worker_gb))
        self._journal = journal
        self._settings = settings
        self._worker: Worker | None = None

    def run(self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
        """Run all tasks in order. Resources are assumed to be available, except GPUs, which are detected."""
        fitting = [item for item in needs if not item.gpus or gpu_count()] or [*needs]
        self._context.granted = replace(self._context.granted, gpus=fitting[0].gpus)
        for task in tasks:
            if self._worker is None:
                threads = self._settings.cpus_per_worker
                self._worker = Worker(self._context, self._journal, threads, self._dedicated)
            self._worker.on_part = on_part
            yield task, self._attempt(self._worker, task)

    def _attempt(self, worker: Worker, task: Task) -> Receipt | Failure:
        for attempt in range(1, self._settings.attempts + 1):
            try:
                return worker.run(task)
            except Exception as error:
                action = error_action(error)
                if action == "stop":
                    raise
                text = traceback.format_exc()
                with suppress(StorageError):  # the disk may be full
                    self._journal.write("error", fingerprint=task.fingerprint, traceback=text)
                if action == "fail" or attempt == self._settings.attempts:
                    return failure_of(task, error, attempt, text)
                note_retry(self._journal, task, attempt, error)
            time.sleep(pause(attempt))
        raise AssertionError("attempts is at least 1")

    def close(self) -> None:
        """Does nothing: nothing was started."""
