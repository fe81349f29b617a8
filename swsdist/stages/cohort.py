"""cohort sums how well queries that only serve to judge others match each place of the collection.

These are the queries of `corpus.cohort`, which are searched like others and never scored; without such a table, the
run's queries. Each query's list is q-normed before the N best are chosen; its best detection in each document, or
stretch of a document, counts. The sums over queries are integers in units of 1 / 65536, so they are independent of the
division of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from swsdist.calibrate.statistics import CostSums, from_table
from swsdist.calibrate.steps.interface import Options
from swsdist.calibrate.steps.norms import QNorm
from swsdist.calibrate.steps.norms import cohort_sums, cohort_table
from swsdist.core.codes import stages as codes
from swsdist.core.numbers import frames_to_seconds
from swsdist.core.types import COHORT_SUMS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.reduce.spans import outside_places
from swsdist.reduce.spans import Spans
from swsdist.registry.registries import CALIBRATION
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import Queries
from swsdist.stages.reduce import Reduce, Reducing, excluded_places

#: More than the detections of any query.
_ALL = 2**31 - 1


class Cohort(Reduce):
    """A task per bucket of the cohort's queries. The chain contains this stage only if a step normalises by a cohort."""

    name = "cohort"
    version = 1
    needs_run = "other queries"
    tables = {"sums": Table(COHORT_SUMS, None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Reducing]]:
        """Plan like `reduce`, without limit on detections."""
        settings = inputs.config.calibrate
        step = next(name for name, entry in settings.entries().items() if entry.cohort)
        options = CALIBRATION[step].load().model.model_validate(settings.options.get(step, {}))
        window = getattr(options, "window", None)
        versions = [CALIBRATION.identity(step), CALIBRATION.identity(QNorm.name)]
        yield from self.tasks(inputs, [CostSums.name], _ALL, versions, window, window=window)

    def run(self, task: Task[Reducing], context: Context) -> TaskOutput:
        """Sum the best scores of each query at each place."""
        tick, window = task.payload.rules["tick"], task.payload.window
        # Stretches of a recording are known only after overlaps between its documents are removed.
        by_file = window is None or not task.payload.placed
        reduced = self.reduced(task, context, (lambda spans: best_of_places(spans, tick, window)) if by_file else None)
        detections = outside_places(reduced.detections, excluded_places(task))
        if detections.num_rows:
            scores = QNorm(Options()).apply(detections, None, from_table(reduced.statistics), None)
            column = detections.schema.get_field_index("score")
            detections = detections.set_column(column, detections.schema.field(column), pa.array(scores))
        table = cohort_table(cohort_sums(detections, window))
        return TaskOutput((context.publish(task, "sums", [table], COHORT_SUMS),))


def best_of_places(spans: Spans, tick: float, window: float | None) -> Spans:
    """The best detection of each query in each document, or in each stretch of a document.

    Args:
        spans: detections in complete documents.
        tick: s.
        window: length of the stretches, s; None: complete documents.
    """
    stretch = np.zeros(spans.rows, np.int64)
    if window is not None:
        stretch = np.floor(frames_to_seconds(spans.first, tick) / window).astype(np.int64)
    order = np.lexsort((-spans.score, stretch, spans.channel, spans.document, spans.query))
    places = np.stack([spans.query, spans.document, spans.channel, stretch])[:, order]
    new = np.append(True, (places[:, 1:] != places[:, :-1]).any(axis=0))[: spans.rows]
    return spans.take(np.sort(order[new]))


#: Path of their store in a run folder.
STORE = "cohort"


class CohortQueries(Queries):
    """Like `queries`; no stage that scores, decides or exports reads its output."""

    name = "cohort-queries"
    version = 1

    def place(self, inputs: Inputs) -> str:
        """The store of the cohort."""
        return f"{inputs.ledger.run.root}/{STORE}"

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the examples, independent of groups."""
        result = super().digests(inputs)
        return {"queries.cohort": result["queries"]} if result else {}

    def examples(self, chain_inputs: SearchInputs) -> list[dict[str, Any]]:
        """The examples of `corpus.cohort`."""
        if chain_inputs.is_first("cohort"):
            _note_shared_queries(chain_inputs)
        return chain_inputs.with_identities(chain_inputs.corpus.cohort)


def _note_shared_queries(chain_inputs: SearchInputs) -> None:
    """Note examples that are also queries of the run."""
    run_queries = set(_places(chain_inputs.corpus.queries))
    shared = [
        query_id
        for query_id, place in zip(
            chain_inputs.corpus.cohort["query_id"].to_pylist(), _places(chain_inputs.corpus.cohort), strict=True
        )
        if place in run_queries
    ]
    if shared:
        chain_inputs.notices.add(codes.COHORT_EXAMPLE_IS_QUERY, where=f"corpus.cohort: {shared[0]}", count=len(shared))


def _places(queries: pa.Table) -> list[tuple[object, ...]]:
    columns = (queries[name].to_pylist() for name in ("path", "channel", "start", "end"))
    return list(zip(*columns, strict=True))
