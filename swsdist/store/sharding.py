"""Cut documents into shards: consecutive, complete, up to a target length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.types import DOCUMENTS
from swsdist.store.parquet import SpooledDocuments

#: Most documents in a shard: a search's memory grows with them, by a candidate per document and query.
MOST_DOCUMENTS = 4096
#: Most row groups in a documents table: one per shard, so a search reads only that of its shard.
_MOST_GROUPS = 4096


def cut(seconds: Sequence[float], target: float, shards: int | None = None) -> list[range]:
    """Consecutive ranges of documents.

    A shard is closed when it reaches the target, which its last document may exceed, or holds `MOST_DOCUMENTS`.

    Args:
        seconds: length of each document.
        target: seconds of audio per shard.
        shards: cut into this many instead, as evenly as complete documents allow; fewer only if there are fewer
            documents.
    """
    if shards is not None:
        return _cut_into(seconds, min(shards, len(seconds)))
    ranges: list[range] = []
    first, filled = 0, 0.0
    for k, length in enumerate(seconds):
        filled += length
        if filled >= target * (1 - 1e-9) or k + 1 - first >= MOST_DOCUMENTS:
            ranges.append(range(first, k + 1))
            first, filled = k + 1, 0.0
    return [*ranges, range(first, len(seconds))] if first < len(seconds) else ranges


def _cut_into(seconds: Sequence[float], shards: int) -> list[range]:
    """Cut into `shards` ranges, at most one per document; each ends at its share of the total."""
    total = sum(seconds)
    ranges: list[range] = []
    first, passed = 0, 0.0
    for k, length in enumerate(seconds):
        passed += length
        required = shards - len(ranges) - 1  # shards to come
        left = len(seconds) - k - 1
        reached = passed >= total * (len(ranges) + 1) / shards * (1 - 1e-9)
        if left == required or (reached and required > 0):
            ranges.append(range(first, k + 1))
            first = k + 1
    return ranges


def by_shard(documents: SpooledDocuments) -> Iterator[pa.Table]:
    """A table for each shard's consecutive documents; for several shards if there are very many."""
    names, count = documents.read(["shard"])["shard"], documents.num_rows
    changes = pc.not_equal(names.slice(1), names.slice(0, max(0, count - 1)))
    borders = [0, *(np.flatnonzero(changes) + 1).tolist(), count]
    every = -(-len(borders) // _MOST_GROUPS)
    del names, changes
    pieces, held = documents.pieces(), DOCUMENTS.empty_table()
    for first, last in pairwise([*borders[:-1:every], count]):
        some = [held]
        while sum(table.num_rows for table in some) < last - first:
            some.append(next(pieces))
        joined = pa.concat_tables(some)
        yield joined.slice(0, last - first)
        held = joined.slice(last - first)
