"""The monitor of a run: writes events and status to the run folder, and obeys requests to cancel.

A thread writes the status and checks for a request every few seconds. A cancelled run stops at the next report of a
task's progress; without one, a signal stops it as `kill` does.

Events are JSON lines, in the folder `events/` of the run and in the file of `--events`. Each line has `event`, `t` (s
since 1970) and `run` (the run folder); `EVENTS` lists the other fields. Each driver appends to one file; on S3, which
cannot append, it writes a new file every few seconds. File names sort by time, so a follower lists the folder and reads
what is new.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import CancelledError, StorageError
from swsdist.core.text import redacted
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import Outcome
from swsdist.pipeline.ledger import NAME as PLAN
from swsdist.pipeline.operation import cleaning, progress
from swsdist.pipeline.operation.cleaning import Reader
from swsdist.pipeline.operation.progress import ForwardingProgress, Progress
from swsdist.pipeline.task import Failure, Receipt, Task

FOLDER = "events"
SCHEMA = "swsdist-events/1"

#: Fields of each event besides `event`, `t` and `run`.
EVENTS: Mapping[str, tuple[str, ...]] = {
    "run-begun": ("schema", "version", "host", "pid", "chains"),
    "stage-begun": ("stage", "tasks", "done", "work", "unit", "hours"),
    "task-ended": ("stage", "task", "label", "work", "cpu", "wall", "host", "pid"),
    "task-failed": ("stage", "task", "label", "reason", "message", "attempts"),
    "rejected": ("stage", "kind", "id", "part", "path", "reason", "message"),
    "task-retried": ("stage", "task", "label", "attempt", "message"),
    "worker-up": ("host", "pid", "journal"),
    "worker-died": ("pid", "lost", "message"),
    "warning": ("message",),
    "stage-ended": ("stage", "tasks", "failed", "wall"),
    "run-ended": ("state", "message", "wall", "counts"),
}


class EventLog:
    """The event log of one driver; nothing is written before `open`.

    Args:
        run: the run folder.
        token: token of the driver's lock, part of the file names.
    """

    def __init__(self, run: Folder, token: str) -> None:
        self._run = run
        self._stem = f"{FOLDER}/{int(time.time() * 1000):013d}-{token[:8]}"
        self._lines: list[str] = []
        self._number = 0
        self._opened = False
        self._lock = threading.Lock()

    def add(self, event: str, **values: Any) -> dict[str, Any]:
        """Add an event, and return its line; secrets in the message are redacted."""
        if "message" in values:
            values["message"] = redacted(values["message"])
        line = {"event": event, "t": round(time.time(), 3), "run": self._run.root, **values}
        if set(values) != set(EVENTS[event]):
            raise ValueError(f"{event} has the fields {EVENTS[event]}")
        with self._lock:
            self._lines.append(json.dumps(line, ensure_ascii=False))
        return line

    def open(self) -> None:
        """Start writing, beginning with the lines so far."""
        self._opened = True

    def flush(self) -> None:
        """Write the lines since the last call.

        Raises:
            StorageError: writing failed; the lines are kept for the next call.
        """
        with self._lock:
            if not self._opened or not self._lines:
                return
            data = ("\n".join(self._lines) + "\n").encode()
            local = self._run.local(f"{self._stem}.jsonl")
            if local is None:
                self._run.write_bytes(f"{self._stem}-{self._number:06d}.jsonl", data)
            elif local.exists():
                with local.open("ab") as file:
                    file.write(data)
            else:
                self._run.write_bytes(f"{self._stem}.jsonl", data)
            self._number += 1
            self._lines = []


class Follower:
    """Reads a run's events as they appear.

    Args:
        run: the run folder.
        old: whether to start with the existing events, or to skip them.
    """

    def __init__(self, run: Folder, old: bool = True) -> None:
        self._run = run
        self._read: dict[str, int] = {}
        if not old:
            self._read = {name: info.size for name, info in run.listing(FOLDER).items()}

    def new(self) -> Iterator[dict[str, Any]]:
        """Events since the last call, in order; an incomplete line is left for the next call."""
        for name, info in self._run.listing(FOLDER).items():
            begin = self._read.get(name, 0)
            if info.size <= begin:
                continue
            with self._run.open(name) as file:
                file.seek(begin)
                data = file.read()
            complete_lines = data[: data.rfind(b"\n") + 1]
            self._read[name] = begin + len(complete_lines)
            for line in complete_lines.splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # truncated by a full disk


#: Seconds between two checks: in a local folder, and on S3.
_LOCAL, _REMOTE = 1.0, 5.0
#: Seconds before a signal is sent: until a run reacts to a request, and then until it has closed everything, which a signal
#: would interrupt.
_PATIENCE, _CLOSING = 3.0, 20.0
#: Seconds between two heartbeats in a store that is read.
_BEAT = 10.0
#: Most bytes of a message in an event.
_MESSAGE = 500

#: Events of the driver's journal -> names in the event log.
_REJECTED = EVENTS["rejected"][1:]
_JOURNAL_EVENTS = {"up": "worker-up", "died": "worker-died", "retry": "task-retried"}


class RunMonitor(ForwardingProgress):
    """Writes the progress of a run to its folder, and forwards it. What comes before the first stage is written with it,
    or at the end.

    A prerequisite run has its own monitor and folder.
    """

    def __init__(self, outcome: Outcome, inner: Progress) -> None:
        super().__init__(inner)
        self._run = outcome.ledger.run
        self._outcome = outcome
        holder = lock.read(self._run) or {}
        token = str(holder.get("token", ""))
        host = str(holder.get("host", socket.gethostname()))
        self._status = progress.RunStatus(token, host, os.getpid(), began=time.time())
        self._log = EventLog(self._run, token or "00000000")
        self._opened = self._changed = False
        self._readers: dict[str, Reader] = {}
        self._rejected: set[tuple[Any, ...]] = set()
        self._beat_at = 0.0
        self._cancelled_from: str | None = None  # the host that requested the cancellation
        self._obeyed = self._end_logged = False
        self._stop = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="swsdist-watch", daemon=True)

    # -- calls of the driver --------------------------------------------------------------------------------------

    def step_begins(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins."""
        self._open()
        stages = self._status.stages
        if not stages or stages[-1].stage != step.name or stages[-1].ended is not None:
            stages.append(progress.StageProgress(step.name, 0, 0, begun=time.time()))
        stage_progress = stages[-1]  # a stage in rounds begins several times
        stage_progress.tasks += todo + skipped
        stage_progress.done += skipped
        stage_progress.before += skipped
        fields = {"stage": step.name, "tasks": todo + skipped, "done": skipped, "work": work, "unit": step.stage.unit}
        self._log_event("stage-begun", **fields, hours=round(hours, 6))
        self._read_stores()
        self._write()
        super().step_begins(step, todo, skipped, work, hours)

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a task is done."""
        self._obey()
        super().part(step, task, part)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        stage_progress = self._status.stages[-1]
        if isinstance(outcome, Receipt):
            stage_progress.done += 1
            cost = outcome.cost
            self._log_event(
                "task-ended",
                stage=step.name,
                task=outcome.fingerprint,
                label=outcome.label,
                work=outcome.work,
                cpu=round(cost.cpu, 4),
                wall=cost.wall,
                host=outcome.host,
                pid=outcome.pid,
            )
            for row in outcome.rejected:
                told = {"stage": step.name, **{key: row.get(key) for key in _REJECTED}}
                if (key := tuple(told.values())) not in self._rejected:  # the tasks of each track reject it
                    self._rejected.add(key)
                    self._log_event("rejected", **told)
        else:
            stage_progress.failed += 1
            self._log_event(
                "task-failed",
                stage=step.name,
                task=outcome.task.fingerprint,
                label=outcome.task.label,
                reason=outcome.reason,
                message=outcome.message[:_MESSAGE],
                attempts=outcome.attempts,
            )
        super().task(step, outcome)
        self._obey()

    def step_ends(self, step: Step, wall: float) -> None:
        """A stage has ended."""
        stage_progress = self._status.stages[-1]
        stage_progress.ended = time.time()
        self._log_event(
            "stage-ended",
            stage=step.name,
            tasks=stage_progress.tasks,
            failed=stage_progress.failed,
            wall=round(wall, 3),
        )
        self._write()
        super().step_ends(step, wall)

    def journal_event(self, event: str, values: Mapping[str, object]) -> None:
        """An event of the driver's journal."""
        name = _JOURNAL_EVENTS.get(event)
        if event == "up":
            self._status.journals.append(str(values["journal"]))
        elif event == "died":
            self._status.journals = [journal for journal in self._status.journals if journal != values["journal"]]
        if name is not None:
            self._log_event(name, **{key: values[key] for key in EVENTS[name]})

    # -- writing --------------------------------------------------------------------------------------------------

    def _log_event(self, event: str, **values: Any) -> None:
        self._changed = True
        self._inner.event(self._log.add(event, **values))

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._log.open()
            self._thread.start()

    def _write(self) -> None:
        with suppress(StorageError, OSError), self._writing:  # the tasks report errors of writing
            self._log.flush()
            if self._opened and self._changed:
                self._changed = False
                self._status.t = time.time()
                self._run.write_bytes(progress.NAME, self._status.to_json().encode())

    def _read_stores(self) -> None:
        """Mark the stores that the plans read as in use."""
        for chain_run in self._outcome.chain_runs.values():
            for root in chain_run.plan.state.values():
                if root not in self._readers and root.startswith(("/", "s3://")):
                    self._readers[root] = Reader(chain_run.ledger.folder(root))

    def _watch(self) -> None:
        requested_at = 0.0
        while not self._stop.wait(_LOCAL if self._run.local() is not None else _REMOTE):
            self._write()
            if time.monotonic() - self._beat_at > _BEAT:
                self._beat_at = time.monotonic()
                for reader in list(self._readers.values()):
                    reader.beat()
            if self._cancelled_from is None:
                with suppress(StorageError, OSError):
                    self._cancelled_from = cleaning.requested(self._run, self._status.token)
                    requested_at = time.monotonic()
            elif time.monotonic() - requested_at > (_CLOSING if self._obeyed else _PATIENCE) and _ends_by_signal():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return

    def _obey(self) -> None:
        if self._cancelled_from is not None:
            self._obeyed = True
            raise self.cancelled()

    def cancelled(self) -> CancelledError:
        """The error that ends a cancelled run."""
        return codes.RUN_CANCELLED(where=self._run.path(), host=self._cancelled_from)

    @property
    def cancel_requested(self) -> bool:
        """Whether a cancellation was requested."""
        return self._cancelled_from is not None

    def begin(self, chains: list[str]) -> None:
        """The run begins."""
        status = self._status
        self._log_event(
            "run-begun", schema=SCHEMA, version=version("swsdist"), host=status.host, pid=status.pid, chains=chains
        )

    def finish(self, state: str, message: str) -> None:
        """The run has ended in this state."""
        self._obeyed = True
        self._stop.set()
        worked = self._opened
        if worked:
            self._thread.join()
        for reader in self._readers.values():
            reader.release()
        self._status.state, self._status.message = state, redacted(message)
        self._status.journals = []
        counts: dict[str, int] = {}
        with suppress(StorageError, OSError, ValueError, KeyError):
            for chain_run in self._outcome.chain_runs.values() if state in ("done", "incomplete") else ():
                counts |= chain_run.chain.counts(chain_run) if chain_run.chain.counts is not None else {}
                for notice in chain_run.notices() if state == "done" and worked else ():
                    self._log_event("warning", message=notice[:_MESSAGE])
        if not self._end_logged:
            wall = round(time.time() - self._status.began, 3)
            self._log_event("run-ended", state=state, message=message, wall=wall, counts=counts)
            self._end_logged = True
        with suppress(StorageError, OSError):
            if not worked and self._run.exists(PLAN):  # nothing was left to do, or it could not begin
                before = progress.read(self._run)
                self._status.stages = [] if before is None else before.stages
                self._opened = True
                self._log.open()
        self._changed = True
        self._write()
        with suppress(StorageError, OSError):
            if self._cancelled_from is not None:
                self._run.remove(cleaning.NAME)


