"""Local distances of sixteen documents at a time: int16 products in registers, and their maps.

Coordinates of prepared frames are 16-bit integers, and every sum of their products stays below 2^24
(`kernels.distances`), so an int16 product with int32 sums is exact, with the same bytes as a float32 product of any
BLAS. It is up to three times as fast: VNNI multiplies and adds 32 pairs per instruction, float32 only 16, and documents
need no packing because they are already laid out for the instruction.

Layouts, all flat and C-contiguous:

- documents, int16 (frames, pairs, 16 lanes, 2): coordinates in pairs, frame t of sixteen pieces side by side;
- a query, int16 (rows, pairs, 2), rows padded with zeros to complete `tiles`;
- distances, int16 (frames, rows, 16 lanes): in the order in which a recurrence reads them.

A *fill* writes the distances of one query to some frames. Every map has two: from documents as above (`source`
"int16"), and from float32 products (rows, frames, 16 lanes) computed by numpy ("float32"; their bytes are passed as
int16).

The inner loop takes some query frames and `_FRAMES` document frames at once, so that each value is loaded for several
products and the sums stay in registers (Goto and van de Geijn 2008, "Anatomy of high-performance matrix
multiplication").

**Row range**: distances of a query frame to a document's frames, mapped to 0..4095 by their least and greatest.

Distances before are eight times as fine as others, 0..32767, where `Stream.fine` says so: a row may have a small range.

A query frame that is far from everything, or near to everything, then counts as much as any other: what matters is
where in the document it is nearest. In a document with least and greatest distance l and g of a query frame::

    scale = (4095 2^19 + (r >> 1)) // r             r = max(g - l, 1)
    d' = ((d - l) scale + 2^18) >> 19               0 at l, 4095 at g, at most 0.54 from 4095 (d - l) / r

in whole numbers of 32 bits. Where all are equal, all become 0. A score is minus the mean of d' / 4095.

Source: min-max normalisation of a query frame's distances: Rodriguez-Fuentes, Varona, Penagarikano, Bordel and Diez
2014, "High-performance query-by-example spoken term detection on the SWS 2013 evaluation", and `minmax_norm` of
SUPERB's task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext as Target
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.arithmetic import MAX_DISTANCE, Value, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.interface import Distance, Map
from swsdist.kernels.vectors import WIDTH, Intrinsic, load, load_rounded, pointer, splat, store, vector_of

Source = Literal["int16", "float32"]

#: A compiled fill; see `FILL` for the arguments.
Fill: TypeAlias = Callable[
    [
        NDArray[np.int16],
        int,
        int,
        int,
        int,
        int,
        NDArray[np.int16],
        int,
        int,
        int,
        NDArray[np.int16],
        NDArray[np.int32],
    ],
    None,
]

Element = TypeVar("Element", bound=np.generic)

_FEATURES = llvm.get_host_cpu_features() if llvm.get_host_cpu_name() else {}


def has(feature: str) -> bool:
    """Whether code is compiled for CPUs with a feature; numba's setting, if present, decides, as for numba's own code."""
    features = numba.config.CPU_FEATURES
    if features is not None:
        return f"+{feature}" in features.split(",")
    if numba.config.CPU_NAME not in (None, "", llvm.get_host_cpu_name()):
        return False
    return bool(_FEATURES.get(feature))


#: LLVM splits vpdpwssd into two slower instructions, so it is written as assembly, which needs LLVM's assembly parser.
VNNI = has("avx512vnni")
if VNNI:
    llvm.initialize_native_asmparser()

#: Document frames of a tile, and query frames of a large and of a small one, such that the sums fill the registers.
_WIDE = has("avx512bw")
_FRAMES = 4 if _WIDE else 1
_LARGE, _SMALL = (6, 5) if _WIDE else (5, 4)

#: Blocks of document frames are multiples of this.
STRIDE = 4


@cache
def tiles(query_frames: int) -> tuple[int, int]:
    """Numbers of large and small tiles that hold a query with the least padding."""
    options = []
    for first in range(query_frames // _LARGE + 2):
        second = max(0, -(-(query_frames - first * _LARGE) // _SMALL))
        options.append((rows_of(first, second), -first, first, second))
    _, _, first, second = min(options)
    return first, second


@numba.extending.register_jitable
def rows_of(large: int, small: int) -> int:
    """Rows of a query's distances: its frames, padded to complete tiles."""
    return large * _LARGE + small * _SMALL


