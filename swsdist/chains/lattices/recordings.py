"""Sources of lattices: files, recordings for a recogniser, and stores of frames.

Texts of recordings, which a recogniser aligns, are TXT files or transcripts named after them, or a table (.csv, .tsv),
whose rows of a recording are joined. Of transcripts, such as subtitles, the words are used, not their times.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.formats.ffmpeg import caching
from swsdist.audio.reader import read_blocks
from swsdist.audio.streams import are_permitted, is_command, permitted, sha256
from swsdist.chains.lattices.options import Labeller, LatticeInput, LatticesOptions, Part, Source, Speech
from swsdist.config import Config
from swsdist.core.arrays import Singles
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DataError, SwsdistError, TermError, UserError
from swsdist.core.fingerprint import fingerprint, stable_hash
from swsdist.core.text import kept
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import ENDINGS
from swsdist.corpora.kaldi import demand_permission, segment_lines
from swsdist.features.interface import kind_of
from swsdist.io.compressed import lines
from swsdist.io.fields import integer, split
from swsdist.io.filesystem import Folder, identify, is_remote, locate
from swsdist.io.local import is_readable
from swsdist.io.notices import Notices
from swsdist.io.remote.scratch import scratch
from swsdist.io.tables import names_in, read_table
from swsdist.lattices.collection import LatticeFile, chunks, document_id, find_files, read_file
from swsdist.lattices.decoding import Columns, Decoding, FrameDecoder
from swsdist.lattices.lattice import Broken, Lattice, Lattices, Origin
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.lattices.recognition import VERSION, Recognition, aligned
from swsdist.lattices.terms import TermReader, cheapest
from swsdist.methods.lattice.places import query_row
from swsdist.pipeline.chain import Context
from swsdist.registry.registries import LATTICE_FORMATS, METHODS
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.inputs.state import AFTER_SIZE
from swsdist.stages.lattice_store import LatticeRow, recognised
from swsdist.store.manifest import Track
from swsdist.store.reading import Store, Tracks, pieces_of
from swsdist.store.statistics import MOST_DOCUMENTS, cut
from swsdist.store.writing import WithResult, demand_file, raise_transient, samples_of

#: Work of a task that reads files beside recordings: as much as of so many seconds of sound.
READING = 1e-3


def not_ignored(notices: Notices) -> None:
    """Remove the notice that files beside recordings are ignored: they are read."""
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
        """Documents of the corpus; of files beside recordings, only those with a recording."""
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
                self._inputs.notices.add(
                    families.LEFT_OUT.saying(
                        "{count} file{s} or folder{s} left out: permission denied", "check the permissions (ls -l)"
                    ),
                    where=path,
                    count=1,
                )
            elif better is None:
                self._inputs.notices.inform(
                    families.LEFT_OUT.saying(
                        (
                            "{count} file{s} left out: of no format of lattices, or of another than "
                            "options.lattices.format"
                        ),
                        "remove the files",
                    ),
                    where=path,
                    count=1,
                )
            else:
                self._inputs.notices.inform(
                    families.LEFT_OUT.saying(
                        "{count} file{s} left out: the same transcript is there as {format}",
                        "remove the files, or name a format (options.lattices.format)",
                    ),
                    where=path,
                    count=1,
                    format=better,
                )

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
            advice = "`swsdist help lattice-formats` shows all formats" if first is None else first.remedy
            raise families.EMPTY_INPUT.of(DataError)(
                "none of the {files} files holds a lattice that can be read; the first: {first}",
                "{advice}",
                where=self.path,
                files=len(self.files),
                first=fault,
                advice=advice,
            )
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
            raise families.UNKNOWN_NAME.of(DataError)(
                "no segment of the utterance {utterance}",
                "add it, or leave out options.lattices.segments",
                where=self._options.lattices.segments,
                utterance=doc_id,
            )
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
            raise families.MALFORMED_LINE(
                "the line is not WORD NUMBER: {text}", "give Kaldi's words.txt", where=where, text=text.strip()
            )
        number = integer(fields[1], "number", where)
        if number in result:
            raise families.DUPLICATE_NAME(
                "a second word of the number {number}; the first is {word}",
                "keep one of them",
                where=where,
                number=number,
                word=result[number],
            )
        result[number] = fields[0]
    return result


#: Columns that the lattice of a document depends on, or its row.
_MATTERS = ("doc_id", "channel", "identity")


class RecordingSource(Source):
    """Recordings that are recognised, apart from those of which there are lattices or transcripts."""

    @cached_property
    def _files(self) -> FileSource | None:
        """Those that there are."""
        given = self._options.lattices.path is not None
        return FileSource(self._inputs, self._options, self._frames) if given else None

    @cached_property
    def _given(self) -> dict[tuple[str, int], Row]:
        """Their documents, those too that cannot be read."""
        return {} if self._files is None else self._files.rows()[0]

    @cached_property
    def _names(self) -> set[str]:
        return {doc_id for doc_id, _ in self._given}

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Without other channels of recordings that have a transcript; in a folder of both also what has no recording."""
        rows, refused = super().documents()
        known = {(row["doc_id"], row["channel"]): row for row in rows}
        kept = [row for key, row in known.items() if key in self._given]
        kept += [
            {**known[key], "identity": identity}
            for key, identity in self._identities().items()
            if key[0] not in self._names
        ]
        if self._files is not None and self._files.path == self._config.corpus.documents:
            kept += [{"speaker": None, **row} for key, row in self._given.items() if key not in known]
        return kept, refused

    def parts(self) -> Iterator[Part]:
        """A task per few files, and per shard of recordings."""
        config, options, corpus = self._config, self._options, self._inputs.corpus_documents
        if self._files is not None:
            for part in self._files.parts():
                yield part._replace(work=READING)
            documents = set(self._inputs.corpus.documents["doc_id"].to_pylist())
            if (count := len(documents & self._names)) and self._inputs.is_first("transcripts"):
                others, where = len(documents - self._names), self._files.path
                self._inputs.notices.inform(codes.TRANSCRIPTS_TAKEN, where=where, count=count, others=others)
        key_parts: tuple[Any, ...] = options.recogniser.identities(), options.recipe.matters()
        demand_permission(corpus.table["path"].to_pylist(), config.corpus.documents, config.storage)
        order = sorted((key, place) for place, key in enumerate(corpus) if key[0] not in self._names)
        places = np.array([place for _, place in order], np.int64)
        rows = self._as_recognised(corpus.rows(places))
        lengths = corpus.seconds(places, config.storage)
        matters: tuple[str, ...] = _MATTERS
        if options.texts is not None:
            key_parts = *key_parts, VERSION
            texts, left = texts_of({row["doc_id"] for row in rows}, options.texts, config.storage)
            rows, matters = [{**row, "text": texts.get(row["doc_id"])} for row in rows], (*_MATTERS, "text")
            if left and self._inputs.is_first("texts"):
                self._inputs.notices.add(codes.TEXT_WITHOUT_RECORDING, where=left[0], count=len(left))
        if options.texts is not None or self._files is not None:  # files beside recordings are not ignored
            not_ignored(self._inputs.notices)
        ranges = _ranges(rows, lengths, config)
        for k, chosen in enumerate(ranges):
            some = rows[chosen.start : chosen.stop]
            names = [[row[name] for name in matters] for row in some]
            label = f"shard {k + 1} of {len(ranges)}: {len(some)} documents"
            recordings = Recordings(some, options.recogniser, options.recipe, are_permitted())
            yield Part([*key_parts, names], label, sum(lengths[chosen.start : chosen.stop]), recordings)

    def _identities(self) -> dict[tuple[str, int], str]:
        """Of the recording of each document."""
        corpus = self._inputs.corpus_documents
        (identities,) = corpus.identities.values()
        return dict(zip(corpus, identities.to_pylist(), strict=True))

    def _as_recognised(self, rows: Sequence[Row]) -> list[Row]:
        """Recordings with their identity, those that were moved or copied with that of their recognition: it is not done
        again. Files of the same length are compared by SHA-256.
        """
        state, now = self._inputs.store, self._identities()
        rows = [{**row, "identity": now[row["doc_id"], row["channel"]]} for row in rows]
        if state.manifest is None:
            return rows
        before = {(row["doc_id"], row["channel"]): row for row in recognised(state.open())}
        for row in rows:
            old = before.get((row["doc_id"], row["channel"]))
            if old is not None and (row["identity"] == old["identity"] or self._is_copy(row, old)):
                row["identity"] = old["first"]
        return rows

    def _is_copy(self, row: Row, old: Row) -> bool:
        """Whether a recording has the bytes of the one that was recognised."""
        sizes = {re.sub(AFTER_SIZE, r"\1", each["identity"]) for each in (row, old)}
        return len(sizes) == 1 and bool(old["content"]) and _content(row, self._config.storage) == old["content"]

    def queries(self) -> list[Row]:
        """All, with identities of recordings."""
        return self._inputs.examples

    def speech(self) -> tuple[Speech, list[Any]]:
        """The recogniser."""
        return RecognisedSpeech(self._options.recogniser), self._options.recogniser.identities()


