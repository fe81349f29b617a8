"""The driver runs a chain step by step; it does what is left to do and leaves alone what is done.

For each step it plans, finds the tasks whose receipts and outputs exist, runs the others, and finishes. Several plans go side
by side; a task that several of them name is done once. The driver knows neither Ray nor any stage by its name. It makes an
executor when the first task needs one, so a run with nothing left starts none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import numpy as np

from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import SwsdistError
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import ChainRun, Outcome, StepRound, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.lock import Lock, locked
from swsdist.pipeline.operation.monitor import monitored
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.plan import ONLY, PlannedStep, demand_run_folder
from swsdist.pipeline.records.receipts import Names, names_of
from swsdist.pipeline.records.spool import Spool, together
from swsdist.pipeline.run_services import RunServices, open_services
from swsdist.pipeline.task import Failure, Receipt, Task


def run_stages(config: Config, selection: StepSelection, progress: Progress) -> Outcome:
    """Run what is left of a config's chain.

    Raises:
        LockedError: another process works in the run folder, or changes the store.
        UserError, DataError: nothing sensible can be done.
    """
    return run_plans({ONLY: config}, selection, progress)


def run_plans(configs: Mapping[str, Config], selection: StepSelection, progress: Progress) -> Outcome:
    """Run what is left of several configs in one ledger: each task that they share is done once.

    What has fixed names in the folder (exports, the report) is of a single plan, and left out where there are several.

    Args:
        configs: by the name of the plan; all with the same run folder, storage and executor.

    Raises:
        As `run_stages`; UserError: the configs name several run folders, or executors, or a folder that holds something else.
    """
    first = next(iter(configs.values()))
    if any((config.run, config.storage) != (first.run, first.storage) for config in configs.values()):
        raise codes.DIFFERENT_RUN_FOLDERS(where="run")
    if any(config.executor != first.executor for config in configs.values()):
        raise codes.DIFFERENT_EXECUTORS(where="executor")
    ledger = Ledger(Folder(first.run, first.storage))
    demand_run_folder(ledger.run)
    alone = len(configs) == 1 and not selection.shared
    chain_runs = {name: prepare_chain_run(name, config, ledger, selection, alone) for name, config in configs.items()}
    outcome = Outcome(ledger, chain_runs, time.time(), single_plan=alone)
    clock = time.perf_counter()
    _run_first(outcome, selection, progress)
    for chain_run in chain_runs.values():
        chain_run.chain.inputs.read(frozenset(step.name for step in chain_run.steps))
    with locked(ledger.run, progress.note) as mine:
        ledger.forget()
        with ExitStack() as stack:
            stack.callback(progress.close)
            progress = watch = stack.enter_context(monitored(outcome, progress))
            machinery = stack.enter_context(open_services(outcome, first, progress.note))
            machinery.heard = watch.heard
            for name in _order([chain_run.steps for chain_run in chain_runs.values()]):
                _run_locked(name, outcome, selection, machinery, progress, mine)
                for chain_run in chain_runs.values():
                    if chain_run.chain.barrier is not None and name in chain_run.outcomes:
                        chain_run.chain.barrier(chain_run, name, force=chain_run.config.force)
                if not selection.keep_going and _waits(name, chain_runs.values()):
                    break
            mine.check()
            machinery.settle(whole=selection.only is None and selection.until is None)
        mine.check()
        for chain_run in chain_runs.values():
            if chain_run.chain.report is not None and chain_run.complete and alone:
                made = chain_run.chain.report(outcome, chain_run, False)
                if made is not None:
                    outcome.reports[chain_run.name] = made
    outcome.wall = time.perf_counter() - clock
    return outcome


def _run_first(outcome: Outcome, selection: StepSelection, progress: Progress) -> None:
    """Run to their ends what chains want to come before them, each in its own folder; what is done of it is left alone.

    Raises:
        IncompleteError: a task of one failed.
    """
    if selection.only is not None:
        return  # what comes before must be done
    for chain_run in outcome.chain_runs.values():
        for name, config in (
            chain_run.chain.prerequisites() if chain_run.chain.prerequisites is not None else {}
        ).items():
            made = run_stages(config, StepSelection(keep_going=selection.keep_going), progress.before(name))
            outcome.preceding[name] = made
            if made.failures:
                failure = made.failures[0]
                raise codes.PREREQUISITE_FAILED(
                    where=made.ledger.run.path(), count=len(made.failures), name=name, failure=failure.message
                )


def _order(several: Sequence[Sequence[Step]]) -> list[str]:
    """The steps of all chains in one order that keeps each chain's."""
    found: list[str] = []
    for steps in several:
        place = 0
        for step in steps:
            if step.name in found:
                place = found.index(step.name) + 1
            else:
                found.insert(place, step.name)
                place += 1
    return found


