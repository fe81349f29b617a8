"""The features that a config names, with the fitted models that a store has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.core.errors import UserError
from swsdist.core.types import PLACED
from swsdist.corpora.places import Places
from swsdist.features.interface import (
    Extractor,
    Precomputed,
    document_key,
    example_key,
    frame_shift,
    kind_of,
    libraries_of,
)
from swsdist.features.sources import Source, sources_of
from swsdist.io.filesystem import Folder
from swsdist.io.frames.item import MISSING, Item
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.stages.inputs.unfitted_models import UnfittedModel, with_models
from swsdist.store.manifest import Libraries, with_these


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
        """What each track holds: features, posteriors, logits; or given frames that say no more."""
        return {
            track.name: "given features"
            if isinstance(source.extractor, Precomputed) and kind_of(source.extractor) == "features"
            else kind_of(source.extractor)
            for source in self.sources
            for track in source.tracks
        }

    @property
    def extractor_fingerprint(self) -> str:
        """Fingerprint of the first extractor: name, version, options, and content of its files."""
        return self.sources[0].fingerprint


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
            raise codes.DUPLICATE_FRAMES_KEY(
                where="corpus.documents", first=seen[key], second=(row["doc_id"], row["channel"]), key=key
            )
        seen[key] = row["doc_id"], row["channel"]
        row["items"] = {recipe: items.get(key) for recipe, (_, items) in result.items()}
        for recipe, item in row["items"].items():
            row["identities"][recipe] = _identity(item, row["duration"]) + place_of(row)
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
            identity = _identity(item, None)
            if item is None and document is not None:
                item = document["items"][recipe]
                identity = _identity(item, None) + place_of(document)
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


def _identity(item: Item | None, duration: float | None) -> str:
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
