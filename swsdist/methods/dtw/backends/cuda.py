"""The exact search on a GPU: the same candidates as on a CPU, byte for byte, for every recurrence.

Pieces of documents are grouped into warps (`WarpBatch`); `kernels.cuda.threads` defines the layouts of documents in
warps and of queries in tiles. A batch of warps is copied to the GPU and searched with a part of the queries at a time.
All GPU memory is allocated as one array of the size of the budget, which bounds its use; `Account` reports how much was
used.

Copies and host work overlap computation: batches are copied from pinned memory on a separate stream, alternately to two
places; parts are searched alternately on two streams, and candidates of one part are fetched while the next is
searched.

Products are float32 multiply-adds in registers, of integers whose sums float32 holds exactly. No library multiplies
matrices, so there is no reduced precision to disable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import methods as codes
from swsdist.core.errors import UserError
from swsdist.kernels.arithmetic import State
from swsdist.kernels.cuda.threads import LANE, QUERIES, SPAN, TASK, WARP
from swsdist.kernels.products import Element
from swsdist.kernels.scan import COLUMNS
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.create import missing
from swsdist.methods.dtw.backends.interface import Piece, Scanned, Work

#: Frames before a piece's first, if all are needed.
_ALL = 1 << 40


class QueryTiles(NamedTuple):
    """Queries with the same type of curve, the longest first, so that no long one remains at the end.

    Attributes:
        which: int64 (queries,), indices of the examples.
        tasks: int64 (queries, 6), see `kernels.cuda.threads.TASK`.
        tops: state (queries x 16,).
        tiles: float32 (tiles x columns x 16,).
        rows: the most rows of a query's tiles.
        elements: the most elements of the recurrence's columns for a query.
    """

    which: Ints
    tasks: Ints
    tops: State
    tiles: Singles
    rows: int
    elements: int

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays to copy to the GPU."""
        return self.tasks, self.tops, self.tiles


def queries(work: Work) -> list[QueryTiles]:
    """All examples, grouped by type of the curve."""
    return [_queries(chosen[::-1], work) for chosen in work.by_state()]


