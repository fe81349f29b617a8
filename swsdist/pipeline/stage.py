"""A stage cuts one arrow in the way of the data into tasks, and says what a task does.

::

    plan(inputs)         -> iterator of Task   pure: the same inputs give the same tasks in the same order
    run(task, context)   -> Done               reads its inputs, publishes its outputs
    finish(inputs)       -> None               after the last task, in the driver: commit what the tasks made

A stage knows no other stage. It reads tables by words of its own; the chain says which step of it makes each of them
(`swsdist.pipeline.chain`). A stage in **rounds** plans again after each round, and sees what its earlier rounds made; it ends
with the first round that has no task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.needs import LEAST, Needs
from swsdist.io.filesystem import Folder, locate
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import P, Part, Task, TaskOutput
from swsdist.store import parquet

T = TypeVar("T")

#: What more of something makes of a stage's tasks: more of them, larger ones, larger as far as more detections are kept
#: (`reduce.nbest`), or neither.
Growth = Literal["more", "larger", "kept", "same"]


@dataclass(frozen=True)
class Table:
    """A table that a stage makes.

    Attributes:
        schema: of its rows; None for files of another kind, whose digest is of their bytes.
        key: column that it is partitioned by; None: it is not.
        order: columns that put the rows of one key into a canonical order; none where each key's rows lie in one file, in
            total order.
        digested: whether it is a part of the run's digest.
    """

    schema: pa.Schema | None
    key: str | None = "query_id"
    order: tuple[str, ...] = ()
    digested: bool = True


@dataclass
class Context:
    """A task may use its context: the folders, and a memory of its process.

    Attributes:
        run: the run folder.
        stages: of the chains whose tasks come, by name.
        memory: what is `kept` for the next tasks here.
        granted: CPUs, memory and GPUs that this worker has.
        listener: is told how much of the present task is done; set by who runs it.
        cache: folder on the node's own disk for files of a remote store, and bytes that it may hold.
    """

    run: Folder
    stages: Mapping[str, Stage]
    memory: dict[str, tuple[object, Any]] = field(default_factory=dict)
    granted: Needs = LEAST[0]
    listener: Callable[[float], None] | None = None
    cache: tuple[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memory": {}, "listener": None}

    def cached(self, name: str, key: object, make: Callable[[], T]) -> T:
        """What was made of a key, kept for the next tasks here; under a name, of one key at a time."""
        if name not in self.memory or self.memory[name][0] != key:
            self.memory.pop(name, None)
            self.memory[name] = key, make()
        found: T = self.memory[name][1]
        return found

    def report(self, part: float) -> None:
        """Tell how much of the present task is done, 0 to 1; it moves the progress bar, and may be told often."""
        if self.listener is not None:
            self.listener(min(1.0, part))

    @property
    def storage(self) -> Mapping[str, Any]:
        """Options for S3."""
        return self.run.storage

    def folder(self, task: Task) -> Folder:
        """Where a task's receipt and outputs lie."""
        return Folder(task.place, self.storage) if task.place else self.run

    def place(self, name: str) -> tuple[Folder, str]:
        """Folder and name of a file as `Inputs.files` names it: in this run, or a whole path."""
        return locate(name, self.storage) if "://" in name or name.startswith("/") else (self.run, name)

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A whole table.

        Raises:
            StoreError: it is missing or damaged.
        """
        return parquet.read(*self.place(name), columns)

    def read_bytes(self, name: str) -> bytes:
        """A whole file."""
        folder, rest = self.place(name)
        return folder.read_bytes(rest)

    def publish(
        self,
        task: Task,
        table: str,
        rows: Iterable[pa.Table],
        schema: pa.Schema,
        suffix: str = ".parquet",
    ) -> Part:
        """Write a table's file of a task: a row group a table of `rows`. Several files of one table have a suffix each."""
        count = 0

        def counted() -> Iterator[pa.Table]:
            nonlocal count
            for some in rows:
                count += some.num_rows
                yield some

        name = f"tables/{table}/{task.fingerprint}{suffix}"
        output = parquet.publish(self.folder(task), name, counted(), schema)
        return Part(table, *output, count, (task.slots[0], task.slots[-1]))

    def write(self, task: Task, table: str, data: bytes, suffix: str = ".json", place: str = "tables/") -> Part:
        """Write a small file of a task."""
        name = f"{place}{table}/{task.fingerprint}{suffix}"
        return Part(table, *parquet.publish_bytes(self.folder(task), name, data))


