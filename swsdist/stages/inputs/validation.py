"""Oddities in the tables of a searchable corpus: noted with a count and the first case.

Checks before the work use durations from a table or header; checks afterwards use measured ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import SHORTEST
from swsdist.calibrate.procedure import check_folds, fold_of, procedures
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.core.codes import stages as codes
from swsdist.core.types import CORPUS, DOCUMENTS
from swsdist.corpora.documents import ENDINGS, kind_of
from swsdist.corpora.places import is_placed
from swsdist.io.notices import UNFIT, Notices
from swsdist.io.tables import place
from swsdist.reduce.spans import SourcePlaces
from swsdist.registry.registries import CALIBRATION
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.corpus import agree
from swsdist.stages.inputs.corpus_documents import places_in
from swsdist.store.reading import keys_of

#: Seconds, by document and channel.
Seconds = Mapping[tuple[str, int], float]

#: Measured durations of documents (s).
MEASURED = pa.schema([*(CORPUS.field(name) for name in ("doc_id", "channel", "duration")), DOCUMENTS.field("cut_off")])

#: Tolerated excess of a reference's end beyond its recording (s).
_BEYOND = 0.5


def note_durations(documents: pa.Table, measured: pa.Table, where: str, storage: Any, notices: Notices) -> None:
    """Note durations in the documents' table (CORPUS) that the audio (MEASURED) contradicts, and truncated recordings."""
    cut = measured.filter(pc.is_valid(measured["cut_off"]))
    measured = measured.filter(pc.is_null(measured["cut_off"]))
    if cut.num_rows:
        first = cut.slice(0, 1).to_pylist()[0]
        length = f"{first['cut_off']:.1f} s" if first["cut_off"] else "an unknown length"
        notices.add(
            codes.TRUNCATED_RECORDING_INDEXED,
            where=f"{first['doc_id']}, {first['duration']:.1f} of {length}",
            count=pc.count_distinct(cut["doc_id"]).as_py(),
        )
    stated = documents["duration"].to_numpy()  # NaN if not stated
    at = places_in(keys_of(documents["doc_id"], documents["channel"]), keys_of(measured["doc_id"], measured["channel"]))
    actual = np.append(measured["duration"].to_numpy(), np.nan)[at]
    wrong = np.flatnonzero(~(agree(stated, actual) | np.isnan(stated) | np.isnan(actual)))
    if len(wrong):
        row = int(wrong[0])
        shown = f"{_at(where, row, documents, storage)}: {stated[row]:g} s, and there are {actual[row]:.2f} s"
        if kind_of(where, "documents", ENDINGS, storage) in ("folder", "recording"):
            notices.add(codes.WRONG_HEADER_DURATION, where=shown, count=len(wrong))
            return
        notices.weigh(
            codes.CONTRADICTED_DURATION,
            where=shown,
            count=len(wrong),
            of=int((~(np.isnan(stated) | np.isnan(actual))).sum()),
        )


def note_unread(population: pa.Table, where: str, notices: Notices) -> None:
    """Note unreadable documents of unknown duration: the scored seconds are too few."""
    unknown = population.filter(pc.and_(pc.invert(population["read"]), pc.is_null(population["duration"])))
    if unknown.num_rows:
        notices.add(codes.UNREAD_WITHOUT_DURATION, where=f"{where}: {unknown['doc_id'][0]}", count=unknown.num_rows)


def note_late_references(references: pa.Table, seconds: Seconds, where: str, storage: Any, notices: Notices) -> None:
    """Note references (REFERENCES) that end after their recording, and the likely unit of their times."""
    keys = list(zip(references["doc_id"].to_pylist(), references["channel"].to_pylist(), strict=True))
    ends = references["end"].to_pylist()
    timed = [k for k, key in enumerate(keys) if key in seconds]
    outside = [k for k in timed if ends[k] > seconds[keys[k]] + _BEYOND]
    if not outside:
        return
    most = len(outside) > UNFIT * len(timed)
    units = {"milliseconds": 1000.0, "frames of 10 ms": 100.0, "samples": 8000.0}
    fitting = [unit for unit, n in units.items() if all(ends[k] / n <= seconds[keys[k]] + _BEYOND for k in timed)]
    row = outside[0]
    advice = "check their times and recordings: nothing after the end can be found"
    if most and fitting:
        advice = f"they could be {' or '.join(fitting)}: give seconds"
    notices.weigh(
        codes.REFERENCE_AFTER_END,
        where=f"{place(where, row, storage)}: to {ends[row]:g} s, and there are {seconds[keys[row]]:.2f} s",
        count=len(outside),
        of=len(timed),
        advice=advice,
    )


def note_unknown_speakers(documents: pa.Table, queries: pa.Table, where: str, notices: Notices) -> None:
    """Note speakers of queries that no document has, if documents have speakers."""
    speakers = set(pc.unique(documents["speaker"]).to_pylist()) - {None}
    requested = [name for name in dict.fromkeys(queries["speaker"].to_pylist()) if name is not None]
    strange = [name for name in requested if name not in speakers]
    if speakers and strange:
        notices.add(
            codes.QUERY_SPEAKER_UNKNOWN,
            where=f"{where}: {strange[0]!r}; documents have {sorted(speakers)[0]!r}",
            count=len(strange),
        )


