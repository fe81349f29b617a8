"""The machinery is what a run needs while it works: journal, executors, and plans; it starts with the first task."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from swsdist.accounts.journal import DriverJournal
from swsdist.config import Config, dump_config, without_secrets
from swsdist.errors import StoreError, UnreachableError
from swsdist.io.filesystem import TEMPORARY, Folder
from swsdist.needs import Needs
from swsdist.pipeline.chain import Step
from swsdist.pipeline.course import Outcome
from swsdist.pipeline.execution.executor import UNREACHABLE, Executor, Serial
from swsdist.pipeline.execution.worker import Parts
from swsdist.pipeline.plan import Plan, load_plans, save_plans
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task

#: Seconds after which a temporary file that did not change is nobody's.
_ABANDONED = 3600.0


#: Tasks that fail one after the other since a server does not answer, before the run ends.
_SILENT = 8


class Machinery:
    """The machinery of one run."""

    def __init__(self, outcome: Outcome, config: Config) -> None:
        self.ledger = outcome.ledger
        self._outcome = outcome
        self._config = config
        self._journal: DriverJournal | None = None
        self._swept: set[str] = set()
        self._serial: Serial | None = None
        self._workers: Executor | None = None
        stages = {step.stage.name: step.stage for course in outcome.courses.values() for step in course.chain.steps}
        self._context = Context(self.ledger.run, stages)

    @property
    def journal(self) -> DriverJournal:
        """The driver's, opened when there is something to do."""
        if self._journal is None:
            self._write_config()
            # What it shows is about to change; if this run is killed, no old report is taken for its own.
            self._remove_reports()
            self._journal = DriverJournal(self.ledger.run)
        return self._journal

    def _write_config(self) -> None:
        if len(self._outcome.courses) == 1:
            text = dump_config(without_secrets(self._config))
            self.ledger.run.write_bytes("config.yaml", text.encode())

    def _remove_reports(self) -> None:
        for course in self._outcome.courses.values():
            for name in course.chain.report_files:
                self.ledger.run.remove(name)

    def begin(self, step: Step, tasks: int, done: int, places: set[str]) -> None:
        """A step that has something to do in these folders begins."""
        self.journal.write("stage", stage=step.name, tasks=tasks, done=done, unit=step.stage.unit)
        for place in {"", *places} - self._swept:
            self._swept.add(place)
            _sweep(self.ledger.folder(place))
        self.save_plans()

    def save_plans(self) -> None:
        """Write the plans as they stand, beside those of other names."""
        save_plans(self.ledger.run, {**self._others(), **self._mine()})

    def _mine(self) -> dict[str, Plan]:
        return {name: course.plan for name, course in self._outcome.courses.items()}

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
            return
        there, mine = self._others(), self._mine()
        same = all(name in there and there[name].tables() == plan.tables() for name, plan in mine.items())
        if whole and not same:
            self._write_config()
            self._remove_reports()
            self.save_plans()

    def run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do tasks where the step's tasks run; `needs` are alternatives, the best first; `told` is told of parts of tasks.

        Raises:
            UnreachableError: so many tasks failed one after the other since a server does not answer: the rest would too.
        """
        silent = 0
        for task, result in self._run(step, tasks, needs, told):
            silent = silent + 1 if isinstance(result, Failure) and result.reason == UNREACHABLE else 0
            yield task, result
            if silent >= _SILENT and isinstance(result, Failure):
                raise UnreachableError(
                    f"{silent} tasks failed one after the other: {result.message.splitlines()[0]}",
                    remedy="run again when the server answers: what was computed is kept",
                )

    def _run(
        self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        settings = self._config.executor
        if step.stage.in_driver or settings.kind == "serial":
            if self._serial is None:
                self._serial = Serial(self._context, self.journal, settings)
            return self._serial.run(tasks, needs, told)
        if self._workers is None:
            from swsdist.pipeline.execution.ray_executor import RayExecutor

            self._workers = RayExecutor(self._context, self.journal, settings)
        return self._workers.run(tasks, needs, told)

    def close(self) -> None:
        """Give back what was started."""
        if self._workers is not None:
            self._workers.close()
            self._outcome.ray_start, self._outcome.ray_stop = self._workers.start_seconds, self._workers.stop_seconds
        if self._journal is not None:
            self._journal.write("ray", start=self._outcome.ray_start, stop=self._outcome.ray_stop)
            self._journal.close()


@contextmanager
def machinery_of(outcome: Outcome, config: Config) -> Iterator[Machinery]:
    """It is closed at the end, whatever happens."""
    machinery = Machinery(outcome, config)
    try:
        yield machinery
    finally:
        machinery.close()


def _sweep(folder: Folder) -> None:
    """Remove temporary files whose writers were killed: nobody has written to them for an hour."""
    place = folder.local(TEMPORARY)
    for file in place.glob("*") if place is not None else ():
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()
