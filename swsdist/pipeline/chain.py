"""Chains and stages: a chain is a list of stages, wired into a graph by the tables that they take and make.

**Stages.** A stage divides one step of the data flow into tasks, and defines what a task does::

    plan(inputs)         -> iterator of Task   deterministic: equal inputs give equal tasks in the same order
    run(task, context)   -> TaskOutput         reads the inputs, publishes the outputs
    finish(inputs)       -> None               in the driver, after the last task: commits the outputs

A stage knows no other stage. It has its own names for the tables it reads; the chain maps each to the step that makes
it. A stage in **rounds** plans again after each round, with the results of earlier rounds, and ends with the first
round without tasks.

**Chains.** Each stage declares the tables it takes (`Stage.takes`); a table comes from the earlier step that makes it.
A step that reads a table and makes a table of its name replaces it for the steps behind it. If several steps make a
table, if it comes from another run, or if the list has a stage twice, a `Step` names the source::

    Index(), Queries(), Search(), Reduce(), Step("align.final", Align(), {"detections": "decide:scored"})

The registry `swsdist.registry.registries.CHAINS` names the function that makes a chain from a config.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.errors import StoreError, UserError
from swsdist.core.fingerprint import ALL_SLOTS, Naming, fingerprint
from swsdist.core.needs import LEAST, Needs
from swsdist.io.filesystem import Folder, locate
from swsdist.pipeline.ledger import ONLY, Ledger, StepOutcome, load_plans, receipts_of
from swsdist.pipeline.receipts import Parts, ReceiptList, joined_parts
from swsdist.pipeline.task import P, Part, Receipt, Task, TaskOutput, TaskResult
from swsdist.store import parquet

R = TypeVar("R", bound=TaskResult)
OfChain = TypeVar("OfChain")


class InputTable(NamedTuple):
    """A table that a step reads.

    Attributes:
        source: its source, as the chain names it.
        table: its name in the source.
        receipts: receipts of the tasks that made its files.
        root: root of their folder; empty: the run folder.
    """

    source: str
    table: str
    receipts: ReceiptList
    root: str = ""

    @property
    def parts(self) -> Parts:
        """Files of the table, with names for `Context.place`."""
        parts = self.receipts.parts(self.table)
        return parts.under(self.root) if self.root else parts

    def made(self, kind: type[R]) -> Iterator[tuple[Receipt, R, list[Part]]]:
        """Receipts of the table, each with its task's result and its files."""
        for receipt in self.receipts:
            parts = receipt.parts(self.table)
            if self.root:
                parts = [part._replace(name=f"{self.root}/{part.name}") for part in parts]
            yield receipt, receipt.result_as(kind), parts


