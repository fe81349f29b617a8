"""What a method is: how a group of queries and a store become candidates.

::

    units = method.plan(store)                      how a search of the store is cut: shards that are looked at together
    queries = method.prepare(table, store)          a group's queries, ready for any number of units
    result = method.search(queries, store, shards)  candidates, a table a bucket
    table = method.rescore(queries, store, spans)   the best match inside each of some given spans

A method sees only what it takes: text never reaches a spoken one. A candidate has a cost and a scale of its own, and its score
is ``-cost / scale``; what kind of score that is (`cost`, `posterior`, `llr`) decides which steps of calibration may follow.

A method is registered in `swsdist.registry.registries.METHODS` by a maker that takes the config's section `search`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from swsdist.core.partition import SLOTS
from swsdist.core.types import CANDIDATES
from swsdist.store.reading import Store

#: Where the best match of a query is asked for: the ticks first..last (both inclusive) of a document.
SPANS = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("doc_id", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("first", pa.int64(), False),
        pa.field("last", pa.int64(), False),
    ]
)


class Unit(NamedTuple):
    """A part of a store that a task searches.

    Attributes:
        shards: names.
        matters: JSON values, all of the store that its candidates depend on.
        documents: in it.
        frames: in it, or what else its work grows with.
    """

    shards: tuple[str, ...]
    matters: Any
    documents: int
    frames: int


class Result(NamedTuple):
    """What was found.

    Attributes:
        tables: CANDIDATES, a table a bucket that has any, in the order of slots.
        candidates: how many.
        cells: query frames x document frames that were looked at.
        fill: how much of the lanes was frames of documents, 0 to 1; None where no lanes were used.
        saturated: frames of both sides that the distance's cap has shortened.
    """

    tables: Iterator[pa.Table]
    candidates: int
    cells: int = 0
    fill: float | None = None
    saturated: int = 0


def by_bucket(rows: list[dict[str, Any]], buckets: int) -> Iterator[pa.Table]:
    """Rows of CANDIDATES as `Result.tables`, for a method that has few."""
    of = [row["slot"] * buckets // SLOTS for row in rows]
    for bucket in sorted(set(of)):
        mine = [row for row, at in zip(rows, of, strict=True) if at == bucket]
        yield pa.Table.from_pylist(sorted(mine, key=lambda row: [row[name] for name in CANDIDATES.names]), CANDIDATES)


@runtime_checkable
class Method(Protocol):
    """Of one config.

    What it takes, reads and gives stands in its entry (`swsdist.registry.entries.MethodEntry`).
    """

    def matters(self) -> Any:
        """All options that candidates depend on, with versions, JSON values; name and version of the method are added."""
        ...

    def plan(self, store: Store) -> Iterator[Unit]:
        """How a search of the store is cut; the same candidates however it is."""
        ...

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """What the work of a group grows with, of so many queries, examples, and frames of all examples: the frames."""
        return frames

    def warm(self) -> None:
        """Load what the first search would have to load; nothing by default."""
        return

    def prepare(self, queries: pa.Table, store: Store) -> Any:
        """A group's queries, ready to be searched.

        Raises:
            DataError: they do not fit the store.
        """
        ...

    def search(self, queries: Any, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """All candidates of the queries in some shards.

        Args:
            queries: what `prepare` gave.
            store: the same.
            shards: of a unit of `plan`.
            buckets: that the slots are cut into: a row group each.
        """
        ...

    def rescore(self, queries: Any, store: Store, spans: pa.Table) -> pa.Table:
        """The best match of each query inside a span of ticks, whether it would be a candidate or not.

        Args:
            spans: SPANS.

        Returns:
            CANDIDATES, one for each span that can hold a match, in the order of the spans.
        """
        ...
