"""Counts of an aligned list, and the curve of mean rates and value at every threshold.

The counts are rows per (score, class); a class holds the queries that have the same number of true occurrences. A
stream of them is a sequence of blocks, scores ascending, no score in two blocks. Rejected counts below a block are kept
per class, so a curve needs memory for one block only. Rates are summed over classes in ascending order, so a point of
the curve is identical for any blocks. The rules of the curve are those of `swsdist.score.measures.twv`.

Rankings hold counts per query and rank instead of per class: for each query with references, its detections in groups
of equal score, best first. Spreads over queries (`swsdist.score.measures.det`), average precision and similar measures
(`swsdist.score.measures.retrieval`) are computed from them.

All counts are integers, in an order that does not depend on the rows' order.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families, warning_text
from swsdist.core.codes import score as codes
from swsdist.score.conventions import as_table

#: Values that differ by less are equal maxima, of which the lowest threshold is used.
TIE = 1e-12


class CurvePoint(NamedTuple):
    """Rates at a threshold or at decisions. `threshold` is None for decisions and without scores."""

    twv: float
    pmiss: float
    pfa: float
    threshold: float | None


@dataclass(frozen=True, eq=False)
class Curve:
    """Means over the queries with references, at each threshold ascending; the last point rejects everything.

    Attributes:
        threshold: float64 (n + 1,), n distinct scores and the highest again (NaN if n is 0).
        pmiss, pfa, twv: float64 (n + 1,).
    """

    threshold: Floats
    pmiss: Floats
    pfa: Floats
    twv: Floats


class Block(NamedTuple):
    """Counts of neighbouring scores, ordered by score; `ntrue` may be in any order within a score.

    Attributes:
        ntrue: int64 (E,), the class.
        score: float64 (E,).
        hits, false_alarms: int64 (E,).
    """

    ntrue: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints


def by_score(block: Block) -> tuple[Floats, Ints, Ints]:
    """Distinct scores, ascending, and the hits and false alarms of all classes at each: float64, int64, int64 (n,)."""
    scores, inverse = np.unique(block.score, return_inverse=True)
    sums = np.zeros((2, len(scores)), dtype=np.int64)
    np.add.at(sums[0], inverse, block.hits)
    np.add.at(sums[1], inverse, block.false_alarms)
    return scores, sums[0], sums[1]


class Classes(NamedTuple):
    """Queries by their number of true occurrences, and the sums of their counts.

    Attributes:
        ntrue: int64 (K,), ascending.
        terms: int64 (K,), queries with that many.
        hits, false_alarms: int64 (K,), of all their detections.
    """

    ntrue: Ints
    terms: Ints
    hits: Ints
    false_alarms: Ints


def nontargets(ntrue: Ints, trials: int) -> Ints:
    """N - Ntrue of each Ntrue, int64 (n,); a warning if one is negative.

    Raises:
        UserError: N - Ntrue is 0.
    """
    left = trials - ntrue
    if (left == 0).any():
        raise families.UNDEFINED(
            "a query has {trials} true occurrences in {trials} trials, so its false-alarm rate is not defined",
            "raise trials_per_second, or check that all the searched audio is counted",
            trials=trials,
        )
    if (left < 0).any():
        warnings.warn(
            warning_text(
                codes.NEGATIVE_FALSE_ALARM_RATES, count=int((left < 0).sum()), largest=ntrue.max(), trials=trials
            ),
            stacklevel=4,
        )
    return left


class Means(NamedTuple):
    """Converts accepted hits and false alarms to mean rates, class of Ntrue by class.

    Attributes:
        ntrue, terms: int64 (K,), the classes, ascending, and the number of queries in each.
        left: int64 (K,), N - Ntrue.
        referenced: queries with references, over which Pmiss is a mean.
        queries: all queries, over which Pfa is a mean.
    """

    ntrue: Ints
    terms: Ints
    left: Ints
    referenced: int
    queries: int

    @classmethod
    def of(cls, ntrue: Ints, terms: Ints, *, trials: int) -> Means:
        """Check that the rates are defined.

        Raises:
            UserError: no query has a reference, or N = Ntrue for one.
        """
        referenced = int(terms[ntrue > 0].sum())
        if not referenced:
            raise codes.NO_REFERENCES(measure="TWV")
        return cls(ntrue, terms, nontargets(ntrue, trials), referenced, int(terms.sum()))

    def rates(self, accepted: Iterable[tuple[Ints, Ints]]) -> tuple[Floats, Floats]:
        """Mean Pmiss and mean Pfa at each point, float64 (points,) each.

        Args:
            accepted: for each class, its hits and false alarms, int64 (points,) each.
        """
        pmiss, pfa = np.zeros(1), np.zeros(1)
        # Class by class, because the order of numpy's sums may depend on the machine.
        for ntrue, terms, left, (hits, false_alarms) in zip(self.ntrue, self.terms, self.left, accepted, strict=True):
            pmiss = pmiss + ((terms * ntrue - hits) / ntrue if ntrue else 0.0)
            pfa = pfa + false_alarms / left
        return pmiss / self.referenced, pfa / self.queries

    def point(self, hits: Ints, false_alarms: Ints, beta: float) -> CurvePoint:
        """The value of one set of decisions, from hits and false alarms of each class, (K,)."""
        pmiss, pfa = (float(rate[0]) for rate in self.rates(zip(hits[:, None], false_alarms[:, None], strict=True)))
        return CurvePoint(1 - (pmiss + beta * pfa), pmiss, pfa, None)


def curve_blocks(
    blocks: Iterable[Block], classes: Classes, *, trials: int, beta: float, reject_all: bool = True
) -> Iterator[Curve]:
    """The curve in pieces, one per block; the last piece is the point that rejects everything, if there is one.

    Args:
        blocks: counts of the classes, scores ascending over all blocks, no score in two.
        classes: their queries and sums.
        trials: N, trials of each query.
        beta: weight of false alarms.
        reject_all: whether a point rejects everything; without scores there always is one.

    Raises:
        UserError: no query has a reference, or N = Ntrue for one.
    """
    means = Means.of(classes.ntrue, classes.terms, trials=trials)

    def piece(scores: Floats, kept: Iterable[tuple[Ints, Ints]]) -> Curve:
        pmiss, pfa = means.rates(kept)
        return Curve(scores, pmiss, pfa, 1 - (pmiss + beta * pfa))

    hits_left, false_left = classes.hits.copy(), classes.false_alarms.copy()
    highest = math.nan
    for block in blocks:
        if not len(block.score):
            continue
        scores = np.unique(block.score)
        highest = float(scores[-1])
        kept = []
        for k, ntrue in enumerate(classes.ntrue):
            rows = block.ntrue == ntrue
            at = np.searchsorted(block.score[rows], scores)
            hits, false_alarms = block.hits[rows], block.false_alarms[rows]
            kept.append((hits_left[k] - _before(hits)[at], false_left[k] - _before(false_alarms)[at]))
            hits_left[k] -= hits.sum()
            false_left[k] -= false_alarms.sum()
        yield piece(scores, kept)
    if reject_all or math.isnan(highest):
        zeros = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        yield piece(np.array([highest]), [zeros] * len(classes.ntrue))


def concatenate(pieces: Iterable[Curve]) -> Curve:
    """Concatenate the pieces of a curve."""
    collected = list(pieces)
    return Curve(
        *(
            np.concatenate([getattr(piece, name) for piece in collected])
            for name in ("threshold", "pmiss", "pfa", "twv")
        )
    )


class BestPoint(NamedTuple):
    """The point of maximum value of a curve, at the lowest of equal thresholds, and whether it is the last point."""

    point: CurvePoint
    last: bool


def best_point(pieces: Iterable[Curve]) -> BestPoint:
    """The point of maximum value of a curve in pieces.

    Only points that are above all before them can be chosen, so only these are kept, and of them those within `TIE` of the
    greatest.
    """
    steps: list[tuple[float, float, float, float, int]] = []
    top, seen = -math.inf, 0
    for piece in pieces:
        before = np.concatenate([[top], np.maximum.accumulate(piece.twv)[:-1]])
        rising = np.flatnonzero(piece.twv > before)
        if len(rising):
            top = float(piece.twv[rising[-1]])
            steps = [step for step in steps if step[0] >= top - TIE]
            for k in rising[piece.twv[rising] >= top - TIE].tolist():
                columns = (piece.twv, piece.pmiss, piece.pfa, piece.threshold)
                value, pmiss, pfa, threshold = (float(column[k]) for column in columns)
                steps.append((value, pmiss, pfa, threshold, seen + k))
        seen += len(piece.twv)
    value, pmiss, pfa, threshold, at = steps[0]
    return BestPoint(CurvePoint(value, pmiss, pfa, None if math.isnan(threshold) else threshold), at == seen - 1)


def _before(events: Ints) -> Ints:
    """Cumulative sums before each position, and the total."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(events)])


