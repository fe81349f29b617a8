"""Costs of a run's steps, from their receipts, and the machines of a forecast.

The duration of a task is modelled by a line in its work, a + b work, times a factor drawn from the residuals of the
receipts. The line passes through the origin (a = 0) if the works differ too little to separate a from b.

The model uses only the wall time of tasks, which includes waiting for disks and for other tasks. It is best measured on
a run with as many workers on a node as in the forecast, and is unreliable from a machine with other load.

Machines are kinds of nodes, storage bandwidth, and failures. Conventions: s, GB = 1e9 bytes, MB = 1e6 bytes; prices are
of a node hour, in any one currency.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from swsdist.accounts.records import records
from swsdist.core.arrays import Floats
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.chain import Growth, Step
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.receipts import ReceiptList

_STRICT = ConfigDict(extra="forbid")
_Count = Annotated[int, Field(strict=True, ge=1)]
_Above0 = Annotated[float, Field(strict=True, gt=0)]
_From0 = Annotated[float, Field(strict=True, ge=0)]


@checked(frozen=True, config=_STRICT)
class Kind:
    """Nodes of one kind.

    Attributes:
        nodes: number of nodes.
        cpus: CPUs of a node for workers.
        memory_gb: memory of a node for workers, GB.
        speed: speed of a CPU relative to the machine of the receipts.
        price: price of a node hour.
        mtbf_hours: mean time between failures of a node, exponentially distributed.
        name: name for people.
        gpus: GPUs of a node.
        gpu_speed: speed of a worker with a GPU relative to a worker of the receipts, in steps that may use one.
    """

    nodes: _Count = 1
    cpus: _Count = 1
    memory_gb: _Above0 = inf
    speed: _Above0 = 1.0
    price: _From0 = 0.0
    mtbf_hours: _Above0 = inf
    name: str = "node"
    gpus: Annotated[int, Field(strict=True, ge=0)] = 0
    gpu_speed: _Above0 = 1.0

    @property
    def resources(self) -> dict[str, float]:
        """Resources of a node, by Ray's names."""
        return {"CPU": self.cpus, "memory": self.memory_gb * 1e9, "GPU": self.gpus}


@checked(frozen=True, config=_STRICT)
class Cluster:
    """All nodes, and their shared storage.

    Attributes:
        kinds: kinds of nodes.
        start_s: seconds from the request of a worker until it is ready.
        repair_s: seconds from a node's failure until it is replaced, before its workers start.
        node_mb_s: MB/s between a node and the storage; infinite: reading and writing take the receipts' time.
        storage_mb_s: MB/s of the storage, over all nodes.
        workers: most workers over all nodes; None: as many as fit.
    """

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = (Kind(),)
    start_s: _From0 = 10.0
    repair_s: _From0 = 300.0
    node_mb_s: _Above0 = inf
    storage_mb_s: _Above0 = inf
    workers: _Count | None = None

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return sum(kind.nodes for kind in self.kinds)

    @property
    def price(self) -> float:
        """Price of an hour of all nodes."""
        return sum(kind.nodes * kind.price for kind in self.kinds)


def cluster_of(values: Mapping[str, Any], where: str) -> Cluster:
    """A cluster from the values of a file: the fields of `Cluster`, and of `Kind` for each of `kinds`.

    Raises:
        UserError: an unknown key, or an invalid value.
    """
    try:
        return TypeAdapter(Cluster).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "unexpected_keyword_argument":
            raise families.UNKNOWN_KEY.of(UserError)(
                "{key} is not a key of a cluster", "see swsdist help benchmark-a-cluster", where=where, key=key
            ) from None
        raise families.INVALID_VALUE.of(UserError)(
            "{key} is not valid: {detail}",
            "see swsdist help benchmark-a-cluster",
            where=where,
            key=key,
            detail=first["msg"],
        ) from None


@dataclass(frozen=True)
class Job:
    """A simulated task.

    Attributes:
        fingerprint: name of the task.
        work: size; the largest goes first.
        seconds: duration on a worker of speed 1.
        bytes: bytes read and written.
    """

    fingerprint: str
    work: float
    seconds: float
    bytes: int = 0


@dataclass(frozen=True)
class Load:
    """The tasks of a simulated step, or of one round of it: rounds are loads of one name, one after the other.

    Attributes:
        name: name of the step.
        jobs: its tasks.
        in_driver: whether they run in the driver, one after the other.
        driver_s: seconds of the driver while workers wait: planning, committing, packing.
        gap_s: seconds between two tasks of a worker.
        needs: alternative resources of a worker, the best first.
    """

    name: str
    jobs: list[Job] = field(default_factory=list)
    in_driver: bool = False
    driver_s: float = 0.0
    gap_s: float = 0.0
    needs: tuple[Needs, ...] = LEAST

    @property
    def seconds(self) -> float:
        """Seconds of all tasks on one worker of speed 1."""
        return sum(job.seconds for job in self.jobs)


#: Least number of receipts, and least ratio of largest to smallest work, for the fit of a line.
_LEAST_RECEIPTS, _LEAST_RATIO = 8, 2.0


