"""Calibration's definitions in plain Python: slow, and short enough to be checked by reading.

`swsdist.calibrate` is held against these. Thresholds and values are exact fractions; the logistic is found by bisection and
golden-section search on its likelihood. Conventions and sources are those of the modules.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tests.oracles.score import Term


def posterior_sum(term: Term) -> Fraction:
    """S(w)."""
    return sum((Fraction(p) for p, _ in term.detections), Fraction(0))


def kst_threshold(occurrences: Fraction, trials: int, beta: Fraction) -> Fraction:
    """Eq. 3, as Wang and Metze write it; occurrences count as `trials` at most."""
    n = min(occurrences, Fraction(trials))
    return beta * n / (trials + (beta - 1) * n)


def threshold(method: str, term: Term, trials: int, beta: float, alpha: float) -> Fraction | None:
    """A term's threshold on p: eq. 3, 4 or 6; None if nothing is kept."""
    a, b = Fraction(alpha), Fraction(beta)
    if method == "oracle-kst":
        return kst_threshold(Fraction(term.ntrue), trials, b) if term.ntrue else None
    if method == "kst":
        return kst_threshold(a * posterior_sum(term), trials, b)
    return b * a * posterior_sum(term) / (trials + (b - 1) * a)


def decisions(method: str, term: Term, trials: int, beta: float, alpha: float) -> list[bool]:
    """What is kept of a term's detections."""
    limit = threshold(method, term, trials, beta, alpha)
    return [limit is not None and p > 0 and Fraction(p) >= limit for p, _ in term.detections]


def value(method: str, terms: Mapping[str, Term], trials: int, beta: float, alpha: float) -> Fraction:
    """ATWV of those decisions: the mean of 1 - Pmiss - beta Pfa over the terms that occur."""
    values = []
    for term in terms.values():
        if term.ntrue:
            kept = decisions(method, term, trials, beta, alpha)
            hits = sum(yes and right for yes, (_, right) in zip(kept, term.detections, strict=True))
            false = sum(kept) - hits
            pmiss = Fraction(term.ntrue - hits, term.ntrue)
            values.append(1 - pmiss - Fraction(beta) * Fraction(false, trials - term.ntrue))
    return sum(values, Fraction(0)) / len(values)


def gain_of_keeping(p: Fraction, ntrue: int, trials: int, beta: Fraction) -> Fraction:
    """Expected gain of a term's value when a detection that is right with probability p is kept (eq. 3's argument)."""
    return p / ntrue - beta * (1 - p) / (trials - ntrue)


def penalised_loss(
    slope: float, offset: float, rows: Sequence[tuple[float, int, int]], deviation: float, prior_deviation: float
) -> float:
    """What the logistic minimises: minus log-likelihood of (score, hits, false alarms), and the prior on the slope."""
    loss = (slope * deviation / prior_deviation) ** 2 / 2
    for score, hits, false in rows:
        z = slope * score + offset
        # ln(1 + e^-z) and ln(1 + e^z) without overflow
        softplus = max(z, 0.0) + math.log1p(math.exp(-abs(z)))
        loss += hits * (softplus - z) + false * softplus
    return loss


def deviation(rows: Sequence[tuple[float, int, int]]) -> float:
    """Standard deviation of the scores, each as often as it occurs."""
    whole = sum(hits + false for _, hits, false in rows)
    mean = math.fsum(score * (hits + false) for score, hits, false in rows) / whole
    return math.sqrt(math.fsum((score - mean) ** 2 * (hits + false) for score, hits, false in rows) / whole)
