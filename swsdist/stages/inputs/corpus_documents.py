"""The current corpus and the content of its store, in columns: documents are compared as tables, and become Python rows
only where a task needs them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg, views
from swsdist.audio.reader import AudioInfo, probe_all
from swsdist.config import Config
from swsdist.config.section import Section
from swsdist.core.errors import StorageError
from swsdist.features.extractors import Source
from swsdist.features.interface import Extractor
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.io.local import is_readable
from swsdist.registry.entries import Configured, is_chain
from swsdist.registry.registries import CHAINS
from swsdist.stages.inputs.features import add_items, place_of
from swsdist.store.manifest import File
from swsdist.store.reading import keys_of
from swsdist.store.writing import NO_FILE

#: Endings of recordings whose length was believed or estimated before; they are read again.
_COUNTED = (".mp3", ".oga", ".ogg", ".opus")

#: A row of a table.
Row = dict[str, Any]


def identities(paths: list[str], storage: Any, listed: dict[str, dict[str, Info]] | None = None) -> list[str]:
    """Size and modification of each file, `missing` if it does not exist; on S3 from one listing per folder.

    Args:
        paths: local or `s3://`, or commands.
        storage: options for s3fs.
        listed: folders already listed; new listings are added.
    """
    once = list(dict.fromkeys(paths))  # a recording may contain many places
    listed = {} if listed is None else listed
    far = [path for path in once if not streams.is_command(path) and is_remote(path)]
    folders = sorted({locate(path, storage)[0].root for path in far})
    for root in folders if len(folders) * 8 < len(once) else ():
        if root not in listed:
            listed[root] = Folder(root, storage).listing()
    reader = ffmpeg.ABSENT if ffmpeg.program() is None else ffmpeg.READER
    identity_of = partial(_identity, storage=storage, listed=listed, reader=reader)
    with ThreadPoolExecutor(16) as pool:  # without a remote path no thread starts
        result = dict(zip(once, (pool.map if far else map)(identity_of, once), strict=True))
    return [result[path] for path in paths]


def _identity(path: str, storage: Any, listed: Mapping[str, Mapping[str, Info]], reader: str) -> str:
    """The identity of a command, a file or a place in an archive; `reader` ends that of what only ffmpeg decodes."""
    if streams.is_command(path):
        identity = streams.identity(path)
    else:
        place, byte = views.split(path)
        identity = _of_file(place, storage, listed)
        identity = identity if byte is None or identity.startswith(NO_FILE) else f"{identity}:{byte}"
    if not identity[0].isdigit():
        return identity
    if ffmpeg.is_for(path):
        return identity + reader
    return identity + ffmpeg.READER if path.lower().endswith(_COUNTED) else identity


def _of_file(path: str, storage: Any, listed: Mapping[str, Mapping[str, Info]]) -> str:
    """The identity of a file, or what is wrong with it."""
    if "://" not in path and (identity := _readable(path)) is not None:
        return identity
    if is_remote(path):
        folder, name = locate(path, storage)
        if folder.root in listed:
            return listed[folder.root][name].identity if name in listed[folder.root] else "missing"
    try:
        identity = identify(path, storage)
    except FileNotFoundError:
        return _no_file(path) if not is_remote(path) and Path(path).exists() else "missing"
    except (StorageError, OSError) as error:  # a fault of one file; faults that affect all files end the run
        return f"unreadable: {as_file_fault(error, path).message}"
    if is_remote(path):
        return identity
    if not Path(path).is_file():
        return _no_file(path)
    # Identities ignore permissions: with permissions corrected the identity differs, and the file is tried again.
    return identity if is_readable(path) else "unreadable: permission denied"


def _readable(path: str) -> str | None:
    """The identity of an ordinary local file, as `identify` gives it; None if it is unusual in any way."""
    try:
        status = os.stat(path)  # noqa: PTH116 (faster than pathlib for a million files)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or not is_readable(path):
        return None
    return f"{status.st_size}:{status.st_mtime_ns}"


def _no_file(path: str) -> str:
    return f"unreadable: {'a folder' if Path(path).is_dir() else 'a pipe or a device'}, not a file"


def document_seconds(rows: list[dict[str, Any]], storage: Any) -> list[float]:
    """Seconds of each document: from the table, else the header, else roughly from its precomputed frames; 0 if unknown
    (indexing will report why).

    A command is not run: it counts as a minute.
    """

    def is_probed(row: dict[str, Any]) -> bool:
        return row["duration"] is None and bool(row["path"]) and not streams.is_command(row["path"])

    headers = probe_all((row["path"] for row in rows if is_probed(row)), storage)

    def seconds_of(row: dict[str, Any]) -> float:
        if row["duration"] is not None:
            return float(row["duration"])
        if not row["path"]:
            return float(row.get("expected", 0.0))
        if not is_probed(row):
            return 60.0
        info = headers[row["path"]]
        return info.duration if isinstance(info, AudioInfo) else 0.0

    return list(map(seconds_of, rows))


def parts_of(seconds: Iterable[float], least: float) -> Iterator[list[int]]:
    """Indices of consecutive documents, in parts of at least `least` seconds; the last part may be shorter."""
    part: list[int] = []
    total = 0.0
    for k, length in enumerate(seconds):
        part.append(k)
        total += length
        if total >= least:
            yield part
            part, total = [], 0.0
    if part:
        yield part


Key = tuple[str, int]

#: Rows converted at a time.
_PIECE = 1 << 13


class CorpusDocuments(Mapping[Key, Row]):
    """The documents of a corpus by key (doc_id, channel), in its order; each a row of plain values.

    Args:
        table: doc_id, channel, path, speaker, duration, and the place of documents that are places.
        identities: by extractor (fingerprint), the identity of the source of each document's frames.
        more: further columns, for precomputed frames.
    """

    def __init__(
        self, table: pa.Table, identities: Mapping[str, pa.Array], more: Mapping[str, Sequence[object]] | None = None
    ) -> None:
        self.table = table
        self.identities = identities
        self._more = more or {}
        self.keys_ = keys_of(table["doc_id"], table["channel"])
        self._at: dict[Key, int] | None = None

    def rows(self, places: NDArray[np.int64] | range) -> list[Row]:
        """The rows at some positions; `identities` of each are by extractor."""
        which = pa.array(places, pa.int64())
        result: list[Row] = self.table.take(which).to_pylist()
        identities = {recipe: column.take(which).to_pylist() for recipe, column in self.identities.items()}
        for k, place in enumerate(places):
            result[k]["identities"] = {recipe: values[k] for recipe, values in identities.items()}
            for name, column in self._more.items():
                result[k][name] = column[place]
        return result

    def places(self, keys: pa.Array) -> NDArray[np.int64]:
        """Positions of documents with some `keys_of`; -1 if absent."""
        return places_in(keys, self.keys_)

    def pieces(self, places: NDArray[np.int64]) -> Iterator[list[Row]]:
        """The rows at some positions, in pieces."""
        for first in range(0, len(places), _PIECE):
            yield self.rows(places[first : first + _PIECE])

    def seconds(self, places: NDArray[np.int64], storage: Mapping[str, object]) -> list[float]:
        """Durations of documents, s; see `document_seconds`."""
        stated = self.table["duration"].take(pa.array(places))
        result = np.array(pc.fill_null(stated, np.nan).to_numpy(), np.float64)
        unknown = np.flatnonzero(np.isnan(result))
        if len(unknown):
            some = self.pieces(places[unknown])
            result[unknown] = [length for rows in some for length in document_seconds(rows, storage)]
        return list(map(float, result))

    def __getitem__(self, key: Key) -> Row:
        if self._at is None:
            names = zip(self.table["doc_id"].to_pylist(), self.table["channel"].to_pylist(), strict=True)
            self._at = {name: place for place, name in enumerate(names)}
        place = self._at[key]
        return self.rows(range(place, place + 1))[0]

    def __iter__(self) -> Iterator[Key]:
        for first in range(0, len(self), _PIECE):
            some = self.table.slice(first, _PIECE)
            yield from zip(some["doc_id"].to_pylist(), some["channel"].to_pylist(), strict=True)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def values(self) -> ValuesView[Row]:
        """All rows, made in pieces."""
        return _Rows(self)


def corpus_documents_of(table: pa.Table, sources: Sequence[Source], storage: Mapping[str, object]) -> CorpusDocuments:
    """The documents of a table, with current identities of the sources of their frames."""
    recipes = [source.fingerprint for source in sources if isinstance(source.extractor, Extractor)]
    recording_identities = (
        _recording_identities(table, storage) if recipes else pa.nulls(table.num_rows, pa.large_string())
    )
    if len(recipes) == len(sources):
        return CorpusDocuments(table, dict.fromkeys(recipes, recording_identities))
    rows, recordings = table.to_pylist(), recording_identities.to_pylist()
    for k, row in enumerate(rows):
        row["identities"] = dict.fromkeys(recipes, recordings[k])
    add_items(rows, sources, storage)
    columns = {
        source.fingerprint: pa.array([row["identities"][source.fingerprint] for row in rows], pa.large_string())
        for source in sources
    }
    more = {name: [row[name] for row in rows] for name in ("key", "items", "expected")}
    return CorpusDocuments(table, columns, more)


def _recording_identities(table: pa.Table, storage: Mapping[str, object]) -> pa.Array:
    """The identity of each document's recording, and of its place in it."""
    where = [name for name in ("recording", "start", "end") if name in table.column_names]
    result, listed = [pa.array([], pa.large_string())], dict[str, dict[str, Info]]()
    for first in range(0, table.num_rows, _PIECE):
        some = table.slice(first, _PIECE)
        found = identities(some["path"].to_pylist(), storage, listed)
        if where:
            places = map(place_of, some.select(where).to_pylist())
            found = [
                item if item.startswith(NO_FILE) else item + place for item, place in zip(found, places, strict=True)
            ]
        result.append(pa.array(found, pa.large_string()))
    return pa.concat_arrays(result)