def _tile(height: int) -> Callable[..., None]:
    """The intrinsic that multiplies `height` query frames with `_FRAMES` document frames of sixteen lanes."""

    @intrinsic
    def multiply(
        typing: Typing,
        documents: types.Array,
        at: types.Integer,
        stride: types.Integer,
        query: types.Array,
        row: types.Integer,
        row_stride: types.Integer,
        pairs: types.Integer,
        out: types.Array,
    ) -> Intrinsic:
        """Sums of products, int32 (height, _FRAMES, 16), to the start of `out`.

        documents and query: int16, from elements `at` and `row` on; strides in elements from frame to frame.
        """
        sums, half = vector_of(types.int32), ir.VectorType(ir.IntType(16), 2 * WIDTH)
        size, word = ir.IntType(64), ir.IntType(32)

        def multiply_add(builder: ir.IRBuilder, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
            if VNNI:
                kind = ir.FunctionType(sums, [sums, sums, sums])
                assembly = ir.InlineAsm(kind, "vpdpwssd $3, $2, $0", "=v,0,v,v")
                return builder.call(assembly, [total, left, right])
            # LLVM compiles this pattern to one multiply-add of pairs if the CPU has it.
            wide = ir.VectorType(ir.IntType(32), 2 * WIDTH)
            product = builder.mul(*(builder.sext(builder.bitcast(side, half), wide) for side in (left, right)))
            parts = [
                builder.shuffle_vector(
                    product,
                    ir.Constant(wide, ir.Undefined),
                    ir.Constant(sums, [2 * lane + odd for lane in range(WIDTH)]),
                )
                for odd in (0, 1)
            ]
            return builder.add(total, builder.add(*parts))

        def generate(
            context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            documents_, at_, stride_, query_, row_, row_stride_, pairs_, out_ = arguments
            of_documents, _, _, of_query, _, _, _, of_out = signature.args
            zero = ir.Constant(sums, None)
            totals = [[cgutils.alloca_once_value(builder, zero) for _ in range(_FRAMES)] for _ in range(height)]
            for line in totals:
                for total in line:
                    builder.store(zero, total)
            with cgutils.for_range(builder, pairs_) as loop:
                frames = []
                for t in range(_FRAMES):
                    index = builder.add(
                        builder.add(at_, builder.mul(stride_, size(t))), builder.mul(loop.index, size(2 * WIDTH))
                    )
                    frame = builder.load(pointer(context, builder, of_documents, documents_, index, sums))
                    frame.align = 2
                    frames.append(frame)
                for i in range(height):
                    index = builder.add(
                        builder.add(row_, builder.mul(row_stride_, size(i))), builder.mul(loop.index, size(2))
                    )
                    pair = builder.load(pointer(context, builder, of_query, query_, index, word))
                    pair.align = 2
                    repeated = splat(builder, pair)
                    for t in range(_FRAMES):
                        total = totals[i][t]
                        builder.store(multiply_add(builder, builder.load(total), frames[t], repeated), total)
            for i in range(height):
                for t in range(_FRAMES):
                    place = pointer(context, builder, of_out, out_, size((i * _FRAMES + t) * WIDTH), sums)
                    written = builder.store(builder.load(totals[i][t]), place)
                    written.align = 4
            return context.get_dummy_value()

        return types.void(documents, at, stride, query, row, row_stride, pairs, out), generate

    made: Callable[..., None] = multiply
    return made


_large, _small = _tile(_LARGE), _tile(_SMALL)

#: The numba signature of every fill: see `fill`.
FILL = types.void(
    types.int16[::1],  # source
    types.int64,  # its first frame
    types.int64,  # number of frames, a multiple of STRIDE
    types.int64,  # pairs of a frame of the source; "float32": frames of the source
    types.int64,  # the first of those pairs
    types.int64,  # number of pairs
    types.int16[::1],  # query; "float32": not used
    types.int64,  # its first element; "float32": the first row of the source
    types.int64,  # large tiles
    types.int64,  # small tiles
    types.int16[::1],  # distances, written from the start
    types.int32[::1],  # buffer for a tile's sums, SUMS elements
)

#: Elements of the buffer for a tile's sums.
SUMS = _LARGE * _FRAMES * WIDTH


@cache
def fill(from_dot: Map, source: Source) -> Fill:
    """The compiled fill of a map, cached on disk; its signature is `FILL`.

    Args:
        from_dot: a plain module-level function of a product, written with `kernels.arithmetic`; the disk cache
            identifies it by name.
        source: origin of the products.
    """
    numba.extending.register_jitable(from_dot)

    def from_int16(
        documents: NDArray[np.int16],
        first: int,
        frames: int,
        pairs: int,
        first_pair: int,
        own_pairs: int,
        query: NDArray[np.int16],
        at: int,
        large: int,
        small: int,
        distances: NDArray[np.int16],
        sums: NDArray[np.int32],
    ) -> None:
        line, stride = pairs * 2, pairs * 2 * WIDTH
        start = at + first_pair * 2
        height = rows_of(large, small)
        for t in range(0, frames, _FRAMES):
            place = (first + t) * stride + first_pair * 2 * WIDTH
            for tile in range(large):
                row = tile * _LARGE
                _large(documents, place, stride, query, start + row * line, line, own_pairs, sums)
                for i in range(_LARGE):
                    for u in range(_FRAMES):
                        dot = load(sums, (i * _FRAMES + u) * WIDTH)
                        store(distances, ((t + u) * height + row + i) * WIDTH, from_dot(dot))
            for tile in range(small):
                row = large * _LARGE + tile * _SMALL
                _small(documents, place, stride, query, start + row * line, line, own_pairs, sums)
                for i in range(_SMALL):
                    for u in range(_FRAMES):
                        dot = load(sums, (i * _FRAMES + u) * WIDTH)
                        store(distances, ((t + u) * height + row + i) * WIDTH, from_dot(dot))

    def from_float32(
        products: NDArray[np.int16],
        first: int,
        frames: int,
        held: int,
        first_pair: int,
        own_pairs: int,
        query: NDArray[np.int16],
        at: int,
        large: int,
        small: int,
        distances: NDArray[np.int16],
        sums: NDArray[np.int32],
    ) -> None:
        height = rows_of(large, small)
        # Rows in the outer loop: rows of one frame are a power of two apart, and would share a cache set.
        for i in range(height):
            for t in range(frames):
                dot = load_rounded(products, ((at + i) * held + first + t) * 2 * WIDTH)
                store(distances, (t * height + i) * WIDTH, from_dot(dot))

    written = from_int16 if source == "int16" else from_float32
    return compiled(FILL)(written)


class _Argument(numba.types.WrapperAddressProtocol):  # type: ignore[misc]  # numba has no types
    """A fill, the address of which numba does not look up in every call that takes it."""

    def __init__(self, fill: Any) -> None:
        (self._compiled,) = fill.overloads.values()
        self._address = self._compiled.library.get_pointer_to_function(self._compiled.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return self._compiled.signature


@cache
def argument(fill: Fill) -> Any:
    """A fill, to be passed to compiled functions again and again."""
    return _Argument(fill)


class Layout(NamedTuple):
    """Order of the columns of prepared frames in pairs.

    Attributes:
        order: int64 (2 x pairs,), the column of the prepared frame at each position, or -1 for a zero that fills a
            pair.
        shape: int64 (streams, 3): first pair, pairs, weight.
    """

    order: Ints
    shape: Ints

    @property
    def pairs(self) -> int:
        """Pairs of a frame."""
        return len(self.order) // 2


@lru_cache(16)
def layout(distance: Distance) -> Layout:
    """Layout of a distance's frames: streams in sequence, each padded to complete pairs."""
    order: list[int] = []
    shape = []
    for stream in distance.streams:
        first = len(order) // 2
        order += range(stream.first, stream.stop)
        order += [-1] * (len(order) % 2)
        shape.append((first, len(order) // 2 - first, stream.weight))
    return Layout(np.array(order, np.int64), np.array(shape, np.int64))


def paired(frames: Singles, order: Ints, height: int) -> NDArray[np.int16]:
    """Prepared frames in pairs, int16 (height, 2 x pairs), padded with zero frames."""
    out = np.zeros((height, len(order)), np.int16)
    held = order >= 0
    out[: len(frames), held] = frames[:, order[held]]
    return out


@compiled(types.void(types.UniTuple(types.float32[:, ::1], WIDTH), types.int64[::1], types.int16[::1]))
def interleave(pieces: tuple[Singles, ...], order: Ints, out: NDArray[np.int16]) -> None:
    """Interleave sixteen pieces of documents.

    Args:
        pieces: float32 (frames, columns) each, prepared; shorter ones are padded with zeros.
        order: of the layout.
        out: int16 (frames of the longest, to a multiple of `STRIDE`; pairs, 16, 2), flat, is written.
    """
    width, stride = len(order), 2 * WIDTH
    # By `STRIDE` frames, whose lines of `out` stay in the fastest cache until all lanes are written.
    for first in range(0, out.size // (width * WIDTH), STRIDE):
        for lane in range(WIDTH):
            frames = pieces[lane]
            for t in range(first, first + STRIDE):
                place = t * width * WIDTH + 2 * lane
                for pair in range(width // 2):
                    if t < len(frames):
                        left, right = order[2 * pair], order[2 * pair + 1]
                        out[place + pair * stride] = np.int16(frames[t, left]) if left >= 0 else np.int16(0)
                        out[place + pair * stride + 1] = np.int16(frames[t, right]) if right >= 0 else np.int16(0)
                    else:
                        out[place + pair * stride] = out[place + pair * stride + 1] = 0


def aligned(elements: int, dtype: type[Element] | np.dtype[Element]) -> NDArray[Element]:
    """An array that begins on a cache line, because vectors that cross one cost twice."""
    size = elements * np.dtype(dtype).itemsize
    room = np.empty(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype)


#: Largest distance before.
LARGEST = (1 << 15) - 1

#: Fractional bits of a scale: 4095 of them times the range fit 32 bits.
_BITS = 19


def scale_of(low: Value, high: Value) -> Value:
    """The factor of a range; where there are no distances, `high` is below `low`, and no distance is mapped."""
    width = most(high - low, 1)
    return ((width >> 1) + (MAX_DISTANCE << _BITS)) // width  # type: ignore[operator, no-any-return] # lanes have it


def in_range(d: Value, low: Value, scale: Value) -> Value:
    """A distance in its range, 0..4095; distances of padding, outside of the range, become any of these."""
    return least(most((d - low) * scale + (1 << (_BITS - 1)), 0) >> _BITS, MAX_DISTANCE)


def row_range(table: NDArray[np.int16]) -> NDArray[np.int16]:
    """The same of a complete table of distances, int16 (query frames, document frames), at least one of each."""
    low, high = (bound(axis=1).astype(np.int64) for bound in (table.min, table.max))
    scale = np.array([scale_of(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)])
    wide: Ints = (table - low[:, None]) * scale[:, None] + (1 << (_BITS - 1)) >> _BITS
    return wide.astype(np.int16)


for _function in (scale_of, in_range):
    numba.extending.register_jitable(_function)


class Room(Generic[Element]):
    """A reusable array that grows on demand, because allocating memory costs more than using it."""

    def __init__(self, dtype: type[Element]) -> None:
        self._held: NDArray[Element] = np.empty(0, dtype)

    def __call__(self, elements: int) -> NDArray[Element]:
        """An uninitialised array of this size; invalidates the previous one."""
        if self._held.size < elements:
            self._held = aligned(elements, self._held.dtype)
        return self._held[:elements]


class QueryDistances:
    """Distances of a query's prepared frames to consecutive frames of documents, in groups of sixteen.

    Attributes:
        frames: of the query.
        height: rows of the distances: its frames, and some padding.
    """

    def __init__(self, query: Singles, distance: Distance, room: Room[np.int16], row_range: bool = False) -> None:
        self._room = room
        self.frames = len(query)
        self._large, self._small = tiles(self.frames)
        self.height = rows_of(self._large, self._small)
        self._layout = layout(distance)
        self._query = paired(query, self._layout.order, self.height).reshape(-1)
        self._distance = distance
        self._maps = distance.maps(row_range)
        self._sums = np.empty(SUMS, np.int32)

    def __call__(self, source: NDArray[np.int16]) -> NDArray[np.int16]:
        """Distances, int16 (groups, `height`, 16), flat, with room after them; valid until the buffer is reused.

        Args:
            source: int16 (groups, pairs, 16, 2), flat; the groups are a multiple of `STRIDE`.
        """
        groups = len(source) // (2 * WIDTH * self._layout.pairs)
        size = groups * self.height * WIDTH
        buffer = self._room(len(self._distance.streams) * size)
        distances: list[NDArray[np.int16]] = []
        for from_dot, (first, pairs, _) in zip(self._maps, self._layout.shape.tolist(), strict=True):
            out = buffer[len(distances) * size : (len(distances) + 1) * size]
            write = fill(from_dot, "int16")
            query = (self._query, 0, self._large, self._small)
            write(source, 0, groups, self._layout.pairs, first, pairs, *query, out, self._sums)
            distances.append(out)
        if len(distances) == 1:
            return distances[0]
        total = np.full(distances[0].shape, 1 << self._distance.shift >> 1, np.int32)
        for stream, out in zip(self._distance.streams, distances, strict=True):
            total += stream.weight * out.astype(np.int32)
        distances[0][:] = np.minimum(total >> self._distance.shift, MAX_DISTANCE)
        return distances[0]


def local_distances(
    query: Singles,
    document: Singles,
    distance: Distance,
    place: slice = slice(None),
    ranged: bool = False,
) -> NDArray[np.int16]:
    """Distances between prepared frames, int16 (query frames, document frames), as in the search.

    Args:
        query, document: float32 (frames, columns), prepared.
        distance: between frames.
        place: the document frames to return; all by default.
        ranged: map the distances of a query frame to their range in the complete document (`search.row_range`).
    """
    document = document if ranged else document[place]
    laid = layout(distance)
    n, length = len(query), len(document)
    groups = -(-length // (WIDTH * STRIDE)) * STRIDE
    # Sixteen consecutive frames take the place of one frame of sixteen documents.
    by_frame = paired(document, laid.order, groups * WIDTH).reshape(groups, WIDTH, laid.pairs, 2)
    query_distances = QueryDistances(query, distance, Room(np.int16), ranged)
    distances = query_distances(np.ascontiguousarray(by_frame.transpose(0, 2, 1, 3)).reshape(-1))
    in_order = (
        distances.reshape(groups, query_distances.height, WIDTH).transpose(1, 0, 2).reshape(query_distances.height, -1)
    )
    table = in_order[:n, :length]
    return np.ascontiguousarray(row_range(table)[:, place] if ranged else table)
