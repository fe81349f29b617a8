"""Lists of several systems as one: detections of different systems that mean one place become one, with a score of each.

A query's detections in one channel of a document are taken best first, whatever system they are of; of equal scores the one
that begins first, then ends first, then whose system's name comes first. The best that is left is a **place**. Of each other
system the best detection that is left and meets it belongs to that place: at most one of a system, and each detection to one
place. Then the best that is left is the next place. Two detections meet

- by **overlap**, if they have more than a share of the shorter one in common, as in reduce; or
- by **middle**, if the mid-point of one lies in the other, borders included.

The times of a place are those of its best detection. Times count in whole microseconds, so rounding decides nothing, and a
place depends on no other query, document or channel: any cut gives the same. Nothing depends on the order of the systems, whose
scores must be comparable, as normalised ones are.

Places of one query may still overlap (of two detections of one system only one can belong to a place that meets both). And
places of different queries may. `without_overlaps` leaves the better of two.

Source: the union of detections as trials, Abad et al. 2013, "On the calibration and fusion of heterogeneous spoken term
detection systems"; Tejedor et al. 2016, section "System fusion", which also leaves out detections of different queries in one
interval of time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import fusion as codes
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.fusion.parts import sort_list, with_parts

Ints = NDArray[np.int64]

#: How detections of different systems meet.
Meeting = Literal["overlap", "middle"]

_PLACE = ("query_id", "doc_id", "channel")


def join_lists(lists: Mapping[str, pa.Table], *, meet: Meeting = "overlap", overlap: float = 0.5) -> pa.Table:
    """One list of the lists of several systems.

    Args:
        lists: by name of the system: query_id, doc_id, channel, start, end (s), score; all rows of each of their queries.
        meet: when detections of two systems mean one place.
        overlap: the share, 0 to 1.

    Returns:
        JOINED: a row a place, with the times and the score of its best detection. Its parts are of the systems by name;
        without a detection of a system there the score is null. Rows in the order of `sort_list`.

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
    from swsdist.kernels.joining import join  # loads numba: planning does without

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
    """Of two detections that overlap by more than a share of the shorter one, the better stays; rows in their order.

    The better has the higher score; of equal ones the one that begins first, ends first, whose query's name comes first.

    Args:
        table: DETECTIONS or JOINED; all rows of each query, or of each document where those of different queries compete.
        overlap: the share, 0 to 1.
        between_queries: detections of different queries compete too.
    """
    return table.filter(pa.array(best_of_overlaps(table, overlap, between_queries=between_queries)))


def best_of_overlaps(table: pa.Table, overlap: float, *, between_queries: bool = False) -> NDArray[np.bool_]:
    """Which rows `without_overlaps` leaves, bool (rows,)."""
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
    """With types of DETECTIONS: lists come with coded names."""
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