#: Columns of RECEIPTS that costs are computed from.
_COLUMNS = (
    *("round", "work", "wall", "cpu_user", "cpu_system"),
    *("bytes_read", "bytes_written", "host", "pid", "started", "finished"),
)


class _Command(NamedTuple):
    """A call that did tasks: when it began, s since 1970; seconds of the runs before it, and of starting workers."""

    began: float
    before: float
    start_s: float


@dataclass(frozen=True)
class StepCost:
    """The cost of one step of a run, or of one round of a step.

    Attributes:
        name: name of the step.
        unit: unit of its tasks' work.
        work: float64 (n,), work of each task.
        fixed, per_work: s per task, and s per unit of work.
        factors: float64 (n,), measured over modelled duration of each task; about 1.
        walls: float64 (n,), wall seconds of each task.
        bytes_per_work: bytes read and written per unit of work.
        driver_s: seconds between the last task of the previous step or round and the first of this one.
        gap_s: seconds between two tasks of a worker.
        cpu_s: CPU seconds of all tasks.
        in_driver, grows_with_hours, grows_with_queries, in_buckets, most_work: attributes of the stage.
        span_s: seconds from the start of the first task to the end of the last, of each call that did some.
        processes: number of processes that ran tasks at a time.
        needs: alternative resources of a worker, the best first.
        most_hours: hours of documents beyond which it does not grow.
        round: which round, from 0.
    """

    name: str
    unit: str
    work: Floats
    fixed: float
    per_work: float
    factors: Floats
    walls: Floats
    bytes_per_work: float
    driver_s: float
    gap_s: float
    cpu_s: float
    in_driver: bool
    grows_with_hours: Growth
    grows_with_queries: Growth
    span_s: float = 0.0
    processes: int = 1
    needs: tuple[Needs, ...] = LEAST
    in_buckets: bool = False
    most_work: float = 0.0
    most_hours: float = inf
    round: int = 0

    def job(self, name: str, work: float, draw: random.Random) -> Job:
        """A simulated task with this work."""
        seconds = (self.fixed + self.per_work * work) * float(self.factors[draw.randrange(len(self.factors))])
        return Job(name, work, seconds, round(self.bytes_per_work * work))


def costs_of(chain_run: ChainRun) -> list[StepCost]:
    """Costs of all finished steps of a run, in order, a step's rounds one after the other; first its start, last its report.

    Shards and models of the store count with the receipts of the tasks that made them, of whatever plan.

    Raises:
        StoreError: the store lacks the state that the run searched.
    """
    chain_run.chain.inputs.recall(chain_run.plan.state)
    commands = _commands(chain_run)
    begins = np.array([command.began for command in commands])
    costs: list[StepCost] = []
    first, last, previous = inf, -inf, (0, -inf)
    for step in chain_run.chain.steps:
        inputs = chain_run.inputs(step)
        made = ReceiptList(step.stage.makers(inputs))
        if not made:
            continue
        of_step = pa.table({name: made.column(name) for name in _COLUMNS})
        for number in sorted(set(of_step["round"].to_pylist())):
            receipts = of_step.filter(pc.equal(of_step["round"], number))
            started, finished = (receipts[name].to_numpy() for name in ("started", "finished"))
            calls = np.searchsorted(begins, started, "right")
            between = float(started.min()) - previous[1] if calls[started.argmin()] == previous[0] else 0.0
            cost = replace(
                cost_of(step, receipts, max(0.0, between)),
                round=number,
                needs=step.stage.needs(chain_run.config),
                most_hours=step.stage.most_hours(inputs),
                span_s=sum(float(finished[calls == k].max() - started[calls == k].min()) for k in np.unique(calls)),
                processes=max(_processes(receipts.filter(pa.array(calls == k))) for k in np.unique(calls)),
            )
            if step.stage.rounds and cost.work.max() <= 1:
                cost = replace(cost, grows_with_hours="same", grows_with_queries="same", in_buckets=False)
            costs.append(cost)
            previous = calls[finished.argmax()], float(finished.max())
            if (now := calls == len(begins)).any():
                first, last = min(first, float(started[now].min())), max(last, float(finished[now].max()))
    return [*_ends(chain_run, commands[-1], first, last, costs)] if commands and first < inf else costs


def _processes(receipts: pa.Table) -> int:
    return int(receipts.group_by(["host", "pid"]).aggregate([]).num_rows)


def _ends(
    chain_run: ChainRun, command: _Command, first: float, last: float, costs: list[StepCost]
) -> Iterator[StepCost]:
    """The costs between a run's start, without that of workers, and its report."""
    yield _alone("start", first - command.began - command.before - command.start_s)
    yield from costs
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        wall = json.loads(chain_run.run.read_bytes("report.json"))["resources"]["wall_s"]
        yield _alone("report", command.began + wall - last)


