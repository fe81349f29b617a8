"""normalise: scores of a query made comparable with those of others."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.qnorm import normalise
from swsdist.chains.search.reduce import detections_name, statistics_name
from swsdist.config.model import Calibrate
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import score_limits
from swsdist.store import parquet
from swsdist.types import DETECTIONS


def normalised_name(fingerprint: str) -> str:
    """Where a bucket's normalised detections lie in the run folder."""
    return f"tables/normalised/{fingerprint}.parquet"


def _step(settings: Calibrate) -> str:
    """Probabilities are made of q-normed scores, later: that takes a logistic, which is fitted on aligned lists."""
    return "q-norm" if settings.probabilities else settings.normalise


class Normalise(Stage):
    """Needs no references: it is a part of searching."""

    name = "normalise"
    version = 1
    phase = "search"
    unit = "detections"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a bucket."""
        how = _step(state.config.calibrate)
        for reduced in state.ended["reduce"].receipts:
            name = fingerprint(self.name, self.version, how, reduced.fingerprint)
            payload = {"reduced": reduced.fingerprint, "unit": state.unit, "bucket": reduced.summary["bucket"]}
            yield Task(self.name, name, f"bucket {payload['bucket']}", reduced.summary["detections"], payload)

    def run(self, task: Task, context: Context) -> Done:
        """Scores normalised, all else as it was."""
        detections = parquet.read(context.run, detections_name(task.payload["reduced"]))
        if _step(context.config.calibrate) == "q-norm":
            statistics = parquet.read(context.run, statistics_name(task.payload["reduced"]))
            detections = normalise(detections, statistics, task.payload["unit"])
        output = parquet.publish(context.run, normalised_name(task.fingerprint), [detections], DETECTIONS)
        low, high = score_limits(detections["score"].to_numpy())
        summary = {"bucket": task.payload["bucket"], "detections": detections.num_rows, "low": low, "high": high}
        return Done((output,), summary=summary)
