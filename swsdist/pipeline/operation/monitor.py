"""What a driver does for those who look from outside: it keeps events and its standing, and heeds requests to end.

A thread looks every few seconds whether somebody wants the run to end, and writes what there is to write. The run then ends at
the next task, or part of one, that is told; where none is, a signal ends it as `kill` would.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import CancelledError, StorageError
from swsdist.core.redaction import redacted
from swsdist.pipeline import lock
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import Outcome
from swsdist.pipeline.operation import cancelling, events, run_status
from swsdist.pipeline.operation.progress import ForwardingProgress, Progress
from swsdist.pipeline.operation.readers import Reader
from swsdist.pipeline.task import Failure, Receipt, Task

#: Seconds between two looks: in a local folder, and on S3.
_LOCAL, _REMOTE = 1.0, 5.0
#: Seconds that a run may take to heed a request of its own accord, and then to end: a signal in the midst of that breaks what
#: is being closed.
_PATIENCE, _CLOSING = 3.0, 20.0
#: Seconds between two signs of life in a store that is read.
_BEAT = 10.0
#: Most bytes of a message in an event.
_MESSAGE = 500

#: Fields of an event that the driver's journal tells, by its own name for it.
_HEARD = {"up": "worker-up", "died": "worker-died", "retry": "task-retried"}


class RunMonitor(ForwardingProgress):
    """Reports on a run to its folder, and to another progress; what happens before the first stage begins is not written.

    A run that comes first is watched in its own folder.
    """

    def __init__(self, outcome: Outcome, inner: Progress) -> None:
        super().__init__(inner)
        self._run = outcome.ledger.run
        self._outcome = outcome
        holder = lock.read(self._run) or {}
        token = str(holder.get("token", ""))
        host = str(holder.get("host", socket.gethostname()))
        self._standing = run_status.RunStatus(token, host, os.getpid(), began=time.time())
        self._log = events.EventLog(self._run, token or "00000000")
        self._opened = self._changed = False
        self._reading: dict[str, Reader] = {}
        self._beat = 0.0
        self._asked: str | None = None  # the host that asked for the end
        self._heeded = self._told_end = False
        self._stop = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._look, name="swsdist-watch", daemon=True)

    # -- what the driver tells ------------------------------------------------------------------------------------

    def stage(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins."""
        self._open()
        stages = self._standing.stages
        if not stages or stages[-1].stage != step.name or stages[-1].ended is not None:
            stages.append(run_status.StageProgress(step.name, 0, 0, begun=time.time()))
        stand = stages[-1]  # a stage in rounds begins several times
        stand.tasks, stand.done, stand.before = (
            stand.tasks + todo + skipped,
            stand.done + skipped,
            stand.before + skipped,
        )
        told = {"stage": step.name, "tasks": todo + skipped, "done": skipped, "work": work, "unit": step.stage.unit}
        self._tell("stage-begun", **told, hours=round(hours, 6))
        self._read_stores()
        self._write()
        super().stage(step, todo, skipped, work, hours)

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a task is done."""
        self._heed()
        super().part(step, task, part)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        stand = self._standing.stages[-1]
        if isinstance(outcome, Receipt):
            stand.done += 1
            cost = outcome.cost
            self._tell(
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
        else:
            stand.failed += 1
            self._tell(
                "task-failed",
                stage=step.name,
                task=outcome.task.fingerprint,
                label=outcome.task.label,
                reason=outcome.reason,
                message=outcome.message[:_MESSAGE],
                attempts=outcome.attempts,
            )
        super().task(step, outcome)
        self._heed()

    def end(self, step: Step, wall: float) -> None:
        """A stage has ended."""
        stand = self._standing.stages[-1]
        stand.ended = time.time()
        self._tell("stage-ended", stage=step.name, tasks=stand.tasks, failed=stand.failed, wall=round(wall, 3))
        self._write()
        super().end(step, wall)

    def heard(self, event: str, values: Mapping[str, object]) -> None:
        """What the driver's journal was told."""
        name = _HEARD.get(event)
        if event == "up":
            self._standing.journals.append(str(values["journal"]))
        elif event == "died":
            self._standing.journals = [one for one in self._standing.journals if one != values["journal"]]
        if name is not None:
            self._tell(name, **{key: values[key] for key in events.EVENTS[name]})

    # -- what is done with it -------------------------------------------------------------------------------------

    def _tell(self, event: str, **values: Any) -> None:
        self._changed = True
        self._inner.event(self._log.add(event, **values))

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._log.open()
            self._thread.start()

    def _write(self) -> None:
        with suppress(StorageError, OSError), self._writing:  # where nothing can be written, the tasks say so
            self._log.flush()
            if self._opened and self._changed:
                self._changed = False
                self._standing.t = time.time()
                self._run.write_bytes(run_status.NAME, self._standing.to_json().encode())

    def _read_stores(self) -> None:
        """From now on the stores that plans read are marked as read."""
        for chain_run in self._outcome.chain_runs.values():
            for root in chain_run.plan.state.values():
                if root not in self._reading and root.startswith(("/", "s3://")):
                    self._reading[root] = Reader(chain_run.ledger.folder(root))

    def _look(self) -> None:
        asked_at = 0.0
        while not self._stop.wait(_LOCAL if self._run.local() is not None else _REMOTE):
            self._write()
            if time.monotonic() - self._beat > _BEAT:
                self._beat = time.monotonic()
                for reader in list(self._reading.values()):
                    reader.beat()
            if self._asked is None:
                with suppress(StorageError, OSError):
                    self._asked = cancelling.requested(self._run, self._standing.token)
                    asked_at = time.monotonic()
            elif time.monotonic() - asked_at > (_CLOSING if self._heeded else _PATIENCE) and _ends_by_signal():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return

    def _heed(self) -> None:
        if self._asked is not None:
            self._heeded = True
            raise self.cancelled()

    def cancelled(self) -> CancelledError:
        """What a run that was cancelled ends with."""
        return codes.RUN_CANCELLED(where=self._run.path(), host=self._asked)

    @property
    def asked(self) -> bool:
        """Whether somebody asked for the end."""
        return self._asked is not None

    def begin(self, chains: list[str]) -> None:
        """The run begins."""
        mine = self._standing
        self._tell(
            "run-begun",
            schema=events.SCHEMA,
            version=version("swsdist"),
            host=mine.host,
            pid=mine.pid,
            chains=chains,
        )

    def finish(self, state: str, message: str) -> None:
        """The run has ended in this state."""
        self._heeded = True
        self._stop.set()
        if self._opened:
            self._thread.join()
        for reader in self._reading.values():
            reader.release()
        self._standing.state, self._standing.message = state, redacted(message)
        self._standing.journals = []
        with suppress(StorageError, OSError, ValueError, KeyError):
            for chain_run in self._outcome.chain_runs.values() if state == "done" and self._opened else ():
                for notice in chain_run.notices():
                    self._tell("warning", message=notice[:_MESSAGE])
        if not self._told_end:
            self._tell("run-ended", state=state, message=message, wall=round(time.time() - self._standing.began, 3))
            self._told_end = True
        self._changed = True
        self._write()
        with suppress(StorageError, OSError):
            if self._asked is not None:
                self._run.remove(cancelling.NAME)


