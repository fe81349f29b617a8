"""Base of the models of entries' options."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Frozen; unknown options, infinity and NaN are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
