"""The run of one chain with one config: its plan, the selected steps, and their results so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config import Config, without_secrets
from swsdist.core.codes import pipeline as codes
from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline import chain as external_table
from swsdist.pipeline.chain import Chain, ExternalTable, Source, Step
from swsdist.pipeline.inputs import Inputs, InputTable
from swsdist.pipeline.ledger import ONLY, Ledger, Plan, PlannedStep, StepOutcome, load_plans
from swsdist.pipeline.receipts import Digits, Names, ReceiptList, Receipts, Rows, Spool, first_of_each, names_of
from swsdist.pipeline.task import Failure, TaskResult
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
    work: NDArray[np.float64]
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
