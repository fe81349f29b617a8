"""The machines that a forecast is for: kinds of nodes, what lies between them, and how they fail.

Conventions: s, GB = 1e9 bytes, MB = 1e6 bytes; prices are of a node hour, in any one currency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from swsdist.core.codes import pipeline as codes
from swsdist.core.needs import LEAST, Needs

_STRICT = ConfigDict(extra="forbid")
_Count = Annotated[int, Field(strict=True, ge=1)]
_Above0 = Annotated[float, Field(strict=True, gt=0)]
_From0 = Annotated[float, Field(strict=True, ge=0)]


@checked(frozen=True, config=_STRICT)
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
        """Of a node, as Ray names them."""
        return {"CPU": self.cpus, "memory": self.memory_gb * 1e9, "GPU": self.gpus}


@checked(frozen=True, config=_STRICT)
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

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = (Kind(),)
    start_s: _From0 = 10.0
    repair_s: _From0 = 300.0
    node_mb_s: _Above0 = inf
    storage_mb_s: _Above0 = inf
    workers: _Count | None = None

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
    try:
        return TypeAdapter(Cluster).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "unexpected_keyword_argument":
            raise codes.UNKNOWN_CLUSTER_KEY(where=where, key=key) from None
        raise codes.INVALID_CLUSTER_VALUE(where=where, key=key, detail=first["msg"]) from None


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
