"""The column `parts` of joined lists (`swsdist.core.types.JOINED`): each system's score of a detection.

`swsdist.calibrate.fusion` joins lists; `swsdist.calibrate.fusion` imputes missing scores and fuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import fuse as codes
from swsdist.core.types import DETECTIONS, JOINED, JOINED_TRIALS, PARTS
from swsdist.io.notices import Notices

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Total order of a list, as of reduce.
_ORDER = [("query_id", "ascending"), ("score", "descending")] + [
    (name, "ascending") for name in ("doc_id", "channel", "start", "end")
]
#: Key of a detection in a list.
KEY = ("query_id", "doc_id", "channel", "start", "end")


def with_parts(table: pa.Table, systems: Sequence[str], scores: Floats, detected: Flags) -> pa.Table:
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


def parts_of(table: pa.Table) -> tuple[tuple[str, ...], Floats, Flags]:
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
        raise codes.INCONSISTENT_SYSTEMS()
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
