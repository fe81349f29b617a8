"""Spoken queries of a search without a run: recordings, places, and tables of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import SHORTEST
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import Tally, load_statistics
from swsdist.config.calibration import Calibrate
from swsdist.config.search import Search
from swsdist.core.codes import line_of
from swsdist.core.codes import searcher as codes
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.remote.scratch import scratch
from swsdist.methods.query import bands, recording_statistics
from swsdist.methods.query.extraction import Cut
from swsdist.searcher.queries import extract_queries, extractors_of, is_precomputed
from swsdist.searcher.query_input import Skip, StoreDocuments, query_rows, typed_query
from swsdist.stages.describe import measure_examples
from swsdist.store.reading import Store


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
        return typed_query(query, self._documents)

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
            extracted = extract_queries(store, self._extractors, rows, self._settings, self._trim, skip)
            statistics_wanted = load_statistics(required_statistics(self._calibrate), "examples")
            trim = self._trim and not is_precomputed(self._extractors)
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

    @cached_property
    def _extractors(self) -> list[Extractor | Precomputed]:
        return extractors_of(self._store)

    @cached_property
    def _bandwidths(self) -> pa.Table:
        return self._store.documents(columns=["doc_id", "bandwidth"])
