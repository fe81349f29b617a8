"""A search method: compare a query and a stretch of its length by the sums of their frames.

Coordinates are multiples of 1 / ONE, so sums are exact, and candidates do not depend on how the work is split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.arrays import Ints, Singles
from swsdist.core.fingerprint import fingerprint, slot_of
from swsdist.core.types import CANDIDATES
from swsdist.methods.method import Method, Result, Unit, by_bucket
from swsdist.registry.entries import MethodEntry
from swsdist.store.reading import Store

ONE = 64


class Example(NamedTuple):
    """An example of a query: its frames, and their sum."""

    query_id: str
    number: int
    frames: int
    total: Ints


class Bag(Method):
    """The best stretch of each document, for each example of a query."""

    def __init__(self, search: Search) -> None:
        """It has no options."""

    def matters(self) -> Any:
        """All options that candidates depend on."""
        return [ONE]

    def plan(self, store: Store) -> Iterator[Unit]:
        """One unit per shard, with all of the store that its candidates depend on."""
        whole = store.statistics()["collection", ""]
        common = [whole.mean.tolist(), whole.variance.tolist()]
        for shard in store.manifest.shards:
            matters = fingerprint(common, shard.name, sorted(store.live(shard.name)))
            yield Unit((shard.name,), matters, shard.documents, shard.frames)

    def prepare(self, queries: pa.Table, store: Store) -> list[Example]:
        """The sums of the examples, from rows of EXAMPLES."""
        prepared = []
        for row in queries.to_pylist():
            frames = np.frombuffer(row["features"], "<f4").reshape(row["frames"], -1)
            prepared.append(Example(row["query_id"], row["example"], len(frames), _integers(frames, store).sum(axis=0)))
        return prepared

    def search(self, queries: list[Example], store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """Search the documents of some shards."""
        rows: list[dict[str, Any]] = []
        for shard in shards:
            for doc_id, channel in sorted(store.live(shard)):
                sums = _sums(doc_id, channel, store)
                for query in queries:
                    rows += _best(query, doc_id, channel, sums, 0, len(sums) - 2)
        cells = len(queries) * sum(store.manifest.shard(shard).frames for shard in shards)
        return Result(by_bucket(rows, buckets), len(rows), cells)

    def rescore(self, queries: list[Example], store: Store, spans: pa.Table) -> pa.Table:
        """The best stretch inside each span; none where the query is longer."""
        rows: list[dict[str, Any]] = []
        for span in spans.to_pylist():
            sums = _sums(span["doc_id"], span["channel"], store)
            first, last = max(0, span["first"]), min(span["last"], len(sums) - 2)
            examples = (query for query in queries if query.query_id == span["query_id"])
            matches = [
                row for query in examples for row in _best(query, span["doc_id"], span["channel"], sums, first, last)
            ]
            rows += sorted(matches, key=lambda row: float(row["cost"] / row["scale"]))[:1]
        return pa.Table.from_pylist(rows, CANDIDATES)


def _integers(frames: Singles, store: Store) -> Ints:
    """Frames less the collection's mean, over its deviation, as integers."""
    whole = store.statistics()["collection", ""]
    return np.rint((frames.astype(np.float64) - whole.mean) / np.sqrt(whole.variance) * ONE).astype(np.int64)


def _sums(doc_id: str, channel: int, store: Store) -> Ints:
    """Row t is the sum of the document's frames before t."""
    frames = _integers(store.features(doc_id, channel), store)
    return np.vstack([np.zeros_like(frames[:1]), np.cumsum(frames, axis=0)])


def _best(query: Example, doc_id: str, channel: int, sums: Ints, first: int, last: int) -> list[dict[str, Any]]:
    """The row of CANDIDATES of the best stretch that begins at `first` or later and ends at `last` at the latest."""
    frames = query.frames
    if last - first + 1 < frames:
        return []
    ends = np.arange(first + frames, last + 2)
    costs = np.abs(sums[ends] - sums[ends - frames] - query.total).sum(axis=1)
    best = int(costs.argmin())
    begin, cost, scale = first + best, int(costs[best]), frames * ONE * len(query.total)
    values = (slot_of(query.query_id), query.query_id, query.number, doc_id, channel)
    return [dict(zip(CANDIDATES.names, (*values, begin, begin + frames - 1, cost, scale), strict=True))]


#: How the method is registered: it takes spoken queries, reads a store of frames, and gives a cost.
METHOD = MethodEntry(f"{__name__}:Bag", 1)
