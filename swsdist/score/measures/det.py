"""Detection error trade-off: confidence bands of term-weighted curves, STDEval's pooled curve, and points for drawing.

x is the deviate of the false-alarm rate, y that of the miss rate; the deviate (probit) of a probability p is the z with
P(Z <= z) = p for a standard normal Z. Rates 0 and 1 lie at infinity; they are drawn at the border of the picture.

A band is two standard errors to both sides of a rate. The rates are means over the n queries with references, and their
standard error is that of STDEval's `.dat` files: the sample standard deviation of the queries' rates divided by sqrt(n
- 1). (The usual divisor is sqrt(n), which is also what the program's legend states.) With one query the error is not a
number. Spreads are evaluated from sums of squares, integers per distinct Ntrue and score (`Squares`).

Sources: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997; and what STDEval
0.7 does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.types import columns
from swsdist.registry.entries import MeasureEntry
from swsdist.score.events import CLASSES, EVENTS, Parts, Sums, Value, event_blocks, pooled_blocks
from swsdist.score.measures.curve import (
    Block,
    Counts,
    Curve,
    CurvePoint,
    Ranking,
    best_point,
    by_key,
    by_score,
    curve_blocks,
)
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.measures.twv import point_values, rated, twv_curve

#: Points of a pooled curve that are computed at once.
_POINTS = 1 << 20

#: The curve for drawing: thinned to bounded size.
DET = columns("threshold float64, pmiss float64, pfa float64")


@dataclass(frozen=True, eq=False)
class Det:
    """Points of the curve for drawing, by threshold ascending; all float64 (n,).

    Attributes:
        threshold: least accepted score; for the last point, which rejects everything, the highest score.
        pmiss: mean miss rate.
        pfa: mean false-alarm rate.
        x: deviate of pfa, within the picture.
        y: deviate of pmiss, within the picture.
    """

    threshold: Floats
    pmiss: Floats
    pfa: Floats
    x: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class Bands:
    """A curve with the standard error of each of its points; a band is the value and two of these to both sides.

    Attributes:
        curve: the curve, n + 1 points.
        pmiss_error, pfa_error: float64 (n + 1,); NaN if undefined.
    """

    curve: Curve
    pmiss_error: Floats
    pfa_error: Floats


@dataclass(frozen=True, eq=False)
class Squares:
    """Sums of squares over queries, for the rows of `Counts` of the same list.

    At a score the row of a class holds by how much the sums over its queries rise when detections of that score are
    accepted too, after all with a higher score.

    Attributes:
        ntrue: int64 (E,), with `score` the key; ordered by ntrue, then score, the rows of `Counts`.
        score: float64 (E,).
        hits: int64 (E,), of hits^2.
        false_alarms: int64 (E,), of false alarms^2.
    """

    ntrue: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints

    @classmethod
    def of(cls, aligned: pa.Table) -> Squares:
        """Count an aligned list.

        Args:
            aligned: schema TRIALS, rows in any order, all rows of each query.
        """
        rows = Ranking.of(aligned)
        h, f = rows.hits_above, rows.false_above
        dh, df = rows.hits, rows.false_alarms
        rises = np.stack([dh * (2 * h + dh), df * (2 * f + df)], axis=1)
        ntrue, score, sums = by_key(rows.ntrue[rows.query], rows.score, rises)
        return cls(ntrue, score, *sums.T)


def referenced(counts: Counts) -> Counts:
    """The counts of queries with references only."""
    classes, rows = counts.classes > 0, counts.ntrue > 0
    of_classes = ("classes", "terms")
    columns = {field.name: getattr(counts, field.name) for field in fields(counts)}
    return Counts(**{name: column[classes if name in of_classes else rows] for name, column in columns.items()})


def bands(counts: Counts, squares: Squares, *, trials: int, beta: float) -> Bands:
    """The term-weighted curve with its standard errors; queries without references are left out.

    Args:
        counts: of the whole list.
        squares: of the same list.
        trials: N, trials of each query.
        beta: weight of false alarms.

    Raises:
        UserError: counts and squares are not of one list, no query has a reference, or N = Ntrue for one.
    """
    counts = referenced(counts)
    if not (np.array_equal(counts.ntrue, squares.ntrue) and np.array_equal(counts.score, squares.score)):
        raise families.MISMATCH("counts and squares are of different lists", "compute both from the same aligned list")
    curve = twv_curve(counts, trials=trials, beta=beta)
    scores = np.unique(counts.score)
    miss, false, miss_miss, false_false = np.zeros((4, 1))
    for ntrue, terms in zip(counts.classes, counts.terms, strict=True):
        rows = slice(*np.searchsorted(counts.ntrue, [ntrue, ntrue + 1]))
        at = np.append(np.searchsorted(counts.score[rows], scores), rows.stop - rows.start)
        columns = (counts.hits, counts.false_alarms, squares.hits, squares.false_alarms)
        h, f, hh, ff = (np.append(np.cumsum(column[rows][::-1])[::-1], 0)[at] for column in columns)
        left = trials - ntrue
        miss = miss + (terms * ntrue - h) / ntrue
        false = false + f / left
        miss_miss = miss_miss + (terms * ntrue * ntrue - 2 * ntrue * h + hh) / (ntrue * ntrue)
        false_false = false_false + ff / (left * left)
    n = int(counts.terms.sum())
    return Bands(curve, _standard_error(n, miss, miss_miss), _standard_error(n, false, false_false))


def pooled_by_detection(
    blocks: Iterable[Block], *, true: int, hits: int, false_alarms: int, trials: int, ratio: float
) -> Iterator[Curve]:
    """STDEval's pooled curve (`-P`) in pieces: all queries as one, with or without references, a point a detection.

    Of equal scores the hits are rejected first. The value is occurrence-weighted, (hits - ratio false alarms) / references.
    Without hits STDEval has no targets.

    Args:
        blocks: counts, scores ascending over all blocks, no score in two.
        true: references of all queries.
        hits, false_alarms: of all queries.
        trials: N of one query, which the program takes for all.
        ratio: C / V.
    """
    hits_left, false_left, left, hit = hits, false_alarms, trials - true, hits > 0
    for block in blocks:
        scores, counted_hits, raised = by_score(block)
        size = counted_hits + raised
        ends = np.cumsum(size)
        for first in range(0, int(size.sum()), _POINTS):
            at = np.arange(first, min(first + _POINTS, int(ends[-1])))
            row = np.searchsorted(ends, at, side="right")
            within = at - (ends - size)[row]
            rejected = (np.cumsum(counted_hits) - counted_hits)[row] + np.minimum(within, counted_hits[row])
            refused = (np.cumsum(raised) - raised)[row] + np.maximum(within - counted_hits[row], 0)
            accepted, wrong = hits_left - rejected, false_left - refused
            pfa = wrong / left if left else np.full(len(at), math.nan)
            pmiss = (true - accepted) / true if hit else np.zeros(len(at))
            yield Curve(scores[row], pmiss, pfa, (accepted - ratio * wrong) / true)
        hits_left -= int(counted_hits.sum())
        false_left -= int(raised.sum())


def pooled_maximum(pieces: Iterable[Curve], *, by_detection: bool) -> CurvePoint:
    """The maximum value of a pooled curve; if there is none (for STDEval: none above 0), the program's start values.

    Args:
        pieces: of the curve.
        by_detection: whether it is STDEval's.
    """
    remaining = iter(pieces)
    first = next(remaining, None)
    if first is None:
        return CurvePoint(0.0, 0.0, 1.0, None)
    greatest = best_point(itertools.chain([first], remaining)).point
    if by_detection and greatest.twv <= 0:
        return CurvePoint(0.0, 0.0, 1.0, float(first.threshold[0]))
    return greatest


def ppndf(probability: NDArray[np.floating] | float, *, least: float = 1e-6) -> Floats:
    """Normal deviate of probabilities, which are first limited to [least, 1 - least].

    Args:
        probability: any shape.
        least: border of the picture, in (0, 0.5).
    """
    # Imported here because scipy loads slowly.
    from scipy.special import ndtri

    limited: Floats = ndtri(np.clip(np.asarray(probability, dtype=np.float64), least, 1 - least))
    return limited


def det(curve: Curve, *, least: float = 1e-6, step: float = 0.01) -> Det:
    """Points for drawing: one of each run within a square of the deviates, and the ends.

    Args:
        curve: from `twv_curve`.
        least: rates below it, or above 1 - least, are drawn at the border.
        step: side of the squares, in deviates; 0.01 is about a pixel of a picture 900 pixels wide.
    """
    return det_of([curve], least=least, step=step)


def det_of(pieces: Iterable[Curve], *, least: float = 1e-6, step: float = 0.01) -> Det:
    """Points for drawing, like `det`, of a curve in pieces, thresholds ascending."""
    kept: list[tuple[Floats, ...]] = [tuple(np.zeros(0) for _ in range(5))]
    end: tuple[Floats, ...] | None = None
    before = np.full((2, 1), math.nan)
    for piece in pieces:
        if not len(piece.pfa):
            continue
        x, y = ppndf(piece.pfa, least=least), ppndf(piece.pmiss, least=least)
        square = np.stack([np.floor(x / step), np.floor(y / step)])
        chosen = (square != np.concatenate([before, square[:, :-1]], axis=1)).any(axis=0)
        before = square[:, -1:]
        columns = (piece.threshold, piece.pmiss, piece.pfa, x, y)
        kept.append(tuple(column[chosen] for column in columns))
        end = None if chosen[-1] else tuple(column[-1:] for column in columns)
    if end is not None:
        kept.append(end)
    return Det(*(np.concatenate(column) for column in zip(*kept, strict=True)))


def accepted_from(threshold: Floats, pmiss: Floats, pfa: Floats) -> Floats:
    """Least accepted scores for display; infinite for a last point that accepts nothing.

    Args:
        threshold, pmiss, pfa: float64 (n,), of a curve, or thinned; there a last point that rejects everything has the highest
            score, as STDEval labels it.
    """
    if not len(threshold) or (pmiss[-1], pfa[-1]) != (1, 0):
        return threshold
    return np.append(threshold[:-1], math.inf)


def _standard_error(n: int, sums: Floats, squares: Floats) -> Floats:
    """Standard error of a mean of n values, from their sum and sum of squares, as in STDEval."""
    if n < 2:
        return np.full(len(sums), math.nan)
    # Rounding may make the variance of equal values negative.
    variance = np.maximum(squares - sums * sums / n, 0) / (n - 1)
    error: Floats = np.sqrt(variance / (n - 1))
    return error


class PooledMaximum:
    """The maximum of the pooled curve (option `-P`): the occurrence-weighted value at the best threshold.

    The conventions are those of the protocol's program.
    """

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "no query has a true occurrence",
        "pooled_maximum_pfa": "the false alarms of all queries exceed the trials of one",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references, or if Pfa is not a probability."""
        sums = Sums.from_parts(parts, point, refless=True)
        if not sums.referenced:
            return {}
        pooled, by_detection = sums.as_one(), point.rules.pooled_by_detection
        blocks = pooled_blocks(event_blocks(parts[EVENTS.name], refless=True), sums.true)
        if by_detection:
            pieces = pooled_by_detection(
                blocks,
                true=sums.true,
                hits=int(pooled.hits[0]),
                false_alarms=int(pooled.false_alarms[0]),
                trials=point.trials,
                ratio=point.cost / point.value,
            )
        else:
            pieces = curve_blocks(blocks, pooled, trials=point.trials, beta=point.beta, reject_all=False)
        result = point_values("pooled_maximum", pooled_maximum(pieces, by_detection=by_detection), threshold=True)
        pfa = result.get("pooled_maximum_pfa")
        return result if pfa is None or 0 <= pfa <= 1 else {**result, "pooled_maximum_pfa": None}


POOLED_MAXIMUM = MeasureEntry(
    f"{__name__}:PooledMaximum", 2, rated("pooled_maximum", "occurrence-weighted maximum", threshold=True), basic=True
)
