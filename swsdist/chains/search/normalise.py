"""normalise: scores of a query made comparable with those of others."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.procedure import procedures
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.interface import Point
from swsdist.chains.search.point import operating_point
from swsdist.chains.search.reduce import detections_name, statistics_name
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import score_limits
from swsdist.store import parquet
from swsdist.types import DETECTIONS


def normalised_name(fingerprint: str) -> str:
    """Where a bucket's normalised detections lie in the run folder."""
    return f"tables/normalised/{fingerprint}.parquet"


class Normalise(Stage):
    """Needs no references: it is a part of searching."""

    name = "normalise"
    version = 1
    phase = "search"
    unit = "detections"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a bucket."""
        point = operating_point(state)
        first, _ = procedures(state.config.calibrate, Point(point["trials"], point["beta"]))
        how = [first.identity(), first.point]
        for reduced in state.ended["reduce"].receipts:
            name = fingerprint(self.name, self.version, how, reduced.fingerprint)
            payload = {"reduced": reduced.fingerprint, "point": point, "bucket": reduced.summary["bucket"]}
            yield Task(self.name, name, f"bucket {payload['bucket']}", reduced.summary["detections"], payload)

    def run(self, task: Task, context: Context) -> Done:
        """Scores as the steps before the first that is fitted make them, all else as it was."""
        detections = parquet.read(context.run, detections_name(task.payload["reduced"]))
        statistics = parquet.read(context.run, statistics_name(task.payload["reduced"]))
        point = task.payload["point"]
        first, _ = procedures(context.config.calibrate, Point(point["trials"], point["beta"]))
        detections = first.scores(detections, from_table(statistics))
        output = parquet.publish(context.run, normalised_name(task.fingerprint), [detections], DETECTIONS)
        low, high = score_limits(detections["score"].to_numpy())
        summary = {"bucket": task.payload["bucket"], "detections": detections.num_rows, "low": low, "high": high}
        return Done((output,), summary=summary)
