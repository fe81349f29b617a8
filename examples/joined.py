"""Two runs as one: union of what they found, missing scores filled by each run's own method, one query a place.

The chain reads the normalised detections of two runs, whose buckets may differ in number, and
1. joins them, query by query: detections of one document that overlap are one place, its times those of the first;
2. asks each run's method for the best match of every place that the run did not find, and normalises it by that run's steps;
3. takes the mean of both scores, and, document by document, keeps of places of different queries that overlap the better one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from swsdist.calibrate.procedure import procedures
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.config.search import Search
from swsdist.core.fingerprint import slot_of, slots_of
from swsdist.core.numbers import seconds_to_frame
from swsdist.core.types import DETECTIONS
from swsdist.io.filesystem import Folder
from swsdist.methods.method import SPANS, create, identity
from swsdist.pipeline.chain import Chain, ChainInputs, Context, ExternalTable, Stage, Step, Table
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import load_chain_run
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.reduce.spans import Names, detections, spans_of
from swsdist.registry.registry import Entry
from swsdist.stages.queries import read_group
from swsdist.store.reading import Store

FINAL = pa.schema(list(DETECTIONS)[:6])
PLACES = pa.schema([*list(FINAL)[:5], pa.field("one", pa.float64()), pa.field("other", pa.float64())])


class Options(BaseModel):
    """The folders of two runs of the search chain, finished."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    runs: tuple[str, str]


class Counted(NamedTuple):
    """Rows, and how many of them were filled."""

    rows: int
    filled: int = 0


class Run(NamedTuple):
    """What a task needs of a run to ask its method and normalise what it says; `reads` are SHA-256 of its files."""

    reads: list[str]
    statistics: list[str]
    queries: list[str]
    store: tuple[str, str]
    method: Any
    search: Search
    calibrate: Calibrate


class Joining(NamedTuple):
    """The payload of a task of `Join`: files of each run, and the runs."""

    lists: list[list[str]]
    runs: list[Run]


class Runs(ChainInputs):
    """What the chain knows: the two runs as they were run."""

    def __init__(self, chain_runs: tuple[ChainRun, ChainRun]) -> None:
        self.chain_runs = chain_runs


def _overlap(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(min(a["end"], b["end"]) > max(a["start"], b["start"]))


class Join(Stage[Joining]):
    """Places that either run found, each with the scores there are, and those that are asked for."""

    name = "proof-join"
    version = 1
    unit = "detections"
    phase = "fuse"
    tables = {"places": Table(PLACES)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Joining]]:
        """A task a bucket."""
        buckets = inputs.config.reduce.buckets_for(0)
        made = [inputs.parts(word) for word in ("one", "other")]
        runs = [_run(chain_run) for chain_run in inputs.chain_inputs(Runs).chain_runs]
        key_parts = [[run.method, run.store, run.calibrate.model_dump(mode="json"), run.reads] for run in runs]
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            ends = [slots[0], slots[-1]]
            near = [parts.meeting(slots) for parts in made]
            hashes = [[part.sha256 for part in parts] for parts in near]
            names = [[part.name for part in parts] for parts in near]
            payload = Joining(names, runs)
            yield inputs.task(ends, hashes, key_parts, label=f"bucket {bucket}", work=1, payload=payload, slots=slots)

    def run(self, task: Task[Joining], context: Context) -> TaskOutput:
        """Join, then rescore what is missing."""
        lists = []
        for names in task.payload.lists:
            rows = (row for name in names for row in context.read(name).to_pylist())
            lists.append([row for row in rows if slot_of(row["query_id"]) in task.slots])
        places, left = [], defaultdict(list)
        for row in lists[1]:
            left[row["query_id"], row["doc_id"], row["channel"]].append(row)
        for row in lists[0]:
            same = left[row["query_id"], row["doc_id"], row["channel"]]
            other = next((one for one in same if _overlap(one, row)), None)
            if other is not None:
                same.remove(other)
            places.append({**row, "one": row["score"], "other": None if other is None else other["score"]})
        places += [{**row, "one": None, "other": row["score"]} for rows in left.values() for row in rows]
        filled = sum(_fill(places, *of, context) for of in zip(("one", "other"), task.payload.runs, strict=True))
        places.sort(key=lambda row: (row["query_id"], row["doc_id"], row["channel"], row["start"], row["end"]))
        output = context.publish(task, "places", [pa.Table.from_pylist(places, PLACES)], PLACES)
        return TaskOutput((output,), Counted(len(places), filled))