def _ends_by_signal() -> bool:
    """Whether the command line's handler of SIGTERM is installed."""
    return callable(signal.getsignal(signal.SIGTERM))


@contextmanager
def monitored(outcome: Outcome, inner: Progress) -> Iterator[RunMonitor]:
    """Monitor a run to its end; the caller holds the lock of the run folder.

    Raises:
        CancelledError: the run was cancelled.
    """
    watch = RunMonitor(outcome, inner)
    watch.begin([chain_run.config.chain for chain_run in outcome.chain_runs.values()][:1])
    try:
        yield watch
    except BaseException as error:
        if watch.cancel_requested:
            _finish(watch, "cancelled", "")
            raise (error if isinstance(error, CancelledError) else watch.cancelled()) from None
        _finish(watch, *_ended(error))
        raise
    failures = outcome.failures
    first = f"{len(failures)} tasks failed; the first: {failures[0].message}" if failures else ""
    _finish(watch, "incomplete" if failures else "done", first[:_MESSAGE])


@contextmanager
def noted(run: Folder, tell: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
    """Note an error before a run begins: in its folder, if that is one and no other process works there.

    Args:
        run: the run folder.
        tell: receives the event.
    """
    try:
        yield
    except Exception as error:
        state, message = _ended(error)
        log = EventLog(run, "00000000")
        tell(log.add("run-ended", state=state, message=message, wall=0.0, counts={}))
        with suppress(StorageError, OSError):
            holder = lock.read(run)
            if run.exists(PLAN) and (holder is None or not lock.alive(holder)):
                before = progress.read(run)
                stages = [] if before is None else before.stages
                values = ("", socket.gethostname(), os.getpid(), state, redacted(message), time.time(), time.time())
                run.write_bytes(progress.NAME, progress.RunStatus(*values, stages=stages).to_json().encode())
                log.open()
                log.flush()
        raise


def _finish(watch: RunMonitor, state: str, message: str) -> None:
    try:
        watch.finish(state, message)
    except (SystemExit, KeyboardInterrupt):  # a signal came meanwhile: the end may not be written yet
        watch.finish(state, message)
        raise


def _ended(error: BaseException) -> tuple[str, str]:
    """State and message of a run that an exception ended."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", ""
    if isinstance(error, SystemExit | GeneratorExit):
        return "terminated", ""
    lines = str(error).splitlines() or [type(error).__name__]
    return "stopped", f"{type(error).__name__}: {lines[0]}"[:_MESSAGE]
