"""Queries and their places for methods that search lattices: CANDIDATES of places, and query lattices as table rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.config.search import LatticeOptions, Search
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import methods as codes
from swsdist.core.fingerprint import SLOTS, fingerprint, slot_of
from swsdist.core.types import CANDIDATES, columns
from swsdist.lattices.packed import TICK, Packed
from swsdist.methods.method import Unit
from swsdist.store.lattice_shards import Lattices
from swsdist.store.reading import Store

#: A posterior of 1 in candidates.
_CERTAIN = 1 << 40


_ORDER = ("slot", "query_id", "example", "doc_id", "channel", "last", "first")


class Prepared(NamedTuple):
    """Written queries: their ids, and rows of WRITTEN."""

    query_ids: list[str]
    rows: list[dict[str, Any]]


class Places(NamedTuple):
    """Places of terms, each once; all arrays are (places,).

    Attributes:
        term: int64, number of the term.
        document: int64, index in the lattices that were searched.
        start, end: int64, ticks; `end` is exclusive.
        posterior: float64, 0 to 1.
    """

    term: Ints
    document: Ints
    start: Ints
    end: Ints
    posterior: Floats


def candidates(
    query_ids: list[str],
    documents: tuple[list[str], list[int]],
    term: Ints,
    document: Ints,
    start: Ints,
    end: Ints,
    posterior: Floats,
) -> pa.Table:
    """CANDIDATES of places.

    Args:
        query_ids: by term.
        documents: ids and channels, by document.
        term, document: int64 (places,).
        start, end: int64 (places,), ticks, `end` exclusive; a place of no length has one tick.
        posterior: float64 (places,), 0 to 1.
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
    """Sorted CANDIDATES by bucket, without empty ones."""
    table = table.sort_by([(name, "ascending") for name in _ORDER])
    bucket = table["slot"].to_numpy().astype(np.int64) * buckets // SLOTS
    cuts = [*np.flatnonzero(np.diff(bucket, prepend=-1)).tolist(), len(bucket)]
    for first, stop in pairwise(cuts):
        yield table.slice(first, stop - first)


def span_columns(query_id: str, example: int, lattices: Lattices, rows: Ints, unit: int) -> pa.Table:
    """CANDIDATES of matches of an example.

    Args:
        query_id, example: of the example.
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


def shard_units(store: Store) -> Iterator[Unit]:
    """One unit per shard."""
    for shard in store.manifest.shards:
        matters = fingerprint(shard.name, sorted(store.live(shard.name)))
        yield Unit((shard.name,), matters, shard.documents, shard.frames)


def demand_unset(settings: Search, besides: Collection[str] = ()) -> None:
    """Refuse keys of the section `search` that a method of lattices does not use.

    Args:
        settings: the section.
        besides: keys that it uses, with `method` and `method_options`.

    Raises:
        ConfigError: another key is set.
    """
    for key in settings.changed():
        if key not in ("method", "method_options", *besides):
            raise codes.UNUSED_SEARCH_KEY(where=f"search.{key}", method=settings.method, key=key)


#: Most labels of a path of a query: a cell of `swsdist.kernels.lattice_edits` counts them in 10 bits.
MOST_LABELS = 1023

#: A row an example; arrays as in `swsdist.store.lattice_shards.LATTICES`, but of doubles, labels are places in `texts`.
QUERY_LATTICES = columns(
    "query_id string, example int32, texts string[], ticks int64, times large_binary, visits large_binary, "
    "arcs large_binary, steps large_binary, labels large_binary, chances large_binary"
)

_TYPES = {"times": "<i4", "visits": "<f8", "arcs": "<i4", "steps": "<i4", "labels": "<i4", "chances": "<f8"}


def query_row(query_id: str, example: int, packed: Packed) -> dict[str, Any]:
    """The row of an example.

    Raises:
        TermError: a path has more labels than can be aligned.
    """
    labels = _longest(packed)
    if labels > MOST_LABELS:
        raise codes.TOO_MANY_LABELS(where=query_id, labels=labels, most=MOST_LABELS)
    values = packed._asdict()
    arrays = {name: values[name].astype(dtype).tobytes() for name, dtype in _TYPES.items()}
    return {"query_id": query_id, "example": example, "texts": list(packed.texts), "ticks": packed.ticks, **arrays}


def _longest(packed: Packed) -> int:
    """Labels of the path that has most."""
    longest = np.zeros(len(packed.times), np.int64)
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    labelled = (packed.labels > 0).tolist()
    for arc, (here, step) in enumerate(zip(source.tolist(), packed.steps.tolist(), strict=True)):
        longest[here + step] = max(longest[here + step], longest[here] + labelled[arc])
    return int(longest.max(initial=0))


def packed_of(row: dict[str, Any]) -> Packed:
    """The lattice of a row."""
    arrays: dict[str, Any] = {name: np.frombuffer(row[name], dtype) for name, dtype in _TYPES.items()}
    return Packed(texts=tuple(row["texts"]), ticks=row["ticks"], **arrays)


def linear(sequences: Sequence[tuple[Sequence[str], float]]) -> Packed:
    """A lattice of written alternatives: a path for each, whose probability is its share of the weights.

    Args:
        sequences: labels and weight of each, at least one.
    """
    numbers: dict[str, int] = {"": 0}
    total = sum(weight for _, weight in sequences)
    states = 1 + sum(len(labels) - 1 for labels, _ in sequences) + 1
    last = states - 1
    arcs: list[tuple[int, int, int, float]] = []
    free = 1
    for labels, weight in sequences:
        state, chance = 0, weight / total
        for k, label in enumerate(labels):
            following = last if k == len(labels) - 1 else free
            free += following == free
            arcs.append((state, following, numbers.setdefault(label, len(numbers)), chance))
            state, chance = following, 1.0
    arcs.sort()
    source, target, label_of, chances = (np.array(column) for column in zip(*arcs, strict=True))
    return Packed(
        np.zeros(states, np.int32),
        np.ones(states),
        np.bincount(source, minlength=states).astype(np.int32),
        (target - source).astype(np.int32),
        label_of.astype(np.int32),
        chances.astype(np.float64),
        tuple(numbers),
        0,
    )