class Recordings(NamedTuple):
    """Documents of a task, whose `text` is aligned if given; how they are recognised; whether commands may be run."""

    documents: list[Row]
    recogniser: Recognition
    recipe: Recipe
    commands: bool

    def warm(self, context: Context) -> None:
        """Load the models and the compiled kernels."""
        from swsdist.kernels import lattices  # noqa: F401

        self.recogniser.loaded(context.granted)

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """Recognise, prepare."""
        recogniser, done = self.recogniser.loaded(context.granted), 0.0

        def reported(blocks: Iterable[Singles]) -> Iterator[Singles]:
            nonlocal done
            for block in blocks:
                yield block
                done += len(block) / recogniser.rate
                context.report(done / max(work, 1e-3))

        with permitted(self.commands), caching():
            for row in self.documents:
                names = row["doc_id"], row["channel"], row["path"], row["identity"]
                try:
                    demand_file(row)
                    if not row.get("text", True):
                        raise codes.NO_TEXT_OF_RECORDING(where=row["doc_id"])
                    read = WithResult(samples_of(row, recogniser.rate, context.run))
                    lattice = recogniser.lattice(row["doc_id"], row["channel"], reported(read))
                    if "text" in row:
                        lattice = aligned(row["text"], lattice, pack(lattice, self.recipe).words)
                    packed, content = pack(lattice, self.recipe), _content(row, context.storage)
                except DataError as error:
                    raise_transient(row, error)
                    yield LatticeRow(*names, error)
                    continue
                yield LatticeRow(*names, packed, read.result, content)


