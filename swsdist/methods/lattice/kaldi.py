"""The answers of Kaldi's kws-search from a store of lattices: its clusters, its sums, and the hits that it loses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swsdist.lattices.kws_search import Alternative, Factors
from swsdist.methods.lattice.automaton import Written
from swsdist.methods.lattice.places import Places
from swsdist.store.lattice_shards import Lattices


def kaldi_places(
    lattices: Lattices,
    written: Sequence[Written],
    numbers: Mapping[str, int],
    gap: int,
    least: float,
    chosen: NDArray[np.bool_],
) -> Places:
    """Hits of terms, with their posteriors, at most 1.

    Args:
        lattices: to be searched.
        written: sequences of labels of the terms, without patterns.
        numbers: labels of the shard by text.
        gap: greatest length of a silence arc between two words, ticks.
        least: least posterior of a hit.
        chosen: bool (documents,), those to search.
    """
    alternatives: dict[int, list[Alternative]] = defaultdict(list)
    for item in written:
        alternatives[item.term].append(Alternative(-float(np.log(item.weight)), item.labels))
    rows: list[tuple[int, int, int, int, float]] = []
    for place in np.flatnonzero(chosen).tolist():
        factors = _factors(lattices, place, numbers, gap)
        for number, spoken in alternatives.items():
            for cost, first, last in factors.hits(spoken):
                if (posterior := min(1.0, float(np.exp(-cost)))) >= least:
                    rows.append((number, place, first, last, posterior))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    term, document, start, end = (np.array(column, np.int64) for column in columns[:4])
    return Places(term, document, start, end, np.array(columns[4], np.float64))


def _factors(lattices: Lattices, document: int, numbers: Mapping[str, int], gap: int) -> Factors:
    first, stop = lattices.documents[document : document + 2].tolist()
    arcs = slice(lattices.first[first], lattices.first[stop])
    source = np.repeat(np.arange(stop - first), np.diff(lattices.first[first : stop + 1]))
    with np.errstate(divide="ignore"):
        log_chances, log_visits = np.log(lattices.chances[arcs]), np.log(lattices.visits[first:stop])
    return Factors(
        lattices.times[first:stop].tolist(),
        source.tolist(),
        (source + lattices.steps[arcs]).tolist(),
        lattices.labels[arcs].tolist(),
        numbers,
        log_chances.tolist(),
        log_visits.tolist(),
        gap,
    )
