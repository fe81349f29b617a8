"""The status tells from the folder alone what a run is doing, or was doing when it died."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from swsdist.accounts.journal import Line, read_journals
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.lock import STALE_AFTER, alive, read
from swsdist.pipeline.plan import Plan, load_plans


@dataclass(frozen=True)
class StageStatus:
    """The number of a step's tasks, and how many are done."""

    stage: str
    tasks: int
    done: int


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
    """The state of a run (`running`, `died`, `done` or `incomplete`), with details."""

    state: str
    holder: str | None
    stages: tuple[StageStatus, ...]
    processes: tuple[ProcessStatus, ...]
    eta_s: float | None


def status(run: Folder) -> Status:
    """Look at a run folder.

    Raises:
        StoreError: it is not a run folder.
    """
    plans = load_plans(run)
    ledger = Ledger(run)
    stages = []
    names = list(dict.fromkeys(step for plan in plans.values() for step in plan.steps))
    for name in names:
        steps = [plan.steps[name] for plan in plans.values() if name in plan.steps]
        tasks = done = 0
        for place, stage in sorted({(step.place, step.stage) for step in steps}):
            known = [step.tasks.array for step in steps if (step.place, step.stage) == (place, stage)]
            each = np.unique(np.concatenate(known))
            tasks += len(each)
            done += int((ledger.receipts(stage, place).find(each) >= 0).sum())
        stages.append(StageStatus(name, max(tasks, *(step.planned for step in steps)), done))
    holder = read(run)
    living = holder is not None and alive(holder)
    processes = _of_holder(read_journals(run), holder) if holder is not None and living else []
    recent = tuple(p for p in map(_process, processes) if p.seen_s < STALE_AFTER)
    complete = all(stage.done == stage.tasks for stage in stages)
    last = all(plan.steps and _last(plan) in plan.steps for plan in plans.values())
    if living:
        word = "running"
    elif holder is not None:
        word = "died"
    else:
        word = "done" if complete and last else "incomplete"
    text = f"process {holder['pid']} on {holder['host']}" if holder is not None else None
    return Status(word, text, tuple(stages), recent, _eta(run, stages) if living else None)


def _of_holder(journals: list[list[Line]], holder: dict[str, Any]) -> list[list[Line]]:
    """The journals of the process that holds the folder, and of its workers: those of an earlier run may be as fresh."""
    began = [
        lines[0]["t"]
        for lines in journals
        if (lines[0]["role"], lines[0]["host"], lines[0]["pid"]) == ("driver", holder["host"], holder["pid"])
    ]
    if not began:
        return []  # it has nothing to do, or not yet
    return [lines for lines in journals if lines[0]["t"] >= max(began) and lines[-1]["event"] != "close"]


def _last(plan: Plan) -> str:
    """The last step of a plan's chain."""
    return plan.order[-1] if plan.order else ""


def _process(lines: list[Line]) -> ProcessStatus:
    first, last = lines[0], lines[-1]
    begun: Line | None = None
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


def _eta(run: Folder, stages: list[StageStatus]) -> float | None:
    """Seconds until the present stage ends, at the pace it has had; None before its first task has ended."""
    for stage in stages:
        if stage.done < stage.tasks:
            begun = [
                line["t"]
                for lines in read_journals(run)
                for line in lines
                if line["event"] == "stage" and line["stage"] == stage.stage
            ]
            if begun and stage.done:
                return float((time.time() - max(begun)) / stage.done * (stage.tasks - stage.done))
            return None
    return None
