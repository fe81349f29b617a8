"""A stage plans from its inputs: the config, what its chain knows, and what earlier steps have made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.core.fingerprint import Naming, fingerprint
from swsdist.core.partition import ALL_SLOTS
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.records.lists import Parts, ReceiptList, together
from swsdist.pipeline.task import P, Receipt, Task, TaskResult

T = TypeVar("T", bound=TaskResult)
OfChain = TypeVar("OfChain")


class InputTable(NamedTuple):
    """A table that a step reads.

    Attributes:
        source: where it comes from, as the chain says.
        table: its name there.
        receipts: of the tasks that made its files.
        root: of the folder that they lie in; empty for the run folder.
    """

    source: str
    table: str
    receipts: ReceiptList
    root: str = ""

    @property
    def parts(self) -> Parts:
        """Its files; `name` is as `Context.place` takes it."""
        found = self.receipts.parts(self.table)
        return found.under(self.root) if self.root else found


@dataclass
class Inputs:
    """The inputs of one step of one plan.

    Attributes:
        config: of the plan.
        ledger: of the run.
        knows: what the chain knows before its first step; see `own`.
        stage: name and version of the step's stage.
        made: the tables that it reads, by the stage's words.
        mine: what this step itself has come to so far.
        round: of a stage in rounds, from 0; earlier rounds' receipts are those of `mine`.
        redo: everything is to be done again.
        place: root of the folder that the step writes to; the run folder if empty.
        commits: is called by a stage before `Stage.finish` changes what is there; raises where that is not to be.
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
        """What the chain knows before its first step, as a value of the type that the stage needs.

        Raises:
            UserError: the chain knows something else.
        """
        if not isinstance(self.provided, kind):
            raise codes.MISSING_CHAIN_INPUTS(stage=self.stage[0], kind=kind.__name__)
        return self.provided

    def receipts(self, word: str) -> ReceiptList:
        """Of the tasks that made the files of a table, in the order of their plan; all sources one after the other."""
        found = ReceiptList()
        for made in self.tables.get(word, ()):
            found += made.receipts
        return found

    def results(self, word: str, kind: type[T]) -> list[tuple[Receipt, T]]:
        """The same, each with what its task told."""
        return [(receipt, receipt.result_as(kind)) for receipt in self.receipts(word)]

    def parts(self, word: str) -> Parts:
        """Files of a table; `name` is as `Context.place` takes it."""
        return together([made.parts for made in self.tables.get(word, ())])

    def task(self, *matters: Any, label: str, work: float, payload: P, slots: range = ALL_SLOTS) -> Task[P]:
        """A task of this step.

        Args:
            matters: JSON values, all that its outputs depend on besides the stage and its version.
            label, work, payload, slots: see `Task`.
        """
        return self.named(fingerprint(*self.stage, *matters), label=label, work=work, payload=payload, slots=slots)

    def naming(self, *matters: Any) -> Naming:
        """Names tasks whose `matters` begin alike: what they begin with is read once."""
        return Naming(*self.stage, *matters)

    def named(
        self, name: str, *, label: str, work: float, payload: P, common: Any = None, slots: range = ALL_SLOTS
    ) -> Task[P]:
        """A task of this step that has its name, of `naming`, already."""
        return Task(self.stage[0], name, label, work, payload, self.place, common, slots)
