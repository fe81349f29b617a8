"""score_points gives ATWV of a compacted list at some points; what is done is never done again when points are added."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.points.fitted import at_fitted
from swsdist.calibrate.points.rescoring import Compacted, Rescored, Rescoring
from swsdist.core.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput, Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A row a point: its id (`point_id`), ATWV and mean rates, of a fitted threshold MTWV too; and for each query with references,
#: by id, what is kept, and what is at the maximum.
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
#: The queries with references, by id, and how many they have.
QUERIES_OF = pa.schema([pa.field("query_id", pa.string(), False), pa.field("ntrue", pa.int64(), False)])

#: Points of a task: a process that is killed loses no more.
POINTS_A_TASK = 64
#: Of fitted thresholds, where most of the work is done once a task.
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
    """The points of a task, and a name for the list that they are of."""

    source: str
    points: list[Values]


def point_id(point: Values) -> str:
    """A name for a point: its method, alpha or folds, beta and trials."""
    return fingerprint(point)[:16]


class ScorePoints(Stage[Scoring]):
    """A process keeps the list that it has read for its next task."""

    name = "score_points"
    version = 1
    unit = "points"
    phase = "score"
    takes = {"compacted": "terms"}
    tables = {
        "rescored": Table(RESCORED, None, digested=False),
        "queries": Table(QUERIES_OF, None, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """Tasks that were done before, as far as they hold any of the points; and tasks of those that are left."""
        receipts, options = inputs.receipts("compacted"), inputs.config.options
        if not receipts:
            return
        files = [[part.name for part in receipt.outputs] for receipt in receipts]
        rules: Values = {name: options[name] for name in ("tolerance", "conventions", "rejects_all")}
        source = fingerprint([[part.sha256 for part in receipt.outputs] for receipt in receipts], rules)
        points: Any = options["points"]
        left = {point_id(point): point for point in points}

        def task(some: list[Values]) -> Task[Scoring]:
            payload = Scoring(some, files, source, **rules)
            return inputs.task(source, some, label=f"{len(some)} points", work=len(some), payload=payload)

        for _, receipt in sorted(inputs.ledger.receipts(self.name).items()):
            told = receipt.result_as(ScoredPoints)
            if told.source == source and any(point_id(one) in left for one in told.points):
                before = task(told.points)
                if inputs.redo or inputs.ledger.receipt(before) is None:
                    continue
                for one in told.points:
                    left.pop(point_id(one), None)
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
    parts = [Compacted(*(context.read(name) for name in files)) for files in payload.files]
    return Rescoring.of(parts, tolerance=payload.tolerance, conventions=payload.conventions)


def _rows(list_of: Rescoring, some: list[Values], rejects_all: bool) -> list[Values]:
    """Rows of points of one thresholding, or whose thresholds are fitted in the same folds."""
    first, beta = some[0], np.array([point["beta"] for point in some], np.float64)
    found: dict[str, Rescored] = {}
    values: dict[str, Floats] = {}
    if first["method"] == "fitted":
        fitted = at_fitted(list_of, first["folds"], beta, trials=first["trials"], rejects_all=rejects_all)
        found, values = {"a": fitted.decided, "m": fitted.best}, {"mtwv_threshold": fitted.threshold}
    else:
        alpha = np.array([point["alpha"] for point in some], np.float64)
        found = {"a": list_of.at(first["method"], alpha, beta, trials=first["trials"])}
    counts: dict[str, Ints] = {}
    for letter, one in found.items():
        names = (f"{letter}twv", f"{letter}twv_pmiss", f"{letter}twv_pfa")
        values |= dict(zip(names, one.points, strict=True))
        best = "best_" if letter == "m" else ""
        counts |= {f"{best}hits": one.hits, f"{best}false_alarms": one.false_alarms}
    return [_row(point, k, values, counts) for k, point in enumerate(some)]


def _row(point: Values, k: int, values: Mapping[str, Floats], counts: Mapping[str, Ints]) -> Values:
    known = {name: float(each[k]) for name, each in values.items()}
    numbers = {name: None if math.isnan(value) else value for name, value in known.items()}
    return {"point": point_id(point), **numbers, **{name: each[:, k].tolist() for name, each in counts.items()}}
