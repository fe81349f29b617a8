"""The state of a GPU thread: sixteen query frames against one document, as one `Lanes` vector of `kernels.vectors`.

On a CPU the sixteen elements of a vector are documents. Here they are consecutive query frames, *rows*, in a thread's
registers; neighbouring threads have neighbouring documents. The vector, its ``+ - * << >> &``, `least`, `most` and
`choose` are those of the CPU, so a recurrence's `cell` and a distance's `from_dot` compile for a GPU from the same
source, in 32-bit integers, which numba alone would widen to 64. This module adds functions that move values between
rows.

For compiled code only. Indices count elements of flat C arrays and are not checked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic

from swsdist.kernels.vectors import WIDTH, Intrinsic, Lanes, pointer, vector_of

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
