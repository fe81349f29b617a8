"""Joins lists of several systems: matching detections become one row, with a score per system.

A query's detections in a channel of a document are processed best first, across systems; of equal scores the one
that begins first, then ends first, then with the first system name. The best remaining one becomes a **place**. Of each other
system the best remaining detection that meets it joins that place: at most one per system, and each detection joins one
place. Then the best remaining one becomes the next place. Two detections meet

- by **overlap**, if they have more than a share of the shorter one in common, as in reduce; or
- by **middle**, if the mid-point of one lies in the other, borders included.

The times of a place are those of its best detection. Times are integer microseconds, so rounding has no effect, and a
place is independent of other queries, documents and channels. Nothing depends on the order of the systems, whose
scores must be comparable, for example normalised.

Places of one query may still overlap (of two detections of one system only one can join a place that meets both), as
may places of different queries. `without_overlaps` keeps the better of two.

Source: the union of detections as trials, Abad et al. 2013, "On the calibration and fusion of heterogeneous spoken term
detection systems"; Tejedor et al. 2016, section "System fusion", which also leaves out detections of different queries in one
interval of time.

The order of joining and imputing the lists of several systems::

    comparable scores -> joined places -> rescored places -> imputed scores -> no overlaps in a query

The chain fuse processes buckets of queries in two stages; `swsdist fuse` processes whole lists. All of this precedes fitting,
so it does not depend on references. Overlaps of different queries are removed later, by the fused score (`without_overlaps`,
`between_queries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import fuse as codes
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.fusion.parts import parts_of, sort_list, with_parts
from swsdist.fusion.weights import Missing, impute_scores, standardise_lists, with_rescored

Ints = NDArray[np.int64]

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
        raise codes.NO_LISTS()
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
    from swsdist.kernels.joining import join  # loads numba, which planning does not need

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


def best_of_overlaps(table: pa.Table, overlap: float, *, between_queries: bool = False) -> NDArray[np.bool_]:
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