@dataclass
class Inputs:
    """The inputs of a step in a chain run.

    Attributes:
        config: config of the plan.
        ledger: ledger of the run.
        provided: the chain's inputs; see `chain_inputs`.
        stage: name and version of the step's stage.
        tables: tables that it reads, by the stage's names.
        outcome: outcome of this step so far.
        round: number of the round, from 0; `outcome` has the receipts of earlier rounds.
        redo: whether all tasks are redone.
        place: root of the folder that the step writes to; empty: the run folder.
        commits: called by `Stage.finish` before it changes files; raises an error where it must not.
    """

    config: Config
    ledger: Ledger
    provided: object
    stage: tuple[str, int]
    tables: Mapping[str, tuple[InputTable, ...]] = field(default_factory=dict)
    outcome: StepOutcome = field(default_factory=StepOutcome)
    round: int = 0
    redo: bool = False
    place: str = ""
    commits: Callable[[], None] = lambda: None

    def chain_inputs(self, kind: type[OfChain]) -> OfChain:
        """The chain's inputs, as the type that the stage needs.

        Raises:
            UserError: the chain has inputs of another type.
        """
        if not isinstance(self.provided, kind):
            raise families.MISSING_INPUT(
                "the stage {stage} needs {kind}, which this chain does not have",
                "use the stage in a chain that has it",
                stage=self.stage[0],
                kind=kind.__name__,
            )
        return self.provided

    def receipts(self, input_name: str) -> ReceiptList:
        """Receipts of the tasks that made a table, source after source, in the order of their plan."""
        receipts = ReceiptList()
        for table in self.tables.get(input_name, ()):
            receipts += table.receipts
        return receipts

    def results(self, input_name: str, kind: type[R]) -> list[tuple[Receipt, R]]:
        """Receipts of a table whose tasks have a result, each with the result."""
        return [(receipt, receipt.result_as(kind)) for receipt in self.receipts(input_name) if receipt.result]

    def made(self, input_name: str, kind: type[R]) -> Iterator[tuple[Receipt, R, list[Part]]]:
        """Receipts of a table, each with its task's result and its files of the table."""
        for table in self.tables.get(input_name, ()):
            yield from table.made(kind)

    def parts(self, input_name: str) -> Parts:
        """Files of a table, with names for `Context.place`."""
        return joined_parts([table.parts for table in self.tables.get(input_name, ())])

    def buckets(self, input_name: str, *others: str) -> Iterator[tuple[Part, ...]]:
        """Files of a table, each with the file of every other table that has the same slots."""
        beside = [{part.slots: part for part in self.parts(name)} for name in others]
        for part in self.parts(input_name):
            yield part, *(parts[part.slots] for parts in beside)

    def task(self, *key_parts: Any, label: str, work: float, payload: P, slots: range = ALL_SLOTS) -> Task[P]:
        """A task of this step.

        Args:
            key_parts: JSON values: all that the outputs depend on besides the stage and its version.
            label, work, payload, slots: see `Task`.
        """
        return self.named(fingerprint(*self.stage, *key_parts), label=label, work=work, payload=payload, slots=slots)

    def naming(self, *key_parts: Any) -> Naming:
        """Make names of tasks whose `key_parts` begin alike; the common beginning is hashed once."""
        return Naming(*self.stage, *key_parts)

    def named(
        self, name: str, *, label: str, work: float, payload: P, common: Any = None, slots: range = ALL_SLOTS
    ) -> Task[P]:
        """A task of this step, with a name from `naming`."""
        return Task(self.stage[0], name, label, work, payload, self.place, common, slots, self.round)


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
        self, task: Task, table: str, rows: Iterable[pa.Table], schema: pa.Schema, suffix: str = ".parquet"
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
            (`swsdist.pipeline.chain_run`).
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


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        name: name of the check.
        good: True: passed; False: failed; None: passed with a warning.
        text: details.
    """

    name: str
    good: bool | None
    text: str


class ExternalTable(NamedTuple):
    """A table of another run. The content of its files identifies it, not their names.

    Attributes:
        run: folder of the run.
        table: its label in that run (`swsdist.pipeline.chain.Chain.source`).
        plan: name of the plan.
    """

    run: str
    table: str
    plan: str = ONLY

    def __str__(self) -> str:
        return f"{self.run}:{self.plan}:{self.table}"


def read(source: ExternalTable, storage: Mapping[str, Any]) -> InputTable:
    """Find a table of another run.

    Raises:
        StoreError: the folder holds no run, or its step is not done.
    """
    folder = Folder(source.run, storage)
    plans = load_plans(folder)
    makers = plans[source.plan].steps if source.plan in plans else {}
    name = next((name for name in reversed(makers) if source.table in makers[name].tables), None)
    if name is None:
        raise families.UNKNOWN_NAME.of(StoreError)(
            "the source run has no table {table} in a plan {plan!r}",
            "name one of its plans ({plans}) and one of their tables ({tables})",
            where=folder.path(),
            table=source.table,
            plan=source.plan,
            plans=", ".join(plans),
            tables=", ".join(label for step in plans[next(iter(plans))].steps.values() for label in step.tables),
        )
    planned = makers[name]
    receipts = receipts_of(Ledger(folder), planned)
    if len(receipts) < planned.planned:
        raise families.NOT_FINISHED(
            "step {step} of the source run is not done",
            "finish that run, then run this one",
            where=folder.path(),
            step=name,
        )
    return InputTable(str(source), planned.tables[source.table], receipts, planned.place or folder.root)


#: `step:table` of the same chain, or a table of another run.
Source = str | ExternalTable


@dataclass(frozen=True)
class Step:
    """A use of a stage in a chain.

    Attributes:
        name: name in commands and reports.
        stage: the stage.
        reads: the stage's name of a table -> its source, or several; the chain adds unambiguous sources.
        labels: the chain's names of its tables, if they differ from the stage's; see `Chain.source`.
        inputs: inputs of this step, if they are not the chain's.
    """

    name: str
    stage: Stage
    reads: Mapping[str, Source | tuple[Source, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    inputs: Any = None

    def label(self, table: str) -> str:
        """The chain's name of a table, in digests and for readers of a run."""
        return self.labels.get(table, table)

    @property
    def tables(self) -> dict[str, str]:
        """The stage's names of its tables, by label."""
        return {self.label(table): table for table in self.stage.tables}

    @property
    def phase(self) -> str:
        """Phase of its cost."""
        return self.stage.phase

    def sources(self, input_name: str) -> tuple[Source, ...]:
        """Sources of a table, by the stage's name; empty if it is not read."""
        sources = self.reads.get(input_name, ())
        return (sources,) if isinstance(sources, str | ExternalTable) else sources

    def replaced(self, table: str) -> Source | None:
        """The table that a table replaces: one of the same name, which the step reads."""
        sources = (source for input_name in self.reads for source in self.sources(input_name))
        return next((source for source in sources if str(source).endswith(f":{table}")), None)


