"""Stages: a stage divides one step of the data flow into tasks, and defines what a task does.

::

    plan(inputs)         -> iterator of Task   deterministic: equal inputs give equal tasks in the same order
    run(task, context)   -> TaskOutput         reads the inputs, publishes the outputs
    finish(inputs)       -> None               in the driver, after the last task: commits the outputs

A stage knows no other stage. It has its own names for the tables it reads; the chain maps each to the step that makes it
(`swsdist.pipeline.chain`). A stage in **rounds** plans again after each round, with the results of earlier rounds, and ends
with the first round without tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Generic, Literal, TypeVar

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.needs import LEAST, Needs
from swsdist.io.filesystem import Folder, locate
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import P, Part, Receipt, Task, TaskOutput
from swsdist.store import parquet

T = TypeVar("T")

#: How a stage's tasks grow with more data: in number, in size, in size with the detections kept (`reduce.nbest`), or not.
Growth = Literal["more", "larger", "kept", "same"]


@dataclass(frozen=True)
class Table:
    """A table that a stage makes.

    Attributes:
        schema: of the rows; None: not a table, the digest is of the files' bytes.
        key: partition column; None: not partitioned.
        order: columns that sort the rows of a key into canonical order; empty: a key's rows lie in one file, sorted.
        digested: whether the run's digest covers the table.
    """

    schema: pa.Schema | None
    key: str | None = "query_id"
    order: tuple[str, ...] = ()
    digested: bool = True


@dataclass
class Context:
    """The environment of a task: folders, resources, and a cache in its process.

    Attributes:
        run: the run folder.
        stages: stages by name.
        memory: values of `cached`.
        granted: CPUs, memory and GPUs of this worker.
        listener: called with the finished part of the present task, 0 to 1.
        cache: folder on the node's disk that caches files of remote stores, and its capacity in bytes.
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
        """The value of `make` for a key, cached in this process: one key for each name."""
        if name not in self.memory or self.memory[name][0] != key:
            self.memory.pop(name, None)
            self.memory[name] = key, make()
        value: T = self.memory[name][1]
        return value

    def report(self, part: float) -> None:
        """Report the finished part of the present task, 0 to 1, for the progress bar; cheap enough to call often."""
        if self.listener is not None:
            self.listener(min(1.0, part))

    @property
    def storage(self) -> Mapping[str, Any]:
        """Options for S3."""
        return self.run.storage

    def folder(self, task: Task) -> Folder:
        """The folder of a task's receipt and outputs."""
        return Folder(task.place, self.storage) if task.place else self.run

    def place(self, name: str) -> tuple[Folder, str]:
        """Folder and name of an input file: a name in this run, or an absolute path."""
        return locate(name, self.storage) if "://" in name or name.startswith("/") else (self.run, name)

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table.

        Raises:
            StoreError: the file is missing or damaged.
        """
        return parquet.read(*self.place(name), columns)

    def batches(self, name: str) -> Iterator[pa.Table]:
        """Read a table, 2^16 rows at a time."""
        for batch in parquet.rows(*self.place(name), batch=1 << 16):
            yield pa.Table.from_batches([batch])

    def in_slots(self, name: str, slots: range, codes: Sequence[str] = ()) -> pa.Table:
        """The rows of a table whose column `slot` is in a range; columns `codes` as dictionaries."""
        return parquet.in_slots(*self.place(name), slots, codes=codes)

    def read_bytes(self, name: str) -> bytes:
        """Read a file."""
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
        """Write a table of a task, one row group for each item of `rows`; files of one table need different suffixes."""
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
    """One step of the data flow. Instances are stateless: a task holds everything that it needs.

    P is the type of the tasks' payload.

    Attributes:
        name: name in fingerprints, files and receipts.
        version: raised whenever equal inputs give other bytes.
        unit: unit of a task's work: `s` of audio, `cells`, or a kind of rows.
        phase: phase of its cost in the report; empty: none.
        takes: tables that it reads: its own name of each -> the name in the stage that makes it.
        may_take: optional tables, likewise.
        tables: tables that it makes, by name.
        in_driver: whether its tasks, few and small, run in the driver.
        rounds: whether it plans again after each round of tasks, until a round has none.
        replaces: whether its outputs have fixed names, so that another config's replace them.
        any_device: its output has the same bytes on every alternative of `needs`, so workers of several kinds may share its
            tasks; otherwise all workers get the first alternative that fits any node.
        needs_run: what it needs that a question without a run lacks, such as references, in a few words; empty: nothing
            (`swsdist.pipeline.in_memory`).
        all_or_nothing: if one of its tasks fails, the run stops before the next step, unless `StepSelection.keep_going`.
        grows_with_hours, grows_with_queries: how its tasks grow with hours of documents and with query examples; for forecasts.
            In a stage in rounds a task of work 1 adds up the others' results, and does not grow.
        in_buckets: whether it has a task per bucket (`reduce.buckets`), so that their number grows as that of the buckets.
        most_work: work up to which such a stage has a single task; in rounds, if it has more.
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
    needs_run: ClassVar[str] = ""
    grows_with_hours: ClassVar[Growth] = "larger"
    grows_with_queries: ClassVar[Growth] = "larger"
    in_buckets: ClassVar[bool] = False
    most_work: ClassVar[float] = 0.0

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """Alternative resources of a worker, the best first."""
        return (Needs(),)

    def place(self, inputs: Inputs) -> str:
        """Root of the folder of its receipts and outputs; empty: the run folder."""
        return ""

    @abstractmethod
    def plan(self, inputs: Inputs) -> Iterator[Task[P]]:
        """Plan the tasks of the round `inputs.round`; all steps that it reads have ended."""

    def prepare(self, inputs: Inputs) -> None:
        """Called before open tasks are run: write files that they read besides the tables of other stages."""

    @abstractmethod
    def run(self, task: Task[P], context: Context) -> TaskOutput:
        """Run a task."""

    def reads(self, task: Task[P]) -> Iterable[tuple[str, int]]:
        """SHA-256 and bytes of the store files that a task reads through the node's cache, for its placement."""
        return ()

    def keeps_order(self, config: Config) -> bool:
        """Whether it keeps the order of a query's detections, so that the best before it are the best after it."""
        return False

    def warm(self, task: Task[P], context: Context) -> None:
        """Load libraries, models and the like before the first task, so that their cost is not charged to it."""

    def finish(self, inputs: Inputs) -> None:
        """Called after the last task: call `inputs.commits`, then commit the outputs."""

    def commit_partial(self, inputs: Inputs) -> None:
        """Called when a run is interrupted: commit what can be used of the finished tasks, those of `inputs.outcome`."""

    def hours(self, inputs: Inputs, tasks: Iterable[Task[P]]) -> float:
        """Hours of audio in these tasks, each hour once; called for stages whose unit is `s`."""
        return sum(task.work for task in tasks) / 3600

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Receipts of the tasks, of any plan, that made what its tables hold now; empty if some are unknown."""
        return inputs.outcome.receipts

    def most_hours(self, inputs: Inputs) -> float:
        """Hours of documents beyond which its tasks do not grow; for forecasts."""
        return inf

    def expected(self, inputs: Inputs) -> float | None:
        """Estimate of the work before it can be planned; None: unknown."""
        return None

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """SHA-256, by name, of outputs that are in none of its `tables`."""
        return {}
