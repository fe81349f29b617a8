"""Means and variances of frames, for normalisation.

A document's statistics are computed once, during indexing, and stored next to it; the stored frames are unnormalised.
Those of a speaker and of the entire collection are merged from the documents' in the order of their keys, so they do
not depend on shards. They are frozen when first indexed, so that results do not change when a store grows.

A query that is a separate cut is not normalised by its own statistics alone, because the mean of half a second is
unreliable. It uses the statistics of its speaker, if the store knows the speaker, or those of the collection; its own
mean may count beside theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from swsdist.core.arrays import Floats, Ints, Singles


@dataclass(frozen=True)
class Statistics:
    """Count, mean and sum of squared deviations per dimension; addable (Chan, Golub and LeVeque 1979).

    Attributes:
        frames: number of frames.
        mean: float64 (dimension,).
        scatter: float64 (dimension,), sum of squared deviations from the mean.
    """

    frames: int
    mean: Floats
    scatter: Floats

    @classmethod
    def zero(cls, dimension: int) -> Statistics:
        """Statistics of no frames."""
        return cls(0, np.zeros(dimension), np.zeros(dimension))

    @classmethod
    def of(cls, frames: Singles) -> Statistics:
        """Statistics of a block of frames, float32 (frames, dimension)."""
        values = frames.astype(np.float64)
        mean = values.mean(axis=0)
        return cls(len(values), mean, ((values - mean) ** 2).sum(axis=0))

    @classmethod
    def from_variance(cls, frames: int, mean: Iterable[float], variance: Iterable[float]) -> Statistics:
        """Statistics from the columns of a store's tables."""
        return cls(frames, np.array(list(mean)), np.array(list(variance)) * frames)

    @classmethod
    def side_by_side(cls, parts: Sequence[Statistics]) -> Statistics:
        """Concatenate the columns of several statistics; `frames` is their minimum. A single one is unchanged."""
        if len(parts) == 1:
            return parts[0]
        frames = min(part.frames for part in parts)
        mean = np.concatenate([part.mean for part in parts])
        return cls.from_variance(frames, mean, np.concatenate([part.variance for part in parts]))

    def __add__(self, other: Statistics) -> Statistics:
        frames = self.frames + other.frames
        if frames == 0:
            return self
        difference = other.mean - self.mean
        return Statistics(
            frames,
            self.mean + difference * (other.frames / frames),
            self.scatter + other.scatter + difference**2 * (self.frames * other.frames / frames),
        )

    def near(self, other: Statistics, weight: float) -> Statistics:
        """The variance of these frames, and a mean between theirs, which counts as `weight` frames, and that of `other`.

        Source: maximum a posteriori means: Gauvain and Lee (1994), "Maximum a posteriori estimation for multivariate Gaussian
        mixture observations of Markov chains".
        """
        mean = (weight * self.mean + other.frames * other.mean) / (weight + other.frames)
        return Statistics(self.frames, mean, self.scatter)

    def of_columns(self, columns: Ints) -> Statistics:
        """Statistics of some columns; `columns` are int64 (n,)."""
        return Statistics(self.frames, self.mean[columns], self.scatter[columns])

    def pooled(self, other: Statistics) -> Statistics:
        """Statistics of the frames of both, with the unbiased variance, as in SUPERB's query-by-example task."""
        both = self + other
        return Statistics(both.frames, both.mean, both.scatter * (both.frames / max(both.frames - 1, 1)))

    @property
    def variance(self) -> Floats:
        """Mean squared deviation, float64 (dimension,)."""
        return self.scatter / max(self.frames, 1)

    def offset_and_scale(self, normalise: str) -> tuple[Floats, Floats]:
        """Offset and scale, float64 (dimension,) each, which `prepare` subtracts from frames and divides them by.

        A constant dimension is divided by 1.

        Args:
            normalise: `none`, `mean` or `mean-variance`.
        """
        zeros, ones = np.zeros_like(self.mean), np.ones_like(self.mean)
        if normalise == "none":
            return zeros, ones
        if normalise == "mean":
            return self.mean, ones
        return self.mean, np.where(self.variance > 0, np.sqrt(self.variance), 1.0)
