"""Inputs of the chain text: its options, its files, and documents that only lattices name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from swsdist.chains.text.options import TextOptions
from swsdist.config import Config
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import text as codes
from swsdist.core.errors import SwsdistError
from swsdist.core.text import kept
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import ENDINGS
from swsdist.corpora.kaldi_data import segment_lines
from swsdist.io.compressed import lines
from swsdist.io.fields import integer, split
from swsdist.io.filesystem import Folder, identify
from swsdist.io.notices import Notices
from swsdist.lattices.collection import LatticeFile, document_id, find_files, read_file
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import TICK
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.search_inputs import SearchInputs

#: Seconds that a lattice may last longer than its document.
_BEYOND = 0.5


class TextInputs(SearchInputs):
    """The inputs of a search in lattices."""

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> TextInputs:
        """The inputs of a config, shared with equal ones."""
        keys = {"run", "corpus", "index", "score", "options", "storage", "strict", "force"}
        values: dict[str, Any] = config.model_dump(mode="json", include=keys)
        values["trials"] = protocol_of(config.score).trials
        return ledger.memoize(("text", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    @cached_property
    def lattices(self) -> LatticeSource:
        """The lattices of the config."""
        return LatticeSource(self.config, self.notices)

    @cached_property
    def corpus(self) -> Corpus:
        """The tables of the corpus; its documents are those of the lattices, unless they have a path of their own."""
        if self.lattices.options.lattices.path is not None:
            return Corpus(self.config, self.notices, audio=True, documents_audio=False)
        return _LatticeCorpus(self.config, self.notices, self.lattices)

    def check_measured(self, spoken: Mapping[tuple[str, int], float], *, force: bool = True) -> Notices:
        """As of all; and words after the end of their document."""
        result = super().check_measured(spoken, force=force)
        if self.store.manifest is not None:
            table = self.store.open().documents(columns=["doc_id", "frames", "duration"])
            ends = table["frames"].to_numpy() * TICK
            late = np.flatnonzero(ends > table["duration"].to_numpy() + _BEYOND)
            if len(late):
                first = f"{table['doc_id'][late[0]]}, {ends[late[0]]:.1f} s"
                result.add(codes.TEXT_BEYOND_END, where=first, count=len(late))
        return result

    def expected_cells(self) -> float:
        """Terms times milliseconds of documents, from durations."""
        seconds = sum(value or 0.0 for value in self.corpus.documents["duration"].to_pylist())
        return float(self.corpus.queries.num_rows * seconds * 1000)


class LatticeSource:
    """The lattices that a config names.

    Args:
        config: of a run.
        notices: collects files that are left out.
    """

    def __init__(self, config: Config, notices: Notices) -> None:
        self._config, self._notices = config, notices
        self.options = TextOptions.model_validate(checked(CHAINS, "text", config.options, "options"))  # type: ignore[type-var]
        self.path = self.options.lattices.path or config.corpus.documents

    @cached_property
    def files(self) -> list[LatticeFile]:
        """Files, in the order of their names."""

        def skipped(path: str, better: str | None) -> None:
            if not kept(path):
                self._notices.add(corpora_codes.FILE_NAME_NOT_UTF8, where=repr(path), count=1)
                return
            if better is None and path.rpartition(".")[2].lower() in ENDINGS:
                return  # recordings beside their transcripts, see `_recordings`
            if better is None:
                self._notices.inform(codes.NOT_A_LATTICE, where=path, count=1)
            else:
                self._notices.inform(codes.BETTER_LATTICE, where=path, count=1, format=better)

        return find_files(self.path, self.options.lattices.format, self._config.storage, skipped)

    @cached_property
    def segments(self) -> dict[str, tuple[str, float, float]]:
        """Recording, start and end (s) of utterances; empty: each is a recording."""
        path = self.options.lattices.segments
        return {} if path is None else {name: place for name, place, _ in segment_lines(path, self._config.storage)}

    def matters(self) -> list[Any]:
        """All that the lattices of a file depend on besides it, as JSON values."""
        given = self.options.lattices
        words = None if given.words is None else identify(given.words, self._config.storage)
        return [self.options.recipe.matters(), given.frame, list(given.tiers), words]

    def documents(self) -> pa.Table:
        """The documents that the lattices name, those too that cannot be read: CORPUS, or PLACED with segments; by name.

        Raises:
            DataError: no lattice can be read, or one has no segment.
        """
        given, storage = self.options.lattices, self._config.storage
        words = None if given.words is None else read_words(given.words, storage)
        audio = self._recordings()
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        readable = False
        first: SwsdistError | None = None
        for file in self.files:
            for lattice in read_file(file.format, Origin(file.path, storage, words, given.frame, given.tiers)):
                doc_id = document_id(lattice.key, file.path, self.path)
                channel, seconds = 1, None
                if isinstance(lattice, Broken):
                    first = first or lattice.error
                if isinstance(lattice, Lattice):
                    channel, seconds, readable = lattice.channel, lattice.length * lattice.tick, True
                elif self.segments and doc_id not in self.segments:
                    continue  # a whole file, of unknown utterances
                row = {"doc_id": doc_id, "channel": channel, "path": audio.get(doc_id, ""), "duration": seconds}
                if self.segments:
                    recording, start, end = self._segment(doc_id)
                    row |= {"recording": recording, "start": start, "end": end, "duration": end - start}
                    row["listed"] = str(given.segments)
                rows.setdefault((doc_id, channel), row)
        if not readable:
            fault = "it holds none" if first is None else f"{first.where}: {first.message}"
            advice = "see their format" if first is None else first.remedy
            raise codes.NO_READABLE_LATTICE(where=self.path, files=len(self.files), first=fault, advice=advice)
        return pa.Table.from_pylist([rows[key] for key in sorted(rows)], PLACED if self.segments else CORPUS)

    def _recordings(self) -> dict[str, str]:
        """Recordings that lie beside their transcripts, by name without ending: they can be heard."""
        folder = Folder(self.path, self._config.storage)
        local = folder.local()
        if local is not None and local.is_file():
            return {}
        stems = ((name.rpartition("."), name) for name in sorted(folder.listing()))
        return {stem: folder.path(name) for (stem, _, ending), name in stems if ending.lower() in ENDINGS}

    def _segment(self, doc_id: str) -> tuple[str, float, float]:
        if doc_id not in self.segments:
            raise codes.NO_SEGMENT(where=self.options.lattices.segments, utterance=doc_id)
        return self.segments[doc_id]


class _LatticeCorpus(Corpus):
    """A corpus whose documents are those of its lattices."""

    def __init__(self, config: Config, notices: Notices, lattices: LatticeSource) -> None:
        super().__init__(config, notices, audio=True)
        self._lattices = lattices

    @cached_property
    def documents(self) -> pa.Table:
        """CORPUS, or PLACED with segments."""
        return self._lattices.documents()


def read_words(path: str, storage: dict[str, object]) -> dict[int, str]:
    """Labels by number, of Kaldi's words.txt: lines `WORD NUMBER`.

    Raises:
        UserError: there is no such file.
        DataError: a line has another form, or repeats a number.
    """
    result: dict[int, str] = {}
    for line, text in lines(path, storage):
        fields = split(text)
        if not fields:
            continue
        where = f"{path}:{line}"
        if len(fields) != 2:
            raise codes.WORDS_LINE(where=where, text=text.strip())
        number = integer(fields[1], "number", where)
        if number in result:
            raise codes.DUPLICATE_WORD_NUMBER(where=where, number=number, word=result[number])
        result[number] = fields[0]
    return result
