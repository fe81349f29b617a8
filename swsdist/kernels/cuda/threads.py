"""The work of one GPU thread, as plain functions that numba compiles for the GPU or, in its simulator, for the CPU.

A *warp* holds up to thirty-two pieces of documents, one per thread, which run in step. It is as wide as its number of
pieces, and as long as its longest piece. There are two algorithms:

- `in_registers`, for a recurrence with a cell of its `neighbours`. A thread processes a query in *tiles* of sixteen
  frames, and for each tile its piece, four frames at a time; products, distances and the recurrence stay in registers.
  The states of a tile's last rows, which the next tile needs, go to memory: one word read and one written per eight
  cells. The last tile writes the curve of costs there.
- `in_memory`, for any other recurrence. A thread processes its piece once, four frames at a time: it writes their
  distances to the entire query to memory, and the recurrence's `advance` reads them, on the thread's lane of its
  arrays.

Layouts, flat; the cells of all warps, frames x width each, are consecutive, and those of a warp begin at `offset`:

- raw: float32 (frames of all pieces, columns), prepared, piece by piece;
- documents: float32, for each warp (frames / 4, columns, width, 4 frames);
- queries: float32 (tiles of all queries, columns, 16 rows); the first tile of a query begins with padding rows, so that
  the last one is full;
- edges: state (queries, cells of all warps x 2), for each warp (frames, 2, width): for a tile's last row i, S(i, t),
  and S(i-1, t-1) + d(i, t), which a path that takes i and i + 1 at once needs (see
  `kernels.recurrences.bounded_slope`). For `in_memory`, the curve only: (queries, cells of all warps), for each warp
  (frames, width);
- tops: state (queries, 16): the states of the first tile's padding rows, and -1 for its other rows;
- distances: int16 (queries, half-warps, `held_frames`, rows of the tiles, 16), and columns: state (queries, half-warps,
  elements):
  the arguments of `advance`, with sixteen pieces as vector lanes.

**State** of a thread: sixteen query frames against one document, as one `Lanes` vector of `kernels.vectors`.

On a CPU the sixteen elements of a vector are documents. Here they are consecutive query frames, *rows*, in a thread's
registers; neighbouring threads have neighbouring documents. The vector, its ``+ - * << >> &``, `least`, `most` and
`choose` are those of the CPU, so a recurrence's `cell` and a distance's `from_dot` compile for a GPU from the same
source, in 32-bit integers, which numba alone would widen to 64. This module adds functions that move values between
rows.

For compiled code only. Indices count elements of flat C arrays and are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.arithmetic import MAX_DISTANCE, State, Value, choose, least, most
from swsdist.kernels.distances.interface import Map
from swsdist.kernels.products import LARGEST, in_range, scale_of
from swsdist.kernels.vectors import WIDTH, Intrinsic, Lanes, lanes_of, pointer, spread, vector_of

#: Document frames that a thread processes at once.
FRAMES = 4

_WORD = ir.IntType(32)


@intrinsic
def load_rows(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    """Load sixteen consecutive elements of 32 bits or more, aligned to 16 bytes."""
    kind = Lanes(array.dtype)

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        loaded = builder.load(pointer(context, builder, array, arguments[0], arguments[1], vector_of(array.dtype)))
        loaded.align = 16
        return loaded

    return kind(array, index), generate


@intrinsic
def load_frames(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    """Load four consecutive float32, aligned to 16 bytes, as a tuple."""
    kind = types.UniTuple(types.float32, FRAMES)

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        target = ir.VectorType(ir.FloatType(), FRAMES)
        loaded = builder.load(pointer(context, builder, array, arguments[0], arguments[1], target))
        loaded.align = 16
        parts = [builder.extract_element(loaded, _WORD(k)) for k in range(FRAMES)]
        return context.make_tuple(builder, kind, parts)

    return kind(array, index), generate


@intrinsic
def element(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    """Load one element; numba's indexing would check for negative indices."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        target = ir.IntType(array.dtype.bitwidth)
        return builder.load(pointer(context, builder, array, arguments[0], arguments[1], target))

    return array.dtype(array, index), generate


@intrinsic
def put(typing: Typing, array: types.Array, index: types.Integer, value: types.Number) -> Intrinsic:
    """Write one integer element."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        target = ir.IntType(array.dtype.bitwidth)
        cast = context.cast(builder, arguments[2], value, array.dtype)
        builder.store(cast, pointer(context, builder, array, arguments[0], arguments[1], target))
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@intrinsic
def lowered(typing: Typing, lanes: Lanes, first: types.Number) -> Intrinsic:
    """Shift rows by one; `first` becomes row 0, and the last row is dropped."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        value = context.cast(builder, arguments[1], first, lanes.element)
        moved = ir.Constant(ir.VectorType(_WORD, WIDTH), [0, *range(WIDTH - 1)])
        shuffled = builder.shuffle_vector(arguments[0], ir.Constant(arguments[0].type, ir.Undefined), moved)
        return builder.insert_element(shuffled, value, _WORD(0))

    return lanes(lanes, first), generate


