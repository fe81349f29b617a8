"""A run's best hits, with sound, for the page."""

from __future__ import annotations

from typing import Any

from swsdist.audio.clips import clip_data_uri
from swsdist.audio.reader import probe
from swsdist.core.errors import AudioError
from swsdist.pipeline.chain_run import ChainRun
from swsdist.report.data import Hit
from swsdist.stages import summarise
from swsdist.stages.inputs.search_inputs import CorpusInputs


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
