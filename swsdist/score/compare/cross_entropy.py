"""Comparison of systems by min Cnxe: intervals and a paired test, resampled over queries.

Min Cnxe is computed over all trials of all queries (`swsdist.score.measures.cnxe`), not as a mean over queries, so the
tests of per-query values do not apply. Instead queries are resampled: Q queries are drawn with replacement from the Q
of the set, including those without references or detections; the trials of a query that is drawn twice count twice; the
affine map is fitted to each draw, and trials that were not submitted get the least submitted score of the draw. All
systems use the same draws.

The p value of a difference is two-sided: twice the part of the draws in which the difference does not have its observed
sign, at most 1, and at least 2 / (draws + 1); 1 if the observed difference is 0.

More than `BINS` distinct scores are binned in a draw, with even shares of targets, non-targets and the range of scores,
each with its mean score, which changes a value by some 1e-4. Observed values are exact.

Sources: those of `swsdist.score.compare.bootstrap`; Efron and Tibshirani 1993, section 15.4, for significance from
intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Bools, Floats
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.score.compare.bootstrap import Bootstrap, Interval, draws_of
from swsdist.score.compare.paired import holm
from swsdist.score.measures.cnxe import Trials, cnxe_min, prior_entropy

#: Maximum number of distinct scores in a draw.
BINS = 512

_STEPS = 60  # Newton steps, starting from the best map of the observed values


@dataclass(frozen=True)
class EntropyRow:
    """A system: its min Cnxe, and the interval over queries."""

    system: str
    value: float
    interval: Interval


@dataclass(frozen=True)
class EntropyPair:
    """Two systems: the difference (first - second) of min Cnxe, its interval, and p, also corrected over all pairs (Holm)."""

    first: str
    second: str
    difference: float
    interval: Interval
    p: float
    p_holm: float


@dataclass(frozen=True)
class Entropies:
    """Systems in the given order, and all pairs of them.

    Attributes:
        systems, pairs: rows.
        queries: number of queries in the set.
        draws: number of draws; `undefined` of them have no true occurrence, and are left out.
    """

    systems: tuple[EntropyRow, ...]
    pairs: tuple[EntropyPair, ...]
    queries: int
    draws: int
    undefined: int = 0


@dataclass(frozen=True, eq=False)
class ByQuery:
    """Submitted trials of a system, counted by query and score.

    Attributes:
        queries: ids, ascending.
        score: float64 (K,), ascending: distinct scores, or means of bins.
        true, false: float64 (Q, K), integer values.
        ntrue: float64 (Q,), target trials, submitted or not.
        trials: all trials, without binning.
    """

    queries: tuple[str, ...]
    score: Floats
    true: Floats
    false: Floats
    ntrue: Floats
    trials: Trials

    @classmethod
    def of(cls, aligned: Iterable[pa.Table], *, trials: int, queries: int, bins: int = BINS) -> ByQuery:
        """Count an aligned list.

        Args:
            aligned: schema TRIALS, in parts that hold their queries whole.
            trials: N of each query.
            queries: of the set.
            bins: maximum number of distinct scores.
        """
        table = pa.concat_tables([part.select(["query_id", "score", "ref_start"]) for part in aligned])
        trials_of_list = Trials.of_aligned(table, trials=trials, queries=queries)
        encoded = table["query_id"].cast(pa.string()).combine_chunks().dictionary_encode()
        names = encoded.dictionary.to_pylist()
        rank = np.argsort(np.argsort(names))
        query = rank[encoded.indices.to_numpy()]
        hypothesised, hit = pc.is_valid(table["score"]).to_numpy(), pc.is_valid(table["ref_start"]).to_numpy()
        score = pc.fill_null(table["score"], 0.0).to_numpy()[hypothesised] + 0.0
        place = np.searchsorted(trials_of_list.llr, score)
        if len(trials_of_list.llr) > bins:
            count = (trials_of_list.true + trials_of_list.false).astype(np.float64)
            # Keeps few targets among many non-targets, and distant scores (the least is for trials not submitted), separate.
            width = np.diff(trials_of_list.llr, prepend=trials_of_list.llr[0]) / (
                trials_of_list.llr[-1] - trials_of_list.llr[0]
            )
            mass = sum((side / max(1, int(side.sum())) for side in (trials_of_list.true, trials_of_list.false)), width)
            bin_of = ((np.cumsum(mass) - mass / 2) / mass.sum() * bins).astype(np.int64)
            bin_of[0] = -1
            _, bin_of = np.unique(bin_of, return_inverse=True)
            sums, bin_counts = np.bincount(bin_of, trials_of_list.llr * count), np.bincount(bin_of, count)
            levels, place = sums / bin_counts, bin_of[place]
        else:
            levels = trials_of_list.llr
        cell = query[hypothesised] * len(levels) + place
        shape = len(names), len(levels)
        true, false = (
            np.bincount(cell[of], minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
            for of in (hit[hypothesised], ~hit[hypothesised])
        )
        ntrue = np.bincount(query[hit], minlength=len(names)).astype(np.float64)
        return cls(tuple(sorted(names)), levels, true, false, ntrue, trials_of_list)

    def spread(self, queries: list[str]) -> ByQuery:
        """The counts with rows for additional queries, in their order."""
        place = {name: k for k, name in enumerate(queries)}
        rows = [place[name] for name in self.queries]
        true, false = (np.zeros((len(queries), len(self.score))) for _ in range(2))
        ntrue = np.zeros(len(queries))
        true[rows], false[rows], ntrue[rows] = self.true, self.false, self.ntrue
        return ByQuery(tuple(queries), self.score, true, false, ntrue, self.trials)


def compare_entropies(
    lists: Mapping[str, Iterable[pa.Table]],
    *,
    trials: int,
    queries: int,
    prior: float,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Entropies:
    """Compare every two of the systems by min Cnxe.

    Args:
        lists: system -> its aligned list, in parts that hold their queries whole.
        trials: N of each query.
        queries: of the set, with and without references.
        prior: effective, in (0, 1).
        level, resamples, seed: of the intervals, which are percentiles.

    Raises:
        UserError: a list has no true occurrence, or the references differ.
    """
    if resamples < 1:
        raise codes.TOO_FEW_RESAMPLES(resamples=resamples)
    by_name = {name: ByQuery.of(parts, trials=trials, queries=queries) for name, parts in lists.items()}
    names = sorted({query for item in by_name.values() for query in item.queries})
    if len(names) > queries:
        raise codes.TOO_MANY_QUERIES(listed=len(names), queries=queries)
    counted = [item.spread(names) for item in by_name.values()]
    if any(not np.array_equal(item.ntrue, counted[0].ntrue) for item in counted):
        raise codes.DIFFERENT_REFERENCES()
    observed = np.array([cnxe_min(item.trials, prior).cnxe for item in counted])
    once = np.ones((1, len(names)))
    starts = [_least(item, once, trials, queries, prior)[1] for item in counted]
    pieces = []
    for weights in draws_of(queries, resamples, seed):
        drawn = np.ascontiguousarray(weights[: len(names)].T)  # (draws, queries that have a row)
        minima = (
            _least(item, drawn, trials, queries, prior, start) for item, start in zip(counted, starts, strict=True)
        )
        pieces.append(np.stack([values for values, _ in minima]))
    replicates = np.concatenate(pieces, axis=1)
    defined = np.isfinite(replicates).all(axis=0)
    if not defined.any():
        raise families.UNDEFINED(
            "no resample of queries has a true occurrence", "give references of more queries, or more resamples"
        )
    boot = Bootstrap(observed, replicates[:, defined], np.empty((len(counted), 0)), int((~defined).sum()))
    systems = tuple(
        EntropyRow(name, float(observed[k]), boot.interval(k, level=level, method="percentile"))
        for k, name in enumerate(by_name)
    )
    indices = list(combinations(range(len(systems)), 2))
    p = [_p(boot, i, j) for i, j in indices]
    pairs = tuple(
        EntropyPair(
            systems[i].system,
            systems[j].system,
            float(observed[i] - observed[j]),
            boot.interval(i, j, level=level, method="percentile"),
            p[k],
            corrected if corrected is not None else 1.0,
        )
        for k, ((i, j), corrected) in enumerate(zip(indices, holm(p), strict=True))
    )
    return Entropies(systems, pairs, queries, resamples, boot.undefined)


def _p(boot: Bootstrap, first: int, second: int) -> float:
    side = np.sign(boot.observed[first] - boot.observed[second])
    draws = (boot.replicates[first] - boot.replicates[second]) * side
    return min(1.0, 2 * (int((draws <= 0).sum()) + 1) / (len(draws) + 1))


def _least(
    by_query: ByQuery, drawn: Floats, trials: int, queries: int, prior: float, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Min Cnxe of each draw, float64 (draws,), NaN where there is no true occurrence; and the last draw's slope and offset.

    Args:
        by_query: counts.
        drawn: float64 (draws, queries with a row), how often each is drawn.
        trials, queries, prior: of the set.
        start: slope and offset to begin with.
    """
    true, false = drawn @ by_query.true, drawn @ by_query.false  # integers below 2^53: exact
    n_true = drawn @ by_query.ntrue
    n_false = float(queries * trials) - n_true
    submitted = (true + false) > 0
    least = np.where(submitted.any(axis=1), submitted.argmax(axis=1), 0)
    rows = np.arange(len(drawn))
    true[rows, least] += n_true - true.sum(axis=1)
    n_false = np.maximum(n_false, false.sum(axis=1))
    false[rows, least] += n_false - false.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = prior * true / n_true[:, None], (1 - prior) * false / n_false[:, None]
        nats, end = _newton(
            by_query.score, *weight, math.log(prior / (1 - prior)), np.zeros(2) if start is None else start
        )
    entropy = prior_entropy(prior) * math.log(2)
    result: Floats = np.where((n_true > 0) & (n_false > 0), nats / entropy, np.nan)
    return result, end


