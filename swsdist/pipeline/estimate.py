"""`--dry-run`: what is left to do, how much work it is, and what it may cost, judged by earlier receipts."""

from __future__ import annotations

from dataclasses import dataclass

from swsdist.chains.search.index import document_seconds
from swsdist.chains.search.stages import STAGES
from swsdist.config import Config
from swsdist.features.registry import frame_shift
from swsdist.pipeline.driver import Choice, plan_stage
from swsdist.pipeline.state import Ended, State
from swsdist.pipeline.task import Receipt


@dataclass(frozen=True)
class Estimate:
    """One stage. `tasks` and `work` are None where they are known only once earlier stages have ended."""

    stage: str
    unit: str
    tasks: int | None
    done: int
    work: float | None
    cpu_s: float | None


def estimates(config: Config, choice: Choice) -> list[Estimate]:
    """Plan without doing: exact as far as what is planned stands, estimated beyond."""
    state = State(config)
    rates = _rates(state)
    result = []
    exact = True
    for stage in choice.stages():
        rate = rates.get(stage.name)
        if not exact:
            work = _cells(state) if stage.name == "search" else None
            cpu = None if rate is None else work * rate if work is not None else _before(state, stage.name)
            result.append(Estimate(stage.name, stage.unit, None, 0, work, cpu))
            continue
        planned = plan_stage(state, stage, choice.redoes(stage))
        todo = planned.todo
        work = sum(task.work for task in todo)
        cpu = 0.0 if not todo else None if rate is None else work * rate
        result.append(Estimate(stage.name, stage.unit, len(planned.tasks), len(planned.receipts), work, cpu))
        state.ended[stage.name] = Ended([planned.receipts[t.fingerprint] for t in planned.tasks if t not in todo])
        # Nothing is written, so what follows can be planned only where nothing is left to do.
        exact = not todo
    return result


def _receipts(state: State) -> list[Receipt]:
    found = []
    for folder in (state.run, state.store):
        for name in folder.listing("receipts"):
            found.append(Receipt.from_json(folder.read_bytes(name)))
    return found


def _rates(state: State) -> dict[str, float]:
    """CPU seconds a unit of work, of each stage that has receipts here."""
    cpu: dict[str, float] = {}
    work: dict[str, float] = {}
    for receipt in _receipts(state):
        cpu[receipt.stage] = cpu.get(receipt.stage, 0.0) + receipt.cost.cpu
        work[receipt.stage] = work.get(receipt.stage, 0.0) + receipt.work
    return {name: cpu[name] / work[name] for name in cpu if work[name] > 0 and name in STAGES}


def _before(state: State, stage: str) -> float:
    """What a stage cost the last time: the best guess where its work is not known yet."""
    mine = [receipt for receipt in _receipts(state) if receipt.stage == stage]
    last = max((receipt.finished for receipt in mine), default=0.0)
    return sum(receipt.cost.cpu for receipt in mine if receipt.finished > last - 3600)


def _cells(state: State) -> float:
    """Query frames times document frames, from durations."""
    documents = document_seconds(state.documents.to_pylist(), state.config.storage)
    queries = state.queries.to_pylist()
    whole = [row for row in queries if row["start"] is None or row["end"] is None]
    seconds = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
    seconds += sum(document_seconds([{**row, "duration": None} for row in whole], state.config.storage))
    shift = frame_shift(state.extractor)
    return float(seconds / shift * sum(documents) / shift)
