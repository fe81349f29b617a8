"""Durations, speech and noise of a corpus' documents.

Recordings are read in blocks of a minute at their sample rate, in threads; an hour needs 2 MB of memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

from swsdist.audio import commands, places
from swsdist.audio.marks import Listener
from swsdist.audio.speech import Counts, Meter
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import HOP, WINDOW
from swsdist.core.codes import discovery as codes
from swsdist.core.errors import AudioError
from swsdist.io.notices import Notices

#: More threads would wait for each other.
_THREADS = 8


@dataclass(frozen=True, eq=False)
class Acoustics:
    """Acoustics of a document; times in s.

    Attributes:
        seconds: its duration.
        speech: seconds of speech, by `swsdist.audio.marks`; None: not measured.
        powers: histogram of window powers (`swsdist.audio.speech`); None: not measured.
    """

    seconds: float
    speech: float | None = None
    powers: Counts | None = None


def measure_acoustics(
    documents: Sequence[Mapping[str, Any]],
    listen: bool,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> list[Acoustics | None]:
    """Measure the acoustics of each document; None without a usable recording, with a notice.

    Args:
        documents: rows of CORPUS or PLACED.
        listen: measure; else only durations, of the table, the segment, or the header.
        notices: receives unusable recordings.
        storage: options for s3fs.
        progress: receives seconds done since its last call; one thread at a time.
    """
    lock = Lock()

    def report_progress(seconds: float) -> None:
        with lock:
            progress(seconds)

    def measure(row: Mapping[str, Any]) -> Acoustics | AudioError | None:
        try:
            return _acoustics_of(row, storage, report_progress) if listen else _duration_of(row, storage)
        except AudioError as error:
            return error

    def together(rows: list[int]) -> list[Acoustics | AudioError | None]:
        with places.caching():  # places in a recording that ffmpeg decodes are decoded once
            return [measure(documents[row]) for row in rows]

    by_recording: dict[str, list[int]] = {}
    for k, row in enumerate(documents):
        by_recording.setdefault(row["path"] or f"none {k}", []).append(k)
    acoustics_by_row: dict[int, Acoustics | AudioError | None] = {}
    pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1))
    try:
        for rows, result in zip(by_recording.values(), pool.map(together, by_recording.values()), strict=True):
            acoustics_by_row |= zip(rows, result, strict=True)
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt does not wait for the rest
    return [_usable(row, acoustics_by_row[k], notices) for k, row in enumerate(documents)]


def _usable(row: Mapping[str, Any], result: Acoustics | AudioError | None, notices: Notices) -> Acoustics | None:
    if not isinstance(result, AudioError):
        return result
    notices.add(codes.UNUSABLE_RECORDING, where=f"{result.where or row['path']}: {result.message}", count=1)
    return None


def _duration_of(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> Acoustics | None:
    if "start" in row:
        return Acoustics(row["end"] - row["start"])
    if row["duration"] is not None:
        return Acoustics(row["duration"])
    if not row["path"] or commands.is_command(row["path"]):
        return None
    return Acoustics(probe(row["path"], storage).duration)


def _acoustics_of(
    row: Mapping[str, Any], storage: Mapping[str, object] | None, progress: Callable[[float], None]
) -> Acoustics | None:
    if not row["path"]:
        return _duration_of(row, storage)
    rate = probe(row["path"], storage).rate
    listener, meter, samples = Listener(rate), Meter(rate), 0
    place = {"start": row["start"], "end": row["end"]} if "start" in row else {}
    for block in read_blocks(row["path"], channel=row["channel"], rate=rate, storage=storage, **place):
        listener.add(block)
        meter.add(block)
        samples += len(block)
        progress(len(block) / rate)
    hop = max(1, round(HOP * rate))
    marks = listener.marks(samples // hop, hop, round(WINDOW * rate))
    seconds = samples / rate
    return Acoustics(seconds, min(seconds, float(marks.sum()) * hop / rate), meter.counts)
