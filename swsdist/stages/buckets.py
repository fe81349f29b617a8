"""Base of stages with a task per bucket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.core.fingerprint import SLOTS, slots_of
from swsdist.pipeline.chain import Context, Inputs, Stage
from swsdist.pipeline.task import P, Part, Task, TaskOutput
from swsdist.score.align import score_limits


class Indexed(NamedTuple):
    """The documents, frames and seconds in a shard.

    Attributes:
        documents, frames, seconds: totals.
        ffmpeg: versions of ffmpeg used for decoding.
        libraries: versions of the libraries that its frames depend on, on the worker.
        held: documents whose frames were copied from another name in the store.
    """

    documents: int
    frames: int
    seconds: float
    ffmpeg: list[str] = []
    libraries: dict[str, str] = {}
    held: int = 0


class Extracted(NamedTuple):
    """The searchable examples of a group of queries, with their queries, frames and seconds.

    Attributes:
        examples, query_ids, frames, seconds: of these.
        cuts: query, example, and s removed before and after its speech.
        ffmpeg: versions of ffmpeg used for decoding.
        libraries: versions of the libraries that its frames depend on, on the worker.
        unsearched: examples of fewer frames than the search takes.
    """

    examples: int
    query_ids: list[str]
    frames: int
    seconds: float
    cuts: list[list[Any]] = []
    ffmpeg: list[str] = []
    libraries: dict[str, str] = {}
    unsearched: int = 0


class Searched(NamedTuple):
    """The candidates of a task.

    Attributes:
        candidates: their number.
        fill: share of the lanes filled with document frames, 0 to 1; None without lanes.
        saturated: frames of both sides shortened by the distance's cap.
        best, best_found: best hits of the exact search of verified queries, and how many of them a first pass found.
    """

    candidates: int
    fill: float | None
    saturated: int
    best: int = 0
    best_found: int = 0


class Bucket(NamedTuple):
    """The list of one bucket of queries: number of rows, lowest and highest score."""

    rows: int
    low: float = 0.0
    high: float = 0.0


class Aligned(NamedTuple):
    """The trials of one bucket of queries.

    Attributes:
        rows: their number.
        unjudged: detections left out because nobody judged their places.
        detections: detections, with those.
    """

    rows: int
    unjudged: int = 0
    detections: int = 0


class Fitted(NamedTuple):
    """The source of decisions (`crossfit`, `oracle`, `file` or `none`), and its thresholds, one per fold or one for
    all.
    """

    fit: str
    thresholds: list[float | None]


class Counted(NamedTuple):
    """Names of the tables of counts of a bucket, in the order of its files."""

    names: list[str]


class Measured(NamedTuple):
    """Measures by name, their operating point, and unscorable queries."""

    measures: dict[str, Any]
    point: dict[str, Any]
    left_out: list[str]


class Summarised(NamedTuple):
    """Figures of a bucket for the report.

    Attributes:
        range: lowest and highest score of all lists, which the bins divide.
        true, false: histograms of the scores of targets and of non-targets.
    """

    range: tuple[float, float]
    true: list[int]
    false: list[int]


class Formatted(NamedTuple):
    """A part of the list in formats that are made of rows.

    Attributes:
        kinds: the formats, in the order of its files.
        queries: its queries.
        failed: why other formats cannot represent it.
    """

    kinds: list[str]
    queries: list[str]
    failed: dict[str, str]


class Exported(NamedTuple):
    """Warnings about failed exports, and the number of files."""

    warnings: list[str]
    files: int


def buckets_of(parts: Iterable[Part], inputs: Inputs) -> int:
    """The number of buckets that files, one each, were made for."""
    widths = (part.slots[1] - part.slots[0] + 1 for part in parts)
    return inputs.config.reduce.buckets or next((SLOTS // width for width in widths), 1)


class BucketStage(Stage[P]):
    """A stage with a task per bucket: of queries, or of another partition of its tables."""

    unit = "detections"
    in_buckets = True

    def numbered(self, bucket: int, buckets: int, inputs: Inputs, *key_parts: Any, work: float, payload: P) -> Task[P]:
        """The task of a bucket by number, of so many; other arguments as for `Inputs.task`."""
        slots = slots_of(bucket, buckets)
        return inputs.task(*key_parts, label=f"bucket {bucket}", work=work, payload=payload, slots=slots)

    def following(self, part: Part, inputs: Inputs, *key_parts: Any, payload: P) -> Task[P]:
        """The task for the bucket of a file; other arguments as for `Inputs.task`."""
        low, high = part.slots
        label = f"bucket {low * buckets_of([part], inputs) // SLOTS}"
        return inputs.task(*key_parts, label=label, work=part.rows, payload=payload, slots=range(low, high + 1))

    def done(self, task: Task[P], context: Context, result: pa.Table, *others: Part) -> TaskOutput:
        """Output of a bucket: its list of detections as the first table, its summary, and other files."""
        table = next(iter(self.tables))
        output = context.publish(task, table, [result], self.tables[table].schema)
        return TaskOutput((output, *others), Bucket(result.num_rows, *score_limits(result["score"])))
