"""Statistics of a query's candidates and of its examples, for calibration.

A statistic is a few named integers per (query, example, scale). They add and are exact, so any partition into files in
any order gives the same result. A new statistic is a class with `name`, `version`, `quantities` and `of`, and an entry
in `swsdist.registry.registries.STATISTICS`; reduce computes those that the configured steps need.

Candidates: all are counted, before overlaps and all but the N best are removed. The score of a candidate is ``-cost /
scale``.

Examples: their frames, including those that `search.drop` leaves out, or the audio behind them. Audio levels are
rounded to quarters of a dB before anything is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio import speech
from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import QUERY_STATISTICS
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import logarithm
from swsdist.registry.registries import STATISTICS

#: query_id, example, scale; for a histogram query_id, bin, bins per unit of score; by speaker query_id, speaker, scale.
Key = tuple[str, int, int]

#: Bins per unit of score; a power of two, so that the scores at bin edges are exact.
BINS = 1 << 10

#: Rows that are summed at once: this many signed squares of 20 bits, and costs of 40 bits, fit into 64 bits.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Tally:
    """A statistic's integers; instances add, with a zero.

    Attributes:
        quantities: names, in order.
        values: by query, example and scale.
    """

    quantities: tuple[str, ...]
    values: Mapping[Key, tuple[int, ...]] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        return summed([self, other])

    def by_query(self) -> dict[str, list[tuple[Key, tuple[int, ...]]]]:
        """The rows of each query, ordered by example and scale."""
        by_query: dict[str, list[tuple[Key, tuple[int, ...]]]] = {}
        for key in sorted(self.values):
            by_query.setdefault(key[0], []).append((key, self.values[key]))
        return by_query


def summed(tallies: Iterable[Tally]) -> Tally:
    """Sum tallies (at least one) in one pass."""
    quantities: tuple[str, ...] = ()
    values: dict[Key, tuple[int, ...]] = {}
    for tally in tallies:
        quantities = tally.quantities
        for key, more in tally.values.items():
            previous = values.get(key)
            values[key] = more if previous is None else tuple(map(int.__add__, previous, more))
    return Tally(quantities, values)


def completed(sampled: Tally, everything: Tally, parts: int = 1) -> Tally:
    """A sample's integers, and for keys whose first `parts` parts it lacks, those of everything."""
    sampled_keys = {key[:parts] for key in sampled.values}
    rest = {key: value for key, value in everything.values.items() if key[:parts] not in sampled_keys}
    return Tally(sampled.quantities, {**sampled.values, **rest})


class Statistic(Protocol):
    """Interface of the classes in the registry.

    Attributes:
        name, version, quantities: of the statistic.
        reads: input of `of`: CANDIDATES, or the examples of queries (`swsdist.calibrate.statistics.ExampleGroup`).
    """

    name: str
    version: int
    quantities: tuple[str, ...]
    reads: Literal["candidates", "examples"]
    # A class attribute `by_speaker = True` asks for candidates with a column `speaker` (`swsdist.reduce.examples`).

    def of(self, rows: Any, /) -> Tally:
        """Compute the statistic; rows in any order."""


class CostSums:
    """Count, sum and sum of squares of the costs, for mean and deviation."""

    name = "cost-sums"
    version = 1
    quantities = ("candidates", "cost_sum", "cost_square_sum")
    reads: Literal["candidates", "examples"] = "candidates"

    #: Column that separates a query's candidates.
    _apart: ClassVar[str] = "example"

    def of(self, candidates: pa.Table) -> Tally:
        """Sum CANDIDATES; fastest if rows of a key are consecutive."""
        parts = [Tally(self.quantities)]
        for first in range(0, candidates.num_rows, _AT_ONCE):
            keys, cost, starts = _runs(candidates.slice(first, _AT_ONCE), self._apart)
            counts = np.diff(np.append(starts, len(cost)))
            # |cost| is at most 2^40: its halves of 20 bits keep the sums of squares inside 64 bits.
            high, low = cost >> 20, cost & 0xFFFFF
            total, hh, hl, ll = (np.add.reduceat(v, starts) for v in (cost, high * high, high * low, low * low))
            sums = zip(counts.tolist(), total.tolist(), hh.tolist(), hl.tolist(), ll.tolist(), strict=True)
            rows = [(n, t, (a << 40) + (b << 21) + c) for n, t, a, b, c in sums]
            parts += (Tally(self.quantities, {key: row}) for key, row in zip(keys, rows, strict=True))
        return summed(parts)


class SpeakerCostSums(CostSums):
    """`CostSums` by speaker of the document instead of by example."""

    name = "speaker-cost-sums"
    by_speaker = True
    _apart = "speaker"


class CandidatePosteriors:
    """The sum of the posteriors of all candidates, S(w) of a search that gives posteriors: the sum of -cost at each scale."""

    name = "posterior-sums"
    version = 1
    quantities = ("posterior_sum",)
    reads: Literal["candidates", "examples"] = "candidates"

    def of(self, candidates: pa.Table) -> Tally:
        """Sum up CANDIDATES.

        Raises:
            DataError: a score is not in [0, 1].
        """
        parts = [Tally(self.quantities)]
        for first in range(0, candidates.num_rows, _AT_ONCE):
            part = candidates.slice(first, _AT_ONCE)
            check_posteriors(part["cost"].to_numpy(), part["scale"].to_numpy())
            keys, cost, starts = _runs(part)
            total = np.add.reduceat(-cost, starts).tolist()
            # One sum per query and scale, over all examples.
            parts += (
                Tally(self.quantities, {(query, 0, scale): (value,)})
                for (query, _, scale), value in zip(keys, total, strict=True)
            )
        return summed(parts)


