"""What a thread of a GPU holds: sixteen query frames against one document, as one `Lanes` vector of `kernels.vectors`.

On a CPU the sixteen elements of a vector are documents. Here they are consecutive query frames, *rows*, and live in a thread's
registers; neighbouring threads have neighbouring documents. The vector, its ``+ - * << >> &``, `least`, `most` and `choose`
are those of the CPU, so that a recurrence's `cell` and a distance's `from_dot` are compiled for a GPU from the same source, in
32-bit integers where numba by itself would widen to 64. What is added here moves values between rows.

For compiled code only. Indices are in elements of flat C arrays and are not checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from swsdist.kernels.vectors import WIDTH, Lanes, pointer, vector_of

#: Document frames that a thread takes at once.
FRAMES = 4

_WORD = ir.IntType(32)


@intrinsic
def load_rows(typing: Any, array: Any, index: Any) -> Any:
    """Sixteen consecutive elements of 32 bits or more, from a multiple of 16 bytes on."""
    kind = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(pointer(context, builder, array, arguments[0], arguments[1], vector_of(array.dtype)))
        loaded.align = 16
        return loaded

    return kind(array, index), generate


@intrinsic
def load_frames(typing: Any, array: Any, index: Any) -> Any:
    """Four consecutive float32, from a multiple of 16 bytes on, as a tuple."""
    kind = types.UniTuple(types.float32, FRAMES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.VectorType(ir.FloatType(), FRAMES)
        loaded = builder.load(pointer(context, builder, array, arguments[0], arguments[1], target))
        loaded.align = 16
        parts = [builder.extract_element(loaded, _WORD(k)) for k in range(FRAMES)]
        return context.make_tuple(builder, kind, parts)

    return kind(array, index), generate


@intrinsic
def element(typing: Any, array: Any, index: Any) -> Any:
    """One element; numba's own indexing would look for negative indices."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.IntType(array.dtype.bitwidth)
        return builder.load(pointer(context, builder, array, arguments[0], arguments[1], target))

    return array.dtype(array, index), generate


@intrinsic
def put(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write one integer element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.IntType(array.dtype.bitwidth)
        cast = context.cast(builder, arguments[2], value, array.dtype)
        builder.store(cast, pointer(context, builder, array, arguments[0], arguments[1], target))
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@intrinsic
def lowered(typing: Any, lanes: Any, first: Any) -> Any:
    """Every row one further down; `first` becomes row 0, and the last one is lost."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = context.cast(builder, arguments[1], first, lanes.element)
        moved = ir.Constant(ir.VectorType(_WORD, WIDTH), [0, *range(WIDTH - 1)])
        shuffled = builder.shuffle_vector(arguments[0], ir.Constant(arguments[0].type, ir.Undefined), moved)
        return builder.insert_element(shuffled, value, _WORD(0))

    return lanes(lanes, first), generate


@intrinsic
def last(typing: Any, lanes: Any) -> Any:
    """The last row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_element(arguments[0], _WORD(WIDTH - 1))

    return lanes.element(lanes), generate


@intrinsic
def whole(typing: Any, lanes: Any) -> Any:
    """float32 rows that are whole numbers, as int32 rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fptosi(arguments[0], vector_of(types.int32))

    return Lanes(types.int32)(lanes), generate


@intrinsic
def widened(typing: Any, lanes: Any, like: Any) -> Any:
    """int32 rows, none of them negative, as rows like `like`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0] if like == lanes else builder.zext(arguments[0], vector_of(like.element))

    return like(lanes, like), generate