def _waits(name: str, chain_runs: Iterable[ChainRun]) -> bool:
    """Whether what comes after a step would be of a part, and so be done again: a stage that is wanted whole has failed."""
    return any(
        chain_run.outcomes[name].failures and chain_run.chain.step(name).stage.all_or_nothing
        for chain_run in chain_runs
        if name in chain_run.outcomes
    )


def _run_locked(
    name: str, outcome: Outcome, selection: StepSelection, machinery: RunServices, progress: Progress, mine: Lock
) -> None:
    """Run a step in all plans that have it, and keep others out of the folders that it writes to."""
    ledger = outcome.ledger
    having = {
        key: chain_run
        for key, chain_run in outcome.chain_runs.items()
        if any(step.name == name for step in chain_run.steps)
    }
    with ExitStack() as held:
        locks = [mine]
        places = {chain_run.inputs(chain_run.chain.step(name)).place for chain_run in having.values()}
        for root in sorted({ledger.folder(place).root for place in places} - {ledger.run.root}):
            # Only while the store may change: any number of runs may search one store at the same time.
            locks.append(held.enter_context(locked(ledger.folder(root), progress.note, mine.replaced)))
            ledger.forget(root)
        _run_step(name, having, selection, machinery, progress, locks)


def _run_step(
    name: str,
    chain_runs: Mapping[str, ChainRun],
    selection: StepSelection,
    machinery: RunServices,
    progress: Progress,
    locks: Sequence[Lock],
) -> None:
    """Run a step in all plans that have it, round after round."""
    clock = time.perf_counter()
    worked = False
    steps = {key: chain_run.chain.step(name) for key, chain_run in chain_runs.items()}
    first = next(iter(steps.values()))
    for chain_run in chain_runs.values():
        chain_run.outcomes[name] = StepOutcome()
    going = {key: plan_rounds(chain_run, steps[key]) for key, chain_run in chain_runs.items()}
    while going:
        planned = {key: next(one, None) for key, one in going.items()}
        going = {key: going[key] for key, one in planned.items() if one is not None}
        failed: dict[tuple[str, bytes], Failure] = {}
        todo = _todo(planned)
        if any(todo.values()):
            count = sum(map(len, todo.values()))
            _refuse(name, selection, count, planned)
            _demand_held(locks)
            _begin(first, chain_runs, planned, machinery, progress, todo)
            with _left(chain_runs, steps, planned, machinery, locks):
                for needs, tasks in _by_needs(steps, chain_runs, todo):
                    for task, result in machinery.run(first, tasks, needs, partial(progress.part, first)):
                        if isinstance(result, Receipt):
                            machinery.ledger.note(task, result)
                        else:
                            failed[task.place, task.fingerprint.encode()] = result
                        progress.task(first, result)
            _demand_held(locks)
            worked = True
        for key in going:
            one = planned[key]
            assert one is not None
            _book(chain_runs[key], steps[key], one, failed, todo[key])
    wall = time.perf_counter() - clock
    done = max(1, sum(chain_run.outcomes[name].done for chain_run in chain_runs.values()))
    for chain_run in chain_runs.values():
        step, ended = steps[chain_run.name], chain_run.outcomes[name]
        ended.wall = wall if len(chain_runs) == 1 else wall * ended.done / done
        inputs = chain_run.inputs(step)
        inputs.commits = partial(_may_commit, name, selection, locks)
        step.stage.finish(inputs)
        names = Names(ended.receipts.fingerprints)
        chain_run.plan.steps[name] = PlannedStep(step.stage.name, names, ended.tasks, inputs.place)
        chain_run.plan.state = dict(chain_run.chain.inputs.state)
    if worked:
        _demand_held(locks)
        written = {(step.stage.name, chain_runs[key].inputs(step).place) for key, step in steps.items()}
        for stage, place in sorted(written):
            machinery.ledger.pack(stage, place)
        machinery.save_plans()
        progress.end(first, wall)


