"""score: measures of the whole list, from integer counts of its parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.point import operating_point
from swsdist.chains.search.told import Fitted, Measured
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import PER_TERM, PROTOCOLS, Counts, atwv, det, mtwv, per_term, total, twv_curve

#: The curve for drawing: thinned, so that it stays small whatever the number of scores.
DET = pa.schema([pa.field(name, pa.float64(), False) for name in ("threshold", "pmiss", "pfa")])


class Score(Stage):
    """Scoring never changes a score."""

    name = "score"
    version = 1
    unit = "trials"
    tables = {
        "measures": Table(None, None),
        "terms": Table(PER_TERM),
        "det": Table(DET, None, digested=False),
    }
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """One task; none without references."""
        references = inputs.own(SearchInputs).references
        if references is None or references.num_rows == 0:
            return
        trials = inputs.parts("trials")
        lists, point = [part.name for part in trials], operating_point(inputs)
        fitted = [told for _, told in inputs.told("calibration", Fitted)]
        calibration = fitted[0] if fitted else Fitted("none", [])
        yield inputs.task(
            lists,
            point,
            calibration._asdict(),
            label=point["protocol"],
            work=sum(part.rows for part in trials),
            payload={"lists": lists, "point": point, "fit": calibration._asdict()},
        )

    def run(self, task: Task, context: Context) -> Done:
        """Counts of every part, rates once."""
        point, fit = task.payload["point"], task.payload["fit"]
        trials, beta = point["trials"], point["beta"]
        terms = []

        def parts() -> Iterator[Counts]:
            for name in task.payload["lists"]:
                part = context.read(name)
                terms.append(per_term(part, trials=trials, beta=beta))
                yield Counts.of(part)

        whole = total(parts())
        kwseval = PROTOCOLS[point["protocol"]].conventions == "kwseval"
        curve = twv_curve(whole, trials=trials, beta=beta, reject_all=not kwseval)
        best = mtwv(curve)
        measures: dict[str, Any] = {
            "mtwv": best.twv,
            "mtwv_threshold": best.threshold,
            "mtwv_pmiss": best.pmiss,
            "mtwv_pfa": best.pfa,
            "atwv": None,
            "atwv_pmiss": None,
            "atwv_pfa": None,
            "atwv_thresholds": fit["thresholds"],
            "calibration": fit["fit"],
        }
        if fit["fit"] != "none":
            actual = atwv(whole, trials=trials, beta=beta)
            measures |= {"atwv": actual.twv, "atwv_pmiss": actual.pmiss, "atwv_pfa": actual.pfa}
        points = det(curve)
        drawn = pa.table([np.asarray(points.threshold), points.pmiss, points.pfa], schema=DET)
        table = pa.concat_tables(terms).sort_by("query_id")
        outputs = (
            context.write(task, "measures", json.dumps(measures, indent=1).encode()),
            context.publish(task, "terms", [table], PER_TERM),
            context.publish(task, "det", [drawn], DET),
        )
        return Done(outputs, Measured(measures, point))
