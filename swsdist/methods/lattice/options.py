"""Options of the method lattice (`search.method_options`), in a light module for checking configs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from swsdist.registry.entries import Options


class LatticeOptions(Options):
    """Of the search of lattices.

    Attributes:
        gap: s, at most, between two words of a term.
        least: places of a smaller posterior are left out.
        mode: `exact`: posteriors of all places. `kaldi`: the answers of Kaldi's kws-search, where chains of one sequence of
            words and clusters are one place, and some of these are lost (`swsdist.methods.lattice.kaldi`).
    """

    gap: Annotated[float, Field(ge=0)] = 0.5
    least: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    mode: Literal["exact", "kaldi"] = "exact"