@contextmanager
def _left(
    chain_runs: Mapping[str, ChainRun],
    steps: Mapping[str, Step],
    planned: Mapping[str, StepRound | None],
    machinery: RunServices,
    locks: Sequence[Lock],
) -> Iterator[None]:
    """Tasks of a step are being done; if that is interrupted, or was before, stages commit what is done."""

    def leave(before: bool) -> None:
        for key, one in planned.items():
            chain_run, step = chain_runs[key], steps[key]
            if one is None or step.name in chain_run.redo:
                continue  # what is done again takes the place of the old as a whole
            stage, inputs = step.stage, chain_run.inputs(step)
            rows = one.rows if before else chain_run.ledger.rows(stage.name, one.place, one.names)
            inputs.outcome = StepOutcome()
            inputs.outcome.receipts.extend(chain_run.ledger.receipts(stage.name, one.place), rows[rows >= 0])
            if len(inputs.outcome.receipts):
                _demand_held(locks)
                stage.commit_partial(inputs)

    leave(before=True)  # who was killed could not
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with suppress(SwsdistError, OSError):  # receipts tell what is done all the same
            machinery.end_workers()  # they may finish their tasks meanwhile, which the driver does not see
            for place in {one.place for one in planned.values() if one is not None}:
                machinery.ledger.forget(place)
            leave(before=False)
        raise


def _todo(planned: Mapping[str, StepRound | None]) -> dict[str, Spool]:
    """By plan the tasks that are left; of those that several plans name the first of these has it."""
    if len(planned) == 1:
        return {key: one.left if one is not None else Spool() for key, one in planned.items()}
    taken: set[tuple[str, str]] = set()
    found: dict[str, Spool] = {}
    for key, one in planned.items():
        found[key] = Spool()
        for task in one.left if one is not None else ():
            if (task.place, task.fingerprint) not in taken:
                taken.add((task.place, task.fingerprint))
                found[key].put(task)
    return found


def _by_needs(
    steps: Mapping[str, Step], chain_runs: Mapping[str, ChainRun], todo: Mapping[str, Spool]
) -> list[tuple[tuple[Needs, ...], Sequence[Task]]]:
    """Tasks that need the same: one plan of a ledger may search on a GPU, and another on CPUs."""
    found: dict[tuple[Needs, ...], list[Spool]] = {}
    for key, tasks in todo.items():
        if tasks:
            found.setdefault(steps[key].stage.needs(chain_runs[key].config), []).append(tasks)
    return [(needs, together(spools)) for needs, spools in found.items()]


def _refuse(name: str, selection: StepSelection, left: int, planned: Mapping[str, StepRound | None]) -> None:
    """Raises UserError if an earlier step than the chosen one is not done."""
    if selection.only is not None and name != selection.only:
        raise codes.EARLIER_STAGE_OPEN(where=f"--only {selection.only}", stage=name, left=left, tasks=_all(planned)[0])


