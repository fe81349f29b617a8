"""score_points gives ATWV of a compacted list at some points; what is done is never done again when points are added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.calibrate.points.rescoring import Compacted, Rescoring
from swsdist.calibrate.thresholding import Method
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task, Values

#: A row a point: its id (`point_id`), ATWV and mean rates, and for each query with references, by id, what is kept.
RESCORED = pa.schema(
    [
        pa.field("point", pa.string(), False),
        pa.field("atwv", pa.float64(), False),
        pa.field("atwv_pmiss", pa.float64(), False),
        pa.field("atwv_pfa", pa.float64(), False),
        pa.field("hits", pa.list_(pa.int32()), False),
        pa.field("false_alarms", pa.list_(pa.int32()), False),
    ]
)
#: The queries with references, by id, and how many they have.
QUERIES_OF = pa.schema([pa.field("query_id", pa.string(), False), pa.field("ntrue", pa.int64(), False)])

#: Points of a task: a process that is killed loses no more.
POINTS_A_TASK = 64


class Told(NamedTuple):
    """The points of a task, and a name for the list that they are of."""

    source: str
    points: list[Values]


def point_id(point: Values) -> str:
    """A name for a point: its method, alpha, beta and trials."""
    return fingerprint(point)[:16]


class ScorePoints(Stage):
    """A process keeps the list that it has read for its next task."""

    name = "score_points"
    version = 1
    unit = "points"
    tables = {
        "rescored": Table(RESCORED, None, digested=False),
        "queries": Table(QUERIES_OF, None, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """Tasks that were done before, as far as they hold any of the points; and tasks of those that are left."""
        receipts, options = inputs.receipts("compacted"), inputs.config.options
        if not receipts:
            return
        files = [[part.name for part in receipt.outputs] for receipt in receipts]
        rules = {"tolerance": options["tolerance"], "conventions": options["conventions"]}
        source = fingerprint([[part.sha256 for part in receipt.outputs] for receipt in receipts], rules)
        points: Any = options["points"]
        left = {point_id(point): point for point in points}

        def task(some: list[Values]) -> Task:
            payload = {"points": some, "files": files, "source": source, **rules}
            return inputs.task(source, some, label=f"{len(some)} points", work=len(some), payload=payload)

        for _, receipt in sorted(inputs.ledger.receipts(self.name).items()):
            told = receipt.tells(Told)
            if told.source == source and any(point_id(one) in left for one in told.points):
                before = task(told.points)
                if inputs.redo or inputs.ledger.receipt(before) is None:
                    continue
                for one in told.points:
                    left.pop(point_id(one), None)
                yield before
        rest = [left[key] for key in sorted(left)]
        for first in range(0, len(rest), POINTS_A_TASK):
            yield task(rest[first : first + POINTS_A_TASK])

    def run(self, task: Task, context: Context) -> Done:
        """Score."""
        payload = task.payload
        key = (self.name, payload["source"])
        if key not in context.memory:
            for old in [one for one in context.memory if isinstance(one, tuple) and one[:1] == (self.name,)]:
                del context.memory[old]
            context.memory[key] = _read(payload, context)
        list_of: Rescoring = context.memory[key]
        rows: list[Values] = []
        groups: dict[tuple[Method, int], list[Values]] = {}
        for point in payload["points"]:
            groups.setdefault((point["method"], point["trials"]), []).append(point)
        done = 0
        for (method, trials), some in groups.items():
            alpha, beta = (np.array([point[name] for point in some], np.float64) for name in ("alpha", "beta"))
            found = list_of.at(method, alpha, beta, trials=trials)
            for k, point in enumerate(some):
                values = {"atwv": found.points.twv, "atwv_pmiss": found.points.pmiss, "atwv_pfa": found.points.pfa}
                row: Values = {"point": point_id(point), **{name: float(value[k]) for name, value in values.items()}}
                counts = {"hits": found.hits[:, k], "false_alarms": found.false_alarms[:, k]}
                rows.append({**row, **{name: value.tolist() for name, value in counts.items()}})
            done += len(some)
            context.report(done / len(payload["points"]))
        queries = pa.table([list_of.names, pa.array(list_of.ntrue)], schema=QUERIES_OF)
        outputs = (
            context.publish(task, "rescored", [pa.Table.from_pylist(rows, RESCORED)], RESCORED),
            context.publish(task, "queries", [queries], QUERIES_OF),
        )
        return Done(outputs, Told(payload["source"], payload["points"]))


def _read(payload: Values, context: Context) -> Rescoring:
    parts = [Compacted(*(context.read(name) for name in files)) for files in payload["files"]]
    return Rescoring.of(parts, tolerance=payload["tolerance"], conventions=payload["conventions"])
