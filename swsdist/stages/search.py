"""The stage search: candidates of a group of queries in a part of the store, sorted by slot, a row group per bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config import Config
from swsdist.config.search import FirstPass
from swsdist.config.search import Search as Settings
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import stable_hash
from swsdist.core.needs import Needs
from swsdist.core.types import CANDIDATES
from swsdist.io.filesystem import Folder
from swsdist.methods.dtw.backends.create import granted
from swsdist.methods.method import Method, create, demand_readable, identity
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.reduce.examples import best_found
from swsdist.registry.registries import BACKENDS, FIRST_PASSES
from swsdist.stages.buckets import Extracted, Searched
from swsdist.stages.inputs.corpus import renormalise
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import demand_examples, read_group
from swsdist.store.manifest import Manifest, Shard, require, state_name
from swsdist.store.reading import Store, Tracks
from swsdist.store.statistics import statistics_in

#: Most shards whose manifest entries are copied into a task.
_FEW_SHARDS = 4


class Shared(NamedTuple):
    """The common settings of all tasks of a group of queries.

    Attributes:
        store: the searched store; its manifest has no shards if tasks carry their own entries.
        search: section of the config.
        buckets: that candidates are cut into.
        queries: file of the group.
        query_statistics: means and variances of the queries' corpus, if it is another one.
        pooled: means and variances of all queries, if they normalise together with the collection's.
        verified: queries that are searched without the first pass too, to compare their best hits.
        overlap: of hits that are one, for that.
    """

    store: tuple[str, str]
    manifest: Manifest | None
    search: Settings
    buckets: int
    queries: str
    query_statistics: str | None
    pooled: str | None = None
    verified: tuple[str, ...] = ()
    overlap: float = 0.0


class Searching(NamedTuple):
    """The payload of a task: its shards, and their manifest entries, unless they are many."""

    shards: tuple[str, ...]
    held: tuple[Shard, ...] = ()


class Search(Stage[Searching]):
    """Search every group of queries in every part of the store once, by the configured method."""

    name = "search"
    version = 2
    unit = "cells"
    phase = "search"
    takes = {"queries": "groups", "shards": "features"}
    may_take = {"theirs": "query_statistics", "pooled": "pooled_statistics"}
    grows_with_hours = "more"
    grows_with_queries = "more"
    any_device = True
    tables = {"candidates": Table(CANDIDATES, order=("example", "doc_id", "channel", "last"))}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """A GPU if the config requires one; nothing if it allows any device."""
        on_gpu, on_cpu = (Needs(gpus=1.0),), (Needs(),)
        return {True: on_gpu, False: on_cpu, None: on_gpu + on_cpu}[BACKENDS[config.search.backend].gpu]

    def plan(self, inputs: Inputs) -> Iterator[Task[Searching]]:
        """A task per group and unit."""
        chain_inputs, settings = inputs.chain_inputs(SearchInputs), inputs.config.search
        store, method = chain_inputs.store.open(), create(settings)
        demand_readable(settings, store)
        groups = list(inputs.made("queries", Extracted))
        demand_examples(inputs, groups)
        key_parts = identity(settings)
        units = list(method.plan(store)) if groups else []
        first_pass = settings.first_pass
        # Tasks carry their shards, so workers do not read the entries of all others, unless they may need landmarks there.
        landmarks = first_pass.name != "none" and FIRST_PASSES[first_pass.name].landmarks
        few = not landmarks and all(len(unit.shards) <= _FEW_SHARDS for unit in units)
        payloads = [
            Searching(unit.shards, tuple(store.manifest.shard(name) for name in unit.shards) if few else ())
            for unit in units
        ]
        manifest, buckets = replace(store.manifest, shards=()) if few else None, inputs.config.reduce.buckets_for(0)
        query_inputs = inputs.parts("theirs")  # of another corpus, then a single file
        if "theirs" in inputs.tables and not query_inputs:
            raise families.MISSING_INPUT.of(DataError)(
                "there are no means and variances of the corpus of the queries",
                "check the failures of query-statistics, or set corpus.queries_from.statistics: ours",
                where=f"corpus.queries_from: {inputs.config.corpus.queries_from.documents}",
            )
        pooled = inputs.parts("pooled")  # then a single file
        of_theirs = [part.sha256 for part in (*query_inputs[:1], *pooled)]
        query_ids = {query_id for _, group, _ in groups for query_id in group.query_ids}
        chosen = set(sorted(query_ids, key=stable_hash)[: first_pass.verify if first_pass.name != "none" else 0])
        for receipt, group, (part,) in groups:
            if group.examples == 0:
                continue
            weight = method.weight(len(group.query_ids), group.examples, group.frames)
            # A million tasks differ only in their units, so the shared settings are fingerprinted and stored once.
            verified, overlap = tuple(sorted(chosen & set(group.query_ids))), inputs.config.reduce.overlap
            naming = inputs.naming(key_parts, buckets, receipt.fingerprint, *([verified, overlap] if verified else []))
            moments = query_inputs[0].name if query_inputs else None
            common = Shared(
                *(chain_inputs.store.state, manifest, settings, buckets, part.name, moments),
                pooled=pooled[0].name if pooled else None,
                verified=verified,
                overlap=overlap,
            )
            for unit, payload in zip(units, payloads, strict=True):
                name = naming(unit.matters, *of_theirs)
                label = f"{group.examples} examples in {unit.documents} documents"
                yield inputs.named(name, label=label, work=weight * unit.frames, payload=payload, common=common)

    def expected(self, inputs: Inputs) -> float:
        """Query frames times document frames, from durations."""
        return inputs.chain_inputs(SearchInputs).expected_cells()

    def reads(self, task: Task[Searching]) -> Iterator[tuple[str, int]]:
        """The files of its shards, if they are few."""
        for shard in task.payload.held:
            for file in shard.files.values():
                yield file.sha256, file.size

    def warm(self, task: Task[Searching], context: Context) -> None:
        """Load the method's modules."""
        create(_settings(task.common.search, context)).warm()

    def run(self, task: Task[Searching], context: Context) -> TaskOutput:
        """Candidates found by the method."""
        shards, shared = task.payload.shards, task.common
        method = create(_settings(task.common.search, context))
        state = _opened(task, context)
        frames = sum(state.manifest.shard(name).frames for name in shards)
        queries = statistics_in(context.read(task.common.pooled))["pooled", ""] if task.common.pooled else None
        store = Store(state.folder, state.manifest, _watch(context, frames), queries=queries)
        result = method.search(_prepared(shared, context, method, store), store, shards, shared.buckets)
        slots: list[int] = []
        verified = [CANDIDATES.empty_table()]

        def tables() -> Iterator[pa.Table]:
            for part in result.tables:
                slots.extend((part["slot"][0].as_py(), part["slot"][-1].as_py()))
                if shared.verified:
                    verified.append(_of(part, shared.verified))
                yield part

        output = context.publish(task, "candidates", tables(), CANDIDATES)
        return TaskOutput(
            (output._replace(slots=(min(slots), max(slots))) if slots else output,),
            Searched(
                *(result.candidates, result.fill, result.saturated),
                *(_verified(task, context, store, pa.concat_tables(verified)) if shared.verified else ()),
            ),
            cells=result.cells,
        )