def _alone(name: str, seconds: float) -> StepCost:
    """What the driver does once, whatever the size."""
    one, wall = np.ones(1), np.array([max(0.0, seconds)])
    return StepCost(
        name, "", one, 0.0, float(wall[0]), one, wall, 0.0, 0.0, 0.0, 0.0, True, "same", "same", float(wall[0])
    )


def _commands(chain_run: ChainRun) -> list[_Command]:
    """The calls that did tasks, from the journals of drivers."""
    found = []
    for table in records(chain_run.run):
        if table["role"][0].as_py() != "driver":
            break
        said = table.select(["event", "more"]).filter(pc.is_in(table["event"], pa.array(["run", "executor"])))
        lines = {line["event"]: json.loads(line["more"]) for line in said.to_pylist()}
        if "run" in lines:
            found.append(_Command(**lines["run"], start_s=lines.get("executor", {}).get("start") or 0.0))
    return sorted(found)


def left_out(chain_run: ChainRun, costs: Sequence[StepCost]) -> list[str]:
    """Parts of a run that are not in its costs: runs before it, and steps whose receipts are incomplete."""
    before = chain_run.chain.prerequisites()
    names = {cost.name for cost in costs}
    steps = [step for step in chain_run.chain.steps if step.name not in names]
    lacking = [
        step.name
        for step in steps
        if (planned := chain_run.plan.steps.get(step.name)) is None
        or planned.planned
        or "documents" in step.stage.tables
    ]
    return [*(f"run {name}" for name in before), *lacking, *({"start", "report"} - names)]


def cost_of(step: Step, receipts: pa.Table, driver_s: float = 0.0) -> StepCost:
    """Cost of a step from its receipts, a non-empty table RECEIPTS."""
    work, wall = receipts["work"].to_numpy(), receipts["wall"].to_numpy()
    fixed, per_work = line_of(work, wall)
    moved = pc.sum(receipts["bytes_read"]).as_py() + pc.sum(receipts["bytes_written"]).as_py()
    return StepCost(
        name=step.name,
        unit=step.stage.unit,
        work=work,
        fixed=fixed,
        per_work=per_work,
        factors=_factors(work, wall, fixed, per_work),
        walls=wall,
        bytes_per_work=moved / max(1.0, float(work.sum())),
        driver_s=driver_s,
        gap_s=_gap(receipts),
        cpu_s=float(np.sum(receipts["cpu_user"].to_numpy() + receipts["cpu_system"].to_numpy())),
        in_driver=step.stage.in_driver,
        grows_with_hours=step.stage.grows_with_hours,
        grows_with_queries=step.stage.grows_with_queries,
        in_buckets=step.stage.in_buckets,
        most_work=step.stage.most_work,
    )


def pooled_costs(costs: Sequence[StepCost], *others: Sequence[StepCost]) -> list[StepCost]:
    """Costs of a run's steps, with lines fitted to the receipts of further runs of the same config with more or less data.

    A single run hardly separates fixed from proportional time, because its tasks have similar sizes.
    """
    pooled = []
    for cost in costs:
        same = [
            cost,
            *(item for steps in others for item in steps if (item.name, item.round) == (cost.name, cost.round)),
        ]
        work = np.concatenate([item.work for item in same])
        wall = np.concatenate([item.walls for item in same])
        fixed, per_work = line_of(work, wall, 2 if len(same) > 1 else _LEAST_RECEIPTS)
        pooled.append(replace(cost, fixed=fixed, per_work=per_work, factors=_factors(work, wall, fixed, per_work)))
    return pooled


def _factors(work: Floats, wall: Floats, fixed: float, per_work: float) -> Floats:
    modelled = fixed + per_work * work
    return np.divide(wall, modelled, out=np.ones_like(wall), where=modelled > 0)


def line_of(work: Floats, seconds: Floats, least: int = _LEAST_RECEIPTS) -> tuple[float, float]:
    """a and b of a + b work, neither negative, by least squares; a is 0 where works differ too little.

    Args:
        work, seconds: float64 (n,), of each task.
        least: least number of tasks for a fit.
    """
    total = float(work.sum())
    if total <= 0:
        return float(seconds.mean()), 0.0
    through = float(seconds.sum()) / total
    if len(work) < least or work.max() < _LEAST_RATIO * max(work.min(), 1e-9):
        return 0.0, through
    slope, level = np.polyfit(work, seconds, 1)
    if level < 0:
        return 0.0, through
    if slope < 0:
        return float(seconds.mean()), 0.0
    return float(level), float(slope)


def _gap(receipts: pa.Table) -> float:
    """Median of the seconds between two tasks of a process."""
    order = [(name, "ascending") for name in ("host", "pid", "started", "finished")]
    spans = receipts.select([name for name, _ in order]).sort_by(order)
    host, pid = spans["host"].to_numpy(), spans["pid"].to_numpy()
    same = (host[1:] == host[:-1]) & (pid[1:] == pid[:-1])
    gaps = np.maximum(0.0, spans["started"].to_numpy()[1:] - spans["finished"].to_numpy()[:-1])[same]
    return float(np.median(gaps)) if len(gaps) else 0.0
