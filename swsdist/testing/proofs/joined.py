"""Two runs as one: union of what they found, missing scores filled by each run's own method, one query a place.

The chain reads the normalised detections of two runs, whose buckets may differ in number, and

1. joins them, query by query: detections of one document that overlap are one place, its times those of the first run that
   found it;
2. asks each run's method for the best match of every place that the run did not find, and normalises it by that run's steps;
3. takes the mean of both scores, and, document by document, keeps of places of different queries that overlap the better one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from swsdist.calibrate.procedure import procedures
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.interface import Point
from swsdist.config import Config
from swsdist.config.calibration import Calibrate
from swsdist.config.search import Search
from swsdist.io.filesystem import Folder
from swsdist.methods.method import SPANS
from swsdist.methods.registry import create, identity
from swsdist.partition import bucket_of, slots_of
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.course import Course
from swsdist.pipeline.elsewhere import Elsewhere
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.recorded import recorded
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.reduce.spans import Names, detections, spans_of
from swsdist.registry import Entry
from swsdist.store.manifest import require, state_name
from swsdist.store.reading import Store
from swsdist.times import seconds_to_frame
from swsdist.types import DETECTIONS

_REAL = ("start", "end", "one", "other")
PLACES = pa.schema([DETECTIONS.field(k) for k in range(3)] + [pa.field(name, pa.float64()) for name in _REAL])
FINAL = pa.schema([*list(PLACES)[:5], pa.field("score", pa.float64())])


class Options(BaseModel):
    """The folders of two runs of the search chain, finished."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    runs: tuple[str, str]


class Counted(NamedTuple):
    """Rows, and how many of them were filled."""

    rows: int
    filled: int = 0


@dataclass
class Runs:
    """What the chain knows: the two runs as they were run."""

    courses: tuple[Course, Course]
    hours: float = 0.0

    @property
    def state(self) -> dict[str, str]:
        """Nothing besides the tasks."""
        return {}

    def recall(self, state: Any) -> None:
        """There is nothing to go back to."""

    def read(self, steps: frozenset[str]) -> None:
        """They are read already."""


