"""The exact search on a CPU.

One call of the compiled inner loop (`kernels.scan`) computes distances, recurrence and candidates of a batch of sixteen
pieces and a group of queries. Threads process batches.

A library's float32 matrix product may take the place of the int16 product of `kernels.products`. Prepared frames are
integers whose sums float32 holds exactly, so both give the same bytes, and the choice affects only speed: the int16
product (in registers, fused with the map) is fastest on CPUs with 512-bit vectors; see docs/concepts/engine.md. A
library is used only after it has multiplied known integers of the largest size without error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.threads import in_threads
from swsdist.kernels import products
from swsdist.kernels.arithmetic import StateType
from swsdist.kernels.products import STRIDE, Layout, interleave
from swsdist.kernels.scan import COLUMNS, Scan, room_for_candidates, room_for_distances, room_for_ranges
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.interface import Piece, Room, Scanned, Work


class Multiply(NamedTuple):
    """A library's float32 product.

    Attributes:
        name: of the library.
        into: (left, right, out): writes left @ right.
        frames: frames of a segment per product with a group of queries.
    """

    name: str
    into: Callable[[Singles, Singles, Singles], None]
    frames: int = 64

    def blocks(self, source: NDArray[np.int16], layout: Layout) -> list[Singles]:
        """The streams of a segment as right-hand sides, float32 (columns, frames x 16)."""
        by_pair = source.reshape(-1, layout.pairs, WIDTH, 2)
        return [
            np.ascontiguousarray(
                by_pair[:, first : first + pairs].transpose(1, 3, 0, 2).reshape(2 * pairs, -1), np.float32
            )
            for first, pairs, *_ in layout.shape.tolist()
        ]

    def __call__(self, queries: list[Singles], blocks: list[Singles], room: Room) -> tuple[NDArray[np.int16], ...]:
        """Products of a group of queries and a segment, one per stream: float32 (rows, frames, 16), their bytes as
        int16.
        """
        products = []
        for k, (left, right) in enumerate(zip(queries, blocks, strict=True)):
            size = len(left) * right.shape[1]
            out = room(f"products {k}", size, np.float32)[:size]
            self.into(left, right, out.reshape(len(left), -1))
            products.append(out.view(np.int16))
        return tuple(products)


@cache
def by_numpy() -> Multiply:
    """numpy's BLAS, one product for a group of queries and a segment of frames.

    Raises:
        UserError: its float32 product is not exact on integers below 2^24.
    """
    chosen = Multiply("numpy", _numpy)
    probe(chosen)
    return chosen


def probe(chosen: Multiply) -> None:
    """Multiply known integers of the largest size that search uses.

    Raises:
        UserError: a product is wrong (reduced precision, or a broken BLAS).
    """
    k = np.arange(39 * 64, dtype=np.int64).reshape(64, 39)
    left, right = k * 2654435761 % 927 - 463, k * 40503 % 925 - 462
    out = np.empty((64, 64), np.float32)
    chosen.into(left.astype(np.float32), np.ascontiguousarray(right.T, np.float32), out)
    if not np.array_equal(out, (left @ right.T).astype(np.float64)):
        raise families.PROGRAM_FAILED(
            "the float32 matrix product of {library} is not exact on integers below 2^24 on this machine",
            "switch off reduced precision, or set search.backend to int16",
            where="search.backend",
            library=chosen.name,
        )


def _numpy(left: Singles, right: Singles, out: Singles) -> None:
    np.matmul(left, right, out=out)


#: Pieces wait for others of their length until they are so large together: one batch of long ones, several of short ones.
_WAITING_BYTES = 16_000_000

#: And are searched with empty lanes beside them rather than wait longer than this.
_MOST_BYTES = 64_000_000


class LaneBatch:
    """At most sixteen pieces in lanes. Padding is zero frames, which end no candidate.

    Attributes:
        pieces: by length, longest first.
        frames: of the longest, and on to a multiple of `STRIDE`.
        numbers: int64 (16, 5), of each lane's piece: frames, first, stop, document, offset; zeros for an empty lane.
    """

    def __init__(self, pieces: list[Piece], order: Ints) -> None:
        self.pieces = pieces
        self.frames = -(-len(pieces[0].frames) // STRIDE) * STRIDE
        self.numbers = np.zeros((WIDTH, 5), np.int64)
        self.numbers[: len(pieces)] = [(len(p.frames), p.first, p.stop, p.document, p.offset) for p in pieces]
        self._order = order

    def segment(self, start: int, stop: int, room: Room) -> NDArray[np.int16]:
        """Frames start <= t < stop of all lanes, int16 (frames, pairs, 16, 2), flat: see `kernels.products`."""
        parts = [piece.frames[start:stop] for piece in self.pieces]
        size = (stop - start) * len(self._order) * WIDTH
        out = room("segment", size, np.int16)[:size]
        interleave((*parts, *[parts[0][:0]] * (WIDTH - len(parts))), self._order, out)
        return out


def batches(pieces: Iterable[Piece], lanes: int, order: Ints) -> Iterator[LaneBatch]:
    """Lay pieces into lanes, sorted by length among those that wait together, so that little is padding.

    Args:
        pieces: none of them empty.
        lanes: pieces side by side; more than 16 are taken in turns.
        order: columns of a frame in pairs, see `kernels.products.interleave`.
    """
    lanes = min(lanes, WIDTH)
    waiting: list[Piece] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += piece.frames.nbytes
        full = len(waiting) % lanes == 0 and held >= _WAITING_BYTES
        if full or len(waiting) == 64 * lanes or held >= _MOST_BYTES:
            yield from _laid_out(waiting, lanes, order)
            waiting, held = [], 0
    yield from _laid_out(waiting, lanes, order)


def _laid_out(pieces: list[Piece], lanes: int, order: Ints) -> Iterator[LaneBatch]:
    ordered = sorted(pieces, key=lambda p: -len(p.frames))
    for k in range(0, len(ordered), lanes):
        yield LaneBatch(ordered[k : k + lanes], order)


#: Queries per call of the inner loop; one, if a library multiplies complete documents for each.
_GROUP = 32

#: Bytes of distances to complete documents, which a row range needs: half an hour of 10 ms frames with a query of 1 s.
_RANGED_BYTES = 600_000_000

#: Uncut documents are laid out in segments of this many frames.
_SEGMENT = 4096


class _Group(NamedTuple):
    """Queries that share a call, and thus the type of their state."""

    rows: Ints  # (queries, len(QUERY)), `begin` not yet set
    margin: Ints  # frames that a query needs before the first reported; -1: all
    paired: NDArray[np.int16]  # flat
    frames: list[Singles]  # one per stream, (rows, columns of the stream), for library products
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

    def _scan(self, batch: LaneBatch) -> list[Ints]:
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
) -> Iterator[Ints]:
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
                    raise families.TOO_LARGE(
                        (
                            "distances of {rows} query frames to a document of {frames} frames take {needed:.3g} GB; "
                            "row_range holds {most:g} GB"
                        ),
                        "cut long recordings into documents of some minutes, or set row_range: false",
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
