"""Interface of recurrences: functions of the inner loop, a plain version, and properties of the state.

The inner loop's functions run on sixteen lanes (`kernels.vectors`) and are compiled for each type of state. `trace` is
the same recurrence over a complete table of distances, in the simplest layout, with the step into every cell: it draws
curves and paths on demand, and serves as a reference for the vectors. Both call the recurrence's one `cell`.

**Plain versions.** A plain version is a function ``trace(distances, option, cost, frames, steps)`` in the
recurrence's module. It takes a table, int16 (query frames, document frames), and the recurrence's option, and writes,
for every document frame, `cost` and `frames` of the path that ends there (int64; -1 and 0 if none does) and, for
every cell, the step into it (uint8, a code of `STEPS`, or `BEGIN`). It calls the recurrence's cell with plain
integers, so results equal those of the vectors.

**Averages** of paths: their comparison, and their conversion to the integer cost of a candidate. Some recurrences
divide a path's sum of distances by the path's length. A candidate's `cost` is then that average times the query's
frames, rounded to an integer (halves up)::

    cost = (sum * N + length // 2) // length

so that the score is a single division, `-cost / (N * unit)`, as with normalisation by the query's length.

The functions below mean the same for Python integers (the oracles), integers of compiled code, and lanes of a vector
(`kernels.vectors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext as Target
from numba.core.typing import BaseContext as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from swsdist.core.arrays import Ints
from swsdist.kernels.arithmetic import Integer, Packing, StateType, Value
from swsdist.kernels.compiled import compiled
from swsdist.kernels.scan import Advance, Restart, Scan, scanner
from swsdist.kernels.vectors import WIDTH, Intrinsic, Lanes, splat, vector_of
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECURRENCES

Table: TypeAlias = NDArray[np.int16]
Numbers: TypeAlias = Ints
Codes: TypeAlias = NDArray[np.uint8]

#: A recurrence's plain version: (table, option, cost, frames, steps), the last three written.
Twin: TypeAlias = Callable[[Table, int, Numbers, Numbers, Codes], None]

#: Query and document frames of a step, by its code.
STEPS = ((1, 1), (1, 2), (1, 0), (0, 1), (2, 1))
DIAGONAL, SKIP, STAY, LEFT, FAST = range(len(STEPS))

#: The code of a path's first cell.
BEGIN = 255

#: Low bits of a packed state, and a state that no path reaches: costs are below 2^32.
BITS = 26
NO_PATH = 1 << 60


@cache
def traced(twin: Twin) -> Twin:
    """The compiled plain version, cached on disk."""
    return compiled("void(int16[:,::1], int64, int64[::1], int64[::1], uint8[:,::1])")(twin)


@numba.extending.register_jitable
def unpacked(state: int) -> tuple[int, int]:
    """Cost and frames of a state; (-1, 0) without a path."""
    return (state >> BITS, state & ((1 << BITS) - 1)) if state < NO_PATH else (-1, 0)


class Recurrence(NamedTuple):
    """A recurrence, with its options.

    Attributes:
        packing: how the curve's cost and frames share an integer, for a query length.
        advance, restart: plain functions, see `kernels.recurrences.bounded_slope`.
        columns: rows of the stored state, of sixteen lanes each, for a query of n frames.
        reach: document frames that a result depends on, for a query of n frames; None: all earlier frames.
        trace: plain function, see `kernels.recurrences.interface`.
        trace_path: the steps of a path, from a table with exactly its document frames; None: those of `trace`.
        option: a number passed to `advance`, `restart` and `trace`.
        grid: documents are cut at multiples of this only.
        int32_frames: the state is int32 for documents of at most this many frames, and int64 for longer ones; None: it
            has the curve's type.
        most_frames: the longest document that can be searched; None: unlimited.
        neighbours: plain function of S(i-1, t-1), S(i-1, t-2), S(i-2, t-1), d(i, t) and d(i-1, t), distances shifted,
            that
            returns S(i, t), if it depends on nothing else, with S(-1, t) = 0, S(-2, t) infinite, and the packed state
            of the
            query's last frame as the curve. A GPU thread then keeps sixteen query frames in registers. None: it runs
            `advance`, with the state in memory.
    """

    packing: Callable[[int], Packing]
    advance: Advance
    restart: Restart
    columns: Callable[[int], int]
    reach: Callable[[int], int] | None
    trace: Twin
    trace_path: Twin | None = None
    option: int = 0
    grid: int = 1
    int32_frames: int | None = None
    most_frames: int | None = None
    neighbours: Callable[..., Value] | None = None

    def elements(self, query_frames: int) -> int:
        """Number of elements of the columns."""
        return self.columns(query_frames) * WIDTH

    def state(self, curve: StateType, wide: bool) -> StateType:
        """dtype of the columns, for a dtype of the curve; `wide`: for documents longer than `int32_frames`."""
        if self.int32_frames is None:
            return curve
        return np.int64 if wide else np.int32

    def scanner(self, state: StateType, curve: StateType, streams: int, row_range: bool) -> Scan:
        """The compiled inner loop."""
        # mypy considers a class unhashable
        return scanner(self.advance, self.restart, state, curve, streams, row_range)  # type: ignore[arg-type]

    def whole_grid(self, frames: int) -> int:
        """The least multiple of `grid` that is not below a number of frames."""
        return -(-frames // self.grid) * self.grid


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


def create(name: str, options: Mapping[str, object] | None = None) -> Recurrence:
    """The recurrence of that name.

    Args:
        name: registered.
        options: those that are not as they are by default, such as `band`.

    Raises:
        ConfigError: there is no such recurrence, or it does not take such an option.
    """
    return _made(name, tuple(sorted(checked(RECURRENCES, name, options or {}).items())))


@cache
def _made(name: str, options: tuple[tuple[str, object], ...]) -> Recurrence:
    recurrence: Recurrence = RECURRENCES[name].load()(**dict(options))
    return recurrence
