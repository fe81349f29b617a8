"""The status tells from the folder alone what a run is doing, or was doing when it died.

Of a run that works it reads what the driver says every few seconds, and the ends of the journals of the processes that work:
so much, however many tasks there are. Of a run that does not, it counts receipts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from swsdist.accounts.journal import lines_of
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.lock import STALE_AFTER, lives, read
from swsdist.pipeline.operation import run_status
from swsdist.pipeline.operation.run_status import RunStatus
from swsdist.pipeline.plan import Plan, load_plans

#: Bytes at the end of a journal that are read first, and at most, to find when the present task began.
_TAIL, _MOST = 1 << 16, 1 << 22


#: Seconds that a clock may be off, or a driver dead, for it to be watched for a sign of life; longer ago it is told at once.
_OFF = 86_400.0


@dataclass(frozen=True)
class StageStatus:
    """The number of a step's tasks, how many are done, and how many failed as far as is known."""

    stage: str
    tasks: int
    done: int
    failed: int = 0


@dataclass(frozen=True)
class ProcessStatus:
    """A process of the run: what it works on, since when, and how far it is; `seen` is how long ago it last wrote, in s."""

    host: str
    pid: int
    role: str
    stage: str | None
    busy_s: float
    cpu_s: float
    memory_gb: float
    seen_s: float
    part: float | None = None


@dataclass(frozen=True)
class Status:
    """The state of a run (`running`, `died`, `done`, `incomplete` or `cancelled`), with details; `ended` is how its last driver
    ended, with what it said, if it said so."""

    state: str
    holder: str | None
    stages: tuple[StageStatus, ...]
    processes: tuple[ProcessStatus, ...]
    eta_s: float | None
    ended: str | None = None


def status(run: Folder) -> Status:
    """Look at a run folder.

    Raises:
        StoreError: it is not a run folder.
    """
    holder = read(run)
    said = run_status.read(run)
    text = f"process {holder['pid']} on {holder['host']}" if holder is not None else None
    if holder is not None and lives(run, holder, within=_OFF):
        if said is not None and said.token == holder["token"]:
            return _running(run, text, said)
        return Status("running", text, _counted(run, load_plans(run)), (), None)  # it has nothing to do, or not yet
    plans = load_plans(run)
    stages = _counted(run, plans)
    complete = all(stage.done == stage.tasks for stage in stages)
    last = all(plan.steps and _last(plan) in plan.steps for plan in plans.values())
    if holder is not None:
        return Status("died", text, stages, (), None)
    word = "done" if complete and last else "incomplete"
    ended = None
    if word == "incomplete" and said is not None and said.state not in ("done", "running"):
        ended = f"{said.state}: {said.message}" if said.message else said.state if said.state != word else None
        word = "cancelled" if said.state == "cancelled" else word
    return Status(word, text, stages, (), None, ended)


def _counted(run: Folder, plans: dict[str, Plan]) -> tuple[StageStatus, ...]:
    """The steps of all plans, by their receipts."""
    ledger = Ledger(run, receipts_only=True)
    stages = []
    for name in dict.fromkeys(step for plan in plans.values() for step in plan.steps):
        steps = [plan.steps[name] for plan in plans.values() if name in plan.steps]
        tasks = done = 0
        for place, stage in sorted({(step.place, step.stage) for step in steps}):
            known = [step.tasks.array for step in steps if (step.place, step.stage) == (place, stage)]
            item = np.unique(np.concatenate(known))
            tasks += len(item)
            done += int((ledger.receipts(stage, place).find(item) >= 0).sum())
        stages.append(StageStatus(name, max(tasks, *(step.planned for step in steps)), done))
    return tuple(stages)


def _running(run: Folder, holder: str | None, said: RunStatus) -> Status:
    """A run whose driver says how far it is."""
    stages = {stage.stage: StageStatus(stage.stage, stage.tasks, stage.done, stage.failed) for stage in said.stages}
    names = set(run.listing("accounts")) if run.local() is None else None
    found = [lines for name in said.journals if (lines := _end(run, name, names))]
    processes = tuple(item for item in map(_process, found) if item.seen_s < STALE_AFTER)
    return Status("running", holder, tuple(stages.values()), processes, _eta(said))


def _end(run: Folder, name: str, names: set[str] | None) -> list[dict[str, Any]]:
    """First line and end of a journal: as many lines as tell what the process does; none if it cannot be read.

    Where a journal is kept in several files, their names begin alike.
    """
    stem = name.removesuffix(".jsonl")
    files = [name] if names is None else sorted(name for name in names if name.startswith(stem))
    try:
        first = lines_of(run, files[0], 0, 4096)[:1]
        size, length = run.info(files[-1]).size, _TAIL
        while True:
            lines = lines_of(run, files[-1], max(0, size - length), length + 4096)
            told = any(line["event"] in ("begin", "end", "failed", "close") for line in lines)
            if told or length >= min(size, _MOST):
                return first + [line for line in lines if line["event"] != "open"]
            length *= 8
    except (FileNotFoundError, IndexError):
        return []


def _last(plan: Plan) -> str:
    """The last step of a plan's chain."""
    return plan.order[-1] if plan.order else ""


def _process(lines: list[dict[str, Any]]) -> ProcessStatus:
    first, last = lines[0], lines[-1]
    begun: dict[str, Any] | None = None
    memory, part = 0, None
    for line in lines:
        if line["event"] == "begin":
            begun, part = line, None
        elif line["event"] in ("end", "failed", "close"):
            begun = None
        elif line["event"] == "sample":
            memory, part = line["pss"], line.get("part")
    now = time.time()
    return ProcessStatus(
        host=first["host"],
        pid=first["pid"],
        role=first["role"],
        stage=begun["stage"] if begun is not None else None,
        busy_s=now - begun["t"] if begun is not None else 0.0,
        cpu_s=last["cpu"],
        memory_gb=memory / 1e9,
        seen_s=now - last["t"],
        part=part if begun is not None else None,
    )


def _eta(said: RunStatus) -> float | None:
    """Seconds until the present stage ends, at the pace it has had; None before its first task has ended."""
    for stage in said.stages:
        done = stage.done - stage.before
        if stage.ended is None and stage.done < stage.tasks:
            return (said.t - stage.begun) / done * (stage.tasks - stage.done) if done else None
    return None
