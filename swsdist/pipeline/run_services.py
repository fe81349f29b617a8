"""The machinery is what a run needs while it works: journal, executors, and plans; it starts with the first task."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from swsdist.accounts.journal import DriverJournal
from swsdist.accounts.records import pack
from swsdist.config import Config, dump_config, without_secrets
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StorageError, StoreError
from swsdist.core.needs import Needs
from swsdist.io.failures import TEMPORARY
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import Outcome
from swsdist.pipeline.execution.executor import Executor, Serial
from swsdist.pipeline.execution.failure_files import FOLDER, failure_file, remove_failures, save_failure
from swsdist.pipeline.execution.worker import Parts
from swsdist.pipeline.plan import Plan, load_plans, save_plans
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task

#: Seconds after which a temporary file that did not change is nobody's.
_ABANDONED = 3600.0


#: Tasks that fail one after the other for what may pass, a server that does not answer say, before the run ends.
_IN_VAIN = 8

#: Causes of failure after which nothing more can be written: the run ends with its stage, and shows no results of a part.
_RUN_AGAIN = "run again: computed results are kept"

_STOP = ("full", "quota", "read-only")


class RunServices:
    """The machinery of one run; `note` is told what is worth a line.

    Attributes:
        heard: is told what the driver's journal is told.
    """

    heard: Callable[[str, Mapping[str, object]], None] | None = None

    def __init__(self, outcome: Outcome, config: Config, note: Callable[[str], None]) -> None:
        self.ledger = outcome.ledger
        self._outcome = outcome
        self._config = config
        self._note = note
        self._journal: DriverJournal | None = None
        self._swept: set[str] = set()
        self._failed: set[str] | None = None  # files of failures that lie in the folder
        self._serial: Serial | None = None
        self._workers: Executor | None = None
        stages = {
            step.stage.name: step.stage for chain_run in outcome.chain_runs.values() for step in chain_run.chain.steps
        }
        settings = config.executor
        cache = (settings.cache, int(settings.cache_gb * 1e9)) if settings.cache_gb else None
        self._context = Context(self.ledger.run, stages, cache=cache)

    @property
    def journal(self) -> DriverJournal:
        """The driver's, opened when there is something to do."""
        if self._journal is None:
            self._show_these()
            self._journal = DriverJournal(self.ledger.run)
            self._journal.heard = self.heard
            if self.heard is not None:
                self.heard("up", {"host": self._journal.host, "pid": os.getpid(), "journal": self._journal.name})
        return self._journal

    def _show_these(self) -> None:
        """From now on the folder is that of these plans."""
        # What a report shows is about to change; if this run is killed, no old one is taken for its own.
        self._remove_reports()
        # The plan tells whose folder it is, so it comes before a file that anybody's folder may hold.
        self.save_plans()
        self._write_config()

    def _write_config(self) -> None:
        if self._outcome.single_plan:
            text = dump_config(without_secrets(self._config))
            self.ledger.run.write_bytes("config.yaml", text.encode())

    def _remove_reports(self) -> None:
        if not self._outcome.single_plan:
            return  # what it shows is of another plan
        for chain_run in self._outcome.chain_runs.values():
            for name in chain_run.chain.report_files:
                self.ledger.run.remove(name)

    def begin(self, step: Step, tasks: int, done: int, places: set[str]) -> None:
        """A step that has something to do in these folders begins."""
        first = self._journal is None  # then the plans are written with it
        self.journal.write("stage", stage=step.name, tasks=tasks, done=done, unit=step.stage.unit)
        for place in {"", *places} - self._swept:
            self._swept.add(place)
            _sweep(self.ledger.folder(place))
        if not first:
            self.save_plans()

    def save_plans(self) -> None:
        """Write the plans as they stand, beside those of other names."""
        save_plans(self.ledger.run, {**self._others(), **self._mine()})

    def _mine(self) -> dict[str, Plan]:
        return {name: chain_run.plan for name, chain_run in self._outcome.chain_runs.items()}

    def _others(self) -> dict[str, Plan]:
        try:
            return load_plans(self.ledger.run)
        except StoreError:  # none yet, or of another version
            return {}

    def settle(self, whole: bool) -> None:
        """All chosen steps have ended: the plans in the folder become these.

        Where nothing was left to do, the folder may tell of another config that was run after this one. Then the other's
        report goes, so that a new one is written.
        """
        if self._journal is not None:
            self.save_plans()
            if whole and not set(self._others()) - set(self._mine()):
                still = {failure.file for failure in self._outcome.failures}
                remove_failures(self.ledger.run, (self._failed or set()) - still)
            return
        there, mine = self._others(), self._mine()
        same = all(name in there and there[name].tables() == plan.tables() for name, plan in mine.items())
        if not same and (whole or not self._outcome.single_plan):
            self._show_these()

    def run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do tasks where the step's tasks run; `needs` are alternatives, the best first; `told` is told of parts of tasks.

        What fails is kept in a file; a file of what is done now goes.

        Raises:
            StorageError: so many tasks failed one after the other since a server does not answer, say: the rest would too;
                or some failed since nothing can be written any more: what comes next could not either.
        """
        vain, stopped = 0, []
        if self._failed is None:
            self._failed = set(self.ledger.run.listing(FOLDER))
        for task, given in self._run(step, tasks, needs, told):
            result = save_failure(self.ledger.run, given) if isinstance(given, Failure) else given
            storage = result.storage if isinstance(result, Failure) else None
            if isinstance(result, Receipt):
                remove_failures(self.ledger.run, self._failed & {failure_file(task)})
            elif result.file:
                self._failed.add(result.file)
            vain = vain + 1 if storage is not None and storage.passing else 0
            if storage is not None and storage.cause in _STOP:
                stopped.append(storage)
            yield task, result
            if storage is not None and vain >= _IN_VAIN:
                failed = codes.CONSECUTIVE_FAILURES(
                    where=storage.where, count=vain, detail=storage.message, advice=storage.remedy or _RUN_AGAIN
                )
                raise _caused_by(failed, storage)
        if stopped:
            storage = stopped[0]
            failed = codes.STORAGE_FAILURES(
                where=storage.where,
                count=len(stopped),
                tasks=len(tasks),
                stage=step.name,
                detail=storage.message,
                advice=storage.remedy or _RUN_AGAIN,
            )
            raise _caused_by(failed, storage)

    def _run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        settings = self._config.executor
        if step.stage.in_driver or settings.kind == "serial":
            if self._serial is None:
                # Beside Ray only what is small is done here; nodes have caches, and the driver may be no node.
                context = self._context if settings.kind == "serial" else replace(self._context, cache=None)
                self._serial = Serial(context, self.journal, settings)
            return self._serial.run(tasks, needs, told)
        if self._workers is None:
            from swsdist.pipeline.execution.ray_executor import RayExecutor

            self._workers = RayExecutor(self._context, self.journal, settings, self._note)
        return self._workers.run(tasks, needs, told)

    def end_workers(self) -> None:
        """End other processes' work: from now on nothing more is done."""
        if self._workers is not None:
            self._workers.close()

    def close(self) -> None:
        """Give back what was started."""
        try:
            if self._workers is not None:
                if self._journal is not None:
                    with suppress(StorageError):
                        self._journal.stop()
                self._workers.close()
                self._outcome.ray_start, self._outcome.ray_stop = (
                    self._workers.start_seconds,
                    self._workers.stop_seconds,
                )
        finally:  # a signal may come while Ray ends
            if self._journal is not None:
                with suppress(StorageError):
                    self._journal.write("ray", start=self._outcome.ray_start, stop=self._outcome.ray_stop)
                self._journal.close()

    def pack(self) -> None:
        """Put the journals of what has ended into one table."""
        if self._journal is not None:
            pack(self.ledger.run)


def _caused_by(error: StorageError, first: StorageError) -> StorageError:
    """The error, with the cause of the first failure."""
    error.cause, error.passing = first.cause, first.passing
    return error


@contextmanager
def open_services(outcome: Outcome, config: Config, note: Callable[[str], None]) -> Iterator[RunServices]:
    """It is closed at the end, whatever happens."""
    machinery = RunServices(outcome, config, note)
    try:
        yield machinery
    finally:
        machinery.close()
    machinery.pack()


def _sweep(folder: Folder) -> None:
    """Remove temporary files whose writers were killed: nobody has written to them for an hour."""
    place = folder.local(TEMPORARY)
    for file in place.glob("*") if place is not None else ():
        with suppress(FileNotFoundError):
            if file.is_file() and time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()
