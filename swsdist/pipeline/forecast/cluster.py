"""The machines that a forecast is for: kinds of nodes, what lies between them, and how they fail.

Conventions: s, GB = 1e9 bytes, MB = 1e6 bytes; prices are of a node hour, in any one currency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any

from swsdist.core.errors import UserError
from swsdist.core.needs import LEAST, Needs


@dataclass(frozen=True)
class Kind:
    """Nodes of one kind.

    Attributes:
        nodes: how many.
        cpus: of a node, for workers.
        memory_gb: of a node, for workers.
        speed: of a CPU, 1.0 being that of the machine that the receipts are of.
        price: of a node hour.
        mtbf_hours: mean time between failures of a node, exponentially distributed.
        name: for people.
        gpus: of a node.
        gpu_speed: of a worker with a GPU, at steps that may use one; 1.0 being a worker that the receipts are of.
    """

    nodes: int = 1
    cpus: int = 1
    memory_gb: float = inf
    speed: float = 1.0
    price: float = 0.0
    mtbf_hours: float = inf
    name: str = "node"
    gpus: int = 0
    gpu_speed: float = 1.0

    @property
    def resources(self) -> dict[str, float]:
        """Of a node, as Ray names them."""
        return {"CPU": self.cpus, "memory": self.memory_gb * 1e9, "GPU": self.gpus}


@dataclass(frozen=True)
class Cluster:
    """All nodes, and what they share.

    Attributes:
        kinds: of nodes.
        start_s: from a worker's being asked for to its being ready.
        repair_s: from a node's failure until another takes its place, before its workers start.
        node_mb_s: MB/s between a node and the storage; infinite: reading and writing take what they took in the receipts.
        storage_mb_s: MB/s of the storage, for all nodes together.
        workers: at most, over all nodes; None: as many as fit.
    """

    kinds: tuple[Kind, ...] = (Kind(),)
    start_s: float = 10.0
    repair_s: float = 300.0
    node_mb_s: float = inf
    storage_mb_s: float = inf
    workers: int | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if (
                min(kind.nodes, kind.cpus) < 1
                or min(kind.memory_gb, kind.speed, kind.mtbf_hours, kind.gpu_speed) <= 0
                or min(kind.price, kind.gpus) < 0
            ):
                raise UserError(
                    f"there is no such node: {kind}",
                    where="cluster",
                    remedy="give at least one node and CPU, memory, speeds and mtbf_hours above 0, no negative price",
                )
        if not self.kinds or min(self.node_mb_s, self.storage_mb_s) <= 0 or min(self.start_s, self.repair_s) < 0:
            raise UserError(
                "a cluster has nodes, bandwidths above 0, and no negative times",
                where="cluster",
                remedy="see docs/how-to/benchmark-a-cluster.md",
            )

    @property
    def nodes(self) -> int:
        """Of all kinds."""
        return sum(kind.nodes for kind in self.kinds)

    @property
    def price(self) -> float:
        """Of an hour of all nodes."""
        return sum(kind.nodes * kind.price for kind in self.kinds)


#: Of a worker; a GPU only if it needs one.
_ONE_GPU = Needs(gpus=1.0)


@dataclass(frozen=True)
class Rules:
    """How work is handed out, and what each worker is given at least: what matters for time in the config's `executor`."""

    in_flight: int = 2
    attempts: int = 3
    actor_restarts: int = 20
    worker: Needs = _ONE_GPU


def cluster_of(values: Mapping[str, Any], where: str) -> Cluster:
    """A cluster as a file has it: the fields of `Cluster`, and of `Kind` for each of `kinds`.

    Raises:
        UserError: an unknown key, or a value that cannot be.
    """
    given = {**values}
    kinds = given.pop("kinds", None)
    if kinds is not None and (not isinstance(kinds, list) or not all(isinstance(one, Mapping) for one in kinds)):
        raise UserError("kinds is no list of nodes", where=where, remedy="write kinds: [{nodes: 4, cpus: 16}]")
    _demand_known(Cluster, given, where)
    for one in kinds or ():
        _demand_known(Kind, one, where)
    return Cluster(**given) if kinds is None else Cluster(tuple(Kind(**one) for one in kinds), **given)


def _demand_known(kind: type, values: Mapping[str, Any], where: str) -> None:
    known: dict[str, Any] = {one.name: one.type for one in fields(kind)}  # annotations are text here
    for key, value in values.items():
        if key not in known or key == "kinds":
            names = ", ".join(name for name in known if name != "kinds")
            raise UserError(f"{key}: no such key", where=where, remedy=f"keys are: {names}")
        whole = known[key].startswith("int")
        right = isinstance(value, str) if known[key] == "str" else isinstance(value, int if whole else int | float)
        if not right or isinstance(value, bool):
            raise UserError(f"{key} is {value!r}", where=where, remedy=f"give it a value of type {known[key]}")


@dataclass(frozen=True)
class Job:
    """A task, as far as its time goes.

    Attributes:
        fingerprint: names it.
        work: how much it is; the largest goes first.
        seconds: that a worker of speed 1 takes for it.
        bytes: read and written.
    """

    fingerprint: str
    work: float
    seconds: float
    bytes: int = 0


@dataclass(frozen=True)
class Load:
    """What a step has to do.

    Attributes:
        name: of the step.
        jobs: its tasks.
        in_driver: they run in the driver, one after the other.
        driver_s: that the driver takes around them, while workers wait: planning, committing, packing.
        gap_s: between two tasks of a worker.
        needs: of its workers: alternatives, the best first.
    """

    name: str
    jobs: list[Job] = field(default_factory=list)
    in_driver: bool = False
    driver_s: float = 0.0
    gap_s: float = 0.0
    needs: tuple[Needs, ...] = LEAST

    @property
    def seconds(self) -> float:
        """Of all tasks together, on one worker of speed 1."""
        return sum(job.seconds for job in self.jobs)
