"""Compares systems: paired tests, intervals and effect sizes over per-term values.

Systems are compared over the same queries and the same references, a pair of values a query. What is compared is a
column of the per-term table (`swsdist.score.per_term`): `twv`, whose mean is ATWV; `best_twv`, `pmiss`, `pfa`. For values
at another threshold, for example that of MTWV, decide the aligned list by it and compute the table again (`decided_at`).

Rules:

- Queries without references are left out, as in TWV.
- A query with references that a system's table lacks counts as all missed: Pmiss 1, Pfa 0, TWV 0; their number is reported.
- Different numbers of references for a query in two tables are a `UserError`.
- A query with references whose detections are not decided has no value: `UserError`.

Over systems instead of terms, the pairs are the ATWVs of each system under two conditions (`conditions`). Tests,
corrections and sizes of effects are those of `swsdist.score.compare.significance` and
`swsdist.score.compare.paired`, intervals of `swsdist.score.compare.bootstrap`.

Source: Wang and Metze, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
2014, section 3.2.

Tests of mean differences by changes of sign (paired permutation tests), for one difference or for many with one system.

Under the hypothesis that two systems do not differ, the sign of each query's difference is as likely to be plus as minus.
p is how often the mean of the differences with other signs is at least as far from 0 as the one observed. It is two-sided, and
its direction is the sign of the mean. Where all choices of signs are at most `DRAWS` they are all tried; else `DRAWS` random
ones are, and the one observed counts as one more.

Many systems against one are corrected by the step-down maxT procedure of Westfall and Young: signs are changed for all
systems alike, so the dependence between systems stays as it is; a corrected p value is how often the greatest statistic among
the systems that differ no more is at least as great as the one observed. Points of a sweep are much alike, so this finds more
than Holm's correction, which takes nothing of that into account. The statistic is the sum of the differences over the root of
the sum of their squares, which no change of sign alters: a function of the paired t statistic that rises with it.

Sources: Fisher, "The design of experiments", 1935, section 21; Westfall and Young, "Resampling-based multiple testing", 1993,
chapter 4; Ge, Dudoit and Speed, "Resampling-based multiple testing for microarray data analysis", 2003, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypedDict, Unpack, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.core.codes import score as codes
from swsdist.registry.entries import Quantity
from swsdist.registry.registries import quantities
from swsdist.score.compare.bootstrap import Interval, Method, bootstrap_terms
from swsdist.score.compare.significance import (
    TTest,
    Wilcoxon,
    Zeros,
    benjamini_hochberg,
    cohen_d,
    differences,
    holm,
    paired_t,
    rank_biserial,
    wilcoxon,
)
from swsdist.score.measures.twv import PER_TERM

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
        raise codes.UNTESTABLE_VALUES(queries=values.shape[1], permutations=permutations)
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


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        raise codes.UNKNOWN_TERM_VALUE(value=value, values=", ".join(columns))
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


class Options(TypedDict, total=False):
    """Options of intervals and tests; defaults as in `Settings`.

    Attributes:
        level: of confidence of the intervals, which are bootstrapped over terms.
        resamples: draws of the bootstrap.
        seed: of its generator, and of the sign-flip test's.
        method: `percentile` or `bca`.
        zero_method: of Wilcoxon's test.
    """

    level: float
    resamples: int
    seed: int
    method: Method
    zero_method: Zeros


@dataclass(frozen=True)
class Settings:
    """Complete options."""

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    method: Method = "percentile"
    zero_method: Zeros = "wilcox"

    def options(self) -> Options:
        """Keywords of `compare`."""
        return cast("Options", vars(self))


def compare(tables: Mapping[str, pa.Table], *, value: str = "twv", **options: Unpack[Options]) -> Comparison:
    """Compare every two of the systems by the values of queries.

    Args:
        tables: system -> schema PER_TERM.
        value: a key of `values()`.
        options: see `Options`.

    Raises:
        UserError, TableError: as of `paired`.
    """
    return compare_paired(paired(tables, value), value=value, **options)


def conditions(values: Mapping[str, Mapping[str, float]]) -> Paired:
    """Values of systems under several conditions (for example ATWVs) for `compare_paired`, whose "queries" are the systems.

    Args:
        values: condition -> system -> value.

    Raises:
        UserError: there are fewer than two conditions, or they are of different systems.
    """
    names = {condition: tuple(sorted(row)) for condition, row in values.items()}
    if len(values) < 2 or len({*names.values()}) > 1 or not next(iter(names.values())):
        raise codes.UNPAIRED_CONDITIONS(
            systems=", ".join(f"{k} has {len(v)} systems" for k, v in names.items()) or "nothing given"
        )
    systems = next(iter(names.values()))
    return Paired(
        systems=tuple(values),
        queries=systems,
        ntrue=np.ones(len(systems), dtype=np.int64),
        values=np.array([[row[name] for name in systems] for row in values.values()], dtype=np.float64),
        absent=dict.fromkeys(values, 0),
    )


def compare_paired(joined: Paired, *, value: str = "twv", **options: Unpack[Options]) -> Comparison:
    """Compare all pairs of rows of paired values; arguments as in `compare`."""
    settings = Settings(**options)
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
            raise codes.INVALID_TERM_ROW(
                where=f"{system}, row {row}", query=query, ntrue=count, value=value, number=number
            )
        if query in seen:
            raise codes.DUPLICATE_TERM_ROW(where=f"{system}, row {row}", query=query)
        seen.add(query)
    return rows
