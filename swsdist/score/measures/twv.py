"""Term-weighted value: mean over the queries of 1 - Pmiss - beta Pfa, at the decisions and at every threshold.

For a query with Ntrue true occurrences among N trials

    Pmiss = misses / Ntrue        Pfa = false alarms / (N - Ntrue)

Queries without a true occurrence have no Pmiss; they are left out of all means and of the thresholds. Everything is
counted from an aligned list (schema TRIALS, made by `swsdist.score.align`) in integers, `Counts`, per distinct Ntrue:
counts of parts add up to the counts of the list, for any partition into parts with all rows of their queries.
Rates are computed from the integers once, classes of Ntrue ascending, so the floats are identical, too.

Rules of the curve, those of STDEval 0.7 unless marked:

- Thresholds are the distinct scores of detections of queries with references, ascending; a detection is accepted if
  its score is at least the threshold. Decisions are ignored.
- One additional point rejects everything, and is labelled with the highest score. So the maximum is never below 0.
- The lowest threshold wins among equal maxima. (Ours: values within 1e-12 are equal, as STDEval's order of summation
  is not defined.)
- One query is enough for a curve (ours; STDEval prints N/A). Without any detection of a query with references the
  curve is the one point that rejects everything, its threshold NaN, its value 0 (ours; STDEval prints N/A).
- Without any reference no value is defined: `UserError` (STDEval divides by zero and stops).
- N = Ntrue is a `UserError` (STDEval divides by zero and stops). N < Ntrue makes a negative rate as in STDEval, and a
  warning.

Sources: NIST STD 2006 evaluation plan; Fiscus et al. 2007; Anguera 2012, eq. 1; Rodriguez-Fuentes and Penagarikano
2013, section 2, eqs. 1 to 6; and what the program does.

TWV with the best threshold of each query (OTWV), and without false alarms (STWV).

Optimum term-weighted value (KWSEval's "Optimum"): each query is decided at its best threshold among those of the whole
list's curve. These reject all detections of a query only if a detection of another query scores higher.
Supremum ("Supremum"): all paired detections are accepted and nothing else, STWV = 1 - mean(unpaired references / Ntrue).

One row per query has its best point for both cases (`OPTIMUM`), so rows of parts are concatenated; which case applies is known
once all queries are present.

Source: F4DE 3.5, KWSEval; NIST, OpenKWS14 evaluation plan, appendix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import score as codes
from swsdist.score.conventions import as_table
from swsdist.score.measures.curve import (
    TIE,
    Block,
    Classes,
    Curve,
    CurvePoint,
    Means,
    Ranking,
    best_point,
    concatenate,
    curve_blocks,
    nontargets,
    query_index,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Per query. Rates and values are null if Ntrue is 0, counts of decisions if a detection is not decided.
#: `best_twv` is the query's greatest value at `best_threshold`, which is null where rejecting everything is best.
PER_TERM = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("ntrue", pa.int64(), False),
        pa.field("ncorr", pa.int64()),
        pa.field("nfa", pa.int64()),
        pa.field("nmiss", pa.int64()),
        pa.field("pmiss", pa.float64()),
        pa.field("pfa", pa.float64()),
        pa.field("twv", pa.float64()),
        pa.field("best_threshold", pa.float64()),
        pa.field("best_twv", pa.float64()),
    ]
)


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
        """The counts of nothing."""
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
        rows = _Rows.read(as_table(aligned, "aligned"))
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


def twv_curve(counts: Counts, *, trials: int, beta: float, reject_all: bool = True) -> Curve:
    """Mean Pmiss, Pfa and TWV at every threshold.

    Queries without references count only if they are in `counts`, as for KWSEval's `-inc`: Pfa is then a mean over
    all queries, and Pmiss one over those with references.

    Args:
        counts: of the whole list.
        trials: N, trials of each query (`swsdist.score.measures.protocol.number_of_trials`).
        beta: weight of false alarms.
        reject_all: whether the last point rejects everything. KWSEval has no such point (except if there are no
            scores), so its maximum may be negative.

    Raises:
        UserError: no query has a reference, or N = Ntrue for one.
    """
    order = np.argsort(counts.score, kind="stable")
    block = Block(counts.ntrue[order], counts.score[order], counts.hits[order], counts.false_alarms[order])
    return concatenate(curve_blocks([block], class_sums(counts), trials=trials, beta=beta, reject_all=reject_all))


def class_sums(counts: Counts) -> Classes:
    """The classes of counts with the sums of their rows."""
    which = np.searchsorted(counts.classes, counts.ntrue)
    hits, false_alarms = (np.zeros(len(counts.classes), dtype=np.int64) for _ in range(2))
    np.add.at(hits, which, counts.hits)
    np.add.at(false_alarms, which, counts.false_alarms)
    return Classes(counts.classes, counts.terms, hits, false_alarms)


def mtwv(curve: Curve) -> CurvePoint:
    """The point of maximum value; among equal ones the lowest threshold.

    If rejecting everything is best its threshold is the highest score, as STDEval prints it, although that score is
    rejected (see `swsdist.calibrate.procedure.threshold_of`); None if there are no scores.
    """
    return best_point([curve]).point


def atwv(counts: Counts, *, trials: int, beta: float) -> CurvePoint:
    """Actual TWV: the mean value at the list's decisions.

    Raises:
        UserError: a detection of a query with references is not decided, no query has a reference, or N = Ntrue.
    """
    if undecided := int(counts.undecided.sum()):
        raise codes.UNDECIDED_DETECTIONS(count=undecided)
    sums = class_sums(replace(counts, hits=counts.yes_hits, false_alarms=counts.yes_false_alarms))
    return Means.of(sums.ntrue, sums.terms, trials=trials).point(sums.hits, sums.false_alarms, beta)


def per_term(aligned: object, *, trials: int, beta: float, best: bool = True) -> pa.Table:
    """Counts, rates and value of each query at the decisions, and its best threshold; by query_id.

    Tables of disjoint sets of queries may be concatenated. Queries without references are in it (STDEval's totals count
    their false alarms, its rates are N/A).

    Args:
        aligned: schema TRIALS, rows in any order, all rows of each query.
        trials: N.
        beta: weight of false alarms.
        best: also compute each query's best threshold and value, which takes most of the time; otherwise null.

    Raises:
        UserError: N = Ntrue for a query.
    """
    rows = _Rows.read(as_table(aligned, "aligned"))
    size = len(rows.names)

    def per_query(chosen: NDArray[np.bool_]) -> Ints:
        return np.bincount(rows.query[chosen], minlength=size)

    ntrue, defined = rows.ntrue, rows.ntrue > 0
    decided = per_query(rows.detected & (rows.decision < 0)) == 0
    yes = rows.detected & (rows.decision == 1)
    ncorr, nfa = per_query(yes & rows.true), per_query(yes & ~rows.true)
    left = np.ones(size, dtype=np.int64)
    left[defined] = nontargets(ntrue[defined], trials)
    pmiss, pfa = (ntrue - ncorr) / np.maximum(ntrue, 1), nfa / left
    threshold, value = np.full(size, math.nan), np.full(size, math.nan)
    if best:
        threshold, value = _best_per_query(rows, left, beta)

    rated = defined & decided
    values = {
        "query_id": rows.names,
        "ntrue": pa.array(ntrue),
        "ncorr": pa.array(ncorr, mask=~decided),
        "nfa": pa.array(nfa, mask=~decided),
        "nmiss": pa.array(ntrue - ncorr, mask=~decided),
        "pmiss": pa.array(pmiss, mask=~rated),
        "pfa": pa.array(pfa, mask=~rated),
        "twv": pa.array(1 - (pmiss + beta * pfa), mask=~rated),
        "best_threshold": pa.array(threshold, mask=np.isnan(threshold)),
        "best_twv": pa.array(value, mask=~defined | (not best)),
    }
    return pa.table(values, schema=PER_TERM)


class _Rows(NamedTuple):
    """An aligned list as arrays: per row, except `names` and `ntrue`, which are per query."""

    names: pa.Array
    ntrue: Ints
    query: Ints
    score: Floats
    detected: NDArray[np.bool_]
    true: NDArray[np.bool_]
    decision: NDArray[np.int8]

    @classmethod
    def read(cls, aligned: pa.Table) -> _Rows:
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


def _best_per_query(rows: _Rows, left: Ints, beta: float) -> tuple[Floats, Floats]:
    """Each query's best threshold (NaN: reject everything) and its value there; NaN, 0 without references."""
    threshold, value = np.full(len(rows.names), math.nan), np.zeros(len(rows.names))
    used = np.flatnonzero(rows.detected & (rows.ntrue[rows.query] > 0))
    if not len(used):
        return threshold, value
    used = used[np.lexsort((-rows.score[used], rows.query[used]))]
    query, score, true = rows.query[used], rows.score[used], rows.true[used]
    start = np.searchsorted(query, query)
    hits, false_alarms = np.cumsum(true), np.cumsum(~true)
    hits = hits - np.where(start > 0, hits[start - 1], 0)
    false_alarms = false_alarms - np.where(start > 0, false_alarms[start - 1], 0)
    # Among rows of equal score only the last has counted all accepted ones.
    last = np.append((np.diff(query) != 0) | (np.diff(score) != 0), True)
    query, score, hits, false_alarms = query[last], score[last], hits[last], false_alarms[last]
    ntrue = rows.ntrue[query]
    twv = 1 - ((ntrue - hits) / ntrue + beta * (false_alarms / left[query]))
    top = np.zeros(len(rows.names))
    np.maximum.at(top, query, twv)
    # Scores descend within a query, so the last assignment is the lowest of the best thresholds.
    best = np.flatnonzero(twv >= top[query] - TIE)
    threshold[query[best]] = score[best]
    value[query[best]] = twv[best]
    return threshold, value


