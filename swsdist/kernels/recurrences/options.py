"""Options of recurrences, in a light module for checking configs."""

from __future__ import annotations

from pydantic import PositiveInt

from swsdist.registry.entries import Options


class Band(Options):
    """Most frames off the diagonal, and frames between start points: R of the recurrence segmental."""

    band: PositiveInt = 10
