"""What is heard in the documents of a corpus: how long they last, where there is speech, how loud the noise is.

Recordings are read in blocks of a minute at their own rate, some at the same time; of an hour 2 MB are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from swsdist.audio import commands
from swsdist.audio.marks import Listener
from swsdist.audio.noise import Counts, Meter
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import HOP, WINDOW
from swsdist.errors import AudioError
from swsdist.io.notices import Notices

#: More threads than that wait for each other.
_THREADS = 8


@dataclass(frozen=True, eq=False)
class Heard:
    """A document; times in s.

    Attributes:
        seconds: how long it lasts.
        speech: how much of it is speech, by `swsdist.audio.marks`; None: nobody listened.
        powers: how many windows have which power (`swsdist.audio.noise`); None: nobody listened.
    """

    seconds: float
    speech: float | None = None
    powers: Counts | None = None


def hear(
    documents: Sequence[Mapping[str, Any]],
    listen: bool,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> list[Heard | None]:
    """What is heard in each document; None where there is no recording, or it cannot be used, which is noted.

    Args:
        documents: rows of CORPUS or PLACED.
        listen: else durations are those of the table, of the place, or of the header.
        notices: told of recordings that cannot be used.
        storage: options for s3fs.
        progress: told the seconds of each document that is done.
    """

    def one(row: Mapping[str, Any]) -> Heard | AudioError | None:
        try:
            return _listened(row, storage) if listen else _measured(row, storage)
        except AudioError as error:
            return error

    found: list[Heard | None] = []
    pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1))
    try:
        for row, result in zip(documents, pool.map(one, documents), strict=True):
            if isinstance(result, AudioError):
                notices.add(
                    "recordings cannot be used, and a run will reject them",
                    where=f"{result.where or row['path']}: {result.message}",
                    remedy=result.remedy or "mend them, or drop them",
                )
                result = None
            found.append(result)
            progress(result.seconds if result is not None else 0.0)
    finally:
        pool.shutdown(cancel_futures=True)  # who interrupts does not wait for the rest
    return found


def _measured(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> Heard | None:
    if "start" in row:
        return Heard(row["end"] - row["start"])
    if row["duration"] is not None:
        return Heard(row["duration"])
    if not row["path"] or commands.is_command(row["path"]):
        return None
    return Heard(probe(row["path"], storage).duration)


def _listened(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> Heard | None:
    if not row["path"]:
        return _measured(row, storage)
    rate = probe(row["path"], storage).rate
    listener, meter, samples = Listener(rate), Meter(rate), 0
    for block in _blocks(row, rate, storage):
        listener.add(block)
        meter.add(block)
        samples += len(block)
    hop = max(1, round(HOP * rate))
    frames = samples // hop
    marks = listener.marks(frames, hop, round(WINDOW * rate))
    seconds = samples / rate
    return Heard(seconds, min(seconds, float(marks.sum()) * hop / rate), meter.counts)


def _blocks(row: Mapping[str, Any], rate: int, storage: Mapping[str, object] | None) -> Iterator[Any]:
    place = {"start": row["start"], "end": row["end"]} if "start" in row else {}
    return read_blocks(row["path"], channel=row["channel"], rate=rate, storage=storage, **place)
