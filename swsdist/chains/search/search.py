"""search: a group of queries in a shard -> candidates, sorted by slot, a row group a bucket."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from swsdist.chains.search.queries import examples_name
from swsdist.errors import DataError
from swsdist.fingerprint import fingerprint
from swsdist.methods.first_pass.landmarks import landmark_documents
from swsdist.methods.query.example import Example
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.store import parquet
from swsdist.store.manifest import Shard, require, state_name
from swsdist.store.reading import Store
from swsdist.types import CANDIDATES


def candidates_name(fingerprint: str) -> str:
    """Where a task's candidates lie in the run folder."""
    return f"tables/candidates/{fingerprint}.parquet"


def _query_frames(group: Mapping[str, Any], how: str) -> int:
    """Frames that are looked for: of all examples, or about as many as a template of each query will have."""
    frames: int = group["frames"]
    return frames * len(group["query_ids"]) // group["examples"] if how == "template" else frames


def _examples(task: Task, context: Context, store: Store, factor: int) -> list[Example]:
    """A group's examples, prepared; they are kept for its next shards, since a template takes time to make."""
    group = task.payload["examples"], task.payload["state"]
    if context.memory.get("group") != group:
        context.memory |= {"group": group, "prepared": {}}
    made: dict[int, list[Example]] = context.memory["prepared"]
    if factor not in made:
        table = parquet.read(context.run, task.payload["examples"])
        made[factor] = prepared(table, store.statistics(), context.config.search, store.manifest.dimension, factor)
    return made[factor]


class Search(Stage):
    """Every group of queries meets every shard once."""

    name = "search"
    version = 2
    phase = "search"
    unit = "cells"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a group and shard."""
        manifest = state.manifest
        assert manifest is not None  # index has come to its end
        settings = state.config.search
        by_shard: dict[str, list[list[Any]]] = {shard.name: [] for shard in manifest.shards}
        columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
        for row in Store(state.store, manifest).documents(columns=columns).to_pylist():
            by_shard[row.pop("shard")].append(list(row.values()))
        frozen = Store(state.store, manifest).statistics()
        used = settings.queries_by, settings.documents_by
        statistics = sorted(
            [*scope, value.mean.tolist(), value.variance.tolist()]
            for scope, value in frozen.items()
            if scope[0] == "collection" or "speaker" in used
        )
        common = fingerprint(settings.matters(), state.config.reduce.buckets, statistics)
        shards = [(shard, fingerprint(shard.name, sorted(by_shard[shard.name]))) for shard in manifest.shards]
        searched: list[tuple[list[Shard], Any]] = [([shard], content) for shard, content in shards]
        if settings.proposer.name != "none" and settings.proposer.over == "collection":
            # The best windows are chosen out of all documents, so a task sees them all.
            searched = [([shard for shard, _ in shards], sorted(content for _, content in shards))]
        elif settings.proposer.name == "quantised":
            everything = sorted(row for rows in by_shard.values() for row in rows)
            landmarks = landmark_documents([(row[0], row[1]) for row in everything])
            common = fingerprint(common, [row for row in everything if (row[0], row[1]) in landmarks])
        groups = state.ended["queries"].receipts
        if groups and not any(group.summary["examples"] for group in groups):
            first = groups[0].rejected[0]
            raise DataError(
                f"none of the {sum(len(group.rejected) for group in groups)} query examples could be used",
                where=state.config.corpus.queries,
                remedy=f"the first: {first['path']}: {first['message']}",
            )
        for group in groups:
            if group.summary["examples"] == 0:
                continue
            for some, content in searched:
                name = fingerprint(self.name, self.version, common, group.fingerprint, content)
                documents = sum(shard.documents for shard in some)
                label = f"{group.summary['examples']} examples in {documents} documents"
                payload = {"examples": examples_name(group.fingerprint), "shards": [shard.name for shard in some]}
                payload["state"] = manifest.fingerprint
                work = _query_frames(group.summary, settings.examples) * sum(shard.frames for shard in some)
                yield Task(self.name, name, label, work, payload)

    def warm(self, context: Context) -> None:
        """Load the compiled kernels, and refuse a matrix product that is not exact."""
        from swsdist.methods.dtw.distance import distance_of
        from swsdist.methods.dtw.search import warm
        from swsdist.methods.dtw.shard import engine_settings

        settings = context.config.search
        # Which kernels there are does not depend on the dimension.
        distance = distance_of(settings, max(term.stop or 1 for term in settings.terms()))
        warm(engine_settings(settings, distance, 0.01))
        if settings.proposer.name != "none":
            visiting = importlib.import_module("swsdist.methods.first_pass.rescoring")
            visiting.warm(distance, settings.candidate_window)
            importlib.import_module("swsdist.kernels.postings")
        if settings.examples == "template":
            importlib.import_module("swsdist.methods.query.template")

    def run(self, task: Task, context: Context) -> Done:
        """The exact search."""
        from swsdist.methods.dtw.distance import distance_of
        from swsdist.methods.dtw.shard import candidate_tables, search_shard
        from swsdist.methods.first_pass.search import search_proposed  # loads numba: planning does without

        settings = context.config.search
        store = Store(context.store, require(context.store, state_name(task.payload["state"])))
        shards = task.payload["shards"]
        if settings.proposer.name == "none":
            examples = _examples(task, context, store, 1)
            documents, found = search_shard(store, shards[0], examples, settings)
            cells = sum(len(example.frames) for example in examples) * store.manifest.shard(shards[0]).frames
        else:
            result = search_proposed(store, shards, lambda factor: _examples(task, context, store, factor), settings)
            documents, examples, found = result.documents, result.examples, result.found
            cells = result.work.cells + result.work.distances + result.indexing.distances
        buckets: list[int] = []

        def tables() -> Iterator[pa.Table]:
            unit = distance_of(settings, store.manifest.dimension).unit
            for number, part in candidate_tables(documents, examples, found, unit, context.config.reduce.buckets):
                buckets.append(number)
                yield part

        output = parquet.publish(context.run, candidates_name(task.fingerprint), tables(), CANDIDATES)
        summary: dict[str, Any] = {"buckets": buckets, "candidates": len(found.cost)}
        if settings.proposer.name == "none":
            summary["fill"] = round(found.fill, 4)  # a proposer's windows fill no lanes
        if saturated := found.saturated + sum(example.saturated for example in examples):
            summary["saturated"] = saturated  # frames of both sides that the distance's cap has shortened
        return Done(
            (output,),
            summary=summary,
            bytes_read=sum(store.manifest.shard(shard).size for shard in shards),
            cells=cells,
        )
