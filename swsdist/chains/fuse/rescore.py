"""The stage rescore: a system's best match at places that only other systems detected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.streams import are_permitted
from swsdist.calibrate.fusion import KEY, RESCORED, parts_of
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import load_statistics
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.fuse.merge_lists import TABLES
from swsdist.config import Config
from swsdist.core.codes import fuse as codes
from swsdist.core.numbers import seconds_to_frame
from swsdist.core.types import DETECTIONS
from swsdist.features.interface import Precomputed
from swsdist.methods.method import SPANS, create, identity
from swsdist.pipeline.chain import Context, Step, Table
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.in_memory import InMemory, MemoryContext, Way
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.registry.registries import STATISTICS
from swsdist.stages.buckets import Bucket, BucketStage, Extracted
from swsdist.stages.describe import Describe, Describing
from swsdist.stages.inputs.corpus import takes_query_statistics
from swsdist.stages.inputs.search_inputs import QuestionInputs
from swsdist.stages.queries import read_group
from swsdist.store.reading import Store


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
    """One task per bucket and system. The match lies in the place, widened by a margin, with the system's normalisation.

    A query that the system did not search, or a place too short for its query, stays without a score, which is imputed later.
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
        margin, runs = (
            fuse_inputs.options.margin,
            {
                name: system_of(name, chain_run, TABLES[fuse_inputs.options.scores])
                for name, chain_run in fuse_inputs.chain_runs.items()
            },
        )
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