@intrinsic
def last(typing: Typing, lanes: Lanes) -> Intrinsic:
    """The last row."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.extract_element(arguments[0], _WORD(WIDTH - 1))

    return lanes.element(lanes), generate


@intrinsic
def to_int32(typing: Typing, lanes: Lanes) -> Intrinsic:
    """Convert float32 rows of integers to int32 rows."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.fptosi(arguments[0], vector_of(types.int32))

    return Lanes(types.int32)(lanes), generate


@intrinsic
def widened(typing: Typing, lanes: Lanes, like: Lanes) -> Intrinsic:
    """Convert non-negative int32 rows to rows like `like`."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return arguments[0] if like == lanes else builder.zext(arguments[0], vector_of(like.element))

    return like(lanes, like), generate


@intrinsic
def scatter(typing: Typing, array: types.Array, index: types.Integer, step: types.Integer, lanes: Lanes) -> Intrinsic:
    """Write sixteen rows of integers, truncated to the array's width, `step` elements apart."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        flat, first, apart, value = arguments
        target = ir.IntType(array.dtype.bitwidth)
        for k in range(WIDTH):
            place = builder.add(first, builder.mul(apart, ir.Constant(apart.type, k)))
            row = builder.trunc(builder.extract_element(value, _WORD(k)), target)
            builder.store(row, pointer(context, builder, array, flat, place, target))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, lanes), generate


@intrinsic
def gather(typing: Typing, array: types.Array, index: types.Integer, step: types.Integer, like: Lanes) -> Intrinsic:
    """Load sixteen non-negative rows of narrower integers, `step` elements apart, as rows like `like`."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        flat, first, apart, rows = arguments
        target = ir.IntType(array.dtype.bitwidth)
        for k in range(WIDTH):
            place = builder.add(first, builder.mul(apart, ir.Constant(apart.type, k)))
            row = builder.load(pointer(context, builder, array, flat, place, target))
            rows = builder.insert_element(rows, builder.zext(row, rows.type.element), _WORD(k))
        return rows

    return like(array, types.int64, types.int64, like), generate


#: Pieces of a warp.
WARP = 32

#: Queries that a block searches, each in a warp of threads.
QUERIES = 4

#: Columns of `lanes`; see `pick` for the last four.
LANE = ("begins", "frames", "first", "stop", "most")

#: Columns of `warps`: the offset of its cells, its frames (a multiple of four), the first frame that any of its pieces
#: reports, and its width.
SPAN = ("offset", "frames", "first", "width")

#: Columns of `tasks`, a row per query: its first tile, number of tiles, frame bits and infinity of the packing, the
#: frames needed before a piece's first, and its number of frames.
TASK = ("tile", "tiles", "bits", "infinity", "margin", "frames")


def lay(
    raw: Singles,
    columns: int,
    begins: int,
    frames: int,
    group: int,
    documents: Singles,
    place: int,
    width: int,
) -> None:
    """Lay out four frames of a piece.

    Args:
        columns: of a frame.
        begins, frames: of the piece in `raw`; frames beyond it are zero.
        group: index of the four frames, which begin at 4 x group.
        place: position of the warp's four frames and of the piece in `documents`.
        width: of the warp.
    """
    for k in range(columns):
        for u in range(FRAMES):
            t = group * FRAMES + u
            documents[place + k * width * FRAMES + u] = raw[(begins + t) * columns + k] if t < frames else 0.0


class Mapped(Protocol):
    """The maps of several streams, by the stream's number."""

    def __call__(self, stream: int, dot: Value, /) -> Value: ...


def _mapped(maps: tuple[Map, ...]) -> Mapped:
    """Combine maps into a function (stream, dot); compiled code cannot index a tuple of functions."""
    local: Map = numba.extending.register_jitable(maps[0])
    if len(maps) == 1:

        def only(stream: int, dot: Value) -> Value:
            return local(dot)

        single: Mapped = numba.extending.register_jitable(only)
        return single
    others = _mapped(maps[1:])

    def one_of(stream: int, dot: Value) -> Value:
        if stream == 0:
            return local(dot)
        return others(stream - 1, dot)

    made: Mapped = numba.extending.register_jitable(one_of)
    return made


