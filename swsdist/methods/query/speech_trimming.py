"""Trim a recorded query to its speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.audio.speech import find_speech
from swsdist.core.codes import methods as codes

#: Seconds of a query that are examined for speech, far more than can be searched.
_EXAMINED_SECONDS = 600.0
#: Longest phrase, and longest rest, of a recording of a query (s): a tape has more.
_LONGEST_SPOKEN, _LONGEST_AROUND = 30.0, 30.0


class TrimmedPlace(NamedTuple):
    """The trimmed place of a recorded example.

    Attributes:
        start, end: of the search, s; None: ends of the recording.
        seconds: its length, as far as examined.
        before, after: s trimmed.
    """

    start: float | None
    end: float | None
    seconds: float
    before: float
    after: float


def trim_to_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object], trim: bool = True) -> TrimmedPlace:
    """Trim an example to its speech; a start or end in the query table stays.

    Args:
        row: of QUERIES.
        rate: Hz.
        storage: options for s3fs.
        trim: False: trim nothing.

    Raises:
        AudioError: the recording cannot be used, has no speech, or is too long.
    """
    start, end = row["start"], row["end"]
    samples = np.concatenate([np.empty(0, np.float32), *_beginning(row, rate, storage)])
    seconds = len(samples) / rate
    if not trim or (start is not None and end is not None):
        return TrimmedPlace(start, end, seconds, 0.0, 0.0)
    place = find_speech(samples, rate)
    if place is None:
        raise codes.NO_SPEECH(where=row["path"])
    before = place.start if start is None else 0.0
    after = place.duration - place.end if end is None else 0.0
    if place.end - place.start > _LONGEST_SPOKEN or before + after > _LONGEST_AROUND:
        raise codes.PHRASE_TOO_LONG(where=row["path"], seconds=seconds, phrase=place.end - place.start)
    # An end that is not trimmed stays: it may lie beyond the examined part.
    kept = before if before else start, place.end + (start or 0.0) if after else end
    return TrimmedPlace(*kept, seconds - before - after, before, after)


def has_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> bool:
    """Whether a recorded example, or its place, contains speech.

    Args:
        row, rate, storage: as of `trim_to_speech`.

    Raises:
        AudioError: the recording cannot be used.
    """
    return find_speech(np.concatenate([np.empty(0, np.float32), *_beginning(row, rate, storage)]), rate) is not None


def _beginning(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> Iterator[NDArray[np.float32]]:
    """Samples of a recorded query, at most `_EXAMINED_SECONDS`."""
    left = round(_EXAMINED_SECONDS * rate)
    parts = read_blocks(
        row["path"], channel=row["channel"], rate=rate, start=row["start"], end=row["end"], storage=storage
    )
    for block in parts:
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return
