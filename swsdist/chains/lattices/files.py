"""Lattices or transcripts of files, and documents that only these name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.chains.lattices.options import LatticeInput, LatticesOptions, Part, Source
from swsdist.config import Config
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, SwsdistError
from swsdist.core.text import kept
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import ENDINGS
from swsdist.corpora.kaldi import segment_lines
from swsdist.io.compressed import lines
from swsdist.io.fields import integer, split
from swsdist.io.filesystem import Folder, identify
from swsdist.io.local import is_readable
from swsdist.io.notices import Notices
from swsdist.lattices.collection import LatticeFile, chunks, document_id, find_files, read_file
from swsdist.lattices.lattice import Broken, Lattice, Lattices, Origin
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.pipeline.stage import Context
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.lattice_store import LatticeRow

#: Work of a task that reads files beside recordings: as much as of so many seconds of sound.
READING = 1e-3


def not_ignored(notices: Notices) -> None:
    """Files beside recordings are read: they are not ignored."""
    for key in [key for key in notices.requested if key[0] == corpora_codes.IGNORED_FILES.name]:
        del notices.requested[key]


class FileSource(Source):
    """Lattices or transcripts in files."""

    def __init__(self, inputs: SearchInputs, options: LatticesOptions, frames: SearchInputs | None) -> None:
        super().__init__(inputs, options, frames)
        self.path = options.lattices.path or self.path

    def parts(self) -> Iterator[Part]:
        """A task per few files."""
        _ = self._inputs.corpus.documents  # mistakes in them show before any work
        given, storage = self._options.lattices, self._config.storage
        if self._beside:
            not_ignored(self._inputs.notices)
        words = None if given.words is None else identify(given.words, storage)
        key_parts = [self._options.recipe.matters(), given.frame, list(given.tiers), words]
        for files in chunks(self.files):
            names = [
                [file.path.removeprefix(self.path), file.identity, LATTICE_FORMATS.identity(file.format)]
                for file in files
            ]
            label = files[0].path.rpartition("/")[2] if len(files) == 1 else f"{len(files)} files"
            size = READING if self._beside else max(1, sum(file.size for file in files))
            yield Part([key_parts, names], label, size, Files(files, self.path, self._options.recipe, given))

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Those of the corpus; where files lie beside recordings, only those that have one."""
        rows, refused = super().documents()
        if self._beside:
            given, _ = self.rows()
            rows = [row for row in rows if (row["doc_id"], row["channel"]) in given]
        return rows, refused

    @property
    def _beside(self) -> bool:
        """Whether the files lie beside the recordings."""
        return self._options.lattices.path == self._config.corpus.documents

    def queries(self) -> list[Row]:
        """All, by their texts."""
        return [{**row, "path": None} for row in super().queries()]

    @cached_property
    def files(self) -> list[LatticeFile]:
        """Files, in the order of their names."""

        def skipped(path: str, better: str | None) -> None:
            if not kept(path):
                self._inputs.notices.add(corpora_codes.FILE_NAME_NOT_UTF8, where=repr(path), count=1)
                return
            if better is None and path.rpartition(".")[2].lower() in ENDINGS:
                return  # recordings beside their transcripts, see `_recordings`
            if better is None and "://" not in path and not is_readable(path):
                self._inputs.notices.add(codes.UNREADABLE_LATTICE, where=path, count=1)
            elif better is None:
                self._inputs.notices.inform(codes.NOT_A_LATTICE, where=path, count=1)
            else:
                self._inputs.notices.inform(codes.BETTER_LATTICE, where=path, count=1, format=better)

        return find_files(self.path, self._options.lattices.format, self._config.storage, skipped)

    @cached_property
    def segments(self) -> dict[str, tuple[str, float, float]]:
        """Recording, start and end (s) of utterances; empty: each is a recording."""
        path = self._options.lattices.segments
        return {} if path is None else {name: place for name, place, _ in segment_lines(path, self._config.storage)}

    def table(self) -> pa.Table:
        """The documents that the lattices name, those too that cannot be read: CORPUS, or PLACED with segments; by name.

        Raises:
            DataError: no lattice can be read, or one has no segment.
        """
        rows, first = self.rows()
        if all(row["unread"] for row in rows.values()):
            fault = "it holds none" if first is None else f"{first.where}: {first.message}"
            advice = "see their format" if first is None else first.remedy
            raise codes.NO_READABLE_LATTICE(where=self.path, files=len(self.files), first=fault, advice=advice)
        return pa.Table.from_pylist([rows[key] for key in sorted(rows)], PLACED if self.segments else CORPUS)

    def rows(self) -> tuple[dict[tuple[str, int], dict[str, Any]], SwsdistError | None]:
        """Rows of the table by document, and the first error.

        Raises:
            DataError: a lattice has no segment.
        """
        given, storage = self._options.lattices, self._config.storage
        read = _reader(given, storage)
        audio = self._recordings()
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        first: SwsdistError | None = None
        for file in self.files:
            for lattice in read(file):
                doc_id = document_id(lattice.key, file.path, self.path)
                channel, seconds, unread = 1, None, True
                if isinstance(lattice, Broken):
                    first = first or lattice.error
                if isinstance(lattice, Lattice):
                    channel, seconds, unread = lattice.channel, lattice.length * lattice.tick, False
                elif self.segments and doc_id not in self.segments:
                    continue  # a whole file, of unknown utterances
                row = {"doc_id": doc_id, "channel": channel, "path": audio.get(doc_id, ""), "duration": seconds}
                row["unread"] = unread
                if self.segments:
                    recording, start, end = self._segment(doc_id)
                    row |= {"recording": recording, "start": start, "end": end, "duration": end - start}
                    row["listed"] = str(given.segments)
                rows.setdefault((doc_id, channel), row)["unread"] &= unread
        return rows, first

    def _recordings(self) -> dict[str, str]:
        """Recordings that lie beside their transcripts, by name without ending: they can be heard."""
        folder = Folder(self.path, self._config.storage)
        local = folder.local()
        if local is not None and local.is_file():
            return {}
        stems = ((name.rpartition("."), name) for name in sorted(folder.listing(unreadable=lambda path, error: None)))
        return {stem: folder.path(name) for (stem, _, ending), name in stems if ending.lower() in ENDINGS}

    def _segment(self, doc_id: str) -> tuple[str, float, float]:
        if doc_id not in self.segments:
            raise codes.NO_SEGMENT(where=self._options.lattices.segments, utterance=doc_id)
        return self.segments[doc_id]