def _ends_by_signal() -> bool:
    """Whether SIGTERM ends this process as the command line wants it to."""
    return callable(signal.getsignal(signal.SIGTERM))


@contextmanager
def monitored(outcome: Outcome, inner: Progress) -> Iterator[RunMonitor]:
    """Watch a run to its end, however it ends; the run folder is held.

    Raises:
        CancelledError: somebody asked for the end, and so it ended.
    """
    watch = RunMonitor(outcome, inner)
    watch.begin([chain_run.config.chain for chain_run in outcome.chain_runs.values()][:1])
    try:
        yield watch
    except BaseException as error:
        if watch.asked:
            _finish(watch, "cancelled", "")
            raise (error if isinstance(error, CancelledError) else watch.cancelled()) from None
        _finish(watch, *_ended(error))
        raise
    complete = all(chain_run.complete for chain_run in outcome.chain_runs.values()) and not outcome.failures
    first = (
        f"{len(outcome.failures)} tasks failed; the first: {outcome.failures[0].message}" if outcome.failures else ""
    )
    _finish(watch, "done" if complete else "incomplete", first[:_MESSAGE])


def _finish(watch: RunMonitor, state: str, message: str) -> None:
    try:
        watch.finish(state, message)
    except (SystemExit, KeyboardInterrupt):  # a signal came just then, and how the run ended may not be written
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