def _queries(chosen: list[int], work: Work) -> QueryTiles:
    recurrence = work.recurrence
    tasks, tops, tiles = np.zeros((len(chosen), len(TASK)), np.int64), [], []
    first = 0
    for row, k in enumerate(chosen):
        frames = work.examples[k].frames
        n, columns = frames.shape
        packing, reach = recurrence.packing(n), work.reach(n)
        count = -(-n // WIDTH)
        padding = count * WIDTH - n
        tasks[row] = first, count, packing.frame_bits, packing.infinity, _ALL if reach is None else reach, n
        first += count
        # Padding rows come before the query's first frame; every path begins in the last of them.
        tops.append([packing.infinity] * (padding - 1) + [0] * min(padding, 1) + [-1] * (WIDTH - padding))
        padded = np.concatenate([np.zeros((padding, columns), np.float32), frames])
        tiles.append(padded.reshape(count, WIDTH, columns).transpose(0, 2, 1).reshape(-1))
    elements = max(recurrence.elements(int(n)) for n in tasks[:, 5])
    above = cast("State", np.array(tops, recurrence.packing(int(tasks[0, 5])).dtype).reshape(-1))
    rows = int(tasks[:, 1].max()) * WIDTH
    return QueryTiles(np.array(chosen, np.int64), tasks, above, np.concatenate(tiles), rows, elements)


class WarpBatch:
    """Pieces in warps, by length.

    Attributes:
        pieces: of all warps, in order.
        lanes: int64 (warps x 32, 5), see `kernels.cuda.threads.LANE`; zeros for an empty one.
        warps: int64 (warps, 4), see `SPAN`.
        owner: int64 (warps x 32, 2): document, and the frame of it that a piece begins with.
        cells: frames x width of all warps.
        used: frames of all pieces.
    """

    def __init__(self, warps: list[list[Piece]], most: Ints) -> None:
        self.pieces = [piece for warp in warps for piece in warp]
        self.lanes = np.zeros((len(warps) * WARP, len(LANE)), np.int64)
        self.warps = np.zeros((len(warps), len(SPAN)), np.int64)
        self.owner = np.zeros((len(warps) * WARP, 2), np.int64)
        begins = offset = 0
        for k, warp in enumerate(warps):
            self.warps[k] = offset, _height(warp), min(piece.first for piece in warp), len(warp)
            offset += _height(warp) * len(warp)
            for lane, piece in enumerate(warp, k * WARP):
                size = len(piece.frames)
                self.lanes[lane] = begins, size, piece.first, piece.stop, most[piece.document]
                self.owner[lane] = piece.document, piece.offset
                begins += size
        self.cells = offset
        self.used = begins

    def room(self, window: int) -> int:
        """The greatest number of candidates of a query in a lane."""
        reported = self.lanes[:, 3] - self.lanes[:, 2]
        return max(1, int(np.minimum(self.lanes[:, 4], -(-reported // (window + 1))).max()))


def batches(pieces: Iterable[Piece], columns: int, limit: int, most: Ints) -> Iterator[WarpBatch]:
    """Group pieces into warps, and warps into batches.

    Args:
        pieces: non-empty.
        columns: of a frame.
        limit: the most bytes of a batch with several warps (`warp_size`).
        most: int64 (documents,), candidates kept per query and document.
    """
    waiting: list[Piece] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += 2 * piece.frames.nbytes
        if held >= limit:
            yield from _batches(waiting, columns, limit, most)
            waiting, held = [], 0
    yield from _batches(waiting, columns, limit, most)


def warp_size(warp: Sequence[Piece], columns: int) -> int:
    """Bytes of a warp in GPU memory: the raw and the laid-out pieces."""
    frames = (sum(len(piece.frames) for piece in warp) + _height(warp) * len(warp)) * columns * 4
    return frames + 8 * (WARP * len(LANE) + len(SPAN))


def _batches(pieces: list[Piece], columns: int, limit: int, most: Ints) -> Iterator[WarpBatch]:
    together: list[list[Piece]] = []
    held = 0
    for warp in _warps(pieces, columns, limit):
        size = warp_size(warp, columns)
        if together and held + size > limit:
            yield WarpBatch(together, most)
            together, held = [], 0
        together.append(warp)
        held += size
    if together:
        yield WarpBatch(together, most)


def _warps(pieces: list[Piece], columns: int, limit: int) -> Iterator[list[Piece]]:
    """Group pieces of similar length; fewer per warp if a full warp would exceed the limit."""
    ordered = sorted(pieces, key=lambda piece: (-len(piece.frames), -piece.first))
    while ordered:
        width = WARP
        while width > 1 and warp_size(ordered[:width], columns) > limit:
            width //= 2
        yield ordered[:width]
        ordered = ordered[width:]


def _height(warp: Sequence[Piece]) -> int:
    """Frames of a warp, a multiple of four; its pieces are sorted by length."""
    return -(-len(warp[0].frames) // 4) * 4


#: Default bytes of GPU memory; never more than half of what is free.
BUDGET = 4_000_000_000

#: Each of two batches of documents gets this fraction, 1 / _BATCH, of the memory that the queries leave,
_BATCH = 12

#: and the states and candidates of each of two parts get 1 / _PART.
_PART = 12 / 5

#: Alignment of arrays in bytes.
_ALIGNED = 256


class Account(NamedTuple):
    """GPU resources used by a search.

    Attributes:
        budget: bytes reserved.
        used: the most bytes in use at a time.
        batches: of documents.
        parts: of the queries, over all batches.
    """

    budget: int
    used: int
    batches: int
    parts: int


class _Array(Protocol):
    """A numba array on the GPU; stream 0 is the default stream."""

    dtype: np.dtype[np.generic]

    def __getitem__(self, place: slice, /) -> Self: ...
    def view(self, dtype: DTypeLike, /) -> Self: ...
    def reshape(self, *shape: int | tuple[int, ...]) -> Self: ...
    def copy_to_device(self, array: NDArray[np.generic], *, stream: _Stream | int) -> None: ...
    def copy_to_host(self, array: NDArray[np.generic], *, stream: _Stream) -> NDArray[np.generic]: ...


class _Stream(Protocol):
    """A stream of the GPU."""

    def synchronize(self) -> None: ...


class _Event(Protocol):
    """An event in a stream."""

    def record(self, stream: _Stream, /) -> None: ...
    def wait(self, stream: _Stream, /) -> None: ...


class _Cuda(Protocol):
    """The part of the module `numba.cuda` used here."""

    def stream(self) -> _Stream: ...
    def event(self) -> _Event: ...
    def device_array(self, shape: int, dtype: DTypeLike, /) -> _Array: ...
    def pinned_array(self, shape: int, dtype: type[Element], /) -> NDArray[Element]: ...


class _Arena:
    """A part of the GPU array, allocated from its start."""

    def __init__(self, memory: _Array, first: int, stop: int) -> None:
        self._memory, self._first, self._stop, self._at = memory, first, stop, first
        self.size, self.used = stop - first, 0

    def clear(self) -> None:
        """Free all of it."""
        self._at = self._first

    def take(self, elements: int, dtype: DTypeLike) -> _Array:
        """Allocate a flat, uninitialised array.

        Raises:
            UserError: not enough memory is left.
        """
        size = elements * np.dtype(dtype).itemsize
        at, self._at = self._at, self._at + _aligned(size)
        if self._at > self._stop:
            raise _too_little(self._at - self._first, self.size)
        self.used = max(self.used, self._at - self._first)
        return self._memory[at : at + size].view(dtype)


def _aligned(size: int) -> int:
    """Bytes that an array of this size occupies."""
    return -(-size // _ALIGNED) * _ALIGNED


def _too_little(needed: int, room: int, batch: WarpBatch | None = None) -> UserError:
    use = "" if batch is None else f" for a query in {int(batch.warps[0, 1])} frames of documents"
    return codes.GPU_MEMORY(where="search.device_memory_gb", use=use, needed=needed / 1e9, available=room / 1e9)


class _Pinned:
    """Page-locked host memory for direct copies to and from the GPU; grows on demand."""

    def __init__(self, cuda: _Cuda) -> None:
        self._cuda, self._held = cuda, cuda.pinned_array(_ALIGNED, np.uint8)

    def __call__(self, elements: int, dtype: type[Element] | np.dtype[Element]) -> NDArray[Element]:
        size = elements * np.dtype(dtype).itemsize
        if self._held.size < size:
            self._held = self._cuda.pinned_array(_aligned(size + size // 4), np.uint8)
        return self._held[:size].view(dtype)


class _Sent(NamedTuple):
    """A batch on the GPU, and its place: 0 or 1."""

    batch: WarpBatch
    place: int
    lanes: _Array
    warps: _Array
    documents: _Array
    ready: _Event


class _Going(NamedTuple):
    """A part being searched: its queries, and their candidates on the GPU."""

    sent: _Sent
    which: Ints
    tasks: Ints
    places: _Array
    best: _Array


class _Turn:
    """A stream, with the memory of the part searched on it."""

    def __init__(self, cuda: _Cuda, arena: _Arena) -> None:
        self.arena, self.stream = arena, cuda.stream()
        self.total = cuda.pinned_array(1, np.int32)
        self.places, self.best = _Pinned(cuda), _Pinned(cuda)
        self.going: _Going | None = None


class Cuda:
    """The search on a GPU, with its resident data and transfers.

    Raises:
        UserError: as `swsdist.methods.dtw.backends.create.missing`.
    """

    def __init__(self, work: Work) -> None:
        if error := missing():
            raise error
        from numba import cuda

        from swsdist.kernels.cuda.launch import kernels

        settings, groups = work.settings, queries(work)
        distance = settings.distance
        self._cuda, self._work = cuda, work
        self._kernels = kernels(distance.maps(settings.row_range), work.recurrence, settings.row_range)
        self._columns, self._shift, self._window = distance.columns, distance.shift, settings.window
        free = cuda.current_context().get_memory_info().free
        self._budget = int(min(BUDGET, free / 2)) if settings.device_memory is None else settings.device_memory
        streams = np.array([(stream.first, stream.stop, stream.weight) for stream in distance.streams], np.int64)
        fixed = _aligned(streams.nbytes) + sum(_aligned(array.nbytes) for group in groups for array in group.arrays())
        left = max(self._budget - fixed, 0)
        batch, part = (int(left / share) // _ALIGNED * _ALIGNED for share in (_BATCH, _PART))
        memory = cuda.device_array(max(self._budget, 1), np.uint8)
        bounds = np.cumsum([0, fixed, batch, batch, part, part])
        self._fixed, *others = (
            _Arena(memory, int(first), min(int(stop), self._budget)) for first, stop in pairwise(bounds)
        )
        self._places, self._turns = others[:2], [_Turn(cuda, arena) for arena in others[2:]]
        self._for_batch = batch - 4 * _ALIGNED
        self._streams = self._send(self._fixed, streams, 0)
        self._groups = [(group, [self._send(self._fixed, array, 0) for array in group.arrays()]) for group in groups]
        self._upward = cuda.stream()
        self._raw = _Pinned(cuda), _Pinned(cuda)
        self._batches = self._parts = 0

    def account(self) -> Account:
        """Resources used so far."""
        arenas = [self._fixed, *self._places, *(turn.arena for turn in self._turns)]
        return Account(self._budget, sum(arena.used for arena in arenas), self._batches, self._parts)

    def scan(self, pieces: Iterable[Piece]) -> Iterator[Scanned]:
        """Search in batches of warps; candidates of one are fetched while the next is searched.

        Raises:
            UserError: the budget does not hold one query and the smallest batch.
        """
        for batch in batches(pieces, self._columns, self._for_batch, self._work.most):
            yield Scanned(list(self._search(batch)), batch.used, batch.cells)
        yield Scanned([self._fetch(turn) for turn in self._turns if turn.going], 0, 0)

    def _search(self, batch: WarpBatch) -> Iterator[Ints]:
        """Start the search of a batch; yield finished candidates, possibly of earlier batches.

        Yields:
            int64 (candidates, 5), columns as in `kernels.scan`.
        """
        place, self._batches = self._batches % 2, self._batches + 1
        yield from (self._fetch(turn) for turn in self._turns if turn.going and turn.going.sent.place == place)
        sent = self._upload(batch, place)
        room = batch.room(self._window)
        for group, (tasks, tops, tiles) in self._groups:
            size = group.tops.itemsize
            per_lane = room * (4 + 2 * size + 12) + self._beside(group, sent)
            per_query = batch.cells * self._kernels.words * size + len(batch.lanes) * per_lane
            count = (self._turns[0].arena.size - 8 * _ALIGNED) // per_query
            if count < 1:
                raise _too_little(per_query, self._turns[0].arena.size, batch)
            count = min(count, (2**31 - 1) // (len(batch.lanes) * room))
            for first in range(0, len(group.which), count):
                turn = self._turns[self._parts % 2]
                self._parts += 1
                if turn.going:
                    yield self._fetch(turn)
                some = slice(first, first + count)
                task_arrays = tasks[some], tops[first * WIDTH : (first + count) * WIDTH], tiles
                self._start(turn, sent, room, group, some, *task_arrays)

    def _state(self, group: QueryTiles, sent: _Sent) -> np.dtype[np.generic]:
        """dtype of the recurrence's columns."""
        longest = int(sent.batch.warps[:, 1].max())
        return np.dtype(self._work.recurrence.state(group.tops.dtype.type, self._work.is_long(longest)))

    def _beside(self, group: QueryTiles, sent: _Sent) -> int:
        """Bytes per lane that a query needs for distances and states; 0 if these are in registers."""
        if not self._kernels.held:
            return 0
        return self._kernels.held * group.rows * 2 + group.elements // WIDTH * self._state(group, sent).itemsize

    def _send(self, arena: _Arena, array: NDArray[Element], stream: _Stream | int) -> _Array:
        sent = arena.take(array.size, array.dtype).reshape(array.shape)
        sent.copy_to_device(array, stream=stream)
        return sent

    def _upload(self, batch: WarpBatch, place: int) -> _Sent:
        """Copy a batch to a free place, and lay it out there."""
        arena, stream = self._places[place], self._upward
        arena.clear()
        staged = self._raw[place](batch.used * self._columns, np.float32)
        np.concatenate([piece.frames.reshape(-1) for piece in batch.pieces], out=staged)
        raw = self._send(arena, staged, stream)
        lanes, warps = self._send(arena, batch.lanes, stream), self._send(arena, batch.warps, stream)
        documents = arena.take(batch.cells * self._columns, np.float32)
        shape = (len(batch.warps), -(-int(batch.warps[0, 1]) // 256)), (WARP, 4), stream
        self._kernels.lay[shape](raw, self._columns, lanes, warps, documents)
        ready = self._cuda.event()
        ready.record(stream)
        return _Sent(batch, place, lanes, warps, documents, ready)

    def _start(
        self,
        turn: _Turn,
        sent: _Sent,
        room: int,
        group: QueryTiles,
        some: slice,
        tasks: _Array,
        tops: _Array,
        tiles: _Array,
    ) -> None:
        """Launch the search of some queries."""
        arena, stream, cells = turn.arena, turn.stream, sent.batch.cells
        arena.clear()
        which, state = group.which[some], group.tops.dtype
        rows = len(which) * len(sent.batch.lanes) * room
        edges = arena.take(len(which) * cells * self._kernels.words, state)
        ends, held = arena.take(rows, np.int32), arena.take(rows, state)
        places, best = arena.take(rows * 3, np.int32).reshape(rows, 3), arena.take(rows, state)
        total = self._send(arena, np.zeros(1, np.int32), stream)
        sent.ready.wait(stream)
        shape = (len(sent.batch.warps), -(-len(which) // QUERIES)), (WARP, QUERIES), stream
        lanes = len(which) * len(sent.batch.lanes) if self._kernels.held else 0
        distances = arena.take(lanes * self._kernels.held * group.rows, np.int16)
        states = arena.take(lanes * (group.elements // WIDTH), self._state(group, sent))
        of_all = tiles, tops, tasks, self._streams, self._shift, sent.lanes, sent.warps, cells, edges
        arguments = self._work.recurrence.option, distances, states, group.rows, group.elements
        self._kernels.scan[shape](sent.documents, self._columns, *of_all, *arguments)
        self._kernels.pick[shape](
            edges, tasks, sent.lanes, sent.warps, cells, self._window, room, ends, held, total, places, best
        )
        total.copy_to_host(turn.total, stream=stream)
        turn.going = _Going(sent, which, group.tasks[some], places, best)

    def _fetch(self, turn: _Turn) -> Ints:
        """Wait for a part, and return its candidates."""
        going, turn.going = turn.going, None
        assert going is not None
        turn.stream.synchronize()
        count = int(turn.total[0])
        if count == 0:
            return np.empty((0, COLUMNS), np.int64)
        places = turn.places(count * 3, np.int32).reshape(count, 3)
        best = turn.best(count, going.best.dtype)
        going.places[:count].copy_to_host(places, stream=turn.stream)
        going.best[:count].copy_to_host(best, stream=turn.stream)
        turn.stream.synchronize()
        query, lane, end = places.T
        owner, bits = going.sent.batch.owner[lane], going.tasks[query, 2]
        rows = np.empty((count, COLUMNS), np.int64)
        rows[:, 0], rows[:, 1], rows[:, 2] = going.which[query], owner[:, 0], owner[:, 1] + end
        rows[:, 3], rows[:, 4] = best & ((1 << bits) - 1), best >> bits
        return rows
