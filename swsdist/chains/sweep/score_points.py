"""The stage score_points: ATWV of a sorted list at some points; added points do not repeat finished tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.operating_points.rescoring import rescore_fitted
from swsdist.calibrate.operating_points.rescoring import CompactList, RescoredPoints, Rescoring
from swsdist.core.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput, Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: One row per point: its id (`point_id`), ATWV and mean rates, for a fitted threshold MTWV too; and by query with references
#: (by id) hits and false alarms of the decisions, and of the maximum.
RESCORED = pa.schema(
    [
        pa.field("point", pa.string(), False),
        pa.field("atwv", pa.float64(), False),
        pa.field("atwv_pmiss", pa.float64(), False),
        pa.field("atwv_pfa", pa.float64(), False),
        pa.field("mtwv", pa.float64()),
        pa.field("mtwv_pmiss", pa.float64()),
        pa.field("mtwv_pfa", pa.float64()),
        pa.field("mtwv_threshold", pa.float64()),
        pa.field("hits", pa.list_(pa.int32()), False),
        pa.field("false_alarms", pa.list_(pa.int32()), False),
        pa.field("best_hits", pa.list_(pa.int32())),
        pa.field("best_false_alarms", pa.list_(pa.int32())),
    ]
)
#: Queries with references, by id, and their number of references.
QUERIES_OF = pa.schema([pa.field("query_id", pa.string(), False), pa.field("ntrue", pa.int64(), False)])

#: Points of a task: a process that is killed loses no more.
POINTS_A_TASK = 64
#: The same for fitted thresholds, where most work is done once per task.
FITTED_A_TASK = 500


class Scoring(NamedTuple):
    """The payload of a task: points, files of each bucket, a name for the list that these are, and the sweep's rules."""

    points: list[Values]
    files: list[list[str]]
    source: str
    tolerance: float | None
    conventions: str
    rejects_all: bool


class ScoredPoints(NamedTuple):
    """The points of a task, and a name for their list."""

    source: str
    points: list[Values]


def point_id(point: Values) -> str:
    """A name for a point: its method, alpha or folds, beta and trials."""
    return fingerprint(point)[:16]


class ScorePoints(Stage[Scoring]):
    """A process keeps the sorted list for its next task."""

    name = "score_points"
    version = 1
    unit = "points"
    phase = "score"
    takes = {"terms": "terms", "ranks": "ranks", "contested": "contested"}
    tables = {
        "rescored": Table(RESCORED, None, digested=False),
        "queries": Table(QUERIES_OF, None, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """Finished tasks with any of the points, and tasks for the other points."""
        lists, options = list(inputs.buckets("terms", "ranks", "contested")), inputs.config.options
        if not lists:
            return
        files = [[part.name for part in parts] for parts in lists]
        rules: Values = {name: options[name] for name in ("tolerance", "conventions", "rejects_all")}
        source = fingerprint([[part.sha256 for part in parts] for parts in lists], rules)
        points: Any = options["points"]
        left = {point_id(point): point for point in points}

        def task(some: list[Values]) -> Task[Scoring]:
            payload = Scoring(some, files, source, **rules)
            return inputs.task(source, some, label=f"{len(some)} points", work=len(some), payload=payload)

        for _, receipt in sorted(inputs.ledger.receipts(self.name).items()):
            batch = receipt.result_as(ScoredPoints)
            if batch.source == source and any(point_id(point) in left for point in batch.points):
                before = task(batch.points)
                if inputs.redo or inputs.ledger.receipt(before) is None:
                    continue
                for item in batch.points:
                    left.pop(point_id(item), None)
                yield before
        rest = [left[key] for key in sorted(left)]
        step = FITTED_A_TASK if options["tolerance"] is None else POINTS_A_TASK
        for first in range(0, len(rest), step):
            yield task(rest[first : first + step])

    def run(self, task: Task[Scoring], context: Context) -> TaskOutput:
        """Score."""
        payload = task.payload
        list_of = context.cached(self.name, payload.source, lambda: _read(payload, context))
        rows: list[Values] = []
        groups: dict[tuple[str, int, int], list[Values]] = {}
        for point in payload.points:
            groups.setdefault((point["method"], point.get("folds") or 0, point["trials"]), []).append(point)
        for some in groups.values():
            rows += _rows(list_of, some, payload.rejects_all)
            context.report(len(rows) / len(payload.points))
        queries = pa.table([list_of.names, pa.array(list_of.ntrue)], schema=QUERIES_OF)
        outputs = (
            context.publish(task, "rescored", [pa.Table.from_pylist(rows, RESCORED)], RESCORED),
            context.publish(task, "queries", [queries], QUERIES_OF),
        )
        return TaskOutput(outputs, ScoredPoints(payload.source, payload.points))


def _read(payload: Scoring, context: Context) -> Rescoring:
    parts = [CompactList(*(context.read(name) for name in files)) for files in payload.files]
    return Rescoring.of(parts, tolerance=payload.tolerance, conventions=payload.conventions)


def _rows(list_of: Rescoring, some: list[Values], rejects_all: bool) -> list[Values]:
    """Rows of points with the same method, or with thresholds fitted in the same folds."""
    first, beta = some[0], np.array([point["beta"] for point in some], np.float64)
    results: dict[str, RescoredPoints] = {}
    values: dict[str, Floats] = {}
    if first["method"] == "fitted":
        fitted = rescore_fitted(list_of, first["folds"], beta, trials=first["trials"], rejects_all=rejects_all)
        results, values = {"a": fitted.decided, "m": fitted.best}, {"mtwv_threshold": fitted.threshold}
    else:
        alpha = np.array([point["alpha"] for point in some], np.float64)
        results = {"a": list_of.at(first["method"], alpha, beta, trials=first["trials"])}
    counts: dict[str, Ints] = {}
    for letter, item in results.items():
        names = (f"{letter}twv", f"{letter}twv_pmiss", f"{letter}twv_pfa")
        values |= dict(zip(names, item.points, strict=True))
        best = "best_" if letter == "m" else ""
        counts |= {f"{best}hits": item.hits, f"{best}false_alarms": item.false_alarms}
    return [_row(point, k, values, counts) for k, point in enumerate(some)]


def _row(point: Values, k: int, values: Mapping[str, Floats], counts: Mapping[str, Ints]) -> Values:
    row = {name: float(item[k]) for name, item in values.items()}
    numbers = {name: None if math.isnan(value) else value for name, value in row.items()}
    return {"point": point_id(point), **numbers, **{name: item[:, k].tolist() for name, item in counts.items()}}