class RecognisedSpeech(NamedTuple):
    """The recognised words of a spoken query are its text, in one or several alternatives.

    It is not trimmed: a recogniser needs the silence around a word.
    """

    recogniser: Recognition

    def labeller(self, context: Context) -> Labeller:
        """Recognises recordings."""
        recogniser = self.recogniser.loaded(context.granted)

        def labelled(example: Row, reader: TermReader) -> tuple[list[dict[str, Any]], float]:
            samples = 0

            def counted() -> Iterator[Singles]:
                nonlocal samples
                place = {key: example[key] for key in ("channel", "start", "end")}
                for block in read_blocks(example["path"], rate=recogniser.rate, storage=context.storage, **place):
                    samples += len(block)
                    yield block

            rows: list[dict[str, Any]] = []
            refused = codes.NOTHING_RECOGNISED(where=example["path"])
            for text in (text for text in recogniser.texts(counted()) if text.labels):
                try:
                    written = reader.rows({**example, "term": " ".join(text.labels)})
                except TermError as error:  # others may be searched
                    refused = error
                else:
                    rows += [{**row, "cost": row["cost"] + text.cost} for row in written]
            if not rows:
                raise refused
            return cheapest(rows), samples / recogniser.rate

        return labelled


def _content(row: Row, storage: Mapping[str, Any]) -> str:
    """SHA-256 of a recording; empty of a place in one, a command, and on S3, where the identity says as much."""
    path = row["path"]
    return "" if row.get("start") is not None or is_command(path) or is_remote(path) else sha256(path, storage)


def _ranges(rows: Sequence[Row], seconds: Sequence[float], config: Config) -> list[range]:
    """Consecutive documents of about `index.shard_hours`, or so many shards. A document ends a shard by a hash of its name, so
    that adding one leaves other shards as they are: recognition is dear.
    """
    target = config.index.shard_hours * 3600
    if config.index.shards is not None:
        return cut(seconds, target, config.index.shards)
    result: list[range] = []
    first, length = 0, 0.0
    for k, row in enumerate(rows):
        length += seconds[k]
        share = stable_hash(f"{row['doc_id']} {row['channel']}") / 2**64
        if share < seconds[k] / target or length >= 4 * target or k + 1 - first == MOST_DOCUMENTS or k + 1 == len(rows):
            result.append(range(first, k + 1))
            first, length = k + 1, 0.0
    return result


_TABLES = (".csv", ".tsv")
#: Columns of a table, the first that there is.
_RECORDING, _TEXT = ("doc_id", "path", "file", "recording", "id"), ("text", "sentence", "transcript")


