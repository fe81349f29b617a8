"""A measure: the share of queries with references that have at least one hit.

It has a part table of its own, one row for some queries: how many they are, and how many have a hit. Both columns add, so any
split of the queries gives the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa

from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.score.events import Parts, PartTable, Value
from swsdist.score.measures.curve import Ranking
from swsdist.score.measures.protocol import OperatingPoint

SCHEMA = pa.schema([(name, pa.int64()) for name in ("all", "queries", "found")])


def make(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    """The part table of an aligned list, which has all rows of each of its queries."""
    ranking = Ranking.of(aligned)
    queries = len(ranking.ntrue)
    found = {int(query) for query, hits in zip(ranking.query, ranking.hits, strict=True) if hits}
    rows = [{"all": 0, "queries": queries, "found": len(found)}] if queries else []
    return pa.Table.from_pylist(rows, SCHEMA)


class QueriesFound:
    """The value, of the sum of the part tables; `undefined` is what a report says where it is None."""

    parts = (PartTable("found", SCHEMA, ("all",), make),)
    undefined: ClassVar[Mapping[str, str]] = {"queries_found": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by the keys of the entry."""
        rows = parts["found"].table().to_pylist()
        return {"queries_found": rows[0]["found"] / rows[0]["queries"] if rows else None}


#: How the measure is registered: the key, name, best value and decimals of each value.
MEASURE = MeasureEntry(
    f"{__name__}:QueriesFound", 1, (Quantity("queries_found", "queries found", best="highest", decimals=3),)
)
