"""Inputs of a stage: the config, the chain's inputs, and the tables of earlier steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.core.fingerprint import ALL_SLOTS, Naming, fingerprint
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.receipts import Parts, ReceiptList, joined_parts
from swsdist.pipeline.task import P, Part, Receipt, Task, TaskResult

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
        """Its files, with names for `Context.place`."""
        parts = self.receipts.parts(self.table)
        return parts.under(self.root) if self.root else parts

    def made(self, kind: type[R]) -> Iterator[tuple[Receipt, R, list[Part]]]:
        """Its receipts, each with its task's result and its files."""
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
            raise codes.MISSING_CHAIN_INPUTS(stage=self.stage[0], kind=kind.__name__)
        return self.provided

    def receipts(self, input_name: str) -> ReceiptList:
        """Receipts of the tasks that made a table, source after source, in the order of their plan."""
        receipts = ReceiptList()
        for table in self.tables.get(input_name, ()):
            receipts += table.receipts
        return receipts

    def results(self, input_name: str, kind: type[R]) -> list[tuple[Receipt, R]]:
        """Those receipts whose task has a result, each with it."""
        return [(receipt, receipt.result_as(kind)) for receipt in self.receipts(input_name) if receipt.result]

    def made(self, input_name: str, kind: type[R]) -> Iterator[tuple[Receipt, R, list[Part]]]:
        """Those receipts, each with its task's result and its files of the table."""
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
