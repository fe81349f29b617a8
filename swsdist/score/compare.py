"""Comparison of systems: paired tests, intervals and effect sizes over per-term values.

Systems are compared over the same queries and the same references, a pair of values a query. What is compared is a
column of the per-term table (`swsdist.score.per_term`): `twv`, whose mean is ATWV; `best_twv`, `pmiss`, `pfa`. For values
at a threshold of one's own, MTWV's say, decide the aligned list by it and make the table again (`decided_at`).

Rules:

- Queries without references take no part, as in TWV.
- A query with references that a system's table lacks counts as all missed: Pmiss 1, Pfa 0, TWV 0. How many is told.
- Two tables that know different numbers of references for a query were not scored alike: `UserError`.
- A query with references whose detections are not decided has no value: `UserError`.
- Differences below 1e-12 are rounding, and are 0; so are those between two differences when they are ranked.

Tests, two-sided: the paired t test, which takes the differences as normally distributed, and the Wilcoxon signed-rank
test, which does not. Per-term values are far from normal, so where the two disagree the latter is to be believed (Wang
and Metze 2014, section 3.2). Over systems, the pairs are the ATWVs of each under two conditions: the same functions.

Sources: Wang and Metze, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
2014, section 3.2; Wilcoxon 1945; Pratt 1959; Holm, "A simple sequentially rejective multiple test procedure", 1979;
Benjamini and Hochberg, "Controlling the false discovery rate", 1995; Kerby, "The simple difference formula", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.errors import TableError, UserError
from swsdist.score.bootstrap import Interval, Method, bootstrap_terms
from swsdist.score.twv import TIE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Zeros = Literal["wilcox", "pratt", "zsplit"]

#: Columns of the per-term table that can be compared, and what a query counts that a system's table lacks.
VALUES = {"twv": 0.0, "best_twv": 0.0, "pmiss": 1.0, "pfa": 0.0}
_LESS_IS_BETTER = ("pmiss", "pfa")

#: Up to so many differences, without ties or zeros, Wilcoxon's distribution is computed exactly.
MOST_EXACT = 50


@dataclass(frozen=True, eq=False)
class Paired:
    """Values of several systems for the same queries.

    Attributes:
        systems: names.
        queries: ids of the queries with references, ascending.
        ntrue: int64 (Q,).
        values: float64 (S, Q).
        absent: queries with references that a system's table lacks, by system.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    ntrue: Ints
    values: Floats
    absent: Mapping[str, int]


def paired(tables: Mapping[str, pa.Table], value: str = "twv") -> Paired:
    """Bring per-term tables of systems together.

    Args:
        tables: system -> schema PER_TERM, rows in any order.
        value: a key of `VALUES`.

    Raises:
        UserError: there are fewer than two systems, references differ, detections are not decided, or no query has
            references.
        TableError: a query stands in a table twice, or a column is missing.
    """
    if value not in VALUES:
        raise UserError(f"there is no value {value!r} to compare", remedy=f"choose one of: {', '.join(VALUES)}")
    if len(tables) < 2:
        raise UserError(f"there is nothing to compare with: {len(tables)} system", remedy="name two systems or more")
    ntrue: dict[str, tuple[int, str]] = {}
    found: dict[str, dict[str, float]] = {}
    for system, table in tables.items():
        mine = found[system] = {}
        for query, count, number in _rows(system, table, value):
            known, other = ntrue.setdefault(query, (count, system))
            if known != count:
                raise UserError(
                    f"query {query!r} has {count} references here and {known} in {other}",
                    where=system,
                    remedy="score all systems with the same references and the same documents, then compare",
                )
            if count == 0:
                continue
            if number is None:
                raise UserError(
                    f"query {query!r} has no {value}: its detections are neither YES nor NO",
                    where=system,
                    remedy="decide them (swsdist calibrate), or compare best_twv",
                )
            mine[query] = number
    queries = tuple(sorted(query for query, (count, _) in ntrue.items() if count))
    if not queries:
        raise UserError(
            "no query has a reference, so there are no values to compare",
            remedy="check that query ids of references and detections are the same",
        )
    return Paired(
        systems=tuple(tables),
        queries=queries,
        ntrue=np.array([ntrue[query][0] for query in queries], dtype=np.int64),
        values=np.array([[found[system].get(query, VALUES[value]) for query in queries] for system in tables]),
        absent={system: len(queries) - len(found[system]) for system in tables},
    )


def decided_at(aligned: pa.Table, threshold: float | None) -> pa.Table:
    """An aligned list with every detection decided anew: YES if its score is at least the threshold.

    Args:
        aligned: schema TRIALS.
        threshold: None rejects everything.
    """
    score = aligned["score"]
    yes = pc.and_(pc.is_valid(score), False) if threshold is None else pc.greater_equal(score, threshold)
    decision = pc.if_else(pc.is_valid(score), yes, pa.scalar(None, pa.bool_()))
    return aligned.set_column(aligned.schema.get_field_index("decision"), "decision", decision)