class Stage(ABC, Generic[P]):
    """One arrow in the way of the data. Its instances have no state: all that a task needs is in the task.

    P is the type of its tasks' payload.

    Attributes:
        name: in fingerprints, files and receipts.
        version: raised whenever the same inputs give other bytes.
        unit: of a task's work: `s` of audio, `cells`, or rows of some kind.
        phase: what its cost counts as, for the chain's report; empty: it counts as nothing.
        takes: the tables that it reads: its word for each, and the name of the table as the stage has it that makes it.
        may_take: the same of tables that it can do without.
        tables: what it makes, by name.
        in_driver: its tasks are few and small, and run in the driver.
        rounds: it plans again after each round of tasks, until none is left.
        replaces: the names of its outputs are fixed, so one config's take the place of another's.
        any_device: its output has the same bytes on every alternative of `needs`, so workers of several kinds may share its
            tasks; otherwise all workers get the first alternative that fits any node.
        all_or_nothing: if one of its tasks fails, the run stops before the next step, unless `StepSelection.keep_going`.
        with_hours, with_queries: what more hours of documents, or more query examples, make of its tasks; for forecasts only.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    unit: ClassVar[str]
    phase: ClassVar[str] = ""
    takes: ClassVar[Mapping[str, str]] = {}
    may_take: ClassVar[Mapping[str, str]] = {}
    tables: ClassVar[Mapping[str, Table]] = {}
    in_driver: ClassVar[bool] = False
    rounds: ClassVar[bool] = False
    replaces: ClassVar[bool] = False
    any_device: ClassVar[bool] = False
    all_or_nothing: ClassVar[bool] = False
    with_hours: ClassVar[Growth] = "larger"
    with_queries: ClassVar[Growth] = "larger"

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """What a worker must have: alternatives, the best first."""
        return (Needs(),)

    def place(self, inputs: Inputs) -> str:
        """Root of the folder that its receipts and outputs lie in; the run folder if empty."""
        return ""

    @abstractmethod
    def plan(self, inputs: Inputs) -> Iterator[Task[P]]:
        """Its tasks (of the round `inputs.round`), given that all that it reads has come to its end."""

    def prepare(self, inputs: Inputs) -> None:
        """Some of its tasks are about to be done: write what these read besides tables that stages have made."""

    @abstractmethod
    def run(self, task: Task[P], context: Context) -> TaskOutput:
        """Do one."""

    def reads(self, task: Task[P]) -> Iterable[tuple[str, int]]:
        """Files of stores that a task reads from its node's cache, by SHA-256, and their bytes: it goes where they lie."""
        return ()

    def warm(self, task: Task[P], context: Context) -> None:
        """Load what the first task would have to load, so that no task is charged for it."""

    def finish(self, inputs: Inputs) -> None:
        """All its tasks have come to their end: commit what they made, after a call of `inputs.commits`."""

    def commit_partial(self, inputs: Inputs) -> None:
        """Some of its tasks are done, those of `inputs.outcome`, and the others may never be: commit what of it can be used."""

    def hours(self, inputs: Inputs, tasks: Iterable[Task[P]]) -> float:
        """Hours of audio that these tasks go through, an hour once; asked of stages whose work is s of audio."""
        return sum(task.work for task in tasks) / 3600

    def expected(self, inputs: Inputs) -> float | None:
        """How much work there may be, before it can be planned; None if that cannot be told."""
        return None

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """SHA-256 of what it made that is in none of its `tables`, by name."""
        return {}
