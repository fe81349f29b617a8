"""The section `corpus` of a config, which may be a file of its own (docs/how-to/keep-a-corpus-apart.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, model_validator

from swsdist.config.names import NameIn
from swsdist.config.section import IsPath, Section
from swsdist.core.codes import config as codes
from swsdist.registry.registries import PROTOCOLS


class Alignments(Section):
    """What is said where in the documents, as CTM files: what models are trained on, and what text is searched in."""

    words: IsPath | None = Field(None, description="CTM of words")
    phones: IsPath | None = Field(None, description="CTM of phones")


#: Documents by name, or a table of them.
PartOf = Annotated[tuple[str, ...], Field(min_length=1)] | IsPath


class Parts(Section):
    """Parts of the documents: what is trained or fitted is told which one it may see. A search searches all documents."""

    train: PartOf | None = Field(None, description="list of doc_ids, or a table with a column doc_id")
    development: PartOf | None = Field(None, description="the same")
    test: PartOf | None = Field(None, description="the same")


class QueriesFrom(Section):
    """The corpus that the queries are of, where that is another one: a section, or the path of its corpus file."""

    documents: IsPath | None = Field(
        None, description="its documents, as corpus.documents: a query's doc_id is looked up in them, and its speaker"
    )
    audio: IsPath | None = Field(None, description="as corpus.audio, for these documents")
    prefer: tuple[str, ...] = Field((), description="as corpus.prefer, for these documents")
    speakers: IsPath | None = Field(None, description="as corpus.speakers, for these documents")
    same_speakers: bool = Field(
        False, description="speakers of one name are the same people in both corpora; by default they never are"
    )
    statistics: Literal["theirs", "ours"] = Field(
        "theirs",
        description="means and variances that normalise the queries: of these documents (search.queries_by says whether of "
        "their speaker's), or of all that are searched",
    )
    hours: PositiveFloat = Field(
        0.5, description="of these documents that are taken, at most; and as much of each speaker of a query"
    )

    @model_validator(mode="after")
    def _of_documents(self) -> QueriesFrom:
        given = [name for name, field in QueriesFrom.model_fields.items() if getattr(self, name) != field.default]
        if self.documents is None and given:
            raise codes.DOCUMENTS_NOT_GIVEN.invalid(name=given[0])
        return self


#: Named sets of rules of counting.
Protocol = Annotated[str, NameIn(PROTOCOLS)]


class Corpus(Section):
    """What is searched, what is looked for, and, optionally, where it truly occurs; or the path of a corpus file.

    A corpus file is YAML with the keys of this section; its paths are relative to itself.
    """

    documents: IsPath = Field(
        description="table (CSV or Parquet: doc_id, path; optionally channel, duration, speaker), folder of audio, single "
        "recording, Kaldi data folder or wav.scp, manifest of lhotse, data set of Hugging Face (a folder of save_to_disk), or "
        "NIST ECF"
    )
    audio: IsPath | None = Field(
        None,
        description="folder that relative paths of a wav.scp, manifest or ECF are relative to; default: that of the list",
    )
    queries: IsPath | None = Field(
        None,
        description="table (query_id, path or doc_id; maybe example, channel, start, end, speaker, term), folder of audio, "
        "manifest of lhotse, data set of Hugging Face, or NIST TLIST or KWLIST",
    )
    spoken: IsPath | None = Field(
        None,
        description="spoken examples of the terms of a TLIST or KWLIST: table or folder, as `queries`; query_id is the term's "
        "id",
    )
    queries_from: QueriesFrom = QueriesFrom()
    references: IsPath | None = Field(
        None,
        description="table (query_id, doc_id, start, end; optionally channel), or RTTM, CTM or lhotse's supervisions with "
        "alignments, in which the queries' terms are looked up; without it scoring is skipped",
    )
    text: IsPath | None = Field(
        None,
        description="Kaldi text (document word word ...): in which documents the queries' terms are said; for document trials, "
        "in place of references",
    )
    examples: Literal["primary", "all"] = Field(
        "primary", description="use only the first example of each query, or all of them, as search.examples says"
    )
    own_places: Literal["keep", "leave-out"] | None = Field(
        None,
        description="of queries that are cut from what is searched: what lies at their own places counts (keep), or is "
        "no hit and no true occurrence; default: left out for queries that name a document (doc_id), not for those that "
        "name its file; what normalises a query's scores (q-norm) counts them either way",
    )
    prefer: tuple[str, ...] = Field(
        (),
        description="endings, the best first, for example [wav, flac, mp3]: of files of a folder that differ in their endings "
        "only one is a document; by default each is one",
    )
    speakers: IsPath | None = Field(
        None, description="table (doc_id, speaker; optionally channel): who speaks, where the documents do not tell"
    )
    alignments: Alignments = Alignments()
    parts: Parts = Parts()
    cohort: IsPath | None = Field(
        None,
        description="table or folder of queries, as `queries`, that only serve to normalise the scores of others, by the step "
        "zt-norm: they are searched, and never scored",
    )
    protocol: Protocol | None = Field(None, description="what score.protocol is where the config does not say")

    @property
    def has_references(self) -> bool:
        """Whether true occurrences of the queries are given."""
        return self.references is not None or self.text is not None

    @model_validator(mode="after")
    def _one_kind_of_references(self) -> Corpus:
        if self.references is not None and self.text is not None:
            raise codes.REFERENCES_AND_TEXT.invalid()
        return self
