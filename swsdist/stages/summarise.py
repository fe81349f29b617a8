"""summarise finds what the report and exports show of the list: best hits, and per query and in all how many and how good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.types import BEST, DETECTIONS, SUMMARY
from swsdist.evaluation.comparison import finite_threshold, values_at
from swsdist.pipeline.chain import Context, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.status import each_key, unlabelled
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import Bucket, BucketStage, Measured, Summarised
from swsdist.store.reading import Recording, Store

_KEY = ("query_id", "doc_id", "channel", "start", "end")
_BY_SCORE = [("score", "descending"), *((name, "ascending") for name in _KEY)]

#: Bins of the histograms.
_BINS = 60


class Summing(NamedTuple):
    """The payload of a task.

    Attributes:
        scored, trials: files of a bucket.
        best: greatest number of best hits.
        range: lowest and highest score of all lists.
        cut: threshold of MTWV (None: nothing is accepted), trials and beta; None without MTWV.
    """

    scored: str | None
    trials: str | None
    best: int
    range: tuple[float, float]
    cut: tuple[float | None, float, float] | None


class Summarise(BucketStage[Summing]):
    """A task per bucket, so that nobody holds the list."""

    name = "summarise"
    version = 1
    phase = "score"
    takes = {"scored": "scored"}
    may_take = {"trials": "trials", "measures": "measures"}
    grows_with_hours = "kept"
    tables = {"best": Table(BEST, digested=False), "summary": Table(SUMMARY, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Summing]]:
        """A task per bucket of detections or trials."""
        scored, trials = ({part.slots: part for part in inputs.parts(word)} for word in ("scored", "trials"))
        lists = [bucket for _, bucket in inputs.results("scored", Bucket) if bucket.rows]
        limits = min((each.low for each in lists), default=0.0), max((each.high for each in lists), default=0.0)
        cut = None
        for _, result in inputs.results("measures", Measured):
            measures, point = result.measures, result.point
            if measures.get("mtwv") is not None:
                threshold = finite_threshold(*(measures[f"mtwv_{name}"] for name in ("threshold", "pmiss", "pfa")))
                cut = threshold, point["trials"], point["beta"]
        for slots in sorted(scored.keys() | trials.keys()):
            parts = [of[slots] for of in (scored, trials) if slots in of]
            detected, aligned = (of[slots].name if slots in of else None for of in (scored, trials))
            payload = Summing(detected, aligned, inputs.config.report.clips, limits, cut)
            yield self.following(parts[0], inputs, *payload, payload=payload)

    def run(self, task: Task[Summing], context: Context) -> TaskOutput:
        """Summarise a bucket."""
        payload = task.payload
        detections = DETECTIONS.empty_table() if payload.scored is None else context.read(payload.scored)
        trials = None if payload.trials is None else context.read(payload.trials)
        histograms = [[0] * _BINS] * 2 if trials is None else _histograms(trials, edges_of(payload.range))
        outputs = (
            context.publish(task, "best", [_best(detections, trials, payload.best)], BEST, "-best.parquet"),
            context.publish(task, "summary", [_summary(detections, trials, payload.cut)], SUMMARY),
        )
        return TaskOutput(outputs, Summarised(payload.range, *histograms))


def best_hits(tables: Iterable[pa.Table], store: Store, most: int) -> list[dict[str, Any]]:
    """The highest-scoring detections, each with its document's path; `verdict` if scored.

    They alternate between queries: the best of each before any second, and so on. Fewer than `most` are returned only
    if there are no more detections.

    Args:
        tables: BEST, of all buckets.
        store: the searched store.
        most: greatest number of rows.

    Returns:
        Rows of BEST with path (empty if the store does not know the recording) and duration, highest score first.
    """
    best = _first(pa.concat_tables([BEST.empty_table(), *tables]), most)
    chosen = best.take(pc.sort_indices(best, _BY_SCORE)).drop_columns(["turn"]).to_pylist()
    found_in = store.recordings([row["doc_id"] for row in chosen])
    # This store may lack documents searched by another system of a fusion: such a hit has no audio.
    return [
        {**row, **found_in.get((row["doc_id"], row["channel"]), Recording("", row["end"]))._asdict()} for row in chosen
    ]


def edges_of(limits: tuple[float, float]) -> np.ndarray:
    """Edges of the histograms' bins, given the lowest and the highest score."""
    low, high = limits
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _best(detections: pa.Table, trials: pa.Table | None, most: int) -> pa.Table:
    """Of a bucket the rows with the lowest turns."""
    table = _leading(detections, most) if most else detections[:0]
    table = table.take(pc.sort_indices(table, [("query_id", "ascending"), *_BY_SCORE]))
    codes = _codes(table)
    first = np.searchsorted(codes, codes)  # ascending, since ids were sorted before numbering
    turns = pa.array(np.arange(len(codes)) - first, pa.int64())
    best = _first(table.append_column("turn", turns), most)
    verdicts = {}
    if trials is not None:
        among = pc.is_in(trials["doc_id"], pc.unique(best["doc_id"]))
        near = trials.filter(pc.and_(among, pc.is_valid(trials["score"])))
        keys = zip(*(near[name].to_pylist() for name in _KEY), strict=True)
        verdicts = dict(zip(keys, pc.is_valid(near["ref_start"]).to_pylist(), strict=True))
    words = {True: "hit", False: "false alarm", None: "unknown"}
    keys = zip(*(best[name].to_pylist() for name in _KEY), strict=True)
    return best.append_column("verdict", pa.array([words[verdicts.get(key)] for key in keys], pa.string()))


def _leading(table: pa.Table, most: int) -> pa.Table:
    """Rows that include the best of each query, so that few are sorted: those not below its score of this rank."""
    codes, scores = _codes(table), table["score"].to_numpy()
    leads = np.ones(len(codes), bool)
    for first, last in pairwise([*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(codes)]):
        if last - first > most:
            here = scores[first:last]
            leads[first:last] = here >= np.partition(here, -most)[-most]
    return table.filter(pa.array(leads))


def _codes(table: pa.Table) -> np.ndarray:
    codes: np.ndarray = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return codes


def _first(table: pa.Table, most: int) -> pa.Table:
    """The rows with the lowest turns."""
    return table.take(pc.sort_indices(table, [("turn", "ascending"), *_BY_SCORE])[:most])


def _summary(detections: pa.Table, trials: pa.Table | None, cut: tuple[float | None, float, float] | None) -> pa.Table:
    hashes = each_key(unlabelled(detections), "query_id")
    counts = {row["values"]: row["counts"] for row in pc.value_counts(detections["query_id"]).to_pylist()}
    twv: dict[str, float] = {}
    if trials is not None and cut is not None:
        threshold, number, beta = cut
        values = values_at([trials], threshold, int(number), beta)
        twv = dict(zip(values["query_id"].to_pylist(), values["twv"].to_pylist(), strict=True))
    names = sorted(counts.keys() | twv.keys())
    return pa.Table.from_pylist(
        [
            {"query_id": name, "detections": counts.get(name, 0), "sha256": hashes.get(name), "twv": twv.get(name)}
            for name in names
        ],
        SUMMARY,
    )


def _histograms(trials: pa.Table, edges: np.ndarray) -> list[list[int]]:
    """Numbers of scores of targets and of non-targets by bin."""
    found = trials.filter(pc.is_valid(trials["score"]))
    true = pc.is_valid(found["ref_start"])
    return [
        np.histogram(found.filter(which)["score"].to_numpy(), edges)[0].tolist() for which in (true, pc.invert(true))
    ]
