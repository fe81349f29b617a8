"""The search on a CPU.

One call of the compiled inner loop (`kernels.scan`) computes distances, recurrence and candidates of a batch of sixteen
pieces and a group of queries. Threads process batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.core.threads import in_threads
from swsdist.kernels import products
from swsdist.kernels.arithmetic import StateType
from swsdist.kernels.scan import COLUMNS, Scan, room_for_candidates, room_for_distances, room_for_ranges
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.interface import Scanned, Work
from swsdist.methods.dtw.backends.lanes import LaneBatch, batches
from swsdist.methods.dtw.backends.matrix_product import Multiply, by_numpy
from swsdist.methods.dtw.backends.pieces import Piece
from swsdist.methods.dtw.backends.room import Room

#: Queries per call of the inner loop; one, if a library multiplies complete documents for each.
_GROUP = 32

#: Bytes of distances to complete documents, which a row range needs: half an hour of 10 ms frames with a query of 1 s.
_RANGED_BYTES = 600_000_000

#: Uncut documents are laid out in segments of this many frames.
_SEGMENT = 4096


class _Group(NamedTuple):
    """Queries that share a call, and thus the type of their state."""

    rows: NDArray[np.int64]  # (queries, len(QUERY)), `begin` not yet set
    margin: NDArray[np.int64]  # frames that a query needs before the first reported; -1: all
    paired: NDArray[np.int16]  # flat
    frames: list[NDArray[np.float32]]  # one per stream, (rows, columns of the stream), for library products
    scan: Scan
    state: StateType
    curve: StateType
    columns: int  # elements
    height: int  # the most rows of a query


def int16(work: Work) -> Cpu:
    """Create the backend with the int16 product of `kernels.products`."""
    return Cpu(work, None)


def blas(work: Work) -> Cpu:
    """Create the backend with numpy's product.

    Raises:
        UserError: the product is inexact.
    """
    return Cpu(work, by_numpy())


class Cpu:
    """The search in vectors of sixteen lanes, with the int16 product (None) or a library's."""

    def __init__(self, work: Work, multiply: Multiply | None) -> None:
        self._work, self._multiply = work, multiply
        self._layout = products.layout(work.settings.distance)
        self._groups = {False: self._grouped(wide=False)}
        self._rooms: SimpleQueue[Room] = SimpleQueue()

    def scan(self, pieces: Iterable[Piece]) -> Iterator[Scanned]:
        """Search batches in parallel threads; results are in order."""
        settings = self._work.settings
        of_lanes = batches(pieces, settings.lanes, self._layout.order)
        for batch, rows in in_threads(self._scan, of_lanes, settings.threads):
            yield Scanned(rows, int(batch.numbers[:, 0].sum()), batch.frames * WIDTH)

    def _grouped(self, *, wide: bool) -> list[_Group]:
        """Group examples of similar length and the same type of state; `wide`: for documents too long for int32."""
        most = 1 if self._work.settings.row_range and self._multiply is not None else _GROUP
        return [
            _group(chosen[first : first + most], self._work, self._layout, wide)
            for chosen in self._work.by_state()
            for first in range(0, len(chosen), most)
        ]

    def _scan(self, batch: LaneBatch) -> list[NDArray[np.int64]]:
        wide = self._work.is_long(batch.frames)
        if wide not in self._groups:
            self._groups[wide] = self._grouped(wide=True)
        try:
            room = self._rooms.get_nowait()
        except Empty:
            room = Room()
        rows = list(_scan(batch, self._groups[wide], self._work, self._layout, self._multiply, room))
        self._rooms.put(room)
        return rows