@cache
def _distances(maps: tuple[Map, ...]) -> Callable[..., Any]:
    """Make the function that computes distances; `maps` are `from_dot` of each stream."""
    mapped, several = _mapped(maps), len(maps) > 1

    def distances(
        documents: Singles,
        at: int,
        width: int,
        queries: Singles,
        row: int,
        streams: Ints,
        shift: int,
    ) -> tuple[Value, Value, Value, Value]:
        """Distances of sixteen rows to four frames, int32, as a tuple."""
        half = (1 << shift) >> 1
        total0 = total1 = total2 = total3 = spread(0, to_int32(spread(0.0, lanes_of(queries))))
        for s in range(len(streams)):
            sum0 = sum1 = sum2 = sum3 = lanes_of(queries)
            for k in range(streams[s, 0], streams[s, 1]):
                q = load_rows(queries, row + k * WIDTH)
                x0, x1, x2, x3 = load_frames(documents, at + k * (width * FRAMES))
                sum0 = sum0 + q * x0
                sum1 = sum1 + q * x1
                sum2 = sum2 + q * x2
                sum3 = sum3 + q * x3
            d0, d1 = mapped(s, to_int32(sum0)), mapped(s, to_int32(sum1))
            d2, d3 = mapped(s, to_int32(sum2)), mapped(s, to_int32(sum3))
            if several:
                weight = streams[s, 2]
                total0, total1 = total0 + d0 * weight, total1 + d1 * weight
                total2, total3 = total2 + d2 * weight, total3 + d3 * weight
            else:
                total0, total1, total2, total3 = d0, d1, d2, d3
        if several:
            total0, total1 = (
                least((total0 + half) >> shift, MAX_DISTANCE),
                least((total1 + half) >> shift, MAX_DISTANCE),
            )
            total2, total3 = (
                least((total2 + half) >> shift, MAX_DISTANCE),
                least((total3 + half) >> shift, MAX_DISTANCE),
            )
        return total0, total1, total2, total3

    made: Callable[..., Any] = numba.extending.register_jitable(distances)
    return made


@cache
def _limits(maps: tuple[Map, ...]) -> Callable[..., Any]:
    """Make the function that takes the least and greatest distances of sixteen rows to a piece's frames."""
    four = _distances(maps)

    def limits(
        documents: Singles,
        place: int,
        columns: int,
        width: int,
        queries: Singles,
        row: int,
        streams: Ints,
        shift: int,
        frames: int,
    ) -> tuple[Value, Value]:
        high = to_int32(spread(0.0, lanes_of(queries)))
        low = spread(LARGEST, high)
        for t in range(0, frames, FRAMES):
            d0, d1, d2, d3 = four(documents, place + t * columns * width, width, queries, row, streams, shift)
            low, high = least(low, d0), most(high, d0)
            if t + 1 < frames:
                low, high = least(low, d1), most(high, d1)
            if t + 2 < frames:
                low, high = least(low, d2), most(high, d2)
            if t + 3 < frames:
                low, high = least(low, d3), most(high, d3)
        return low, high

    made: Callable[..., Any] = numba.extending.register_jitable(limits)
    return made


def _in_state(row_range: bool) -> Callable[..., Any]:
    """Make the function that brings distances into a state, mapped to their range if so."""

    def mapped(d: Value, low: Value, scale: Value, bits: int, like: Value) -> Any:
        return widened(in_range(d, low, scale), like) << spread(bits, like)

    def plain(d: Value, low: Value, scale: Value, bits: int, like: Value) -> Any:
        return widened(d, like) << spread(bits, like)

    made: Callable[..., Any] = numba.extending.register_jitable(mapped if row_range else plain)
    return made


def held_frames(row_range: bool) -> int:
    """Frames of distances that `in_memory` has in memory: those processed at once, and the least and greatest."""
    return FRAMES + 2 if row_range else FRAMES


