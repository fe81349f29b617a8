"""What a measure is, and what it counts in.

A measure does not see detections. It names **part tables**: what is counted of some queries, given all rows of these queries. A
part table has a key, whose rows ascend; further integer columns add up where keys are equal, so tables of any partition of the
queries merge to the same table, in any order. A measure's values come from the merged tables alone::

    trials of a bucket --PartTable.make--> tables --Merged--> tables of all queries --Measure.values--> numbers

A new measure is a class with what `Measure` lists, made without arguments, and an entry in `swsdist.registry.registries`,
which says how each of its values is called and shown, and which is best; a stranger's is
an entry point of the group `swsdist.measures`. `swsdist.testing.conformance` tells whether it keeps the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from swsdist.corpora.places import Places
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.merging import Merged, check_part
from swsdist.score.trials.documents import pairs_of

Value = float | None


@dataclass(frozen=True)
class PartTable:
    """A table that adds.

    Attributes:
        name: short, unique; a file name of it is made where parts are stored.
        schema: the key columns first. A float key holds no NaN and no -0.0.
        key: the leading columns that no two rows of a merged table share; rows ascend by them.
        make: of the aligned list of some queries (schema TRIALS, all rows of each), at an operating point.
        adds: whether the other columns, all int64, add up where keys are equal. A table by query need not: its keys never meet.
        by_document: `make` gets the list as one of document trials, whatever the trials are.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    make: Callable[[pa.Table, OperatingPoint], pa.Table]
    adds: bool = True
    by_document: bool = False

    def of(self, aligned: pa.Table, point: OperatingPoint, places: Places | None = None) -> pa.Table:
        """The table of some queries, checked against the schema and ordered by key.

        Args:
            aligned: schema TRIALS, all rows of each query.
            point: the operating point.
            places: the documents, where these are places in the recordings that the list names.

        Raises:
            TableError: a key is there twice, or `make` gave another schema.
        """
        table = self.make(pairs_of(aligned, places) if self.by_document else aligned, point)
        return check_part(table, self.schema, self.key, self.name)

    def zero(self) -> pa.Table:
        """The table of nothing."""
        return self.schema.empty_table()


#: The merged tables of a list by the name of their part table.
Parts = Mapping[str, Merged]


class Measure(Protocol):
    """What the registry of measures holds.

    Attributes:
        parts: the tables that it needs.
        undefined: by key, when its value is not defined, in words that a report shows; of keys that are not named that of the
            empty one. A measure need not have it.
    """

    @property
    def parts(self) -> tuple[PartTable, ...]: ...

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by the keys that its entry gives; one that is not there is not defined, as is None."""
        ...
