"""What recurrences take as options: quick to load, for the config checks them."""

from __future__ import annotations

from pydantic import PositiveInt

from swsdist.registry.options import Options


class Band(Options):
    """Most frames off the diagonal, and frames between start points: R of the recurrence segmental."""

    band: PositiveInt = 10
