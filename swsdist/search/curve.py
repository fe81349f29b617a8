"""The curve of one query in one document, and the warping path of a detection: computed on demand, for plots.

The search keeps neither: it finds candidates in a curve that exists for one query and a few thousand frames at a time. Here
the same recurrence runs over a whole table of distances (`kernels.tracing`), so that cost and document frames of every end
frame are those of the search, and the path of a detection is the one that it was found by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.clock import frames_to_seconds, seconds_to_frame
from swsdist.config.model import Search
from swsdist.errors import StoreError, UserError
from swsdist.kernels import products, tracing
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.vectors import WIDTH
from swsdist.search.direct import extracted_from, parse_query, settings_of
from swsdist.search.meeting import Meeting, Room
from swsdist.search.patterns import pattern
from swsdist.search.queries import prepared
from swsdist.search.shard import Documents, engine_settings
from swsdist.store.reading import Store

_TABLES = {
    "bounded-slope": tracing.bounded_slope,
    "asymmetric": tracing.asymmetric,
    "averages": tracing.averages,
    "non-segmental": tracing.non_segmental,
    "segmental": tracing.segmental,
}


class Curve(NamedTuple):
    """The paths that end at each document frame.

    Attributes:
        cost: int64 (document frames,), as a candidate's; -1 where no path ends.
        frames: int64 (document frames,), document frames of the path; 0 where no path ends.
    """

    cost: NDArray[np.int64]
    frames: NDArray[np.int64]


def local_distances(query: NDArray[np.float32], document: NDArray[np.float32], distance: Distance) -> NDArray[np.int16]:
    """Distances between prepared frames, int16 (query frames, document frames), as the search takes them.

    Args:
        query, document: float32 (frames, columns), prepared.
    """
    layout = products.layout(distance)
    n, length = len(query), len(document)
    groups = -(-length // (WIDTH * products.STRIDE)) * products.STRIDE
    # Sixteen consecutive frames lie where the search has one frame of sixteen documents.
    by_frame = products.paired(document, layout.order, groups * WIDTH).reshape(groups, WIDTH, layout.pairs, 2)
    meet = Meeting(query, distance, Room(np.int16))
    made = meet(np.ascontiguousarray(by_frame.transpose(0, 2, 1, 3)).reshape(-1))
    in_order = made.reshape(groups, meet.height, WIDTH).transpose(1, 0, 2).reshape(meet.height, -1)
    return np.ascontiguousarray(in_order[:n, :length])


def curve(
    query: NDArray[np.float32],
    document: NDArray[np.float32],
    distance: Distance,
    recurrence: str = "bounded-slope",
    band: int = 1,
) -> Curve:
    """Cost and document frames of the path that ends at each frame of a document.

    Args:
        query, document: float32 (frames, columns), prepared by the distance; at least one frame each.
        distance: between frames.
        recurrence: name in `search.patterns.PATTERNS`.
        band: R of segmental.

    Raises:
        UserError: the query is too long for the recurrence.
    """
    pattern(recurrence, band).packing(len(query))  # refuses queries that the search refuses
    return _traced(local_distances(query, document, distance), _TABLES[recurrence], band)[0]


def path(
    query: NDArray[np.float32],
    document: NDArray[np.float32],
    end_frame: int,
    distance: Distance,
    recurrence: str = "bounded-slope",
    band: int = 1,
) -> NDArray[np.int64]:
    """The path that ends at a document frame: its cells (query frame, document frame), int64 (cells, 2), in order.

    Args:
        end_frame: last document frame of the path, as a candidate's.

    The others are as for `curve`.

    Raises:
        UserError: no path ends there, or the query is too long for the recurrence.
    """
    known = pattern(recurrence, band)
    known.packing(len(query))
    if not 0 <= end_frame < len(document):
        raise UserError(
            f"the document has {len(document)} frames, and no frame {end_frame}", remedy="give the end of a detection"
        )
    first = 0 if known.reach is None else max(0, end_frame - known.reach(len(query))) // known.grid * known.grid
    table = local_distances(query, document[first : end_frame + 1], distance)
    found, steps = _traced(table, _TABLES[recurrence], band)
    frames = int(found.frames[-1])
    if frames == 0:
        raise UserError(
            f"no path ends at frame {end_frame}",
            remedy="give the end of a detection; a query of bounded slope needs half as many frames before it",
        )
    if recurrence == "segmental":
        first = end_frame - frames + 1
        _, steps = _traced(np.ascontiguousarray(table[:, -frames:]), tracing.segment, band)
    cells = _walked(steps)
    cells[:, 1] += first
    return cells


def _traced(table: NDArray[np.int16], recurrence: Any, band: int) -> tuple[Curve, NDArray[np.uint8]]:
    found = Curve(np.empty(table.shape[1], np.int64), np.empty(table.shape[1], np.int64))
    steps = np.empty(table.shape, np.uint8)
    tracing.traced(recurrence)(table, band, found.cost, found.frames, steps)
    return found, steps


def _walked(steps: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Cells of the path that ends in the last one."""
    i, t = steps.shape[0] - 1, steps.shape[1] - 1
    cells = []
    while i >= 0:
        cells.append((i, t))
        code = steps[i, t]
        if code == tracing.BEGIN:
            break
        query_step, document_step = tracing.STEPS[code]
        if query_step == 2:  # both query frames are charged at this document frame
            cells.append((i - 1, t))
        i, t = i - query_step, t - document_step
    return np.array(cells[::-1], np.int64)


