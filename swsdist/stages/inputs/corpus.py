"""The corpus of a plan: immutable tables for any chain, each read once, on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from swsdist.audio.synthesis import spoken_rows
from swsdist.config import Config
from swsdist.config.corpus import Corpus as Section
from swsdist.core.codes import stages as codes
from swsdist.core.errors import TermError
from swsdist.core.types import QUERIES
from swsdist.corpora.documents import read_documents
from swsdist.corpora.places import is_placed
from swsdist.corpora.queries import read_queries
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.lattices.beside import speakers_of
from swsdist.reduce.source_places import SourcePlaces, outside_places, source_places
from swsdist.registry.registries import METHODS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.cross_corpus import corpus_of_queries, without_documents
from swsdist.stages.inputs.references import find_references


def documents_of(section: Section, storage: Mapping[str, object], notices: Notices, audio: bool) -> pa.Table:
    """The documents that a section `corpus` names: CORPUS, or PLACED where they are places in recordings.

    Args:
        section, storage: of the config.
        notices: collects oddities of the tables.
        audio: whether recordings are needed.
    """
    speakers = speakers_of(section.speakers, storage)
    return read_documents(section.documents, storage, speakers, notices, section.prefer, section.audio, audio=audio)


class Corpus:
    """The tables that a config's section `corpus` names.

    Args:
        config: its protocol defines how terms are looked up, and the trials.
        notices: collects oddities of the tables.
        audio: whether recordings are needed, not only precomputed frames.
        documents_audio: whether documents need theirs, too; where they are searched by text, they do not.
    """

    def __init__(self, config: Config, notices: Notices, audio: bool, documents_audio: bool = True) -> None:
        self.config, self._notices, self._audio, self._documents_audio = config, notices, audio, documents_audio

    @cached_property
    def documents(self) -> pa.Table:
        """CORPUS, or PLACED where documents are places in recordings."""
        audio = self._audio and self._documents_audio
        return documents_of(self.config.corpus, self.config.storage, self._notices, audio)

    @cached_property
    def placed(self) -> bool:
        """Whether documents are places in recordings."""
        return is_placed(self.documents)

    @cached_property
    def query_inputs(self) -> Corpus | None:
        """The corpus of the queries, if it is another one."""
        corpus = corpus_of_queries(self.config)
        if corpus is None:
            return None
        return Corpus(
            self.config.model_copy(update={"corpus": corpus}), self._notices, self._audio, self._documents_audio
        )

    @cached_property
    def queries(self) -> pa.Table:
        """The query examples in use: QUERIES.

        Raises:
            UserError: the config names none.
        """
        section, query_inputs = self.config.corpus, self.query_inputs
        if section.queries is None:
            raise codes.NO_QUERIES(where="corpus.queries")
        if query_inputs is None:
            return self._queries(section.queries, section.spoken, self.documents)
        return without_documents(self._queries(section.queries, section.spoken, query_inputs.documents), self.config)

    @cached_property
    def terms(self) -> dict[str, str | None]:
        """The text of each query; alternatives are separated by bars."""
        texts: dict[str, dict[str, None]] = {}
        for row in self.queries.select(["query_id", "term"]).to_pylist():
            texts.setdefault(row["query_id"], {}).update({row["term"]: None} if row["term"] else {})
        return {query_id: " | ".join(some) or None for query_id, some in texts.items()}

    @cached_property
    def cohort(self) -> pa.Table:
        """Examples of cohort queries, used only to judge others: QUERIES."""
        return self._queries(str(self.config.corpus.cohort), None, self.documents)

    def _queries(self, source: str, spoken: str | None, documents: pa.Table) -> pa.Table:
        examples, storage, voices = self.config.corpus.examples, self.config.storage, self.config.queries.speak
        table = read_queries(source, documents, examples, storage, self._notices, spoken, audio=self._audio)
        if not voices or METHODS[self.config.search.method].queries == "text":
            return table

        unspoken: list[Mapping[str, Any]] = []  # are rejected, as texts

        def refuse(row: Mapping[str, Any], error: TermError) -> None:
            self._notices.add(codes.UNSPOKEN_QUERIES, where=row["query_id"], count=1, reason=error.message)
            unspoken.append(row)

        rows = spoken_rows(table.to_pylist(), voices, Folder(f"{self.config.run}/spoken", storage), refuse)
        return pa.Table.from_pylist([*rows, *unspoken], QUERIES)

    @cached_property
    def references(self) -> pa.Table | None:
        """True occurrences: REFERENCES; None if the corpus has no references."""
        return self._truth[0]

    @property
    def judged(self) -> pa.Table | None:
        """Places that were judged `yes` or `no`, REFERENCES; None: all other detections are known to be false."""
        return self._truth[2]

    @property
    def tabled(self) -> bool:
        """Whether references were read from a table."""
        return self.has_read("references") and self._truth[1]

    @cached_property
    def _truth(self) -> tuple[pa.Table | None, bool, pa.Table | None]:
        if not self.config.corpus.has_references:
            return None, False, None
        if (truth := find_references(self.config, self.documents, self.queries, self._notices)) is None:
            return None, False, None
        return outside_places(truth.references, self.own_places), truth.tabled, truth.judged

    @cached_property
    def own_places(self) -> SourcePlaces:
        """Places that queries were cut from, if detections there are excluded: for trials in seconds."""
        section, trials = self.config.corpus, protocol_of(self.config.score).trials
        if section.own_places == "keep" or self.query_inputs is not None or section.queries is None or trials != "time":
            return {}
        return source_places(self.queries.to_pylist(), self.documents, by_path=section.own_places == "leave-out")

    def has_read(self, name: str) -> bool:
        """Whether a table has been read."""
        return name in vars(self)
