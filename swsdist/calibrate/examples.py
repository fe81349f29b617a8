"""Statistics of the examples of queries, independent of their candidates.

As the statistics of candidates (`swsdist.calibrate.statistics`), they are named integers that add, by query, example and
scale. Each is a class with an entry in `swsdist.registry.registries.STATISTICS`. They describe the frames of an example,
those that `search.drop` leaves out too, or the audio behind them; audio levels are rounded to quarters of a dB before anything
is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio import speech
from swsdist.calibrate.statistics import Key, Tally
from swsdist.core.codes import calibrate as codes
from swsdist.core.errors import UserError
from swsdist.kernels.regression import logarithm

#: Units of an entropy of 1 nat.
NAT = 1 << 32


class ExampleGroup(NamedTuple):
    """A group of queries, prepared for a search.

    Attributes:
        examples: EXAMPLES.
        dimension: columns of their features.
        posteriors: first column and end column of each track of posteriors.
        features: names of all tracks, for messages.
        audio: samples (float32, full scale 1) and rate (Hz) of what is searched of an example, by query and number; an error
            where it was not made of a recording.
    """

    examples: pa.Table
    dimension: int
    posteriors: tuple[tuple[int, int], ...]
    features: tuple[str, ...]
    audio: Callable[[str, int], tuple[NDArray[np.float32], int]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Query, number, s and frames of each example, and their values: float32 (frames, dimension)."""
        for row in self.examples.to_pylist():
            values = np.frombuffer(row["features"], "<f4").reshape(-1, self.dimension)
            yield {**row, "values": values}


def no_posteriors(features: Iterable[str]) -> UserError:
    """Error for an entropy of features that are not posteriors."""
    return codes.NO_POSTERIOR_FEATURES(where="calibrate.options", features=", ".join(features))


class ExampleLengths:
    """Lengths of the examples of a query."""

    name = "example-lengths"
    version = 1
    quantities = ("examples", "microseconds", "frames")
    reads: Literal["candidates", "examples"] = "examples"

    def of(self, group: ExampleGroup) -> Tally:
        """Measure a group of queries."""
        return Tally(
            self.quantities,
            {
                (row["query_id"], row["example"], 1): (1, round(row["duration"] * 1e6), row["frames"])
                for row in group.rows()
            },
        )


class ExampleEntropies:
    """Entropy of the frames of the examples (nats), summed over all tracks of posteriors, in units of 2^-32."""

    name = "example-entropies"
    version = 1
    quantities = ("frames", "entropy_sum")
    reads: Literal["candidates", "examples"] = "examples"

    def of(self, group: ExampleGroup) -> Tally:
        """Sum up a group of queries.

        Raises:
            UserError: none of the features are posteriors.
        """
        if not group.posteriors:
            raise no_posteriors(group.features)
        values_by_key: dict[Key, tuple[int, ...]] = {}
        for row in group.rows():
            total = 0
            for first, stop in group.posteriors:
                p = row["values"][:, first:stop].astype(np.float64)
                terms = np.zeros_like(p)
                some = p > 0
                terms[some] = -p[some] * logarithm(p[some])
                total += int(np.rint(terms * NAT).astype(np.int64).sum())
            values_by_key[row["query_id"], row["example"], NAT] = row["frames"], total
        return Tally(self.quantities, values_by_key)


class ExampleSpeech:
    """Audible frames (10 ms) of the examples, and how many of them have a speech spectrum (`swsdist.audio.speech`)."""

    name = "example-speech"
    version = 1
    quantities = ("frames", "voiced")
    reads: Literal["candidates", "examples"] = "examples"

    def of(self, group: ExampleGroup) -> Tally:
        """Measure the audio of a group of queries.

        Raises:
            UserError: a query has no recording.
        """
        values_by_key: dict[Key, tuple[int, ...]] = {}
        for row in group.rows():
            key = row["query_id"], row["example"]
            levels = speech.levels(*group.audio(*key))
            voiced = (levels.flatness <= speech.FLAT) & (levels.hum >= speech.HUM)
            values_by_key[*key, 1] = len(voiced), int(np.count_nonzero(voiced))
        return Tally(self.quantities, values_by_key)


def ratios(tally: Tally, over: str, under: str) -> dict[str, float]:
    """Ratio of the sums of two quantities for each query, over all examples; 0 if the denominator is 0.

    Args:
        tally: of examples; sums are weighted by their scales.
        over, under: names of quantities.
    """
    a, b = tally.quantities.index(over), tally.quantities.index(under)
    rows_of_queries: Mapping[str, list[tuple[Key, tuple[int, ...]]]] = tally.by_query()
    result = {}
    for query_id, rows in rows_of_queries.items():
        total_b = sum(row[b] for _, row in rows)
        part = sum((Fraction(row[a], key[2]) for key, row in rows), Fraction(0))
        result[query_id] = float(part / total_b) if total_b else 0.0
    return result