def curve_in_store(store: Store, query: str, doc_id: str, channel: int, options: Mapping[str, Any]) -> pa.Table:
    """The curve of a spoken query in a document of a store.

    Args:
        store: an open store.
        query: as `search.direct.parse_query` takes it.
        doc_id, channel: of the document.
        options: keys of the config's section `search`.

    Returns:
        A row for each frame of the document: start and end of the path that ends with it (s), its score, cost and document
        frames; null where none ends.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
    """
    one = _Pair(store, query, doc_id, channel, options)
    found = curve(one.query, one.document, one.distance, *one.recurrence)
    shift, none = store.manifest.shift, found.frames == 0
    last = np.arange(len(found.cost))
    return pa.table(
        {
            "start": pa.array(frames_to_seconds(last - found.frames + 1, shift), mask=none),
            "end": pa.array(frames_to_seconds(last + 1, shift)),
            "score": pa.array(-found.cost / (len(one.query) * one.distance.unit), mask=none),
            "cost": pa.array(found.cost, mask=none),
            "frames": pa.array(found.frames, mask=none),
        }
    )


def path_in_store(
    store: Store, query: str, doc_id: str, end: float, channel: int, options: Mapping[str, Any]
) -> pa.Table:
    """The warping path of a detection.

    Args:
        end: the detection's end, s.

    The others are as for `curve_in_store`.

    Returns:
        A row for each cell of the path: query_frame and frame, the times that they begin at (query_time, time; s) and
        their distance, 1 for the unit of the distance.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
        UserError: no path ends there.
    """
    if not (end > 0 and math.isfinite(end)):
        raise UserError(f"no path ends at {end} s", where="end", remedy="give the end of a detection, in s")
    one = _Pair(store, query, doc_id, channel, options)
    shift = store.manifest.shift
    cells = path(one.query, one.document, seconds_to_frame(end, shift) - 1, one.distance, *one.recurrence)
    first = int(cells[0, 1])
    table = local_distances(one.query, one.document[first : cells[-1, 1] + 1], one.distance)
    return pa.table(
        {
            "query_frame": cells[:, 0],
            "frame": cells[:, 1],
            "query_time": frames_to_seconds(cells[:, 0], shift),
            "time": frames_to_seconds(cells[:, 1], shift),
            "distance": table[cells[:, 0], cells[:, 1] - first] / one.distance.unit,
        }
    )


class _Pair:
    """A query and a document of a store, prepared as the search prepares them."""

    def __init__(self, store: Store, query: str, doc_id: str, channel: int, options: Mapping[str, Any]) -> None:
        config = settings_of(options)
        manifest = store.manifest
        extracted = extracted_from(store, [parse_query(query)])
        self.query = prepared(extracted, store.statistics(), config, manifest.dimension)[0].frames
        self.distance, self.document = _document(store, doc_id, channel, config)
        settings = engine_settings(config, self.distance, manifest.shift)
        self.recurrence = settings.pattern, settings.band


def _document(store: Store, doc_id: str, channel: int, config: Search) -> tuple[Distance, NDArray[np.float32]]:
    """The distance of a config, and a document's frames prepared for it."""
    everywhere = store.documents(columns=["doc_id", "channel", "shard"])
    shards = everywhere["shard"].filter(_is(everywhere, doc_id, channel)).to_pylist()
    if not shards:
        raise StoreError(
            f"there is no document {doc_id!r}, channel {channel}",
            where=store.folder.path(),
            remedy="`swsdist store info --documents` lists those there are",
        )
    documents = Documents(store, shards, config)
    chosen = _is(documents.table, doc_id, channel).to_numpy()
    blocks = [block for _, blocks in documents.stream(chosen=chosen) for block in blocks]
    return documents.distance, np.concatenate(blocks)


def _is(table: pa.Table, doc_id: str, channel: int) -> pa.ChunkedArray:
    return pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel))
