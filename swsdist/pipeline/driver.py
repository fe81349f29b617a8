"""The driver runs a chain step by step.

For each step it plans, skips the tasks whose receipts and outputs exist, runs the others, and calls `Stage.finish`. Several
plans run side by side; a task that they share is done once. The driver depends neither on Ray nor on any stage. It starts an
executor with the first task, so a run without open tasks starts none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial

import numpy as np

from swsdist.accounts.journal import DriverJournal
from swsdist.accounts.records import pack
from swsdist.config import Config, dump_config, without_secrets
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes.storage import READ_ONLY_FILE_SYSTEM
from swsdist.core.errors import StorageError, StoreError, SwsdistError, TransientError, UserError
from swsdist.core.needs import Needs
from swsdist.io.failures import FULL, TEMPORARY
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Step
from swsdist.pipeline.chain_run import ChainRun, Outcome, StepRound, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.execution.executor import (
    FOLDER,
    Executor,
    Outcomes,
    PartListener,
    Serial,
    failure_file,
    remove_failures,
    save_failure,
)
from swsdist.pipeline.ledger import (
    ONLY,
    Ledger,
    Plan,
    PlannedStep,
    StepOutcome,
    demand_run_folder,
    load_plans,
    save_plans,
)
from swsdist.pipeline.lock import Lock, locked
from swsdist.pipeline.operation.monitor import monitored, noted
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.receipts import Names, Spool, names_of, together
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
        for chain_run in self._outcome.chain_runs.values() if self._outcome.single_plan else ():
            for name in chain_run.chain.report_files:  # with several plans, the report belongs to another
                self.ledger.run.remove(name)
        for name, plan in self._other_plans().items():
            if name in self._outcome.chain_runs and plan.chain != (chain := self._outcome.chain_runs[name].chain.name):
                where = self.ledger.run.path()
                self._note(
                    f"{where} was a run of the chain {plan.chain}, and is now one of {chain}: --run names another"
                )
        # plan.json marks a run folder, so it is written before files that any folder may hold.
        self.save_plans()
        if self._outcome.single_plan:
            self.ledger.run.write_bytes("config.yaml", dump_config(without_secrets(self._config)).encode())

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

    def run(self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
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

    def _run(self, step: Step, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
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


def run_stages(config: Config, selection: StepSelection, progress: Progress) -> Outcome:
    """Run the open tasks of a config's chain.

    Raises:
        LockedError: another process works in the run folder or changes the store.
        UserError, DataError: the run cannot go on.
    """
    return run_plans({ONLY: config}, selection, progress)


def run_plans(configs: Mapping[str, Config], selection: StepSelection, progress: Progress) -> Outcome:
    """Run the open tasks of several configs in one ledger; shared tasks are done once.

    Outputs with fixed names (exports, the report) belong to a single plan, and are left out if there are several.

    Args:
        configs: configs by the name of their plan; all with the same run folder, storage and executor.
        selection: the steps to run.
        progress: receives the progress.

    Raises:
        As `run_stages`; UserError: the configs differ in run folder or executor, or the folder holds other files.
    """
    first = next(iter(configs.values()))
    if any((config.run, config.storage) != (first.run, first.storage) for config in configs.values()):
        raise families.CONFLICTING_OPTIONS(
            "plans of one ledger have different run folders", "give all the same `run`", where="run"
        )
    if any(config.executor != first.executor for config in configs.values()):
        raise families.CONFLICTING_OPTIONS(
            "plans of one ledger have different executors", "give all the same section `executor`", where="executor"
        )
    ledger = Ledger(Folder(first.run, first.storage))
    demand_run_folder(ledger.run)
    alone = len(configs) == 1 and not selection.shared
    clock = time.perf_counter()
    with ExitStack() as held:
        with noted(ledger.run, progress.event):
            chain_runs = {
                name: prepare_chain_run(name, config, ledger, selection, alone) for name, config in configs.items()
            }
            outcome = Outcome(ledger, chain_runs, time.time(), single_plan=alone)
            _run_first(outcome, selection, progress)
            for chain_run in chain_runs.values():
                chain_run.chain.inputs.read(frozenset(label for step in chain_run.steps for label in step.tables))
            run_lock = held.enter_context(locked(ledger.run, progress.note))
        ledger.forget()
        with ExitStack() as stack:
            stack.callback(progress.close)
            progress = watch = stack.enter_context(monitored(outcome, progress))
            services = stack.enter_context(open_services(outcome, first, progress.note))
            services.on_event = watch.journal_event
            for name in _order([chain_run.steps for chain_run in chain_runs.values()]):
                _run_locked(name, outcome, selection, services, progress, run_lock)
                for chain_run in chain_runs.values():
                    if chain_run.chain.barrier is not None and name in chain_run.outcomes:
                        chain_run.chain.barrier(chain_run, name, force=chain_run.config.force)
                if not selection.keep_going and _stops_after(name, chain_runs.values()):
                    break
            run_lock.check()
            services.settle(complete=not selection.is_partial)
        run_lock.check()
        for chain_run in chain_runs.values():
            if chain_run.chain.report is not None and chain_run.complete and alone:
                report = chain_run.chain.report(outcome, chain_run, False)
                if report is not None:
                    outcome.reports[chain_run.name] = report
    outcome.wall = time.perf_counter() - clock
    return outcome


def _run_first(outcome: Outcome, selection: StepSelection, progress: Progress) -> None:
    """Run the prerequisites of the chains, each in its own folder; finished tasks are skipped.

    Raises:
        IncompleteError: a task of a prerequisite failed.
    """
    if selection.only is not None:
        return  # prerequisites must be done
    for chain_run in outcome.chain_runs.values():
        for name, config in chain_run.chain.prerequisites().items():
            preceding = run_stages(
                config, StepSelection(keep_going=selection.keep_going), progress.for_prerequisite(name)
            )
            outcome.preceding[name] = preceding
            if preceding.failures:
                failure = preceding.failures[0]
                raise families.TASKS_FAILED(
                    "{count} task{s} of the prerequisite run {name} failed: {failure}",
                    "run again: computed results are kept",
                    where=preceding.ledger.run.path(),
                    count=len(preceding.failures),
                    name=name,
                    failure=failure.message,
                )


def _order(several: Sequence[Sequence[Step]]) -> list[str]:
    """All steps in one order that keeps the order of each chain."""
    order: list[str] = []
    for steps in several:
        place = 0
        for step in steps:
            if step.name in order:
                place = order.index(step.name) + 1
            else:
                order.insert(place, step.name)
                place += 1
    return order


def _stops_after(name: str, chain_runs: Iterable[ChainRun]) -> bool:
    """Whether the run stops after a step: a task of an `all_or_nothing` stage failed, so later steps would be redone."""
    return any(
        chain_run.outcomes[name].failures and chain_run.chain.step(name).stage.all_or_nothing
        for chain_run in chain_runs
        if name in chain_run.outcomes
    )


def _run_locked(
    name: str, outcome: Outcome, selection: StepSelection, services: RunServices, progress: Progress, run_lock: Lock
) -> None:
    """Run a step in all plans that have it, with locks on the folders that it writes to."""
    ledger = outcome.ledger
    chain_runs = {
        key: chain_run
        for key, chain_run in outcome.chain_runs.items()
        if any(step.name == name for step in chain_run.steps)
    }
    with ExitStack() as stack:
        locks = [run_lock]
        places = {chain_run.inputs(chain_run.chain.step(name)).place for chain_run in chain_runs.values()}
        for root in sorted({ledger.folder(place).root for place in places} - {ledger.run.root}):
            # The store is locked only while it may change: any number of runs may search it at once.
            locks.append(stack.enter_context(locked(ledger.folder(root), progress.note, run_lock.replaced)))
            ledger.forget(root)
        _run_step(name, chain_runs, selection, services, progress, locks)


def _run_step(
    name: str,
    chain_runs: Mapping[str, ChainRun],
    selection: StepSelection,
    services: RunServices,
    progress: Progress,
    locks: Sequence[Lock],
) -> None:
    """Run a step in all plans that have it, round by round."""
    clock = time.perf_counter()
    ran_tasks = False
    steps = {key: chain_run.chain.step(name) for key, chain_run in chain_runs.items()}
    first = next(iter(steps.values()))
    for chain_run in chain_runs.values():
        chain_run.outcomes[name] = StepOutcome()
    planners = {key: plan_rounds(chain_run, steps[key]) for key, chain_run in chain_runs.items()}
    while planners:
        # A planner that is at its end has no round.
        planned = {key: each for key, rounds in planners.items() if (each := next(rounds, None)) is not None}
        planners = {key: planners[key] for key in planned}
        failed: dict[tuple[str, bytes], Failure] = {}
        open_tasks = _open_tasks(planned)
        if any(open_tasks.values()):
            count = sum(map(len, open_tasks.values()))
            _demand_earlier_steps(name, selection, count, planned)
            _demand_locks(locks)
            _announce(first, chain_runs, planned, services, progress, open_tasks)
            with _commits_when_interrupted(chain_runs, steps, planned, services, locks):
                for needs, tasks in _by_needs(steps, chain_runs, open_tasks):
                    for task, result in services.run(first, tasks, needs, partial(progress.part, first)):
                        if isinstance(result, Receipt):
                            services.ledger.note(task, result)
                        else:
                            failed[task.place, task.fingerprint.encode()] = result
                        progress.task(first, result)
            _demand_locks(locks)
            ran_tasks = True
        for key, planned_round in planned.items():
            _record(chain_runs[key], steps[key], planned_round, failed, open_tasks[key])
    wall = time.perf_counter() - clock
    done = max(1, sum(chain_run.outcomes[name].done for chain_run in chain_runs.values()))
    for chain_run in chain_runs.values():
        step, ended = steps[chain_run.name], chain_run.outcomes[name]
        ended.wall = wall if len(chain_runs) == 1 else wall * ended.done / done
        inputs = chain_run.inputs(step)
        inputs.commits = partial(_may_commit, name, selection, locks)
        step.stage.finish(inputs)
        names = Names(ended.receipts.fingerprints)
        chain_run.plan.steps[name] = PlannedStep(step.stage.name, names, ended.tasks, inputs.place, tables=step.tables)
        chain_run.plan.state = dict(chain_run.chain.inputs.state)
    if ran_tasks:
        _demand_locks(locks)
        written = {(step.stage.name, chain_runs[key].inputs(step).place) for key, step in steps.items()}
        for stage, place in sorted(written):
            services.ledger.pack(stage, place)
        services.save_plans()
        progress.step_ends(first, wall)


@contextmanager
def _commits_when_interrupted(
    chain_runs: Mapping[str, ChainRun],
    steps: Mapping[str, Step],
    planned: Mapping[str, StepRound],
    services: RunServices,
    locks: Sequence[Lock],
) -> Iterator[None]:
    """While tasks run: if this run is interrupted, or an earlier one was, stages commit the finished tasks."""

    def commit(before: bool) -> None:
        for key, planned_round in planned.items():
            chain_run, step = chain_runs[key], steps[key]
            if step.name in chain_run.redo:
                continue  # redone results replace the old ones all at once
            stage, inputs = step.stage, chain_run.inputs(step)
            rows = planned_round.rows
            if not before:
                rows = chain_run.ledger.rows(stage.name, planned_round.place, planned_round.names)
            inputs.outcome = StepOutcome()
            inputs.outcome.receipts.extend(chain_run.ledger.receipts(stage.name, planned_round.place), rows[rows >= 0])
            if len(inputs.outcome.receipts):
                _demand_locks(locks)
                stage.commit_partial(inputs)

    commit(before=True)  # a killed run could not commit
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with suppress(SwsdistError, OSError):  # the receipts remain
            services.end_workers()  # the driver does not see tasks that they finish meanwhile
            for place in {planned_round.place for planned_round in planned.values()}:
                services.ledger.forget(place)
            commit(before=False)
        raise


def _open_tasks(planned: Mapping[str, StepRound]) -> dict[str, Spool]:
    """Open tasks by plan; a shared task belongs to the first plan that names it."""
    if len(planned) == 1:
        return {key: planned_round.left for key, planned_round in planned.items()}
    taken: set[tuple[str, str]] = set()
    tasks_of: dict[str, Spool] = {}
    for key, planned_round in planned.items():
        tasks_of[key] = Spool()
        for task in planned_round.left:
            if (task.place, task.fingerprint) not in taken:
                taken.add((task.place, task.fingerprint))
                tasks_of[key].put(task)
    return tasks_of


def _by_needs(
    steps: Mapping[str, Step], chain_runs: Mapping[str, ChainRun], open_tasks: Mapping[str, Spool]
) -> list[tuple[tuple[Needs, ...], Sequence[Task]]]:
    """Open tasks grouped by resource needs: one plan may search on a GPU and another on CPUs."""
    tasks_of: dict[tuple[Needs, ...], list[Spool]] = {}
    for key, tasks in open_tasks.items():
        if tasks:
            tasks_of.setdefault(steps[key].stage.needs(chain_runs[key].config), []).append(tasks)
    return [(needs, together(spools)) for needs, spools in tasks_of.items()]


def _demand_earlier_steps(name: str, selection: StepSelection, left: int, planned: Mapping[str, StepRound]) -> None:
    """Raise a UserError if a step before the selected one is not done."""
    if selection.only is not None and name != selection.only:
        raise families.NOT_FINISHED.of(UserError)(
            "stage {stage} is not done: {left} of {tasks} tasks are left",
            "leave --only out, or run that stage first",
            where=f"--only {selection.only}",
            stage=name,
            left=left,
            tasks=_size_of(planned)[0],
        )


def _size_of(planned: Mapping[str, StepRound]) -> tuple[int, float]:
    """Number and work of a round's tasks in all plans, each task once."""
    count, work = 0, 0.0
    places: dict[str, list[StepRound]] = {}
    for planned_round in planned.values():
        places.setdefault(planned_round.place, []).append(planned_round)
    for some in places.values():
        names = np.concatenate([planned_round.names for planned_round in some])
        once = np.unique(names, return_index=True)[1]
        count += len(once)
        work += float(np.concatenate([planned_round.work for planned_round in some])[once].sum())
    return count, work