def _verified(task: Task[Searching], context: Context, store: Store, proposed: pa.Table) -> tuple[int, int]:
    """Best hits of the exact search of the verified queries, and how many of them are in what was found."""
    shared: Shared = task.common
    settings = _settings(shared.search, context).model_copy(update={"first_pass": FirstPass()})
    exact = create(settings)
    queries = exact.prepare(_of(_examples(shared, context, store), shared.verified), store)
    tables = (
        table
        for shard in task.payload.shards
        for table in exact.search(queries, store, (shard,), shared.buckets).tables
    )
    return best_found(tables, [proposed], tick=store.manifest.shift, overlap=shared.overlap)


def _of(table: pa.Table, query_ids: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table["query_id"], pa.array(query_ids, pa.string())))


def _opened(task: Task[Searching], context: Context) -> Store:
    """The store, restricted to the shards of a task.

    Raises:
        StoreError: this state of it does not exist any more.
    """
    root, state = task.common.store
    if task.common.manifest is None:
        return Store.at(root, state, storage=context.storage)
    folder = Folder(root, context.storage)
    if not folder.exists(state_name(state)):
        require(folder, state_name(state))
    return Store(folder, replace(task.common.manifest, shards=task.payload.held))


def _settings(settings: Settings, context: Context) -> Settings:
    """Search settings of a task, with the resources granted to this worker."""
    return settings.model_copy(update={"backend": granted(settings.backend, context.granted.gpus)})


def _watch(context: Context, total: int) -> Callable[[int], None]:
    """Report the frames read of a store as progress of the task."""
    read = 0

    def watch(frames: int) -> None:
        nonlocal read
        read += frames
        context.report(read / max(total, 1))

    return watch


def _prepared(shared: Shared, context: Context, method: Method, store: Store) -> Any:
    """A group's queries, prepared for the method; kept for its next units."""

    def prepared() -> Any:
        return method.prepare(_examples(shared, context, store), store)

    of = shared.queries, shared.store, shared.query_statistics, shared.pooled, shared.search
    return context.cached("queries", of, prepared)


def _examples(shared: Shared, context: Context, store: Store) -> pa.Table:
    """A group's queries: EXAMPLES."""
    examples = read_group(context, shared.queries)
    if shared.query_statistics is None:
        return examples
    tracks = Tracks(store)
    settings = shared.search.placed(tracks.places)
    query_inputs = statistics_in(context.read(shared.query_statistics))
    return renormalise(examples, query_inputs, tracks.statistics()["collection", ""], settings)
