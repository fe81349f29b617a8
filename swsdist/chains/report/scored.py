"""Scores in the report: the table by query, the DET curve, the histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from swsdist.audio.clips import clip_data_uri
from swsdist.audio.reader import probe
from swsdist.core.errors import AudioError
from swsdist.pipeline.chain_run import ChainRun
from swsdist.report import data as report
from swsdist.report.data import Hit
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.results import Settings
from swsdist.stages import summarise
from swsdist.stages.buckets import Bucket, Extracted, Measured, Summarised
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.queries import seconds_in
from swsdist.stages.summarise import edges_of


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
    detections = {
        row["query_id"]: row["detections"]
        for table in chain_run.read("summary", ["query_id", "detections"])
        for row in table.to_pylist()
    }
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
            detections=detections.get(query_id, 0),
        )
        for query_id in sorted({*terms, *rates})
    )
    return rows, det, scores


def mtwv_interval(chain_run: ChainRun) -> tuple[float, float] | None:
    """Bootstrap interval of MTWV over queries, at a fixed threshold, as of `swsdist compare`."""
    result = chain_run.results("measures", Measured)
    if not result or result[0].measures.get("mtwv") is None:
        return None
    values = {
        row["query_id"]: row["twv"]
        for table in chain_run.read("summary", ["query_id", "twv"])
        for row in table.to_pylist()
        if row["twv"] is not None
    }
    if len(values) < 2:
        return None
    settings = Settings()
    draws = bootstrap_terms(
        np.array([[values[name] for name in sorted(values)]]), resamples=settings.resamples, seed=settings.seed
    )
    return draws.interval(0, level=settings.level, method=settings.method)[:2]


def _histogram(chain_run: ChainRun) -> report.ScoreHistogram | None:
    """Histograms of the scores of target and non-target detections, on common edges."""
    parts = chain_run.results("summary", Summarised)
    if not any(bucket.rows for bucket in chain_run.results("scored", Bucket)):
        return None
    true, false = (np.array([each[k] for each in parts], np.int64).sum(axis=0) for k in (1, 2))
    return report.ScoreHistogram(edges_of(parts[0].range), true, false)


def best_hits(chain_run: ChainRun) -> tuple[Hit, ...]:
    """The best hits, with sound of hit and query."""
    inputs: CorpusInputs = chain_run.chain.inputs
    queries: dict[str, dict[str, Any]] = {}
    if inputs.store.manifest is None:
        return ()
    if chain_run.config.corpus.queries is not None:
        for row in inputs.corpus.queries.to_pylist():
            queries.setdefault(row["query_id"], row)
    hits = []
    for row in summarise.best_hits(chain_run.read("best"), inputs.store.open(), chain_run.config.report.clips):
        query = queries.get(row["query_id"], {})
        hits.append(
            Hit(
                query_id=row["query_id"],
                term=inputs.corpus.terms[row["query_id"]] if query else None,
                doc_id=row["doc_id"],
                channel=row["channel"],
                start=row["start"],
                end=row["end"],
                score=row["score"],
                verdict=row["verdict"],
                audio=_sound(chain_run, row["path"], row["channel"], row["start"], row["end"], 0.2),
                query_audio=_sound(
                    chain_run, query["path"], query["channel"], query.get("start"), query.get("end"), 0.0
                )
                if query
                else None,
            )
        )
    return tuple(hits)


def _sound(
    chain_run: ChainRun, path: str | None, channel: int, start: float | None, end: float | None, pad: float
) -> str | None:
    """A data URI; None without a readable recording: the page then shows the hit without sound."""
    if not path:
        return None
    storage = chain_run.config.storage
    try:
        last = probe(path, storage).duration if end is None else end
        return clip_data_uri(path, start or 0.0, last, channel=channel, pad=pad, storage=storage)
    except AudioError:
        return None