#: Per query with references: its highest score, null without detections; its best point where it cannot reject everything, and
#: where it can (`or_none_`).
OPTIMUM = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("ntrue", pa.int64(), False),
        pa.field("paired", pa.int64(), False),
        pa.field("highest", pa.float64()),
        *(
            pa.field(f"{case}{name}", pa.float64(), False)
            for case in ("", "or_none_")
            for name in ("pmiss", "pfa", "twv")
        ),
    ]
)


@dataclass(frozen=True, eq=False)
class Optimum:
    """Each query with references at its best, by query id.

    Attributes:
        names: (Q,) query ids.
        pmiss, pfa, twv: float64 (Q,), there.
        stwv: float64 (Q,), each query's supremum.
        otwv: mean over the queries, the value formed of the mean rates; not numbers where there is no query.
        supremum: the mean supremum, with its mean Pmiss.
    """

    names: pa.Array
    pmiss: Floats
    pfa: Floats
    twv: Floats
    stwv: Floats
    otwv: CurvePoint
    supremum: CurvePoint


def optimum_rows(ranking: Ranking, *, trials: int, beta: float) -> pa.Table:
    """The best points of each query; tables of disjoint sets of queries may be concatenated.

    Args:
        ranking: of an aligned list.
        trials: N.
        beta: weight of false alarms.

    Returns:
        A table of schema OPTIMUM, by query_id.

    Raises:
        UserError: N = Ntrue for a query.
    """
    size = len(ranking.ntrue)
    left = nontargets(ranking.ntrue, trials) if size else ranking.ntrue
    query = ranking.query
    hits = ranking.hits_above + ranking.hits
    pmiss = (ranking.ntrue[query] - hits) / ranking.ntrue[query]
    pfa = (ranking.false_above + ranking.false_alarms) / left[query]
    value = 1 - (pmiss + beta * pfa)
    highest = np.full(size, -math.inf)
    np.maximum.at(highest, query, ranking.score)
    detected = np.isfinite(highest)
    columns: list[Floats] = []
    for start in (np.where(detected, -math.inf, 0.0), np.zeros(size)):
        top = start.copy()
        np.maximum.at(top, query, value)
        # Scores descend within a query, so the last assignment is the lowest of equally good thresholds.
        chosen = np.flatnonzero(value >= top[query] - TIE)
        best = (np.ones(size), np.zeros(size), start)
        for target, source in zip(best, (pmiss, pfa, value), strict=True):
            target[query[chosen]] = source[chosen]
        columns += best
    paired = np.zeros(size, dtype=np.int64)
    np.add.at(paired, query, ranking.hits)
    named = (ranking.names, pa.array(ranking.ntrue), pa.array(paired), pa.array(highest, mask=~detected))
    return pa.Table.from_arrays([*named, *(pa.array(column) for column in columns)], schema=OPTIMUM)


