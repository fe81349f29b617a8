"""The stage merge-lists: join the lists of the systems, by bucket of queries.

The stage find-overlaps: detections that overlap one of another query with a higher fused score, by bucket of documents.

With drop-overlaps, decisions about a query depend on the other queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.calibrate.fusion import KEY, KNOWN, best_of_overlaps, complete_list, join_systems, row_keys
from swsdist.chains.check import Checking, findings, more_than_trials
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.config import Config, load_config
from swsdist.config.loader import FileAssignment
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.core.errors import SwsdistError
from swsdist.core.fingerprint import fingerprint, slot_of, slots_of
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Finding, Stage, Table
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import load_chain_run
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CHAINS
from swsdist.stages.buckets import Bucket, BucketStage, Extracted
from swsdist.stages.inputs.corpus_documents import settings_of, stored
from swsdist.stages.inputs.search_inputs import SearchInputs

#: The table with a system's scores.
TABLES = {"normalised": "normalised", "q-norm": "normalised", "final": "scored"}


class Joining(NamedTuple):
    """The payload of a task."""

    lists: dict[str, list[str]]
    scores: Literal["normalised", "q-norm", "final"]
    meet: Literal["overlap", "middle"]
    overlap: float


class MergeLists(BucketStage[Joining]):
    """One row per place detected by any system, with its scores; and statistics of each system's scores by query."""

    name = "merge-lists"
    version = 1
    phase = "search"
    tables = {"joined": Table(JOINED), "known": Table(KNOWN, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Joining]]:
        """One task per bucket with rows in any list.

        Raises:
            ConfigError: final scores were fitted on the references of the fusion.
        """
        fuse_inputs = inputs.chain_inputs(FuseInputs)
        options, rows = fuse_inputs.options, sum(part.rows for part in inputs.parts("lists"))
        buckets = inputs.config.reduce.buckets_for(rows)
        if options.scores == "final":
            for name, chain_run in fuse_inputs.chain_runs.items():
                demand_independent(name, chain_run)
        lists = {name: parts.parts for name, parts in zip(fuse_inputs.chain_runs, inputs.tables["lists"], strict=True)}
        common = {"scores": options.scores, "meet": options.meet, "overlap": options.overlap}
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            near = {name: lists[name].meeting(slots) for name in sorted(lists)}
            if not any(near.values()):
                continue
            names = {name: [part.name for part in parts] for name, parts in near.items()}
            hashes = {name: [part.sha256 for part in parts] for name, parts in near.items()}
            work = sum(part.rows for parts in near.values() for part in parts)
            payload = Joining(names, options.scores, options.meet, options.overlap)
            key_parts = common, [slots[0], slots[-1]], hashes
            yield self.numbered(bucket, buckets, inputs, *key_parts, work=work, payload=payload)

    def run(self, task: Task[Joining], context: Context) -> TaskOutput:
        """Join the rows of this bucket."""
        payload, lists = task.payload, {}
        for system, names in payload.lists.items():
            rows = pa.concat_tables([DETECTIONS.empty_table(), *(context.read(name) for name in names)])
            lists[system] = of_slots(rows, "query_id", task.slots)
        standardise = payload.scores == "q-norm"
        table, statistics = join_systems(lists, standardise=standardise, meet=payload.meet, overlap=payload.overlap)
        return self.done(task, context, table, context.publish(task, "known", [statistics], KNOWN))


def of_slots(table: pa.Table, column: str, slots: range) -> pa.Table:
    """The rows whose key, the text of a column, hashes into these slots."""
    coded = table[column].combine_chunks().dictionary_encode()
    inside = np.array([slot_of(key) in slots for key in coded.dictionary.to_pylist()], bool)
    return table if inside.all() else table.filter(pa.array(inside[coded.indices.to_numpy()]))


def demand_independent(name: str, chain_run: ChainRun) -> None:
    """Refuse final scores of a calibration that was fitted on the references of its run.

    Raises:
        ConfigError: fitted on these references.
    """
    settings = chain_run.config.calibrate
    if settings.fitted and settings.fit in ("crossfit", "oracle"):
        raise codes.FINAL_SCORES_FITTED(
            where="options.scores: final", system=name, steps=", ".join(settings.fitted), fit=settings.fit
        )


#: Detections to drop, by the slot of their query.
GONE = pa.schema([pa.field("slot", pa.int32(), False), *(DETECTIONS.field(name) for name in KEY)])


class Parting(NamedTuple):
    """The payload of a task."""

    files: list[str]
    overlap: float


