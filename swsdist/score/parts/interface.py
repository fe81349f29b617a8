"""Interface of measures and their part tables.

A measure does not process detections. It names **part tables**: counts of some queries, given all rows of these queries. A
part table has a key, with rows ascending; further integer columns are summed for equal keys, so tables of any partition of the
queries merge to the same table, in any order. A measure's values come from the merged tables alone::

    trials of a bucket --PartTable.make--> tables --Merged--> tables of all queries --Measure.values--> numbers

A new measure is a class with the attributes of `Measure`, without arguments, and an entry in
`swsdist.registry.registries` with the label, format and best direction of each of its values; other packages use an
entry point of the group `swsdist.measures`. `swsdist.testing.conformance` checks a measure.
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
        name: short, unique; also the file name of stored parts.
        schema: the key columns first. A float key has no NaN and no -0.0.
        key: the leading columns, unique in a merged table; rows ascend by them.
        make: computes it from the aligned list of some queries (TRIALS, all rows of each), at an operating point.
        adds: whether the other columns, all int64, are summed for equal keys. Tables by query need not: keys are never equal.
        by_document: `make` always receives document trials.
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
            places: the documents, if they are places in the recordings named by the list.

        Raises:
            TableError: a key is duplicate, or `make` returned another schema.
        """
        table = self.make(pairs_of(aligned, places) if self.by_document else aligned, point)
        return check_part(table, self.schema, self.key, self.name)

    def zero(self) -> pa.Table:
        """The table of nothing."""
        return self.schema.empty_table()


#: The merged tables of a list by the name of their part table.
Parts = Mapping[str, Merged]


class Measure(Protocol):
    """Interface of registered measures.

    Attributes:
        parts: its part tables.

    `undefined`, if a measure has it, says by key why a value is undefined, in words for reports; the empty key is for all
    others.
    """

    @property
    def parts(self) -> tuple[PartTable, ...]: ...

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by the keys of its entry; missing ones and None are undefined."""
        ...
