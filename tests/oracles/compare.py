"""Comparison's definitions in plain Python: slow, and short enough to be checked by reading.

`swsdist.score.compare.paired` and `swsdist.score.compare.bootstrap` are held against these. Sums are exact, as fractions.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple


class Occurrences(NamedTuple):
    """Of a query in a document: true occurrences, and hits and false alarms among the detections decided YES."""

    ntrue: int
    hits: int
    false_alarms: int


def drawn_twv(
    drawn: Sequence[str], seconds: Mapping[str, int], counts: Mapping[tuple[str, str], Occurrences], *, beta: float
) -> Fraction | None:
    """TWV of a collection made of the documents drawn, each as often as it stands there, one trial a second."""
    trials = sum(seconds[document] for document in drawn)
    values = []
    for query in sorted({query for query, _ in counts}):
        here = [counts.get((query, document), Occurrences(0, 0, 0)) for document in drawn]
        ntrue, hits, false_alarms = (sum(one[k] for one in here) for k in range(3))
        if ntrue == 0:
            continue
        if trials - ntrue <= 0:
            return None
        values.append(1 - Fraction(ntrue - hits, ntrue) - Fraction(beta) * Fraction(false_alarms, trials - ntrue))
    return sum(values, Fraction(0)) / len(values) if values else None


def signed_rank(differences: Sequence[int]) -> Fraction:
    """Two-sided p of Wilcoxon's test by all ways to give signs; differences without zeros and ties."""
    ranks = {value: rank for rank, value in enumerate(sorted(abs(d) for d in differences), 1)}
    half = Fraction(sum(ranks.values()), 2)
    seen = abs(sum(ranks[abs(d)] for d in differences if d > 0) - half)
    sums = [
        sum(rank for rank, positive in zip(ranks.values(), signs, strict=True) if positive)
        for signs in product((False, True), repeat=len(ranks))
    ]
    return Fraction(sum(abs(one - half) >= seen for one in sums), len(sums))


def holm(p: Sequence[float]) -> list[float]:
    """The least level at which Holm's procedure rejects each hypothesis, tried out over all levels that matter."""

    def rejects(level: float) -> set[int]:
        order = sorted(range(len(p)), key=lambda k: p[k])
        rejected: set[int] = set()
        for rank, k in enumerate(order):
            if p[k] * (len(p) - rank) > level:
                break
            rejected.add(k)
        return rejected

    levels = sorted({min(1.0, value * factor) for value in p for factor in range(1, len(p) + 1)} | {1.0})
    return [next((level for level in levels if k in rejects(level)), 1.0) for k in range(len(p))]


def sign_flip(differences: Sequence[Fraction]) -> Fraction:
    """Two-sided p of the mean difference: of all ways to give signs, the part with a mean at least as far from 0."""
    seen = abs(sum(differences, Fraction()))
    sums = [
        sum((d * s for d, s in zip(differences, signs, strict=True)), Fraction())
        for signs in product((1, -1), repeat=len(differences))
    ]
    return Fraction(sum(abs(one) >= seen for one in sums), len(sums))
