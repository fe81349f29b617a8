"""The bounded-slope recurrence over distances looked up in tables of bytes: 32 frames of the collection at a time.

A frame is a code of 4 bits in each of its parts (`methods.first_pass.codebook`), two parts a byte. For a query frame
a table says, for each part and code, how much it adds to the distance; a shuffle looks up 32 frames at once (André,
Kermarrec and Le Scouarnec 2015, "Cache locality is not enough: high-performance nearest neighbor search with product
quantization fast scan"). The recurrence is `kernels.recurrences.bounded_slope` with the cost alone as state, 16 bits
that saturate: a cost of 65535 is infinite. It needs no other frame of its own row, so consecutive frames fill a
vector.

Of a stream, with its parts p, and saturating operations of 8 bits::

    sum = (table[0][code 0] + table[1][code 1] + ...) - less
    distance = (sum * sum * factor) >> 16,  or (256 * sum * factor) >> 16

The distance of several streams is their sum. Layout of codes, uint8: (groups, bytes, 32), a document beginning with a
group; `gap`, uint8 (groups, 32), is 255 behind the end of a document, in at least two frames, so that no path goes on
in the next one.

The plain form computes the same bytes one frame at a time, for processors without AVX2, and for the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.datamodel import DataModelManager
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.compiled import compiled
from swsdist.kernels.products import has
from swsdist.kernels.vectors import Intrinsic, pointer

#: Frames of a group.
GROUP = 32

#: Frames whose least cost is reported.
CHUNK = 8

#: Cost of what is no path.
INFINITE = 65535

#: Groups whose rows are computed before those of the next, so that they stay in the cache.
_BLOCK = 64

#: Elements of the buffers for rows of costs and of distances.
ROWS, DISTANCES = 3 * (_BLOCK + 1) * GROUP, 2 * _BLOCK * GROUP

Bytes: TypeAlias = NDArray[np.uint8]
Costs: TypeAlias = NDArray[np.uint16]
Numbers: TypeAlias = Ints

#: See `scan` for the arguments.
Scan: TypeAlias = Callable[
    [Bytes, Bytes, int, int, int, Bytes, Bytes, Costs, Numbers, Costs, Costs, Costs, Costs], None
]


class Group(types.Type):  # type: ignore[misc] # numba has no types for its types
    """The numba type of a vector of 32 unsigned integers; `element` is the numba type of one."""

    def __init__(self, element: types.Integer) -> None:
        self.element = element
        super().__init__(name=f"Group({element})")


def _vector(element: types.Integer) -> ir.VectorType:
    return ir.VectorType(ir.IntType(element.bitwidth), GROUP)


@register_model(Group)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: DataModelManager, kind: Group) -> None:
        super().__init__(manager, kind, _vector(kind.element))


_BYTES, _COSTS = Group(types.uint8), Group(types.uint16)


@intrinsic
def _load(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        loaded = builder.load(pointer(context, builder, array, arguments[0], arguments[1], _vector(array.dtype)))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Group(array.dtype)(array, types.int64), generate


@intrinsic
def _store(typing: Typing, array: types.Array, index: types.Integer, group: Group) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        place = pointer(context, builder, array, arguments[0], arguments[1], _vector(array.dtype))
        builder.store(arguments[2], place).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, group), generate


@intrinsic
def _spread(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    """An element of an array, 32 times."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        vector = _vector(array.dtype)
        scalar = builder.load(pointer(context, builder, array, arguments[0], arguments[1], vector.element))
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.IntType(32)(0))
        return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), GROUP), None))

    return Group(array.dtype)(array, types.int64), generate