def _newton(score: Floats, true: Floats, false: Floats, offset: float, start: Floats) -> tuple[Floats, Floats]:
    """The least cost of an affine map of the scores, in nats, for each row of weights; and the map of the last row.

    Damped Newton steps for all rows at once; a row that is done stays. Where a threshold parts targets from non-targets
    without fault the cost goes to zero as the slope grows, and the last step is near enough.
    """
    centre = float(np.mean(score)) if len(score) else 0.0
    scale = float(np.mean(np.abs(score - centre))) or 1.0 if len(score) else 1.0
    x = (score - centre) / scale
    both = true + false
    rows = len(true)
    a, b = np.full(rows, start[0]), np.full(rows, start[1])

    def cost(a: Floats, b: Floats, of: Bools | slice = slice(None)) -> Floats:
        z = a[:, None] * x + (b[:, None] + offset)
        soft = np.log1p(np.exp(-np.abs(z)))
        value: Floats = (true[of] * (soft + np.maximum(-z, 0)) + false[of] * (soft + np.maximum(z, 0))).sum(axis=1)
        return value

    best = cost(a, b)
    going = np.isfinite(best)
    for _ in range(_STEPS):
        if not going.any():
            break
        z = a[going, None] * x + (b[going, None] + offset)
        with np.errstate(over="ignore"):  # where exp is infinite, the posterior is 0
            posterior = 1 / (1 + np.exp(-z))
        slope = both[going] * posterior - true[going]
        curvature = both[going] * posterior * (1 - posterior)
        g0, g1 = slope.sum(axis=1), slope @ x
        h00, h01, h11 = curvature.sum(axis=1), curvature @ x, curvature @ (x * x)
        determinant = h00 * h11 - h01 * h01
        flat = determinant <= 1e-300
        determinant = np.where(flat, 1.0, determinant)
        da = np.where(flat, 0.0, -(h00 * g1 - h01 * g0) / determinant)
        db = np.where(flat, 0.0, -(h11 * g0 - h01 * g1) / determinant)
        step = np.ones(len(da))
        now = best[going]
        reached = cost(a[going] + da, b[going] + db, going)
        for _ in range(30):
            worse = ~(reached <= now)
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
            reached = cost(a[going] + step * da, b[going] + step * db, going)
        worse = ~(reached <= now)
        a[going] += np.where(worse, 0.0, step * da)
        b[going] += np.where(worse, 0.0, step * db)
        best[going] = np.where(worse, now, reached)
        on = ~worse & (now - reached > 1e-10 * now)
        where = np.flatnonzero(going)
        going[where[~on]] = False
    return best, np.array([a[-1], b[-1]])
