"""Checks of numeric arguments, and conversion between seconds and frames.

Public functions check their arguments here: an error names the argument.

Times are float64 seconds at the edges of the program and integer frames inside. Frame t covers the half-open
interval [t * shift, (t + 1) * shift). Only the two functions below convert between them.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import overload

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats
from swsdist.core.codes import families
from swsdist.core.errors import UserError


def integer(given: object, name: str, least: int) -> int:
    """Check an integer, also numpy's; booleans are refused.

    Args:
        given: the value.
        name: of the argument.
        least: lowest allowed value.

    Raises:
        UserError: it is no integer, or lower.
    """
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= least:
        return int(given)
    raise _refused(given, name, f"a whole number of at least {least}", str(max(least, 1)))


def number(given: object, name: str, above: float | None = None) -> float:
    """Check a finite number, also numpy's; booleans are refused.

    Args:
        given: the value.
        name: of the argument.
        above: exclusive lower limit.

    Raises:
        UserError: it is no finite number, or not greater.
    """
    if isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given):
        value = float(given)
        if above is None or value > above:
            return value
    raise _refused(given, name, "a finite number" if above is None else f"a number above {above:g}", "1.5")


def _refused(given: object, name: str, required: str, example: str) -> UserError:
    return families.INVALID_VALUE.of(UserError)(
        "{value} is not {expected}",
        "give a number, as {name}={example}",
        where=name,
        value=f"{given!r:.60}",
        expected=required,
        name=name,
        example=example,
    )


@overload
def frames_to_seconds(frames: int, shift: float) -> float: ...
@overload
def frames_to_seconds(frames: NDArray[np.integer], shift: float) -> Floats: ...
def frames_to_seconds(frames: int | NDArray[np.integer], shift: float) -> float | Floats:
    """Time in s at which a frame begins; for the end of a span pass the first frame after it.

    The product is rounded to 1e-6 s, so that frame 30 of 10 ms frames begins at 0.3 and not at 0.30000000000000004.

    Args:
        frames: frame index or indices, int.
        shift: frame shift in s.
    """
    seconds = np.round(np.asarray(frames, dtype=np.float64) * shift, 6)
    return float(seconds) if np.ndim(frames) == 0 else seconds


def seconds_to_frame(seconds: float, shift: float) -> int:
    """Index of the frame that contains a time; a time within 1e-6 s of a border belongs to the frame it opens."""
    return int(np.floor(seconds / shift + 1e-6 / shift))
