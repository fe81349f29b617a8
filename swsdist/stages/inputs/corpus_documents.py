"""The current corpus and the content of its store, in columns: documents are compared as tables, and become Python rows
only where a task needs them.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg, views
from swsdist.audio.reader import AudioInfo, probe_all
from swsdist.config import Config
from swsdist.config.model import Corpus, Features, Transforming
from swsdist.config.section import Section
from swsdist.core.arrays import Bools, Ints
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, StorageError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import PLACED
from swsdist.corpora.places import Places
from swsdist.features.extractors import (
    Planned,
    Source,
    create,
    create_transform,
    identity,
    recipe_fingerprint,
    sources_of,
)
from swsdist.features.fitting.files import identity_of
from swsdist.features.fitting.interface import Fitted, Learning, Supervision
from swsdist.features.interface import (
    Extractor,
    Precomputed,
    document_key,
    example_key,
    frame_shift,
    kind_of,
    libraries_of,
)
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.io.frames.item import MISSING, Item
from swsdist.io.local import is_readable
from swsdist.registry.entries import Configured, is_chain
from swsdist.registry.registries import CHAINS, FEATURES, TRANSFORMS
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.store.manifest import File, Libraries, load, with_these
from swsdist.store.reading import keys_of
from swsdist.store.writing import NO_FILE


class UnfittedModel(NamedTuple):
    """A transform or extractor that the chain fits.

    Attributes:
        track: its track, for people.
        place: index of its extractor in the config, and of the transform in it; -1 for the extractor itself.
        planned: the extractor of the frames that it is fitted on.
        fitted, options: the transform or extractor, and its options, without a model.
        file: the model's name in the store: of the extractor, the transforms before, the options that matter, and
            labels.
        labels: path and SHA-256 of the labels for fitting; None if it needs no labels.
    """

    track: str
    place: tuple[int, int]
    planned: Planned
    fitted: Fitted
    options: dict[str, object]
    file: str
    labels: tuple[str, str] | None = None

    @property
    def of_extractor(self) -> bool:
        """Whether it is an extractor."""
        return self.place[1] < 0


def is_fitted(features: Sequence[Features]) -> bool:
    """Whether a config has an extractor or a transform that is fitted."""
    try:
        return any(_extractor(feature) or any(_transform(each) for each in feature.transforms) for feature in features)
    except ConfigError:
        return False  # code that makes the extractor reports the fault


def _transform(transforming: Transforming) -> Fitted | None:
    """The transform, if it needs fitting.

    Raises:
        ConfigError: an option is not valid.
    """
    result = TRANSFORMS[transforming.name].load()
    if not all(hasattr(result, name) for name in ("rounds", "with_model")):
        return None
    transform: Fitted = create_transform(transforming.name, transforming.options)
    return transform if transform.model is None else None


def _extractor(features: Features) -> Learning | None:
    """The extractor, if it needs fitting."""
    if not hasattr(FEATURES[features.name].load(), "learns_from"):
        return None
    result = create(features.name, features.options)
    return result if isinstance(result, Learning) and result.learns else None


def with_models(
    features: Sequence[Features], corpus: Corpus, store: Folder, anew: bool = False
) -> tuple[list[Features], list[UnfittedModel]]:
    """The features with the store's models filled in; and the models to fit, as far as known.

    Models behind an unfitted one are unknown until that is fitted. With `anew` they are the successors of those that the
    store pins; without, too, as far as they are there: their index was interrupted.

    Raises:
        ConfigError: labels are required and missing.
    """
    result, matches, manifest = list(features), [], load(store)
    pinned = [] if manifest is None else [*manifest.models.values()]
    for k, item in enumerate(features):
        for j in range(-1, len(item.transforms)):
            fitted = _extractor(item) if j < 0 else _transform(item.transforms[j])
            if fitted is None:
                continue
            pending = _unfitted_model(result[k], (k, j), fitted, corpus)
            now = next((file for file in pinned if stem_of(file) == stem_of(pending.file)), None)
            after = pending.file if now is None else _successor(now)
            pending = pending._replace(file=after if now is None or anew or store.exists(after) else now)
            matches.append(pending)
            if not store.exists(pending.file):
                break
            result[k] = _with_model(result[k], pending, store)
    return result, matches


def stem_of(file: str) -> str:
    """The common part of the names of a model's file and of its successors."""
    return file.partition(".")[0]


def _successor(file: str) -> str:
    """The file of the model that replaces another, which searches read until the store is indexed with the new one."""
    stem, *numbers, ending = file.split(".")
    return f"{stem}.{int(numbers[0]) + 1 if numbers else 2}.{ending}"


