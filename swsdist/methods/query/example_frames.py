"""Frames of a spoken example, from a file or a place in it; limits of their number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.config.search import Search
from swsdist.core.codes import methods as codes
from swsdist.core.errors import AudioError
from swsdist.features.blocks import in_blocks
from swsdist.features.interface import Extractor, for_speaker, frame_count, frame_shift, surroundings
from swsdist.io.filesystem import Folder
from swsdist.kernels.arithmetic import LONGEST_QUERY
from swsdist.registry.registries import RECURRENCES

#: Frames of an example that is averaged with others: a table of two such has 2^24 places.
LONGEST_AVERAGED = 1 << 12


def example_frames(row: dict[str, Any], extractor: Extractor, folder: Folder) -> NDArray[np.float32]:
    """Frames of one example, float32 (frames, dimension).

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    extractor = for_speaker(extractor, row["speaker"])
    rate, shift = extractor.sample_rate, frame_shift(extractor)
    start, end = row["start"], row["end"]
    context = surroundings(extractor)
    around = context * shift
    # Context to the left is a whole number of frames, so that the place begins on a frame.
    before = 0 if start is None else min(context, int(start / shift + 1e-6))
    parts = read_blocks(
        row["path"],
        channel=row["channel"],
        rate=rate,
        start=None if start is None else max(0.0, start - before * shift),  # that may be -2e-16
        end=None,
        storage=folder.storage,
    )
    if end is None:
        frames = np.concatenate(list(in_blocks(extractor, parts)))[before:]
        if len(frames) == 0:
            raise _too_short(row, extractor)
        return frames
    # Checked against the recording before the context is added to it.
    inside = sum(
        len(block)
        for block in read_blocks(
            row["path"], channel=row["channel"], rate=rate, start=start or 0.0, end=end, storage=folder.storage
        )
    )
    count = frame_count(extractor, inside)
    if count == 0:
        raise _too_short(row, extractor)
    need = round((before * shift + end - (start or 0.0) + around) * rate) + extractor.frame_length
    samples = np.concatenate(list(_first(parts, need)))
    return np.concatenate(list(in_blocks(extractor, [samples])))[before : before + count]


def _too_short(row: dict[str, Any], extractor: Extractor) -> AudioError:
    return codes.PLACE_TOO_SHORT(where=row["path"], seconds=extractor.frame_length / extractor.sample_rate)


def bounded(frames: NDArray[np.float32], row: dict[str, Any], search: Search, average: bool) -> NDArray[np.float32]:
    """Check the number of frames of an example.

    Raises:
        AudioError: the recurrence does not hold them, or `average` cannot.
    """
    options = search.recurrence_settings()
    longest = RECURRENCES[search.recurrence].longest(options)
    use, fix = "searched", "cut it into shorter queries"
    if longest != LONGEST_QUERY:
        use += f" with search.recurrence: {search.recurrence}"
        use += "".join(f" and {name}: {value}" for name, value in options.items())
        fix += f", or set search.recurrence: bounded-slope, which takes {LONGEST_QUERY}"
    if average and longest > LONGEST_AVERAGED:
        longest, use, fix = LONGEST_AVERAGED, "averaged (search.examples: template)", "cut it into shorter queries"
    if len(frames) > longest:
        raise codes.TOO_LONG(where=row["path"], frames=len(frames), longest=longest, use=use, fix=fix)
    return frames


def _first(blocks: Any, samples: int) -> Any:
    """The first samples of a stream."""
    for block in blocks:
        yield block[:samples]
        samples -= len(block)
        if samples <= 0:
            return
