"""This module restores a finished plan from its folder alone, for digests, comparisons and later readers."""

from __future__ import annotations

from swsdist.config import Config
from swsdist.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.course import Choice, Course, begin
from swsdist.pipeline.ledger import Ended, Ledger
from swsdist.pipeline.plan import ONLY, PlannedStep, load_plans
from swsdist.pipeline.task import Receipt, Task


def recorded(run: Folder, name: str = ONLY) -> Course:
    """A plan of a run folder, as it was run: its chain, and the receipts of the tasks that are planned.

    Raises:
        StoreError: it is not a run folder, it has no such plan, or a planned task is not done.
    """
    plans = load_plans(run)
    if name not in plans:
        raise StoreError(f"there is no plan {name!r}", where=run.path(), remedy=f"its plans are: {', '.join(plans)}")
    plan = plans[name]
    ledger = Ledger(run)
    # Where it lies is where it is looked at, wherever it was made.
    values = {**plan.config, "run": run.root, "storage": dict(run.storage)}
    config = Config.model_validate(values)
    course = begin(name, config, ledger, Choice())
    course.plan = plan
    for step in course.steps:
        planned = plan.steps.get(step.name)
        if planned is None:
            break
        course.ended[step.name] = Ended(_receipts(course, step, planned, plan.told(planned.place)))
    course.chain.own.recall(plan.state)
    return course


def _receipts(course: Course, step: Step, planned: PlannedStep, told: bool) -> list[Receipt]:
    found = []
    for name in planned.tasks:
        receipt = course.ledger.receipt(Task(step.stage.name, name, "", 0, {}, place=planned.place))
        if receipt is not None:
            found.append(receipt)
    # What lies in a store may have been compacted since: the store's state tells what there is.
    if len(found) < planned.planned and not told:
        raise StoreError(
            f"stage {step.name} is not done: {planned.planned - len(found)} of {planned.planned} tasks are left",
            where=course.run.path(),
            remedy="run it again to its end; then it has a digest",
        )
    return found
