"""The engine searches queries in documents, exactly and in bounded memory, however many and long the documents are. (With a
recurrence that does not limit the length of a path, a document is held whole.)

One call of the compiled inner loop (`kernels.scan`) computes distances, recurrence and candidates of a batch of sixteen pieces
and a group of queries. Each thread takes batches. The result depends on the frames alone: not on lanes, cuts, threads, the
order of documents, or the matrix product.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from swsdist.core.errors import UserError
from swsdist.kernels import products
from swsdist.kernels.peaks import COLUMNS
from swsdist.kernels.products import Element
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.kernels.recurrences.packing import StateType
from swsdist.kernels.recurrences.registry import create
from swsdist.kernels.scan import Scan, room_for_candidates, room_for_distances
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.found import Found, gathered, joined, pruned
from swsdist.methods.dtw.lanes import Batch, batches, cut
from swsdist.methods.dtw.product import Multiply, multiplier
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example

#: Found candidates are pruned to the best per query and document whenever so many more have come together as there were.
_PRUNE_AT = 400_000

#: Queries of one call of the inner loop.
_GROUP = 32

#: Frames of a document that is not cut are laid out so many at a time.
_SEGMENT = 4096


class _Group(NamedTuple):
    """Queries that share a call, and so the type of their state."""

    rows: NDArray[np.int64]  # (queries, len(QUERY)), `begin` not yet known
    margin: NDArray[np.int64]  # frames before the first that is reported that a query needs; -1: all of them
    paired: NDArray[np.int16]  # flat
    frames: list[NDArray[np.float32]]  # a stream each, (rows, columns of the stream), for other people's products
    scan: Scan
    state: StateType
    curve: StateType
    columns: int  # elements
    height: int  # most rows of a query


def search(
    examples: list[Example],
    documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]],
    most: NDArray[np.int64],
    settings: Settings,
) -> Found:
    """Candidates of every example in every document.

    Args:
        examples: at least one frame each, prepared as queries.
        documents: (index, consecutive blocks of prepared frames float32 (frames, columns)).
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        settings: how.

    Raises:
        UserError: an example or a document is too long for the recurrence, or the library's product is not exact.
        ConfigError: there is no such recurrence, or it does not take such an option.
    """
    if not examples:
        return gathered([], most, 1.0)
    recurrence = create(settings.recurrence, settings.options)
    multiply = multiplier(settings.product)
    layout = products.layout(settings.distance)
    longest = max(len(example.frames) for example in examples)
    window = settings.window
    if recurrence.reach is None:
        before, piece = 0, None
    else:
        before = recurrence.whole_grid(recurrence.reach(longest) + window)
        piece = recurrence.whole_grid(max(settings.piece, 4 * before))
    groups = {False: _groups(examples, settings, recurrence, layout, wide=False)}
    pieces = (part for index, blocks in documents for part in cut(index, blocks, piece, before, window))
    found: list[NDArray[np.int64]] = []
    held = used = laid = 0
    prune_at = _PRUNE_AT
    rooms: SimpleQueue[_Room] = SimpleQueue()

    def scan(batch: Batch) -> list[NDArray[np.int64]]:
        if recurrence.most_frames is not None and batch.frames > recurrence.most_frames:
            raise _too_long(batch, settings.recurrence, recurrence.most_frames)
        wide = recurrence.int32_frames is not None and batch.frames > recurrence.int32_frames
        if wide not in groups:
            groups[wide] = _groups(examples, settings, recurrence, layout, wide=True)
        try:
            room = rooms.get_nowait()
        except Empty:
            room = _Room()
        rows = list(_scan(batch, groups[wide], recurrence, most, settings, layout, multiply, room))
        rooms.put(room)
        return rows

    for batch, rows in _in_threads(scan, batches(pieces, settings.lanes, layout.order), settings.threads):
        used += int(batch.numbers[:, 0].sum())
        laid += batch.frames * WIDTH
        found += rows
        held += sum(map(len, rows))
        if held > prune_at:
            found = [pruned(joined(found), most)]
            held = len(found[0])
            prune_at = 2 * held + _PRUNE_AT
    return gathered(found, most, used / laid if laid else 1.0)


def _in_threads(
    work: Callable[[Batch], list[NDArray[np.int64]]], items: Iterable[Batch], threads: int
) -> Iterator[tuple[Batch, list[NDArray[np.int64]]]]:
    """Each item with what came of it, in their order; at most threads + 1 are in hand."""
    if threads == 1:
        for item in items:
            yield item, work(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        going: deque[tuple[Batch, Future[list[NDArray[np.int64]]]]] = deque()
        for item in items:
            going.append((item, pool.submit(work, item)))
            if len(going) > threads:
                done, future = going.popleft()
                yield done, future.result()
        for done, future in going:
            yield done, future.result()


class _Room:
    """Arrays that a thread uses again and again; each grows to what was asked of it."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[np.generic]] = {}

    def __call__(self, name: str, elements: int, dtype: type[Element]) -> NDArray[Element]:
        key = f"{name} {np.dtype(dtype)}"
        held = cast("NDArray[Element] | None", self._held.get(key))
        if held is None or held.size < elements:
            held = products.aligned(elements, dtype)
            self._held[key] = held
        return held


