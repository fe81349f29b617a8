"""Scores in the report: the table by query, the DET curve, the histogram."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow.compute as pc

from swsdist.evaluation.scored_system import finite_threshold, values_at
from swsdist.pipeline.chain_run import ChainRun
from swsdist.report import data as report
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.results import Settings
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.queries import seconds_in
from swsdist.stages.task_results import Bucket, Extracted, Measured


def scored_rows(
    chain_run: ChainRun,
) -> tuple[tuple[report.QueryRow, ...], report.DetCurve | None, report.ScoreHistogram | None]:
    """The table of queries, the DET curve and the histograms, if available."""
    inputs: CorpusInputs = chain_run.chain.inputs
    terms = inputs.corpus.terms
    durations: dict[str, float] = {}
    for (query_id, _), seconds in seconds_in(chain_run).items():
        durations[query_id] = durations.get(query_id, 0.0) + seconds
    cuts: dict[str, float] = {}
    for group in chain_run.results("groups", Extracted):
        for query_id, _, before, after in group.cuts:
            cuts[query_id] = cuts.get(query_id, 0.0) + before + after
    detections: Counter[str] = Counter()
    for table in chain_run.read("scored", ["query_id"]):
        for value in pc.value_counts(table["query_id"].combine_chunks()).to_pylist():
            detections[value["values"]] += value["counts"]
    rates: dict[str, dict[str, Any]] = {}
    det = scores = None
    for table in chain_run.read("terms"):
        rates.update({row["query_id"]: row for row in table.drop_columns(["best_threshold"]).to_pylist()})
    for curve in chain_run.read("det"):
        det = report.DetCurve(*(curve[column].to_numpy() for column in ("pmiss", "pfa", "threshold")))
        scores = _histogram(chain_run)
    rows = tuple(
        report.QueryRow(
            **{"query_id": query_id, **rates.get(query_id, {})},
            term=terms.get(query_id),
            duration=durations.get(query_id),
            cut=round(cuts[query_id], 3) if query_id in cuts else None,
            detections=detections[query_id],
        )
        for query_id in sorted({*terms, *rates})
    )
    return rows, det, scores


def mtwv_interval(chain_run: ChainRun) -> tuple[float, float] | None:
    """Bootstrap interval of MTWV over queries, at a fixed threshold, as of `swsdist compare`."""
    result = chain_run.results("measures", Measured)
    if not result or result[0].measures.get("mtwv") is None:
        return None
    measures, point = result[0].measures, result[0].point
    cut = finite_threshold(*(measures[key] for key in ("mtwv_threshold", "mtwv_pmiss", "mtwv_pfa")))
    values: dict[str, float] = {}
    for row in values_at(chain_run.read("trials"), cut, point["trials"], point["beta"]).to_pylist():
        if row["twv"] is not None:
            values[row["query_id"]] = row["twv"]
    if len(values) < 2:
        return None
    settings = Settings()
    draws = bootstrap_terms(
        np.array([[values[name] for name in sorted(values)]]), resamples=settings.resamples, seed=settings.seed
    )
    return draws.interval(0, level=settings.level, method=settings.method)[:2]


def _histogram(chain_run: ChainRun) -> report.ScoreHistogram | None:
    """Histograms of the scores of target and non-target detections, on common edges."""
    lists = [bucket for bucket in chain_run.results("scored", Bucket) if bucket.rows]
    if not lists:
        return None
    low, high = min(item.low for item in lists), max(item.high for item in lists)
    edges = np.linspace(low, high if high > low else low + 1.0, 61)
    true, false = np.zeros(60, np.int64), np.zeros(60, np.int64)
    for table in chain_run.read("trials", ["score", "ref_start"]):
        results = table.filter(pc.is_valid(table["score"]))
        paired = pc.is_valid(results["ref_start"])
        true += np.histogram(results.filter(paired)["score"].to_numpy(), edges)[0]
        false += np.histogram(results.filter(pc.invert(paired))["score"].to_numpy(), edges)[0]
    return report.ScoreHistogram(edges, true, false)
