"""search: a group of queries in a shard -> candidates, sorted by slot, a row group a bucket."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Extracted, Searched
from swsdist.config import Config
from swsdist.config.search import Search as Settings
from swsdist.errors import DataError
from swsdist.fingerprint import fingerprint
from swsdist.methods.first_pass.landmarks import landmark_documents
from swsdist.methods.query.example import Example
from swsdist.methods.query.extraction import prepared
from swsdist.needs import Needs
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.registries import FIRST_PASSES
from swsdist.store.manifest import Shard, require, state_name
from swsdist.store.reading import Store
from swsdist.types import CANDIDATES


def _query_frames(group: Extracted, how: str) -> int:
    """Frames that are looked for: of all examples, or about as many as a template of each query will have."""
    return group.frames * len(group.query_ids) // group.examples if how == "template" else group.frames


def _examples(task: Task, context: Context, store: Store, settings: Settings, factor: int) -> list[Example]:
    """A group's examples, prepared; they are kept for its next shards, since a template takes time to make."""
    group = task.payload["examples"], task.payload["state"], fingerprint(settings.matters())
    if context.memory.get("group") != group:
        context.memory |= {"group": group, "prepared": {}}
    made: dict[int, list[Example]] = context.memory["prepared"]
    if factor not in made:
        table = context.read(task.payload["examples"])
        made[factor] = prepared(table, store.statistics(), settings, store.manifest.dimension, factor)
    return made[factor]


class Search(Stage):
    """Every group of queries meets every shard once."""

    name = "search"
    version = 1
    unit = "cells"
    tables = {"candidates": Table(CANDIDATES, order=("example", "doc_id", "channel", "end_frame"))}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """A GPU, where the config searches on one."""
        return (Needs(gpus=1.0),) if config.search.device == "cuda" else (Needs(),)

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a group and shard."""
        own, settings = inputs.own(SearchInputs), inputs.config.search
        store = own.open_store()
        manifest = store.manifest
        by_shard: dict[str, list[list[Any]]] = {shard.name: [] for shard in manifest.shards}
        columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
        for row in store.documents(columns=columns).to_pylist():
            by_shard[row.pop("shard")].append(list(row.values()))
        used = settings.queries_by, settings.documents_by
        statistics = sorted(
            [*scope, value.mean.tolist(), value.variance.tolist()]
            for scope, value in store.statistics().items()
            if scope[0] == "collection" or "speaker" in used
        )
        common = fingerprint(settings.matters(), inputs.config.reduce.buckets, statistics)
        shards = [(shard, fingerprint(shard.name, sorted(by_shard[shard.name]))) for shard in manifest.shards]
        searched: list[tuple[list[Shard], Any]] = [([shard], content) for shard, content in shards]
        if settings.proposer.name != "none" and settings.proposer.over == "collection":
            # The best windows are chosen out of all documents, so a task sees them all.
            searched = [([shard for shard, _ in shards], sorted(content for _, content in shards))]
        elif settings.proposer.name != "none" and FIRST_PASSES[settings.proposer.name].landmarks:
            everything = sorted(row for rows in by_shard.values() for row in rows)
            landmarks = landmark_documents([(row[0], row[1]) for row in everything])
            common = fingerprint(common, [row for row in everything if (row[0], row[1]) in landmarks])
        groups = inputs.told("examples", Extracted)
        if groups and not any(group.examples for _, group in groups):
            first = groups[0][0].rejected[0]
            raise DataError(
                f"none of the {sum(len(receipt.rejected) for receipt, _ in groups)} query examples could be used",
                where=inputs.config.corpus.queries,
                remedy=f"the first: {first['path']}: {first['message']}",
            )
        payload = {
            "store": own.store.root,
            "state": manifest.fingerprint,
            "search": settings.model_dump(mode="json"),
            "buckets": inputs.config.reduce.buckets,
        }
        for receipt, group in groups:
            if group.examples == 0:
                continue
            (part,) = receipt.parts("examples")
            for some, content in searched:
                documents = sum(shard.documents for shard in some)
                yield inputs.task(
                    common,
                    receipt.fingerprint,
                    content,
                    label=f"{group.examples} examples in {documents} documents",
                    work=_query_frames(group, settings.examples) * sum(shard.frames for shard in some),
                    payload={**payload, "examples": part.name, "shards": [shard.name for shard in some]},
                )

    def expected(self, inputs: Inputs) -> float:
        """Query frames times document frames, from durations."""
        from swsdist.chains.search.index import document_seconds
        from swsdist.features.registry import frame_shift

        own, storage = inputs.own(SearchInputs), inputs.config.storage
        documents = document_seconds(own.documents.to_pylist(), storage)
        queries = own.queries.to_pylist()
        whole = [row for row in queries if row["start"] is None or row["end"] is None]
        cut = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
        cut += sum(document_seconds([{**row, "duration": None} for row in whole], storage))
        shift = frame_shift(own.extractor)
        return float(cut / shift * sum(documents) / shift)

    def warm(self, task: Task, context: Context) -> None:
        """Load the compiled kernels, and refuse a matrix product that is not exact."""
        from swsdist.methods.dtw.distance import distance_of
        from swsdist.methods.dtw.search import warm
        from swsdist.methods.dtw.shard import engine_settings

        settings = Settings.model_validate(task.payload["search"])
        # Which kernels there are does not depend on the dimension.
        distance = distance_of(settings, max(term.stop or 1 for term in settings.terms()))
        warm(engine_settings(settings, distance, 0.01))
        if settings.proposer.name != "none":
            rescoring = importlib.import_module("swsdist.methods.first_pass.rescoring")
            rescoring.warm(distance, settings.candidate_window)
            importlib.import_module("swsdist.kernels.postings")
        if settings.examples == "template":
            importlib.import_module("swsdist.methods.query.template")

    def run(self, task: Task, context: Context) -> Done:
        """The exact search."""
        from swsdist.methods.dtw.shard import candidate_tables, search_shard
        from swsdist.methods.first_pass.search import search_proposed  # loads numba: planning does without

        settings = Settings.model_validate(task.payload["search"])
        folder = context.folder(task) if not task.payload["store"] else _folder(context, task.payload["store"])
        store = Store(folder, require(folder, state_name(task.payload["state"])))
        shards = task.payload["shards"]
        if settings.proposer.name == "none":
            examples = _examples(task, context, store, settings, 1)
            documents, found = search_shard(store, shards[0], examples, settings)
            cells = sum(len(example.frames) for example in examples) * store.manifest.shard(shards[0]).frames
        else:
            result = search_proposed(
                store, shards, lambda factor: _examples(task, context, store, settings, factor), settings
            )
            documents, examples, found = result.documents, result.examples, result.found
            cells = result.work.cells + result.work.distances + result.indexing.distances
        slots: list[int] = []

        def tables() -> Iterator[pa.Table]:
            for _, part in candidate_tables(documents, examples, found, task.payload["buckets"]):
                slots.extend((part["slot"][0].as_py(), part["slot"][-1].as_py()))
                yield part

        output = context.publish(task, "candidates", tables(), CANDIDATES)
        told = Searched(
            len(found.cost),
            round(found.fill, 4) if settings.proposer.name == "none" else None,  # a proposer's windows fill no lanes
            found.saturated + sum(example.saturated for example in examples),
        )
        return Done(
            (output._replace(slots=(min(slots), max(slots))) if slots else output,),
            told,
            bytes_read=sum(store.manifest.shard(shard).size for shard in shards),
            cells=cells,
        )


def _folder(context: Context, root: str) -> Any:
    from swsdist.io.filesystem import Folder

    return Folder(root, context.storage)
