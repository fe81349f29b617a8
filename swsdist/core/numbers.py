"""Numbers that somebody gives to a public function: each is one, and within its bounds, or an error names the argument."""

from __future__ import annotations

import math
from numbers import Integral, Real

from swsdist.core.codes import io as codes
from swsdist.core.errors import UserError


def integer(given: object, name: str, least: int) -> int:
    """A whole number that was given, numpy's too; true and false are none.

    Args:
        given: what was given.
        name: of the argument.
        least: the least that it may be.

    Raises:
        UserError: it is no whole number, or less.
    """
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= least:
        return int(given)
    raise _refused(given, name, f"a whole number of at least {least}", str(max(least, 1)))


def number(given: object, name: str, above: float | None = None) -> float:
    """A finite number that was given, numpy's too; true and false are none.

    Args:
        given: what was given.
        name: of the argument.
        above: it must be greater than this.

    Raises:
        UserError: it is no finite number, or not greater.
    """
    if isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given):
        value = float(given)
        if above is None or value > above:
            return value
    raise _refused(given, name, "a finite number" if above is None else f"a number above {above:g}", "1.5")


def _refused(given: object, name: str, wanted: str, example: str) -> UserError:
    return codes.BAD_ARGUMENT(where=name, value=f"{given!r:.60}", expected=wanted, name=name, example=example)
