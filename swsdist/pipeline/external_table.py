"""A chain may read tables of other runs, which it names by run, step and table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from swsdist.core.codes import pipeline as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inputs import InputTable
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.plan import ONLY, load_plans, receipts_of


class ExternalTable(NamedTuple):
    """A table of another run. Its files' content identifies it, whatever their names are.

    Attributes:
        run: its folder.
        table: `step:table` there.
        plan: which of its plans.
    """

    run: str
    table: str
    plan: str = ONLY

    def __str__(self) -> str:
        return f"{self.run}:{self.plan}:{self.table}"


def read(source: ExternalTable, storage: Mapping[str, Any]) -> InputTable:
    """What another run has made.

    Raises:
        StoreError: it is no run, or it has not made that table to its end.
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
    found = receipts_of(Ledger(folder), planned)
    if len(found) < planned.planned:
        raise codes.INCOMPLETE_SOURCE(where=folder.path(), step=step)
    return InputTable(str(source), table, found, planned.place or folder.root)