def _called(name: str, kind: Group) -> Callable[..., object]:
    """The intrinsic that calls LLVM's function of two vectors."""

    @intrinsic
    def call(typing: Typing, left: Group, right: Group) -> Intrinsic:
        def generate(
            context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            vector = _vector(kind.element)
            function = builder.module.declare_intrinsic(name, (), ir.FunctionType(vector, [vector, vector]))
            return builder.call(function, arguments)

        return kind(kind, kind), generate

    made: Callable[..., object] = call
    return made


_look_up = _called("llvm.x86.avx2.pshuf.b", _BYTES)
_add_bytes = _called("llvm.uadd.sat.v32i8", _BYTES)
_subtract = _called("llvm.usub.sat.v32i8", _BYTES)
_add = _called("llvm.uadd.sat.v32i16", _COSTS)
_least = _called("llvm.umin.v32i16", _COSTS)


def _converted(how: Callable[[ir.IRBuilder, ir.Value, ir.Type], ir.Value], kind: Group) -> Callable[..., object]:
    """The intrinsic that makes a vector of bytes one of another kind."""

    @intrinsic
    def convert(typing: Typing, group: Group) -> Intrinsic:
        def generate(
            context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            return how(builder, arguments[0], _vector(kind.element))

        return kind(_BYTES), generate

    made: Callable[..., object] = convert
    return made


def _all(vector: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(vector, [value] * GROUP)


_low = _converted(lambda builder, group, kind: builder.and_(group, _all(kind, 15)), _BYTES)
_high = _converted(lambda builder, group, kind: builder.lshr(group, _all(kind, 4)), _BYTES)
_times_256 = _converted(lambda builder, group, kind: builder.shl(builder.zext(group, kind), _all(kind, 8)), _COSTS)
_infinite = _converted(lambda builder, group, kind: builder.sext(group, kind), _COSTS)


def _of_square(builder: ir.IRBuilder, group: ir.Value, kind: ir.Type) -> ir.Value:
    wide = builder.zext(group, kind)
    return builder.mul(wide, wide)


_square = _converted(_of_square, _COSTS)


@intrinsic
def _high_product(typing: Typing, left: Group, right: Group) -> Intrinsic:
    """The high 16 bits of products."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        wide = ir.VectorType(ir.IntType(32), GROUP)
        product = builder.mul(*(builder.zext(each, wide) for each in arguments))
        return builder.trunc(builder.lshr(product, _all(wide, 16)), _vector(types.uint16))

    return _COSTS(_COSTS, _COSTS), generate


@intrinsic
def _or(typing: Typing, left: Group, right: Group) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.or_(*arguments)

    return _COSTS(_COSTS, _COSTS), generate


def _minimum(first: int) -> Callable[..., int]:
    """The intrinsic for the least cost of the chunk of a group that begins with a frame."""

    @intrinsic
    def minimum(typing: Typing, group: Group) -> Intrinsic:
        def generate(
            context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            some = ir.VectorType(ir.IntType(16), CHUNK)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), CHUNK), list(range(first, first + CHUNK)))
            part = builder.shuffle_vector(arguments[0], arguments[0], lanes)
            of = ir.FunctionType(some.element, [some])
            return builder.call(
                builder.module.declare_intrinsic(f"llvm.vector.reduce.umin.v{CHUNK}i16", (), of), [part]
            )

        return types.uint16(_COSTS), generate

    made: Callable[..., int] = minimum
    return made


_of_first, _of_second, _of_third, _of_fourth = (_minimum(first) for first in range(0, GROUP, CHUNK))


def _scan(
    codes: Bytes,
    gap: Bytes,
    first: int,
    stop: int,
    n: int,
    tables: Bytes,
    less: Bytes,
    factors: Costs,
    streams: Numbers,
    carried: Costs,
    rows: Costs,
    distances: Costs,
    minima: Costs,
) -> None:
    many = len(factors)
    width = 0
    for s in range(many):
        width += streams[s, 0]
    size, of_block = (_BLOCK + 1) * GROUP, _BLOCK * GROUP
    for k in range(2 * n):
        carried[k] = INFINITE
    for block in range(first, stop, _BLOCK):
        groups = min(_BLOCK, stop - block)
        for k in range(size):
            rows[k] = INFINITE
            rows[size + k] = 0
        for i in range(n):
            older, newer, out = i % 3 * size, (i + 1) % 3 * size, (i + 2) % 3 * size
            before, now = i % 2 * of_block, (i + 1) % 2 * of_block
            rows[out + GROUP - 2] = carried[2 * i]
            rows[out + GROUP - 1] = carried[2 * i + 1]
            for g in range(groups):
                at = (block + g) * width * GROUP
                table = i * width * 2 * GROUP
                nothing = _load(gap, (block + g) * GROUP)
                d = _infinite(nothing)
                for s in range(many):
                    total = nothing  # 0, but in gaps, where d is infinite already
                    for _ in range(streams[s, 0]):
                        pair = _load(codes, at)
                        first_sum = _look_up(_load(tables, table), _low(pair))
                        second_sum = _look_up(_load(tables, table + GROUP), _high(pair))
                        total = _add_bytes(total, _add_bytes(first_sum, second_sum))
                        at += GROUP
                        table += 2 * GROUP
                    total = _subtract(total, _spread(less, i * many + s))
                    part = _square(total) if streams[s, 1] == 2 else _times_256(total)
                    d = _add(d, _high_product(part, _spread(factors, s)))
                place = (g + 1) * GROUP
                best = _least(_load(rows, newer + place - 1), _load(rows, newer + place - 2))
                if i > 0:
                    fast = _add(_load(rows, older + place - 1), _load(distances, before + g * GROUP))
                    best = _least(best, fast)
                _store(distances, now + g * GROUP, d)
                _store(rows, out + place, _add(best, d))
            carried[2 * i] = rows[out + (groups + 1) * GROUP - 2]
            carried[2 * i + 1] = rows[out + (groups + 1) * GROUP - 1]
        last = (n + 1) % 3 * size
        for g in range(groups):
            costs = _load(rows, last + (g + 1) * GROUP)
            chunk = (block + g) * (GROUP // CHUNK)
            minima[chunk] = _of_first(costs)
            minima[chunk + 1] = _of_second(costs)
            minima[chunk + 2] = _of_third(costs)
            minima[chunk + 3] = _of_fourth(costs)


def _scan_plainly(
    codes: Bytes,
    gap: Bytes,
    first: int,
    stop: int,
    n: int,
    tables: Bytes,
    less: Bytes,
    factors: Costs,
    streams: Numbers,
    carried: Costs,
    rows: Costs,
    distances: Costs,
    minima: Costs,
) -> None:
    many = len(factors)
    width = 0
    for s in range(many):
        width += streams[s, 0]
    # Of a frame: costs of the two frames before it, and of it; columns -2 and -1 are rows before the query.
    costs = np.zeros((3, n + 2), np.int64)
    costs[:, 0] = INFINITE
    costs[:, 2:] = INFINITE
    d = np.empty(n, np.int64)
    for g in range(first, stop):
        for chunk in range(g * GROUP // CHUNK, (g + 1) * GROUP // CHUNK):
            minima[chunk] = INFINITE
        for lane in range(GROUP):
            for i in range(n):
                at, table = g * width * GROUP + lane, i * width * 2 * GROUP
                d[i] = INFINITE if gap[g * GROUP + lane] else 0
                for s in range(many):
                    total = 0
                    for _ in range(streams[s, 0]):
                        pair = int(codes[at])
                        total += int(tables[table + (pair & 15)]) + int(tables[table + GROUP + (pair >> 4)])
                        total = min(255, total)
                        at += GROUP
                        table += 2 * GROUP
                    total = max(0, total - int(less[i * many + s]))
                    part = total * total if streams[s, 1] == 2 else 256 * total
                    d[i] = min(INFINITE, d[i] + (part * int(factors[s]) >> 16))
            t = 3 * GROUP + g * GROUP + lane
            now, last, second = costs[t % 3], costs[(t - 1) % 3], costs[(t - 2) % 3]
            for i in range(n):
                best = min(last[i + 1], second[i + 1])
                if i > 0:
                    best = min(best, last[i] + d[i - 1])
                now[i + 2] = min(INFINITE, best + d[i])
            chunk = (g * GROUP + lane) // CHUNK
            minima[chunk] = min(minima[chunk], now[n + 1])


_SCAN = types.void(
    types.uint8[::1],
    types.uint8[::1],
    types.int64,
    types.int64,
    types.int64,
    types.uint8[::1],
    types.uint8[::1],
    types.uint16[::1],
    types.int64[:, ::1],
    types.uint16[::1],
    types.uint16[::1],
    types.uint16[::1],
    types.uint16[::1],
)


@cache
def scanner(plain: bool = False) -> Scan:
    """The compiled scan of one query, cached on disk, of this processor or in its plain form.

    Returns:
        A function of (codes, flat; gap, flat; the first group and the one after the last: no path that began before is
        seen, so a document begins there; query frames; tables, uint8 (query frames, bytes, 2, 32), flat, the 16 entries of
        each twice; `less`, uint8 (query frames, streams), flat; factors, one a stream; streams, int64 (streams, 2): bytes a
        frame, and 1 or 2: the power; buffers of 2 n, `ROWS` and `DISTANCES` elements; minima, written: the least cost of a
        path that ends in each chunk of these groups, four a group) that returns nothing.
    """
    return compiled(_SCAN)(_scan_plainly if plain or not has("avx2") else _scan)


@compiled("void(float32[:,::1], int64[:,::1], int64[:,::1], int64[::1], int32[:,:,::1], uint8[:,::1])")
def encode(
    frames: Singles,
    columns: Numbers,
    weights: Numbers,
    shifts: Numbers,
    nearest: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> None:
    """The nearest of 16 centroids in each part of frames; the first of several.

    Args:
        frames: float32 (frames, columns) of integers.
        columns, weights, shifts, nearest: of a codebook (`methods.first_pass.codebook`).
        out: uint8 (frames, parts), written.
    """
    parts, width, many = nearest.shape
    limit = np.int64((2.0**31 / width) ** 0.5 / 2) - 1
    far = np.empty(many, np.int32)
    for t in range(len(frames)):
        for p in range(parts):
            far[:] = 0
            for j in range(width):
                if columns[p, j] < 0:
                    break
                value = (np.int64(frames[t, columns[p, j]]) * weights[p, j]) >> shifts[p]
                value = min(max(value, -limit), limit)
                for k in range(many):
                    far[k] += (value - nearest[p, j, k]) * (value - nearest[p, j, k])
            best = 0
            for k in range(1, many):
                if far[k] < far[best]:
                    best = k
            out[t, p] = best


@compiled("void(uint8[:,::1], int64, uint8[::1])")
def interleave(codes: NDArray[np.uint8], first: int, out: Bytes) -> None:
    """Lay out consecutive frames of a document, two parts a byte, 32 frames side by side.

    Args:
        codes: uint8 (frames, parts), an even number of parts.
        first: frame of the document of the first.
        out: uint8 (groups, parts / 2, 32), flat, written.
    """
    frames, parts = codes.shape
    for t in range(frames):
        place = (first + t) // GROUP * (parts // 2) * GROUP + (first + t) % GROUP
        for b in range(parts // 2):
            out[place + b * GROUP] = codes[t, 2 * b] | codes[t, 2 * b + 1] << 4


@compiled("void(int64[::1], int64[::1], uint8[::1])")
def mark_gaps(starts: Numbers, lengths: Numbers, out: Bytes) -> None:
    """Mark what lies behind the ends of documents.

    Args:
        starts: int64 (documents,), the group with which each begins, rising.
        lengths: int64 (documents,), frames of each.
        out: uint8 (groups, 32), flat, written.
    """
    out[:] = 255
    for k in range(len(starts)):
        out[starts[k] * GROUP : starts[k] * GROUP + lengths[k]] = 0