def _overlap(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(min(a["end"], b["end"]) - max(a["start"], b["start"]) > 0)


class Join(Stage):
    """Places that either run found, each with the scores there are, and those that are asked for."""

    name = "proof-join"
    version = 1
    unit = "detections"
    tables = {"places": Table(PLACES)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket."""
        runs, buckets = inputs.own(Runs), inputs.config.reduce.buckets
        sides = [inputs.made[word][0] for word in ("one", "other")]
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            payload: dict[str, Any] = {
                "bucket": bucket,
                "buckets": buckets,
                "sides": [],
                "slots": [slots[0], slots[-1]],
            }
            matters = []
            for made, course in zip(sides, runs.courses, strict=True):
                near = [part for part in made.parts if part.slots[0] <= slots[-1] and slots[0] <= part.slots[1]]
                root = course.run.root
                own = course.chain.own
                payload["sides"].append(
                    {
                        "lists": [part.name for part in near],
                        "statistics": [f"{root}/{part.name}" for part in course.parts("reduce", "statistics")],
                        "queries": [f"{root}/{part.name}" for part in course.parts("queries", "examples")],
                        "store": [own.store.root, own.manifest.fingerprint],
                        "search": course.config.search.model_dump(mode="json"),
                        "calibrate": course.config.calibrate.model_dump(mode="json"),
                    }
                )
                matters.append(
                    [[part.sha256 for part in near], identity(course.config.search), own.manifest.fingerprint]
                )
            yield inputs.task(payload["slots"], matters, label=f"bucket {bucket}", work=1, payload=payload)

    def run(self, task: Task, context: Context) -> Done:
        """Join, then rescore what is missing."""
        payload, lists = task.payload, []
        for side in payload["sides"]:
            rows = [row for name in side["lists"] for row in context.read(name).to_pylist()]
            lists.append([r for r in rows if bucket_of(r["query_id"], payload["buckets"]) == payload["bucket"]])
        places = []
        left = defaultdict(list)
        for row in lists[1]:
            left[row["query_id"], row["doc_id"], row["channel"]].append(row)
        for row in lists[0]:
            same = left[row["query_id"], row["doc_id"], row["channel"]]
            other = next((one for one in same if _overlap(one, row)), None)
            if other is not None:
                same.remove(other)
            places.append({**row, "one": row["score"], "other": None if other is None else other["score"]})
        places += [{**row, "one": None, "other": row["score"]} for rows in left.values() for row in rows]
        filled = sum(
            _fill(places, name, side, context) for name, side in zip(("one", "other"), payload["sides"], strict=True)
        )
        places.sort(key=lambda row: (row["query_id"], row["doc_id"], row["channel"], row["start"], row["end"]))
        table = pa.Table.from_pylist([{name: row[name] for name in PLACES.names} for row in places], PLACES)
        output = context.publish(task, "places", [table], PLACES, tuple(payload["slots"]))
        return Done((output,), Counted(len(places), filled))


def _fill(places: list[dict[str, Any]], name: str, side: dict[str, Any], context: Context) -> int:
    """Give missing places the score that a run's method has for them; how many there were."""
    missing = [row for row in places if row[name] is None]
    folder = Folder(side["store"][0], context.storage)
    store = Store(folder, require(folder, state_name(side["store"][1])))
    tick, method = store.manifest.tick, create(Search.model_validate(side["search"]))
    queries = method.prepare(pa.concat_tables(context.read(part) for part in side["queries"]), store)
    spans = [
        {**{key: row[key] for key in SPANS.names[:3]}, "first": seconds_to_frame(row["start"], tick)}
        | {"last": seconds_to_frame(row["end"], tick) - 1}
        for row in missing
    ]
    found = method.rescore(queries, store, pa.Table.from_pylist(spans, SPANS))
    first, _ = procedures(Calibrate.model_validate(side["calibrate"]), Point(1, 1.0))
    statistics = pa.concat_tables(context.read(part) for part in side["statistics"])
    names = Names()
    listed = pa.Table.from_batches(detections(spans_of(found, names), names, tick, ""), DETECTIONS)
    rows = first.scores(listed, from_table(statistics)).to_pylist()
    best: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = row["query_id"], row["doc_id"], row["channel"]
        best[*key, round(row["start"] / tick)] = row["score"]
    for row, span in zip(missing, spans, strict=True):
        key = row["query_id"], row["doc_id"], row["channel"]
        inside = [v for (*k, at), v in best.items() if tuple(k) == key and span["first"] <= at <= span["last"]]
        row[name] = max(inside, default=None)
    return len(missing)


class Apart(Stage):
    """Document by document: of places of any queries that overlap, the better stays; ties go to the first by name."""

    name = "proof-apart"
    version = 1
    unit = "detections"
    tables = {"final": Table(FINAL, key="doc_id")}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket of documents."""
        files, buckets = [part.name for part in inputs.parts("places")], inputs.config.reduce.buckets
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            payload = {"files": files, "bucket": bucket, "buckets": buckets, "slots": [slots[0], slots[-1]]}
            yield inputs.task(files, payload["slots"], label=f"bucket {bucket}", work=1, payload=payload)

    def run(self, task: Task, context: Context) -> Done:
        """Mean scores, best first."""
        payload = task.payload
        kept: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
        rows = [row for name in payload["files"] for row in context.read(name).to_pylist()]
        for row in rows:
            scores = [row[name] for name in ("one", "other") if row[name] is not None]
            row["score"] = sum(scores) / len(scores)
        rows = [row for row in rows if bucket_of(row["doc_id"], payload["buckets"]) == payload["bucket"]]
        for row in sorted(rows, key=lambda row: (-row["score"], row["query_id"], row["start"], row["end"])):
            here = kept[row["doc_id"], row["channel"]]
            if not any(_overlap(row, other) for other in here):
                here.append(row)
        final = [{name: row[name] for name in FINAL.names} for key in sorted(kept) for row in kept[key]]
        output = context.publish(task, "final", [pa.Table.from_pylist(final, FINAL)], FINAL, tuple(payload["slots"]))
        return Done((output,), Counted(len(final)))


def build(config: Config, ledger: Ledger) -> Chain:
    """Join, then apart."""
    one, other = Options(**config.options).runs
    courses = recorded(Folder(one, config.storage)), recorded(Folder(other, config.storage))
    reads = {"one": Elsewhere(one, "normalise:normalised"), "other": Elsewhere(other, "normalise:normalised")}
    steps = (Step("join", Join(), "fuse", reads), Step("apart", Apart(), "fuse", {"places": "join:places"}))
    return Chain("joined", steps, Runs(courses))


#: How the chain is registered.
CHAIN = Entry(f"{__name__}:build", 1)
