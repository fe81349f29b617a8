"""decide: YES or NO, a bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.threshold import Calibration, decide
from swsdist.fingerprint import fingerprint
from swsdist.run.stages.align import aligned_name
from swsdist.run.stages.fit import calibration_name
from swsdist.run.stages.normalise import normalised_name
from swsdist.run.state import State
from swsdist.run.task import Context, Done, Stage, Task
from swsdist.store import parquet
from swsdist.types import DETECTIONS, TRIALS


def scored_name(fingerprint: str) -> str:
    """Where a bucket's final detections lie in the run folder."""
    return f"tables/scored/{fingerprint}.parquet"


def trials_name(fingerprint: str) -> str:
    """Where a bucket's final aligned list lies in the run folder."""
    return f"tables/trials/{fingerprint}.parquet"


class Decide(Stage):
    """The same decisions in the list of detections and in the aligned list; null where nothing decides."""

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
            yield Task(self.name, name, f"bucket {bucket}", 1, {**sources, "fit": fits[0] if fits else None})

    def run(self, task: Task, context: Context) -> Done:
        """Compare with the threshold."""
        source = task.payload["fit"]
        calibration = None
        if source is not None:
            name = calibration_name(source)
            data = context.run.read_bytes(name)
            calibration = Calibration.from_run(data)
        outputs = []
        summary: dict[str, int] = {}
        if "detections" in task.payload:
            table = decide(parquet.read(context.run, normalised_name(task.payload["detections"])), calibration)
            outputs.append(parquet.publish(context.run, scored_name(task.fingerprint), [table], DETECTIONS))
            summary["detections"] = table.num_rows
        if "aligned" in task.payload:
            table = decide(parquet.read(context.run, aligned_name(task.payload["aligned"])), calibration)
            outputs.append(parquet.publish(context.run, trials_name(task.fingerprint), [table], TRIALS))
            summary["trials"] = table.num_rows
        return Done(tuple(outputs), summary=summary)
