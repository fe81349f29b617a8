"""A stage, a task, a receipt: what is done, apart from who does it.

::

    plan(state)          -> iterator of Task   pure: the same inputs give the same tasks in the same order
    run(task, context)   -> Done               reads its inputs, publishes its outputs
    finish(state)        -> None               after the last task, in the driver: commit what the tasks made

A task is named by the fingerprint of all that its outputs depend on. Its receipt is written last and holds the size and SHA-256
of each output. A task whose receipt and outputs exist is skipped: that one rule is resume, caching and incremental indexing.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from swsdist.config import Config
from swsdist.io.filesystem import Folder
from swsdist.store.parquet import Output

if TYPE_CHECKING:
    from swsdist.pipeline.state import State

#: What a stage's cost counts as: ISF, SSF, or neither.
Phase = Literal["index", "search", "score"]


@dataclass(frozen=True)
class Task:
    """A piece of work, small enough to send.

    Attributes:
        stage: name of its stage.
        fingerprint: names it and its outputs.
        label: for people.
        work: how much it is, in the stage's unit.
        payload: what `run` needs to know, plain JSON values.
    """

    stage: str
    fingerprint: str
    label: str
    work: float
    payload: dict[str, Any]


@dataclass(frozen=True)
class Done:
    """What a task made.

    Attributes:
        outputs: files it published.
        summary: what later stages and the report need of it, plain JSON values.
        rejected: rows of REJECTED.
        bytes_read: of its inputs.
        cells: query frames x document frames that were searched.
    """

    outputs: tuple[Output, ...]
    summary: dict[str, Any] = field(default_factory=dict)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    bytes_read: int = 0
    cells: int = 0


@dataclass(frozen=True)
class Cost:
    """What a task cost. CPU is user and system time of all threads and children, in s; memory in bytes."""

    cpu_user: float
    cpu_system: float
    wall: float
    peak_bytes: int
    bytes_read: int = 0
    bytes_written: int = 0
    cells: int = 0

    @property
    def cpu(self) -> float:
        """User and system CPU seconds."""
        return self.cpu_user + self.cpu_system


@dataclass(frozen=True)
class Receipt:
    """Says that a task is done, what it made, and what it cost."""

    stage: str
    version: int
    fingerprint: str
    label: str
    work: float
    outputs: tuple[Output, ...]
    summary: dict[str, Any]
    rejected: list[dict[str, Any]]
    cost: Cost
    host: str
    pid: int
    started: float
    finished: float

    def to_json(self) -> bytes:
        """As a file."""
        values = asdict(self)
        values["outputs"] = [output._asdict() for output in self.outputs]
        return json.dumps(values, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Receipt:
        """From a file."""
        values = json.loads(data)
        values["outputs"] = tuple(Output(**output) for output in values["outputs"])
        values["cost"] = Cost(**values["cost"])
        return cls(**values)


@dataclass(frozen=True)
class Failure:
    """A task that could not be done, after all attempts."""

    task: Task
    reason: str
    message: str
    attempts: int

    def row(self) -> dict[str, Any]:
        """As a row of REJECTED."""
        return {
            "kind": "task",
            "id": f"{self.task.stage}-{self.task.fingerprint}",
            "part": None,
            "path": None,
            "reason": self.reason,
            "message": f"{self.task.label}: {self.message}",
            "remedy": "see events/ in the run folder; run again to try it once more",
        }


@dataclass
class Context:
    """What a task may use: the config, the folders, and a memory of its process."""

    config: Config
    run: Folder
    store: Folder
    memory: dict[Any, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memory": {}}


class Stage(ABC):
    """One arrow in the way of the data.

    Attributes:
        name: in commands, files and tables.
        version: raised whenever the same inputs give other bytes.
        phase: what its cost counts as.
        unit: of a task's work: `s` of audio, `cells`, or rows of some kind.
        in_driver: its tasks are few and small, and run in the driver.
        in_store: its receipts and outputs lie in the store, not in the run folder.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    phase: ClassVar[Phase]
    unit: ClassVar[str]
    in_driver: ClassVar[bool] = False
    in_store: ClassVar[bool] = False

    @abstractmethod
    def plan(self, state: State) -> Iterator[Task]:
        """Its tasks, given that all earlier stages have come to their end."""

    @abstractmethod
    def run(self, task: Task, context: Context) -> Done:
        """Do one."""

    def warm(self, context: Context) -> None:  # noqa: B027 (most stages have nothing to load)
        """Load what the first task would have to load, so that no task is charged for it."""

    def finish(self, state: State) -> None:  # noqa: B027 (most stages have nothing to commit)
        """All its tasks have come to their end: commit what they made."""


def receipt_name(stage: str, fingerprint: str) -> str:
    """Where a task's receipt lies in its folder."""
    return f"receipts/{stage}-{fingerprint}.json"