def optimum(rows: pa.Table, *, beta: float) -> Optimum:
    """OTWV and STWV.

    Args:
        rows: schema OPTIMUM, all queries, by query_id.
        beta: weight of false alarms.
    """
    size = rows.num_rows
    highest = rows["highest"].fill_null(-math.inf).to_numpy()
    # Another query scores higher, so a threshold rejects all of these.
    rejecting = highest < highest.max(initial=-math.inf)
    pmiss, pfa, twv = (
        np.where(rejecting, rows[f"or_none_{name}"].to_numpy(), rows[name].to_numpy())
        for name in ("pmiss", "pfa", "twv")
    )
    ntrue, paired = rows["ntrue"].to_numpy(), rows["paired"].to_numpy()
    missed = (ntrue - paired) / ntrue
    otwv = supremum = CurvePoint(math.nan, math.nan, math.nan, None)
    if size:
        mean_pmiss, mean_pfa, mean_missed = (math.fsum(values) / size for values in (pmiss, pfa, missed))
        otwv = CurvePoint(1 - (mean_pmiss + beta * mean_pfa), mean_pmiss, mean_pfa, None)
        supremum = CurvePoint(1 - mean_missed, mean_missed, 0.0, None)
    return Optimum(rows["query_id"].combine_chunks(), pmiss, pfa, twv, 1 - missed, otwv, supremum)
