"""Schema of query lattices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from swsdist.core.codes import methods as codes
from swsdist.core.types import columns
from swsdist.lattices.packed import Packed

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
    """A lattice of written alternatives: a path each, its chance its weight's share.

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