class _Rows(ValuesView[Row]):
    _mapping: CorpusDocuments

    def __iter__(self) -> Iterator[Row]:
        corpus = self._mapping
        for first in range(0, len(corpus), _PIECE):
            yield from corpus.rows(range(first, min(first + _PIECE, len(corpus))))


@dataclass
class StoreContents:
    """The contents of a store for a config's tracks.

    Attributes:
        kept: names of tracks that match the config.
        files: existing files, by shard with any left, and by track.
        lacking: by shard: extractors whose frames are missing.
        tables: by track of `kept`: key, path, identity, speaker and shard of each stored document.
        rejected: rejected documents: `id`, `part`, `path`, and `identity` at rejection.
        left: it has tracks that the config no longer names, or names for another extractor.
    """

    kept: list[str] = field(default_factory=list)
    files: dict[str, dict[str, File]] = field(default_factory=dict)
    lacking: dict[str, list[Source]] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    rejected: pa.Table | None = None
    left: bool = False

    def documents_of(self, shards: Iterable[str]) -> dict[str, pa.Array]:
        """`keys_of` the documents of some shards, by shard: those of the first track, then those only in later ones."""
        names = list(shards)
        columns = ["doc_id", "channel", "shard"]
        tables = [table.select(columns) for table in self.tables.values()] if names else []
        some = [table.filter(pc.is_in(table["shard"], pa.array(names, pa.string()))) for table in tables]
        result: dict[str, pa.Array] = {}
        for name in names:
            in_shard = [table.filter(pc.equal(table["shard"], name)) for table in some]
            result[name] = pc.unique(pa.concat_arrays([keys_of(item["doc_id"], item["channel"]) for item in in_shard]))
        return result

    @property
    def stored(self) -> pa.Array:
        """Unique keys of all stored documents."""
        result = [keys_of(table["doc_id"], table["channel"]) for table in self.tables.values()]
        if len(result) == 1:
            return result[0]  # a track has each document once
        return pc.unique(pa.concat_arrays(result)) if result else pa.array([], pa.large_string())

    @property
    def keys(self) -> pa.Array:
        """Unique keys of all stored and rejected documents."""
        if self.rejected is None or not self.rejected.num_rows:
            return self.stored
        return pc.unique(pa.concat_arrays([self.stored, keys_of(self.rejected["id"], self.rejected["part"])]))


