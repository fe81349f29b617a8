"""Breakdowns of a value, or of the difference of two systems, by groups of queries or documents.

**By a property of queries**: the queries with references are grouped by a column (language, speaker, number of
words, Ntrue, posterior sum, duration), numbers by bins. Each group has its counts, the means of Pmiss,
Pfa and TWV over its terms, and its contribution: `total` = sum of its terms' values / number of all terms. So

    sum over groups of total = sum over groups of terms x mean value / all terms = ATWV

and likewise for the difference of two systems. `total` is what Wang and Metze 2014 draw in figures 7(a) and 8(a), the
mean of the differences what they draw in figures 7(b) and 8(b), their bins being [i - 1, i), `unit_bins`. Tables of
results on one kind of queries (for example foreign ones: Tejedor et al. 2016, table 11) are rows of such a breakdown.
Their MTWV is the maximum of the group's curve: only its queries, at their best threshold. It needs the aligned list; a
group's MTWV is at least its value at any threshold, and does not add up.

**By a property of documents** (language, speaker, any column): in a group, Ntrue, hits, misses and false alarms are those
of its documents, and trials are those of its documents' seconds. Means are over the queries that have a reference in the
group, and so is its MTWV. Counts add up to the total; rates do not, because each group has its own queries, Ntrue and
trials.

Queries or documents with an unknown property form a group labelled null: nothing is left out.

Sources: Wang and Metze, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
2014, section 3.3; Tejedor et al., "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014
evaluations", 2016, table 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from swsdist.core.arrays import Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import columns
from swsdist.score.align import decimals
from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.twv import PER_TERM, mtwv, per_term, twv_curve

#: One row per group. `group` is null for an unknown property; means are null if a group has no terms, or a
#: query of it is not decided. `mtwv` of the group is null if it has no terms, or without an aligned list;
#: `mtwv_threshold` (for `score >= threshold`) is also null if rejecting everything is best.
BREAKDOWN = columns(
    "group string?, terms int64, ntrue int64?, ncorr int64?, nfa int64?, nmiss int64?, pmiss float64?, "
    "pfa float64?, twv float64?, total float64?, mtwv float64?, mtwv_threshold float64?"
)

#: One row per group: mean values of two systems, mean of their differences (first - second), and its contribution.
DIFFERENCE = columns("group string?, terms int64, first float64?, second float64?, mean float64?, total float64?")


@dataclass(frozen=True, eq=False)
class Aligned:
    """An aligned list and its operating point.

    Attributes:
        parts: schema TRIALS, all rows of a query in one part.
        trials: N.
        beta: weight of false alarms.
        reject_all: as of `swsdist.score.measures.twv.twv_curve`; False for KWSEval.
    """

    parts: Iterable[pa.Table]
    trials: int
    beta: float
    reject_all: bool = True


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row.

    Attributes:
        labels: of the groups, in display order; None for unknown values.
        member: int64 (n,), index of each row's group.
    """

    labels: tuple[str | None, ...]
    member: Ints


def by_value(values: Sequence[str | float | None]) -> Groups:
    """One group per distinct value of a column, ascending, numeric text by value; None and NaN last."""
    values = [None if value != value else value for value in values]
    distinct = sorted({value for value in values if value is not None}, key=_natural)
    labels = [*distinct, *([None] if None in values else [])]
    place = {value: index for index, value in enumerate(labels)}
    member = np.array([place[value] for value in values], dtype=np.int64)
    return Groups(tuple(None if value is None else str(value) for value in labels), member)


def by_edges(values: ArrayLike, edges: Sequence[float]) -> Groups:
    """Bins [edge, next edge), and one bin each below the first edge and from the last one on.

    These two, and the group of unknown values (NaN), are left out if empty; bins in between are kept.

    Args:
        values: float64 (n,).
        edges: ascending.

    Raises:
        UserError: edges are missing, not finite or do not ascend.
    """
    numbers, limits = np.asarray(values, dtype=np.float64), np.asarray(edges, dtype=np.float64)
    if not len(limits) or not np.isfinite(limits).all() or (np.diff(limits) <= 0).any():
        raise families.INVALID_VALUE.of(UserError)(
            "bin edges {edges} are not finite and ascending", "give finite, ascending numbers", edges=list(edges)
        )
    member = np.where(np.isnan(numbers), len(limits) + 1, np.searchsorted(limits, numbers, side="right"))
    names = [f"{edge:.6g}" for edge in limits]
    inner = [f"[{low}, {high})" for low, high in pairwise(names)]
    labels: list[str | None] = [f"< {names[0]}", *inner, f">= {names[-1]}", None]
    kept = [k for k in range(len(labels)) if 0 < k < len(limits) or (member == k).any()]
    order = np.full(len(labels), -1, dtype=np.int64)
    order[kept] = np.arange(len(kept))
    return Groups(tuple(labels[k] for k in kept), order[member])


