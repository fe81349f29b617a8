"""What the steps of calibration may want to know of the examples of queries themselves, whatever was found for them.

As the statistics of candidates (`swsdist.calibrate.statistics`) these are named integers that add, by query, example and scale,
each a class and a line in `swsdist.registry.registries.STATISTICS`. They are of the frames that are searched, or of the sound
that these were made of; the latter is rounded to quarters of a dB before anything is counted.
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

#: An entropy of 1 nat is this many units.
NAT = 1 << 32


class ExampleGroup(NamedTuple):
    """A group of queries, as it was made for a search.

    Attributes:
        examples: EXAMPLES.
        dimension: columns of their features.
        posteriors: first column, and the one after the last, of each track that is posteriors.
        features: names of all tracks, for messages.
        heard: samples (float32, full scale 1) and rate (Hz) of what is searched of an example, by query and number; an error
            where it was not made of a recording.
    """

    examples: pa.Table
    dimension: int
    posteriors: tuple[tuple[int, int], ...]
    features: tuple[str, ...]
    heard: Callable[[str, int], tuple[NDArray[np.float32], int]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Query, number, s and frames of each example, and their values: float32 (frames, dimension)."""
        for row in self.examples.to_pylist():
            values = np.frombuffer(row["features"], "<f4").reshape(-1, self.dimension)
            yield {**row, "values": values}


def no_posteriors(features: Iterable[str]) -> UserError:
    """The error where an entropy is asked for, and these features have none."""
    return codes.NO_POSTERIOR_FEATURES(where="calibrate.options", features=", ".join(features))


class ExampleLengths:
    """How long the examples of a query are."""

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
    """Heard frames (10 ms) of the examples, and those of them that have a voice's spectrum (`swsdist.audio.speech`)."""

    name = "example-speech"
    version = 1
    quantities = ("frames", "voiced")
    reads: Literal["candidates", "examples"] = "examples"

    def of(self, group: ExampleGroup) -> Tally:
        """Listen to a group of queries.

        Raises:
            UserError: they were not made of recordings.
        """
        values_by_key: dict[Key, tuple[int, ...]] = {}
        for row in group.rows():
            key = row["query_id"], row["example"]
            levels = speech.levels(*group.heard(*key))
            voiced = (levels.flatness <= speech.FLAT) & (levels.hum >= speech.HUM)
            values_by_key[*key, 1] = len(voiced), int(np.count_nonzero(voiced))
        return Tally(self.quantities, values_by_key)


def ratios(tally: Tally, over: str, under: str) -> dict[str, float]:
    """Of each query the sum of one quantity over that of another, with all examples together; 0 where that is nothing.

    Args:
        tally: of examples; of a sum in units of its scale these are taken into account.
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