@cache
def in_registers(
    maps: tuple[Map, ...], neighbours: Callable[..., Value], row_range: bool = False
) -> Callable[..., None]:
    """Make the thread function that searches a piece for a query and keeps its work in registers as far as possible.

    Args:
        maps: `from_dot` of each stream.
        neighbours: of the recurrence.
        row_range: map the distances of each query frame to their range in a piece, which is a complete document.

    Returns:
        A plain function of (documents; place of the warp's first frames and the piece in them; columns; width of the
        warp; queries; tops; tasks int64 (queries, 6), see `TASK`; query; streams int64 (streams, 3): first column, the
        one after the last, weight; shift of the weighted sum; frames of the piece; first frame and the frame to stop
        at, multiples of four; edges; place in them of frame 0; and arguments for `in_memory`: option of the recurrence;
        distances and the place of the thread's first in them; columns of states and the place of the thread's first in
        them).
    """
    four, limits, in_state = _distances(maps), _limits(maps), _in_state(row_range)
    neighbours_of = numba.extending.register_jitable(neighbours)

    def frame(
        edges: State,
        place: int,
        width: int,
        first: bool,
        infinity: int,
        top: Value,
        above: int,
        above_before: int,
        previous: Value,
        older: Value,
        d: Value,
    ) -> tuple[Value, int]:
        """Compute sixteen rows of one frame t.

        Args:
            place, width: of frame t in `edges`, and of the warp.
            first: whether this is the first tile, which has no edge above it.
            top: of `tops`.
            above, above_before: state of the row above row 0, at t - 1 and t - 2.
            previous, older: states of the rows at t - 1 and t - 2.
            d: distances at t, shifted.

        Returns:
            States of the rows at t, and `above` for t + 1.
        """
        diagonal, slow = lowered(previous, above), lowered(older, above_before)
        local, fast = above, infinity
        if not first:
            local, fast = element(edges, place), element(edges, place + width)
        state = neighbours_of(diagonal, slow, lowered(diagonal, fast), d, lowered(d, 0))
        if first:
            state = choose(top, spread(0, top), state, top)
        put(edges, place, last(state))
        put(edges, place + width, last(diagonal) + last(d))
        return state, local

    frame = numba.extending.register_jitable(frame)

    def thread(
        documents: Singles,
        place: int,
        columns: int,
        width: int,
        queries: Singles,
        tops: State,
        tasks: Ints,
        query: int,
        streams: Ints,
        shift: int,
        frames: int,
        begin: int,
        stop: int,
        edges: State,
        edge: int,
        option: int,
        distances: NDArray[np.int16],
        distance: int,
        states: State,
        state: int,
    ) -> None:
        like = lanes_of(edges)
        bits, infinity = tasks[query, 2], tasks[query, 3]
        top = load_rows(tops, query * WIDTH)
        for tile in range(tasks[query, 1]):
            row = (tasks[query, 0] + tile) * columns * WIDTH
            first = tile == 0
            previous = spread(infinity, like)
            if first:
                previous = choose(top, spread(0, top), previous, top)
            # Above the first tile S(-1, t) = 0; if row 0 is padding, this improves no state.
            above = 0 if first else infinity
            older, above_before = previous, above
            low = scale = to_int32(spread(0.0, lanes_of(queries)))
            if row_range:
                low, high = limits(documents, place, columns, width, queries, row, streams, shift, frames)
                scale = scale_of(low, high)
            for t in range(begin, stop, FRAMES):
                here = place + t * columns * width
                d0, d1, d2, d3 = four(documents, here, width, queries, row, streams, shift)
                d0, d1 = in_state(d0, low, scale, bits, like), in_state(d1, low, scale, bits, like)
                d2, d3 = in_state(d2, low, scale, bits, like), in_state(d3, low, scale, bits, like)
                at = edge + t * 2 * width
                s0, a0 = frame(edges, at, width, first, infinity, top, above, above_before, previous, older, d0)
                s1, a1 = frame(edges, at + 2 * width, width, first, infinity, top, a0, above, s0, previous, d1)
                s2, a2 = frame(edges, at + 4 * width, width, first, infinity, top, a1, a0, s1, s0, d2)
                s3, a3 = frame(edges, at + 6 * width, width, first, infinity, top, a2, a1, s2, s1, d3)
                above, above_before, previous, older = a3, a2, s3, s2

    return thread


