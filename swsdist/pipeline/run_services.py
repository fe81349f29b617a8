"""Services of a run: journal, executors and the saved plans; they start with the first task."""

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
from swsdist.core.codes.storage import READ_ONLY_FILE_SYSTEM
from swsdist.core.errors import StorageError, StoreError, TransientError
from swsdist.core.needs import Needs
from swsdist.io.failures import FULL, TEMPORARY
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import Outcome
from swsdist.pipeline.execution.executor import FOLDER, Executor, Serial, failure_file, remove_failures, save_failure
from swsdist.pipeline.execution.worker import PartListener
from swsdist.pipeline.plan import Plan, load_plans, save_plans
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task

#: Age in s after which an unchanged temporary file is removed.
_ABANDONED = 3600.0


#: Consecutive transient failures that abort the run.
_MOST_TRANSIENT = 8

#: Causes of failure after which nothing can be written: the run stops after the stage, without partial results.
_RUN_AGAIN = "run again: computed results are kept"

_STOP = FULL | {READ_ONLY_FILE_SYSTEM.name}


class RunServices:
    """The services of one run.

    Args:
        outcome: of the run.
        config: with the settings of the executor.
        note: called with messages for the user.

    Attributes:
        on_event: called with each event of the driver's journal and its values.
    """

    on_event: Callable[[str, Mapping[str, object]], None] | None = None

    def __init__(self, outcome: Outcome, config: Config, note: Callable[[str], None]) -> None:
        self.ledger = outcome.ledger
        self._outcome = outcome
        self._config = config
        self._note = note
        self._journal: DriverJournal | None = None
        self._cleaned: set[str] = set()
        self._failed: set[str] | None = None  # files of earlier failures
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
        """The driver's journal, opened on first use."""
        if self._journal is None:
            self._make_current()
            self._journal = DriverJournal(self.ledger.run)
            before = sum(outcome.wall for outcome in self._outcome.preceding.values())
            self._journal.write("run", began=round(self._outcome.began, 3), before=round(before, 3))
            self._journal.on_event = self.on_event
            if self.on_event is not None:
                self.on_event("up", {"host": self._journal.host, "pid": os.getpid(), "journal": self._journal.name})
        return self._journal

    def _make_current(self) -> None:
        """Make these plans the current ones of the folder."""
        # The results are about to change: if this run is killed, no outdated report must remain.
        self._remove_reports()
        for name, plan in self._other_plans().items():
            if name in self._outcome.chain_runs and plan.chain != (chain := self._outcome.chain_runs[name].chain.name):
                where = self.ledger.run.path()
                self._note(
                    f"{where} was a run of the chain {plan.chain}, and is now one of {chain}: --run names another"
                )
        # plan.json marks a run folder, so it is written before files that any folder may hold.
        self.save_plans()
        self._write_config()

    def _write_config(self) -> None:
        if self._outcome.single_plan:
            text = dump_config(without_secrets(self._config))
            self.ledger.run.write_bytes("config.yaml", text.encode())

    def _remove_reports(self) -> None:
        if not self._outcome.single_plan:
            return  # the report belongs to another plan
        for chain_run in self._outcome.chain_runs.values():
            for name in chain_run.chain.report_files:
                self.ledger.run.remove(name)

    def begin(self, step: Step, tasks: int, done: int, places: set[str]) -> None:
        """Start a step that has open tasks in these folders."""
        first = self._journal is None  # then opening the journal saves the plans
        self.journal.write("stage", stage=step.name, tasks=tasks, done=done, unit=step.stage.unit)
        for place in {"", *places} - self._cleaned:
            self._cleaned.add(place)
            _remove_abandoned(self.ledger.folder(place))
        if not first:
            self.save_plans()

    def save_plans(self) -> None:
        """Save these plans beside the folder's other plans."""
        save_plans(self.ledger.run, {**self._other_plans(), **self._own_plans()})

    def _own_plans(self) -> dict[str, Plan]:
        return {name: chain_run.plan for name, chain_run in self._outcome.chain_runs.items()}

    def _other_plans(self) -> dict[str, Plan]:
        try:
            return load_plans(self.ledger.run)
        except StoreError:  # no plan yet, or one of another version
            return {}

    def settle(self, complete: bool) -> None:
        """Save the plans after the last selected step.

        Without open tasks, the folder may have the plan of another config that was run later; then that config's report is
        removed, so that a new one is written.

        Args:
            complete: whether all steps were selected.
        """
        if self._journal is not None:
            self.save_plans()
            if complete and not set(self._other_plans()) - set(self._own_plans()):
                failed = {failure.file for failure in self._outcome.failures}
                remove_failures(self.ledger.run, (self._failed or set()) - failed)
            return
        saved, plans = self._other_plans(), self._own_plans()
        complete = complete or not self._outcome.single_plan
        if not all(name in saved and saved[name].has_tables_of(plan, complete) for name, plan in plans.items()):
            self._make_current()

    def run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Run tasks on the step's executor. Failures are saved to files, which are removed when the task succeeds.

        Args:
            step: of the tasks.
            tasks: open tasks of one stage.
            needs: alternative resources of a worker, the best first.
            on_part: called with the finished part of running tasks.

        Raises:
            StorageError: `_MOST_TRANSIENT` consecutive tasks failed for a transient cause, or tasks failed because nothing can
                be written.
        """
        transient, stopped = 0, []
        if self._failed is None:
            self._failed = set(self.ledger.run.listing(FOLDER))
        for task, returned in self._run(step, tasks, needs, on_part):
            result = save_failure(self.ledger.run, returned) if isinstance(returned, Failure) else returned
            storage = result.storage if isinstance(result, Failure) else None
            if isinstance(result, Receipt):
                remove_failures(self.ledger.run, self._failed & {failure_file(task)})
            elif result.file:
                self._failed.add(result.file)
            transient = transient + 1 if isinstance(storage, TransientError) else 0
            if storage is not None and storage.code in _STOP:
                stopped.append(storage)
            yield task, result
            if storage is not None and transient >= _MOST_TRANSIENT:
                raise codes.CONSECUTIVE_FAILURES(
                    where=storage.where,
                    count=transient,
                    detail=f"{storage.message} [{storage.code}]",
                    advice=storage.remedy or _RUN_AGAIN,
                )
        if stopped:
            storage = stopped[0]
            raise codes.STORAGE_FAILURES(
                where=storage.where,
                count=len(stopped),
                tasks=len(tasks),
                stage=step.name,
                detail=f"{storage.message} [{storage.code}]",
                advice=storage.remedy or _RUN_AGAIN,
            )

    def _run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        settings = self._config.executor
        if step.stage.in_driver and not settings.entry.in_driver:
            if self._serial is None:  # without a cache: caches belong to nodes
                self._serial = Serial(replace(self._context, cache=None), self.journal, settings)
            return self._serial.run(tasks, needs, on_part)
        if self._workers is None:
            self._workers = settings.entry.load()(self._context, self.journal, settings, self._note)
        return self._workers.run(tasks, needs, on_part)

    def end_workers(self) -> None:
        """Stop the workers."""
        if self._workers is not None:
            self._workers.close()

    def close(self) -> None:
        """Close executors and journal."""
        try:
            if self._workers is not None:
                if self._journal is not None:
                    with suppress(StorageError):
                        self._journal.sample()
                self._workers.close()
                self._outcome.executor_start = self._workers.start_seconds
                self._outcome.executor_stop = self._workers.stop_seconds
        finally:  # even if a signal comes while workers shut down
            if self._journal is not None:
                with suppress(StorageError):
                    start, stop = self._outcome.executor_start, self._outcome.executor_stop
                    self._journal.write("executor", start=start, stop=stop)
                self._journal.close()

    def pack(self) -> None:
        """Pack the journals of finished processes into one table."""
        if self._journal is not None:
            pack(self.ledger.run)


@contextmanager
def open_services(outcome: Outcome, config: Config, note: Callable[[str], None]) -> Iterator[RunServices]:
    """Open the services of a run, and close them at its end."""
    services = RunServices(outcome, config, note)
    try:
        yield services
    finally:
        services.close()
    services.pack()


def _remove_abandoned(folder: Folder) -> None:
    """Remove temporary files of killed writers: unchanged for an hour."""
    place = folder.local(TEMPORARY)
    for file in place.glob("*") if place is not None else ():
        with suppress(FileNotFoundError):
            if file.is_file() and time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()
