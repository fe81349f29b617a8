"""Steps of a chain on tables in memory: a question in a store without a run, or steps of another chain within a task.

The steps are those of the chain, planned and run as in a run; their tables stay in memory, and nothing is published. Some
tables are given. A step that needs more than a question has (`Stage.needs_run`) is left out: if it replaces a table, that table
is handed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.pipeline.chain import ChainInputs, Context, ExternalTable, Source, Step, makers_of
from swsdist.pipeline.inputs import Inputs, InputTable
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.receipts import ReceiptList
from swsdist.pipeline.task import Cost, Part, Receipt, Task, TaskResult


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
    """Some steps of a chain, and what they make of given tables.

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
