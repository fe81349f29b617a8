"""Checks executors by tasks that end in all ways; see `swsdist.pipeline.execution.executor` for the requirements."""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from errno import EIO
from typing import Any

from swsdist.accounts.journal import DriverJournal
from swsdist.accounts.records import records
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.core.needs import LEAST
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Inputs, Stage
from swsdist.pipeline.execution.executor import Executor
from swsdist.pipeline.ledger import written_receipt
from swsdist.pipeline.task import Failure, Receipt, Task, TaskOutput
from swsdist.registry.registries import EXECUTORS
from swsdist.testing.conformance.entry import check_entry, require

#: What a user asks for in vain.
_MISTAKE = "no-such-table"
#: Attempts at a task.
_ATTEMPTS = 2
#: What a task may do, and its outcome.
_OUTCOMES = {"write": "done", "pass": "done", "data": "data", "bug": "bug"}
_DEATHS = {"die once": "done", "die": "killed"}


class Trial(Stage[str]):
    """Its tasks do what their payloads say."""

    name = "trial"
    version = 1
    unit = "tasks"

    def plan(self, inputs: Inputs) -> Iterator[Task[str]]:
        """Not called: the check makes the tasks."""
        raise NotImplementedError

    def run(self, task: Task[str], context: Context) -> TaskOutput:
        """Write a file, raise an error, or end the process."""
        mark, how = f"marks/{task.fingerprint}", task.payload
        first = mark not in context.run.listing("marks")
        context.run.write_bytes(mark, b"begun")
        if how == "die" or (how == "die once" and first):
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "pass" and first:
            raise OSError(EIO, "a transient error")
        if how == "data":
            raise audio_codes.COMMAND_NOT_FILE(where="trial", name=how, source="a trial")
        if how == "bug":
            raise ZeroDivisionError("a bug")
        if how == "mistake":
            raise codes.NO_SUCH_TABLE(chain="trial", table=_MISTAKE)
        return TaskOutput((context.write(task, "trial", task.fingerprint.encode()),))


@dataclass
class _Run:
    """An executor in a run folder of its own."""

    what: str
    folder: Folder
    events: list[tuple[str, Mapping[str, object]]]
    executor: Executor
    tasks: int = 0

    def outcomes(self, *payloads: str) -> dict[str, Receipt | Failure]:
        """Outcomes by payload and number, each task's checked."""
        tasks = [Task("trial", f"{k:032x}", f"{how} {k}", 1.0 + k, how) for k, how in enumerate(payloads, self.tasks)]
        self.tasks += len(tasks)
        found = list(self.executor.run(tasks, LEAST, lambda *_: None))
        times = Counter(task.fingerprint for task, _ in found)
        require(times == Counter(task.fingerprint for task in tasks), self.what, "it does not yield each task once")
        for task, outcome in found:
            name = outcome.fingerprint if isinstance(outcome, Receipt) else outcome.task.fingerprint
            require(name == task.fingerprint, self.what, "it yields the outcome of another task")
            if isinstance(outcome, Receipt):
                kept = written_receipt(self.folder, task)  # perhaps that of a second attempt, with the same bytes
                same = kept is not None and kept.outputs == outcome.outputs
                require(same, self.what, f"no receipt with the outputs of {task.label!r} was written")
        return {task.label: outcome for task, outcome in found}


def check_executor(name: str, deaths: bool = True, **settings: Any) -> None:
    """Check one registered executor.

    It yields each task once, as the receipt that the worker wrote or as a failure of its kind; tries transient errors again;
    ends with a user's mistake; works for several stages; keeps journals of its workers and names them in the driver's; ends
    when it is closed, also with tasks left, and closed twice.

    Args:
        name: registered in `swsdist.registry.registries.EXECUTORS`.
        deaths: whether a task whose worker dies is run again, and fails after all attempts; not checked of executors in the
            driver's process.
        settings: of the section `executor`, such as `address`; two workers by default.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    entry, what = check_entry(EXECUTORS, name)
    values = Settings(**{"kind": name, "workers": 2, "memory_per_worker_gb": 0.2, "attempts": _ATTEMPTS, **settings})
    expected = _OUTCOMES | (_DEATHS if deaths and not entry.in_driver else {})
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        folder = Folder(place)
        context, journal = Context(folder, {"trial": Trial()}), DriverJournal(folder)
        events: list[tuple[str, Mapping[str, object]]] = []
        journal.on_event = lambda event, values: events.append((event, values))
        executor = entry.load()(context, journal, values, lambda _: None)
        run = _Run(what, folder, events, executor)
        try:
            _check_outcomes(run, expected)
            if not entry.in_driver:
                _check_journals(run)
            _check_mistake(run)
        finally:
            executor.close()
            executor.close()
            journal.close()
        if not entry.in_driver:
            _check_ends(run)


def _check_outcomes(run: _Run, expected: Mapping[str, str]) -> None:
    require(not run.outcomes(), run.what, "without tasks it yields some")
    for label, outcome in run.outcomes(*(["write"] * 4), *expected, *(["write"] * 4)).items():
        wanted = expected[label.rpartition(" ")[0]]
        kind = outcome.reason if isinstance(outcome, Failure) else "done"
        message = f": {outcome.message}" if isinstance(outcome, Failure) else ""
        require(kind == wanted, run.what, f"the task {label!r} is {kind}, not {wanted}{message}")
        if isinstance(outcome, Failure):
            enough = outcome.attempts >= _ATTEMPTS if wanted == "killed" else outcome.attempts == 1
            require(enough, run.what, f"{label!r} failed after {outcome.attempts} attempts")
    again = run.outcomes("write", "write")  # of another stage, for example
    require(all(isinstance(outcome, Receipt) for outcome in again.values()), run.what, "a second stage fails")


def _check_journals(run: _Run) -> None:
    """Each receipt's process has a journal, which the driver's names."""
    named = {(values["host"], values["pid"]): values["journal"] for event, values in run.events if event == "up"}
    for label, outcome in run.outcomes("write", "write").items():
        if isinstance(outcome, Receipt):
            journal = named.get((outcome.host, outcome.pid))
            require(journal is not None, run.what, f"no event `up` names the process of {label!r}")
            require(str(journal) in run.folder.listing("accounts"), run.what, f"{journal} does not exist")


def _check_mistake(run: _Run) -> None:
    try:
        run.outcomes("mistake", "write")
    except UserError as error:
        require(_MISTAKE in str(error), run.what, f"a user's mistake becomes another: {error}")
        return
    raise AssertionError(f"{run.what}: a user's mistake does not end the run")


def _check_ends(run: _Run) -> None:
    """After the end no journal of a worker lacks its last line, except of those that died."""
    killed = {values["journal"] for event, values in run.events if event == "died"}
    for table in records(run.folder):
        last = table.slice(len(table) - 1).to_pylist()[0]
        ended = last["event"] == "close" or f"accounts/{last['journal']}.jsonl" in killed
        require(ended or last["role"] == "driver", run.what, f"the journal {last['journal']} has no end")
