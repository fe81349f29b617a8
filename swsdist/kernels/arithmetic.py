"""The choices that the plain functions of the kernels are written with.

A recurrence's *cell* and a distance's map use ``+ - * << >> &`` and these, and so mean the same for Python integers (the
oracles), sixteen lanes of a vector (`kernels.vectors` teaches numba) and a thread of a GPU.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar


class Ordered(Protocol):
    """What can be compared with its like."""

    def __lt__(self, other: Self, /) -> object: ...


class Integer(Protocol):
    """What cells and maps work on: an integer of Python or numpy, or lanes; with its like and with Python's integers."""

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


#: Two that are compared, and those that are chosen from.
Compared = TypeVar("Compared", bound=Ordered)
Chosen = TypeVar("Chosen")

#: Operands of one operation, all alike.
Value = TypeVar("Value", bound=Integer)


def least(left: Value, right: Value | int) -> Value:
    """The lesser; the right one of equals."""
    return left if left < right else right  # type: ignore[operator, return-value] # a number becomes such as left


def most(left: Value, right: Value | int) -> Value:
    """The greater; the right one of equals."""
    return left if left > right else right  # type: ignore[operator, return-value]


def choose(left: Compared, right: Compared, if_below: Chosen, otherwise: Chosen) -> Chosen:
    """`if_below` where left < right, else `otherwise`."""
    return if_below if left < right else otherwise