@cache
def in_memory(
    maps: tuple[Map, ...], advance: Callable[..., None], restart: Callable[..., None], row_range: bool = False
) -> Callable[..., None]:
    """Make the thread function that searches a piece for a query and keeps the recurrence's state in memory.

    Args:
        maps: `from_dot` of each stream.
        advance, restart: of the recurrence.
        row_range: as for `in_registers`.

    Returns:
        A plain function with the arguments of the one from `in_registers`; it does not read tops.
    """
    four, limits, in_state = _distances(maps), _limits(maps), _in_state(row_range)
    take_in, forget = numba.extending.register_jitable(advance), numba.extending.register_jitable(restart)

    def thread(
        documents: Singles,
        place: int,
        columns: int,
        width: int,
        queries: Singles,
        tops: State,
        tasks: Ints,
        query: int,
        streams: Ints,
        shift: int,
        frames: int,
        begin: int,
        stop: int,
        edges: State,
        edge: int,
        option: int,
        distances: NDArray[np.int16],
        distance: int,
        states: State,
        state: int,
    ) -> None:
        like = to_int32(spread(0.0, lanes_of(queries)))
        tiles, bits, infinity, n = tasks[query, 1], tasks[query, 2], tasks[query, 3], tasks[query, 5]
        rows = tiles * WIDTH
        # The first tile begins with padding rows.
        local, kept = distances[distance + (rows - n) * WIDTH :: WIDTH], states[state::WIDTH]
        forget(kept, 0, n, infinity, option)
        lows, highs = distance + FRAMES * rows * WIDTH, distance + (FRAMES + 1) * rows * WIDTH
        if row_range:
            for tile in range(tiles):
                row = (tasks[query, 0] + tile) * columns * WIDTH
                low, high = limits(documents, place, columns, width, queries, row, streams, shift, frames)
                scatter(distances, lows + tile * WIDTH * WIDTH, WIDTH, low)
                scatter(distances, highs + tile * WIDTH * WIDTH, WIDTH, high)
        low = scale = like
        for t in range(begin, stop, FRAMES):
            here = place + t * columns * width
            for tile in range(tiles):
                row = (tasks[query, 0] + tile) * columns * WIDTH
                d0, d1, d2, d3 = four(documents, here, width, queries, row, streams, shift)
                if row_range:
                    low = gather(distances, lows + tile * WIDTH * WIDTH, WIDTH, like)
                    scale = scale_of(low, gather(distances, highs + tile * WIDTH * WIDTH, WIDTH, like))
                d0, d1 = in_state(d0, low, scale, 0, like), in_state(d1, low, scale, 0, like)
                d2, d3 = in_state(d2, low, scale, 0, like), in_state(d3, low, scale, 0, like)
                at = distance + tile * WIDTH * WIDTH
                scatter(distances, at, WIDTH, d0)
                scatter(distances, at + rows * WIDTH, WIDTH, d1)
                scatter(distances, at + 2 * rows * WIDTH, WIDTH, d2)
                scatter(distances, at + 3 * rows * WIDTH, WIDTH, d3)
            for frame in range(FRAMES):
                ended = take_in(local, frame * rows * WIDTH, n, t + frame, kept, 0, bits, option)
                put(edges, edge + (t + frame) * width, ended)

    return thread


def pick(
    edges: State,
    edge: int,
    frames: int,
    first: int,
    stop: int,
    most: int,
    bits: int,
    infinity: int,
    window: int,
    step: int,
    ends: NDArray[np.int32],
    states: State,
    place: int,
) -> int:
    """Select the best candidates of a piece, as `kernels.scan` defines them.

    At most one of w + 1 frames is a candidate, the earliest of least cost, so only that frame is compared with its
    surroundings
    (Neubeck and Van Gool 2006, "Efficient non-maximum suppression").

    Args:
        edges, edge, step: the curve of costs, the place of the piece's frame 0 in it, and the distance between frames.
        frames: of the piece.
        first, stop: candidates first <= t < stop are reported; the curve begins `window` frames before, or at 0.
        most: number of candidates to keep: those of least cost, earlier ends first.
        bits, infinity: of the packing.
        window: w, at least 1.
        ends, states: receive end frame and packed state from `place` on, every 32nd element; have room for `most`, or
            for one in w + 1 frames if that is less.

    Returns:
        The number of candidates kept, in no particular order.
    """
    held = worst = 0
    block = first
    while block < stop:
        end = min(block + window + 1, frames)
        best = block
        state = element(edges, edge + block * step)
        for t in range(block + 1, end):
            other = element(edges, edge + t * step)
            if (other >> bits) < (state >> bits):
                best, state = t, other
        cost = state >> bits
        peak = best < stop and state < infinity
        t = max(best - window, 0)
        while peak and t < block:
            peak = cost < (element(edges, edge + t * step) >> bits)
            t += 1
        t = end
        while peak and t < min(best + window + 1, frames):
            peak = cost <= (element(edges, edge + t * step) >> bits)
            t += 1
        block += window + 1
        if not peak or most < 1:
            continue
        if held < most:
            at = held
            held += 1
        elif cost < (states[place + worst * WARP] >> bits):
            at = worst
        else:
            continue
        ends[place + at * WARP] = best
        states[place + at * WARP] = state
        if held == most:
            worst = 0
            for k in range(1, held):
                high, highest = states[place + k * WARP] >> bits, states[place + worst * WARP] >> bits
                later = ends[place + k * WARP] > ends[place + worst * WARP]
                if high > highest or (high == highest and later):
                    worst = k
    return held
