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

from swsdist.clock import frames_to_seconds
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
    sums: dict[tuple[str, int, int], list[int]] = {}
    for table in candidates:
        _count(table, sums)
        found = _unsuppressed(_scored(table, shift, unit, system), table["end_frame"].to_numpy() + 1, overlap)
        kept = _best(pa.concat_tables([kept, found]), nbest)
    statistics = [
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
    return Reduced(kept.combine_chunks(), pa.Table.from_pylist(statistics, QUERY_STATISTICS))


def _count(table: pa.Table, sums: dict[tuple[str, int, int], list[int]]) -> None:
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


def _scored(table: pa.Table, shift: float, unit: int, system: str) -> pa.Table:
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


def _unsuppressed(table: pa.Table, stop: NDArray[np.int64], overlap: float) -> pa.Table:
    """Detections that no better one of the same query and document overlaps; `stop` is the frame after each one's last.

    Overlap is counted in frames: in seconds, whether half is more than half would depend on the place in the document.
    """
    if table.num_rows == 0:
        return table
    best_first = pc.sort_indices(table, _ORDER)
    table, stop = table.take(best_first), stop[best_first.to_numpy()]
    codes = [table[name].combine_chunks() for name in ("query_id", "doc_id", "channel")]
    order = np.lexsort(
        (
            np.arange(table.num_rows),
            codes[2].to_numpy(),
            codes[1].dictionary_encode().indices.to_numpy(),
            codes[0].dictionary_encode().indices.to_numpy(),
        )
    )
    group = [
        codes[0].dictionary_encode().indices.to_numpy()[order],
        codes[1].dictionary_encode().indices.to_numpy()[order],
        codes[2].to_numpy()[order],
    ]
    new = np.zeros(len(order), bool)
    new[0] = True
    for column in group:
        new[1:] |= column[1:] != column[:-1]
    keep = np.empty(len(order), np.bool_)
    start = (stop - table["frames"].to_numpy())[order]
    from swsdist.kernels.suppression import suppress  # loads numba: planning does without

    suppress(np.append(np.flatnonzero(new), len(order)), start, stop[order], overlap, keep)
    mask = np.empty(len(order), bool)
    mask[order] = keep
    return table.filter(pa.array(mask))


def _best(table: pa.Table, nbest: int) -> pa.Table:
    """The best of each query, in total order."""
    if table.num_rows == 0:
        return table
    table = table.sort_by(_ORDER)
    codes = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    rank = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes))))
    return table.filter(pa.array(rank < nbest))