@dataclass(frozen=True, eq=False)
class Ranking:
    """Queries with references, by id, and their groups, by query and then by score descending.

    Attributes:
        names: (Q,) query ids, ascending.
        ntrue: int64 (Q,), true occurrences, detected or not; positive.
        query: int64 (G,), index of each group's query.
        score: float64 (G,), no two groups of a query with the same.
        hits: int64 (G,), paired detections of the group.
        false_alarms: int64 (G,), unpaired ones.
        hits_above: int64 (G,), paired detections of the query with a higher score.
        false_above: int64 (G,), unpaired ones.
    """

    names: pa.Array
    ntrue: Ints
    query: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints
    hits_above: Ints
    false_above: Ints

    @classmethod
    def of(cls, aligned: object) -> Ranking:
        """Rank an aligned list.

        Args:
            aligned: schema TRIALS, rows in any order, all rows of each query.
        """
        table = as_table(aligned, "aligned")
        names, index = query_index(table)
        true = pc.is_valid(table["ref_start"]).to_numpy()
        ntrue = np.bincount(index[true], minlength=len(names))
        kept = np.flatnonzero(ntrue)
        place = np.full(len(names), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))

        rows = np.flatnonzero(pc.is_valid(table["score"]).to_numpy() & (place[index] >= 0))
        # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
        query, score = place[index[rows]], pc.fill_null(table["score"], 0.0).to_numpy()[rows] + 0.0
        order = np.lexsort((-score, query))
        query, score, hit = query[order], score[order], true[rows][order]
        first = np.flatnonzero(np.append(True, (np.diff(query) != 0) | (np.diff(score) != 0))[: len(query)])
        query, score = query[first], score[first]
        size = np.diff(np.append(first, len(hit)))
        hits = _sums(hit.astype(np.int64), first)
        return cls(
            names.take(pa.array(kept)),
            ntrue[kept],
            query,
            score,
            hits,
            size - hits,
            _above(hits, query),
            _above(size - hits, query),
        )


