"""Features of queries of a search without a run, made by the extractors of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from swsdist.config.search import Search
from swsdist.core import errors
from swsdist.core.codes import searcher as codes
from swsdist.features.extractors import from_recipe
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.frames.archive import single_item
from swsdist.methods.query.extraction import Extracted, extract
from swsdist.methods.query.speech_trimming import has_speech
from swsdist.searcher.query_input import Skip, skipping
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks

#: Sample rate, Hz, for detecting speech in a place.
_RATE = 16_000


def extract_queries(
    store: Store,
    extractors: Sequence[Extractor | Precomputed],
    rows: Sequence[dict[str, Any]],
    settings: Search,
    trim: bool,
    skip: Skip | None = None,
) -> Extracted:
    """Features of queries.

    Args:
        store: an open store.
        extractors: of the store (`extractors_of`).
        rows: of QUERIES.
        settings: whose recurrence bounds a query's length.
        trim: trim recordings to their speech, and refuse a place without speech.
        skip: receives each example that cannot be used; None: that is an error.

    Raises:
        DataError: a query cannot be used.
    """
    precomputed = is_precomputed(extractors)
    usable = []
    for row in rows:
        with skipping(skip, str(row["query_id"]), int(str(row["example"]))):
            if precomputed:
                row = _with_precomputed_frames(row, extractors, store)
            elif trim and row["path"] is not None and row["start"] is not None and row["end"] is not None:
                _demand_speech(row, store)
            usable.append(row)
    extracted = extract(usable, extractors, store.folder, settings, trim, settings.dropping(Tracks(store).places))
    typed: dict[tuple[object, object], Any] = {(row["query_id"], row["example"]): row.get("typed") for row in usable}
    for bad in extracted.rejected.to_pylist():
        key = bad["id"], bad["part"]
        where = typed[key] or bad["path"]
        error = errors.DataError(bad["message"], where=where, remedy=bad["remedy"], code=bad["reason"])
        with skipping(skip, *key):
            raise error
    return extracted


def _demand_speech(row: Mapping[str, Any], store: Store) -> None:
    """Refuse a marked place without speech.

    Raises:
        AudioError: no speech in it, or it is not in the recording.
    """
    if not has_speech(row, _RATE, store.folder.storage):
        raise codes.PLACE_WITHOUT_SPEECH(where=row.get("typed") or f"query {row['query_id']}, example {row['example']}")


def extractors_of(store: Store) -> list[Extractor | Precomputed]:
    """The extractors of a store, each once: tracks of one extractor have one recipe."""
    recipes = {track.fingerprint: track.recipe for track in store.manifest.tracks}
    return [from_recipe(_with_moved_models(recipe, store)) for recipe in recipes.values()]


def is_precomputed(extractors: Sequence[Extractor | Precomputed]) -> bool:
    """Whether the features of any track are precomputed."""
    return any(isinstance(extractor, Precomputed) for extractor in extractors)


def _with_moved_models(recipe: dict[str, Any], store: Store) -> dict[str, Any]:
    """A recipe with present paths of models that moved with the store; their fingerprints are checked later."""

    def present_path(path: str | None) -> str | None:
        if path is None:
            return None
        name = f"models/{path.rsplit('/', 1)[-1]}"
        return store.folder.path(name) if "/models/" in path and store.folder.exists(name) else path

    def moved(item: dict[str, Any]) -> dict[str, Any]:
        paths = {key: present_path(path) for key, path in item.get("paths", {}).items()}
        return {**item, **({"paths": paths} if paths else {})}

    moved_recipe = moved(recipe)
    return (
        {**moved_recipe, "transforms": [moved(item) for item in recipe["transforms"]]}
        if "transforms" in recipe
        else moved_recipe
    )


def _with_precomputed_frames(
    row: dict[str, Any], extractors: Sequence[Extractor | Precomputed], store: Store
) -> dict[str, Any]:
    """The row of a query with precomputed frames.

    Raises:
        UserError: it is not a file of frames, or the store has several tracks.
    """
    path = str(row["path"])
    item = single_item(path, store.folder.storage)
    if item is None or len(extractors) > 1:
        if len(extractors) > 1:
            raise codes.PRECOMPUTED_TRACKS(where=path, tracks=len(extractors))
        raise codes.PRECOMPUTED_FRAMES(where=path)
    cut = row["start"] is not None
    return {**row, "key": path, "items": {"": item}, "given": {"": item.identity}, "cut": {"": cut}}
