"""The posterior sum S(w): the sum of the probabilities of a term's detections, an estimate of how often it occurs.

Sums are exact, so any partition of a list in any order gives the same bytes: each probability is rounded to the nearest
multiple of 2^-62 (exact from 0.001 upwards; below it the rounding is less than 1e-16 of it down to 0.0001, and never
more than 1.1e-19), the multiples are added as integers, and S(w) is the float64 nearest to their sum. Sums of parts add.

Source: Wang and Metze 2014, "An in-depth comparison of keyword specific thresholding and sum-to-one score
normalization", section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.core.codes import calibrate as codes
from swsdist.kernels.coding import coded

Floats = NDArray[np.float64]

#: Units of a probability of 1.
UNIT = 1 << 62


@dataclass(frozen=True)
class PosteriorSums:
    """S(w) of some queries; instances add, with a zero.

    Attributes:
        units: sum of each query's probabilities, in units of 2^-62.
    """

    units: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table) -> PosteriorSums:
        """Sum the probabilities of DETECTIONS or TRIALS; rows without score (misses) add nothing.

        Raises:
            UserError: a score is not a probability.
        """
        detections = table.filter(pc.is_valid(table["score"]))
        names, query = coded(detections["query_id"])
        return cls(dict(zip(names, sums(query, checked(detections["score"].to_numpy())), strict=True)))

    def __add__(self, other: PosteriorSums) -> PosteriorSums:
        units = dict(self.units)
        for query_id, value in other.units.items():
            units[query_id] = units.get(query_id, 0) + value
        return PosteriorSums(units)

    def values(self, query_ids: Iterable[str]) -> Floats:
        """S(w) of each query, 0 without detections; float64."""
        return np.array([self.units.get(query_id, 0) / UNIT for query_id in query_ids], dtype=np.float64)


def sums(groups: NDArray[np.integer], probability: Floats) -> list[int]:
    """Exact sums by group, in units of 2^-62.

    Args:
        groups: integers (n,) from 0, without gaps.
        probability: float64 (n,), in [0, 1].
    """
    if not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order], prepend=-1))
    units = np.rint(np.ldexp(probability[order], 62)).astype(np.int64)
    # Halves of 31 bits: their sums stay inside 64 bits for up to 2^32 rows.
    high, low = (np.add.reduceat(half, first).tolist() for half in (units >> 31, units & 0x7FFFFFFF))
    return [(a << 31) + b for a, b in zip(high, low, strict=True)]


def checked(scores: ArrayLike) -> Floats:
    """Scores as probabilities.

    Raises:
        UserError: one is not in [0, 1].
    """
    values = np.asarray(scores, dtype=np.float64)
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if bad.size:
        raise codes.NOT_PROBABILITIES(count=bad.size, of=values.size, score=values.flat[bad[0]])
    return values
