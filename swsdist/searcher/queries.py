"""Queries of a search without a run: recordings, places and tables of them, by the extractors of a store; or texts."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import SHORTEST
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import Tally, load_statistics
from swsdist.config.calibration import Calibrate
from swsdist.config.search import Search
from swsdist.core import errors
from swsdist.core.codes import line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import TermError
from swsdist.core.text import brief, kept
from swsdist.core.types import QUERIES
from swsdist.features.extractors import from_recipe
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.frames.archive import single_item
from swsdist.io.remote.scratch import scratch
from swsdist.lattices.packed import Recipe
from swsdist.lattices.words import spelled, unmarked
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.query import bands, recording_statistics
from swsdist.methods.query.extraction import Cut, Extracted, extract
from swsdist.methods.query.speech_trimming import has_speech
from swsdist.searcher.query_input import (
    Skip,
    StoreDocuments,
    is_table,
    query_rows,
    rows_of_file,
    skipping,
    typed_row,
)
from swsdist.stages.describe import measure_examples
from swsdist.store.lattice_shards import labels_of
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks

#: Sample rate, Hz, for detecting speech in a place.
_RATE = 16_000


class SpokenQueries:
    """Reads recordings into examples, by the extractors of a store.

    Args:
        store: of frames.
        settings: of the search.
        calibrate: steps, some of which measure examples.
        trim: trim recorded queries to their speech; a query or a place without speech is an error.
    """

    def __init__(self, store: Store, settings: Search, calibrate: Calibrate, trim: bool) -> None:
        self._store, self._settings, self._calibrate, self._trim = store, settings, calibrate, trim

    def rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES; see `swsdist.searcher.query_input.query_rows`."""
        return query_rows(queries, self._documents, folder, skip, say)

    def typed(self, query: str) -> dict[str, Any]:
        """The row of one typed query, which cannot be a table."""
        return typed_row(query, self._documents)

    def examples(
        self,
        queries: object,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[pa.Table, dict[str, Tally]]:
        """EXAMPLES, and what steps want to know of them."""
        store = self._store
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            rows = self.rows(queries, skip, say, Path(place))
            if recording_statistics.uses_recording_statistics(self._settings):
                tracks = [track.name for track in store.manifest.tracks]
                rows = recording_statistics.with_statistics(rows, store, tracks)
            extracted = self._extracted(rows, skip)
            statistics_wanted = load_statistics(required_statistics(self._calibrate), "examples")
            trim = self._trim and not self._precomputed
            covariates = measure_examples(
                extracted.examples, store, rows, statistics_wanted, trim, store.folder.storage
            )
        if on_cut is not None:
            for cut in extracted.cuts:
                on_cut(cut)
        return extracted.examples, covariates

    def warnings(self, examples: pa.Table) -> Iterator[str]:
        """Queries that are short, or not searched as too short, and documents of another band."""
        least = self._settings.least_query_frames
        for query in examples.filter(pc.less(examples["frames"], least)).select(["query_id", "frames"]).to_pylist():
            yield line_of(codes.UNSEARCHED_QUERY, query_id=query["query_id"], frames=query["frames"], least=least)
        for query in examples.select(["query_id", "duration"]).to_pylist():
            if query["duration"] < SHORTEST:
                seconds = f"{query['duration']:.2f}"
                yield line_of(codes.SHORT_QUERY, query_id=query["query_id"], seconds=seconds)
        for item in bands.apart(examples, self._bandwidths, bands.reach(self._extractors)):
            documents = self._bandwidths.num_rows
            yield line_of(codes.OTHER_BAND, count=item.documents, of=documents, query=item)

    def why_nothing(self, query_ids: Sequence[str]) -> str:
        """The longest document: the query may be longer."""
        longest = pc.max(self._store.documents(columns=["duration"])["duration"]).as_py() or 0.0
        return f"; the longest document lasts {longest:.1f} s: the query may be longer"

    @cached_property
    def _documents(self) -> StoreDocuments:
        return StoreDocuments(self._store)

    def _extracted(self, rows: Sequence[dict[str, Any]], skip: Skip | None) -> Extracted:
        """Features of rows of QUERIES; `skip` receives each example that cannot be used; without it that is an error."""
        store, settings, usable = self._store, self._settings, []
        for row in rows:
            trimmed = self._trim and None not in (row["path"], row["start"], row["end"])
            with skipping(skip, str(row["query_id"]), int(str(row["example"]))):
                if self._precomputed:
                    row = self._with_precomputed_frames(row)
                elif trimmed and not has_speech(row, _RATE, store.folder.storage):
                    where = row.get("typed") or f"query {row['query_id']}, example {row['example']}"
                    raise codes.PLACE_WITHOUT_SPEECH(where=where)
                usable.append(row)
        places = settings.dropping(Tracks(store).places)
        extracted = extract(usable, self._extractors, store.folder, settings, self._trim, places)
        typed: dict[tuple[object, object], Any] = {
            (row["query_id"], row["example"]): row.get("typed") for row in usable
        }
        for bad in extracted.rejected.to_pylist():
            key = bad["id"], bad["part"]
            where = typed[key] or bad["path"]
            error = errors.DataError(bad["message"], where=where, remedy=bad["remedy"], code=bad["reason"])
            with skipping(skip, *key):
                raise error
        return extracted

    def _with_precomputed_frames(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of a query with precomputed frames.

        Raises:
            UserError: it is not a file of frames, or the store has several tracks.
        """
        path = str(row["path"])
        if len(self._extractors) > 1:
            raise codes.PRECOMPUTED_TRACKS(where=path, tracks=len(self._extractors))
        item = single_item(path, self._store.folder.storage)
        if item is None:
            raise codes.PRECOMPUTED_FRAMES(where=path)
        cut = row["start"] is not None
        return {**row, "key": path, "items": {"": item}, "given": {"": item.identity}, "cut": {"": cut}}

    @cached_property
    def _extractors(self) -> list[Extractor | Precomputed]:
        """Each once: tracks of one extractor have one recipe."""
        recipes = {track.fingerprint: track.recipe for track in self._store.manifest.tracks}
        return [from_recipe(_with_moved_models(recipe, self._store)) for recipe in recipes.values()]

    @cached_property
    def _precomputed(self) -> bool:
        """Whether the features of any track are precomputed."""
        return any(isinstance(extractor, Precomputed) for extractor in self._extractors)

    @cached_property
    def _bandwidths(self) -> pa.Table:
        return self._store.documents(columns=["doc_id", "bandwidth"])


def _with_moved_models(recipe: dict[str, Any], store: Store) -> dict[str, Any]:
    """A recipe with present paths of models that moved with the store; their fingerprints are checked later."""

    def present_path(path: str | None) -> str | None:
        if path is None:
            return None
        name = f"models/{path.rsplit('/', 1)[-1]}"
        return store.folder.path(name) if "/models/" in path and store.folder.exists(name) else path

    def moved(item: dict[str, Any]) -> dict[str, Any]:
        paths = {key: present_path(path) for key, path in item.get("paths", {}).items()}
        return item | ({"paths": paths} if paths else {})

    transforms = [moved(item) for item in recipe.get("transforms", ())]
    return moved(recipe) | ({"transforms": transforms} if "transforms" in recipe else {})


def written_rows(queries: object, store: Store, say: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Rows of QUERIES, one a text: texts, tables (.csv, .tsv, .parquet) of them, or rows that this made."""
    several = isinstance(queries, Iterable) and not isinstance(queries, str) and not hasattr(queries, "columns")
    items: Iterable[Any] = queries if several else [queries]  # type: ignore[assignment]
    rows: dict[tuple[str, int], dict[str, Any]] = {}

    def add(row: dict[str, Any]) -> None:
        query_id, example = key = row["query_id"], row["example"]
        if rows.setdefault(key, row)["term"] != row["term"]:
            raise codes.DUPLICATE_QUERY_EXAMPLE(where="queries", count=2, example=example, query_id=query_id)

    for item in items:
        if isinstance(item, dict):
            add(item)
        elif not isinstance(item, str):
            raise codes.NOT_A_TEXT(where="queries", kind=type(item).__name__)
        elif is_table(item):
            for row in rows_of_file(item, StoreDocuments(store), say):
                add(row)
        else:
            row = dict.fromkeys(QUERIES.names) | {"query_id": item, "example": 1, "channel": 1}
            add(row | {"term": item, "typed": item})
    return list(rows.values())


class WrittenQueries:
    """Reads texts into sequences of labels of a store.

    Args:
        store: of lattices.
        terms: how texts become labels.
    """

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms
        self._texts: dict[str, list[str]] = {}

    def rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES; see `written_rows`."""
        return written_rows(queries, self._store, say)

    def examples(
        self,
        queries: object,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[pa.Table, dict[str, Tally]]:
        """WRITTEN; no step wants to know of texts."""
        result: list[dict[str, Any]] = []
        for row in self.rows(queries, skip, say):
            with skipping(skip, row["query_id"]):
                if not row["term"]:
                    raise codes.QUERY_WITHOUT_TEXT(where=row["query_id"])
                if not kept(row["query_id"] + row["term"]):
                    raise codes.QUERY_TEXT_NOT_UTF8(where=row["query_id"])
                result += self._reader.rows(row)
                self._texts.setdefault(row["query_id"], []).append(row["term"])
        return pa.Table.from_pylist(cheapest(result), WRITTEN), {}

    def warnings(self, examples: pa.Table) -> Iterator[str]:
        """None: nothing is odd about a text."""
        return iter(())

    def why_nothing(self, query_ids: Sequence[str]) -> str:
        """Words that no document holds, and similar ones that some do; and what is not searched as it is meant."""
        reasons, typed = [], " ".join(text for query_id in query_ids for text in self._texts[query_id])
        for label, near in self.missing(query_ids).items():
            near_ones = f" (but {', '.join(near)})" if near else ""
            reasons.append(f"no document holds {brief(label)}{near_ones}")
        if re.search(r"\d", typed):
            reasons.append("numbers may be written in words: four, forty-four")
        if re.search(r"[*?]", typed) and not self._terms.patterns:
            reasons.append(
                "* and ? stand for other letters with --set terms.patterns=true (in Python terms={'patterns': True})"
            )
        return f"; {'; '.join(reasons)}" if reasons else ""

    def missing(self, query_ids: Sequence[str]) -> dict[str, list[str]]:
        """Words of queries that no document holds, each with similar ones that some do."""
        result: dict[str, list[str]] = {}
        for query_id in query_ids:
            try:
                items = (item for text in self._texts[query_id] for item in self._reader.alternatives(text))
                labels = {label for item in items for label in item.labels}
            except TermError:
                continue
            for label in sorted(labels - self._labels):
                if not (self._terms.patterns and ("?" in label or "*" in label)):
                    result[label] = self._reader.similar(label)
        return result

    def remarked(self, text: str) -> list[str]:
        """A text in words of the documents that differ from its own in marks alone, such as those of tone: 16 at most."""
        if self._terms.units == "phones" or self._terms.patterns:
            return []
        words = [self._unmarked.get(unmarked(spelled(word, "folded")), [word]) for word in text.split()]
        return [other for each in islice(product(*words), 16) if (other := " ".join(each)) != text]

    @cached_property
    def _unmarked(self) -> dict[str, list[str]]:
        result: dict[str, list[str]] = {}
        for label in sorted(self._labels):
            result.setdefault(unmarked(label), []).append(label)
        return result

    @cached_property
    def _reader(self) -> TermReader:
        recipe = Recipe.model_validate(self._store.manifest.track().recipe["options"])
        known = self._labels if self._terms.units != "phones" else None
        return TermReader(self._terms, recipe, self._store.folder.storage, known)

    @cached_property
    def _labels(self) -> frozenset[str]:
        return labels_of(self._store.folder, self._store.manifest.shards)
