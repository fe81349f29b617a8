"""Options of the chain words: the section `options` of its config."""

from __future__ import annotations

from pydantic import Field

from swsdist.config.section import Section
from swsdist.lattices.packed import Recipe
from swsdist.lattices.recognition import Recognition
from swsdist.lattices.terms import Terms


class WordsOptions(Section):
    """The options of the chain words."""

    recogniser: Recognition = Field(Recognition(), description="how documents and spoken queries become words")
    recipe: Recipe = Field(Recipe(), description="what is kept of lattices in the store")
    terms: Terms = Field(Terms(), description="how written terms, and the words of spoken ones, become labels")
