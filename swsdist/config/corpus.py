"""The section `corpus` of a config, which may be a file of its own (docs/how-to/keep-a-corpus-apart.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, model_validator

from swsdist.config.names import NameIn
from swsdist.config.section import IsPath, Section
from swsdist.core.codes import config as codes
from swsdist.registry.registries import PROTOCOLS


class Alignments(Section):
    """Time-aligned transcripts of the documents, to train models on or to search as text."""

    words: IsPath | None = Field(None, description="CTM of words")
    phones: IsPath | None = Field(None, description="CTM of phones")


#: Documents by name, or a table of them.
PartOf = Annotated[tuple[str, ...], Field(min_length=1)] | IsPath


class Parts(Section):
    """Parts of the documents that models may be trained or fitted on. A search always covers all documents."""

    train: PartOf | None = Field(None, description="list of doc_ids, or table with column doc_id")
    development: PartOf | None = Field(None, description="as train")
    test: PartOf | None = Field(None, description="as train")


class QueriesFrom(Section):
    """The corpus of the queries, if it is another one: a section, or the path of its corpus file."""

    documents: IsPath | None = Field(
        None, description="documents of that corpus, as corpus.documents; queries refer to their doc_ids"
    )
    audio: IsPath | None = Field(None, description="as corpus.audio")
    prefer: tuple[str, ...] = Field((), description="as corpus.prefer")
    speakers: IsPath | None = Field(None, description="as corpus.speakers")
    same_speakers: bool = Field(False, description="equal speaker names are the same person in both corpora")
    statistics: Literal["theirs", "ours"] = Field(
        "theirs",
        description="normalise queries by the statistics of that corpus (see search.queries_by), or of the searched one",
    )
    hours: PositiveFloat = Field(
        0.5, description="most audio used for these statistics, and for those of each query speaker, h"
    )

    @model_validator(mode="after")
    def _of_documents(self) -> QueriesFrom:
        changed = [name for name, field in QueriesFrom.model_fields.items() if getattr(self, name) != field.default]
        if self.documents is None and changed:
            raise codes.DOCUMENTS_NOT_GIVEN.invalid(name=changed[0])
        return self


#: Named sets of rules of counting.
Protocol = Annotated[str, NameIn(PROTOCOLS)]


class Corpus(Section):
    """Documents, queries and, optionally, references; or the path of a corpus file.

    A corpus file is YAML with the keys of this section; its paths are relative to itself.
    """

    documents: IsPath = Field(
        description="table (CSV or Parquet: doc_id, path; optionally channel, duration, speaker), folder of audio, recording, "
        "Kaldi data folder or wav.scp, lhotse manifest, Hugging Face data set (save_to_disk), or NIST ECF"
    )
    audio: IsPath | None = Field(
        None,
        description="base folder of relative paths in a wav.scp, manifest or ECF; default: folder of the list",
    )
    queries: IsPath | None = Field(
        None,
        description="table (query_id, path or doc_id; optionally example, channel, start, end, speaker, term), folder of "
        "audio, lhotse manifest, Hugging Face data set, glossary, or NIST TLIST or KWLIST",
    )
    spoken: IsPath | None = Field(
        None,
        description="spoken examples for a TLIST or KWLIST, as `queries`; query_id is the term's id",
    )
    queries_from: QueriesFrom = QueriesFrom()
    references: IsPath | None = Field(
        None,
        description="true occurrences: table (query_id, doc_id, start, end; optionally channel, verdict); glossary; or RTTM, "
        "CTM or lhotse supervisions with alignments, in which terms are looked up; null: no scoring",
    )
    text: IsPath | None = Field(
        None,
        description="Kaldi text (document word word ...) instead of references, for document trials",
    )
    examples: Literal["primary", "all"] = Field(
        "primary", description="use the first example of each query, or all (see search.examples)"
    )
    own_places: Literal["keep", "leave-out"] | None = Field(
        None,
        description="for queries cut from the searched audio: keep hits and references at their own places, or leave them "
        "out; default: leave-out for queries with doc_id, keep for queries with path; q-norm always includes them",
    )
    prefer: tuple[str, ...] = Field(
        (),
        description="endings in order, such as [wav, flac, mp3]: of files that differ only in the ending, use the first",
    )
    speakers: IsPath | None = Field(
        None,
        description="where documents have no speaker: table (doc_id, speaker; optionally channel), or folder whose ELAN and "
        "TextGrid files name those of the recordings beside them",
    )
    alignments: Alignments = Alignments()
    parts: Parts = Parts()
    cohort: IsPath | None = Field(
        None,
        description="queries, as `queries`, that only normalise the scores of others (step zt-norm)",
    )
    protocol: Protocol | None = Field(None, description="default of score.protocol")

    @property
    def has_references(self) -> bool:
        """Whether true occurrences of the queries are given."""
        return self.references is not None or self.text is not None

    @model_validator(mode="after")
    def _one_kind_of_references(self) -> Corpus:
        if self.references is not None and self.text is not None:
            raise codes.REFERENCES_AND_TEXT.invalid()
        return self
