"""Options of first passes, in a light module for checking configs.

`factor` is a key of `search.first_pass`; the others are in `search.first_pass.options`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt

from swsdist.registry.entries import Options


class Coarse(Options):
    """Of windows of the query's size."""

    factor: PositiveInt = 1


class Quantised(Options):
    """Of the index of quantised frames."""

    factor: PositiveInt = 3
    bytes: Annotated[int, Field(ge=1, le=64)] = 10
    margin: NonNegativeInt = 36
