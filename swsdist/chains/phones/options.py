"""Options of the chain phones: the section `options` of its config."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from swsdist.config.section import IsPath, Section
from swsdist.lattices.decoding import Decoding
from swsdist.lattices.terms import Terms


class PhoneTerms(Terms):
    """The options of terms, whose labels are phones."""

    units: Literal["words", "phones"] = Field("phones", description="labels of the store")


class PhonesOptions(Section):
    """The options of the chain phones."""

    decoding: Decoding = Field(Decoding(), description="how frames become lattices of documents and strings of queries")
    terms: PhoneTerms = Field(PhoneTerms(), description="how written terms become phones")
    store: IsPath | None = Field(
        None, description="folder of the store of lattices, local or s3://; default: `lattices` in the run folder"
    )
