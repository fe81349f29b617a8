"""Scoring's definitions in plain Python: slow, and short enough to be checked by reading.

`swsdist.score` is held against these. All that is summed or compared is summed and compared exactly, as fractions.
Conventions and sources are those of `swsdist.score.align` and `swsdist.score.twv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Detection(NamedTuple):
    """s, s, score."""

    start: float
    end: float
    score: float


class Reference(NamedTuple):
    """s, s."""

    start: float
    end: float


def kernel(found: Detection, true: Reference, *, tolerance: float, low: float, high: float) -> float | None:
    """STDEval's kernel of a pair, None if the mid-point rule forbids it."""
    duration = float(f"{found.end - found.start:.6f}")
    true_duration = float(f"{true.end - true.start:.4f}")
    end, true_end = found.start + duration, true.start + true_duration
    if not true.start - tolerance <= found.start + duration / 2 <= true_end + tolerance:
        return None
    t = (min(end, true_end) - max(found.start, true.start)) / max(1e-5, true_duration)
    s = (found.score - low) / (high - low) if high > low else 0.0
    return 1.0 + 1e-8 * t + 1e-6 * s


def matchings(
    detections: Sequence[Detection], references: Sequence[Reference], *, tolerance: float, low: float, high: float
) -> Iterator[tuple[Fraction, dict[int, int]]]:
    """Every one-to-one pairing of one group: its sum of (kernel + 1), and detection index -> reference index."""
    if not detections:
        yield Fraction(0), {}
        return
    last = len(detections) - 1
    for gain, pairs in matchings(detections[:last], references, tolerance=tolerance, low=low, high=high):
        yield gain, pairs
        for index, true in enumerate(references):
            value = kernel(detections[last], true, tolerance=tolerance, low=low, high=high)
            if value is not None and index not in pairs.values():
                yield gain + Fraction(value) + 1, {**pairs, last: index}


def best_gain(
    detections: Sequence[Detection], references: Sequence[Reference], *, tolerance: float, low: float, high: float
) -> Fraction:
    """The greatest sum of (kernel + 1) that a pairing of one group reaches."""
    return max(gain for gain, _ in matchings(detections, references, tolerance=tolerance, low=low, high=high))


class Term(NamedTuple):
    """A query's true occurrences, and (score, is it a hit) of each of its detections."""

    ntrue: int
    detections: Sequence[tuple[float, bool]]


class ExactPoint(NamedTuple):
    """Means at a threshold; `threshold` None rejects everything."""

    threshold: float | None
    pmiss: Fraction
    pfa: Fraction
    twv: Fraction


def point(terms: Mapping[str, Term], threshold: float | None, *, trials: int, beta: float) -> ExactPoint:
    """Mean Pmiss, Pfa and TWV over the terms with references, detections with score >= threshold accepted."""
    pmiss, pfa = [], []
    for term in terms.values():
        if term.ntrue:
            accepted = [hit for score, hit in term.detections if threshold is not None and score >= threshold]
            pmiss.append(1 - Fraction(accepted.count(True), term.ntrue))
            pfa.append(Fraction(accepted.count(False), trials - term.ntrue))
    mean_pmiss, mean_pfa = sum(pmiss, Fraction(0)) / len(pmiss), sum(pfa, Fraction(0)) / len(pfa)
    return ExactPoint(threshold, mean_pmiss, mean_pfa, 1 - mean_pmiss - Fraction(beta) * mean_pfa)


def curve(terms: Mapping[str, Term], *, trials: int, beta: float) -> list[ExactPoint]:
    """The points at every distinct score of terms with references, ascending, and the one that rejects everything."""
    scores = {score for term in terms.values() if term.ntrue for score, _ in term.detections}
    return [point(terms, threshold, trials=trials, beta=beta) for threshold in [*sorted(scores), None]]


def maximum(points: Sequence[ExactPoint]) -> ExactPoint:
    """The point of greatest value, the first of equal ones."""
    best = points[0]
    for other in points[1:]:
        if other.twv > best.twv:
            best = other
    return best