def _all(planned: Mapping[str, StepRound | None]) -> tuple[int, float]:
    """How many tasks a round has in all plans, each once, and how much work they are."""
    count, work = 0, 0.0
    places: dict[str, list[StepRound]] = {}
    for one in planned.values():
        if one is not None:
            places.setdefault(one.place, []).append(one)
    for some in places.values():
        names = np.concatenate([one.names for one in some])
        once = np.unique(names, return_index=True)[1]
        count += len(once)
        work += float(np.concatenate([one.work for one in some])[once].sum())
    return count, work


def _may_commit(name: str, selection: StepSelection, locks: Sequence[Lock]) -> None:
    """Raises UserError if another step is to run and nothing else, or if a folder was taken over meanwhile."""
    if selection.only is not None and name != selection.only:
        raise codes.EARLIER_STAGE_UNCOMMITTED(where=f"--only {selection.only}", stage=name)
    _demand_held(locks)


def _demand_held(locks: Iterable[Lock]) -> None:
    """Raises LockedError if a folder was taken over meanwhile: what another driver writes there is not written over."""
    for lock in locks:
        lock.check()


def _begin(
    step: Step,
    chain_runs: Mapping[str, ChainRun],
    planned: Mapping[str, StepRound | None],
    machinery: RunServices,
    progress: Progress,
    todo: Mapping[str, Spool],
) -> None:
    """A step has something to do: tell it to who looks from outside."""
    for key, one in planned.items():
        if one is None:
            continue
        chain_run = chain_runs[key]
        names = Names(np.concatenate([chain_run.outcomes[step.name].receipts.fingerprints, one.names]))
        chain_run.plan.steps[step.name] = PlannedStep(step.stage.name, names, len(names), one.place, ended=False)
    count, whole = _all(planned)
    left, work = sum(map(len, todo.values())), sum(tasks.work for tasks in todo.values())
    places = {one.place for key, one in planned.items() if one is not None and todo[key]}
    machinery.begin(step, count, count - left, places)
    if step.stage.replaces:
        for place in places:
            machinery.ledger.drop(step.stage.name, place)
    if step.stage.unit == "s":
        hours = sum(
            chain_runs[key].chain.step(step.name).stage.hours(chain_runs[key].inputs(step), tasks)
            for key, tasks in todo.items()
            if tasks
        )
    else:
        hours = next(iter(chain_runs.values())).chain.inputs.hours * (work / whole if whole else 0.0)
    for key, tasks in todo.items():
        if tasks:
            chain_runs[key].chain.step(step.name).stage.prepare(chain_runs[key].inputs(step))
    progress.stage(step, left, count - left, work, hours)


def _book(
    chain_run: ChainRun, step: Step, one: StepRound, failed: Mapping[tuple[str, bytes], Failure], mine: Spool
) -> None:
    """Put what came of a round into a plan; `mine` are the tasks that were done for it."""
    ended, rows, stage = chain_run.outcomes[step.name], one.rows.copy(), step.stage.name
    left = rows < 0
    rows[left] = chain_run.ledger.rows(stage, one.place, one.names[left])
    names = np.unique(one.names[left])
    for name in one.names[left] if failed else ():
        if (one.place, name) in failed:
            ended.failures.append(failed[one.place, name])
    bad = np.array([name for name in names if (one.place, name) in failed], "S32") if failed else names[:0]
    rows[np.isin(one.names, bad)] = -1
    now = chain_run.ledger.receipts(stage, one.place)
    if now is one.receipts:
        ended.receipts.extend(now, rows[rows >= 0])
    else:  # those of before were dropped, since their outputs are replaced
        for k in np.flatnonzero(rows >= 0):
            ended.receipts.extend(now if left[k] else one.receipts, rows[k : k + 1])
    own = left if len(mine) == len(names) else np.isin(one.names, names_of(task.fingerprint for task in mine))
    done = int((own & (rows >= 0)).sum())
    ended.done += done
    ended.skipped += int((rows >= 0).sum()) - done
