"""Tables of other runs that a chain reads, named by run and label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from swsdist.core.codes import pipeline as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inputs import InputTable
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.plan import ONLY, load_plans, receipts_of


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
        raise codes.NO_SUCH_SOURCE(
            where=folder.path(),
            table=source.table,
            plan=source.plan,
            plans=", ".join(plans),
            tables=", ".join(label for step in plans[next(iter(plans))].steps.values() for label in step.tables),
        )
    planned = makers[name]
    receipts = receipts_of(Ledger(folder), planned)
    if len(receipts) < planned.planned:
        raise codes.INCOMPLETE_SOURCE(where=folder.path(), step=name)
    return InputTable(str(source), planned.tables[source.table], receipts, planned.place or folder.root)
