"""Written queries and their places, between the method lattice and its search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import LatticeOptions
from swsdist.core.fingerprint import SLOTS, slot_of
from swsdist.core.types import CANDIDATES
from swsdist.lattices.packed import TICK
from swsdist.store.lattice_shards import Lattices

#: A posterior of 1 in candidates.
_CERTAIN = 1 << 40


_ORDER = ("slot", "query_id", "example", "doc_id", "channel", "last", "first")


class Prepared(NamedTuple):
    """Written queries: their ids, and rows of WRITTEN."""

    query_ids: list[str]
    rows: list[dict[str, Any]]


class Places(NamedTuple):
    """Places of terms, each once: term, document (of the lattices searched), start and end (ticks, exclusive), posterior."""

    term: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    posterior: NDArray[np.float64]


def candidates(
    query_ids: list[str],
    documents: tuple[list[str], list[int]],
    term: NDArray[np.int64],
    document: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    posterior: NDArray[np.float64],
) -> pa.Table:
    """CANDIDATES of places.

    Args:
        query_ids: by term.
        documents: ids and channels, by document.
        term, document: of each place.
        start, end: ticks, `end` exclusive; a place of no length has one tick.
        posterior: 0 to 1.
    """
    slots = np.array([slot_of(query_id) for query_id in query_ids], np.int32)
    columns = {
        "slot": slots[term],
        "query_id": pa.array(query_ids, pa.string()).take(pa.array(term)),
        "example": np.ones(len(term), np.int32),
        "doc_id": pa.array(documents[0], pa.string()).take(pa.array(document)),
        "channel": pa.array(documents[1], pa.int32()).take(pa.array(document)),
        "first": start,
        "last": np.maximum(end - 1, start),
        "cost": -np.rint(np.minimum(posterior, 1.0) * _CERTAIN).astype(np.int64),
        "scale": np.full(len(term), _CERTAIN),
    }
    return pa.table([columns[name] for name in CANDIDATES.names], schema=CANDIDATES)


def gap_ticks(options: LatticeOptions) -> int:
    """Greatest gap between two words, ticks."""
    return round(options.gap / TICK)


def by_buckets(table: pa.Table, buckets: int) -> Iterator[pa.Table]:
    """CANDIDATES in order, those of each bucket that has any."""
    table = table.sort_by([(name, "ascending") for name in _ORDER])
    bucket = table["slot"].to_numpy().astype(np.int64) * buckets // SLOTS
    cuts = [*np.flatnonzero(np.diff(bucket, prepend=-1)).tolist(), len(bucket)]
    for first, stop in pairwise(cuts):
        yield table.slice(first, stop - first)


def span_columns(query_id: str, example: int, lattices: Lattices, rows: NDArray[np.int64], unit: int) -> pa.Table:
    """CANDIDATES of matches of an example.

    Args:
        query_id, example: of it.
        lattices: that were searched.
        rows: int64 (matches, 5): lattice, first tick, tick after the last, cost in units, and labels.
        unit: of costs.
    """
    count = len(rows)
    document = pa.array(rows[:, 0])
    columns = {
        "slot": np.full(count, slot_of(query_id), np.int32),
        "query_id": pa.array([query_id] * count, pa.string()),
        "example": np.full(count, example, np.int32),
        "doc_id": pa.array(lattices.doc_ids, pa.string()).take(document),
        "channel": pa.array(lattices.channels, pa.int32()).take(document),
        "first": rows[:, 1],
        "last": np.maximum(rows[:, 2] - 1, rows[:, 1]),
        "cost": rows[:, 3],
        "scale": rows[:, 4] * unit,
    }
    return pa.table([columns[name] for name in CANDIDATES.names], schema=CANDIDATES)