def _unfitted_model(features: Features, place: tuple[int, int], fitted: Fitted, corpus: Corpus) -> UnfittedModel:
    """The unfitted model at a place; everything before it has its models."""
    before = tuple((each.name, dict(each.options)) for each in features.transforms[: max(place[1], 0)])
    of = fitted.learns_from() if isinstance(fitted, Learning) else dict(features.options)
    extractor = create(features.name, of, transforms=before)
    recipe = recipe_fingerprint(identity(extractor))
    options = features.options if place[1] < 0 else features.transforms[place[1]].options
    labels = _labels(fitted, fitted.name, corpus) if isinstance(fitted, Supervision) else None
    # Keeps fingerprints of corpora without parts and labels unchanged.
    rest: list[object] = [labels[1]] if labels else []
    if (part := corpus.parts.train) is not None:
        rest.append(_table(part) if isinstance(part, str) else sorted(part))
    named = fingerprint("fit-transforms", 1, recipe, fitted.name, fitted.version, fitted.matters(), *rest)
    file = f"models/{fitted.name}-{named}.npz"
    return UnfittedModel(
        features.track or features.name,
        place,
        Planned(features.name, of, recipe, before),
        fitted,
        dict(options),
        file,
        labels,
    )


def _table(part: str) -> str:
    try:
        return identity_of(part)
    except ConfigError:
        raise families.UNREADABLE_FILE(
            "the documents of this part cannot be read",
            "name a table with a column doc_id",
            where=f"corpus.parts.train: {part}",
        ) from None


def _labels(fitted: Supervision, name: str, corpus: Corpus) -> tuple[str, str]:
    path = fitted.labels or corpus.alignments.phones
    if path is None:
        raise families.MISSING_INPUT.of(ConfigError)(
            "{transform} is fitted by labels, and the corpus has none",
            (
                "name a CTM of phones there, or as the option `labels` (`swsdist phones` makes one by a "
                "phoneme recogniser), or a model that was fitted elsewhere"
            ),
            where="corpus.alignments.phones",
            transform=name,
        )
    return path, identity_of(path)


def _with_model(features: Features, pending: UnfittedModel, store: Folder) -> Features:
    """An extractor with the store's model for it, or for one of its transforms."""
    options, place = pending.fitted.with_model(store.path(pending.file)), pending.place[1]
    if place < 0:
        return features.model_copy(update={"options": options})
    transforms = list(features.transforms)
    transforms[place] = transforms[place].model_copy(update={"options": options})
    return features.model_copy(update={"transforms": tuple(transforms)})


def pinned_names(fitted: Sequence[UnfittedModel]) -> dict[str, str]:
    """Pinned names and files of a store's models: `pca.TRACK`, and the second of a track `pca.2.TRACK`."""
    result: dict[str, str] = {}
    for item in fitted:
        names = (f"{item.fitted.name}{number}.{item.track}" for number in ("", *(f".{k}" for k in range(2, 100))))
        result[next(name for name in names if name not in result)] = item.file
    return result


class RunFeatures:
    """Extractors and tracks of a config, with the models in the folder of its store.

    Attributes:
        anew: whether models that the store has are fitted again.
    """

    anew = False

    def __init__(self, config: Config, store: Folder) -> None:
        self._config, self._store = config, store

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The config's extractors with the store's models, and the tracks of each."""
        return sources_of(with_models(self._config.features, self._config.corpus, self._store)[0])

    @cached_property
    def from_audio(self) -> bool:
        """Whether an extractor needs recordings."""
        try:
            return any(isinstance(source.extractor, Extractor) for source in self.sources)
        except UserError:
            return True  # code that needs the extractor reports the fault

    @property
    def fitted(self) -> list[UnfittedModel]:
        """Extractors and transforms that the chain fits, as far as their inputs are known."""
        return with_models(self._config.features, self._config.corpus, self._store, self.anew)[1]

    def libraries(self, recorded: Libraries, results: Sequence[Indexed | Extracted]) -> Libraries:
        """Versions of the libraries that a store's parts were made with: recorded ones, and those of finished tasks."""
        used_by = [name for source in self.sources for name in libraries_of(source.extractor)]
        parts = [item.libraries for item in results if item.libraries]
        return with_these(recorded, parts, [name for item in results for name in item.ffmpeg], used_by)

    def has_model(self, unfitted_model: UnfittedModel) -> bool:
        """Whether the store has the model."""
        return self._store.exists(unfitted_model.file)

    @property
    def recipes(self) -> list[list[str]]:
        """Name, and fingerprint of the recipe, of each track."""
        return [[track.name, source.fingerprint] for source in self.sources for track in source.tracks]

    @property
    def tracks(self) -> dict[str, tuple[int, int]]:
        """First column, and the column after the last, of each track, all side by side."""
        result, first = {}, 0
        for track in (track for source in self.sources for track in source.tracks):
            result[track.name] = first, (first := first + track.stop - track.first)
        return result

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each track's frames: features, posteriors, logits; or given frames of unknown kind."""
        return {
            track.name: "given features"
            if isinstance(source.extractor, Precomputed) and kind_of(source.extractor) == "features"
            else kind_of(source.extractor)
            for source in self.sources
            for track in source.tracks
        }


