"""A task says what is to be done, apart from who does it; its receipt says that it is done.

A task is named by the fingerprint of all that its outputs depend on. Its receipt is written last and holds the size and SHA-256
of each output. A task whose receipt and outputs exist is skipped: that one rule is resume, caching and incremental indexing.

A task holds the part of the config that it needs, so it means the same in whatever plan it stands. Its payload has a type
of its own, a NamedTuple as a rule; it is pickled on its way to a worker, and nobody else writes it down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, Protocol

from typing_extensions import TypeVar

from swsdist.core.errors import StorageError
from swsdist.core.partition import ALL_SLOTS, SLOTS
from swsdist.core.path_safety import demand_inside

#: A value of JSON, by key.
Values = dict[str, Any]

T = TypeVar("T", bound="TaskResult")
#: The type of a task's payload.
P = TypeVar("P", default=Any)


class TaskResult(Protocol):
    """A stage's tasks tell the driver a NamedTuple of JSON values; each stage has a type of its own."""

    def _asdict(self) -> dict[str, Any]: ...


def result_as(kind: type[T], values: Values) -> T:
    """What a task told, as a value of its stage's type; what a task of an earlier version told besides is left out."""
    return kind(**{name: values[name] for name in kind.__annotations__ if name in values})


class Part(NamedTuple):
    """A file of a table, as a task made it.

    Attributes:
        table: of its stage.
        name: of the file in its folder.
        size, sha256: of the file.
        rows: of the table; 0 for what is no table.
        slots: the least and the greatest slot (`swsdist.core.partition`) of the rows' partition key.
    """

    table: str
    name: str
    size: int
    sha256: str
    rows: int = 0
    slots: tuple[int, int] = (0, SLOTS - 1)


@dataclass(frozen=True)
class Task(Generic[P]):
    """A piece of work, small enough to send.

    Attributes:
        stage: name of its stage.
        fingerprint: names it and its outputs.
        label: for people.
        work: how much it is, in the stage's unit.
        payload: all that `run` needs to know.
        place: root of the folder where its receipt and outputs lie; the run folder if empty.
        common: what `run` needs to know besides and many tasks share: one object in the driver.
        slots: of the rows that it makes.
    """

    stage: str
    fingerprint: str
    label: str
    work: float
    payload: P
    place: str = ""
    common: Any = None
    slots: range = ALL_SLOTS


@dataclass(frozen=True)
class TaskOutput:
    """The result of a task.

    Attributes:
        outputs: files it published.
        told: what later stages and the report need to know of it.
        rejected: rows of REJECTED.
        cells: query frames x document frames that were searched.
    """

    outputs: tuple[Part, ...]
    result: TaskResult | None = None
    rejected: list[Values] = field(default_factory=list)
    cells: int = 0


@dataclass(frozen=True)
class Cost:
    """The cost of a task.

    CPU is user and system time of all threads and children, `gpu_s` the time for which a GPU was held, in s; memory in bytes.
    """

    cpu_user: float
    cpu_system: float
    wall: float
    peak_bytes: int
    bytes_read: int = 0
    bytes_written: int = 0
    cells: int = 0
    gpu_s: float = 0.0

    @property
    def cpu(self) -> float:
        """User and system CPU seconds."""
        return self.cpu_user + self.cpu_system


#: Keys of a receipt on disk, where they differ from the attributes.
_STORED = {"result": "told"}


@dataclass(frozen=True)
class Receipt:
    """A receipt says that a task is done, what it made, and what it cost."""

    stage: str
    version: int
    fingerprint: str
    label: str
    work: float
    outputs: tuple[Part, ...]
    result: Values
    rejected: list[Values]
    cost: Cost
    host: str
    pid: int
    started: float
    finished: float

    def result_as(self, kind: type[T]) -> T:
        """What the task told, as a value of its stage's type."""
        return result_as(kind, self.result)

    def parts(self, table: str) -> list[Part]:
        """The outputs that are files of a table."""
        return [part for part in self.outputs if part.table == table]

    def to_json(self) -> str:
        """In one line."""
        values = {_STORED.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps({**values, "outputs": [part._asdict() for part in self.outputs]}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "a receipt") -> Receipt:
        """From what `to_json` gave.

        Args:
            text: one line.
            where: the file that it stands in.

        Raises:
            ValueError, TypeError, KeyError: it is cut off, or of another version.
            StoreError: an output lies outside of the folder that the receipt is of.
        """
        values = json.loads(text)
        values["outputs"] = tuple(_part(output, where) for output in values["outputs"])
        values["cost"] = Cost(**values["cost"])
        values["result"] = values.pop("told")
        return cls(**values)


def _part(values: Mapping[str, Any], where: str) -> Part:
    demand_inside(values["name"], where, "outputs.name")
    low, high = values["slots"]
    return Part(**{**values, "slots": (low, high)})


@dataclass(frozen=True)
class Failure:
    """A task that could not be done, after all attempts.

    Attributes:
        reason: one word: `data`, `bug`, `killed`, `system`, or the cause of a StorageError (`full`, `unreachable`, ...).
        message: what was wrong, and where.
        traceback: as Python prints it; empty where there is none.
        storage: what a file system or server did, if that was it.
        file: in the run folder, where it is kept; empty if it is not.
    """

    task: Task
    reason: str
    message: str
    attempts: int
    traceback: str = ""
    storage: StorageError | None = None
    file: str = ""

    def row(self) -> Values:
        """As a row of REJECTED."""
        return {
            "kind": "task",
            "id": f"{self.task.stage}-{self.task.fingerprint}",
            "part": None,
            "path": None,
            "reason": self.reason,
            "message": f"{self.task.label}: {self.message}",
            "remedy": f"see {self.file or 'accounts/'} in the run folder; run again to try it once more",
        }
