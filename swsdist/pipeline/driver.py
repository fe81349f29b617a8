"""The driver runs a chain step by step; it does what is left to do and leaves alone what is done.

For each step it plans, finds the tasks whose receipts and outputs exist, runs the others, and finishes. Several plans go side
by side; a task that several of them name is done once. The driver knows neither Ray nor any stage by its name. It makes an
executor when the first task needs one, so a run with nothing left starts none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from swsdist.config import Config
from swsdist.errors import IncompleteError, UserError
from swsdist.io.filesystem import Folder
from swsdist.needs import Needs
from swsdist.pipeline.chain import Step
from swsdist.pipeline.course import Choice, Course, Outcome, Round, begin, points_of, rounds
from swsdist.pipeline.ledger import Ended, Ledger
from swsdist.pipeline.lock import Lock, locked
from swsdist.pipeline.machinery import Machinery, machinery_of
from swsdist.pipeline.operation.progress import Progress as Progress
from swsdist.pipeline.operation.watched import watched
from swsdist.pipeline.plan import ONLY, PlannedStep, demand_run_folder
from swsdist.pipeline.task import Failure, Receipt, Task


def run_stages(config: Config, choice: Choice, progress: Progress) -> Outcome:
    """Run what is left of a config's chain.

    Raises:
        LockedError: another process works in the run folder, or changes the store.
        UserError, DataError: nothing sensible can be done.
    """
    return run_plans({ONLY: config}, choice, progress)


def run_plans(configs: Mapping[str, Config], choice: Choice, progress: Progress) -> Outcome:
    """Run what is left of several configs in one ledger: each task that they share is done once.

    What has fixed names in the folder (exports, the report) is of a single plan, and left out where there are several.

    Args:
        configs: by the name of the plan; all with the same run folder, storage and executor.

    Raises:
        As `run_stages`; UserError: the configs name several run folders, or executors, or a folder that holds something else.
    """
    first = next(iter(configs.values()))
    if any((config.run, config.storage) != (first.run, first.storage) for config in configs.values()):
        raise UserError("the plans of a ledger have one run folder", where="run", remedy="give all the same `run`")
    if any(config.executor != first.executor for config in configs.values()):
        raise UserError(
            "the plans of a ledger have one executor", where="executor", remedy="give all the same section `executor`"
        )
    ledger = Ledger(Folder(first.run, first.storage))
    demand_run_folder(ledger.run)
    alone = len(configs) == 1 and not choice.shared
    courses = {name: begin(name, config, ledger, choice, alone) for name, config in configs.items()}
    outcome = Outcome(ledger, courses, time.time(), alone=alone)
    clock = time.perf_counter()
    _run_first(outcome, choice, progress)
    for course in courses.values():
        course.chain.own.read(frozenset(step.name for step in course.steps))
    with locked(ledger.run) as mine:
        ledger.forget()
        with ExitStack() as stack:
            stack.callback(progress.close)
            progress = watch = stack.enter_context(watched(outcome, progress))
            machinery = stack.enter_context(machinery_of(outcome, first))
            machinery.heard = watch.heard
            for name in _order([course.steps for course in courses.values()]):
                _run_locked(name, outcome, choice, machinery, progress, mine)
                if not choice.keep_going and _waits(name, courses.values()):
                    break
            machinery.settle(whole=choice.only is None and choice.until is None)
        for course in courses.values():
            if course.chain.report is not None and course.complete and alone:
                made = course.chain.report(outcome, course, False)
                if made is not None:
                    outcome.reports[course.name] = made
    outcome.wall = time.perf_counter() - clock
    return outcome


def _run_first(outcome: Outcome, choice: Choice, progress: Progress) -> None:
    """Run to their ends what chains want to come before them, each in its own folder; what is done of it is left alone.

    Raises:
        IncompleteError: a task of one failed.
    """
    if choice.only is not None:
        return  # what comes before must be done
    for course in outcome.courses.values():
        for name, config in (course.chain.first() if course.chain.first is not None else {}).items():
            made = run_stages(config, Choice(keep_going=choice.keep_going), progress.before(name))
            outcome.before[name] = made
            if made.failures:
                failure = made.failures[0]
                raise IncompleteError(
                    f"{len(made.failures)} tasks of {name}, which comes first, failed: {failure.message}",
                    where=made.ledger.run.path(),
                    remedy="run again: what was computed is kept",
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


def _waits(name: str, courses: Iterable[Course]) -> bool:
    """Whether what comes after a step would be of a part, and so be done again: a stage that is wanted whole has failed."""
    return any(
        course.ended[name].failures and course.chain.step(name).stage.whole
        for course in courses
        if name in course.ended
    )


def _run_locked(
    name: str, outcome: Outcome, choice: Choice, machinery: Machinery, progress: Progress, mine: Lock
) -> None:
    """Run a step in all plans that have it, and keep others out of the folders that it writes to."""
    ledger = outcome.ledger
    having = {key: course for key, course in outcome.courses.items() if any(step.name == name for step in course.steps)}
    with ExitStack() as held:
        locks = [mine]
        places = {course.inputs(course.chain.step(name)).place for course in having.values()}
        for root in sorted({ledger.folder(place).root for place in places} - {ledger.run.root}):
            # Only while the store may change: any number of runs may search one store at the same time.
            locks.append(held.enter_context(locked(ledger.folder(root))))
            ledger.forget(root)
        _run_step(name, having, choice, machinery, progress, locks)


def _run_step(
    name: str,
    courses: Mapping[str, Course],
    choice: Choice,
    machinery: Machinery,
    progress: Progress,
    locks: Sequence[Lock],
) -> None:
    """Run a step in all plans that have it, round after round."""
    clock = time.perf_counter()
    worked = False
    steps = {key: course.chain.step(name) for key, course in courses.items()}
    first = next(iter(steps.values()))
    for course in courses.values():
        course.ended[name] = Ended()
    points = points_of(courses, name)
    going = {key: rounds(course, steps[key], points[key]) for key, course in courses.items()}
    while going:
        planned = {key: next(one, None) for key, one in going.items()}
        going = {key: going[key] for key, one in planned.items() if one is not None}
        results: dict[tuple[str, str], Receipt | Failure] = {}
        todo: dict[tuple[str, str], Task] = {}
        owner: dict[tuple[str, str], str] = {}
        for key, one in planned.items():
            for task in one.left if one is not None else ():
                todo.setdefault((task.place, task.fingerprint), task)
                owner.setdefault((task.place, task.fingerprint), key)
        if todo:
            _refuse(name, choice, todo, planned)
            _begin(first, courses, planned, machinery, progress, todo)
            for needs, tasks in _by_needs(steps, courses, todo, owner):
                for task, result in machinery.run(first, tasks, needs, partial(progress.part, first)):
                    results[task.place, task.fingerprint] = result
                    if isinstance(result, Receipt):
                        machinery.ledger.note(task, result)
                    progress.task(first, result)
            for lock in locks:
                lock.check()
            worked = True
        for key in going:
            one = planned[key]
            assert one is not None
            _book(courses[key], name, one.tasks, one.receipts, results, owner)
    wall = time.perf_counter() - clock
    done = max(1, sum(course.ended[name].done for course in courses.values()))
    for course in courses.values():
        step, ended = steps[course.name], course.ended[name]
        ended.wall = wall if len(courses) == 1 else wall * ended.done / done
        inputs = course.inputs(step)
        inputs.commits = partial(_may_commit, name, choice, locks)
        step.stage.finish(inputs)
        names = tuple(receipt.fingerprint for receipt in ended.receipts)
        course.plan.steps[name] = PlannedStep(step.stage.name, names, ended.tasks, inputs.place)
        course.plan.state = dict(course.chain.own.state)
    if worked:
        written = {(step.stage.name, courses[key].inputs(step).place) for key, step in steps.items()}
        for stage, place in sorted(written):
            machinery.ledger.pack(stage, place)
        progress.end(first, wall)
        machinery.save_plans()


def _by_needs(
    steps: Mapping[str, Step],
    courses: Mapping[str, Course],
    todo: Mapping[tuple[str, str], Task],
    owner: Mapping[tuple[str, str], str],
) -> list[tuple[tuple[Needs, ...], list[Task]]]:
    """Tasks that need the same: one plan of a ledger may search on a GPU, and another on CPUs."""
    found: dict[tuple[Needs, ...], list[Task]] = {}
    of = {key: steps[key].stage.needs(courses[key].config) for key in set(owner.values())}
    for key, task in todo.items():
        found.setdefault(of[owner[key]], []).append(task)
    return list(found.items())


def _refuse(
    name: str,
    choice: Choice,
    todo: Mapping[tuple[str, str], Task],
    planned: Mapping[str, Round | None],
) -> None:
    """Raises UserError if an earlier step than the chosen one is not done."""
    if choice.only is not None and name != choice.only:
        tasks = {task.fingerprint for one in planned.values() if one is not None for task in one.tasks}
        raise UserError(
            f"stage {name} is not done: {len(todo)} of {len(tasks)} tasks are left",
            where=f"--only {choice.only}",
            remedy="leave --only out, or run that stage first",
        )


def _may_commit(name: str, choice: Choice, locks: Sequence[Lock]) -> None:
    """Raises UserError if another step is to run and nothing else, or if a folder was taken over meanwhile."""
    if choice.only is not None and name != choice.only:
        raise UserError(
            f"stage {name} is not done: there is no task left, but what it holds is to change",
            where=f"--only {choice.only}",
            remedy="leave --only out, or run that stage first",
        )
    for lock in locks:
        lock.check()


def _begin(
    step: Step,
    courses: Mapping[str, Course],
    planned: Mapping[str, Round | None],
    machinery: Machinery,
    progress: Progress,
    todo: Mapping[tuple[str, str], Task],
) -> None:
    """A step has something to do: tell it to who looks from outside."""
    all_tasks: dict[tuple[str, str], Task] = {}
    for key, one in planned.items():
        if one is None:
            continue
        course = courses[key]
        known = [receipt.fingerprint for receipt in course.ended[step.name].receipts]
        names = (*known, *(task.fingerprint for task in one.tasks))
        place = course.inputs(step).place
        course.plan.steps[step.name] = PlannedStep(step.stage.name, names, len(names), place, ended=False)
        all_tasks.update({(task.place, task.fingerprint): task for task in one.tasks})
    machinery.begin(step, len(all_tasks), len(all_tasks) - len(todo), {task.place for task in todo.values()})
    if step.stage.replaces:
        for place in {task.place for task in todo.values()}:
            machinery.ledger.drop(step.stage.name, place)
    work, whole = (sum(task.work for task in some.values()) for some in (todo, all_tasks))
    if step.stage.unit == "s":
        hours = work / 3600
    else:
        hours = next(iter(courses.values())).chain.own.hours * (work / whole if whole else 0.0)
    progress.stage(step, len(todo), len(all_tasks) - len(todo), work, hours)


def _book(
    course: Course,
    name: str,
    tasks: Sequence[Task],
    receipts: Mapping[str, Receipt],
    results: Mapping[tuple[str, str], Receipt | Failure],
    owner: Mapping[tuple[str, str], str],
) -> None:
    """Put what came of a round into a plan."""
    ended = course.ended[name]
    for task in tasks:
        key = task.place, task.fingerprint
        result = results.get(key) or receipts[task.fingerprint]
        if isinstance(result, Failure):
            ended.failures.append(result)
            continue
        ended.receipts.append(result)
        if owner.get(key) == course.name:
            ended.done += 1
        else:
            ended.skipped += 1