@dataclass(frozen=True)
class TTest:
    """Paired t test. `p` is None where the differences do not vary, or there are fewer than two."""

    n: int
    statistic: float | None
    p: float | None


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test.

    Attributes:
        n: pairs.
        zeros: of them without difference.
        zero_method: what became of those: `wilcox` drops them, `pratt` ranks and then drops them, `zsplit` halves them.
        exact: whether the distribution was computed; else it is the normal approximation, no continuity correction.
        statistic: the lesser of the two sums of ranks.
        p: 1 where there is no difference at all.
    """

    n: int
    zeros: int
    zero_method: Zeros
    exact: bool
    statistic: float
    p: float


def differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """first - second, rounded to 1e-12, so that what is equal but for rounding is 0 or a tie.

    Raises:
        UserError: they are not of one length, or one is not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise UserError(f"values of shapes {a.shape} and {b.shape} make no pairs", remedy="give as many of both")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise UserError("a value is not a finite number", remedy="leave its pair out")
    rounded: Floats = np.rint((a - b) / TIE) * TIE + 0.0
    return rounded


def paired_t(first: ArrayLike, second: ArrayLike) -> TTest:
    """Paired t test of two rows of values (scipy.stats.ttest_rel); p is 1 where no pair differs.

    Args:
        first, second: float64 (n,): values of queries, or ATWVs of systems under two conditions.
    """
    from scipy.stats import ttest_1samp

    found = differences(first, second)
    if not found.any():
        return TTest(len(found), 0.0, 1.0) if len(found) else TTest(0, None, None)
    if np.ptp(found) <= TIE:
        return TTest(len(found), None, None)
    result = ttest_1samp(found, 0.0)
    return TTest(len(found), float(result.statistic), float(result.pvalue))


def wilcoxon(first: ArrayLike, second: ArrayLike, zero_method: Zeros = "wilcox") -> Wilcoxon:
    """Wilcoxon's signed-rank test of two rows of values (scipy.stats.wilcoxon).

    Exact up to 50 pairs that differ and have no ties, unless zeros are ranked too; else the normal approximation.

    Args:
        first, second: float64 (n,).
        zero_method: see `Wilcoxon`.
    """
    from scipy.stats import wilcoxon as signed_rank

    found = differences(first, second)
    zeros = int((found == 0).sum())
    if zeros == len(found):
        return Wilcoxon(len(found), zeros, zero_method, True, 0.0, 1.0)
    sizes = np.abs(found[found != 0])
    ties = len(np.unique(np.rint(sizes / TIE))) < len(sizes)
    exact = len(sizes) <= MOST_EXACT and not ties and (zero_method == "wilcox" or not zeros)
    ranked = found[found != 0] if zero_method == "wilcox" else found
    result = signed_rank(ranked, zero_method=zero_method, method="exact" if exact else "asymptotic")
    return Wilcoxon(len(found), zeros, zero_method, exact, float(result.statistic), float(result.pvalue))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected so that a single false alarm among all has at most that chance (Holm 1979); None stays None."""
    known = sorted((value, index) for index, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    worst = 0.0
    for rank, (value, index) in enumerate(known):
        worst = max(worst, min(1.0, value * (len(known) - rank)))
        corrected[index] = worst
    return corrected


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected for the expected share of false alarms among what is called different; None stays None."""
    from scipy.stats import false_discovery_control

    known = [index for index, value in enumerate(p) if value is not None]
    corrected: list[float | None] = [None] * len(p)
    if known:
        for index, value in zip(known, false_discovery_control([p[index] for index in known]), strict=True):
            corrected[index] = float(value)
    return corrected


def cohen_d(first: ArrayLike, second: ArrayLike) -> float | None:
    """Cohen's d of paired values: mean of the differences / their standard deviation; None where they do not vary."""
    found = differences(first, second)
    if len(found) < 2 or np.ptp(found) <= TIE:
        return None
    return math.fsum(found) / len(found) / float(np.std(found, ddof=1))


def rank_biserial(first: ArrayLike, second: ArrayLike) -> float | None:
    """Matched-pairs rank-biserial correlation (Kerby 2014): (R+ - R-) / (R+ + R-), from -1 to 1; None if none differ.

    R+ and R- are the sums of the ranks of the positive and negative differences, zeros left out.
    """
    from scipy.stats import rankdata

    found = differences(first, second)
    found = found[found != 0]
    if not len(found):
        return None
    ranks = rankdata(np.rint(np.abs(found) / TIE))
    return float((ranks[found > 0].sum() - ranks[found < 0].sum()) / ranks.sum())


