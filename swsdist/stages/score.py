"""score computes the measures of the whole list from the counts of its parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.calibrate.threshold import thresholds_for
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.score.measures.det import DET, det_of
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.evaluating import identities, measures_of, merge, values
from swsdist.score.parts.events import curve_of
from swsdist.score.parts.merging import ROWS
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.operating_point import point_of, scored_queries, unscorable_queries
from swsdist.stages.task_results import Counted, Fitted, Measured
from swsdist.store import parquet


class Scoring(NamedTuple):
    """The payload of the task."""

    files: dict[str, list[str]]
    point: OperatingPoint
    fit: Fitted
    left_out: list[str]


class Score(Stage[Scoring]):
    """Scoring never changes a score. Of several thresholds it reports those of folds with a query."""

    name = "score"
    version = 2
    needs_run = "references"
    unit = "parts"
    phase = "score"
    takes = {"parts": "parts"}
    may_take = {"calibration": "calibration"}
    grows_with_hours = "same"
    grows_with_queries = "same"
    tables = {"measures": Table(None, None), "det": Table(DET, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """One task; none without references."""
        references = inputs.chain_inputs(CorpusInputs).corpus.references
        counted = list(inputs.made("parts", Counted))
        if references is None or references.num_rows == 0 or not counted:
            return
        files: dict[str, list[str]] = {}
        for _, counts, parts in counted:
            for name, part in zip(counts.names, parts, strict=True):
                files.setdefault(name, []).append(part.name)
        point = point_of(inputs)
        fitted = [each for _, each in inputs.results("calibration", Fitted)]
        calibration = fitted[0] if fitted else Fitted("none", [])
        calibration = calibration._replace(thresholds=thresholds_for(scored_queries(inputs), calibration.thresholds))
        payload = Scoring(files, point, calibration, sorted(unscorable_queries(inputs)))
        key_parts = files, identities(measures_of(point)), point.as_json(), calibration._asdict()
        yield inputs.task(*key_parts, label=point.protocol, work=len(counted), payload=payload)

    def run(self, task: Task[Scoring], context: Context) -> TaskOutput:
        """Merge the counts, and evaluate every measure once."""
        payload, point = task.payload, task.payload.point
        parts = merge(
            {name: [partial(_rows, context, file) for file in files] for name, files in payload.files.items()}
        )
        result: dict[str, Any] = {**values(parts, point)}
        result |= {"calibration": payload.fit.fit, "atwv_thresholds": payload.fit.thresholds}
        points = det_of(curve_of(parts, point))
        drawn = pa.table([np.asarray(points.threshold), points.pmiss, points.pfa], schema=DET)
        outputs = (
            context.write(task, "measures", json.dumps(result, indent=1).encode()),
            context.publish(task, "det", [drawn], DET),
        )
        return TaskOutput(outputs, Measured(result, point.as_json(), payload.left_out))


def _rows(context: Context, name: str) -> Iterator[pa.Table]:
    """A table of counts, a bounded piece at a time."""
    for batch in parquet.rows(*context.place(name), batch=ROWS):
        yield pa.Table.from_batches([batch])
