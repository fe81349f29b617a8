"""From candidates to detections: the map-reduce's second half, one bucket of queries at a time.

Of each file of candidates one row group, its bucket, is read. A document lies whole in one shard, and a query's examples in
one group, so overlaps are removed file by file; what then remains is merged, and the best N of each query are kept. All
orders are total (score descending, then doc_id, channel, start, end, example), so neither the order nor the number of the
files matters. Memory holds one row group and N detections a query.

The score of a candidate is ``-cost / (query_frames * unit)``: minus the mean local distance over the query's frames; one
float64 division.

Statistics for score normalisation are taken over all candidates that came in, before any was removed, as exact integer
sums of costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.times import frames_to_seconds
from swsdist.types import DETECTIONS, QUERY_STATISTICS

_ORDER = [
    ("query_id", "ascending"),
    ("score", "descending"),
    ("doc_id", "ascending"),
    ("channel", "ascending"),
    ("start", "ascending"),
    ("end", "ascending"),
    ("example", "ascending"),
]


#: Of each (query_id, example, query_frames): candidates, and the sums of their costs and of the squares.
Sums = dict[tuple[str, int, int], list[int]]


class Reduced(NamedTuple):
    """Detections of a bucket (DETECTIONS, in total order) and its queries' statistics (QUERY_STATISTICS)."""

    detections: pa.Table
    statistics: pa.Table


def reduce_bucket(
    candidates: Iterable[pa.Table], *, shift: float, unit: int, overlap: float, nbest: int, system: str
) -> Reduced:
    """Merge one bucket's candidates.

    Args:
        candidates: CANDIDATES, one table a file.
        shift: frame shift in s.
        unit: the integer that stands for a local distance of 1.
        overlap: of two detections that overlap by more than this part of the shorter, the better stays.
        nbest: detections kept per query.
        system: name to put into their column.
    """
    kept = DETECTIONS.empty_table()
    sums: Sums = {}
    for table in candidates:
        count_costs(table, sums)
        found = unsuppressed(scored(table, shift, unit, system), table["end_frame"].to_numpy() + 1, overlap)
        kept = n_best(pa.concat_tables([kept, found]), nbest)
    return Reduced(kept.combine_chunks(), statistics_table(sums))


def statistics_table(sums: Sums) -> pa.Table:
    """QUERY_STATISTICS, ordered by query and example."""
    rows = [
        {
            "query_id": query_id,
            "example": example,
            "query_frames": frames,
            "candidates": count,
            "cost_sum": Decimal(total),
            "cost_square_sum": Decimal(squares),
        }
        for (query_id, example, frames), (count, total, squares) in sorted(sums.items())
    ]
    return pa.Table.from_pylist(rows, QUERY_STATISTICS)


def count_costs(table: pa.Table, sums: Sums) -> None:
    """Add a file's costs to the sums; rows of an example are consecutive."""
    if table.num_rows == 0:
        return
    query = table["query_id"].combine_chunks().dictionary_encode()
    codes, examples = query.indices.to_numpy(), table["example"].to_numpy()
    frames, cost = table["query_frames"].to_numpy(), table["cost"].to_numpy()
    starts = np.flatnonzero(np.append(True, (codes[1:] != codes[:-1]) | (examples[1:] != examples[:-1])))
    names = query.dictionary.to_pylist()
    ends = np.append(starts[1:], len(codes))
    # Costs fit 32 bits and a row group has fewer than 2^31 rows: 16-bit halves keep the squares' sums inside 64 bits.
    high, low = cost >> 16, cost & 0xFFFF
    parts = [np.add.reduceat(values, starts).tolist() for values in (cost, high * high, high * low, low * low)]
    for k, (first, last) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        key = (names[codes[first]], int(examples[first]), int(frames[first]))
        total = sums.setdefault(key, [0, 0, 0])
        total[0] += last - first
        total[1] += parts[0][k]
        total[2] += (parts[1][k] << 32) + (parts[2][k] << 17) + parts[3][k]


def scored(table: pa.Table, shift: float, unit: int, system: str) -> pa.Table:
    """Candidates as detections."""
    end, frames = table["end_frame"].to_numpy(), table["frames"].to_numpy()
    cost, length = table["cost"].to_numpy(), table["query_frames"].to_numpy().astype(np.int64)
    rows = table.num_rows
    columns = {
        "query_id": table["query_id"],
        "doc_id": table["doc_id"],
        "channel": table["channel"],
        "start": frames_to_seconds(end - frames + 1, shift),
        "end": frames_to_seconds(end + 1, shift),
        "score": -cost.astype(np.float64) / (length * unit),
        "decision": pa.nulls(rows, pa.bool_()),
        "cost": cost,
        "frames": frames,
        "example": table["example"],
        "system": pa.array([system] * rows, pa.string()),
    }
    return pa.Table.from_pydict(columns, schema=DETECTIONS)


def claimed(table: pa.Table, stop: NDArray[np.int64], overlap: float) -> tuple[pa.Table, NDArray[np.int64]]:
    """Which detection of the same query and document takes the place of which: the best that overlaps it, and that stays.

    Overlap is counted in frames: in seconds, whether half is more than half would depend on the place in the document.

    Args:
        table: DETECTIONS.
        stop: the frame after each one's last.
        overlap: see `reduce_bucket`.

    Returns:
        The table in total order, and of each row the row that takes its place; its own where it stays.
    """
    rows = table.num_rows
    best_first = pc.sort_indices(table, _ORDER)
    table, stop = table.take(best_first), stop[best_first.to_numpy()]
    query, document = (
        table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ("query_id", "doc_id")
    )
    channel = table["channel"].to_numpy()
    order = np.lexsort((np.arange(rows), channel, document, query))
    new = np.ones(rows, bool)
    new[1:] = False
    for column in (query[order], document[order], channel[order]):
        new[1:] |= column[1:] != column[:-1]
    start = (stop - table["frames"].to_numpy())[order]
    place = np.empty(rows, np.int64)
    from swsdist.kernels.suppression import claim  # loads numba: planning does without

    claim(np.append(np.flatnonzero(new), rows), start, stop[order], overlap, place)
    owner = np.empty(rows, np.int64)
    owner[order] = order[place]
    return table, owner


def unsuppressed(table: pa.Table, stop: NDArray[np.int64], overlap: float) -> pa.Table:
    """Detections that no better one of the same query and document overlaps, in total order; see `claimed`."""
    if table.num_rows == 0:
        return table
    table, owner = claimed(table, stop, overlap)
    return table.filter(pa.array(owner == np.arange(len(owner))))


def n_best(table: pa.Table, nbest: int) -> pa.Table:
    """The best of each query, in total order."""
    if table.num_rows == 0:
        return table
    table = table.sort_by(_ORDER)
    codes = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    rank = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes))))
    return table.filter(pa.array(rank < nbest))