#: Columns of a document in the tasks of an extractor.
_COLUMNS = ("doc_id", "channel", "path", "speaker", "duration")
#: Columns of a document that is a place in a recording.
_PLACE = ("recording", "start", "end", "listed")

_FLOAT32 = 4


def add_items(rows: list[dict[str, Any]], sources: Sequence[Source], storage: Mapping[str, object]) -> None:
    """Add to rows of documents, by extractor, the identities of their precomputed frames (`identities`) and the places
    of these (`items`); and `expected`, their approximate seconds.

    Args:
        rows: doc_id, channel, duration and `identities` of all documents.
        sources: extractors; those of audio are skipped.
        storage: options for s3fs.

    Raises:
        UserError: frames are missing, or two documents have one key.
        DataError: a file of frames is damaged.
    """
    result = _items_by_extractor(sources, False, storage)
    if not result:
        return
    rates = _rates(result)
    channels = Counter(row["doc_id"] for row in rows)
    seen: dict[str, tuple[str, int]] = {}
    for row in rows:
        key = row["key"] = document_key(row["doc_id"], row["channel"], channels[row["doc_id"]] > 1)
        if key in seen:
            raise families.DUPLICATE_NAME.of(UserError)(
                "the documents {first} and {second} both have frames of the key {key!r}",
                "rename one: the key of a channel is DOC_ID-CHANNEL",
                where="corpus.documents",
                first=seen[key],
                second=(row["doc_id"], row["channel"]),
                key=key,
            )
        seen[key] = row["doc_id"], row["channel"]
        row["items"] = {recipe: items.get(key) for recipe, (_, items) in result.items()}
        for recipe, item in row["items"].items():
            row["identities"][recipe] = _item_identity(item, row["duration"]) + place_of(row)
        row["expected"] = _seconds(row["items"], rates)


def add_items_of_examples(
    rows: list[dict[str, Any]],
    sources: Sequence[Source],
    documents: Mapping[tuple[str, int], Mapping[str, Any]],
    storage: Mapping[str, object],
) -> None:
    """Add to rows of examples, by extractor, the identities of their precomputed frames (`given`) and the places of
    these (`items`); and `expected`, their approximate seconds.

    An example without its own frames that is a place in a document, or in a recording of which a document contains that
    place, uses that document's frames: then `cut` is true, and `begins` (s) is the start of the document in its
    recording.

    Args:
        rows: of QUERIES.
        sources: as for `add_items`.
        documents: by key, completed by `add_items`.
        storage: options for s3fs.
    """
    result = _items_by_extractor(sources, True, storage)
    rates, holding = _rates(result), _Holding(documents)
    for row in rows if result else ():
        key, document = example_key(row["query_id"], row["example"]), holding.document(row)
        row["key"], row["items"], row["given"], row["cut"] = key, {}, {}, {}
        for recipe, (_, items) in result.items():
            item = items.get(key)
            row["cut"][recipe] = item is None and document is not None
            identity = _item_identity(item, None)
            if item is None and document is not None:
                item = document["items"][recipe]
                identity = _item_identity(item, None) + place_of(document)
            row["items"][recipe], row["given"][recipe] = item, identity
        if document is not None and document.get("start") is not None and any(row["cut"].values()):
            row["begins"] = document["start"]
        row["expected"] = _seconds(row["items"], rates)


