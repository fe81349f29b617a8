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
from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline import external_table
from swsdist.pipeline.chain import Chain, Source, Step
from swsdist.pipeline.external_table import ExternalTable
from swsdist.pipeline.inputs import Inputs, InputTable
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.plan import ONLY, Plan, PlannedStep, load_plans
from swsdist.pipeline.records.lists import Parts, ReceiptList
from swsdist.pipeline.records.receipts import Digits, Names, Receipts, Rows, first_of_each, names_of
from swsdist.pipeline.records.spool import Spool
from swsdist.pipeline.task import Failure, TaskResult
from swsdist.registry.registries import CHAINS
from swsdist.store import parquet

T = TypeVar("T", bound=TaskResult)

#: Tasks that are looked up together.
_BATCH = 8192


@dataclass(frozen=True)
class StepSelection:
    """Which steps to run.

    Attributes:
        until: the last one; all by default.
        redo_from: this one and all later ones are done again.
        only: this one, and no other; earlier ones must be done.
        keep_going: go on after a stage that is wanted whole, although a task of it failed.
        shared: the folder is one of many plans, even where a single one is run now: what has fixed names in it is left out.
    """

    until: str | None = None
    redo_from: str | None = None
    only: str | None = None
    keep_going: bool = False
    shared: bool = False

    def steps(self, chain: Chain) -> list[Step]:
        """Those of a chain, in their order.

        Raises:
            UserError: the chain has no step of a name.
        """
        for name in (self.until, self.redo_from, self.only):
            if name is not None:
                chain.step(name)
        last = self.only or self.until
        names = [step.name for step in chain.steps]
        return list(chain.steps[: len(names) if last is None else names.index(last) + 1])

    def redoes(self, chain: Chain, step: Step) -> bool:
        """Whether a step is done again although it was done."""
        names = [one.name for one in chain.steps]
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
        """Whether the last step of the chain has ended."""
        return all(step.name in self.outcomes for step in self.chain.steps if not step.stage.replaces)

    def inputs(self, step: Step, round: int = 0) -> Inputs:
        """What a step may look at."""
        stage = step.stage
        inputs = Inputs(
            self.config,
            self.ledger,
            self.chain.inputs,
            (stage.name, stage.version),
            {word: tuple(self._made(source) for source in step.sources(word)) for word in step.reads},
            self.outcomes.get(step.name, StepOutcome()),
            round,
            step.name in self.redo,
        )
        inputs.place = stage.place(inputs)
        return inputs

    def _made(self, source: Source) -> InputTable:
        if isinstance(source, ExternalTable):
            return self.ledger.memoize(("elsewhere", *source), lambda: external_table.read(source, self.run.storage))
        name, _, table = source.partition(":")
        step = self.chain.step(name)
        return InputTable(source, table, self.receipts(name), self.place(step))

    def place(self, step: Step) -> str:
        """Root of the folder that a step writes to; the run folder if empty."""
        stage = step.stage
        return stage.place(Inputs(self.config, self.ledger, self.chain.inputs, (stage.name, stage.version)))

    def receipts(self, step: str) -> ReceiptList:
        """Of a step's tasks; none if it has not run."""
        return self.outcomes[step].receipts if step in self.outcomes else ReceiptList()

    def results(self, step: str, kind: type[T]) -> list[T]:
        """What a step's tasks told."""
        return self.receipts(step).results(kind)

    def parts(self, step: str, table: str) -> Parts:
        """Files of a table in the folder that the step writes to.

        Raises:
            KeyError: its stage makes no table of that name.
        """
        if table not in (tables := self.chain.step(step).stage.tables):
            raise KeyError(f"{step} makes no table {table!r}; it makes {', '.join(tables)}")
        return self.receipts(step).parts(table)

    def notices(self) -> list[str]:
        """Warnings about what was made."""
        return self.chain.notices(self) if self.chain.notices is not None else []

    def rejected(self) -> pa.Table:
        """REJECTED: inputs that could not be used, and tasks that failed."""
        if self.chain.rejected is not None:
            return self.chain.rejected(self)
        rows = [row for ended in self.outcomes.values() for receipt in ended.receipts for row in receipt.rejected]
        rows += [failure.row() for ended in self.outcomes.values() for failure in ended.failures]
        return pa.Table.from_pylist(rows, REJECTED)

    def read(self, step: str, table: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """A table, file by file."""
        place = self.place(self.chain.step(step))
        for part in self.parts(step, table):
            yield parquet.read(self.ledger.folder(place), part.name, columns)


@dataclass
class Outcome:
    """How a run went.

    Attributes:
        chain_runs: its plans, by name.
        began: seconds since 1970.
        wall: seconds it took.
        ray_start, ray_stop: seconds; None without Ray.
        single_plan: whether its plan is the only one of the folder.
        preceding: the chain's prerequisite runs, by name.
    """

    ledger: Ledger
    chain_runs: dict[str, ChainRun]
    began: float
    wall: float = 0.0
    ray_start: float | None = None
    ray_stop: float | None = None
    reports: dict[str, object] = field(default_factory=dict)
    single_plan: bool = True
    preceding: dict[str, Outcome] = field(default_factory=dict)

    @property
    def chain_run(self) -> ChainRun:
        """The only plan.

        Raises:
            ValueError: there are several.
        """
        (only,) = self.chain_runs.values()
        return only

    @property
    def tasks_done(self) -> int:
        """Tasks that were done now."""
        return sum(ended.done for chain_run in self.chain_runs.values() for ended in chain_run.outcomes.values())

    @property
    def failures(self) -> list[Failure]:
        """Tasks that failed, each once."""
        found: dict[tuple[str, str], Failure] = {}
        for chain_run in self.chain_runs.values():
            for ended in chain_run.outcomes.values():
                for failure in ended.failures:
                    found.setdefault((failure.task.stage, failure.task.fingerprint), failure)
        return list(found.values())


def prepare_chain_run(
    name: str, config: Config, ledger: Ledger, selection: StepSelection, alone: bool = True
) -> ChainRun:
    """A plan before its first step; if it is not alone in its ledger, without steps whose outputs have fixed names."""
    chain: Chain = CHAINS[config.chain].load()(config, ledger)
    steps = [step for step in selection.steps(chain) if alone or not step.stage.replaces]
    redo = frozenset(step.name for step in steps if selection.redoes(chain, step))
    plan = Plan(
        config.chain,
        without_secrets(config).model_dump(mode="json"),
        [step.name for step in (steps if selection.shared else chain.steps) if alone or not step.stage.replaces],
    )
    return ChainRun(name, config, chain, plan, ledger, steps, redo)


def load_outcome(config: Config) -> Outcome:
    """What is done of a run, without doing anything: of the steps that were begun, what is left counts as failed.

    Raises:
        StoreError: nothing was run in its folder.
    """
    ledger = Ledger(Folder(config.run, config.storage))
    chain_run = prepare_chain_run(ONLY, config, ledger, StepSelection())
    begun = load_plans(ledger.run)[ONLY].steps
    for step in chain_run.steps:
        if step.name not in begun:
            break
        ended = chain_run.outcomes[step.name] = StepOutcome()
        for one in plan_rounds(chain_run, step):
            ended.receipts += one.done
            left = (replace(task, payload=None, common=None) for task in one.left)
            ended.failures += [Failure(task, "not done", "it is not done", 0) for task in left]
        ended.skipped = len(ended.receipts)
        names = Names(ended.receipts.fingerprints)
        chain_run.plan.steps[step.name] = PlannedStep(step.stage.name, names, ended.tasks, chain_run.inputs(step).place)
        chain_run.plan.state = dict(chain_run.chain.inputs.state)
    return Outcome(ledger, {ONLY: chain_run}, time.time())


@dataclass(frozen=True)
class StepRound:
    """A round of a step in a plan.

    Attributes:
        receipts: of its stage.
        place: root of the folder that it writes to.
        names, work: of its tasks, in their order.
        rows: of those that are done, in `receipts`; -1 of others.
        left: those that are not done, each once.
    """

    receipts: Receipts
    place: str
    names: Digits
    work: NDArray[np.float64]
    rows: Rows
    left: Spool

    @property
    def done(self) -> ReceiptList:
        """Receipts of its tasks that are done, in their order."""
        found = ReceiptList()
        found.extend(self.receipts, self.rows[self.rows >= 0])
        return found


def plan_rounds(chain_run: ChainRun, step: Step) -> Iterator[StepRound]:
    """The rounds of a step. What is done is only counted; what is left waits in a file.

    The receipts of a round are to be put into `chain_run.ended` before the next is asked for; the last round that is given is
    the first that has a task left to do.
    """
    for number in range(1_000_000):
        one = _round(chain_run, step, chain_run.inputs(step, number))
        if len(one.names) or number == 0:
            yield one
        if not len(one.names) or not step.stage.rounds or chain_run.outcomes[step.name].failures:
            return


def _round(chain_run: ChainRun, step: Step, inputs: Inputs) -> StepRound:
    stage, left = step.stage, Spool()
    names, work, rows = [np.empty(0, "S32")], [np.empty(0)], [np.empty(0, np.int64)]
    planned = iter(stage.plan(inputs))
    while tasks := list(islice(planned, _BATCH)):
        digits = names_of(task.fingerprint for task in tasks)
        if step.name in chain_run.redo:
            known = np.full(len(tasks), -1, np.int64)
        else:
            known = chain_run.ledger.rows(stage.name, inputs.place, digits)
        for k in np.flatnonzero(known < 0):
            left.put(tasks[k])
        names.append(digits)
        work.append(np.array([task.work for task in tasks], np.float64))
        rows.append(known)
    whole, found = np.concatenate(names), np.concatenate(rows)
    names.clear()  # of a million tasks these are 32 MB
    once = first_of_each(whole[found < 0])
    if len(once) < len(left):
        left = left.only(once)
    receipts = chain_run.ledger.receipts(stage.name, inputs.place)
    return StepRound(receipts, inputs.place, whole, np.concatenate(work), found, left)
