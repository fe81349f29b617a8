"""Documents that have the same sound at the same time: channels of one recording, and copies.

A **copy** sounds as an earlier document does: a second channel with the same samples, a recording with the bytes of another, or
the same recording in another format. What recurs in it, and what is found in it, is counted once. Documents that differ (two
microphones, segments that overlap) still have one time if they are of one recording.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.marks import unpack_marks

Key: TypeAlias = tuple[str, int]

#: Columns of DOCUMENTS that say when a document is, and how it sounds.
WHEN = ("doc_id", "channel", "recording", "start")
SOUND = (*WHEN, "duration", "frames", "mean", "variance", "speech")

#: What lossy coding changes at most: the duration (s); the share of frames whose mark of speech is another; of all columns the
#: mean difference of means, in standard deviations, and of logarithms of variances. Measured on 12 utterances by seven codings
#: (mp3 and opus from 24 kbit/s) against 720 000 pairs of different ones of one recorder, of which none has such means.
_DURATION, _MARKS, _MEAN, _VARIANCE = 0.05, 0.03, 0.03, 0.25
#: Where nobody pauses, means and variances twice as near say enough up to this duration (s): those of long recordings of one
#: voice are all near.
_SHORT = 60.0


def times(documents: pa.Table, tick: float) -> dict[Key, tuple[str, int]]:
    """When each document is: its recording, and the frame of this at which it begins; columns WHEN, and seconds a frame."""
    return {
        (row["doc_id"], row["channel"]): (row["recording"] or row["doc_id"], round((row["start"] or 0.0) / tick))
        for row in documents.select(WHEN).to_pylist()
    }


def copies(documents: pa.Table) -> dict[Key, Key]:
    """The copies among documents (columns SOUND), and what each is a copy of: the first by name and channel."""
    table = documents.select(SOUND).sort_by([("doc_id", "ascending"), ("channel", "ascending")])
    rows = table.to_pylist()
    if len(rows) < 2:
        return {}
    duration, mean, variance = (np.array([row[name] for row in rows]) for name in ("duration", "mean", "variance"))
    marks = [_marks(row) for row in rows]
    spoken = np.array([0 if mark is None else np.count_nonzero(mark) for mark in marks])
    typical = variance.mean(axis=0)
    means = mean / np.sqrt(np.where(typical > 0, typical, 1.0))
    spreads = np.log(np.maximum(variance, np.finfo(np.float64).tiny))
    order = np.argsort(duration, kind="stable")
    ends = np.searchsorted(duration[order], duration[order] + _DURATION, side="right")
    first = np.arange(len(rows))
    for place, end in enumerate(ends.tolist()):
        this, others = int(order[place]), order[place + 1 : end]
        others = others[np.abs(spoken[others] - spoken[this]) <= _MARKS * rows[this]["frames"] + 1]
        distance = np.maximum(
            np.abs(means[others] - means[this]).mean(axis=1) / _MEAN,
            np.abs(spreads[others] - spreads[this]).mean(axis=1) / _VARIANCE,
        )
        for other, far in zip(others[distance <= 1].tolist(), distance[distance <= 1].tolist(), strict=True):
            enough = (far <= 0.5 and duration[this] <= _SHORT) or _when(rows[this]) == _when(rows[other])
            if far == 0 or _alike(marks[this], marks[other], enough):
                low, high = sorted((first[this], first[other]))
                first[first == high] = low
    keys = [(row["doc_id"], row["channel"]) for row in rows]
    return {keys[k]: keys[least] for k, least in enumerate(first.tolist()) if least != k}


def _marks(row: dict[str, object]) -> NDArray[np.bool_] | None:
    speech, frames = row["speech"], row["frames"]
    return unpack_marks(speech, frames) if isinstance(speech, bytes) and isinstance(frames, int) else None


def _when(row: dict[str, object]) -> tuple[object, object]:
    return row["recording"] or row["doc_id"], row["start"]


def _alike(marks: NDArray[np.bool_] | None, others: NDArray[np.bool_] | None, enough: bool) -> bool:
    """Whether speech and pauses of two documents are at the same times.

    Args:
        marks, others: of each; None: unknown.
        enough: whether there need not be pauses.
    """
    if marks is None or others is None:
        return False
    count = min(len(marks), len(others))
    marks, others = marks[:count], others[:count]
    same = np.count_nonzero(marks != others) <= _MARKS * count
    return bool(same and (enough or (marks.any() and not marks.all())))