class _Holding:
    """Finds the document that contains an example's place; looks into recordings on demand."""

    def __init__(self, documents: Mapping[tuple[str, int], Mapping[str, Any]]) -> None:
        self._documents = documents

    @cached_property
    def _places(self) -> Places:
        names = ("doc_id", "channel", "recording", "start", "end")
        rows = [{name: row[name] for name in names} for row in self._documents.values() if row.get("start") is not None]
        return Places(pa.Table.from_pylist(rows, pa.schema([PLACED.field(name) for name in names])))

    def document(self, example: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The document that an example names, or the first document of the named recording that contains its place."""
        name, channel, start, end = (example[column] for column in ("doc_id", "channel", "start", "end"))
        if name is None or (name, channel) in self._documents or start is None or end is None:
            return self._documents.get((name, channel))
        stored = self._places.containing(name, channel, start, end)
        return self._documents[stored[0].doc_id, channel] if stored else None


def row_for(source: Source, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a document in a task of one extractor."""
    result = {name: row[name] for name in (*_COLUMNS, *_PLACE) if name in row}
    result["identity"] = row["identities"][source.fingerprint]
    if source.fingerprint in row.get("items", ()):
        item = row["items"][source.fingerprint]
        result |= {"key": row["key"], "item": None if item is None else list(item)}
    return result


def _items_by_extractor(
    sources: Sequence[Source], queries: bool, storage: Mapping[str, object]
) -> dict[str, tuple[Precomputed, Mapping[str, Item]]]:
    """Items of each extractor of precomputed frames."""
    return {
        source.fingerprint: (source.extractor, source.extractor.items(queries, storage))
        for source in sources
        if isinstance(source.extractor, Precomputed)
    }


def place_of(row: Mapping[str, Any]) -> str:
    """The part of a document's identity that is its place in a recording; empty if it is no place."""
    return "" if row.get("start") is None else f":{row['recording']}:{row['start']!r}-{row['end']!r}"


def _item_identity(item: Item | None, duration: float | None) -> str:
    """Identity of an item and of the duration that its frames are compared with."""
    if item is None:
        return MISSING
    return item.identity if duration is None else f"{item.identity} of {duration!r} s"


def _rates(result: Mapping[str, tuple[Precomputed, Mapping[str, Item]]]) -> dict[str, float]:
    """Seconds per byte of each extractor's frames, if their size is informative."""
    return {recipe: frame_shift(given) / (_FLOAT32 * given.dimension) for recipe, (given, _) in result.items()}


def _seconds(items: Mapping[str, Item | None], rates: Mapping[str, float]) -> float:
    """Approximate seconds of the longest item."""
    return max(0.0 if item is None else item.size * rates[recipe] for recipe, item in items.items())


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

    def rows(self, places: Ints | range) -> list[Row]:
        """The rows at some positions; `identities` of each are by extractor."""
        which = pa.array(places, pa.int64())
        result: list[Row] = self.table.take(which).to_pylist()
        identities = {recipe: column.take(which).to_pylist() for recipe, column in self.identities.items()}
        for k, place in enumerate(places):
            result[k]["identities"] = {recipe: values[k] for recipe, values in identities.items()}
            for name, column in self._more.items():
                result[k][name] = column[place]
        return result

    def places(self, keys: pa.Array) -> Ints:
        """Positions of documents with some `keys_of`; -1 if absent."""
        return places_in(keys, self.keys_)

    def pieces(self, places: Ints) -> Iterator[list[Row]]:
        """The rows at some positions, in pieces."""
        for first in range(0, len(places), _PIECE):
            yield self.rows(places[first : first + _PIECE])

    def seconds(self, places: Ints, storage: Mapping[str, object]) -> list[float]:
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
    found = _recording_identities(table, storage) if recipes else pa.nulls(table.num_rows, pa.large_string())
    if len(recipes) == len(sources):
        return CorpusDocuments(table, dict.fromkeys(recipes, found))
    rows, recordings = table.to_pylist(), found.to_pylist()
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


def compare(corpus: CorpusDocuments, state: StoreContents, recipes: Mapping[str, str]) -> tuple[Bools, Bools]:
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
) -> tuple[Bools, Bools]:
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


def still_rejected(corpus: CorpusDocuments, rejected: pa.Table) -> Bools:
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


def places_in(keys: pa.Array, among: pa.Array) -> Ints:
    """A position of each key among others; -1 if absent."""
    if not len(among):
        return np.full(len(keys), -1, np.int64)
    if keys.equals(among):
        return np.arange(len(keys))  # the usual case, store and corpus agree: avoids a table of a million strings
    result = pc.fill_null(pc.index_in(keys, value_set=among), -1)
    return np.asarray(result.to_numpy(zero_copy_only=False), np.int64)


def _at(column: pa.ChunkedArray, places: Ints) -> pa.ChunkedArray:
    """A column at some positions, arbitrary where these are negative; no copy for the complete column in order."""
    if len(places) == len(column) and np.array_equal(places, np.arange(len(column))):
        return column
    return column.take(pa.array(np.maximum(places, 0)))


def _equal(chunked_array: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
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
        is_section = isinstance(section, Section)
        result |= as_text(name, Section.matters(section) if is_section else {"": config.model_dump(mode="json")[name]})
    return result


def stored(config: Config) -> dict[str, object]:
    """The content of a config's store besides its corpus: features, or the lattices that a chain's options make.

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