class ScoreHistogram:
    """Histogram of candidates' scores in bins of 1 / `BINS`, over all examples.

    Bin b contains scores from b / BINS up to the next bin; empty bins are omitted. In a key the bin takes the place of
    the example.
    """

    name = "score-histogram"
    version = 1
    quantities = ("candidates",)
    reads: Literal["candidates", "examples"] = "candidates"

    def of(self, candidates: pa.Table) -> Tally:
        """Count CANDIDATES, rows in any order."""
        if not candidates.num_rows:
            return Tally(self.quantities)
        names, query = coded(candidates["query_id"])
        # |cost| is at most 2^40, so the product stays inside 64 bits; a quotient is rounded down.
        bins = -candidates["cost"].to_numpy() * BINS // candidates["scale"].to_numpy()
        pairs, counts = np.unique(np.stack([query, bins]), axis=1, return_counts=True)
        keys = ((names[code], place, BINS) for code, place in pairs.T.tolist())
        return Tally(self.quantities, {key: (count,) for key, count in zip(keys, counts.tolist(), strict=True)})


def histograms(tally: Tally) -> dict[str, tuple[Ints, Ints]]:
    """For each query of `score-histogram`: bins (int64, ascending) and their counts (int64)."""
    return {
        query_id: (np.array([key[1] for key, _ in rows], np.int64), np.array([n for _, (n,) in rows], np.int64))
        for query_id, rows in tally.by_query().items()
    }


def check_posteriors(cost: Ints, scale: Ints) -> None:
    """Check that the scores of candidates are posteriors.

    Raises:
        DataError: one is not in [0, 1].
    """
    bad = np.flatnonzero((cost > 0) | (-cost > scale))
    if len(bad):
        score = -int(cost[bad[0]]) / int(scale[bad[0]])
        raise codes.NOT_POSTERIORS(count=len(bad), of=len(cost), score=score)


def _runs(table: pa.Table, separate: str = "example") -> tuple[list[Key], Ints, Ints]:
    """Key and first row of each run of rows with the same key, and the costs in that order; at least one row."""
    names, query = coded(table["query_id"])
    example, scale, cost = (table[name].to_numpy() for name in (separate, "scale", "cost"))
    starts = _starts(query, example, scale)
    if len(starts) > 64 and len(starts) > len(cost) // 8:
        order = np.lexsort((scale, example, query))
        query, example, scale, cost = query[order], example[order], scale[order], cost[order]
        starts = _starts(query, example, scale)
    columns = (query[starts].tolist(), example[starts].tolist(), scale[starts].tolist())
    return [(names[q], e, s) for q, e, s in zip(*columns, strict=True)], cost, starts


def _starts(*columns: NDArray[np.integer]) -> Ints:
    new = np.ones(len(columns[0]), bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(new)


def load_statistics(
    names: Iterable[str], reads: Literal["candidates", "examples"] | None = None
) -> dict[str, Statistic]:
    """The registered statistics with these names, optionally only those that read candidates or examples.

    Raises:
        ConfigError: there is no such statistic, or it cannot be loaded.
    """
    loaded: dict[str, Statistic] = {name: STATISTICS[name].load()() for name in names}
    return {name: statistic for name, statistic in loaded.items() if reads in (None, statistic.reads)}


def to_table(tallies: Mapping[str, Tally]) -> pa.Table:
    """QUERY_STATISTICS by query, name, example and scale; rows of a query are consecutive."""
    columns: dict[str, list[object]] = {name: [] for name in QUERY_STATISTICS.names}
    keys = sorted((key[0], name, *key[1:]) for name, tally in tallies.items() for key in tally.values)
    for query_id, name, example, scale in keys:
        tally, key = tallies[name], (query_id, example, scale)
        for quantity, value in zip(tally.quantities, tally.values[key], strict=True):
            row = (name, *key, quantity, Decimal(value))
            for column, cell in zip(columns.values(), row, strict=True):
                column.append(cell)
    return pa.Table.from_pydict(columns, QUERY_STATISTICS)


def from_table(table: pa.Table) -> dict[str, Tally]:
    """The statistics of a table from `to_table`, rows in any order.

    Raises:
        ConfigError: a statistic is not registered.
    """
    values: dict[str, dict[Key, dict[str, int]]] = {}
    columns = [table[name].to_pylist() for name in QUERY_STATISTICS.names]
    for name, query_id, example, scale, quantity, value in zip(*columns, strict=True):
        values.setdefault(name, {}).setdefault((query_id, example, scale), {})[quantity] = int(value)
    tallies = {}
    for name, statistic in load_statistics(sorted(values)).items():
        names = statistic.quantities
        tallies[name] = Tally(names, {key: tuple(row[q] for q in names) for key, row in values[name].items()})
    return tallies


def posterior_sums(tally: Tally) -> dict[str, float]:
    """S(w) of each query of `posterior-sums`: the float64 nearest to the exact sum."""
    return {
        query_id: float(sum((Fraction(value, key[2]) for key, (value,) in rows), Fraction(0)))
        for query_id, rows in tally.by_query().items()
    }


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
    audio: Callable[[str, int], tuple[Singles, int]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Query, number, s and frames of each example, and their values: float32 (frames, dimension)."""
        for row in self.examples.to_pylist():
            values = np.frombuffer(row["features"], "<f4").reshape(-1, self.dimension)
            yield {**row, "values": values}


def no_posteriors(features: Iterable[str]) -> UserError:
    """Error for an entropy of features that are not posteriors."""
    return families.UNSUPPORTED(
        "no features of the queries are posteriors, so their frames have no entropy: {features}",
        "leave the covariate entropy out, or search features that are posteriors",
        where="calibrate.options",
        features=", ".join(features),
    )


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