@dataclass(frozen=True)
class SystemRow:
    """A system: mean of its values, the interval of the mean over terms, and queries that its table lacks."""

    system: str
    mean: float
    interval: Interval
    absent: int


@dataclass(frozen=True)
class PairRow:
    """Two systems: mean difference (first - second) with interval, tests, and on how many queries the first is better
    (wins), worse (losses) and the same (ties). Of Pmiss and Pfa the lesser is better.

    `*_holm` and `*_fdr` are corrected over all pairs of the comparison (Holm; Benjamini and Hochberg).
    """

    first: str
    second: str
    difference: float
    interval: Interval
    t: TTest
    t_holm: float | None
    t_fdr: float | None
    wilcoxon: Wilcoxon
    wilcoxon_holm: float | None
    wilcoxon_fdr: float | None
    wins: int
    losses: int
    ties: int
    cohen_d: float | None
    rank_biserial: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems in the order given, all pairs of them, and the values they were compared by."""

    value: str
    paired: Paired
    systems: tuple[SystemRow, ...]
    pairs: tuple[PairRow, ...]


def compare(
    tables: Mapping[str, pa.Table],
    *,
    value: str = "twv",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    method: Method = "percentile",
    zero_method: Zeros = "wilcox",
) -> Comparison:
    """Compare every two of the systems.

    Args:
        tables: system -> schema PER_TERM.
        value: a key of `VALUES`.
        level: of confidence of the intervals, which are bootstrapped over terms.
        resamples: draws of the bootstrap.
        seed: of its generator.
        method: `percentile` or `bca`.
        zero_method: of Wilcoxon's test.

    Raises:
        UserError, TableError: as of `paired`.
    """
    joined = paired(tables, value)
    draws = bootstrap_terms(joined.values, resamples=resamples, seed=seed)

    def interval(system: int, other: int | None = None) -> Interval:
        return draws.interval(system, other, level=level, method=method)

    systems = tuple(
        SystemRow(name, float(draws.observed[k]), interval(k), joined.absent[name])
        for k, name in enumerate(joined.systems)
    )
    indices = list(combinations(range(len(systems)), 2))
    rows = [(joined.values[i], joined.values[j]) for i, j in indices]
    t = [paired_t(a, b) for a, b in rows]
    w = [wilcoxon(a, b, zero_method) for a, b in rows]
    p_t, p_w = [one.p for one in t], [one.p for one in w]
    corrected = zip(holm(p_t), benjamini_hochberg(p_t), holm(p_w), benjamini_hochberg(p_w), strict=True)
    pairs = []
    for k, ((i, j), (a, b), (t_holm, t_fdr, w_holm, w_fdr)) in enumerate(zip(indices, rows, corrected, strict=True)):
        better = differences(b, a) if value in _LESS_IS_BETTER else differences(a, b)
        pairs.append(
            PairRow(
                first=systems[i].system,
                second=systems[j].system,
                difference=float(draws.observed[i] - draws.observed[j]),
                interval=interval(i, j),
                t=t[k],
                t_holm=t_holm,
                t_fdr=t_fdr,
                wilcoxon=w[k],
                wilcoxon_holm=w_holm,
                wilcoxon_fdr=w_fdr,
                wins=int((better > 0).sum()),
                losses=int((better < 0).sum()),
                ties=int((better == 0).sum()),
                cohen_d=cohen_d(a, b),
                rank_biserial=rank_biserial(a, b),
            )
        )
    return Comparison(value, joined, systems, tuple(pairs))


def _rows(system: str, table: pa.Table, value: str) -> list[tuple[str, int, float | None]]:
    """Query, Ntrue and value, each query once."""
    for name in ("query_id", "ntrue", value):
        if name not in table.column_names:
            raise TableError(
                f"there is no column {name!r}",
                where=system,
                remedy=f"give a per-term table; its columns are: {', '.join(table.column_names)}",
            )
    rows = list(zip(*(table[name].to_pylist() for name in ("query_id", "ntrue", value)), strict=True))
    seen: set[str] = set()
    for row, (query, count, number) in enumerate(rows, 1):
        if query is None or count is None or count < 0 or (number is not None and not math.isfinite(number)):
            raise TableError(
                f"query {query!r} has ntrue {count} and {value} {number}",
                where=f"{system}, row {row}",
                remedy="correct the row, or score the system again",
            )
        if query in seen:
            raise TableError(
                f"query {query!r} stands there twice", where=f"{system}, row {row}", remedy="keep one of its rows"
            )
        seen.add(query)
    return rows
