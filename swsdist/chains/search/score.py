"""score: measures of the whole list, from integer counts of its parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from swsdist.chains.search.decide import trials_name
from swsdist.chains.search.fit import write_json
from swsdist.chains.search.point import operating_point
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import PER_TERM, PROTOCOLS, Counts, atwv, det, mtwv, per_term, total, twv_curve
from swsdist.store import parquet

#: The curve for drawing: thinned, so that it stays small whatever the number of scores.
DET = pa.schema([pa.field(name, pa.float64(), False) for name in ("threshold", "pmiss", "pfa")])


def measures_name(fingerprint: str) -> str:
    """Where the measures lie in the run folder."""
    return f"tables/measures/{fingerprint}.json"


def terms_name(fingerprint: str) -> str:
    """Where the table of queries lies in the run folder."""
    return f"tables/terms/{fingerprint}.parquet"


def det_name(fingerprint: str) -> str:
    """Where the DET curve lies in the run folder."""
    return f"tables/det/{fingerprint}.parquet"


class Score(Stage):
    """Scoring never changes a score."""

    name = "score"
    version = 1
    phase = "score"
    unit = "trials"
    in_driver = True

    def plan(self, state: State) -> Iterator[Task]:
        """One task; none without references."""
        if state.references is None or state.references.num_rows == 0:
            return
        lists = [r.fingerprint for r in state.ended["decide"].receipts if "trials" in r.summary]
        point = operating_point(state)
        fitted = state.ended["fit"].receipts
        calibration = fitted[0].summary if fitted else {"fit": "none", "thresholds": []}
        name = fingerprint(self.name, self.version, lists, point, calibration)
        work = sum(r.summary["trials"] for r in state.ended["decide"].receipts if "trials" in r.summary)
        yield Task(self.name, name, point["protocol"], work, {"lists": lists, "point": point, "fit": calibration})

    def run(self, task: Task, context: Context) -> Done:
        """Counts of every part, rates once."""
        point, fit = task.payload["point"], task.payload["fit"]
        trials, beta = point["trials"], point["beta"]
        terms = []

        def parts() -> Iterator[Counts]:
            for name in task.payload["lists"]:
                part = parquet.read(context.run, trials_name(name))
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
            write_json(context.run, measures_name(task.fingerprint), json.dumps(measures, indent=1).encode()),
            parquet.publish(context.run, terms_name(task.fingerprint), [table], PER_TERM),
            parquet.publish(context.run, det_name(task.fingerprint), [drawn], DET),
        )
        return Done(outputs, summary={"measures": measures, "point": point})
