"""The method dtw: exact subsequence DTW of spoken examples, everywhere or in windows proposed by a first pass."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config.search import Search
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.fingerprint import fingerprint
from swsdist.methods.method import Result, Unit, tracks_read
from swsdist.methods.query.example import Example, in_parts
from swsdist.methods.query.extraction import prepared
from swsdist.methods.query.speech_trimming import without_dropped
from swsdist.methods.sample import codebook_file, landmark_documents, sample_limit
from swsdist.methods.spans import best_in_spans
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store.manifest import Shard
from swsdist.store.reading import Store, Tracks

if TYPE_CHECKING:
    from swsdist.kernels.distances.interface import Distance

#: Documents whose columns are combined at a time.
_PIECE = 1 << 16

#: For a factor: a group's examples, averaged over that many frames.
Queries = Callable[[int], list[Example]]


class Dtw:
    """The method of a config's section `search`, including its first pass."""

    def __init__(self, settings: Search) -> None:
        if settings.method_options:
            raise families.UNKNOWN_KEY(
                "the method dtw has no {options} in search.method_options",
                "set its options in the section search",
                where="search.method_options",
                options=", ".join(settings.method_options),
            )
        self._settings = settings

    @property
    def _first_pass(self) -> bool:
        return self._settings.first_pass.name != "none"

    def matters(self) -> Any:
        """Distances, recurrence and first pass with versions, and everything else that candidates depend on."""
        return self._settings.matters()

    def plan(self, store: Store) -> Iterator[Unit]:
        """One unit per shard, or one for all shards if a first pass lets all documents compete."""
        settings, shards = self._settings, store.manifest.shards
        columns = ["doc_id", "channel", "sha256", "speaker"]  # independent of the recording's path
        tracks = tracks_read(store, settings)
        table = tracks.documents(columns=[*columns, "shard"], codes=["shard"])
        used = settings.queries_by, settings.documents_by
        common: Any = sorted(
            [*scope, value.mean.tolist(), value.variance.tolist()]
            for scope, value in tracks.statistics().items()
            if scope[0] == "collection" or "speaker" in used
        )
        if len(tracks.recipes) > 1:
            common = [common, tracks.recipes]
        landmarks = self._first_pass and FIRST_PASSES[settings.first_pass.name].landmarks
        pinned = codebook_file(store, settings) if landmarks else None
        if pinned:
            common = [common, pinned]
        if self._first_pass:
            common = [common, sample_limit(settings, store.manifest.counts)]
        # One shard at a time, because Python values of all documents would need much memory.
        contents = dict(_contents(table, [shard.name for shard in shards], columns))
        if self._first_pass and settings.first_pass.over == "collection":
            # The best windows are chosen among all documents, so one task needs them all.
            yield _unit(shards, fingerprint(common, sorted(contents.values())))
            return
        if landmarks and not pinned:
            values = sorted(list(row.values()) for row in table.select(columns).to_pylist())
            chosen = landmark_documents([(row[0], row[1]) for row in values])
            common = [common, [row for row in values if (row[0], row[1]) in chosen]]
        common = fingerprint(common)
        for shard in shards:
            yield _unit((shard,), fingerprint(common, contents[shard.name]))

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """Query frames: of all examples, or an estimate for one template per query."""
        return frames * queries // examples if self._settings.examples == "template" else frames

    def warm(self) -> None:
        """Load the compiled kernels, and reject an inexact matrix product."""
        from swsdist.methods.dtw.search import warm
        from swsdist.methods.dtw.shard import distance_of, engine_settings

        settings, dimension = self.any_columns()
        distance = distance_of(settings, dimension)
        warm(engine_settings(settings, distance, 0.01))
        if self._first_pass:
            rescoring = importlib.import_module("swsdist.methods.first_pass.search")
            rescoring.warm(distance, settings.candidate_window)
            importlib.import_module("swsdist.methods.first_pass.search")
            importlib.import_module("swsdist.kernels.lookup").scanner()
        if settings.examples == "template":
            importlib.import_module("swsdist.methods.query.template")

    def any_columns(self) -> tuple[Search, int]:
        """The section `search` and a dimension for loading kernels, which depend on neither."""
        settings = self._settings
        last = max(stream.columns[1] if stream.columns else 1 for stream in settings.streams) if settings.streams else 1
        placed = settings.placed(
            {term.track: (0, last) for term in settings.terms() if term.track is not None}, alike=False
        )
        return placed, max(term.stop or 1 for term in placed.terms())

    def prepare(self, queries: pa.Table, store: Store) -> Queries:
        """EXAMPLES, normalised and in fixed point; cached, because templates are slow to compute."""
        made: dict[int, list[Example]] = {}
        tracks = Tracks(store)
        statistics, settings = tracks.statistics(), self._settings.placed(tracks.places)
        if (dropping := settings.dropping(tracks.places)) is not None:
            queries = without_dropped(queries, dropping, tracks.dimension)

        def examples(factor: int) -> list[Example]:
            if factor not in made:
                made[factor] = prepared(queries, statistics, settings, tracks.dimension, factor)
            return made[factor]

        return examples

    def search(self, queries: Queries, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """The exact search, everywhere or in the windows of the first pass."""
        from swsdist.methods.dtw.shard import (
            candidate_tables,
            search_shard,
            unit_of,  # loads numba
        )

        examples = queries(1)
        if self._first_pass:
            from swsdist.methods.first_pass.search import search_windows  # compiles additional kernels

            result = search_windows(store, shards, queries, self._settings)
            documents, matches = result.documents, result.matches
            cells, fill = result.work.cells + result.work.distances + result.indexing.distances, None
        else:
            parts, searched, settings = None, examples, self._settings
            if settings.parts:
                least, gap = (round(x / store.manifest.shift) for x in (settings.parts_least, settings.parts_gap))
                parts = in_parts(examples, least, gap)
                searched, examples = parts.searched, parts.results
            documents, matches, frames = search_shard(store, shards[0], searched, self._settings, parts)
            cells = sum(len(example.frames) for example in searched) * frames
            fill = round(matches.fill, 4)
        return Result(
            (table for _, table in candidate_tables(documents, examples, matches, unit_of(self._settings), buckets)),
            len(matches.cost),
            cells,
            fill,
            matches.saturated + sum(example.saturated for example in examples),
        )

    def rescore(self, queries: Queries, store: Store, spans: pa.Table) -> pa.Table:
        """The best path of a query's examples inside each span; the first example, and then the first end, wins ties."""
        from swsdist.kernels.products import local_distances
        from swsdist.kernels.recurrences.interface import create
        from swsdist.methods.curve import traced

        settings = self._settings
        rule = create(settings.recurrence, settings.recurrence_settings())

        def best(example: Example, document: Singles, place: slice, distance: Distance) -> tuple[int, int, int] | None:
            table = local_distances(example.frames, document, distance, place, settings.row_range)
            of = traced(table, rule.trace, rule.option)[0]
            ends = np.flatnonzero(of.frames > 0)
            if not len(ends):
                return None
            end = int(ends[np.argmin(of.cost[ends])])
            return end - int(of.frames[end]) + 1, end, int(of.cost[end])

        return best_in_spans(queries(1), store, spans, settings, best)


def _contents(table: pa.Table, shards: list[str], columns: list[str]) -> Iterator[tuple[str, str]]:
    """A fingerprint of the documents of each shard."""
    codes = pc.fill_null(pc.index_in(table["shard"], value_set=pa.array(shards, pa.string())), len(shards)).to_numpy()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, table = codes[order], table.take(pa.array(order))
    borders = np.searchsorted(codes, np.arange(len(shards) + 1))
    table = table.select(columns)
    begin = end = 0
    piece = table.slice(0, 0)
    for name, (first, last) in zip(shards, pairwise(borders.tolist()), strict=True):
        if last > end:
            begin, end = first, max(last, first + _PIECE)
            piece = table.slice(begin, end - begin).combine_chunks()
        rows = [list(row.values()) for row in piece.slice(first - begin, last - first).to_pylist()]
        yield name, fingerprint(name, sorted(rows))


def _unit(shards: tuple[Shard, ...], matters: str) -> Unit:
    return Unit(
        tuple(shard.name for shard in shards),
        matters,
        sum(shard.documents for shard in shards),
        sum(shard.frames for shard in shards),
    )