class ChainInputs:
    """Inputs of a chain that are read before its first step, such as corpus, queries and references; empty by default."""

    @property
    def hours(self) -> float:
        """Hours of audio, as far as they are known."""
        return 0.0

    @property
    def state(self) -> dict[str, str]:
        """Values that, besides the tasks, identify the tables of a plan."""
        return {}

    def recall(self, state: Mapping[str, str]) -> None:
        """Restore such a state, to inspect a finished plan."""
        del state

    def read(self, labels: frozenset[str]) -> None:
        """Read what the steps that make these tables need, so that mistakes in it show before any work."""
        del labels


@dataclass(frozen=True)
class Chain:
    """The steps of a run, as a checked graph.

    Attributes:
        name: registered name.
        stages: stages in their order; a bare stage becomes a step of its name.
        steps: the wired steps.
        inputs: inputs that are read before the first step.
        report: function of (outcome, chain_run, force) that writes the report of a run, in the driver; returns the report, or
            None if nothing changed.
        report_files: files of the report in the run folder; the report is made again if one is missing or the plan changed.
        notices: function of the chain run that returns warnings about its results.
        check: function of `inputs` that makes cheap checks before any work; yields findings.
        summary: function of the chain run that describes the results of a partial run, in a few lines.
        counts: function of the chain run that returns numbers for the event `run-ended`, by name.
        prerequisites: configs of runs that must come first, by name; each has its own run folder.
        barrier: function of the chain run, the name of a finished step, and `force`: raises an ImplausibleError if the step's
            results are too implausible to go on.
        rejected: function of the chain run that returns the table REJECTED; by default the tasks' rejections.
    """

    name: str
    stages: InitVar[Sequence[Step | Stage]]
    inputs: Any
    report: Callable[..., object | None] | None = None
    report_files: tuple[str, ...] = ()
    notices: Callable[..., list[str]] | None = None
    rejected: Callable[..., pa.Table] | None = None
    check: Callable[..., Iterator[Finding]] | None = None
    summary: Callable[..., list[str]] | None = None
    prerequisites: Callable[[], Mapping[str, Config]] = dict
    barrier: Callable[..., object] | None = None
    counts: Callable[..., dict[str, int]] | None = None
    steps: tuple[Step, ...] = field(init=False)

    def __post_init__(self, stages: Sequence[Step | Stage]) -> None:
        object.__setattr__(self, "steps", tuple(self._wired(stages)))
        earlier: dict[str, Step] = {}
        for step in self.steps:
            if step.name in earlier:
                raise families.DUPLICATE_NAME.of(UserError)(
                    "the chain {chain} has two steps {step!r}",
                    "give each step its own name",
                    chain=self.name,
                    step=step.name,
                )
            for source in (source for input_name in step.reads for source in step.sources(input_name)):
                if isinstance(source, ExternalTable):
                    continue
                maker, _, table = source.partition(":")
                if maker not in earlier or table not in earlier[maker].stage.tables:
                    raise families.UNKNOWN_NAME(
                        "step {step} of the chain {chain} reads {source}, which no earlier step makes",
                        "name a source `step:table` of an earlier step",
                        step=step.name,
                        chain=self.name,
                        source=source,
                    )
            for other in earlier.values():
                if other.stage.name == step.stage.name and not _alike(other.stage, step.stage):
                    raise families.DUPLICATE_NAME.of(UserError)(
                        "steps {first} and {second} of the chain {chain} use different stages of one name, {stage!r}",
                        "rename one of the stages: tasks find their stage by its name",
                        first=other.name,
                        second=step.name,
                        chain=self.name,
                        stage=step.stage.name,
                    )
            earlier[step.name] = step
        labels = [label for step in self.steps for label, _ in self.digested(step)]
        if len(set(labels)) < len(labels):
            raise families.DUPLICATE_NAME.of(UserError)(
                "two tables of the chain {chain} are digested under one name: {names}",
                "give one of the steps other `labels`, or declare its table with digested=False",
                chain=self.name,
                names=", ".join(labels),
            )

    def _wired(self, stages: Sequence[Step | Stage]) -> Iterator[Step]:
        """The steps, with the sources of all tables."""
        before: list[Step] = []
        for entry in stages:
            step = entry if isinstance(entry, Step) else Step(entry.name, entry)
            reads = dict(step.reads)
            for input_name, table in {**step.stage.takes, **step.stage.may_take}.items():
                makers = _makers(before, table) if input_name not in reads else []
                if len(makers) == 1:
                    reads[input_name] = f"{makers[0]}:{table}"
                elif makers:
                    raise families.AMBIGUOUS(
                        "step {step} of the chain {chain} takes {table}, which several steps make: {makers}",
                        "name its source: Step({step!r}, ..., {{{input_name!r}: 'step:{table}'}})",
                        step=step.name,
                        chain=self.name,
                        table=table,
                        makers=", ".join(makers),
                        input_name=input_name,
                    )
                elif input_name in step.stage.takes and input_name not in reads:
                    raise families.MISSING_INPUT(
                        "step {step} of the chain {chain} takes {table}, which no earlier step makes",
                        "name its source: Step({step!r}, ..., {{{input_name!r}: 'step:{table}'}})",
                        step=step.name,
                        chain=self.name,
                        table=table,
                        input_name=input_name,
                    )
            before.append(replace(step, reads=reads))
        yield from before

    @cached_property
    def passing(self) -> frozenset[str]:
        """Names of the steps that replace files of fixed names, and of those that serve only them: all are of one config."""
        result: set[str] = set()
        for step in self.steps[::-1]:
            readers = [
                other.name
                for other in self.steps
                if any(
                    str(source).partition(":")[0] == step.name for word in other.reads for source in other.sources(word)
                )
            ]
            digested = any(table.digested for table in step.stage.tables.values())
            if step.stage.replaces or (readers and result.issuperset(readers) and not digested):
                result.add(step.name)
        return frozenset(result)

    def step(self, name: str) -> Step:
        """Find a step by name.

        Raises:
            UserError: no such step.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise families.UNKNOWN_NAME(
            "the chain has no stage {stage!r}",
            "name one of the stages: {stages}",
            stage=name,
            stages=", ".join(step.name for step in self.steps),
        )

    def inputs_of(self, step: Step) -> Any:
        """The inputs of a step: its own, or the chain's."""
        return self.inputs if step.inputs is None else step.inputs

    def source(self, label: str) -> tuple[Step, str] | None:
        """The last step that makes a table of this label, and the stage's name of the table; None: no step does."""
        return next(((step, step.tables[label]) for step in self.makers(label)[::-1]), None)

    def makers(self, label: str) -> list[Step]:
        """All steps that make a table of this label."""
        return makers_of(self.steps, label)

    def digested(self, step: Step) -> Iterator[tuple[str, str]]:
        """Name in the digest and name of each digested table of a step, without those that another of that label replaces."""
        for table, declared in step.stage.tables.items():
            label = step.label(table)
            makers = [
                each for each in self.makers(label) if table in each.stage.tables and each.stage.tables[table].digested
            ]
            if declared.digested and f"{step.name}:{table}" not in {each.replaced(table) for each in makers}:
                yield label, table


def makers_of(steps: Iterable[Step], label: str) -> list[Step]:
    """The steps that make a table of this label."""
    return [step for step in steps if label in step.tables]


def _makers(steps: Sequence[Step], table: str) -> list[str]:
    """Names of the steps that make a table, without those whose table a later one of them replaces."""
    makers = [step for step in steps if table in step.stage.tables]
    replaced = {step.replaced(table) for step in makers}
    return [step.name for step in makers if f"{step.name}:{table}" not in replaced]


def _alike(stage: Stage, other: Stage) -> bool:
    """Whether two stages are equal."""
    return type(stage) is type(other) and vars(stage) == vars(other)
