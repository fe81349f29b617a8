"""Options of the chain text: the section `options` of its config."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from swsdist.config.names import NameIn
from swsdist.config.section import IsPath, Section
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import Terms
from swsdist.registry.registries import LATTICE_FORMATS


class LatticeInput(Section):
    """The lattices or transcripts of the documents."""

    path: IsPath | None = Field(
        None,
        description="file or folder of them, local or s3://; default: corpus.documents, and the documents are what they hold",
    )
    format: Annotated[str, NameIn(LATTICE_FORMATS)] | None = Field(
        None, description="their format, see docs/reference/lattice-formats.md; default: detected, file by file"
    )
    words: IsPath | None = Field(None, description="Kaldi's words.txt: labels of the numbers in lattices")
    segments: IsPath | None = Field(
        None, description="Kaldi's segments: utterances are stretches of recordings (UTTERANCE RECORDING START END)"
    )
    frame_shift: PositiveFloat = Field(0.01, description="seconds per frame, of formats that count frames")
    subsampling: PositiveInt = Field(1, description="frames per frame of the lattice; 3 for Kaldi's chain models")
    tiers: tuple[str, ...] = Field((), description="tiers of ELAN and TextGrid files; default: all with intervals")

    @property
    def frame(self) -> float:
        """Seconds per frame of the lattice."""
        return self.frame_shift * self.subsampling


class TextOptions(Section):
    """The options of the chain text."""

    lattices: LatticeInput = Field(LatticeInput(), description="lattices or transcripts")
    recipe: Recipe = Field(Recipe(), description="what is kept of them in the store")
    terms: Terms = Field(Terms(), description="how written terms become labels")