def _groups(
    examples: list[Example], settings: Settings, recurrence: Recurrence, layout: products.Layout, *, wide: bool
) -> list[_Group]:
    """Examples of similar length and the same type of state, together; `wide`: for documents that int32 does not hold."""
    packed: dict[StateType, list[int]] = {}
    for k in sorted(range(len(examples)), key=lambda k: len(examples[k].frames)):
        packed.setdefault(recurrence.packing(len(examples[k].frames)).dtype, []).append(k)
    return [
        _group(chosen[first : first + _GROUP], examples, settings, recurrence, layout, wide)
        for chosen in packed.values()
        for first in range(0, len(chosen), _GROUP)
    ]


def _group(
    chosen: list[int],
    examples: list[Example],
    settings: Settings,
    recurrence: Recurrence,
    layout: products.Layout,
    wide: bool,
) -> _Group:
    rows = []
    paired = []
    place = columns = height = 0
    for k in chosen:
        frames = examples[k].frames
        n = len(frames)
        packing = recurrence.packing(n)
        large, small = products.tiles(n)
        padded = products.rows_of(large, small)
        rows.append((k, n, place, large, small, packing.frame_bits, packing.infinity, columns, recurrence.option, 0))
        paired.append(products.paired(frames, layout.order, padded))
        place += padded
        columns += recurrence.elements(n)
        height = max(height, padded)
    curve = recurrence.packing(len(examples[chosen[0]].frames)).dtype
    state = recurrence.state(curve, wide)
    together = np.concatenate(paired)
    streams = [
        np.ascontiguousarray(together[:, 2 * first : 2 * (first + pairs)], np.float32)
        for first, pairs, *_ in layout.shape.tolist()
    ]
    reach = recurrence.reach
    margin = [-1 if reach is None else reach(len(examples[k].frames)) + settings.window for k in chosen]
    return _Group(
        np.array(rows, np.int64),
        np.array(margin, np.int64),
        together.reshape(-1),
        streams,
        recurrence.scanner(state, curve, len(layout.shape)),
        state,
        curve,
        columns,
        height,
    )


def _scan(
    batch: Batch,
    groups: list[_Group],
    recurrence: Recurrence,
    most: NDArray[np.int64],
    settings: Settings,
    layout: products.Layout,
    multiply: Multiply | None,
    room: _Room,
) -> Iterator[NDArray[np.int64]]:
    """Candidates of all groups in a batch: int64 (candidates, 5), see `kernels.peaks`."""
    lanes = np.zeros((WIDTH, 6), np.int64)
    lanes[:, :5] = batch.numbers
    lanes[: len(batch.pieces), 5] = most[batch.numbers[: len(batch.pieces), 3]]
    reported = int(batch.numbers[: len(batch.pieces), 1].min())
    window = settings.window
    streams = settings.distance.streams
    fills = tuple(products.fill(stream.from_dot, "int16" if multiply is None else "float32") for stream in streams)
    whole = multiply is None and recurrence.reach is not None
    length = batch.frames if whole else min(batch.frames, _SEGMENT if multiply is None else multiply.frames)
    several = length < batch.frames
    for start in range(0, batch.frames, length):
        stop = min(start + length, batch.frames)
        source = batch.segment(start, stop)
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
            out = room("found", count * COLUMNS, np.int64)[: count * COLUMNS].reshape(count, COLUMNS)
            found = group.scan(
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
                room("distances", len(streams) * room_for_distances(group.height), np.int16),
                room("sums", products.SUMS, np.int32),
                room("curve", rows * WIDTH, group.curve),
                room("minima", rows * WIDTH, group.curve),
                out,
            )
            yield out[:found].copy()


def _too_long(batch: Batch, name: str, most: int) -> UserError:
    return UserError(
        f"a document of {len(batch.pieces[0].frames)} frames is too long for the recurrence {name}",
        where=f"document {batch.pieces[0].document}",
        remedy=f"cut it at {most} frames, or search with another recurrence (search.recurrence)",
    )
