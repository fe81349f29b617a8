"""The machines of a forecast: kinds of nodes, storage bandwidth, and failures.

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


#: Resources of a worker; the GPU counts only if the stage needs one.
_ONE_GPU = Needs(gpus=1.0)


@dataclass(frozen=True)
class Rules:
    """The settings of the config's `executor` that affect the duration; `worker` has the least resources of a worker."""

    in_flight: int = 2
    attempts: int = 3
    actor_restarts: int = 20
    worker: Needs = _ONE_GPU


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
            raise codes.UNKNOWN_CLUSTER_KEY(where=where, key=key) from None
        raise codes.INVALID_CLUSTER_VALUE(where=where, key=key, detail=first["msg"]) from None


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