def unit_bins(values: ArrayLike) -> Groups:
    """Bins [i - 1, i) for integer i, from the lowest value to the highest (Wang and Metze 2014, figure 7).

    Args:
        values: float64 (n,).

    Raises:
        UserError: there are more than 100 000 bins.
    """
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return by_edges(numbers, [0.0])
    low, high = math.floor(finite.min()), math.floor(finite.max()) + 1
    if high - low > 100_000:
        raise families.TOO_LARGE(
            "values from {low} to {high} make too many bins of width 1", "give edges, or quantiles", low=low, high=high
        )
    return by_edges(numbers, list(range(low, high + 1)))


def quantile_bins(values: ArrayLike, bins: int) -> Groups:
    """Bins with about equal numbers of members; fewer if values repeat.

    Edges are occurring values, so equal values are in one bin.

    Args:
        values: float64 (n,).
        bins: their number, at least 1.

    Raises:
        UserError: no bin is asked for.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if bins < 1:
        raise families.TOO_FEW("{bins} bins are too few", "ask for at least 1", bins=bins)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return by_edges(numbers, [0.0])
    inner = np.quantile(finite, np.arange(bins) / bins, method="higher")
    return by_edges(numbers, np.unique(inner).tolist())


def grouped(values: pa.ChunkedArray | pa.Array, bins: str | None = None) -> Groups:
    """Groups of a column, in the words of the command line.

    Args:
        values: a column of text or numbers, (n,).
        bins: None: one group per distinct value; `unit`: [i - 1, i); `q4`: quantiles, here four; `0.2,0.5,1`: edges.

    Raises:
        UserError: bins are given but the column is not of numbers, or they have none of these forms.
    """
    if bins is None:
        return by_value(values.to_pylist())
    try:
        numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), math.nan), dtype=np.float64)
    except pa.ArrowInvalid as error:
        raise families.INVALID_VALUE.of(UserError)(
            "bins {bins!r} need numbers: {reason}",
            "leave the bins out, or correct the values",
            bins=bins,
            reason=str(error),
        ) from error
    if bins == "unit":
        return unit_bins(numbers)
    try:
        if bins.startswith("q"):
            return quantile_bins(numbers, int(bins[1:]))
        return by_edges(numbers, [float(edge) for edge in bins.split(",")])
    except ValueError:
        raise families.UNKNOWN_NAME(
            "unknown bins {bins!r}", "give `unit`, quantiles such as q4, or edges such as 0.2,0.5,1", bins=bins
        ) from None


def breakdown(terms: pa.Table, groups: Groups, aligned: Aligned | None = None) -> pa.Table:
    """Counts, mean rates and values of groups of queries.

    Args:
        terms: schema PER_TERM, queries with references only.
        groups: of its rows.
        aligned: the list that the terms were counted from, for MTWV. Queries missing from it count as all
            missed; other queries in it are left out.

    Returns:
        Schema BREAKDOWN, a row a group in their order.

    Raises:
        UserError: the list has other references than the terms.
    """
    _check(terms, groups)
    best = _maxima(terms, groups, aligned)
    columns = {name: terms[name].to_pylist() for name in PER_TERM.names}
    rows = []
    for index, label in enumerate(groups.labels):
        members = np.flatnonzero(groups.member == index)
        row: dict[str, object] = {"group": label, "terms": len(members)}
        for name in ("ntrue", "ncorr", "nfa", "nmiss"):
            values = [columns[name][k] for k in members]
            row[name] = None if None in values else sum(values)
        for name in ("pmiss", "pfa", "twv"):
            row[name] = _mean([columns[name][k] for k in members])
        values = [columns["twv"][k] for k in members]
        row["total"] = None if None in values else math.fsum(values) / terms.num_rows
        row["mtwv"], row["mtwv_threshold"] = best[index]
        rows.append(row)
    return pa.Table.from_pylist(rows, BREAKDOWN)


def difference(first: pa.Table, second: pa.Table, groups: Groups, value: str = "twv") -> pa.Table:
    """The differences of two systems by group.

    Args:
        first, second: schema PER_TERM, the same queries in the same order.
        groups: of their rows.
        value: the compared column.

    Returns:
        Schema DIFFERENCE, a row a group in their order; the sum of `total` is the difference of the means.

    Raises:
        UserError: the queries differ, or one has no value.
    """
    _check(first, groups)
    if not first["query_id"].equals(second["query_id"]):
        raise codes.DIFFERENT_QUERIES()
    a, b = first[value].to_pylist(), second[value].to_pylist()
    if None in a or None in b:
        query = first["query_id"][(a if None in a else b).index(None)]
        raise codes.UNDECIDED_QUERY(query=str(query), value=value)
    rows = []
    for index, label in enumerate(groups.labels):
        members = np.flatnonzero(groups.member == index)
        gains = [a[k] - b[k] for k in members]
        rows.append(
            {
                "group": label,
                "terms": len(members),
                "first": _mean([a[k] for k in members]),
                "second": _mean([b[k] for k in members]),
                "mean": _mean(gains),
                "total": math.fsum(gains) / len(a),
            }
        )
    return pa.Table.from_pylist(rows, DIFFERENCE)


def by_document(
    aligned: pa.Table,
    documents: pa.Table,
    column: str,
    *,
    trials_per_second: float,
    beta: float,
    reject_all: bool = True,
) -> pa.Table:
    """Counts, mean rates and values in groups of documents.

    Args:
        aligned: schema TRIALS.
        documents: `doc_id`, `seconds` (searched s, as trials are counted) and the column; rows of a document
            must agree in the column, their seconds add.
        column: property of documents.
        trials_per_second: trials in a second of audio.
        beta: weight of false alarms.
        reject_all: as of `swsdist.score.measures.twv.twv_curve`; False for KWSEval.

    Returns:
        Schema BREAKDOWN. `terms` are the queries with a reference in the group, over which the means are; counts are of
        all queries with a reference anywhere. `total` is null: rates of documents do not add up.

    Raises:
        TableError: the column is missing, or a document has two values.
        DataError: the list holds a document that is not among `documents`.
        UserError: N = Ntrue for a query in a group.
    """
    for name in ("doc_id", "seconds", column):
        if name not in documents.column_names:
            raise codes.ABSENT_COLUMN(where="documents", column=name, columns=", ".join(documents.column_names))
    kinds = documents.select(["doc_id", column]).group_by(["doc_id", column]).aggregate([])
    counts = pc.value_counts(kinds["doc_id"].combine_chunks())
    if len(counts) < kinds.num_rows:
        twice = next(row["values"] for row in counts.to_pylist() if row["counts"] > 1)
        raise families.CONFLICTING_ROWS(
            "document {doc_id!r} has two values of {column}", "keep one", where="documents", doc_id=twice, column=column
        )
    names = kinds["doc_id"].combine_chunks()
    place = pc.index_in(aligned["doc_id"], value_set=names)
    if place.null_count:
        stranger = aligned["doc_id"][pc.index(pc.is_null(place), True).as_py()]
        raise codes.UNSEARCHED_DOCUMENT(doc_id=str(stranger))
    groups = by_value(kinds[column].to_pylist())
    group_of_row = groups.member[place.to_numpy()]
    group_of_document = groups.member[pc.index_in(documents["doc_id"], value_set=names).to_numpy()]
    seconds = documents["seconds"].to_numpy()
    rated = aligned.filter(pc.is_valid(aligned["ref_start"]))["query_id"].combine_chunks().unique()
    rows = []
    for index, label in enumerate(groups.labels):
        searched = math.fsum(seconds[group_of_document == index])
        trials = round(trials_per_second * searched)
        members = aligned.filter(pa.array(group_of_row == index))
        if trials <= 0 and members.num_rows:
            raise families.MISMATCH(
                "the list has documents with {column} {value}, of which {seconds} s were searched",
                "check the durations of the documents",
                column=column,
                value=label,
                seconds=searched,
            )
        part = per_term(members, trials=trials, beta=beta)
        part = part.filter(pc.is_in(part["query_id"], value_set=rated))
        referenced = part.filter(pc.greater(part["ntrue"], 0))
        row: dict[str, object] = {"group": label, "terms": referenced.num_rows, "total": None}
        for name in ("ntrue", "ncorr", "nfa", "nmiss"):
            row[name] = None if part[name].null_count else pc.sum(part[name], min_count=0).as_py()
        for name in ("pmiss", "pfa", "twv"):
            row[name] = _mean(referenced[name].to_pylist())
        row["mtwv"], row["mtwv_threshold"] = _maximum(Counts.of(members), trials, beta, reject_all)
        rows.append(row)
    return pa.Table.from_pylist(rows, BREAKDOWN)


def reference_durations(references: pa.Table) -> pa.Table:
    """Mean duration of each query's references, in s: `query_id`, `duration`; by id. Durations have 4 decimals.

    Args:
        references: schema REFERENCES.
    """
    spans = decimals(references["end"].to_numpy() - references["start"].to_numpy(), 4)
    durations: dict[str, list[float]] = {}
    for query, span in zip(references["query_id"].to_pylist(), spans.tolist(), strict=True):
        durations.setdefault(query, []).append(span)
    names = sorted(durations)
    return pa.table({"query_id": names, "duration": [_mean(durations[name]) for name in names]})


def word_counts(terms: pa.Table) -> pa.Table:
    """Number of words of each term, as blanks divide it: `query_id`, `words`.

    Args:
        terms: schema TERMS.
    """
    return pa.table({"query_id": terms["query_id"], "words": [len(text.split()) for text in terms["term"].to_pylist()]})


def _maxima(terms: pa.Table, groups: Groups, aligned: Aligned | None) -> list[tuple[float | None, float | None]]:
    """MTWV of each group and its threshold."""
    if aligned is None:
        return [(None, None)] * len(groups.labels)
    names, ntrue = terms["query_id"].combine_chunks(), terms["ntrue"].to_numpy()
    counts: list[list[Counts]] = [[] for _ in groups.labels]
    seen = np.zeros(len(names), dtype=bool)
    for part in aligned.parts:
        place = pc.index_in(part["query_id"].cast(names.type), value_set=names).combine_chunks()
        part, place = part.filter(pc.is_valid(place)), place.drop_null().to_numpy()
        seen[place] = True
        for index in np.unique(groups.member[place]).tolist():
            counts[index].append(Counts.of(part.filter(pa.array(groups.member[place] == index))))
    best = []
    for index in range(len(groups.labels)):
        rows = groups.member == index
        missed_counts = total([*counts[index], _all_missed(ntrue[rows & ~seen])])
        if int((missed_counts.classes * missed_counts.terms).sum()) != int(ntrue[rows].sum()):
            raise families.MISMATCH(
                "the aligned list and the per-term values have different references", "take both from one scoring"
            )
        best.append(_maximum(missed_counts, aligned.trials, aligned.beta, aligned.reject_all))
    return best


def _maximum(counts: Counts, trials: int, beta: float, reject_all: bool) -> tuple[float | None, float | None]:
    if not counts.terms.sum():
        return None, None
    best = mtwv(twv_curve(counts, trials=trials, beta=beta, reject_all=reject_all))
    # Rejecting everything is labelled with the highest score, which it does not accept.
    return best.twv, None if best.pmiss == 1.0 and best.pfa == 0.0 else best.threshold


def _all_missed(ntrue: Ints) -> Counts:
    """Queries without a row in the list."""
    classes, sizes = np.unique(ntrue, return_counts=True)
    zero = Counts.zero()
    return replace(zero, classes=classes, terms=sizes)


def _natural(value: str | float) -> tuple[float, str]:
    """Sort key: numbers by value, before other text."""
    try:
        return (float(value), str(value)) if math.isfinite(float(value)) else (math.inf, str(value))
    except ValueError:
        return math.inf, str(value)


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined and len(defined) == len(values) else None


def _check(terms: pa.Table, groups: Groups) -> None:
    if terms.num_rows != len(groups.member):
        raise families.MISMATCH(
            "{queries} queries, but groups of {members}",
            "group the same rows",
            queries=terms.num_rows,
            members=len(groups.member),
        )
    if pc.any(pc.less_equal(terms["ntrue"], 0)).as_py():
        raise families.UNDEFINED("a query without references has no value", "take the rows whose ntrue is not 0")
