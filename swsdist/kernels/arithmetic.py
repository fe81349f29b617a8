"""Choice operations for the plain functions of the kernels.

A recurrence's *cell* and a distance's map use only ``+ - * << >> &`` and these, and so mean the same for Python
integers (the oracles), sixteen lanes of a vector (`kernels.vectors` implements them for numba) and a GPU thread.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar


class Ordered(Protocol):
    """Types with an order."""

    def __lt__(self, other: Self, /) -> object: ...


class Integer(Protocol):
    """Operands of cells and maps: integers of Python or numpy, or lanes; combined with the same type and with Python's
    integers.
    """

    def __lt__(self, other: Self, /) -> object: ...
    def __gt__(self, other: Self, /) -> object: ...
    def __add__(self, other: Self | int, /) -> Self: ...
    def __sub__(self, other: Self | int, /) -> Self: ...
    def __radd__(self, other: int, /) -> Self: ...
    def __rsub__(self, other: int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __rmul__(self, other: int, /) -> Self: ...
    def __lshift__(self, other: Self | int, /) -> Self: ...
    def __rlshift__(self, other: int, /) -> Self: ...
    def __rshift__(self, other: Self | int, /) -> Self: ...
    def __and__(self, other: Self | int, /) -> Self: ...


#: Two values to compare, and two to choose from.
Compared = TypeVar("Compared", bound=Ordered)
Chosen = TypeVar("Chosen")

#: Operands of one operation, all of one type.
Value = TypeVar("Value", bound=Integer)


def least(left: Value, right: Value | int) -> Value:
    """The lesser; the right one on ties."""
    return left if left < right else right  # type: ignore[operator, return-value] # a number becomes such as left


def most(left: Value, right: Value | int) -> Value:
    """The greater; the right one on ties."""
    return left if left > right else right  # type: ignore[operator, return-value]


def choose(left: Compared, right: Compared, if_below: Chosen, otherwise: Chosen) -> Chosen:
    """`if_below` if left < right, else `otherwise`."""
    return if_below if left < right else otherwise
