"""The features that a config names, with the fitted models that a store has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.config import Config
from swsdist.config.model import Corpus, Features, Transforming
from swsdist.core.codes import stages as codes
from swsdist.core.errors import ConfigError, UserError
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
from swsdist.io.filesystem import Folder
from swsdist.io.frames.item import MISSING, Item
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.store.manifest import Libraries, load, with_these


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
    """What files of a model and of its successors have in common."""
    return file.partition(".")[0]


def _successor(file: str) -> str:
    """The file of the model that replaces another, which searches read until the store is indexed with the new one."""
    stem, *numbers, ending = file.split(".")
    return f"{stem}.{int(numbers[0]) + 1 if numbers else 2}.{ending}"


def _unfitted_model(features: Features, place: tuple[int, int], fitted: Fitted, corpus: Corpus) -> UnfittedModel:
    """The unfitted model at a place; everything before it has its models."""
    of, before = (
        dict(features.options),
        tuple((each.name, dict(each.options)) for each in features.transforms[: max(place[1], 0)]),
    )
    if isinstance(fitted, Learning):
        of = fitted.learns_from()
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
        raise codes.UNREADABLE_PART(where=f"corpus.parts.train: {part}") from None


def _labels(fitted: Supervision, name: str, corpus: Corpus) -> tuple[str, str]:
    path = fitted.labels or corpus.alignments.phones
    if path is None:
        raise codes.NO_LABELS(where="corpus.alignments.phones", transform=name)
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
