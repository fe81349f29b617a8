"""Term-weighted value (TWV): actual, maximum, optimum and supremum.

For a query with Ntrue true occurrences among N trials

    Pmiss = misses / Ntrue        Pfa = false alarms / (N - Ntrue)        TWV = 1 - Pmiss - beta Pfa

and the value of a list is the mean over its queries:

- **ATWV**, actual: at the list's decisions.
- **MTWV**, maximum: at the best threshold for all queries.
- **OTWV**, optimum (KWSEval's "Optimum"): each query at its best threshold among those of the whole list's curve. These
  reject all detections of a query only if a detection of another query scores higher.
- **STWV**, supremum ("Supremum"): all paired detections are accepted and nothing else, 1 - mean(unpaired references /
  Ntrue).

Queries without a true occurrence have no Pmiss; they are left out of all means and of the thresholds. Everything is
counted from an aligned list (schema TRIALS, made by `swsdist.score.align.align`) in integers, `Counts`, per distinct
Ntrue: counts of parts add up to the counts of the list, for any partition into parts with all rows of their queries.
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

OTWV and STWV need one row per query (`OPTIMUM`), with its best point both for the case that a detection of another
query scores higher and for the other case. Rows of parts are concatenated, because the case is known only once all
queries are present.

Sources: NIST STD 2006 evaluation plan; Fiscus et al. 2007; Anguera 2012, eq. 1; Rodriguez-Fuentes and Penagarikano
2013, section 2, eqs. 1 to 6; and what the program does. OTWV and STWV: F4DE 3.5, KWSEval; NIST, OpenKWS14 evaluation
plan, appendix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import score as codes
from swsdist.core.types import columns
from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.score.conventions import as_table
from swsdist.score.events import CLASSES, EVENTS, Parts, PartTable, Sums, Value, curve_of
from swsdist.score.measures.curve import (
    TIE,
    Block,
    Counts,
    Curve,
    CurvePoint,
    Means,
    Ranking,
    Rows,
    best_point,
    class_sums,
    concatenate,
    curve_blocks,
    nontargets,
)
from swsdist.score.measures.protocol import OperatingPoint

#: Per query. Rates and values are null if Ntrue is 0, counts of decisions if a detection is not decided.
#: `best_twv` is the query's greatest value at `best_threshold`, which is null where rejecting everything is best.
PER_TERM = columns(
    "query_id string, ntrue int64, ncorr int64?, nfa int64?, nmiss int64?, pmiss float64?, pfa float64?, "
    "twv float64?, best_threshold float64?, best_twv float64?"
)


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
    rows = Rows.read(as_table(aligned, "aligned"))
    size = len(rows.names)

    def per_query(chosen: Bools) -> Ints:
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


def _best_per_query(rows: Rows, left: Ints, beta: float) -> tuple[Floats, Floats]:
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
OPTIMUM = columns(
    "query_id string, ntrue int64, paired int64, highest float64?, pmiss float64, pfa float64, twv float64, "
    "or_none_pmiss float64, or_none_pfa float64, or_none_twv float64"
)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best point of each query with references, by query id.

    Attributes:
        names: (Q,) query ids.
        pmiss, pfa, twv: float64 (Q,), there.
        stwv: float64 (Q,), each query's supremum.
        otwv: mean over the queries, with the value computed from the mean rates; NaN without queries.
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


def point_values(name: str, point: CurvePoint | None, *, threshold: bool = False) -> dict[str, Value]:
    """A value with its rates, and its threshold if it has one."""
    if point is None:
        return {}
    result: dict[str, Value] = {name: point.twv, f"{name}_pmiss": point.pmiss, f"{name}_pfa": point.pfa}
    return result | ({f"{name}_threshold": point.threshold} if threshold else {})


def point_in(values: Mapping[str, Value], name: str) -> CurvePoint | None:
    """The point that `point_values` describes, if it is defined."""
    twv, pmiss, pfa = (values.get(f"{name}{end}") for end in ("", "_pmiss", "_pfa"))
    if twv is None or pmiss is None or pfa is None:
        return None
    return CurvePoint(twv, pmiss, pfa, values.get(f"{name}_threshold"))


class TermWeighted:
    """TWV at the decisions (ATWV) and at the threshold of the maximum (MTWV)."""

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "no query has a true occurrence",
        "atwv": "no query has a true occurrence, or a detection was not decided",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references; the actual value also if a detection is not decided."""
        sums = Sums.from_parts(parts, point, refless=point.include_refless)
        if not sums.referenced:
            return {}
        actual: CurvePoint | None = None
        if not sums.undecided.any():
            means = Means.of(sums.ntrue, sums.terms, trials=point.trials)
            actual = means.point(sums.yes_hits, sums.yes_false_alarms, point.beta)
        greatest = best_point(curve_of(parts, point)).point
        return point_values("atwv", actual) | point_values("mtwv", greatest, threshold=True)


