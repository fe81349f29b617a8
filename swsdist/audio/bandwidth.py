"""How high the sound of a recording reaches: a telephone's to 4 kHz, whatever rate its file has.

Power is taken in bands of 1 kHz from 3 kHz on (`speech.levels`), and what is compared are the loud frames of each (the 97th
percentile). A band in which these are more than 55 dB below those of 200 to 4000 Hz is empty. Of 201 recordings and 76 cut
words of read speech at 16 kHz, 1 in 100 has less than -38 and -43 dB between 4 and 5 kHz; through a channel of 8 kHz they
have less than -70 dB, and less than -55 dB with a hiss that is 45 dB below the speech.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.audio.speech import AUDIBLE, FIRST_BAND, LEAST_RATE, Levels, levels

#: Quarters of a dB below the loud frames at which a band is empty, and the part of frames that are not loud.
_EMPTY, _LOUD = 55 * 4, 0.97
#: Quarters of a dB of full scale that are told apart: from -160 to 20 dB.
_LEAST, _MOST = -160 * 4, 20 * 4


class Bandwidth:
    """Counts the levels of a recording's frames; it holds 3 kB a band, however long the recording is.

    Args:
        rate: Hz.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._counts: NDArray[np.int64] | None = None

    def add(self, frame_levels: Levels) -> None:
        """Levels of the next frames."""
        several = [frame_levels.power, *frame_levels.bands.T]
        if self._counts is None:
            self._counts = np.zeros((len(several), _MOST - _LEAST + 1), np.int64)
        for counts, values in zip(self._counts, several, strict=True):
            counts += np.bincount(np.clip(values, _LEAST, _MOST) - _LEAST, minlength=len(counts))

    @property
    def hz(self) -> float | None:
        """The upper edge of the highest band that is not empty, 4 kHz at least; None where there is next to no sound."""
        if self._counts is None:
            return None
        ranks = np.cumsum(self._counts, axis=1)
        loud, *bands = (_LEAST + np.argmax(ranks >= _LOUD * ranks[:, -1:], axis=1)).tolist()
        if loud < AUDIBLE:
            return None
        there = [k for k, level in enumerate(bands) if level >= loud - _EMPTY]
        highest = max(there, default=-1)
        if highest == len(bands) - 1:
            return self._rate / 2
        return float(max(4000, FIRST_BAND + 1000 * (highest + 1)))


def bandwidth_of(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> float | None:
    """The same of an example of a query.

    Args:
        row: of QUERIES.
        rate: Hz.
        storage: options for s3fs.

    Raises:
        AudioError: it cannot be read.
    """
    bandwidth = Bandwidth(rate)
    if rate >= LEAST_RATE:
        samples = read_blocks(
            row["path"], channel=row["channel"], rate=rate, start=row["start"], end=row["end"], storage=storage
        )
        bandwidth.add(levels(np.concatenate([np.empty(0, np.float32), *samples]), rate))
    return bandwidth.hz
