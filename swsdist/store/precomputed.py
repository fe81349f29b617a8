"""Precomputed frames to be stored: of documents, and of query examples.

The row of a document names its item (`item`, a list, since tasks are plain JSON), or None if it has no item.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.audio import commands
from swsdist.audio.places import OVERSHOOT, fit_segment
from swsdist.audio.reader import probe
from swsdist.core.codes import storage as codes
from swsdist.core.errors import AudioError
from swsdist.corpora.places import SLACK
from swsdist.features.interface import Precomputed, frame_count, frame_shift, frames_seconds
from swsdist.io.filesystem import Folder
from swsdist.io.frames.item import MISSING, UNREADABLE, Item


def precomputed_frames(
    document: Mapping[str, Any], precomputed: Precomputed, folder: Folder
) -> Generator[NDArray[np.float32], None, float]:
    """Yield the frames of a document; return its duration: that of the recording, else of the table, else of the
    frames.

    A document that is a place in a recording has the duration of the place, at most to the end of the recording.

    Args:
        document: row with `item`, `key`, `duration`, `path`; of a place also `doc_id`, `start`, `end`, `listed`.
        precomputed: reader of its frames.
        folder: gives the storage options.

    Raises:
        FramesError: frames are missing, or contradict the options.
        AudioError: the place is not in the recording.
    """
    item = demand_item(document["item"], document["key"])
    end = document.get("end")
    path = document["path"] if document["path"] != item.file else None
    seconds = recording_seconds(path, folder.storage, None if end is None else end - OVERSHOOT)
    if document.get("start") is not None:
        start, end = document["start"], document["end"]
        if seconds is not None:
            start, end = fit_segment(start, end, seconds, document["doc_id"], document["listed"], document["path"])
        seconds = round(end - start, 6)
    elif seconds is None:
        seconds = document["duration"]
    frames = 0
    for block in precomputed.read(item, document["key"], folder.storage, seconds):
        frames += len(block)
        yield block
    return float(seconds) if seconds is not None else frames_seconds(precomputed, frames)


def precomputed_example(document: Mapping[str, Any], precomputed: Precomputed, folder: Folder) -> NDArray[np.float32]:
    """Frames of a query example: all of its item, or those of its place in a document.

    Args:
        document: row with `item`, `key`, `cut` (whether to cut out the place), `begins` (start, in the recording, of
            the audio that the place is cut from, s), and `example`, its row of QUERIES with times in the recording.
        precomputed: reader of its frames.
        folder: gives the storage options.

    Returns:
        float32 (frames, dimension).

    Raises:
        FramesError: frames are missing, contradict the options, or do not contain the place.
    """
    row, key = document["example"], document["key"]
    item = demand_item(document["item"], key)
    start, end = row["start"], row["end"]
    if document["cut"]:
        frames = np.concatenate(list(precomputed.read(item, key, folder.storage)))
        shift, begins = frame_shift(precomputed), document.get("begins", 0.0)
        shown = f"from {start or 0:g} to {'the end' if end is None else f'{end:g}'} s"
        start, end = (None if time is None else round(time - begins, 9) for time in (start, end))
        first = 0 if start is None else round(max(0.0, start) / shift)
        # Only frames that lie entirely in the place.
        ticks = None if end is None else round((end - max(0.0, start or 0.0)) * precomputed.sample_rate)
        cut = frames[first:] if ticks is None else frames[first : first + frame_count(precomputed, ticks)]
        early = start is not None and start < -SLACK
        if len(cut) == 0 or early or (end is not None and end > frames_seconds(precomputed, len(frames)) + shift):
            of = f", which begins at {begins:g} s" if begins else ""
            raise codes.PLACE_OUTSIDE_FRAMES(
                where=item.file, key=key, place=shown, frames=len(frames), shift=shift, offset=of
            )
        return _varied(cut, key, item)
    seconds = end if end is not None or row["path"] == item.file else recording_seconds(row["path"], folder.storage)
    if seconds is not None:
        seconds -= start or 0.0
    return _varied(np.concatenate(list(precomputed.read(item, key, folder.storage, seconds))), key, item)


def _varied(frames: NDArray[np.float32], key: str, item: Item) -> NDArray[np.float32]:
    """Frames of an example, if they vary.

    Raises:
        FramesError: all are equal, as in silence.
    """
    if len(frames) > 1 and (frames == frames[0]).all():
        raise codes.CONSTANT(where=item.file, key=key, frames=len(frames))
    return frames


def demand_item(item: list[Any] | None, key: str) -> Item:
    """The item of a row.

    Raises:
        FramesError: the row has no item, or its file is missing.
    """
    if item is None:
        raise codes.NO_FRAMES(where="features.options.path", key=key)
    result = Item(*item)
    if result.identity in (MISSING, UNREADABLE):
        if result.identity == MISSING:
            raise codes.MISSING_FRAMES_FILE(where=result.file, key=key)
        raise codes.UNREADABLE_FRAMES_FILE(where=result.file, key=key)
    return result


def recording_seconds(path: str | None, storage: Mapping[str, object], after: float | None = None) -> float | None:
    """Seconds of a recording, as `probe` finds them; None if missing or unreadable. Commands are not run."""
    if not path or commands.is_command(path):
        return None
    try:
        return probe(path, storage, after).duration
    except AudioError:
        return None