def compare(
    corpus: CorpusDocuments, state: StoreContents, recipes: Mapping[str, str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each document of the corpus: whether a store has it, and whether it has the current source of its frames.

    Args:
        corpus: its documents.
        state: of the store.
        recipes: fingerprint of the recipe of each track.
    """
    present, same = compare_tables(corpus, state.tables, recipes)
    if state.rejected is not None and state.rejected.num_rows:
        where = corpus.places(keys_of(state.rejected["id"], state.rejected["part"]))
        there = np.flatnonzero(where >= 0)
        present[where[there]] = True
        same[where[there]] = still_rejected(corpus, state.rejected)[there]
    return present, same


def compare_tables(
    corpus: CorpusDocuments, tables: Mapping[str, pa.Table], recipes: Mapping[str, str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """`compare` for the documents of all tracks; path and speaker are those of the first track with the document."""
    present, same = np.zeros(len(corpus), bool), np.ones(len(corpus), bool)
    identified = {recipe: np.zeros(len(corpus), bool) for recipe in recipes.values()}
    for name, table in tables.items():
        at = places_in(corpus.keys_, keys_of(table["doc_id"], table["channel"]))
        there = at >= 0
        if not there.any():
            continue
        fresh = there & ~present
        if fresh.any():
            for column in ("path", "speaker"):
                same &= ~fresh | _equal(corpus.table[column], _at(table[column], at))
        recipe = recipes[name]
        fresh = there & ~identified[recipe]
        current = corpus.identities.get(recipe)
        if fresh.any():
            equal = _equal(current, _at(table["identity"], at)) if current is not None else np.zeros(len(same), bool)
            same &= ~fresh | equal
        identified[recipe] |= there
        present |= there
    return present, same & present


def still_rejected(corpus: CorpusDocuments, rejected: pa.Table) -> NDArray[np.bool_]:
    """For each rejected document (`id`, `part`, `path`, `identity`), whether the corpus has it with the same rejected
    file: its recording, or the file of its precomputed frames.
    """
    where = corpus.places(keys_of(rejected["id"], rejected["part"]))
    result = np.zeros(len(where), bool)
    there = np.flatnonzero(where >= 0)
    refusals = rejected.select(["path", "identity"]).take(pa.array(there)).to_pylist()
    for k, refusal, row in zip(there, refusals, corpus.rows(where[there]), strict=True):
        files = (row["path"], *(item.file for item in row.get("items", {}).values() if item is not None))
        result[k] = refusal["path"] in files and refusal["identity"] in row["identities"].values()
    return result


def places_in(keys: pa.Array, among: pa.Array) -> NDArray[np.int64]:
    """A position of each key among others; -1 if absent."""
    if not len(among):
        return np.full(len(keys), -1, np.int64)
    if keys.equals(among):
        return np.arange(len(keys))  # the usual case, store and corpus agree: avoids a table of a million strings
    result = pc.fill_null(pc.index_in(keys, value_set=among), -1)
    return np.asarray(result.to_numpy(zero_copy_only=False), np.int64)


def _at(column: pa.ChunkedArray, places: NDArray[np.int64]) -> pa.ChunkedArray:
    """A column at some positions, arbitrary where these are negative; no copy for the complete column in order."""
    if len(places) == len(column) and np.array_equal(places, np.arange(len(column))):
        return column
    return column.take(pa.array(np.maximum(places, 0)))


def _equal(chunked_array: pa.ChunkedArray, other: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where two columns of strings are equal; null equals null."""
    equal = pc.equal(chunked_array, other)
    both = pc.and_(pc.is_null(chunked_array), pc.is_null(other))
    result = pc.fill_null(pc.or_kleene(equal, both), False)
    return np.asarray(
        result.to_numpy(zero_copy_only=False) if isinstance(result, pa.Array) else result.to_numpy(), bool
    )


#: Keys whose change gives scores another meaning, so earlier thresholds become invalid.
_OF_SCORES = ("features", "search.", "reduce.merge", "calibrate.steps", "calibrate.options", "calibrate.alpha")


def settings_of(config: Config) -> dict[str, str]:
    """Every key that results depend on, spelled as in the config, with its value as text."""
    result: dict[str, str] = {}
    searching: tuple[str, ...] = ("features", "queries", "search", "reduce")
    if is_chain(CHAINS, config.chain, "joined"):
        searching = ()
    for name in ("corpus", "chain", "options", *searching, "calibrate", "score"):
        section = getattr(config, name)
        # A section may define `matters`, which adds versions and resolves names.
        values = (
            Section.matters(section) if isinstance(section, Section) else {"": config.model_dump(mode="json")[name]}
        )
        result |= as_text(name, values)
    return result


def stored(config: Config) -> dict[str, object]:
    """What the store of a config holds besides its corpus: features, or the lattices that a chain's options make.

    Of a chain that makes a second store of it and searches that it holds features alone.
    """
    entry = CHAINS[config.chain]
    values = config.model_dump(mode="json", include={"features"})
    takes_options = isinstance(entry, Configured) and bool(entry.options)
    beside = config.chain == Config.model_fields["chain"].default  # its options make what is not searched
    if takes_options and config.searched_store == config.store and not beside:
        values |= {"chain": config.chain, "options": config.options}
    return values


def as_text(name: str, values: Mapping[str, object]) -> dict[str, str]:
    """Full keys of a section, with their values as text."""
    return {
        f"{name}.{key}" if key else name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


def scores_of(config: Config) -> dict[str, str]:
    """The subset of settings that scores depend on."""
    return {key: value for key, value in settings_of(config).items() if key.startswith(_OF_SCORES)}


def score_differences(current: Mapping[str, str], fitted: object) -> list[str]:
    """Differences between current settings and those of the fitted scores; empty if the latter are unknown.

    Args:
        current: from `scores_of`, or a subset.
        fitted: the settings at fitting.
    """
    if not isinstance(fitted, dict):
        return []
    return [
        f"{key} was {fitted[key]}, here {value}"
        for key, value in current.items()
        if key in fitted and fitted[key] != value
    ]


def describe(extractor: Mapping[str, Any]) -> str:
    """Describe an extractor and its transforms in one line."""

    def text_of(mapping: Mapping[str, Any]) -> str:
        options = ", ".join(f"{key}={value}" for key, value in mapping["options"].items())
        return f"{mapping['name']} version {mapping['version']} ({options})"

    kept = f", kept as {extractor['dtype']}" if "dtype" in extractor else ""
    return ", then ".join(map(text_of, [extractor, *extractor.get("transforms", ())])) + kept
