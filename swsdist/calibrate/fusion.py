"""Fusion of lists of several systems: join, impute missing scores, and combine scores into a log-likelihood ratio.

::

    comparable scores -> joined places -> rescored places -> imputed scores -> no overlaps in a query

The chain fuse processes buckets of queries in two stages; `swsdist fuse` processes whole lists. All of this precedes
fitting, so it does not depend on references. Overlaps of different queries are removed later, by the fused score
(`without_overlaps`, `between_queries`).

**Joining**: matching detections become one row, with each system's score in the column `parts`
(`swsdist.core.types.JOINED`). A query's detections in a channel of a document are processed best first, across systems;
of equal scores the one that begins first, then ends first, then with the first system name. The best remaining one
becomes a **place**. Of each other system the best remaining detection that meets it joins that place: at most one per
system, and each detection joins one place. Then the best remaining one becomes the next place. Two detections meet

- by **overlap**, if they have more than a share of the shorter one in common, as in reduce; or
- by **middle**, if the mid-point of one lies in the other, borders included.

The times of a place are those of its best detection. Times are integer microseconds, so rounding has no effect, and a
place is independent of other queries, documents and channels. Nothing depends on the order of the systems, whose scores
must be comparable, for example normalised. Places of one query may still overlap (of two detections of one system only
one can join a place that meets both), as may places of different queries. `without_overlaps` keeps the better of two.

**Imputation** of the score of a system without a detection:

=========  ==========================================================================================================
average    the mean of the scores that the other systems gave to that detection
least      the least score of the system for any detection of the query; if it has none: average
=========  ==========================================================================================================

Alternatively the system rescores the place (`swsdist.chains.fuse.chain`); scores still missing are imputed by `least`.

**Linear logistic fusion** of joined lists::

    llr = w_0 + sum_k w_k s_k (+ sum_k m_k [system k made no detection there])

s_k are the systems' scores, normalised by query. The weights maximise the likelihood of hits and false alarms, at the
prior P of the operating point (1 / (1 + beta)): a target trial weighs P / Ntrue and a non-target trial (1 - P) /
Nnontarget of the whole set, so the log-odds of the regression minus logit(P) are a log-likelihood ratio with threshold
ln(beta). Ntrue counts missed occurrences too, and Nnontarget all trials, though only listed detections are fitted.
Without an operating point each detection has the same weight, and the log-odds are those of the unweighted detections.
Without references nothing is fitted: the fused score is the mean of the systems' scores.

Sources: joining: the union of detections as trials, Abad et al. 2013, "On the calibration and fusion of heterogeneous
spoken term detection systems" (also missing scores and side information); Tejedor et al. 2016, "Comparison of ALBAYZIN
query-by-example spoken term detection 2012 and 2014 evaluations", section "System fusion", which also leaves out
detections of different queries in one interval of time; fusion: Brummer et al. 2007, "Fusion of heterogeneous speaker
recognition systems in the STBU submission", section VI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import UserError
from swsdist.core.types import DETECTIONS, JOINED, JOINED_TRIALS, PARTS, columns, with_values
from swsdist.io.notices import Notices
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import Fitted as Coefficients
from swsdist.kernels.regression import Labelled, linear, log_odds, maximise, prior_weights, total

#: Total order of a list, as of reduce.
_ORDER = [("query_id", "ascending"), ("score", "descending")] + [
    (name, "ascending") for name in ("doc_id", "channel", "start", "end")
]
#: Key of a detection in a list.
KEY = ("query_id", "doc_id", "channel", "start", "end")


def with_parts(table: pa.Table, systems: Sequence[str], scores: Floats, detected: Bools) -> pa.Table:
    """A table as JOINED, with null for missing columns of DETECTIONS.

    Args:
        table: query_id, doc_id, channel, start, end, score; maybe more of DETECTIONS.
        systems: names.
        scores: float64 (rows, systems); NaN if missing.
        detected: bool (rows, systems).
    """
    rows = table.num_rows
    flat = pa.StructArray.from_arrays(
        [
            pa.DictionaryArray.from_arrays(
                pa.array(np.tile(np.arange(len(systems), dtype=np.int32), rows)), pa.array(list(systems), pa.string())
            ).cast(pa.string()),
            pa.array(scores.ravel(), pa.float64(), mask=np.isnan(scores.ravel())),
            pa.array(detected.ravel(), pa.bool_()),
        ],
        fields=list(PARTS.value_type),
    )
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * len(systems))
    columns = {
        name: table[name] if name in table.column_names else pa.nulls(rows, DETECTIONS.field(name).type)
        for name in DETECTIONS.names
    }
    parts = pa.ListArray.from_arrays(offsets, flat, type=PARTS)
    return pa.table({**columns, "parts": parts}).cast(JOINED)


def parts_of(table: pa.Table) -> tuple[tuple[str, ...], Floats, Bools]:
    """Names of the systems, their scores, and whether each detected the row, from the column `parts`.

    Returns:
        Names (empty if no row has parts); float64 (rows, systems), NaN for missing scores; bool (rows, systems).

    Raises:
        UserError: rows name different systems.
    """
    column = table["parts"].combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # without chunks
        column = pa.nulls(0, PARTS)
    present = column.is_valid().to_numpy(zero_copy_only=False)
    lists = column.drop_null()
    flat = lists.flatten()
    if not len(lists):
        return (), np.full((len(column), 0), np.nan), np.zeros((len(column), 0), bool)
    lengths = set(pc.list_value_length(lists).unique().to_pylist())
    coded = flat.field("system").dictionary_encode()
    many = lengths.pop()
    place = coded.indices.to_numpy()
    if lengths or not (place.reshape(-1, many) == place[:many]).all():
        raise families.MISMATCH(
            "the rows of a joined list name different systems", "join them again, all with one config"
        )
    names = tuple(coded.dictionary.take(coded.indices[:many]).to_pylist())
    scores, detected = np.full((len(column), many), np.nan), np.zeros((len(column), many), bool)
    scores[present] = flat.field("score").to_numpy(zero_copy_only=False).reshape(-1, many)
    detected[present] = flat.field("given").to_numpy(zero_copy_only=False).reshape(-1, many)
    return names, scores, detected


def sort_list(table: pa.Table) -> pa.Table:
    """Sort a list into total order: query_id, score descending, doc_id, channel, start, end."""
    return table.take(pc.sort_indices(table, _ORDER))


def with_parts_of(trials: pa.Table, joined: pa.Table) -> pa.Table:
    """Add the parts of its detections to an aligned list: JOINED_TRIALS; null for misses.

    Args:
        trials: TRIALS of these detections.
        joined: JOINED; no two rows of a query have the same place and times.
    """
    rows = {key: row for row, key in enumerate(row_keys(joined))}
    positions = [rows.get(key) for key in row_keys(trials)]
    parts = joined["parts"].combine_chunks().take(pa.array(positions, pa.int64()))
    return trials.append_column(JOINED_TRIALS.field("parts"), parts).cast(JOINED_TRIALS)


def row_keys(table: pa.Table) -> zip[tuple[object, ...]]:
    """The key of each row."""
    return zip(*(table[name].to_pylist() for name in KEY), strict=True)


def count_common_places(table: pa.Table) -> dict[tuple[str, str], int]:
    """Number of places detected by both of two systems, for each pair in the order of names, and for each system with itself.

    Args:
        table: rows with `parts`.
    """
    systems, _, detected = parts_of(table)
    both = detected.T.astype(np.int64) @ detected.astype(np.int64)
    return {
        (first, second): int(both[j, k])
        for j, first in enumerate(systems)
        for k, second in enumerate(systems)
        if j <= k
    }


def warn_disjoint_systems(common: Mapping[tuple[str, str], int], notices: Notices) -> None:
    """Note pairs of systems without a common place: their fusion joins nothing.

    Args:
        common: of `count_common_places`, summed over all queries.
        notices: collects the notice.

    Raises:
        OddError: there are such pairs, and notices are strict.
    """
    detecting = sorted(name for (name, other), count in common.items() if name == other and count)
    disjoint = [f"{a} and {b}" for a, b in combinations(detecting, 2) if not common[a, b]]
    notices.add(codes.DISJOINT_SYSTEMS, where=", ".join(disjoint), count=len(disjoint))


#: Imputation of missing scores.
Missing = Literal["average", "least"]


#: Statistics of a system's scores for a query: least score, in the fused scale, and mean and standard deviation that
#: convert the system's scale to it; 0 and 1 if it is the same.
KNOWN = columns("system string, query_id string, mean float64, deviation float64, least float64")

#: Score of a system at a place without a detection of its own.
RESCORED = pa.schema(
    [*(DETECTIONS.field(name) for name in KEY), pa.field("system", pa.string()), DETECTIONS.field("score")]
)


def standardise_lists(lists: Mapping[str, pa.Table], *, standardise: bool) -> tuple[dict[str, pa.Table], pa.Table]:
    """Standardise the scores of lists, and compute their statistics.

    Scores minus the mean of the query's detections in that list, over their standard deviation (q-norm, from
    the list alone). If a query's scores do not vary, or it has one detection, they become 0.

    Args:
        lists: by system: query_id, score, maybe more columns; all rows of each query, in any order.
        standardise: otherwise the scores are unchanged.

    Returns:
        The lists, and KNOWN of all of them.
    """
    scaled: dict[str, pa.Table] = {}
    rows: list[dict[str, object]] = []
    for name, table in lists.items():
        names, code = coded(table["query_id"])
        scores = table["score"].to_numpy().astype(np.float64)
        order = np.lexsort((scores, code))  # summed in ascending order, so the order of rows has no effect
        bounds = np.append(np.flatnonzero(np.diff(code[order], prepend=-1)), len(code))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            query_rows = order[begin:end]
            mean, deviation = _moments(scores[query_rows]) if standardise else (0.0, 1.0)
            if standardise:
                scores[query_rows] = (scores[query_rows] - mean) / deviation
            row = {"mean": mean, "deviation": deviation, "least": float(scores[query_rows[0]])}
            rows.append({"system": name, "query_id": names[code[query_rows[0]]], **row})
        scaled[name] = with_values(table, "score", pa.array(scores))
    order_of = [("system", "ascending"), ("query_id", "ascending")]
    return scaled, pa.Table.from_pylist(rows, KNOWN).sort_by(order_of)


def _moments(ascending: Floats) -> tuple[float, float]:
    """Mean and standard deviation; the value itself and 1 where they do not vary."""
    if ascending[0] == ascending[-1]:
        return float(ascending[0]), 1.0
    mean = total(ascending) / len(ascending)
    centred = ascending - mean
    return mean, math.sqrt(total(centred * centred) / len(ascending)) or 1.0


def with_rescored(table: pa.Table, rescored: pa.Table) -> pa.Table:
    """Add scores of systems at places without their detections.

    Args:
        table: JOINED.
        rescored: RESCORED, in the fused scale.
    """
    if not rescored.num_rows or not table.num_rows:
        return table
    systems, scores, detected = parts_of(table)
    rows = {key: row for row, key in enumerate(row_keys(table))}
    place = [rows[key] for key in row_keys(rescored)]
    columns = [systems.index(name) for name in rescored["system"].to_pylist()]
    scores[place, columns] = rescored["score"].to_numpy()
    return with_parts(table, systems, scores, detected)


@dataclass(frozen=True)
class ImputedList:
    """A joined list without missing scores, and the number of imputed ones by rule.

    Attributes:
        table: JOINED; the score is the mean of the systems' scores; in total order.
        average, least: number of scores imputed by the rule.
    """

    table: pa.Table
    average: int
    least: int


def impute_scores(table: pa.Table, missing: Missing, statistics: pa.Table) -> ImputedList:
    """Impute the missing scores of a joined list.

    Args:
        table: JOINED, with null scores; a row has at least one score.
        missing: the rule.
        statistics: KNOWN, for the rule `least`.
    """
    if not table.num_rows:
        return ImputedList(table, 0, 0)
    systems, scores, detected = parts_of(table)
    lacking = np.isnan(scores)
    by_least = 0
    if missing == "least" and lacking.any():
        names, code = coded(table["query_id"])
        pairs = zip(statistics["system"].to_pylist(), statistics["query_id"].to_pylist(), strict=True)
        least = dict(zip(pairs, statistics["least"].to_pylist(), strict=True))
        for k, system in enumerate(systems):
            least_scores = np.array([least.get((system, name), np.nan) for name in names], np.float64)
            scores[:, k] = np.where(lacking[:, k], least_scores[code], scores[:, k])
        by_least = int(lacking.sum() - np.isnan(scores).sum())
    undetected = np.isnan(scores)
    scores = np.where(undetected, mean_of_rows(np.where(detected, scores, np.nan))[:, None], scores)
    table = with_values(table, "score", pa.array(mean_of_rows(scores)))
    return ImputedList(sort_list(with_parts(table, systems, scores, detected)), int(undetected.sum()), by_least)


def mean_of_rows(scores: Floats) -> Floats:
    """The mean of each row's scores, summed in ascending order, so the order of systems has no effect.

    Args:
        scores: float64 (rows, systems), NaN if missing, at least one per row.
    """
    ordered = np.sort(scores, axis=1)  # NaN last
    defined = ~np.isnan(ordered)
    summed = np.zeros(len(scores))
    for column, present in zip(ordered.T, defined.T, strict=True):
        summed = summed + np.where(present, column, 0.0)
    result: Floats = summed / defined.sum(axis=1)
    return result


def label_rows(aligned: pa.Table, *, marks: bool) -> Labelled:
    """Count an aligned joined list by the systems' scores.

    Args:
        aligned: JOINED_TRIALS, all rows of its queries, in any order.
        marks: add columns for systems without a detection.
    """
    systems, columns = columns_of(aligned.filter(pc.is_valid(aligned["score"])), marks=marks)
    return Labelled.of(aligned, columns, systems=systems)


def columns_of(table: pa.Table, *, marks: bool) -> tuple[tuple[str, ...], Floats]:
    """Systems and regressors of a joined list: scores, then, optionally, 1 for missing detections.

    Raises:
        UserError: a score is missing.
    """
    systems, scores, detected = parts_of(table)
    if np.isnan(scores).any():
        row, place = (int(indices[0]) for indices in np.nonzero(np.isnan(scores)))
        raise families.BAD_CELL.of(UserError)(
            "system {system} has no score in a joined detection",
            "impute missing scores first",
            where=f"row {row + 1}, query {table['query_id'][row]}",
            system=systems[place],
        )
    return systems, np.hstack([scores, (~detected).astype(np.float64)]) if marks else scores


@dataclass(frozen=True)
class Fusion:
    """A fitted fusion.

    Attributes:
        systems: names.
        weights: w_k, one per system.
        offset: w_0.
        marks: m_k, one per system; empty without side information.
    """

    systems: tuple[str, ...]
    weights: tuple[float, ...]
    offset: float
    marks: tuple[float, ...] = ()

    def scores(self, table: pa.Table) -> Floats:
        """The fused scores of a joined list, float64 (rows,); NaN for rows without score (misses).

        Raises:
            UserError: the list is of other systems.
        """
        result = np.full(table.num_rows, np.nan)
        there = pc.is_valid(table["score"]).to_numpy()
        if not there.any():
            return result
        systems, columns = columns_of(table.filter(pa.array(there)), marks=bool(self.marks))
        if systems != self.systems:
            raise codes.FUSION_OF_OTHER_SYSTEMS(fitted=", ".join(self.systems), systems=", ".join(systems))
        result[there] = linear(columns, Coefficients((*self.weights, *self.marks), self.offset))
        return result


def fit_fusion(parts: Iterable[Labelled], *, trials: int | None = None, prior: float | None = None) -> Fusion:
    """Maximum-likelihood weights (see `regression`), independent of the order and partition of the rows.

    Args:
        parts: labelled rows.
        trials: of each query; None, or fewer than detections: only the detections count.
        prior: effective prior of target trials; None: unweighted.

    Raises:
        UserError: no hits or no false alarms.
    """
    rows = Labelled.total(parts)
    hits, false_alarms = prior_weights(rows.hits, rows.false_alarms, None)
    shift = 0.0
    if prior is not None:
        n_true, n_false = total(hits) + rows.missed, total(false_alarms)
        if trials is not None:
            n_false = max(n_false, float(rows.queries * trials - rows.missed - int(rows.hits.sum())))
        target, other = prior / n_true, (1 - prior) / n_false
        # Total weight equals the number of detections, so the weak prior on the slopes has its usual weight.
        scale = (total(hits) + total(false_alarms)) / (total(hits) * target + total(false_alarms) * other)
        hits, false_alarms = hits * (target * scale), false_alarms * (other * scale)
        shift = log_odds(prior)
    fitted = maximise(rows.columns, hits, false_alarms)
    many = len(rows.systems)
    return Fusion(rows.systems, fitted.slopes[:many], fitted.offset - shift, fitted.slopes[many:])


#: Criterion for joining detections of different systems.
Meeting = Literal["overlap", "middle"]

_PLACE = ("query_id", "doc_id", "channel")


def join_lists(lists: Mapping[str, pa.Table], *, meet: Meeting = "overlap", overlap: float = 0.5) -> pa.Table:
    """Join the lists of several systems.

    Args:
        lists: by name of the system: query_id, doc_id, channel, start, end (s), score; all rows of each of their queries.
        meet: criterion for joining detections of two systems.
        overlap: the share, 0 to 1.

    Returns:
        JOINED: one row per place, with times and score of its best detection. Its parts are ordered by system name;
        the score of a system without a detection is null. Rows in the order of `sort_list`.

    Raises:
        UserError: there is no list.
    """
    if not lists:
        raise families.EMPTY_INPUT("no lists to join", "name at least one system")
    names = sorted(lists)
    columns = ["query_id", "doc_id", "channel", "start", "end", "score"]
    tables = [_plain(lists[name].select(columns)) for name in names]
    system = np.repeat(np.arange(len(names)), [table.num_rows for table in tables])
    table = pa.concat_tables(tables).combine_chunks()
    if not table.num_rows:
        return JOINED.empty_table()
    group = _codes(table, _PLACE)
    by_group = np.argsort(group, kind="stable")
    table, system, group = table.take(pa.array(by_group)), system[by_group], group[by_group]
    bounds = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    first, last = _microseconds(table)
    order, owner = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
    from swsdist.kernels.suppression import join  # loads numba, which planning does not need

    score = table["score"].to_numpy().astype(np.float64)
    join(bounds, score, first, last, system, len(names), overlap, meet == "middle", order, owner)
    leaders = np.flatnonzero(owner == np.arange(len(owner)))
    row = np.empty(len(owner), np.int64)
    row[leaders] = np.arange(len(leaders))
    scores = np.full((len(leaders), len(names)), np.nan)
    scores[row[owner], system[order]] = score[order]
    places = table.take(pa.array(order[leaders]))
    return sort_list(with_parts(places, names, scores, ~np.isnan(scores)))


def without_overlaps(table: pa.Table, overlap: float, *, between_queries: bool = False) -> pa.Table:
    """Keep the better of two detections that overlap by more than a share of the shorter one; rows in their order.

    The better one has the higher score; then the earlier start, the earlier end, the first query name.

    Args:
        table: DETECTIONS or JOINED; all rows of each query, or of each document if queries compete.
        overlap: the share, 0 to 1.
        between_queries: detections of different queries compete too.
    """
    return table.filter(pa.array(best_of_overlaps(table, overlap, between_queries=between_queries)))


def best_of_overlaps(table: pa.Table, overlap: float, *, between_queries: bool = False) -> Bools:
    """Whether `without_overlaps` keeps each row, bool (rows,)."""
    if not table.num_rows:
        return np.zeros(0, bool)
    from swsdist.kernels.suppression import claim  # loads numba

    group = _codes(table, _PLACE[1:] if between_queries else _PLACE)
    rank = _codes(table, ("query_id",))
    by_group = np.lexsort((np.arange(len(group)), group))
    bounds = np.append(np.flatnonzero(np.diff(group[by_group], prepend=-1)), len(group))
    first, last = (times[by_group] for times in _microseconds(table))
    order, owner = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
    score = table["score"].to_numpy().astype(np.float64)[by_group]
    claim(bounds, score, first, last, rank[by_group], overlap, order, owner)
    stays = np.zeros(len(group), bool)
    stays[by_group[order[owner == np.arange(len(owner))]]] = True
    return stays


def _plain(table: pa.Table) -> pa.Table:
    """With types of DETECTIONS: names may be dictionary-encoded."""
    return table.cast(pa.schema([DETECTIONS.field(name) for name in table.column_names]))


def _codes(table: pa.Table, names: Sequence[str]) -> Ints:
    """Numbers of distinct keys, in the order of the keys."""
    code = np.zeros(table.num_rows, np.int64)
    for name in names:
        encoded = table[name].combine_chunks().dictionary_encode()
        rank = np.empty(len(encoded.dictionary), np.int64)
        rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
        code = code * len(rank) + rank[encoded.indices.to_numpy()]
    return np.unique(code, return_inverse=True)[1].reshape(-1)


def _microseconds(table: pa.Table) -> tuple[Ints, Ints]:
    """First and last microsecond of each row, both inclusive."""
    start, end = (np.rint(table[name].to_numpy() * 1e6).astype(np.int64) for name in ("start", "end"))
    return start, end - 1


def join_systems(
    lists: Mapping[str, pa.Table], *, standardise: bool, meet: Meeting, overlap: float
) -> tuple[pa.Table, pa.Table]:
    """Join lists, with null for systems without a detection.

    Args:
        lists: by name of the system, as of `join_lists`.
        standardise: subtract the query's mean and divide by the standard deviation.
        meet, overlap: criterion for joining detections of two systems.

    Returns:
        JOINED, and KNOWN: statistics of scores by system and query.

    Raises:
        UserError: there is no list.
    """
    scaled, statistics = standardise_lists(lists, standardise=standardise)
    return join_lists(scaled, meet=meet, overlap=overlap), statistics


def complete_list(
    table: pa.Table,
    statistics: pa.Table,
    *,
    missing: Missing,
    overlap: float,
    rescored: Iterable[pa.Table] = (),
    found_by: int = 1,
) -> pa.Table:
    """Impute missing scores of a joined list, and remove overlapping places of a query.

    Args:
        table, statistics: from `join_systems`.
        missing: how missing scores are imputed.
        overlap: share of the shorter place, 0 to 1, above which only the better of two places of a query is kept.
        rescored: RESCORED, scores of systems at places without a detection of theirs.
        found_by: places that fewer systems detected are left out.

    Returns:
        JOINED; the score is the mean of the systems' scores; in total order.
    """
    for answers in rescored:
        table = with_rescored(table, answers)
    if found_by > 1:
        table = table.filter(pa.array(parts_of(table)[2].sum(1) >= found_by))
    return without_overlaps(impute_scores(table, missing, statistics).table, overlap)