def _run(chain_run: ChainRun) -> Run:
    own = chain_run.chain.inputs
    statistics, queries = (chain_run.table(label, absolute=True).parts for label in ("statistics", "groups"))
    return Run(
        [part.sha256 for part in (*statistics, *queries)],
        [part.name for part in statistics],
        [part.name for part in queries],
        own.store.state,
        identity(chain_run.config.search),
        chain_run.config.search,
        chain_run.config.calibrate,
    )


def _fill(places: list[dict[str, Any]], name: str, run: Run, context: Context) -> int:
    """Give missing places the score that a run's method has for them; how many there were."""
    missing = [row for row in places if row[name] is None]
    store = Store.at(*run.store, storage=context.storage)
    tick, method = store.manifest.tick, create(run.search)
    queries = method.prepare(pa.concat_tables(read_group(context, part) for part in run.queries), store)
    spans = [{key: row[key] for key in SPANS.names[:3]} for row in missing]
    for span, row in zip(spans, missing, strict=True):
        span |= {"first": seconds_to_frame(row["start"], tick), "last": seconds_to_frame(row["end"], tick) - 1}
    found = method.rescore(queries, store, pa.Table.from_pylist(spans, SPANS))
    first, _ = procedures(run.calibrate, TwvParameters(1, 1.0))
    statistics = from_table(pa.concat_tables(context.read(part) for part in run.statistics))
    listed = pa.Table.from_batches(detections(spans_of(found, names := Names()), names, tick, ""), DETECTIONS)
    best: dict[tuple[Any, ...], list[tuple[int, float]]] = defaultdict(list)
    for row in first.scores(listed, statistics).to_pylist():
        best[row["query_id"], row["doc_id"], row["channel"]].append((round(row["start"] / tick), row["score"]))
    for row, span in zip(missing, spans, strict=True):
        here = best[row["query_id"], row["doc_id"], row["channel"]]
        row[name] = max((score for at, score in here if span["first"] <= at <= span["last"]), default=None)
    return len(missing)


class Apart(Stage[list[str]]):
    """Document by document: of places of any queries that overlap, the better stays; ties go to the first by name."""

    name = "proof-apart"
    version = 1
    unit = "detections"
    phase = "fuse"
    takes = {"places": "places"}
    tables = {"final": Table(FINAL, key="doc_id")}

    def plan(self, inputs: Inputs) -> Iterator[Task[list[str]]]:
        """A task a bucket of documents; its payload is the files that it reads."""
        files, buckets = [part.name for part in inputs.parts("places")], inputs.config.reduce.buckets_for(0)
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            ends = [slots[0], slots[-1]]
            yield inputs.task(files, ends, label=f"bucket {bucket}", work=1, payload=files, slots=slots)

    def run(self, task: Task[list[str]], context: Context) -> TaskOutput:
        """Mean scores, best first."""
        kept: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
        rows = [row for name in task.payload for row in context.read(name).to_pylist()]
        rows = [row for row in rows if slot_of(row["doc_id"]) in task.slots]
        for row in rows:
            scores = [row[name] for name in ("one", "other") if row[name] is not None]
            row["score"] = sum(scores) / len(scores)
        for row in sorted(rows, key=lambda row: (-row["score"], row["query_id"], row["start"], row["end"])):
            here = kept[row["doc_id"], row["channel"]]
            if not any(_overlap(row, other) for other in here):
                here.append(row)
        final = pa.Table.from_pylist([row for key in sorted(kept) for row in kept[key]], FINAL)
        output = context.publish(task, "final", [final], FINAL)
        return TaskOutput((output,), Counted(final.num_rows))


def build(config: Config, ledger: Ledger) -> Chain:
    """Join, then apart."""
    one, other = Options(**config.options).runs
    chain_runs = load_chain_run(Folder(one, config.storage)), load_chain_run(Folder(other, config.storage))
    reads = {"one": ExternalTable(one, "normalised"), "other": ExternalTable(other, "normalised")}
    steps = (Step("join", Join(), reads), Step("apart", Apart()))
    return Chain("joined", steps, Runs(chain_runs))


CHAIN = Entry(f"{__name__}:build", 1)