class FindOverlaps(BucketStage[Parting]):
    """One task per bucket of documents: the detections to drop."""

    name = "find-overlaps"
    version = 1
    phase = "score"
    takes = {"scored": "scored"}
    tables = {"gone": Table(GONE, key="doc_id", order=KEY, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Parting]]:
        """Each task reads its rows of every file."""
        files = inputs.parts("scored")
        overlap = inputs.chain_inputs(FuseInputs).options.overlap
        names, rows = [part.name for part in files], sum(part.rows for part in files)
        buckets = inputs.config.reduce.buckets_for(rows)
        for bucket in range(buckets) if rows else ():
            payload, work = Parting(names, overlap), rows / buckets
            yield self.numbered(bucket, buckets, inputs, names, overlap, bucket, buckets, work=work, payload=payload)

    def run(self, task: Task[Parting], context: Context) -> TaskOutput:
        """Suppress overlaps, best first, across queries."""
        payload = task.payload
        tables = [of_slots(context.read(name), "doc_id", task.slots) for name in payload.files]
        table = pa.concat_tables([DETECTIONS.empty_table(), *tables])
        gone = table.filter(pa.array(~best_of_overlaps(table, payload.overlap, between_queries=True))).select(KEY)
        slots = pa.array([slot_of(query_id) for query_id in gone["query_id"].to_pylist()], pa.int32())
        gone = gone.add_column(0, GONE.field("slot"), slots).sort_by(
            [("slot", "ascending"), *((k, "ascending") for k in KEY)]
        )
        return TaskOutput((context.publish(task, "gone", [gone], GONE),), Bucket(gone.num_rows))


class Filling(NamedTuple):
    """The payload of a task."""

    joined: str
    known: str
    rescored: list[str]
    missing: Literal["average", "least"]
    overlap: float
    system: str
    found_by: int


class ImputeScores(BucketStage[Filling]):
    """The score becomes the mean of the systems' scores; of overlapping places of a query the best is kept.

    Nothing is fitted before, so the suppression depends on no reference.
    """

    name = "impute-scores"
    version = 1
    phase = "search"
    takes = {"joined": "joined", "known": "known"}
    may_take = {"rescored": "rescored"}
    tables = {"filled": Table(JOINED)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Filling]]:
        """One task per bucket."""
        options, system = inputs.chain_inputs(FuseInputs).options, inputs.config.system
        rule: Literal["average", "least"] = "average" if options.missing == "average" else "least"
        rescored = inputs.parts("rescored")
        for joined, statistics in inputs.buckets("joined", "known"):
            rescored_files = [part.name for part in rescored if part.slots == joined.slots]
            payload = Filling(
                joined.name, statistics.name, rescored_files, rule, options.overlap, system, options.found_by
            )
            key_parts = [joined.name, statistics.name, rescored_files, rule, options.overlap, system]
            key_parts += [options.found_by] if options.found_by > 1 else []
            yield self.following(joined, inputs, *key_parts, payload=payload)

    def run(self, task: Task[Filling], context: Context) -> TaskOutput:
        """Fill, then suppress."""
        payload = task.payload
        table = complete_list(
            context.read(payload.joined),
            context.read(payload.known),
            missing=payload.missing,
            overlap=payload.overlap,
            rescored=[context.read(name) for name in payload.rescored],
            found_by=payload.found_by,
        )
        place = table.schema.get_field_index("system")
        system = pa.array([payload.system] * table.num_rows, pa.string())
        return self.done(task, context, table.set_column(place, DETECTIONS.field("system"), system))


class Leaving(NamedTuple):
    """The payload of a task."""

    scored: str
    gone: list[str]


class DropOverlaps(BucketStage[Leaving]):
    """One task per bucket of queries: its detections without the dropped ones."""

    name = "drop-overlaps"
    version = 1
    phase = "score"
    takes = {"scored": "scored", "gone": "gone"}
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Leaving]]:
        """Each task reads its rows of every file of dropped detections."""
        gone = [part.name for part in inputs.parts("gone") if part.rows]
        for part in inputs.parts("scored"):
            yield self.following(part, inputs, part.name, gone, payload=Leaving(part.name, gone))

    def run(self, task: Task[Leaving], context: Context) -> TaskOutput:
        """Drop the rows; others stay unchanged."""
        table = context.read(task.payload.scored)
        gone: set[tuple[object, ...]] = set()
        for name in task.payload.gone:
            gone.update(row_keys(context.in_slots(name, task.slots)))
        stays = [key not in gone for key in row_keys(table)]
        return self.done(task, context, table.filter(pa.array(stays, pa.bool_())))


