"""The chain fuse: from the lists of several systems to the scored report of their fusion.

::

    (systems that are run first) -> queries -> merge-lists -> [rescore] -> impute-scores -> [describe-examples]
        -> align.train -> fit -> combine -> [find-overlaps -> decide]
    decide -> align.final -> measure -> score; decide -> format -> export

From align.train on, the stages are those of the chain search. Without options.between_queries, combine is named decide.

merge-lists joins the lists of the systems, by bucket of queries. find-overlaps finds detections that overlap one of
another query with a higher fused score, by bucket of documents; if these are dropped, decisions about a query depend on
the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.streams import are_permitted
from swsdist.calibrate.fusion import (
    KEY,
    KNOWN,
    RESCORED,
    Fusion,
    best_of_overlaps,
    complete_list,
    count_common_places,
    join_systems,
    parts_of,
    row_keys,
    warn_disjoint_systems,
    with_parts_of,
)
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import load_statistics
from swsdist.calibrate.steps.logistic import fusions_in, mean_of
from swsdist.chains.check import Checking, findings, more_than_trials
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.report import reporting
from swsdist.chains.report.publish import FILES, publish_report, scored_of
from swsdist.chains.report.reporting import build_report, rejected_rows, summary
from swsdist.config import Config, load_config
from swsdist.config.loader import FileAssignment
from swsdist.core.codes import families, line_of
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import ConfigError, SwsdistError
from swsdist.core.fingerprint import fingerprint, slot_of, slots_of
from swsdist.core.numbers import seconds_to_frame
from swsdist.core.types import DETECTIONS, JOINED, JOINED_TRIALS
from swsdist.evaluation.comparison import compare_min_cnxe
from swsdist.features.interface import Precomputed
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.methods.method import SPANS, create, identity
from swsdist.pipeline.chain import Chain, Context, ExternalTable, Finding, Inputs, Stage, Step, Table
from swsdist.pipeline.chain_run import ChainRun, InMemory, MemoryContext, Outcome, Way
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import load_chain_run
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.registry.entries import Dependency, decision_dependencies, is_chain
from swsdist.registry.registries import CHAINS, STATISTICS
from swsdist.report.data import FusedSystemRow, FusionReport, Gain, ReportData
from swsdist.score.compare.paired import Settings, compare
from swsdist.stages.buckets import Bucket, BucketStage, Extracted, Measured
from swsdist.stages.export import Export, Format, Summarise
from swsdist.stages.inputs.corpus import takes_query_statistics
from swsdist.stages.inputs.corpus_documents import settings_of, stored
from swsdist.stages.inputs.provenance import files_of
from swsdist.stages.inputs.search_inputs import QuestionInputs, SearchInputs, document_checks, folds_of_steps
from swsdist.stages.queries import Describe, Describing, read_group
from swsdist.stages.score import Align, Decide, Fit, Measure, Score
from swsdist.store.reading import Store

#: The table with a system's scores.
TABLES = {"normalised": "normalised", "q-norm": "normalised", "final": "scored"}


class Joining(NamedTuple):
    """The payload of a task."""

    lists: dict[str, list[str]]
    scores: Literal["normalised", "q-norm", "final"]
    meet: Literal["overlap", "middle"]
    overlap: float


class MergeLists(BucketStage[Joining]):
    """The stage merge-lists: a row per place detected by any system, with its scores, and statistics of each system."""

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
    """The rows whose key, the text of a column, has a hash in these slots."""
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
    """The stage find-overlaps: the detections to drop, a task per bucket of documents."""

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
    """The stage impute-scores: the score becomes the mean of the systems' scores, and overlaps of a query are removed.

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
    """The stage drop-overlaps: detections without the dropped ones, a task per bucket of queries."""

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

    Systems with the same documents and features share a store in RUN/systems/stores, named by a fingerprint of its
    contents, unless their configs name one.

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
            raise families.WRONG_KIND.of(ConfigError)(
                "the config of system {system} has the chain {chain}; a fusion takes runs of the chain {fusible}",
                "name configs of the chain {fusible}",
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
            raise families.CHANGED_INPUT.of(ConfigError)(
                "the run of system {system} differs from its config in {keys}",
                "run the fusion again without --only; in a sweep give systems with different configs different names",
                where=f"options.systems: {name} ({config.run})",
                system=name,
                keys=", ".join(differ),
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
    """The stage queries: a query of several systems has the examples and frames of the first of them."""

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


class System(NamedTuple):
    """The parts of a system that rescoring needs: its method, and the steps of its chain from detections to scores.

    Attributes:
        reads: SHA-256 of the files that are read.
        statistics: files of its score statistics, each with its first and last slot.
        described: files of its statistics of examples.
        queries: files of its queries.
        store: of the system.
        config: of the system.
        steps: of its chain.
        scored: label of the list that is fused.
        identity: settings and steps that affect its matches and their scores.
    """

    reads: list[str]
    statistics: list[tuple[str, int, int]]
    described: list[str]
    queries: list[str]
    store: tuple[str, str]
    config: Config
    steps: tuple[Step, ...]
    scored: str
    identity: list[Any]


class Rescoring(NamedTuple):
    """The payload of a task."""

    joined: str
    known: str
    name: str
    system: System
    margin: float


class Rescore(BucketStage[Rescoring]):
    """The stage rescore: the best match of a system in places that it did not detect, a task per bucket and system.

    A query that the system did not search, or a place too short for its query, has no score; it is imputed later.
    """

    name = "rescore"
    version = 1
    unit = "detections"
    phase = "search"
    takes = {"joined": "joined", "known": "known"}
    tables = {"rescored": Table(RESCORED, order=(*KEY[1:], "system"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Rescoring]]:
        """For each system, the places of the bucket that it did not detect.

        Raises:
            ConfigError: a system cannot rescore places.
        """
        fuse_inputs = inputs.chain_inputs(FuseInputs)
        margin, scores = fuse_inputs.options.margin, TABLES[fuse_inputs.options.scores]
        runs = {name: system_of(name, chain_run, scores) for name, chain_run in fuse_inputs.chain_runs.items()}
        for joined, statistics_part in inputs.buckets("joined", "known"):
            for name, run in runs.items():
                payload = Rescoring(joined.name, statistics_part.name, name, run, margin)
                key_parts = joined.name, statistics_part.name, name, [run.reads, run.store, *run.identity], margin
                task = self.following(joined, inputs, *key_parts, payload=payload)
                yield replace(task, label=f"{name}, {task.label}", work=task.work / len(runs))

    def run(self, task: Task[Rescoring], context: Context) -> TaskOutput:
        """Search these places."""
        table = context.read(task.payload.joined)
        systems, _, present = parts_of(table)
        lacking = table.select(KEY)
        if table.num_rows:
            lacking = lacking.filter(pa.array(~present[:, systems.index(task.payload.name)]))
        rows = rescore_bucket(lacking, task, context) if lacking.num_rows else RESCORED.empty_table()
        return TaskOutput((context.publish(task, "rescored", [rows], RESCORED),), Bucket(rows.num_rows))


def system_of(name: str, chain_run: ChainRun, scored: str) -> System:
    """The parts of a system that a task needs.

    Raises:
        ConfigError: its scores of single places would not be comparable with its list.
    """
    inputs = chain_run.chain.inputs
    settings = chain_run.config.calibrate
    entries = settings.entries()
    where = "options.missing: rescore"
    if inputs.corpus.placed:
        raise codes.RESCORED_SEGMENTS(where=where, system=name)
    if chain_run.config.search.examples == "mean":
        raise codes.RESCORED_MEANS(where=where, system=name)
    if chain_run.config.search.parts:
        raise codes.RESCORED_PARTS(where=where, system=name)
    if takes_query_statistics(chain_run.config) or chain_run.config.search.documents_by == "pooled":
        raise codes.RESCORED_ACROSS_CORPORA(where=where, system=name)
    if any(entries[step].cohort or entries[step].operating_point for step in settings.unfitted):
        raise codes.RESCORED_WITH_COHORT(where=where, system=name, steps=", ".join(settings.unfitted))
    steps = chain_run.chain.steps
    way = Way.between(steps, "detections", scored)
    if way.left_out:
        raise codes.RESCORED_WITH_COHORT(where=where, system=name, steps=", ".join(way.left_out))
    labels = [label for label in ("statistics", "described", "groups") if chain_run.chain.makers(label)]
    files = {label: chain_run.table(label, absolute=True).parts for label in labels}
    of_steps = [(step.stage.name, step.stage.version) for step in way.steps]
    return System(
        [part.sha256 for parts in files.values() for part in parts],
        [(part.name, *part.slots) for part in files["statistics"]],
        [part.name for part in files.get("described", ())],
        [part.name for part in files["groups"]],
        inputs.store.state,
        chain_run.config,
        tuple(replace(step, inputs=None) for step in steps),
        scored,
        [identity(chain_run.config.search), settings.model_dump(mode="json"), of_steps],
    )


def rescore_bucket(lacking: pa.Table, task: Task[Rescoring], context: Context) -> pa.Table:
    """RESCORED for the places of a bucket that a system did not detect."""
    system, margin = task.payload.system, task.payload.margin
    store = Store.at(*system.store, storage=context.storage)
    method, shift = create(system.config.search), store.manifest.tick
    query_ids = set(lacking["query_id"].to_pylist())
    groups = [read_group(context, name) for name in system.queries]
    queries = pa.concat_tables(
        group.filter(pa.array([query_id in query_ids for query_id in group["query_id"].to_pylist()], pa.bool_()))
        for group in groups
    )
    if not queries.num_rows:
        return RESCORED.empty_table()
    spans = lacking.select(KEY[:3]).to_pydict()
    spans["first"] = [max(0, seconds_to_frame(start - margin, shift)) for start in lacking["start"].to_pylist()]
    spans["last"] = [max(0, seconds_to_frame(end + margin, shift) - 1) for end in lacking["end"].to_pylist()]
    results = method.rescore(method.prepare(queries, store), store, pa.table(spans, schema=SPANS))
    rows = match_spans(spans, results)
    score = -results["cost"].to_numpy().astype(np.float64) / results["scale"].to_numpy()
    places = lacking.take(pa.array(rows, pa.int64()))
    raw: dict[str, Any] = {name: places[name] for name in KEY}
    raw |= {name: pa.nulls(len(rows), DETECTIONS.field(name).type) for name in DETECTIONS.names if name not in raw}
    raw |= {"score": score, "example": results["example"]}
    listed = pa.table({name: raw[name] for name in DETECTIONS.names}).cast(DETECTIONS)
    return scale_scores(listed, task, context)


def match_spans(spans: dict[str, list[Any]], results: pa.Table) -> list[int]:
    """The span of each match. Matches are in the order of the spans; spans too short for a match have none.

    A match belongs to the first span that contains it.
    """
    columns = [spans[name] for name in ("query_id", "doc_id", "channel", "first", "last")]
    rows: list[int] = []
    at = 0
    for query, doc, channel, first, last in zip(
        *(results[name].to_pylist() for name in ("query_id", "doc_id", "channel", "first", "last")), strict=True
    ):
        while not (
            (columns[0][at], columns[1][at], columns[2][at]) == (query, doc, channel)
            and columns[3][at] <= first
            and last <= columns[4][at]
        ):
            at += 1
        rows.append(at)
        at += 1
    return rows


def scale_scores(listed: pa.Table, task: Task[Rescoring], context: Context) -> pa.Table:
    """RESCORED on the scale of the fusion: by the steps of the system's chain, then by the scale of its list."""
    payload, low, high = task.payload, task.slots[0], task.slots[-1]
    system = payload.system

    def inputs() -> QuestionInputs:
        return QuestionInputs(system.config, Store.at(*system.store, storage=context.storage))

    # Tasks of systems alternate, and plans in one process may differ in the config alone.
    of_system = context.cached(f"system {payload.name}", (system.store, system.config), inputs)
    steps = InMemory(system.steps, system.config, of_system, MemoryContext(context.run, {}, context.memory))
    files = [name for name, first, last in system.statistics if first <= high and low <= last]
    steps.give("detections", listed, task.slots)
    steps.give("statistics", pa.concat_tables(context.read(name) for name in files), task.slots)
    if system.described:
        steps.give("described", pa.concat_tables(context.read(name) for name in system.described), task.slots)
    listed = steps.read(system.scored)
    statistics_part = context.read(payload.known)
    system_rows = [row for row in statistics_part.to_pylist() if row["system"] == payload.name]
    scale = {row["query_id"]: (row["mean"], row["deviation"]) for row in system_rows}
    # A query without detections of the system has no scale, if its list has scales.
    changed = any(pair != (0.0, 1.0) for pair in scale.values())
    places = [query_id in scale or not changed for query_id in listed["query_id"].to_pylist()]
    listed = listed.filter(pa.array(places, pa.bool_()))
    pairs = np.array([scale.get(name, (0.0, 1.0)) for name in listed["query_id"].to_pylist()], np.float64).reshape(
        -1, 2
    )
    score = (listed["score"].to_numpy().astype(np.float64) - pairs[:, 0]) / pairs[:, 1]
    columns = {name: listed[name] for name in KEY}
    system = pa.array([payload.name] * listed.num_rows, pa.string())
    return pa.table({**columns, "system": system, "score": score}).cast(RESCORED)


class DescribeExamples(Describe):
    """A task per system and group of queries; an example of several systems is described by the sums over them."""

    name = "describe-examples"
    takes = {}

    def plan(self, inputs: Inputs) -> Iterator[Task[Describing]]:
        """A task for the statistics of each group of each system."""
        names = list(load_statistics(required_statistics(inputs.config.calibrate), "examples"))
        for name, chain_run in inputs.chain_inputs(FuseInputs).chain_runs.items():
            searched, config = chain_run.chain.inputs, chain_run.config
            precomputed = any(isinstance(source.extractor, Precomputed) for source in searched.features.sources)
            rows = defaultdict[str, list[Values]](list)
            for row in searched.examples:
                rows[row["query_id"]].append(row)
            for _, group, (part,) in chain_run.table("groups", absolute=True).made(Extracted):
                members = [row for query_id in group.query_ids for row in rows[query_id]]
                trim = config.queries.trim == "auto" and not precomputed
                payload = Describing(part.name, members, names, trim, are_permitted())
                key_parts = [STATISTICS.identity(each) for each in names], part.sha256
                label = f"{name}, {group.examples} examples"
                yield inputs.task(*key_parts, label=label, work=group.examples, payload=payload)


#: Draws of queries for the intervals of gains; `swsdist compare --cnxe` takes more.
DRAWS = 1000


def publish(outcome: Outcome, chain_run: ChainRun, force: bool = False) -> ReportData | None:
    """Write the report."""
    return publish_report(outcome, chain_run, force, _fusion_data)


def _fusion_data(outcome: Outcome, chain_run: ChainRun) -> ReportData:
    data = build_report(outcome, chain_run)
    inputs: FuseInputs = chain_run.chain.inputs
    looks: set[Dependency] = set(data.looked_at)
    if inputs.options.between_queries:
        looks.add("other queries")
    for system in inputs.chain_runs.values():
        looks |= _dependencies(system, final=inputs.options.scores == "final")
    order: tuple[Dependency, ...] = ("own query", "other queries", "references")
    return replace(data, looked_at=tuple(item for item in order if item in looks), fusion=_fusion(chain_run))


def _dependencies(system: ChainRun, *, final: bool) -> set[Dependency]:
    """The dependencies of a system's fused scores: final scores, or those before the first fitted step."""
    settings, cohort = system.config.calibrate, system.config.corpus.cohort is not None
    names = settings.steps if final else settings.unfitted
    if not names:
        return set()
    fit = settings.fit if final else "none"
    return set(decision_dependencies(names, settings.entries(), fit=fit, threshold="own", cohort=cohort))


def _fusion(chain_run: ChainRun) -> FusionReport:
    inputs: FuseInputs = chain_run.chain.inputs
    fusions: list[Fusion] = []
    for part in chain_run.table("calibration").parts:
        fusions = fusions_in(json.loads(chain_run.run.read_bytes(part.name)))
    joined, detected, alone = 0, Counter[str](), Counter[str]()
    for table in chain_run.read("filled", ["parts"]):
        names, _, present = parts_of(table)
        joined += table.num_rows
        single = present.sum(axis=1) == 1
        for k, name in enumerate(names):
            detected[name] += int(present[:, k].sum())
            alone[name] += int((present[:, k] & single).sum())
    gains = _gains(chain_run)
    mean = mean_of(fusions) if fusions else None
    rows = []
    for name, system in inputs.chain_runs.items():
        result = system.results("measures", Measured)
        measures = result[0].measures if result else {}
        place = mean.systems.index(name) if mean is not None and name in mean.systems else None
        rows.append(
            FusedSystemRow(
                system=name,
                run=system.run.path(),
                weight=None if mean is None or place is None else mean.weights[place],
                mark=None if mean is None or place is None or not mean.marks else mean.marks[place],
                given=detected[name] / joined if joined else 0.0,
                alone=alone[name] / joined if joined else 0.0,
                **{key: measures.get(key) for key in ("mtwv", "atwv", "auc", "cnxe_min")},
                gain=gains.get(name),
            )
        )
    decided = "combined" if inputs.options.between_queries else "scored"
    counts = {
        label: sum(result.rows for result in chain_run.results(label, Bucket))
        for label in ("joined", "filled", decided, "scored")
    }
    return FusionReport(
        missing=inputs.options.missing,
        between_queries=inputs.options.between_queries,
        joined=joined,
        overlapping=counts["joined"] - counts["filled"],
        outdone=counts[decided] - counts["scored"],
        offset=None if mean is None else mean.offset,
        systems=tuple(rows),
    )


def _gains(chain_run: ChainRun) -> dict[str, Gain]:
    """Gains over each system with the same trials; empty if the fusion was not scored."""
    inputs: FuseInputs = chain_run.chain.inputs
    result = chain_run.results("measures", Measured)
    alike = {
        name: part
        for name, part in inputs.chain_runs.items()
        if (measured := part.results("measures", Measured)) and result and measured[0].point == result[0].point
    }
    if not alike or result[0].measures.get("cnxe_min") is None:
        return {}
    systems = [scored_of("the fusion", chain_run), *(scored_of(name, part) for name, part in alike.items())]
    settings = Settings(resamples=DRAWS)
    entropies = compare_min_cnxe(systems, settings)
    results: dict[str, Gain] = {}
    tables = {system.name: system.maximal for system in systems if system.maximal is not None}
    maxima = compare(tables, settings).pairs if len(tables) == len(systems) else ()
    for name in alike:
        pair = next(pair for pair in entropies.pairs if (pair.first, pair.second) == ("the fusion", name))
        best = next((item for item in maxima if (item.first, item.second) == ("the fusion", name)), None)
        twv = {}
        if best is not None:
            twv = {"mtwv": best.difference, "mtwv_low": best.interval.low, "mtwv_high": best.interval.high}
        results[name] = Gain(
            **twv,
            cnxe_min=-pair.difference,
            cnxe_min_low=-pair.interval.high,
            cnxe_min_high=-pair.interval.low,
            cnxe_min_p=pair.p,
        )
    return results


def notices(chain_run: ChainRun) -> list[str]:
    """Notices of a search, and of the fusion."""
    inputs: FuseInputs = chain_run.chain.inputs
    results = reporting.notices(chain_run)
    common, disjoint = Counter[tuple[str, str]](), Notices()
    if (ended := chain_run.ended("joined")) is not None and not ended.failures:
        for table in chain_run.read("joined", ["parts"]):
            common.update(count_common_places(table))
        warn_disjoint_systems(common, disjoint)
    results += [str(notice) for notice in disjoint.entries.values()]
    if not chain_run.config.calibrate.fitted:
        results.append(line_of(codes.UNFITTED_FUSION))
    if inputs.options.between_queries and len(inputs.options.systems):
        results.append(line_of(codes.DEPENDENT_QUERIES))
    return results


class AlignJoined(Align):
    """Aligned joined lists, for fitting a fusion."""

    name = "align-joined"
    version = 1
    takes = {"detections": "filled"}
    tables = {"trials": Table(JOINED_TRIALS)}

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """Trials with the column `parts`."""
        return with_parts_of(trials, detections)


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain for a config.

    Raises:
        ConfigError: invalid options.
    """
    inputs = FuseInputs(config, ledger)
    options = inputs.options
    inputs.document_checks.update(document_checks(config))
    inputs.folds.update(folds_of_steps(config.calibrate))
    inputs.files.update(files_of(config))
    covariates = required_statistics(config.calibrate)
    if of_candidates := load_statistics(covariates, "candidates"):
        raise families.UNSUPPORTED.of(ConfigError)(
            "a step asks for {statistics}, and a fusion has no candidates of its own",
            "leave the covariates mean and deviation out; those of examples and of the list are known",
            where="calibrate.options",
            statistics=", ".join(of_candidates),
        )
    lists = tuple(ExternalTable(inputs.place(system), TABLES[options.scores]) for system in options.systems)
    deciding: list[Step | Stage] = [Step("decide", Decide(), {"detections": "impute-scores:filled"})]
    if options.between_queries:
        deciding = [
            Step("combine", Decide(), {"detections": "impute-scores:filled"}, {"scored": "combined"}),
            FindOverlaps(),
            Step("decide", DropOverlaps()),
        ]

    def first() -> Mapping[str, Config]:
        for read in inputs.files.values():  # before systems are run
            read()
        return configs(inputs)

    stages = (
        Step("queries", CollectQueries()),
        Step("merge-lists", MergeLists(), {"lists": lists}),
        *([Rescore()] if options.missing == "rescore" else []),
        ImputeScores(),
        *([DescribeExamples()] if load_statistics(covariates, "examples") else []),
        Step("align.train", AlignJoined(), labels={"trials": "aligned"}),
        Fit(),
        *deciding,
        Step("align.final", Align(), {"detections": "decide:scored"}),
        Step("measure", Measure(), {"trials": "align.final:trials"}),
        Score(),
        Step("summarise", Summarise(), {"scored": "decide:scored", "trials": "align.final:trials"}),
        Step("format", Format(), {"scored": "decide:scored"}),
        Step("export", Export(), {"scored": "decide:scored"}),
    )
    return Chain("fuse", stages, inputs, publish, FILES, notices, rejected_rows, check, summary, first)
