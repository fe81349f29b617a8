"""Averages of paths: their comparison, and their conversion to the integer cost of a candidate.

Some recurrences divide a path's sum of distances by the path's length. A candidate's `cost` is then that average times
the query's frames, rounded to an integer (halves up)::

    cost = (sum * N + length // 2) // length

so that the score is a single division, `-cost / (N * unit)`, as with normalisation by the query's length.

The functions below mean the same for Python integers (the oracles), integers of compiled code, and lanes of a vector
(`kernels.vectors`).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic, overload

from swsdist.kernels.arithmetic import Integer, Value
from swsdist.kernels.vectors import WIDTH, Intrinsic, Lanes, splat, vector_of

Same = TypeVar("Same")


def single(value: Integer) -> np.float32:
    """The float32 nearest to an integer; ties to even."""
    return np.float32(value)  # type: ignore[arg-type] # lanes have an overload


def wide(value: Same) -> Same:
    """The same integer; lanes become int64."""
    return value


def narrow(value: Same, like: object) -> Same:
    """The same integer; int64 lanes become lanes like `like`, which they must fit."""
    return value


def share(total: Value, frames: int, length: Value) -> Value:
    """`total * frames / length`, rounded, halves up.

    Args:
        total: not negative; lanes of it are int64.
        frames: not negative; total * frames + length is below 2^52.
        length: at least 1, like total.
    """
    return (total * frames + (length >> 1)) // length  # type: ignore[operator, no-any-return] # as above


@intrinsic
def _single(typing: Typing, value: types.Number) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.sitofp(arguments[0], vector_of(types.float32))

    return Lanes(types.float32)(value), generate


@intrinsic
def _wide(typing: Typing, value: types.Number) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.sext(arguments[0], vector_of(types.int64))

    return Lanes(types.int64)(value), generate


@intrinsic
def _narrow(typing: Typing, value: types.Number, like: Lanes) -> Intrinsic:
    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        return builder.trunc(arguments[0], vector_of(like.element))

    return like(value, like), generate


@intrinsic
def _share(typing: Typing, total: Lanes, frames: types.Integer, length: Lanes) -> Intrinsic:
    """Computed in float64: a non-integer quotient below 2^52 is farther from the next integer than its rounding error."""

    def generate(context: Target, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]) -> ir.Value:
        integers, reals = vector_of(types.int64), ir.VectorType(ir.DoubleType(), WIDTH)
        total_, frames_, length_ = arguments
        half = builder.lshr(length_, ir.Constant(integers, [1] * WIDTH))
        dividend = builder.add(builder.mul(total_, splat(builder, frames_)), half)
        quotient = builder.fdiv(builder.sitofp(dividend, reals), builder.sitofp(length_, reals))
        return builder.fptosi(quotient, integers)

    return total(total, types.int64, length), generate


@overload(single)
def _overload_single(value):  # type: ignore[no-untyped-def] # numba compares this signature with the lambdas'
    if isinstance(value, Lanes):
        return lambda value: _single(value)
    return lambda value: np.float32(value)


@overload(wide)
def _overload_wide(value):  # type: ignore[no-untyped-def]
    if isinstance(value, Lanes) and value.element != types.int64:
        return lambda value: _wide(value)
    return lambda value: value


@overload(narrow)
def _overload_narrow(value, like):  # type: ignore[no-untyped-def]
    if isinstance(value, Lanes) and value != like:
        return lambda value, like: _narrow(value, like)
    return lambda value, like: value


@overload(share)
def _overload_share(total, frames, length):  # type: ignore[no-untyped-def]
    if isinstance(total, Lanes):
        return lambda total, frames, length: _share(total, frames, length)
    return lambda total, frames, length: (total * frames + (length >> 1)) // length
