"""The choices that the plain functions of the kernels are written with.

A recurrence's *cell* and a distance's map use ``+ - * << >> &`` and these, and so mean the same for Python integers (the
oracles), sixteen lanes of a vector (`kernels.vectors` teaches numba) and a thread of a GPU.
"""

from __future__ import annotations

from typing import Any


def least(left: Any, right: Any) -> Any:
    """The lesser; the right one of equals."""
    return left if left < right else right


def most(left: Any, right: Any) -> Any:
    """The greater; the right one of equals."""
    return left if left > right else right


def choose(left: Any, right: Any, if_below: Any, otherwise: Any) -> Any:
    """`if_below` where left < right, else `otherwise`."""
    return if_below if left < right else otherwise