def _group(chosen: list[int], work: Work, layout: products.Layout, wide: bool) -> _Group:
    recurrence = work.recurrence
    rows = []
    paired = []
    place = columns = height = 0
    for k in chosen:
        frames = work.examples[k].frames
        n = len(frames)
        packing = recurrence.packing(n)
        large, small = products.tiles(n)
        padded = products.rows_of(large, small)
        rows.append((k, n, place, large, small, packing.frame_bits, packing.infinity, columns, recurrence.option, 0))
        paired.append(products.paired(frames, layout.order, padded))
        place += padded
        columns += recurrence.elements(n)
        height = max(height, padded)
    curve = recurrence.packing(len(work.examples[chosen[0]].frames)).dtype
    state = recurrence.state(curve, wide)
    together = np.concatenate(paired)
    streams = [
        np.ascontiguousarray(together[:, 2 * first : 2 * (first + pairs)], np.float32)
        for first, pairs, *_ in layout.shape.tolist()
    ]
    reaches = [work.reach(len(work.examples[k].frames)) for k in chosen]
    margin = [-1 if reach is None else reach for reach in reaches]
    return _Group(
        np.array(rows, np.int64),
        np.array(margin, np.int64),
        together.reshape(-1),
        streams,
        recurrence.scanner(state, curve, len(layout.shape), work.settings.row_range),
        state,
        curve,
        columns,
        height,
    )


def _scan(
    batch: LaneBatch,
    groups: list[_Group],
    work: Work,
    layout: products.Layout,
    multiply: Multiply | None,
    room: Room,
) -> Iterator[NDArray[np.int64]]:
    """Candidates of all groups in a batch: int64 (candidates, 5), see `kernels.scan`."""
    settings, most = work.settings, work.most
    lanes = np.zeros((WIDTH, 6), np.int64)
    lanes[:, :5] = batch.numbers
    lanes[: len(batch.pieces), 5] = most[batch.numbers[: len(batch.pieces), 3]]
    reported = int(batch.numbers[: len(batch.pieces), 1].min())
    window = settings.window
    streams = settings.distance.streams
    source_type: products.Source = "int16" if multiply is None else "float32"
    fills = tuple(
        products.argument(products.fill(of, source_type)) for of in settings.distance.maps(settings.row_range)
    )
    uncut = settings.row_range or (multiply is None and work.recurrence.reach is not None)
    length = batch.frames if uncut else min(batch.frames, _SEGMENT if multiply is None else multiply.frames)
    several = length < batch.frames
    for start in range(0, batch.frames, length):
        stop = min(start + length, batch.frames)
        source = batch.segment(start, stop, room)
        if multiply is not None:
            blocks = multiply.blocks(source, layout)
        for number, group in enumerate(groups):
            queries = group.rows.copy()
            begin = np.where(group.margin < 0, 0, np.maximum(reported - group.margin, 0))
            queries[:, -1] = begin // products.STRIDE * products.STRIDE
            if multiply is None:
                sources, pairs = (source,) * len(streams), layout.pairs
                queries[:, 2] *= 2 * layout.pairs
            else:
                sources, pairs = multiply(group.frames, blocks, room), stop - start
            key = f" {number}" if several else ""
            rows = stop - start + 3 * window
            most_rows = WIDTH * min(int(lanes[:, 5].max()), room_for_candidates(rows, window))
            count = len(queries) * most_rows + room_for_candidates(rows, window)
            at_once = room_for_distances(group.height)
            sums = products.SUMS
            if settings.row_range:
                at_once = length * group.height * WIDTH
                needed = 2 * len(streams) * at_once
                if needed > _RANGED_BYTES:
                    raise codes.ROW_RANGE_MEMORY(
                        where="search.row_range",
                        rows=group.height,
                        frames=length,
                        needed=needed / 1e9,
                        most=_RANGED_BYTES / 1e9,
                    )
                sums = max(sums, room_for_ranges(group.height))
            out = room("found", count * COLUMNS, np.int64)[: count * COLUMNS].reshape(count, COLUMNS)
            matches = group.scan(
                fills,
                sources,
                layout.shape,
                settings.distance.shift,
                pairs,
                group.paired,
                queries,
                start,
                stop - start,
                stop == batch.frames,
                lanes,
                window,
                room("columns" + key, group.columns, group.state),
                room("tails" + key, len(queries) * 2 * window * WIDTH, group.curve),
                room("distances", len(streams) * at_once, np.int16),
                room("sums", sums, np.int32),
                room("curve", rows * WIDTH, group.curve),
                room("minima", rows * WIDTH, group.curve),
                out,
            )
            yield out[:matches].copy()