def _optimum(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return optimum_rows(Ranking.of(aligned), trials=point.trials, beta=point.beta)


class OptimumAndSupremum:
    """OTWV and STWV."""

    parts = (PartTable("optimum", OPTIMUM, ("query_id",), _optimum, adds=False),)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references."""
        result = optimum(parts["optimum"].table(), beta=point.beta)
        return point_values("otwv", result.otwv) | point_values("stwv", result.supremum)


class Decisions:
    """Precision, recall and F over the queries with references; the occurrence-weighted value over all that are counted."""

    parts = (CLASSES,)
    undefined = {
        "": "no query has a true occurrence, or a detection was not decided",
        "precision": "nothing was accepted, or a detection was not decided",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references or if a detection is undecided; precision also if none is accepted."""
        sums = Sums.from_parts(parts, point, refless=point.rules.all_terms or point.include_refless)
        true = sums.true
        if not true or sums.undecided.any():
            return {}
        referenced = sums.ntrue > 0
        correct, wrong = int(sums.yes_hits[referenced].sum()), int(sums.yes_false_alarms[referenced].sum())
        worth = point.value * int(sums.yes_hits.sum()) - point.cost * int(sums.yes_false_alarms.sum())
        return {
            "precision": correct / (correct + wrong) if correct + wrong else None,
            "recall": correct / true,
            "f1": 2 * correct / (true + correct + wrong),
            "occurrence_weighted_value": worth / (point.value * true),
        }


def rated(
    key: str, label: str = "", *, threshold: bool = False, by_query: tuple[str, str, str] = ("", "", "")
) -> tuple[Quantity, ...]:
    """A term-weighted value, with its rates and its threshold; `by_query` of the value, its Pmiss and its Pfa."""
    label = label or key.upper()
    rates = (
        Quantity(key, label, by_query=by_query[0]),
        Quantity(f"{key}_pmiss", f"{label} Pmiss", "lowest", 3, "probability", key, by_query[1], 1.0),
        Quantity(f"{key}_pfa", f"{label} Pfa", "lowest", 5, "probability", key, by_query[2]),
    )
    return (*rates, Quantity(f"{key}_threshold", f"{label} threshold", "", 5, "score", key)) if threshold else rates


TERM_WEIGHTED = MeasureEntry(
    f"{__name__}:TermWeighted",
    1,
    (*rated("atwv", by_query=("twv", "pmiss", "pfa")), *rated("mtwv", threshold=True, by_query=("twv", "", ""))),
    basic=True,
)
OPTIMUM_AND_SUPREMUM = MeasureEntry(
    f"{__name__}:OptimumAndSupremum", 1, (*rated("otwv", by_query=("best_twv", "", "")), *rated("stwv")), basic=True
)
DECISIONS = MeasureEntry(
    f"{__name__}:Decisions",
    1,
    (
        Quantity("precision"),
        Quantity("recall"),
        Quantity("f1", "F1"),
        Quantity("occurrence_weighted_value", "occurrence-weighted value"),
    ),
    basic=True,
)
