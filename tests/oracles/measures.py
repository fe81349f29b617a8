"""Definitions of the further measures in plain Python: slow, and short enough to be checked by reading.

`swsdist.score.measures.cnxe`, `pav`, `quesst`, `documents`, `retrieval` and `det` are held against these; conventions and
sources are theirs. What can be exact is a fraction.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from statistics import variance
from typing import NamedTuple

from tests.oracles.score import Term as Ranked


def cross_entropy(targets: Sequence[float], nontargets: Sequence[float], prior: float) -> float:
    """Cnxe of a complete set of log-likelihood ratios, trial by trial."""
    offset = math.log(prior / (1 - prior))

    def cost(log_odds: float) -> float:  # -ln sigmoid(log_odds)
        return math.log1p(math.exp(-log_odds)) if log_odds > 0 else math.log1p(math.exp(log_odds)) - log_odds

    true = sum(cost(llr + offset) for llr in targets) / len(targets)
    false = sum(cost(-llr - offset) for llr in nontargets) / len(nontargets)
    entropy = -(prior * math.log(prior) + (1 - prior) * math.log(1 - prior))
    return (prior * true + (1 - prior) * false) / entropy


def rising_rates(true: Sequence[int], total: Sequence[int]) -> list[Fraction]:
    """Isotonic regression by its min-max formula: of row i, max over a <= i of min over b >= i of the rate of a..b."""
    rows = range(len(true))
    return [
        max(min(Fraction(sum(true[a : b + 1]), sum(total[a : b + 1])) for b in rows[i:]) for a in rows[: i + 1])
        for i in rows
    ]


def orders(query: Ranked) -> Iterator[list[bool]]:
    """The hits of every order of the detections that keeps scores descending."""
    groups = [
        [hit for score, hit in query.detections if score == each]
        for each in sorted({score for score, _ in query.detections}, reverse=True)
    ]
    for chosen in product(*(permutations(group) for group in groups)):
        yield [hit for group in chosen for hit in group]


def average_precision(query: Ranked) -> Fraction:
    """Mean over the orders of equal scores of: sum over the hits of the precision at their rank, by ntrue."""
    each = [
        sum((Fraction(sum(order[: k + 1]), k + 1) for k, hit in enumerate(order) if hit), Fraction(0)) / query.ntrue
        for order in orders(query)
    ]
    return sum(each, Fraction(0)) / len(each)


def precision_at(query: Ranked, n: int) -> Fraction:
    """Mean over the orders of equal scores of the hits among the first n, by n."""
    each = [Fraction(sum(order[:n]), n) for order in orders(query)]
    return sum(each, Fraction(0)) / len(each)


def area(queries: Sequence[Ranked], trials: int) -> Fraction:
    """Share of pairs (target, non-target) of all queries in which the target wins, ties half; None ranks last."""
    true = [score for query in queries for score, hit in query.detections if hit]
    false = [score for query in queries for score, hit in query.detections if not hit]
    targets = sum(query.ntrue for query in queries)
    lowest = -math.inf  # of what was not submitted
    true += [lowest] * (targets - len(true))
    false += [lowest] * (len(queries) * trials - targets - len(false))
    won = sum(Fraction(1) if t > f else Fraction(t == f, 2) for t in true for f in false)
    return Fraction(won) / (len(true) * len(false))


def crossing(points: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Where the line through points (Pmiss, Pfa), from (0, 1) on, first has both equal."""
    (miss, false), *rest = [(Fraction(0), Fraction(1)), *points]
    for next_miss, next_false in rest:
        if next_miss >= next_false:
            t = (false - miss) / (false - miss + next_miss - next_false)
            return miss + t * (next_miss - miss)
        miss, false = next_miss, next_false
    raise ValueError("the rates do not meet")


class Errors(NamedTuple):
    """Squares of the standard errors of mean Pmiss and mean Pfa."""

    pmiss: Fraction
    pfa: Fraction


def squared_errors(queries: Sequence[Ranked], threshold: float | None, *, trials: int) -> Errors:
    """Sample variance of the queries' rates by n - 1, detections with score >= threshold accepted (None: none)."""
    pmiss, pfa = [], []
    for query in queries:
        accepted = [hit for score, hit in query.detections if threshold is not None and score >= threshold]
        pmiss.append(1 - Fraction(accepted.count(True), query.ntrue))
        pfa.append(Fraction(accepted.count(False), trials - query.ntrue))
    return Errors(*(Fraction(variance(values)) / (len(queries) - 1) for values in (pmiss, pfa)))


def document_trials(
    detections: Sequence[tuple[str, str, float]], references: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], tuple[float | None, bool]]:
    """(query, document) -> its best score, and whether it is a target."""
    keys = {(query, document) for query, document, _ in detections} | set(references)
    best = {
        key: max((score for query, document, score in detections if (query, document) == key), default=None)
        for key in keys
    }
    return {key: (best[key], key in references) for key in keys}


class QuesstPoint(NamedTuple):
    """Means where scores up to `threshold` are rejected."""

    threshold: float
    pmiss: Fraction
    pfa: Fraction


def quesst_curve(scores: Sequence[Sequence[float]], targets: Sequence[Sequence[bool]]) -> list[QuesstPoint]:
    """Points of QUESST's curve; rows are queries, each with a target and a non-target, columns documents."""
    points = []
    for threshold in [-math.inf, *sorted({score for row in scores for score in row})]:
        pmiss, pfa = Fraction(0), Fraction(0)
        for row, truth in zip(scores, targets, strict=True):
            rejected = [score <= threshold for score in row]
            pmiss += Fraction(sum(r and t for r, t in zip(rejected, truth, strict=True)), sum(truth))
            pfa += Fraction(sum(not r and not t for r, t in zip(rejected, truth, strict=True)), len(row) - sum(truth))
        points.append(QuesstPoint(threshold, pmiss / len(scores), pfa / len(scores)))
    return points


def quesst_least(order: Sequence[tuple[float, bool]], prior: float) -> float:
    """Least Cnxe of QUESST: (score, target) of single trials, pooled by score, equal ones in their order."""
    labels = [target for _, target in sorted(order, key=lambda trial: trial[0])]
    rates = rising_rates([int(label) for label in labels], [1] * len(labels))
    odds = Fraction(sum(labels), len(labels) - sum(labels))

    def llr(rate: Fraction) -> float:  # 1000 stands for infinity: exp(-1000) is 0
        return 1000.0 if rate == 1 else -1000.0 if rate == 0 else math.log(rate / (1 - rate) / odds)

    pooled = [(llr(rate), label) for rate, label in zip(rates, labels, strict=True)]
    return cross_entropy([x for x, label in pooled if label], [x for x, label in pooled if not label], prior)
