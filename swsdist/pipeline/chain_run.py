"""The run of a chain with a config: its plan, the selected steps, and their results; or its steps on tables in memory.

Steps in memory serve a search in a store without a run, or steps of another chain within a task. They are planned and
run as in a run, but their tables stay in memory, and nothing is published. Some tables are given. A step that needs
more than a search has (`Stage.needs_run`) is left out: if it replaces a table, that table is handed on unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config import Config, without_secrets
from swsdist.core.arrays import Floats
from swsdist.core.codes import pipeline as codes
from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline import chain as external_table
from swsdist.pipeline.chain import (
    Chain,
    ChainInputs,
    Context,
    ExternalTable,
    Inputs,
    InputTable,
    Source,
    Step,
    makers_of,
)
from swsdist.pipeline.ledger import ONLY, Ledger, Plan, PlannedStep, StepOutcome, load_plans
from swsdist.pipeline.receipts import Digits, Names, ReceiptList, Receipts, Rows, Spool, first_of_each, names_of
from swsdist.pipeline.task import Cost, Failure, Part, Receipt, Task, TaskResult
from swsdist.registry.registries import CHAINS
from swsdist.store import parquet

T = TypeVar("T", bound=TaskResult)

#: Tasks looked up at once; one of `index` holds up to 4096 rows.
_BATCH = 64


@dataclass(frozen=True)
class StepSelection:
    """The steps to run.

    Attributes:
        until: last step; of the step that makes a store: also those behind it that derive an index from it; None: run all.
        table: label of the last table, if no step is named.
        redo_from: redo this step and all later ones.
        only: run this step alone; earlier ones must be done.
        keep_going: go on after failed tasks of an `all_or_nothing` stage.
        shared: the folder belongs to several plans, even if one is run now: skip outputs with fixed names.
    """

    until: str | None = None
    table: str | None = None
    redo_from: str | None = None
    only: str | None = None
    keep_going: bool = False
    shared: bool = False

    def steps(self, chain: Chain) -> list[Step]:
        """The selected steps of a chain, in order.

        Raises:
            UserError: the chain has no such step or table.
        """
        for name in (self.until, self.redo_from, self.only):
            if name is not None:
                chain.step(name)
        made = chain.source(self.table) if self.table is not None else None
        if self.table is not None and made is None:
            raise codes.NO_SUCH_TABLE(chain=chain.name, table=self.table)
        last = self.only or self.until or (made and made[0].name)
        if last is None:
            return list(chain.steps)
        stop = chain.steps.index(chain.step(last)) + 1
        stores = self.only is None and "documents" in chain.step(last).stage.tables
        while stores and stop < len(chain.steps) and chain.steps[stop].phase == "index":
            stop += 1
        return list(chain.steps[:stop])

    @property
    def is_partial(self) -> bool:
        """Whether it ends before the chain does, by choice."""
        return (self.until, self.table, self.only) != (None, None, None)

    def redoes(self, chain: Chain, step: Step) -> bool:
        """Whether a step is redone even if it is done."""
        names = [step.name for step in chain.steps]
        return self.redo_from is not None and names.index(step.name) >= names.index(self.redo_from)


@dataclass
class ChainRun:
    """The run of one chain with one config, and the results of its steps."""

    name: str
    config: Config
    chain: Chain
    plan: Plan
    ledger: Ledger
    steps: list[Step]
    redo: frozenset[str] = frozenset()
    outcomes: dict[str, StepOutcome] = field(default_factory=dict)

    @property
    def run(self) -> Folder:
        """The run folder."""
        return self.ledger.run

    @property
    def complete(self) -> bool:
        """Whether all steps have ended; those that replace files of fixed names, and serve them, do not count."""
        return all(step.name in self.outcomes for step in self.chain.steps if step.name not in self.chain.passing)

    def inputs(self, step: Step, round: int = 0) -> Inputs:
        """The inputs of a step."""
        stage = step.stage
        inputs = Inputs(
            self.config,
            self.ledger,
            self.chain.inputs_of(step),
            (stage.name, stage.version),
            {word: tuple(self._input_table(source) for source in step.sources(word)) for word in step.reads},
            self.outcomes.get(step.name, StepOutcome()),
            round,
            step.name in self.redo,
        )
        inputs.place = stage.place(inputs)
        return inputs

    def _input_table(self, source: Source) -> InputTable:
        if isinstance(source, ExternalTable):
            return self.ledger.memoize(("external", *source), lambda: external_table.read(source, self.run.storage))
        name, _, table = source.partition(":")
        step = self.chain.step(name)
        return InputTable(source, table, self.receipts(name), self.place(step))

    def place(self, step: Step) -> str:
        """Root of the folder that a step writes to; empty: the run folder."""
        stage = step.stage
        return stage.place(Inputs(self.config, self.ledger, self.chain.inputs_of(step), (stage.name, stage.version)))

    def receipts(self, step: str) -> ReceiptList:
        """Receipts of a step's tasks; empty if it has not run."""
        return self.outcomes[step].receipts if step in self.outcomes else ReceiptList()

    def results(self, label: str, kind: type[T]) -> list[T]:
        """Results of the tasks that made a table. Tables are named by labels (`Chain.source`)."""
        return self.table(label).receipts.results(kind)

    def table(self, label: str, *, absolute: bool = False) -> InputTable:
        """A table of the chain.

        Args:
            label: its label.
            absolute: name its files by absolute paths, for readers outside the run.

        Raises:
            KeyError: no step makes it.
        """
        source = self.chain.source(label)
        if source is None:
            raise KeyError(f"no step of {self.chain.name} makes {label!r}")
        table = self._input_table(f"{source[0].name}:{source[1]}")
        return table._replace(root=table.root or self.run.root) if absolute else table

    def ended(self, label: str) -> StepOutcome | None:
        """Outcome of the step that makes a table; None: it has not run, or no step makes it."""
        source = self.chain.source(label)
        return None if source is None else self.outcomes.get(source[0].name)

    def read(self, label: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Read a table, file by file."""
        table = self.table(label)
        for part in table.receipts.parts(table.table):
            yield parquet.read(self.ledger.folder(table.root), part.name, columns)

    def notices(self) -> list[str]:
        """Warnings about the results."""
        return self.chain.notices(self) if self.chain.notices is not None else []

    def rejected(self) -> pa.Table:
        """REJECTED: unusable inputs and failed tasks."""
        if self.chain.rejected is not None:
            return self.chain.rejected(self)
        rows = [row for outcome in self.outcomes.values() for receipt in outcome.receipts for row in receipt.rejected]
        rows += [failure.row() for outcome in self.outcomes.values() for failure in outcome.failures]
        return pa.Table.from_pylist(rows, REJECTED)


@dataclass
class Outcome:
    """The outcome of a run.

    Attributes:
        chain_runs: chain runs by the name of their plan.
        began: start time, s since 1970.
        wall: duration, s.
        executor_start, executor_stop: duration of starting and stopping workers, s; None if there are none.
        single_plan: whether its plan is the only one of the folder.
        preceding: the chain's prerequisite runs, by name.
    """

    ledger: Ledger
    chain_runs: dict[str, ChainRun]
    began: float
    wall: float = 0.0
    executor_start: float | None = None
    executor_stop: float | None = None
    reports: dict[str, object] = field(default_factory=dict)
    single_plan: bool = True
    preceding: dict[str, Outcome] = field(default_factory=dict)

    @property
    def chain_run(self) -> ChainRun:
        """The only chain run.

        Raises:
            ValueError: the run has several.
        """
        (only,) = self.chain_runs.values()
        return only

    @property
    def tasks_done(self) -> int:
        """Number of tasks done in this run."""
        return sum(outcome.done for chain_run in self.chain_runs.values() for outcome in chain_run.outcomes.values())

    @property
    def failures(self) -> list[Failure]:
        """Failed tasks, each once."""
        failures: dict[tuple[str, str], Failure] = {}
        for chain_run in self.chain_runs.values():
            for outcome in chain_run.outcomes.values():
                for failure in outcome.failures:
                    failures.setdefault((failure.task.stage, failure.task.fingerprint), failure)
        return list(failures.values())


def prepare_chain_run(
    name: str, config: Config, ledger: Ledger, selection: StepSelection, alone: bool = True
) -> ChainRun:
    """A chain run before its first step.

    If the ledger has several plans (`alone` is false), `Chain.passing` is left out.
    """
    chain: Chain = CHAINS[config.chain].load()(config, ledger)
    left_out = frozenset() if alone else chain.passing
    steps = [step for step in selection.steps(chain) if step.name not in left_out]
    redo = frozenset(step.name for step in steps if selection.redoes(chain, step))
    plan = Plan(
        config.chain,
        without_secrets(config).model_dump(mode="json"),
        [step.name for step in (steps if selection.shared else chain.steps) if step.name not in left_out],
    )
    return ChainRun(name, config, chain, plan, ledger, steps, redo)


def load_outcome(config: Config) -> Outcome:
    """The outcome of a run so far, from its folder. Open tasks of steps that were begun count as failed.

    Raises:
        StoreError: the folder holds no run.
    """
    ledger = Ledger(Folder(config.run, config.storage))
    chain_run = prepare_chain_run(ONLY, config, ledger, StepSelection())
    begun = load_plans(ledger.run)[ONLY].steps
    for step in chain_run.steps:
        if step.name not in begun:
            break
        outcome = chain_run.outcomes[step.name] = StepOutcome()
        for plan_round in plan_rounds(chain_run, step):
            outcome.receipts += plan_round.done
            left = (replace(task, payload=None, common=None) for task in plan_round.left)
            outcome.failures += [Failure(task, "not done", "the task is not done", 0) for task in left]
        outcome.skipped = len(outcome.receipts)
        names = Names(outcome.receipts.fingerprints)
        chain_run.plan.steps[step.name] = PlannedStep(
            step.stage.name, names, outcome.tasks, chain_run.inputs(step).place, tables=step.tables
        )
        chain_run.plan.state = dict(chain_run.chain.inputs.state)
    return Outcome(ledger, {ONLY: chain_run}, time.time())


@dataclass(frozen=True)
class StepRound:
    """The planned tasks of one round of a step.

    Attributes:
        receipts: all receipts of the stage.
        place: root of the folder that the step writes to.
        names, work: fingerprints and sizes of the tasks, in order; (n,).
        rows: int64 (n,), row in `receipts` of each finished task; -1: open.
        left: open tasks, each once.
    """

    receipts: Receipts
    place: str
    names: Digits
    work: Floats
    rows: Rows
    left: Spool

    @property
    def done(self) -> ReceiptList:
        """Receipts of the finished tasks, in order."""
        finished = ReceiptList()
        finished.extend(self.receipts, self.rows[self.rows >= 0])
        return finished


def plan_rounds(chain_run: ChainRun, step: Step) -> Iterator[StepRound]:
    """Plan a step, round by round. Finished tasks are only counted; open ones are spooled to a file.

    The caller adds the receipts of a round to `chain_run.outcomes` before it requests the next round. Without that, as in a dry
    run, planning is exact up to the first round with an open task.
    """
    for number in range(1_000_000):
        step_round = _round(chain_run, step, chain_run.inputs(step, number))
        if len(step_round.names) or number == 0:
            yield step_round
        if not len(step_round.names) or not step.stage.rounds or chain_run.outcomes[step.name].failures:
            return


def _round(chain_run: ChainRun, step: Step, inputs: Inputs) -> StepRound:
    stage, left = step.stage, Spool()
    names, work, rows = [np.empty(0, "S32")], [np.empty(0)], [np.empty(0, np.int64)]
    planned = iter(stage.plan(inputs))
    while tasks := list(islice(planned, _BATCH)):
        digits = names_of(task.fingerprint for task in tasks)
        if step.name in chain_run.redo:
            done = np.full(len(tasks), -1, np.int64)
        else:
            done = chain_run.ledger.rows(stage.name, inputs.place, digits)
        for k in np.flatnonzero(done < 0):
            left.put(tasks[k])
        names.append(digits)
        work.append(np.array([task.work for task in tasks], np.float64))
        rows.append(done)
    all_names, all_rows = np.concatenate(names), np.concatenate(rows)
    names.clear()  # 32 MB for a million tasks
    once = first_of_each(all_names[all_rows < 0])
    if len(once) < len(left):
        left = left.take(once)
    receipts = chain_run.ledger.receipts(stage.name, inputs.place)
    return StepRound(receipts, inputs.place, all_names, np.concatenate(work), all_rows, left)


@dataclass
class MemoryContext(Context):
    """A context whose tables and files are in memory; those that it does not hold are read as in a run.

    Attributes:
        held: tables and files (bytes) by name.
    """

    held: dict[str, Any] = field(default_factory=dict)

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table."""
        table = self.held.get(name)
        if table is None:
            return super().read(name, columns)
        return table if columns is None else table.select(columns)

    def in_slots(self, name: str, slots: range, codes: Sequence[str] = ()) -> pa.Table:
        """The rows of a table whose column `slot` is in a range."""
        if name not in self.held:
            return super().in_slots(name, slots, codes)
        table = self.held[name]
        return table.filter(pc.and_(pc.greater_equal(table["slot"], slots[0]), pc.less_equal(table["slot"], slots[-1])))

    def read_bytes(self, name: str) -> bytes:
        """Read a file."""
        held: bytes | None = self.held.get(name)
        return super().read_bytes(name) if held is None else held

    def publish(
        self, task: Task, table: str, rows: Iterable[pa.Table], schema: pa.Schema, suffix: str = ".parquet"
    ) -> Part:
        """Hold a table of a task."""
        whole = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in rows)])
        return self.hold(f"{table}/{task.fingerprint}{suffix}", table, whole, task.slots)

    def write(self, task: Task, table: str, data: bytes, suffix: str = ".json", place: str = "tables/") -> Part:
        """Hold a small file of a task."""
        return self.hold(f"{table}/{task.fingerprint}{suffix}", table, data, task.slots)

    def hold(self, name: str, table: str, value: pa.Table | bytes, slots: range) -> Part:
        """Hold a table or a file under a name."""
        self.held[name] = value
        rows, size = (0, len(value)) if isinstance(value, bytes) else (value.num_rows, value.nbytes)
        return Part(table, name, size, "", rows, (slots[0], slots[-1]))