def _may_commit(name: str, selection: StepSelection, locks: Sequence[Lock]) -> None:
    """Raise a UserError if only another step may run, and a LockedError if a lock was lost."""
    if selection.only is not None and name != selection.only:
        raise families.NOT_FINISHED.of(UserError)(
            "stage {stage} is not done: it has no task left, but its results are not committed",
            "leave --only out, or run that stage first",
            where=f"--only {selection.only}",
            stage=name,
        )
    _demand_locks(locks)


def _demand_locks(locks: Iterable[Lock]) -> None:
    """Raise a LockedError if another driver took over a folder: its files must not be overwritten."""
    for lock in locks:
        lock.check()


def _announce(
    step: Step,
    chain_runs: Mapping[str, ChainRun],
    planned: Mapping[str, StepRound],
    services: RunServices,
    progress: Progress,
    open_tasks: Mapping[str, Spool],
) -> None:
    """Publish the plan and the start of a step that has open tasks."""
    for key, planned_round in planned.items():
        chain_run = chain_runs[key]
        names = Names(np.concatenate([chain_run.outcomes[step.name].receipts.fingerprints, planned_round.names]))
        chain_run.plan.steps[step.name] = PlannedStep(
            step.stage.name, names, len(names), planned_round.place, ended=False, tables=step.tables
        )
    count, planned_work = _size_of(planned)
    left, work = sum(map(len, open_tasks.values())), sum(tasks.work for tasks in open_tasks.values())
    places = {planned_round.place for key, planned_round in planned.items() if open_tasks[key]}
    services.begin(step, count, count - left, places)
    if step.stage.replaces:
        for place in places:
            rounds = [each for each in planned.values() if each.place == place]
            kept = np.concatenate([each.names[each.rows >= 0] for each in rounds])
            services.ledger.drop(step.stage.name, place, kept)
    if step.stage.unit == "s":
        hours = sum(
            chain_runs[key].chain.step(step.name).stage.hours(chain_runs[key].inputs(step), tasks)
            for key, tasks in open_tasks.items()
            if tasks
        )
    else:
        hours = next(iter(chain_runs.values())).chain.inputs.hours * (work / planned_work if planned_work else 0.0)
    for key, tasks in open_tasks.items():
        if tasks:
            chain_runs[key].chain.step(step.name).stage.prepare(chain_runs[key].inputs(step))
    progress.step_begins(step, left, count - left, work, hours)


