"""Checks of numeric arguments of public functions: an error names the argument."""

from __future__ import annotations

import math
from numbers import Integral, Real

from swsdist.core.codes import io as codes
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
    return codes.BAD_ARGUMENT(where=name, value=f"{given!r:.60}", expected=required, name=name, example=example)