def query_index(aligned: pa.Table) -> tuple[pa.Array, Ints]:
    """Query ids of a list, ascending, and the index of each row's query, int64 (rows,)."""
    encoded = aligned["query_id"].combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]


def _sums(values: Ints, first: Ints) -> Ints:
    return np.add.reduceat(values, first) if len(first) else values[:0]


def _above(values: Ints, query: Ints) -> Ints:
    """Cumulative sum of the query's values before each row."""
    before = np.cumsum(values) - values
    return before - before[np.searchsorted(query, query)] if len(values) else values


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of an aligned list for TWV; instances add, with a zero.

    Attributes:
        classes: int64 (K,), the distinct Ntrue, ascending; 0 only if requested.
        terms: int64 (K,), queries with that many true occurrences.
        ntrue: int64 (E,), with `score` the key of the rows below; ordered by ntrue, then score, no key twice.
        score: float64 (E,).
        hits: int64 (E,), paired detections of that class with that score.
        false_alarms: int64 (E,), unpaired ones.
        yes_hits: int64 (E,), of the hits those decided YES.
        yes_false_alarms: int64 (E,), of the false alarms those decided YES.
        undecided: int64 (E,), detections without decision.
    """

    classes: Ints
    terms: Ints
    ntrue: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints
    yes_hits: Ints
    yes_false_alarms: Ints
    undecided: Ints

    @classmethod
    def zero(cls) -> Counts:
        """Counts of an empty list."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, none, np.zeros(0), none, none, none, none, none)

    @classmethod
    def of(cls, aligned: object, terms: int | None = None) -> Counts:
        """Count an aligned list.

        Args:
            aligned: schema TRIALS, rows in any order, with all rows of a query, because Ntrue is a property of
                the query.
            terms: number of queries, including those without rows. If given, those without references are
                counted too, as class 0, for `pooled` and for KWSEval's `-inc`.
        """
        rows = Rows.read(as_table(aligned, "aligned"))
        ntrue = rows.ntrue[rows.query]
        used = rows.detected & ((ntrue > 0) | (terms is not None))
        hit, decision = rows.true[used], rows.decision[used]
        events = np.stack([hit, ~hit, hit & (decision == 1), ~hit & (decision == 1), decision < 0], axis=1)
        classes, sizes = np.unique(rows.ntrue[rows.ntrue > 0], return_counts=True)
        if terms is not None and terms > sizes.sum():
            classes, sizes = np.append(0, classes), np.append(terms - sizes.sum(), sizes)
        return _summed(classes, sizes, ntrue[used], rows.score[used], events.astype(np.int64))

    def __add__(self, other: Counts) -> Counts:
        return _summed(
            np.concatenate([self.classes, other.classes]),
            np.concatenate([self.terms, other.terms]),
            np.concatenate([self.ntrue, other.ntrue]),
            np.concatenate([self.score, other.score]),
            np.concatenate([self._events, other._events]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    @property
    def _events(self) -> Ints:
        return np.stack([self.hits, self.false_alarms, self.yes_hits, self.yes_false_alarms, self.undecided], axis=1)


def total(parts: Iterable[Counts]) -> Counts:
    """The sum of counts, in any order; the zero if there are none. Parts are consumed one at a time."""
    # Adds equal sizes, as a binary counter: adding each part to the total would sort the total each time.
    sums: list[tuple[int, Counts]] = []
    for counts in parts:
        level = 0
        while sums and sums[-1][0] == level:
            counts = sums.pop()[1] + counts
            level += 1
        sums.append((level, counts))
    return reduce(Counts.__add__, (counts for _, counts in reversed(sums)), Counts.zero())


def pooled(counts: Counts) -> Counts:
    """All queries pooled, including those without references if they were counted."""
    none = np.zeros(len(counts.score), dtype=np.int64)
    true = np.array([(counts.classes * counts.terms).sum()], dtype=np.int64)
    return _summed(true, np.ones(1, dtype=np.int64), none + true, counts.score, counts._events)


def class_sums(counts: Counts) -> Classes:
    """The classes of counts with the sums of their rows."""
    which = np.searchsorted(counts.classes, counts.ntrue)
    hits, false_alarms = (np.zeros(len(counts.classes), dtype=np.int64) for _ in range(2))
    np.add.at(hits, which, counts.hits)
    np.add.at(false_alarms, which, counts.false_alarms)
    return Classes(counts.classes, counts.terms, hits, false_alarms)


class Rows(NamedTuple):
    """An aligned list as arrays.

    Attributes:
        names: (Q,) query ids, ascending.
        ntrue: int64 (Q,), true occurrences, detected or not.
        query: int64 (rows,), index of each row's query.
        score: float64 (rows,), 0 for a miss.
        detected, true: bool (rows,), whether there is a detection, and a reference.
        decision: int8 (rows,), 1 for YES, 0 for NO, -1 if undecided.
    """

    names: pa.Array
    ntrue: Ints
    query: Ints
    score: Floats
    detected: Bools
    true: Bools
    decision: NDArray[np.int8]

    @classmethod
    def read(cls, aligned: pa.Table) -> Rows:
        """Read an aligned list."""
        names, query = query_index(aligned)
        true = pc.is_valid(aligned["ref_start"]).to_numpy()
        return cls(
            names=names,
            ntrue=np.bincount(query[true], minlength=len(names)),
            query=query,
            # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
            score=pc.fill_null(aligned["score"], 0.0).to_numpy() + 0.0,
            detected=pc.is_valid(aligned["score"]).to_numpy(),
            true=true,
            decision=pc.fill_null(aligned["decision"].cast(pa.int8()), -1).to_numpy(),
        )


def _summed(classes: Ints, terms: Ints, ntrue: Ints, score: Floats, events: Ints) -> Counts:
    """Counts with each key once, in order."""
    distinct, inverse = np.unique(classes, return_inverse=True)
    sizes = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sizes, inverse, terms)
    ntrue, score, sums = by_key(ntrue, score, events)
    return Counts(distinct, sizes, ntrue, score, *sums.T)


def by_key(ntrue: Ints, score: Floats, events: Ints) -> tuple[Ints, Floats, Ints]:
    """Rows of events, int64 (E, columns), summed by Ntrue and score: the keys, each once, in order, and the sums."""
    order = np.lexsort((score, ntrue))
    ntrue, score = ntrue[order], score[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(ntrue) != 0) | (np.diff(score) != 0)
    first = np.flatnonzero(new)
    sums = np.add.reduceat(events[order], first) if len(first) else events[:0]
    return ntrue[first], score[first], sums