class InMemory:
    """Some steps of a chain, and the tables that they make of given ones.

    Args:
        steps: of the chain, all that may be needed.
        config: of the steps.
        inputs: of the chain.
        context: of their tasks.
    """

    def __init__(self, steps: Sequence[Step], config: Config, inputs: ChainInputs, context: MemoryContext) -> None:
        self._steps = {step.name: step for step in steps}
        self._config, self._inputs, self._context = config, inputs, context
        self._given: dict[tuple[str, str], ReceiptList] = {}
        self._made: dict[str, ReceiptList | None] = {}

    def give(self, label: str, value: pa.Table | bytes, slots: range, result: TaskResult | None = None) -> None:
        """Give a table: it takes the place of what the first step that makes it would make.

        Args:
            label: its label (`Chain.source`).
            value: the table, or the content of the file.
            slots: of its rows.
            result: result of the task that made it.
        """
        step = makers_of(self._steps.values(), label)[0]
        name = f"{uuid4().hex}/{label}"  # of one content, as in a run: stages cache values by names
        part = self._context.hold(name, step.tables[label], value, slots)
        self._given[step.name, part.table] = ReceiptList([_receipt(step, [part], result)])
        self._made.clear()

    def read(self, label: str) -> pa.Table:
        """A table.

        Raises:
            UserError: a step that makes it needs a run.
        """
        step = makers_of(self._steps.values(), label)[-1]
        input_table = self._input(f"{step.name}:{step.tables[label]}")
        if input_table is None:
            raise codes.NEEDS_RUN(step=step.name, lacking=step.stage.needs_run or "its inputs")
        return pa.concat_tables(self._context.read(part.name) for part in input_table.parts)

    def _input(self, source: Source) -> InputTable | None:
        """A table that a step reads; None: it cannot be made."""
        if isinstance(source, ExternalTable):
            return None
        name, _, table = source.partition(":")
        step = self._steps[name]
        if (name, table) in self._given:
            return InputTable(source, table, self._given[name, table])
        if step.stage.needs_run:
            replaced = step.replaced(table)
            return None if replaced is None else self._input(replaced)
        if name not in self._made:
            self._made[name] = self._run(step)
        receipts = self._made[name]
        return None if receipts is None else InputTable(source, table, receipts)

    def _run(self, step: Step) -> ReceiptList | None:
        """Receipts of a step's tasks; None: a table is missing."""
        stage, tables = step.stage, {}
        for word in step.reads:
            several = [self._input(source) for source in step.sources(word)]
            if None not in several:
                tables[word] = tuple(each for each in several if each is not None)
            elif word in stage.takes:
                return None
        identity = stage.name, stage.version
        inputs = Inputs(self._config, Ledger(self._context.run), self._inputs, identity, tables)
        receipts = []
        for task in stage.plan(inputs):
            output = stage.run(task, self._context)
            receipts.append(replace(_receipt(step, output.outputs, output.result), fingerprint=task.fingerprint))
        return ReceiptList(receipts)


