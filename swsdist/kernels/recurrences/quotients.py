"""Averages of paths: how they are compared, and how they become the integer of a candidate.

Some recurrences divide a path's sum of distances by the path's length. A candidate's `cost` is then that average times
the query's frames, rounded to an integer (halves up)::

    cost = (sum * N + length // 2) // length

so that the score stays one division at the edge, `-cost / (N * unit)`, as where the query's length is the normaliser.

The functions below mean the same for Python integers (the oracles), integers of compiled code, and lanes of a vector
(`kernels.vectors`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from swsdist.kernels.vectors import WIDTH, Lanes, splat, vector_of


def single(value: Any) -> Any:
    """The float32 nearest to an integer, of two the even one."""
    return np.float32(value)


def wide(value: Any) -> Any:
    """The same integer; lanes become int64."""
    return value


def narrow(value: Any, like: Any) -> Any:
    """The same integer; int64 lanes become such as `like`, which they must fit."""
    return value


def share(total: Any, frames: Any, length: Any) -> Any:
    """`total * frames / length`, rounded, halves up.

    Args:
        total: not negative; lanes of it are int64.
        frames: not negative; total * frames + length is below 2^52.
        length: at least 1, like total.
    """
    return (total * frames + (length >> 1)) // length


@intrinsic
def _single(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sitofp(arguments[0], vector_of(types.float32))

    return Lanes(types.float32)(value), generate


@intrinsic
def _wide(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(arguments[0], vector_of(types.int64))

    return Lanes(types.int64)(value), generate


@intrinsic
def _narrow(typing: Any, value: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.trunc(arguments[0], vector_of(like.element))

    return like(value, like), generate


@intrinsic
def _share(typing: Any, total: Any, frames: Any, length: Any) -> Any:
    """By float64: a quotient below 2^52 that is no whole number is farther from the next one than it is rounded."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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
