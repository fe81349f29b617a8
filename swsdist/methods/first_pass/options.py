"""Options of first passes, in a light module for checking configs.

`factor`, `factors` and `visit` are keys of `search.first_pass`; the others are in `search.first_pass.options`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from swsdist.core.codes import methods as codes
from swsdist.registry.options import Options


class Coarse(Options):
    """Of windows of the query's size."""

    factor: PositiveInt = 1


class Averaged(Options):
    """Of the search on averaged frames."""

    factors: Annotated[tuple[PositiveInt, ...], Field(min_length=1, max_length=4)] = (5,)
    margin: NonNegativeInt = 20
    widen: PositiveInt = 6
    visit: bool = True

    @field_validator("factors")
    @classmethod
    def _fall(cls, factors: tuple[int, ...]) -> tuple[int, ...]:
        if any(after >= before for before, after in pairwise(factors)):
            raise codes.FACTORS_NOT_FALLING.invalid(factors=", ".join(map(str, factors)))
        if factors[-1] == 1:
            raise codes.FACTOR_OF_ONE.invalid()
        return factors


class Quantised(Options):
    """Of the index of quantised frames."""

    factor: PositiveInt = 3
    bytes: Annotated[int, Field(ge=1, le=64)] = 10
    margin: NonNegativeInt = 24