def note_query_places(
    documents: pa.Table, queries: pa.Table, left_out: SourcePlaces, where: str, notices: Notices
) -> None:
    """Note queries that are places in searched recordings: each finds itself, unless its own place is left out."""
    if left_out:
        query_id, recording = next(iter(left_out))
        notices.inform(
            codes.QUERY_SOURCE_EXCLUDED, where=f"{query_id!r}, in {recording}", count=sum(map(len, left_out.values()))
        )
    cut = {query_id for query_id, _ in left_out}
    searched: dict[tuple[str, int], list[tuple[float, float]]] = {}
    columns = [name for name in ("path", "channel", "start", "end") if name in documents.column_names]
    meant = pc.is_in(documents["path"], pc.unique(queries["path"]).drop_null())
    for row in documents.select(columns).filter(meant).to_pylist():
        span = (row.get("start", 0.0), row.get("end", math.inf))
        searched.setdefault((row["path"], row["channel"]), []).append(span)
    chain_inputs = [
        row
        for row in queries.to_pylist()
        if row["path"]
        and row["query_id"] not in cut
        and any(
            start < (math.inf if row["end"] is None else row["end"]) and (row["start"] or 0.0) < end
            for start, end in searched.get((row["path"], row["channel"]), ())
        )
    ]
    if chain_inputs:
        notices.add(
            codes.QUERY_FINDS_ITSELF,
            where=f"{where}: {chain_inputs[0]['query_id']!r}, in {chain_inputs[0]['path']}",
            count=len(chain_inputs),
        )


def note_query_lengths(spoken: Seconds, longest: float, where: str, notices: Notices) -> None:
    """Note query examples longer than the longest document (s), which can hardly occur in any; and too short ones."""
    short = [key for key, length in spoken.items() if length < SHORTEST]
    if short:
        query_id, example = short[0]
        notices.add(
            codes.SHORT_QUERY_EXAMPLE,
            where=f"{where}: {query_id!r}, example {example}, {spoken[short[0]]:.2f} s",
            count=len(short),
            shortest=SHORTEST,
        )
    longer = [key for key, length in spoken.items() if length > longest > 0]
    if longer:
        (query_id, example), length = longer[0], spoken[longer[0]]
        notices.add(
            codes.LONG_QUERY_EXAMPLE,
            where=f"{where}: {query_id!r}, example {example}, {length:.2f} s; the longest document has {longest:.2f} s",
            count=len(longer),
        )


def _at(where: str, row: int, documents: pa.Table, storage: Any) -> str:
    if is_placed(documents):
        return str(documents["listed"][row])
    tabled = kind_of(where, "documents", ENDINGS, storage) == "table"
    return place(where, row, storage) if tabled else str(documents["path"][row])


def seconds_of(documents: pa.Table, some: pa.ChunkedArray | None = None) -> dict[tuple[str, int], float]:
    """Durations in a table of documents (CORPUS, or that of a store); of all, or of those with `some` names."""
    mask = pc.is_valid(documents["duration"])
    if some is not None:
        mask = pc.and_(mask, pc.is_in(documents["doc_id"], pc.unique(some)))
    timed = documents.select(["doc_id", "channel", "duration"]).filter(mask)
    keys = zip(timed["doc_id"].to_pylist(), timed["channel"].to_pylist(), strict=True)
    return dict(zip(keys, timed["duration"].to_pylist(), strict=True))


def folds_of_steps(settings: Calibrate) -> set[int]:
    """Numbers of folds by which steps are crossfit."""
    return {settings.folds} if settings.fitted and settings.fit == "crossfit" else set()


def check_scorable(documents: pa.Table, where: str, references: pa.Table, folds: Iterable[int]) -> None:
    """Check that documents and references suffice for scoring and fitting.

    Args:
        documents, where: see `demand_channel_1`.
        references: REFERENCES, at least one.
        folds: numbers of folds by which calibration steps are fitted.

    Raises:
        UserError: nothing can be scored, or steps cannot be fitted.
    """
    demand_channel_1(documents, where)
    for many in sorted(folds):
        check_folds(Counter(fold_of(name, many) for name in references["query_id"].unique().to_pylist()), many)


def demand_channel_1(documents: pa.Table, where: str) -> None:
    """Demand a document of channel 1: its seconds make the trials, as in STDEval, which counts a recording once for all
    channels.

    Raises:
        UserError: no document is of channel 1, so nothing can be scored.
    """
    channels = sorted(pc.unique(documents["channel"]).to_pylist())
    if channels and 1 not in channels:
        raise codes.NO_CHANNEL_1(where=f"corpus.documents: {where}", channels=", ".join(map(str, channels)))


def document_checks(config: Config) -> list[Callable[[pa.Table], None]]:
    """Checks of documents by a config's steps; each raises if documents are unsuitable.

    Raises:
        ConfigError: steps use lists, and the trials of the protocol are segments.
    """
    settings = config.calibrate
    result: list[Callable[[pa.Table], None]] = []
    here = settings.fit in ("crossfit", "oracle")
    steps = [step for procedure in procedures(settings, TwvParameters(1, 1.0)) for step in procedure.steps]
    by_list = [step.name for step in steps if step.of_list() and (here or not CALIBRATION[step.name].fits)]
    trials = protocol_of(config.score).trials
    if by_list and trials == "segment":
        raise codes.STEP_NEEDS_NO_SEGMENTS(where="calibrate.steps", step=by_list[0])
    if by_list and trials == "document":
        result.append(partial(demand_whole_recordings, by_list[0]))
    return result


def demand_whole_recordings(step: str, documents: pa.Table) -> None:
    """Demand documents that are recordings, for steps that use a query's document trials.

    Args:
        step: its name.
        documents: CORPUS or PLACED.

    Raises:
        UserError: documents are places in recordings.
    """
    if is_placed(documents):
        raise codes.STEP_NEEDS_WHOLE_RECORDINGS(where="calibrate.steps", step=step)
