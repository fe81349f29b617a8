"""Sixteen lanes as one value: a vector type for numba, so that a plain function of numbers also works on vectors.

numba leaves vectorising to LLVM, which fails for loops with many arrays that might overlap, and widens 32-bit integers
to 64 bits. `Lanes` is a numba type of 16 elements (int32, int64, float32 or float64) that LLVM keeps in vector
registers. It supports ``+ - * / << >> &`` with vectors and numbers, ``//`` of integers that are not negative, and
`least`, `most` and `choose` of `kernels.arithmetic`. One plain Python function (a *cell*, a map of distances) thus
serves Python integers in the oracle, sixteen lanes here, and a thread of a GPU.

Integers wrap as int32 or int64 do; nothing is widened. No operation has a fast-math flag, and a product and a sum are
never contracted, so a float32 lane equals numpy's float32.

A strided array, ``array[lane::WIDTH]``, is one lane of every vector. `load`, `store` and the others access only that
lane, as an int64, so a GPU thread with one lane runs the same code as a CPU with sixteen.

Everything except `WIDTH` is for compiled code only. Indices count elements of flat C arrays, are not checked, and must
be multiples of `WIDTH` if an array may be one lane.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.datamodel import DataModelManager
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic, models, overload, register_model
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import choose, least, most

#: Lanes of a vector.
WIDTH = 16

#: The types of an intrinsic's result and arguments, and its code generator.
Intrinsic: TypeAlias = tuple[Signature, Callable[[Target, ir.IRBuilder, Signature, list[ir.Value]], ir.Value]]


class Lanes(types.Type):  # type: ignore[misc] # numba has no types for its types
    """The numba type of a vector; `element` is the numba type of a lane."""

    def __init__(self, element: types.Number) -> None:
        self.element = element
        super().__init__(name=f"Lanes({element})")


def load(array: NDArray[np.generic], index: int) -> Any:
    """Sixteen consecutive elements."""
    raise NotImplementedError


def load_unsigned(array: NDArray[np.generic], index: int, like: object) -> Any:
    """Sixteen non-negative elements of a narrower integer array, as lanes like `like`."""
    raise NotImplementedError


def store(array: NDArray[np.generic], index: int, lanes: object) -> None:
    """Write sixteen consecutive elements; integers are truncated to the array's width."""
    raise NotImplementedError


def spread(value: float, like: object) -> Any:
    """A vector with a number in all lanes, as lanes like `like`."""
    raise NotImplementedError


def lanes_of(array: NDArray[np.generic]) -> Any:
    """A zero vector of an array's element type; names the type for `load_unsigned` and `spread`."""
    raise NotImplementedError


def vector_of(element: types.Number) -> ir.VectorType:
    """LLVM's type for sixteen elements of a numba type."""
    reals = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
    scalar = reals[element] if element in reals else ir.IntType(element.bitwidth)
    return ir.VectorType(scalar, WIDTH)


@register_model(Lanes)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: DataModelManager, kind: Lanes) -> None:
        super().__init__(manager, kind, vector_of(kind.element))


