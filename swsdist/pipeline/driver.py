"""Stage after stage: what is left to do is done, and what was done is left alone.

For each stage: plan, find the tasks whose receipts and outputs exist, run the others, finish. Nothing is known of Ray here; an
executor is made when the first task needs one, so a run with nothing left starts none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from swsdist.accounts.journal import DriverJournal
from swsdist.chains.search.stages import STAGES
from swsdist.config import Config, dump_config, without_secrets
from swsdist.errors import StoreError, UserError
from swsdist.io.filesystem import TEMPORARY, Folder
from swsdist.pipeline.execution.executor import Executor, Serial
from swsdist.pipeline.lock import Lock, locked
from swsdist.pipeline.plan import NAME as PLAN
from swsdist.pipeline.plan import Plan, load_plan
from swsdist.pipeline.state import Ended, State
from swsdist.pipeline.task import Failure, Receipt, Stage, Task

#: Seconds after which a temporary file that did not change is nobody's.
_ABANDONED = 3600.0


class Progress:
    """What the pipeline tells of its progress; this one keeps silent."""

    def stage(self, stage: Stage, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins: tasks to do, tasks done earlier, work to do in the stage's unit, hours of audio in all."""

    def task(self, stage: Stage, outcome: Receipt | Failure) -> None:
        """A task has come to its end."""

    def end(self, stage: Stage, ended: Ended) -> None:
        """A stage has."""

    def close(self) -> None:
        """The last stage has, or the run was broken off."""


@dataclass(frozen=True)
class Choice:
    """Which stages to run.

    Attributes:
        until: the last one; all by default.
        redo_from: this one and all later ones are done again.
        only: this one, and no other; earlier ones must be done.
    """

    until: str | None = None
    redo_from: str | None = None
    only: str | None = None

    def __post_init__(self) -> None:
        for name in (self.until, self.redo_from, self.only):
            if name is not None and name not in STAGES:
                raise UserError(f"there is no stage {name!r}", remedy=f"stages are: {', '.join(STAGES)}")

    def stages(self) -> list[Stage]:
        """In their order."""
        names = list(STAGES)
        last = self.only or self.until
        return [STAGES[name] for name in (names if last is None else names[: names.index(last) + 1])]

    def redoes(self, stage: Stage) -> bool:
        """Whether a stage is done again although it was done."""
        names = list(STAGES)
        return self.redo_from is not None and names.index(stage.name) >= names.index(self.redo_from)


@dataclass
class Planned:
    """A stage's tasks, and the receipts of those that are done."""

    stage: Stage
    tasks: list[Task]
    receipts: dict[str, Receipt]

    @property
    def todo(self) -> list[Task]:
        """Those that are not done."""
        return [task for task in self.tasks if task.fingerprint not in self.receipts]


@dataclass
class Outcome:
    """How a run went."""

    state: State
    plan: Plan
    started: float
    wall: float = 0.0
    ray_start: float | None = None
    ray_stop: float | None = None
    stages: list[Stage] = field(default_factory=list)

    @property
    def did(self) -> int:
        """Tasks that were done now."""
        return sum(ended.done for ended in self.state.ended.values())

    @property
    def failures(self) -> list[Failure]:
        """Tasks that failed."""
        return [failure for ended in self.state.ended.values() for failure in ended.failures]


def plan_stage(state: State, stage: Stage, redo: bool = False) -> Planned:
    """A stage's tasks, once all stages before it have ended."""
    tasks = list(stage.plan(state))
    receipts: dict[str, Receipt] = {}
    if not redo:
        for task in tasks:
            receipt = state.receipt(stage, task)
            if receipt is not None:
                receipts[task.fingerprint] = receipt
    return Planned(stage, tasks, receipts)


def run_stages(config: Config, choice: Choice, progress: Progress) -> Outcome:
    """Run what is left of the chosen stages.

    Raises:
        LockedError: another process works in the run folder, or changes the store.
        UserError, DataError: nothing sensible can be done.
    """
    state = State(config)
    state.redo = frozenset(stage.name for stage in choice.stages() if choice.redoes(stage))
    outcome = Outcome(state, Plan(store=state.store.root), time.time())
    clock = time.perf_counter()
    _read_inputs(state, [stage.name for stage in choice.stages()])
    apart = not state.store.root.startswith(state.run.root + "/")
    with ExitStack() as stack:
        mine = stack.enter_context(locked(state.run))
        stack.callback(progress.close)
        machinery = stack.enter_context(_machinery(state, outcome))
        for stage in choice.stages():
            with ExitStack() as held:
                locks = [mine]
                if stage.in_store and apart:
                    # Only while the store may change: any number of runs may search one store at the same time.
                    locks.append(held.enter_context(locked(state.store)))
                planned = plan_stage(state, stage, choice.redoes(stage))
                if choice.only is not None and stage.name != choice.only and planned.todo:
                    raise UserError(
                        f"stage {stage.name} is not done: {len(planned.todo)} of {len(planned.tasks)} tasks are left",
                        where=f"--only {choice.only}",
                        remedy="leave --only out, or run that stage first",
                    )
                _run_stage(state, outcome, planned, machinery, progress, locks)
            outcome.stages.append(stage)
        machinery.settle(whole=choice.only is None and outcome.stages[-1].name == list(STAGES)[-1])
    outcome.wall = time.perf_counter() - clock
    return outcome


