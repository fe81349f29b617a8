"""Comparison of systems by values of the same queries: paired tests, corrections, effect sizes and intervals.

Systems are compared over the same queries and the same references, a pair of values a query. What is compared is a
column of the per-term table (`score.measures.twv.per_term`): `twv`, whose mean is ATWV; `best_twv`, `pmiss`, `pfa`. For
values at another threshold, for example that of MTWV, decide the aligned list by it and compute the table again
(`decided_at`). Over systems instead of queries, the pairs are the ATWVs of each system under two conditions
(`conditions`).

Queries:

- Queries without references are left out, as in TWV.
- A query with references that a system's table lacks counts as all missed: Pmiss 1, Pfa 0, TWV 0; their number is
  reported.
- Different numbers of references for a query in two tables are a `UserError`.
- A query with references whose detections are not decided has no value: `UserError`.

Tests of the mean difference are two-sided. Per-term values are far from normal and skewed (Wang and Metze 2014, section
3.2), so the test to rely on is that of sign flips.

- **Sign flips** (paired permutation test). If two systems do not differ, each query's difference is as likely to be
  positive as negative. p is how often the mean with other signs is at least as far from 0 as the observed one. All
  choices of signs are tried if there are at most `DRAWS`; else `DRAWS` random ones, and the observed one counts as one
  more.
- **Paired t test**, of the mean of normally distributed differences.
- **Wilcoxon's signed-rank test**, of their ranks, which may favour the system with the lesser mean.

Differences below 1e-12 are rounding, and are 0; so are those between two differences when they are ranked.

Many tests are corrected by Holm's procedure, or by Benjamini's and Hochberg's (false discovery rate). Many systems
against one are corrected by the step-down maxT procedure of Westfall and Young (`max_t`): signs are changed for all
systems alike, which keeps the dependence between systems, and a corrected p value is how often the greatest statistic
among the systems that differ no more is at least as great as the observed one. It finds more than Holm's correction if
systems are much alike, as points of a sweep are. The statistic is the sum of the differences over the root of the sum
of their squares, which no change of sign alters; it rises with the paired t statistic.

Intervals are those of `swsdist.score.compare.bootstrap`.

Sources: Wang and Metze, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
2014, section 3.2; sign flips: Fisher, "The design of experiments", 1935, section 21; maxT: Westfall and Young,
"Resampling-based multiple testing", 1993, chapter 4, and Ge, Dudoit and Speed, "Resampling-based multiple testing for
microarray data analysis", 2003, section 3.2; Wilcoxon 1945; Pratt 1959; Holm, "A simple sequentially rejective multiple
test procedure", 1979; Benjamini and Hochberg, "Controlling the false discovery rate", 1995; Kerby, "The simple
difference formula", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import TableError, UserError
from swsdist.registry.entries import Quantity
from swsdist.registry.registries import quantities
from swsdist.score.compare.bootstrap import Interval, Method, bootstrap_terms
from swsdist.score.measures.curve import TIE
from swsdist.score.measures.twv import PER_TERM

Zeros = Literal["wilcox", "pratt", "zsplit"]

#: Maximum number of differences (without ties or zeros) for which Wilcoxon's distribution is computed exactly.
MOST_EXACT = 50


@dataclass(frozen=True)
class TTest:
    """Paired t test. `p` is None if the differences do not vary or are fewer than two."""

    n: int
    statistic: float | None
    p: float | None


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test.

    Attributes:
        n: pairs.
        zeros: pairs without difference.
        zero_method: treatment of zeros: `wilcox` drops them, `pratt` ranks and then drops them, `zsplit` halves them.
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
    """first - second, float64 (n,), rounded to 1e-12, so that rounding errors become 0 or ties.

    Raises:
        UserError: they are not of one length, or one is not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise families.MISMATCH(
            "values of shapes {first} and {second} cannot be paired",
            "give two sequences of one length",
            first=a.shape,
            second=b.shape,
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise families.INVALID_VALUE.of(UserError)("a paired value is not finite", "leave its pair out")
    rounded: Floats = np.rint((a - b) / TIE) * TIE + 0.0
    return rounded


def paired_t(first: ArrayLike, second: ArrayLike) -> TTest:
    """Paired t test of two rows of values (scipy.stats.ttest_rel); p is 1 where no pair differs.

    Args:
        first, second: float64 (n,): values of queries, or ATWVs of systems under two conditions.
    """
    from scipy.stats import ttest_1samp

    pairs = differences(first, second)
    if not pairs.any():
        return TTest(len(pairs), 0.0, 1.0) if len(pairs) else TTest(0, None, None)
    if np.ptp(pairs) <= TIE:
        return TTest(len(pairs), None, None)
    result = ttest_1samp(pairs, 0.0)
    return TTest(len(pairs), float(result.statistic), float(result.pvalue))


def wilcoxon(first: ArrayLike, second: ArrayLike, zero_method: Zeros = "wilcox") -> Wilcoxon:
    """Wilcoxon's signed-rank test of two rows of values (scipy.stats.wilcoxon).

    Exact up to 50 pairs that differ and have no ties, unless zeros are ranked too; else the normal approximation.

    Args:
        first, second: float64 (n,).
        zero_method: see `Wilcoxon`.
    """
    from scipy.stats import wilcoxon as signed_rank

    pairs = differences(first, second)
    zeros = int((pairs == 0).sum())
    if zeros == len(pairs):
        return Wilcoxon(len(pairs), zeros, zero_method, True, 0.0, 1.0)
    sizes = np.abs(pairs[pairs != 0])
    ties = len(np.unique(np.rint(sizes / TIE))) < len(sizes)
    exact = len(sizes) <= MOST_EXACT and not ties and (zero_method == "wilcox" or not zeros)
    ranked = pairs[pairs != 0] if zero_method == "wilcox" else pairs
    result = signed_rank(ranked, zero_method=zero_method, method="exact" if exact else "asymptotic")
    return Wilcoxon(len(pairs), zeros, zero_method, exact, float(result.statistic), float(result.pvalue))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected for the probability of any false alarm among all (Holm 1979); None stays None."""
    defined = sorted((value, index) for index, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    worst = 0.0
    for rank, (value, index) in enumerate(defined):
        worst = max(worst, min(1.0, value * (len(defined) - rank)))
        corrected[index] = worst
    return corrected


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected for the expected share of false alarms (false discovery rate); None stays None.

    Source: Benjamini and Hochberg 1995.
    """
    from scipy.stats import false_discovery_control

    defined = [index for index, value in enumerate(p) if value is not None]
    corrected: list[float | None] = [None] * len(p)
    if defined:
        for index, value in zip(defined, false_discovery_control([p[index] for index in defined]), strict=True):
            corrected[index] = float(value)
    return corrected


def cohen_d(first: ArrayLike, second: ArrayLike) -> float | None:
    """Cohen's d of paired values, (n,) each: mean of the differences / their standard deviation; None if that is 0."""
    pairs = differences(first, second)
    if len(pairs) < 2 or np.ptp(pairs) <= TIE:
        return None
    return math.fsum(pairs) / len(pairs) / float(np.std(pairs, ddof=1))


def rank_biserial(first: ArrayLike, second: ArrayLike, zero_method: Zeros = "wilcox") -> float | None:
    """Matched-pairs rank-biserial correlation (Kerby 2014): (R+ - R-) / (R+ + R-), from -1 to 1; None if none differ.

    R+ and R- are the sums of the ranks of the positive and negative differences, ranked as by `wilcoxon`.
    """
    from scipy.stats import rankdata

    pairs = differences(first, second)
    if not pairs.any():
        return None
    pairs = pairs[pairs != 0] if zero_method == "wilcox" else pairs
    ranks = rankdata(np.rint(np.abs(pairs) / TIE))
    above, below = ranks[pairs > 0].sum(), ranks[pairs < 0].sum()
    return float((above - below) / (above + below))


#: Random changes of sign; Holm's correction over 1000 pairs leaves a p of at least 0.01.
DRAWS = 100_000

#: Statistics (8 bytes each) in memory at once.
_CELLS = 1 << 22
_ROUNDING = 1e-9  # of sums in another order


@dataclass(frozen=True)
class SignFlip:
    """Sign-flip test of a mean difference.

    Attributes:
        n: pairs.
        exact: whether `draws` are all choices of signs of the pairs that differ; else they are random.
        draws: choices of signs tried.
        p: 1 where there is no difference at all.
    """

    n: int
    exact: bool
    draws: int
    p: float


def sign_flips(pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, draws: int = DRAWS, seed: int = 0) -> list[SignFlip]:
    """Test the mean difference of each pair of rows; a result does not depend on the other pairs.

    Args:
        pairs: two float64 (n,) each, all of one length.
        draws: random changes of sign.
        seed: of the generator, numpy's PCG64.
    """
    if not pairs:
        return []
    scaled, observed = _scaled(np.stack([differences(first, second) for first, second in pairs]))
    n = scaled.shape[1]
    few = 2.0 ** np.count_nonzero(scaled, axis=1) <= draws
    results = {int(k): _exact(scaled[k], observed[k]) for k in np.flatnonzero(few)}
    many = np.flatnonzero(~few)
    reached = np.zeros(len(many), dtype=np.int64)
    for sums in _flipped(scaled[many], draws, seed):
        reached += (sums >= observed[many, None] - _ROUNDING).sum(axis=1)
    results |= {
        int(k): SignFlip(n, False, draws, float(count + 1) / (draws + 1))
        for k, count in zip(many, reached, strict=True)
    }
    return [results[k] for k in range(len(pairs))]


def _exact(scaled: Floats, observed: float) -> SignFlip:
    sums = np.zeros(1)
    for value in scaled[scaled != 0]:
        sums = np.concatenate([sums + value, sums - value])
    return SignFlip(len(scaled), True, len(sums), float((np.abs(sums) >= observed - _ROUNDING).mean()))


def _scaled(contrasts: Floats) -> tuple[Floats, Floats]:
    """Differences over the roots of the sums of their squares (rows without any stay 0), and the sizes of their sums."""
    size = np.sqrt((contrasts**2).sum(axis=1, keepdims=True))
    scaled = contrasts / np.where(size > 0, size, 1.0)
    return scaled, np.abs(scaled.sum(axis=1))


def _flipped(scaled: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Sizes of the sums of the rows (P, n) with random signs, the same for all rows, in pieces: float64 (P, some)."""
    if not len(scaled):
        return
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CELLS // len(scaled))
    for first in range(0, draws, step):
        some = min(step, draws - first)
        signs = 1.0 - 2.0 * generator.integers(0, 2, (some, scaled.shape[1])).astype(np.float64)
        yield np.abs(scaled @ signs.T)


def max_t(values: Floats, against: Floats, *, permutations: int = DRAWS, seed: int = 0) -> Floats:
    """Corrected p values of the differences of several systems to one, two-sided.

    Args:
        values: float64 (P, Q), of P systems for Q queries.
        against: float64 (Q,), of the one.
        permutations: number of random sign changes.
        seed: of the generator, numpy's PCG64.

    Returns:
        float64 (P,), at least 1 / (permutations + 1); 1 for equal systems.

    Raises:
        UserError: there is no query, or no permutation is asked for.
    """
    if not values.shape[1] or permutations < 1:
        raise families.UNDEFINED(
            "no test is possible with {queries} queries and {permutations} permutations",
            "give queries with references, and ask for 1000 permutations or more",
            queries=values.shape[1],
            permutations=permutations,
        )
    if not len(values):
        return np.zeros(0)
    scaled, observed = _scaled(np.stack([differences(row, against) for row in values]))
    order = np.argsort(-observed, kind="stable")
    reached = np.zeros(len(values), dtype=np.int64)
    for sums in _flipped(scaled[order], permutations, seed):
        greatest = np.maximum.accumulate(sums[::-1], axis=0)[::-1]
        reached += (greatest >= observed[order, None] - _ROUNDING).sum(axis=1)
    p = np.maximum.accumulate((reached + 1) / (permutations + 1))
    corrected = np.empty(len(values))
    corrected[order] = np.where(scaled[order].any(axis=1), p, 1.0)
    return corrected


def values() -> dict[str, Quantity]:
    """Columns of the per-term table that can be compared, and the measures that are their means."""
    quantities_by_column: dict[str, Quantity] = {}
    for quantity in quantities().values():
        if quantity.by_query:
            quantities_by_column.setdefault(quantity.by_query, quantity)
    return quantities_by_column


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
    """Join the per-term tables of systems.

    Args:
        tables: system -> schema PER_TERM, rows in any order.
        value: a key of `values()`.

    Raises:
        UserError: there is no system, references differ, detections are not decided, or no query has
            references.
        TableError: a table has a duplicate query or lacks a column.
    """
    if value not in (columns := values()):
        raise families.UNKNOWN_NAME(
            "{value!r} is not a value of a query", "choose one of: {values}", value=value, values=", ".join(columns)
        )
    if not tables:
        raise codes.TOO_FEW_SYSTEMS(systems=len(tables))
    ntrue: dict[str, tuple[int, str]] = {}
    by_system: dict[str, dict[str, float]] = {}
    for system, table in tables.items():
        row_values = by_system[system] = {}
        for query, count, number in _rows(system, table, value):
            previous, other = ntrue.setdefault(query, (count, system))
            if previous != count:
                raise codes.DIFFERENT_REFERENCE_COUNTS(
                    where=system, query=query, count=count, other_count=previous, other=other
                )
            if count == 0:
                continue
            if number is None:
                raise codes.UNDECIDED_QUERY(where=system, query=query, value=value)
            row_values[query] = number
    queries = tuple(sorted(query for query, (count, _) in ntrue.items() if count))
    if not queries:
        raise codes.NO_REFERENCES(measure=value)
    return Paired(
        systems=tuple(tables),
        queries=queries,
        ntrue=np.array([ntrue[query][0] for query in queries], dtype=np.int64),
        values=np.array(
            [[by_system[system].get(query, columns[value].missed) for query in queries] for system in tables]
        ),
        absent={system: len(queries) - len(by_system[system]) for system in tables},
    )


def completed(table: pa.Table, joined: Paired) -> pa.Table:
    """A system's rows for the queries of a comparison, in their order; missing ones count as all missed.

    Args:
        table: schema PER_TERM.
        joined: output of `paired` for this and other tables.
    """
    rows = {row["query_id"]: row for row in table.to_pylist()}
    missed = {"ncorr": 0, "nfa": 0, **{column: item.missed for column, item in values().items()}}
    all_rows = [
        rows.get(query) or {"query_id": query, "ntrue": int(ntrue), "nmiss": int(ntrue), **missed}
        for query, ntrue in zip(joined.queries, joined.ntrue, strict=True)
    ]
    return pa.Table.from_pylist(all_rows, PER_TERM)


def decided_at(aligned: pa.Table, threshold: float | None) -> pa.Table:
    """Decide all detections of an aligned list again: YES if the score is at least the threshold.

    Args:
        aligned: schema TRIALS.
        threshold: None rejects everything.
    """
    score = aligned["score"]
    yes = pc.and_(pc.is_valid(score), False) if threshold is None else pc.greater_equal(score, threshold)
    decision = pc.if_else(pc.is_valid(score), yes, pa.scalar(None, pa.bool_()))
    return aligned.set_column(aligned.schema.get_field_index("decision"), "decision", decision)


@dataclass(frozen=True)
class SystemRow:
    """A system: mean of its values, interval of the mean over terms, and number of queries missing from its table."""

    system: str
    mean: float
    interval: Interval
    absent: int


@dataclass(frozen=True)
class PairRow:
    """Two systems: mean difference (first - second) with interval, tests, and on how many queries the first is better
    (wins), worse (losses) and the same (ties). Of Pmiss and Pfa the lesser is better.

    `sign_flip` and `t` test the mean difference, `wilcoxon` its ranks, whose direction is the sign of `rank_biserial`. `*_holm`
    and `*_fdr` are corrected over all pairs of the comparison (Holm; Benjamini and Hochberg).
    """

    first: str
    second: str
    difference: float
    interval: Interval
    sign_flip: SignFlip
    sign_flip_holm: float | None
    sign_flip_fdr: float | None
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
    """Systems in the given order, all pairs of them, and the compared values."""

    value: str
    paired: Paired
    systems: tuple[SystemRow, ...]
    pairs: tuple[PairRow, ...]


@dataclass(frozen=True)
class Settings:
    """Settings of intervals and tests.

    Attributes:
        level: of confidence of the intervals, which are bootstrapped over terms.
        resamples: draws of the bootstrap.
        seed: of its generator, and of the sign-flip test's.
        method: `percentile` or `bca`.
        zero_method: of Wilcoxon's test.
    """

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    method: Method = "percentile"
    zero_method: Zeros = "wilcox"


#: Those that nobody set.
DEFAULTS = Settings()


def compare(tables: Mapping[str, pa.Table], settings: Settings = DEFAULTS, *, value: str = "twv") -> Comparison:
    """Compare every two of the systems by the values of queries.

    Args:
        tables: system -> schema PER_TERM.
        settings: of intervals and tests.
        value: a key of `values()`.

    Raises:
        UserError, TableError: as of `paired`.
    """
    return compare_paired(paired(tables, value), settings, value=value)


def conditions(values: Mapping[str, Mapping[str, float]]) -> Paired:
    """Values of systems under several conditions (for example ATWVs) for `compare_paired`, whose "queries" are the systems.

    Args:
        values: condition -> system -> value.

    Raises:
        UserError: there are fewer than two conditions, or they are of different systems.
    """
    names = {condition: tuple(sorted(row)) for condition, row in values.items()}
    if len(values) < 2 or len({*names.values()}) > 1 or not next(iter(names.values())):
        raise families.NOT_COMPARABLE(
            "the systems of the conditions cannot be paired: {systems}",
            "give the value of each system under each of two conditions or more",
            systems=", ".join(f"{k} has {len(v)} systems" for k, v in names.items()) or "nothing given",
        )
    systems = next(iter(names.values()))
    return Paired(
        systems=tuple(values),
        queries=systems,
        ntrue=np.ones(len(systems), dtype=np.int64),
        values=np.array([[row[name] for name in systems] for row in values.values()], dtype=np.float64),
        absent=dict.fromkeys(values, 0),
    )


def compare_paired(joined: Paired, settings: Settings = DEFAULTS, *, value: str = "twv") -> Comparison:
    """Compare all pairs of rows of paired values; arguments as in `compare`."""
    draws = bootstrap_terms(joined.values, resamples=settings.resamples, seed=settings.seed)

    def interval(system: int, other: int | None = None) -> Interval:
        return draws.interval(system, other, level=settings.level, method=settings.method)

    systems = tuple(
        SystemRow(name, float(draws.observed[k]), interval(k), joined.absent[name])
        for k, name in enumerate(joined.systems)
    )
    indices = list(combinations(range(len(systems)), 2))
    rows = [(joined.values[i], joined.values[j]) for i, j in indices]
    t = [paired_t(a, b) for a, b in rows]
    w = [wilcoxon(a, b, settings.zero_method) for a, b in rows]
    flips = sign_flips(rows, seed=settings.seed)
    p_f, p_t, p_w = [item.p for item in flips], [item.p for item in t], [item.p for item in w]
    corrected = zip(*(correct(p) for p in (p_f, p_t, p_w) for correct in (holm, benjamini_hochberg)), strict=True)
    pairs = []
    for k, ((i, j), (a, b), (f_holm, f_fdr, t_holm, t_fdr, w_holm, w_fdr)) in enumerate(
        zip(indices, rows, corrected, strict=True)
    ):
        better = differences(a, b) if values()[value].sign > 0 else differences(b, a)
        pairs.append(
            PairRow(
                first=systems[i].system,
                second=systems[j].system,
                difference=float(draws.observed[i] - draws.observed[j]),
                interval=interval(i, j),
                sign_flip=flips[k],
                sign_flip_holm=f_holm,
                sign_flip_fdr=f_fdr,
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
                rank_biserial=rank_biserial(a, b, settings.zero_method),
            )
        )
    return Comparison(value, joined, systems, tuple(pairs))


def _rows(system: str, table: pa.Table, value: str) -> list[tuple[str, int, float | None]]:
    """Query, Ntrue and value, each query once."""
    for name in ("query_id", "ntrue", value):
        if name not in table.column_names:
            raise codes.ABSENT_COLUMN(where=system, column=name, columns=", ".join(table.column_names))
    rows = list(zip(*(table[name].to_pylist() for name in ("query_id", "ntrue", value)), strict=True))
    seen: set[str] = set()
    for row, (query, count, number) in enumerate(rows, 1):
        if query is None or count is None or count < 0 or (number is not None and not math.isfinite(number)):
            raise families.BAD_CELL(
                "query {query!r} has ntrue {ntrue} and {value} {number}",
                "correct the row, or score the system again",
                where=f"{system}, row {row}",
                query=query,
                ntrue=count,
                value=value,
                number=number,
            )
        if query in seen:
            raise families.DUPLICATE_NAME.of(TableError)(
                "duplicate query {query!r}", "keep one of its rows", where=f"{system}, row {row}", query=query
            )
        seen.add(query)
    return rows
