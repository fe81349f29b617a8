"""Tasks, their results and their receipts.

A task's name is the fingerprint of everything that its outputs depend on. Its receipt is written last, with the size and
SHA-256 of each output. A task whose receipt and outputs exist is skipped; resuming, caching and incremental indexing all
follow from this rule.

A task holds the part of the config that it needs, so it means the same in every plan. Each stage defines the type of its
payload, usually a NamedTuple; payloads are pickled on their way to a worker, and never stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, Protocol

from typing_extensions import TypeVar

from swsdist.core.errors import StorageError
from swsdist.core.fingerprint import ALL_SLOTS, SLOTS
from swsdist.io.filesystem import demand_inside

#: A value of JSON, by key.
Values = dict[str, Any]

T = TypeVar("T", bound="TaskResult")
#: The type of a task's payload.
P = TypeVar("P", default=Any)


class TaskResult(Protocol):
    """The values that a task returns to the driver: a NamedTuple of JSON values; each stage defines its type."""

    def _asdict(self) -> dict[str, Any]: ...


def result_as(kind: type[T], values: Values) -> T:
    """The result of a task as the stage's type; fields that only an earlier version had are dropped."""
    return kind(**{name: values[name] for name in kind.__annotations__ if name in values})


class Part(NamedTuple):
    """An output file of a task.

    Attributes:
        table: the stage's name of the table.
        name: file name in the folder.
        size: bytes.
        sha256: of the file's bytes.
        rows: rows of the table; 0 for other files.
        slots: lowest and highest slot (`swsdist.core.fingerprint`) of the rows' partition key.
    """

    table: str
    name: str
    size: int
    sha256: str
    rows: int = 0
    slots: tuple[int, int] = (0, SLOTS - 1)


@dataclass(frozen=True)
class Task(Generic[P]):
    """A unit of work, small enough to send to a worker.

    Attributes:
        stage: name of its stage.
        fingerprint: name of the task and of its outputs.
        label: description for people.
        work: size, in the stage's unit.
        payload: input of `Stage.run`.
        place: root of the folder of its receipt and outputs; empty: the run folder.
        common: further input that many tasks share: one object in the driver.
        slots: partition slots of its output rows.
        round: round of its step, from 0.
    """

    stage: str
    fingerprint: str
    label: str
    work: float
    payload: P
    place: str = ""
    common: Any = None
    slots: range = ALL_SLOTS
    round: int = 0


@dataclass(frozen=True)
class TaskOutput:
    """The return value of `Stage.run`.

    Attributes:
        outputs: published files.
        result: values for later stages and the report; None: none, as of a round before the last.
        rejected: rows of REJECTED.
        cells: searched cells: query frames x document frames.
    """

    outputs: tuple[Part, ...]
    result: TaskResult | None = None
    rejected: list[Values] = field(default_factory=list)
    cells: int = 0


@dataclass(frozen=True)
class Cost:
    """The cost of a task: times in s, sizes in bytes.

    CPU time is that of all threads and child processes; `gpu_s` is the time for which a GPU was reserved.
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
    """The record of a finished task: its outputs, result and cost."""

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
    round: int = 0

    def result_as(self, kind: type[T]) -> T:
        """The result as the stage's type."""
        return result_as(kind, self.result)

    def parts(self, table: str) -> list[Part]:
        """Output files of a table."""
        return [part for part in self.outputs if part.table == table]

    def to_json(self) -> str:
        """One line of JSON."""
        values = {_STORED.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps({**values, "outputs": [part._asdict() for part in self.outputs]}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "a receipt") -> Receipt:
        """Parse the output of `to_json`.

        Args:
            text: one line of JSON.
            where: the file, for messages.

        Raises:
            ValueError, TypeError, KeyError: the text is truncated, or of another version.
            StoreError: an output lies outside the receipt's folder.
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
    """A task that failed for good, after all attempts.

    Attributes:
        reason: one word: `data`, `bug`, `killed`, `system`, or the code of a StorageError (`disk-full`, ...).
        message: the error and its place.
        traceback: Python's traceback; empty: none.
        storage: the error of a file system or server, if that was the cause.
        file: file of the failure in the run folder; empty: not written.
    """

    task: Task
    reason: str
    message: str
    attempts: int
    traceback: str = ""
    storage: StorageError | None = None
    file: str = ""

    def row(self) -> Values:
        """A row of REJECTED."""
        return {
            "kind": "task",
            "id": f"{self.task.stage}-{self.task.fingerprint}",
            "part": None,
            "path": None,
            "reason": self.reason,
            "message": f"{self.task.label}: {self.message}",
            "remedy": f"see {self.file or 'accounts/'} in the run folder; run again to try it once more",
        }
