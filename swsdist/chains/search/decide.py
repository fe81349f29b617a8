"""decide: YES or NO, a bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.threshold import Calibration, decide
from swsdist.chains.search.align import aligned_name
from swsdist.chains.search.fit import calibration_name
from swsdist.chains.search.normalise import normalised_name
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import align, protocol
from swsdist.store import parquet
from swsdist.types import DETECTIONS, REFERENCES, TRIALS


def scored_name(fingerprint: str) -> str:
    """Where a bucket's final detections lie in the run folder."""
    return f"tables/scored/{fingerprint}.parquet"


def trials_name(fingerprint: str) -> str:
    """Where a bucket's final aligned list lies in the run folder."""
    return f"tables/trials/{fingerprint}.parquet"


class Decide(Stage):
    """The same decisions in the list of detections and in the aligned list; null where nothing decides.

    Where steps are fitted scores get their final values here, in both lists.
    """

    name = "decide"
    version = 1
    phase = "score"
    unit = "detections"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a bucket."""
        fits = [receipt.fingerprint for receipt in state.ended["fit"].receipts]
        lists = {r.summary["bucket"]: {"detections": r.fingerprint} for r in state.ended["normalise"].receipts}
        for receipt in state.ended["align"].receipts:
            lists.setdefault(receipt.summary["bucket"], {})["aligned"] = receipt.fingerprint
        for bucket, sources in sorted(lists.items()):
            name = fingerprint(self.name, self.version, fits, sources)
            payload: dict[str, Any] = {**sources, "fit": fits[0] if fits else None}
            if state.config.calibrate.fitted:
                settings = state.config.score
                rules = protocol(settings.protocol, tolerance=settings.tolerance)
                payload["rules"] = {"tolerance": rules.tolerance, "conventions": rules.conventions}
            yield Task(self.name, name, f"bucket {bucket}", 1, payload)

    def run(self, task: Task, context: Context) -> Done:
        """Compare with the threshold."""
        found = true = None
        if "detections" in task.payload:
            found = parquet.read(context.run, normalised_name(task.payload["detections"]))
        if "aligned" in task.payload:
            true = parquet.read(context.run, aligned_name(task.payload["aligned"]))
        source = task.payload["fit"]
        data = None if source is None else context.run.read_bytes(calibration_name(source))
        if "rules" in task.payload and data is not None:
            found, true = _calibrated(Procedure.from_run(data), found, true, task.payload["rules"])
        else:
            calibration = None if data is None else Calibration.from_run(data)
            found = None if found is None else decide(found, calibration)
            true = None if true is None else decide(true, calibration)
        outputs = []
        summary: dict[str, int] = {}
        if found is not None:
            outputs.append(parquet.publish(context.run, scored_name(task.fingerprint), [found], DETECTIONS))
            summary["detections"] = found.num_rows
        if true is not None:
            outputs.append(parquet.publish(context.run, trials_name(task.fingerprint), [true], TRIALS))
            summary["trials"] = true.num_rows
        return Done(tuple(outputs), summary=summary)


def _calibrated(
    steps: Procedure, found: pa.Table | None, aligned: pa.Table | None, rules: dict[str, Any]
) -> tuple[pa.Table | None, pa.Table | None]:
    """Both lists with their final scores, aligned again: alignment looks at scores."""
    if found is not None:
        found = steps.apply(found)
    if aligned is not None:
        pairs = aligned.filter(pc.is_valid(aligned["ref_start"]))
        names = {
            "query_id": "query_id",
            "doc_id": "doc_id",
            "channel": "channel",
            "start": "ref_start",
            "end": "ref_end",
        }
        references = pa.table([pairs[names[field.name]] for field in REFERENCES], schema=REFERENCES)
        detections = DETECTIONS.empty_table() if found is None else found
        limits = (steps.low, steps.high) if rules["conventions"] == "stdeval" else (None, None)
        aligned = align(detections, references, low=limits[0], high=limits[1], **rules)
    return found, aligned