def pointer(
    context: Target, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, index: ir.Value, target: ir.Type
) -> ir.Value:
    """LLVM's pointer to `array[index]` of a flat array, as a pointer to `target`."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), target.as_pointer())


def splat(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """LLVM's vector with a scalar in all lanes."""
    undefined = ir.Constant(ir.VectorType(scalar.type, WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


def _aligned(instruction: ir.Instruction, array: types.Array) -> ir.Instruction:
    instruction.align = array.dtype.bitwidth // 8
    return instruction


@intrinsic
def _load(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    kind = Lanes(array.dtype)

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        place = pointer(context, builder, array, arguments[0], arguments[1], vector_of(array.dtype))
        return _aligned(builder.load(place), array)

    return kind(array, index), generate


@intrinsic
def _load_unsigned(typing: Typing, array: types.Array, index: types.Integer, like: Lanes) -> Intrinsic:

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        place = pointer(context, builder, array, arguments[0], arguments[1], vector_of(array.dtype))
        return builder.zext(_aligned(builder.load(place), array), vector_of(like.element))

    return like(array, index, like), generate


@intrinsic
def load_rounded(typing: Typing, array: types.Array, index: types.Integer) -> Intrinsic:
    """Load sixteen float32 integers from an int16 array that holds their bytes, as int32 lanes."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        place = pointer(context, builder, array, arguments[0], arguments[1], vector_of(types.float32))
        return builder.fptosi(_aligned(builder.load(place), array), vector_of(types.int32))

    return Lanes(types.int32)(array, index), generate


@intrinsic
def _store(typing: Typing, array: types.Array, index: types.Integer, lanes: Lanes) -> Intrinsic:

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        target = vector_of(array.dtype)
        place = pointer(context, builder, array, arguments[0], arguments[1], target)
        value = arguments[2]
        _aligned(builder.store(value if value.type == target else builder.trunc(value, target), place), array)
        return context.get_dummy_value()

    return types.void(array, index, lanes), generate


@intrinsic
def _spread(typing: Typing, value: types.Number, like: Lanes) -> Intrinsic:

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return splat(builder, context.cast(builder, arguments[0], value, like.element))

    return like(value, like), generate


@intrinsic
def _lanes_of(typing: Typing, array: types.Array) -> Intrinsic:

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return ir.Constant(vector_of(array.dtype), None)

    return Lanes(array.dtype)(array), generate


@intrinsic
def below(typing: Typing, left: Lanes, right: Lanes) -> Intrinsic:
    """A bit mask, int64, of the lanes with left < right; the first lane is the lowest bit."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        truth = _less(builder, left, *arguments)
        return builder.zext(builder.bitcast(truth, ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(left, right), generate


@intrinsic
def lowest_bit(typing: Typing, bits: types.Integer) -> Intrinsic:
    """Index of the lowest set bit, int64; `bits` is not 0."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


def _less(builder: ir.IRBuilder, kind: Lanes, left: ir.Value, right: ir.Value) -> ir.Value:
    compare = builder.fcmp_ordered if isinstance(kind.element, types.Float) else builder.icmp_signed
    return compare("<", left, right)


@intrinsic
def _chosen(typing: Typing, left: Lanes, right: Lanes, if_below: Lanes, otherwise: Lanes) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.select(_less(builder, left, *arguments[:2]), *arguments[2:])

    return if_below(left, right, if_below, otherwise), generate


def _operation(integer: str, real: str = "") -> Callable[..., object]:
    """An intrinsic that applies one LLVM instruction to two vectors."""

    @intrinsic
    def applied(typing: Typing, left: Lanes, right: Lanes) -> Intrinsic:
        name = real if isinstance(left.element, types.Float) else integer

        def generate(
            context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            return getattr(builder, name)(*arguments)

        return left(left, right), generate

    made: Callable[..., object] = applied
    return made


def _of_lanes(symbol: Callable[..., object], instruction: Callable[..., object]) -> None:
    """Define a Python operator for two vectors, and for a vector and a number."""

    @overload(symbol)
    def _(left, right):  # type: ignore[no-untyped-def] # numba compares this signature with the lambdas'

        if isinstance(left, Lanes) and isinstance(right, Lanes):
            return lambda left, right: instruction(left, right)
        if isinstance(left, Lanes) and isinstance(right, types.Number):
            return lambda left, right: instruction(left, spread(right, left))
        if isinstance(left, types.Number) and isinstance(right, Lanes):
            return lambda left, right: instruction(spread(left, right), right)
        return None


_of_lanes(operator.add, _operation("add", "fadd"))
_of_lanes(operator.sub, _operation("sub", "fsub"))
_of_lanes(operator.mul, _operation("mul", "fmul"))
_of_lanes(operator.truediv, _operation("sdiv", "fdiv"))
_of_lanes(operator.floordiv, _operation("sdiv"))
_of_lanes(operator.lshift, _operation("shl"))
_of_lanes(operator.rshift, _operation("ashr"))
_of_lanes(operator.and_, _operation("and_"))


def _one_lane(array: types.Array) -> bool:
    return bool(array.layout == "A")


@overload(load)
def _overload_load(array, index):  # type: ignore[no-untyped-def] # as above
    if _one_lane(array):
        return lambda array, index: np.int64(array[index // WIDTH])
    return lambda array, index: _load(array, index)


@overload(load_unsigned)
def _overload_load_unsigned(array, index, like):  # type: ignore[no-untyped-def]
    if _one_lane(array):
        return lambda array, index, like: np.int64(array[index // WIDTH])
    return lambda array, index, like: _load_unsigned(array, index, like)


@overload(store)
def _overload_store(array, index, lanes):  # type: ignore[no-untyped-def]
    if _one_lane(array):

        def put(array, index, lanes):  # type: ignore[no-untyped-def]
            array[index // WIDTH] = lanes

        return put
    return lambda array, index, lanes: _store(array, index, lanes)


@overload(spread)
def _overload_spread(value, like):  # type: ignore[no-untyped-def]
    if isinstance(like, Lanes):
        return lambda value, like: _spread(value, like)
    return lambda value, like: np.int64(value)


@overload(lanes_of)
def _overload_lanes_of(array):  # type: ignore[no-untyped-def]
    if _one_lane(array):
        return lambda array: np.int64(0)
    return lambda array: _lanes_of(array)


@overload(choose)
def _choose(left, right, if_below, otherwise):  # type: ignore[no-untyped-def]
    if isinstance(left, Lanes):
        return lambda left, right, if_below, otherwise: _chosen(left, right, if_below, otherwise)
    return lambda left, right, if_below, otherwise: if_below if left < right else otherwise


@overload(least)
def _least(left, right):  # type: ignore[no-untyped-def]
    if isinstance(left, Lanes) and isinstance(right, Lanes):
        return lambda left, right: _chosen(left, right, left, right)
    if isinstance(left, Lanes):
        return lambda left, right: least(left, spread(right, left))
    return lambda left, right: left if left < right else right


@overload(most)
def _most(left, right):  # type: ignore[no-untyped-def]
    if isinstance(left, Lanes) and isinstance(right, Lanes):
        return lambda left, right: _chosen(right, left, left, right)
    if isinstance(left, Lanes):
        return lambda left, right: most(left, spread(right, left))
    return lambda left, right: left if left > right else right
