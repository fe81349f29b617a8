"""Tables of other runs that a chain reads, named by run, step and table."""

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
        table: `step:table` in that run.
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
        StoreError: the folder holds no run, or the step is not done.
    """
    folder = Folder(source.run, storage)
    plans = load_plans(folder)
    step, _, table = source.table.partition(":")
    if source.plan not in plans or step not in plans[source.plan].steps:
        raise codes.NO_SUCH_SOURCE(
            where=folder.path(),
            step=step,
            plan=source.plan,
            plans=", ".join(plans),
            steps=", ".join(plans[next(iter(plans))].steps),
        )
    planned = plans[source.plan].steps[step]
    receipts = receipts_of(Ledger(folder), planned)
    if len(receipts) < planned.planned:
        raise codes.INCOMPLETE_SOURCE(where=folder.path(), step=step)
    return InputTable(str(source), table, receipts, planned.place or folder.root)
