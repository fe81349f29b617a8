"""Options of the method windows (`search.method_options`), in a light module for checking configs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from swsdist.config.search import Keep
from swsdist.registry.entries import Options


class WindowsOptions(Options):
    """Of the coarse search and the fine one.

    Attributes:
        windows: kept of each document by the coarse search.
        ends: of the fine search's paths. `free`: from any frame of a window to any; `pinned`: from its first to its last.
        apart: s, at least, from the end of one detection to that of another.
    """

    windows: Keep = Keep(least=100, per_second=1.0)
    ends: Literal["free", "pinned"] = "free"
    apart: Annotated[float, Field(gt=0)] = 0.5
