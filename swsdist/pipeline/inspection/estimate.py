"""`--dry-run` tells what is left to do, how much work it is, and what it may cost, judged by earlier receipts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config import Config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.course import Choice, Course, begin, points_of, rounds
from swsdist.pipeline.elsewhere import Elsewhere
from swsdist.pipeline.ledger import Ended, Ledger
from swsdist.pipeline.plan import ONLY
from swsdist.pipeline.records.receipts import Receipts


@dataclass(frozen=True)
class Estimate:
    """The estimate of one step. `tasks` and `work` are None where they depend on steps that have not ended."""

    stage: str
    unit: str
    tasks: int | None
    done: int
    work: float | None
    cpu_s: float | None


def estimates(config: Config, choice: Choice) -> list[Estimate]:
    """Plan without doing: exact as far as what is planned stands, estimated beyond; first of the runs that come first."""
    course = begin(ONLY, config, Ledger(Folder(config.run, config.storage)), choice)
    result = []
    exact = True
    for name, before in (course.chain.first() if course.chain.first is not None else {}).items():
        rows = estimates(before, Choice(keep_going=choice.keep_going))
        result += [replace(row, stage=f"{name}: {row.stage}") for row in rows]
        exact &= all(row.tasks is not None and row.tasks == row.done for row in rows)
    for step in course.steps:
        if not exact and any(isinstance(one, Elsewhere) for word in step.reads for one in step.sources(word)):
            result.append(Estimate(step.name, step.stage.unit, None, 0, None, None))  # what it reads is not there yet
            continue
        known = course.ledger.receipts(step.stage.name, course.inputs(step).place)
        rate = _rate(known)
        if exact:
            estimate, exact = _planned(course, step, rate)
        else:
            work = step.stage.expected(course.inputs(step))
            cpu = None if rate is None else work * rate if work is not None else _before(known)
            estimate = Estimate(step.name, step.stage.unit, None, 0, work, cpu)
        result.append(estimate)
    return result


def _planned(course: Course, step: Step, rate: float | None) -> tuple[Estimate, bool]:
    """A step whose inputs stand, and whether it leaves its own: nothing is written here, so what follows can be planned only
    where nothing is left to do."""
    ended = course.ended[step.name] = Ended()
    tasks = done = 0
    work, left = 0.0, False
    for one in rounds(course, step, points_of({course.name: course}, step.name)[course.name]):
        ended.receipts += one.done
        tasks, done = tasks + len(one.names), done + len(one.done)
        work += one.left.work
        if one.left:
            left = True
            break
    cpu = 0.0 if not left else None if rate is None else work * rate
    return Estimate(step.name, step.stage.unit, tasks, done, work, cpu), not left


def _rate(receipts: Receipts) -> float | None:
    """CPU seconds a unit of work; None where nothing is known."""
    known = _known(receipts)
    work = float(known["work"].sum())
    return float(known["cpu"].sum()) / work if work > 0 else None


def _before(receipts: Receipts) -> float:
    """What a step cost the last time: the best guess where its work is not known yet."""
    known = _known(receipts)
    last = known["finished"].max(initial=0.0)
    return float(known["cpu"][known["finished"] > last - 3600].sum())


def _known(receipts: Receipts) -> dict[str, NDArray[np.float64]]:
    table = receipts.table().select(["work", "cpu_user", "cpu_system", "finished"])
    table = table.take(pa.array(receipts.standing()))
    found = {name: table[name].to_numpy() for name in table.column_names}
    return {**found, "cpu": found["cpu_user"] + found["cpu_system"]}
