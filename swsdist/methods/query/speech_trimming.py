"""A recorded query is listened to: where is its speech?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.audio.speech import find_speech
from swsdist.core.codes import methods as codes

#: Seconds of a query that are listened to, in order to find its speech: many more than can be searched.
_LONGEST_HEARD = 600.0
#: Seconds of a phrase, and of what is around it, in a recording that somebody made of a query: a tape has more.
_LONGEST_SPOKEN, _LONGEST_AROUND = 30.0, 30.0


class TrimmedPlace(NamedTuple):
    """A recorded example that was listened to.

    Attributes:
        start, end: of what is searched; None: those of the recording.
        seconds: of it, as far as it was listened to.
        before, after: s that are cut off.
    """

    start: float | None
    end: float | None
    seconds: float
    before: float
    after: float


def trim_to_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object], trim: bool = True) -> TrimmedPlace:
    """Listen to an example, and find its speech; an end that was given stays.

    Args:
        row: of QUERIES.
        rate: Hz.
        storage: options for s3fs.
        trim: without it, nothing is cut off.

    Raises:
        AudioError: it cannot be used, has no speech, or far more than a query has.
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
    # An end of which nothing is cut stays as it was: it may lie beyond what was listened to.
    kept = before if before else start, place.end + (start or 0.0) if after else end
    return TrimmedPlace(*kept, seconds - before - after, before, after)


def has_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> bool:
    """Whether there is speech in a recorded example, or in the place that it is.

    Args:
        row, rate, storage: as of `trim_to_speech`.

    Raises:
        AudioError: it cannot be used.
    """
    return find_speech(np.concatenate([np.empty(0, np.float32), *_beginning(row, rate, storage)]), rate) is not None


def _beginning(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> Iterator[NDArray[np.float32]]:
    """Samples of a recorded query; of one that is far too long only as many as show it."""
    left = round(_LONGEST_HEARD * rate)
    parts = read_blocks(
        row["path"], channel=row["channel"], rate=rate, start=row["start"], end=row["end"], storage=storage
    )
    for block in parts:
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return