def configs(inputs: FuseInputs) -> dict[str, Config]:
    """Configs by name, with corpus, protocol, executor and storage of the fusion, in run folders below its own.

    Systems that store the same share a store, unless their configs name one: below RUN/systems/stores, named by a
    fingerprint of what it holds, whatever else is fused.

    Raises:
        ConfigError: a config cannot be read, is wrong, or is of another chain.
    """
    results: dict[str, Config] = {}
    fused = inputs.config
    for system in inputs.options.systems:
        if system.config is None:
            continue
        corpus = fused.corpus.model_dump(mode="json", exclude_defaults=True)
        base = system.config.rpartition("/")[0] or "."
        sets = [FileAssignment(item, base, f"options.systems: {system.name}: set") for item in system.set]
        config = load_config(system.config, sets, corpus=corpus, run=inputs.place(system))
        if not is_chain(CHAINS, config.chain, "searches"):
            fusible = ", ".join(name for name in CHAINS if is_chain(CHAINS, name, "searches"))
            raise codes.UNFUSIBLE_CHAIN(
                where=f"options.systems: {system.name}: {system.config}",
                system=system.name,
                chain=config.chain,
                fusible=fusible,
            )
        shared = {name: getattr(fused, name) for name in ("executor", "storage", "strict", "force", "score")}
        index = config.index
        if index.store is None:
            key = fingerprint(stored(config))[:16]
            place = f"{fused.run.rstrip('/')}/systems/stores/{key}"
            index = index.model_copy(update={"store": place})
        results[system.name] = config.model_copy(update={**shared, "index": index})
    return results


def demand_configured(inputs: FuseInputs) -> None:
    """Refuse systems whose run folder holds a run of another config.

    Raises:
        ConfigError: a system was run by other settings, or on another corpus.
    """
    for name, config in configs(inputs).items():
        was = inputs.chain_runs[name].config
        before = settings_of(was)
        if differ := [key for key, value in settings_of(config).items() if before.get(key) != value]:
            raise codes.CHANGED_SYSTEM_CONFIG(
                where=f"options.systems: {name} ({config.run})", system=name, keys=", ".join(differ)
            )


def check(inputs: FuseInputs) -> Iterator[Finding]:
    """Findings for each system, including all errors."""
    finished_systems = set()
    for system in inputs.options.systems:
        if system.run is None:
            continue
        try:
            chain_run = load_chain_run(Folder(inputs.place(system), inputs.config.storage))
            done = chain_run.ended("scored") is not None
            text = chain_run.run.path() if done else line_of(codes.UNFINISHED_SYSTEM, system=system.name)
            finished_systems |= {system.name} if done else set()
            yield Finding(f"{system.name}: run", done, text)
        except SwsdistError as error:
            yield Finding(f"{system.name}: run", False, str(error).replace("\n  remedy:", "; remedy:"))
    inputs.notices.force = True
    try:
        if all(system.name in finished_systems for system in inputs.options.systems):  # others are run first
            inputs.settle()
        for notice in inputs.notices.entries.values():
            yield Finding("systems", False if notice.forced else None, str(notice))
        results = configs(inputs)
    except SwsdistError as error:
        yield Finding("systems", False, str(error).replace("\n  remedy:", "; remedy:"))
        return
    listed, trials = 0, None
    for name, config in results.items():
        of_system = SearchInputs.of(config, Ledger(Folder(config.run, config.storage)))
        checking = Checking(of_system)
        for finding in findings(of_system, checking):
            yield finding._replace(name=f"{name}: {finding.name}")
        listed, trials = listed + checking.listed, checking.trials
    yield from more_than_trials("systems", listed, trials)


class CollectQueries(Stage[Extracted]):
    """A query of several systems has the examples and frames of the first of them."""

    name = "collect-queries"
    version = 1
    unit = "queries"
    phase = "search"
    tables = {"groups": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Extracted]]:
        """One task."""
        fuse_inputs = inputs.chain_inputs(FuseInputs)
        fuse_inputs.settle()
        demand_configured(fuse_inputs)
        seen: set[str] = set()
        result: dict[str, Any] = {"examples": 0, "query_ids": [], "frames": 0, "seconds": 0.0, "cuts": []}
        for chain_run in fuse_inputs.chain_runs.values():
            for group in chain_run.results("groups", Extracted):
                fresh = [query_id for query_id in group.query_ids if query_id not in seen]
                if not fresh:
                    continue
                result["query_ids"] += fresh
                result["cuts"] += [cut for cut in group.cuts if cut[0] not in seen]
                for name in ("examples", "frames", "seconds"):
                    result[name] += getattr(group, name) * len(fresh) / len(group.query_ids)
                seen.update(fresh)
        result |= {"examples": round(result["examples"]), "frames": round(result["frames"])}
        yield inputs.task(result, label=f"{len(seen)} queries", work=len(seen), payload=Extracted(**result))

    def run(self, task: Task[Extracted], context: Context) -> TaskOutput:
        """Return the queries."""
        return TaskOutput((), task.payload)