def _record(
    chain_run: ChainRun, step: Step, step_round: StepRound, failed: Mapping[tuple[str, bytes], Failure], tasks: Spool
) -> None:
    """Add the results of a round to a chain run; `tasks` are the tasks that were run for it."""
    ended, rows, stage = chain_run.outcomes[step.name], step_round.rows.copy(), step.stage.name
    left = rows < 0
    rows[left] = chain_run.ledger.rows(stage, step_round.place, step_round.names[left])
    names = np.unique(step_round.names[left])
    for name in step_round.names[left] if failed else ():
        if (step_round.place, name) in failed:
            ended.failures.append(failed[step_round.place, name])
    bad = np.array([name for name in names if (step_round.place, name) in failed], "S32") if failed else names[:0]
    rows[np.isin(step_round.names, bad)] = -1
    now = chain_run.ledger.receipts(stage, step_round.place)
    if now is step_round.receipts:
        ended.receipts.extend(now, rows[rows >= 0])
    else:  # the earlier receipts were dropped, since their outputs are replaced
        for k in np.flatnonzero(rows >= 0):
            ended.receipts.extend(now if left[k] else step_round.receipts, rows[k : k + 1])
    if len(tasks) < len(names):
        left = np.isin(step_round.names, names_of(task.fingerprint for task in tasks))
    done = int((left & (rows >= 0)).sum())
    ended.done += done
    ended.skipped += int((rows >= 0).sum()) - done