class Way(NamedTuple):
    """The steps that one table goes through until it is another, and the names of those among them that need a run."""

    steps: tuple[Step, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def between(cls, steps: Sequence[Step], first: str, last: str) -> Way:
        """The way from the first table of one label to the last of another.

        Raises:
            UserError: a step needs a run, and there is no way without it.
        """
        by_name = {step.name: step for step in steps}
        begin, end = makers_of(steps, first)[0], makers_of(steps, last)[-1]
        blocked = end

        def from_(source: Source) -> Way | None:
            nonlocal blocked
            if isinstance(source, ExternalTable):
                return None
            name, _, table = source.partition(":")
            step = by_name[name]
            if (name, table) == (begin.name, begin.tables[first]):
                return cls(())
            if step.stage.needs_run:
                replaced = step.replaced(table)
                way = None if replaced is None else from_(replaced)
                blocked = step if way is None else blocked
                return None if way is None else way._replace(left_out=(*way.left_out, name))
            ways = (from_(source) for word in step.reads for source in step.sources(word))
            way = next((way for way in ways if way is not None), None)
            return None if way is None else way._replace(steps=(*way.steps, step))

        way = from_(f"{end.name}:{end.tables[last]}")
        if way is None:
            raise codes.NEEDS_RUN(step=blocked.name, lacking=blocked.stage.needs_run)
        return way


def _receipt(step: Step, outputs: Sequence[Part], result: TaskResult | None) -> Receipt:
    values = {} if result is None else result._asdict()
    nothing = Cost(0.0, 0.0, 0.0, 0)
    return Receipt(
        *(step.stage.name, step.stage.version, step.name, step.name, 0.0, tuple(outputs), values, []),
        *(nothing, "", 0, 0.0, 0.0),
    )