class LatticeCorpus(Corpus):
    """A corpus whose documents are those of its lattices."""

    def __init__(self, config: Config, notices: Notices, source: FileSource) -> None:
        super().__init__(config, notices, audio=True)
        self._source = source

    @cached_property
    def documents(self) -> pa.Table:
        """CORPUS, or PLACED with segments."""
        return self._source.table()


class Files(NamedTuple):
    """Files of a task, the folder of all, and how they are read."""

    files: list[LatticeFile]
    path: str
    recipe: Recipe
    given: LatticeInput

    def warm(self, context: Context) -> None:
        """Load the compiled kernels."""
        from swsdist.kernels import lattices  # noqa: F401

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """Read, prepare."""
        read, done, size = _reader(self.given, context.storage), 0, sum(file.size for file in self.files)
        for file in self.files:
            for item in read(file):
                doc_id, channel = document_id(item.key, file.path, self.path), getattr(item, "channel", 1)
                yield LatticeRow(doc_id, channel, file.path, file.identity, _packed(item, self.recipe))
            done += file.size
            context.report(done / max(1, size))


def _reader(given: LatticeInput, storage: Mapping[str, Any]) -> Callable[[LatticeFile], Lattices]:
    """Reads files, with the words of the numbers in them."""
    words = None if given.words is None else read_words(given.words, storage)
    return lambda file: read_file(file.format, Origin(file.path, storage, words, given.frame, given.tiers))


def _packed(item: Lattice | Broken, recipe: Recipe) -> Packed | DataError:
    """A lattice as a store holds it, or why it cannot be used."""
    try:
        if isinstance(item, Broken):
            raise item.error
        return pack(item, recipe)
    except DataError as error:
        return error


def read_words(path: str, storage: Mapping[str, Any]) -> dict[int, str]:
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