def look(config: Config) -> Outcome:
    """What is done of a run, without doing anything: of the stages that were begun, what is left counts as failed.

    Raises:
        StoreError: nothing was run in its folder.
    """
    state = State(config)
    outcome = Outcome(state, Plan(store=state.store.root), time.time())
    begun = load_plan(state.run).planned
    for stage in (stage for name, stage in STAGES.items() if name in begun):
        planned = plan_stage(state, stage)
        left = [Failure(task, "not done", "it is not done", 0) for task in planned.todo]
        receipts = [planned.receipts[task.fingerprint] for task in planned.tasks if task not in planned.todo]
        state.ended[stage.name] = Ended(receipts, left, skipped=len(receipts))
        outcome.stages.append(stage)
    return outcome


def _read_inputs(state: State, names: Sequence[str]) -> None:
    """Read the tables that the stages need: a mistake in the last of them is told before the first hour of work."""
    if state.documents.num_rows and "queries" in names and state.queries.num_rows and "align" in names:
        _ = state.references


def _run_stage(
    state: State,
    outcome: Outcome,
    planned: Planned,
    machinery: _Machinery,
    progress: Progress,
    locks: Sequence[Lock],
) -> None:
    stage, todo = planned.stage, planned.todo
    ended = state.ended[stage.name] = Ended(skipped=len(planned.receipts))
    receipts = dict(planned.receipts)
    clock = time.perf_counter()
    if todo:
        progress.stage(stage, len(todo), ended.skipped, sum(task.work for task in todo), _hours(state))
        outcome.plan.planned[stage.name] = len(planned.tasks)
        machinery.begin(stage, planned)
        for result in machinery.executor(stage).run(todo):
            if isinstance(result, Receipt):
                receipts[result.fingerprint] = result
                ended.done += 1
            else:
                ended.failures.append(result)
            progress.task(stage, result)
        state.forget_listings()
        for lock in locks:
            lock.check()
    ended.receipts = [receipts[task.fingerprint] for task in planned.tasks if task.fingerprint in receipts]
    ended.wall = time.perf_counter() - clock
    stage.finish(state)
    outcome.plan.stages[stage.name] = [receipt.fingerprint for receipt in ended.receipts]
    outcome.plan.planned[stage.name] = len(planned.tasks)
    outcome.plan.manifest = state.manifest
    if todo:
        progress.end(stage, ended)
        machinery.save_plan()


def _hours(state: State) -> float:
    """Hours of audio, as far as the corpus table or the store tells."""
    if state.manifest is not None:
        return float(state.manifest.counts["seconds"]) / 3600
    known: Sequence[float | None] = state.documents["duration"].to_pylist()
    return sum(value or 0.0 for value in known) / 3600


def _sweep(folder: Folder) -> None:
    """Remove temporary files whose writers were killed: nobody has written to them for an hour."""
    place = folder.local(TEMPORARY)
    for file in place.glob("*") if place is not None else ():
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()


class _Machinery:
    """Journal and executors, made when the first task needs them."""

    def __init__(self, state: State, outcome: Outcome) -> None:
        self._state = state
        self._outcome = outcome
        self._journal: DriverJournal | None = None
        self._serial: Serial | None = None
        self._workers: Any = None

    @property
    def journal(self) -> DriverJournal:
        if self._journal is None:
            self._state.run.write_bytes("config.yaml", dump_config(without_secrets(self._state.config)).encode())
            self._journal = DriverJournal(self._state.run)
            for folder in (self._state.run, self._state.store):
                _sweep(folder)
        return self._journal

    def begin(self, stage: Stage, planned: Planned) -> None:
        """A stage that has something to do begins: tell it to who looks from outside."""
        self.journal.write(
            "stage", stage=stage.name, tasks=len(planned.tasks), done=len(planned.receipts), unit=stage.unit
        )
        self._outcome.plan.stages[stage.name] = [task.fingerprint for task in planned.tasks]
        self.save_plan()

    def save_plan(self) -> None:
        self._state.run.write_bytes(PLAN, self._outcome.plan.to_json())

    def settle(self, whole: bool) -> None:
        """All chosen stages have ended: the plan in the folder becomes this one.

        Where nothing was left to do, the folder may tell of another config that was run after this one. Then the other's
        report goes, so that a new one is written.
        """
        if self._journal is not None:
            self.save_plan()
            return
        run = self._state.run
        try:
            same = run.exists(PLAN) and load_plan(run).same(self._outcome.plan)
        except StoreError:  # of another version
            same = False
        if whole and not same:
            run.write_bytes("config.yaml", dump_config(without_secrets(self._state.config)).encode())
            run.remove("report.json")
            self.save_plan()

    def executor(self, stage: Stage) -> Executor:
        """Where a stage's tasks run."""
        if stage.in_driver or self._state.config.executor.kind == "serial":
            if self._serial is None:
                self._serial = Serial(self._state.context, self.journal)
            return self._serial
        if self._workers is None:
            from swsdist.pipeline.execution.ray_executor import RayExecutor

            self._workers = RayExecutor(self._state.context, self.journal)
        executor: Executor = self._workers
        return executor

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._outcome.ray_start, self._outcome.ray_stop = self._workers.start_seconds, self._workers.stop_seconds
        if self._journal is not None:
            self._journal.write("ray", start=self._outcome.ray_start, stop=self._outcome.ray_stop)
            self._journal.close()


@contextmanager
def _machinery(state: State, outcome: Outcome) -> Iterator[_Machinery]:
    machinery = _Machinery(state, outcome)
    try:
        yield machinery
    finally:
        machinery.close()