def texts_of(doc_ids: Set[str], path: str, storage: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The text of each recording that has one, and names of the texts without a recording.

    A text has the name of its recording, with or without suffix; or one of the two names is the end of the other's
    path, and of no other.

    Args:
        doc_ids: recordings.
        path: of a table, a folder or a file, local or `s3://`.
        storage: options for S3.

    Raises:
        UserError: there is no such path, or no text.
        TableError: a table lacks a column, or cannot be read.
    """
    parts: defaultdict[str, list[str]] = defaultdict(list)
    is_table = path.lower().removesuffix(".gz").removesuffix(".xz").endswith(_TABLES)
    for name, text in (_rows_of_table if is_table else _texts_of_files)(path, storage):
        parts[name].append(text)
    texts = {name: " ".join(some).strip() for name, some in parts.items()}
    if not any(texts.values()):
        raise families.EMPTY_INPUT(
            "no texts: neither TXT files nor transcripts of any format, or all are empty",
            "put NAME.txt beside NAME.wav; or name a table of recordings and texts: --text FILE.csv",
            where=path,
        )
    stems = {name: _without_ending(name) for name in texts}
    found = {name: name for name in stems if name in doc_ids}
    for name, stem in stems.items():
        if name not in found and stem in doc_ids:
            found.setdefault(stem, name)
    others: defaultdict[str, list[str]] = defaultdict(list)
    for doc_id in doc_ids - found.keys():
        others[doc_id.rpartition("/")[2]].append(doc_id)
    taken = set(found.values())
    pairs = [
        (doc_id, name)
        for name, stem in stems.items()
        if name not in taken
        for doc_id in others[stem.rpartition("/")[2]]
        if f"/{stem}".endswith(f"/{doc_id}") or f"/{doc_id}".endswith(f"/{stem}")
    ]
    times = Counter(doc_id for doc_id, _ in pairs), Counter(name for _, name in pairs)
    found |= {doc_id: name for doc_id, name in pairs if times[0][doc_id] == times[1][name] == 1}
    left = sorted(stems.keys() - set(found.values()))
    return {doc_id: texts[name] for doc_id, name in found.items()}, left


def _rows_of_table(path: str, storage: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    header = names_in(path, storage)
    name, text = (next((column for column in some if column in header), some[0]) for some in (_RECORDING, _TEXT))
    schema = pa.schema([pa.field(name, pa.string(), False), pa.field(text, pa.string(), text in header)])
    for row in read_table(path, schema, storage=storage).to_pylist():
        yield row[name].strip(), row[text] or ""


def _texts_of_files(path: str, storage: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """TXT files, and transcripts of recordings that have none."""
    alone, name = locate(path, storage)
    folder = alone if alone.exists(name) else Folder(path, storage)
    names = [name] if folder is alone else sorted(folder.listing(unreadable=lambda path, error: None))
    texts = {file[: -len(".txt")]: folder.path(file) for file in names if file.lower().endswith(".txt")}
    for stem, file in texts.items():
        yield stem, "".join(line for _, line in lines(file, storage))
    paths = set(texts.values())
    try:
        files = find_files(path, None, storage, lambda path, better: None)
    except UserError:
        return
    for found in files:
        for item in read_file(found.format, Origin(found.path, storage)):
            doc_id = document_id(item.key, found.path, path)
            if isinstance(item, Lattice) and found.path not in paths and doc_id not in texts:
                yield doc_id, " ".join(word.text for word in pack(item, Recipe()).words)


def _without_ending(name: str) -> str:
    """A name, or path, of a recording without its ending."""
    stem, dot, ending = name.replace("\\", "/").rpartition(".")
    return stem if dot and ending.lower() in ENDINGS else name.replace("\\", "/")


#: Bytes of a document's frames that are held in memory; those of a longer one are put into a temporary file.
_HELD = 1 << 25


class FrameSource(Source):
    """A store of frames, whose posteriors of phones are decoded."""

    @property
    def _store(self) -> Store:
        assert self._frames is not None
        return self._frames.store.open()

    def parts(self) -> Iterator[Part]:
        """A task per shard."""
        assert self._frames is not None
        decoding, store, storage = self._options.decoding, self._store, self._config.storage
        track = store.manifest.track(decoding.track)
        FrameDecoder(decoding, _columns(track), storage)  # reports mistakes
        for shard in store.manifest.shards:
            if track.name not in shard.files:
                continue
            live = fingerprint(sorted(store.live(shard.name, track.name)))
            key_parts = decoding.identities(storage), track.fingerprint, shard.files[track.name].sha256, live
            frames = Frames(self._frames.store.state, shard.name, track.name, decoding)
            yield Part(key_parts, f"{shard.documents} documents", shard.frames * store.manifest.shift, frames)

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Documents of the store of frames."""
        columns = ["doc_id", "channel", "path", "duration", "speaker", "recording", "start"]
        refused = [{**row, "identity": ""} for row in self._store.rejected().drop_columns(["identity"]).to_pylist()]
        return self._store.documents(columns=columns).to_pylist(), refused

    def queries(self) -> list[Row]:
        """Written ones."""
        return [row for row in super().queries() if row["path"] is None]

    def speech(self) -> tuple[Speech, list[Any]]:
        """The decoder."""
        store, decoding = self._store, self._options.decoding
        track = store.manifest.track(decoding.track)
        lattices = METHODS[self._config.search.method].queries == "lattices"
        place = Tracks(store).places[track.name]
        speech = DecodedSpeech(decoding, _columns(track), place, store.manifest.shift, lattices)
        return speech, [track.name, *decoding.identities(self._config.storage)]

    def decoder(self) -> FrameDecoder:
        """A decoder of the extractors' frames, to find mistakes before there are frames.

        Raises:
            StoreError: there is no such track.
            UserError: the track cannot be decoded.
        """
        assert self._frames is not None
        decoding, sources = self._options.decoding, self._frames.features.sources
        tracks = {track.name: (source, track) for source in sources for track in source.tracks}
        name = next(iter(tracks)) if decoding.track is None else decoding.track
        if name not in tracks:
            raise storage_codes.NO_SUCH_STORE_TRACK(where="features", track=name, tracks=", ".join(tracks))
        source, track = tracks[name]
        columns = Columns(source.columns(track), kind_of(source.extractor))
        return FrameDecoder(decoding, columns, self._config.storage)

    def known(self) -> frozenset[str]:
        """The phones of the decoder."""
        return self.decoder().words


class Frames(NamedTuple):
    """A shard of frames, and how it is decoded."""

    store: tuple[str, str]
    shard: str
    track: str
    decoding: Decoding

    def warm(self, context: Context) -> None:
        """Load the compiled kernels."""

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """Decode."""
        store = Store.at(*self.store, storage=context.storage)
        track = store.manifest.track(self.track)
        decoder = FrameDecoder(self.decoding, _columns(track), context.storage)
        shift, done = store.manifest.shift, 0.0
        listed = store.documents(self.shard, ["doc_id", "channel", "path", "identity"], self.track).to_pylist()
        known = {(row["doc_id"], row["channel"]): row for row in listed}
        for blocks in pieces_of(store.blocks(self.shard, track=self.track)):
            with tempfile.SpooledTemporaryFile(_HELD, dir=str(scratch())) as file:
                frames = 0
                for block in blocks:
                    file.write(block.features.astype("<f4", copy=False).tobytes())
                    frames += len(block.features)
                packed = decoder.lattice(partial(_range, file, block.features.shape[1]), frames, shift)
            done += frames * shift
            context.report(done / max(work, 1e-3))
            row = known[block.doc_id, block.channel]
            yield LatticeRow(block.doc_id, block.channel, row["path"], row["identity"], packed)


class DecodedSpeech(NamedTuple):
    """The likeliest phones of a spoken query, or their lattice.

    Attributes:
        decoding, columns: of the track.
        place: first and last column of the track among all.
        shift: s between frames.
        lattices: whether the method takes lattices.
    """

    decoding: Decoding
    columns: Columns
    place: tuple[int, int]
    shift: float
    lattices: bool

    def labeller(self, context: Context) -> Labeller:
        """Decodes rows of EXAMPLES."""
        decoder = FrameDecoder(self.decoding, self.columns, context.storage)
        first, stop = self.place

        def labelled(example: Row, reader: TermReader) -> tuple[list[dict[str, Any]], float]:
            frames = np.frombuffer(example["features"], "<f4").reshape(example["frames"], -1)[:, first:stop]
            if self.lattices:
                packed = decoder.lattice(lambda begin, end: frames[begin:end], len(frames), self.shift)
                if (packed.labels > 0).any():
                    return [query_row(example["query_id"], example["example"], packed)], example["duration"]
            elif labels := decoder.string(frames):
                key = {"query_id": example["query_id"], "example": example["example"]}
                return [{**key, "labels": labels, "cost": 0.0, "patterns": False}], example["duration"]
            raise codes.NOTHING_RECOGNISED(where=example["query_id"])

        return labelled


def _range(file: IO[bytes], width: int, first: int, stop: int) -> Singles:
    """Frames `first` to `stop` of a file of all."""
    file.seek(4 * width * first)
    return np.frombuffer(file.read(4 * width * (stop - first)), "<f4").reshape(-1, width)


def _columns(track: Track) -> Columns:
    return Columns(track.columns, track.kind)
