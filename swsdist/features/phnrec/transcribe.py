"""The likeliest string of phones of a recording, decoded as by phnrec in a free loop of phones.

A phone has three states. A path stays in a state or goes on to the next; each costs ln 0.5 a frame, as does entering a
phone. From the last state it returns to the loop, where any phone follows at the price of the insertion penalty. There
is no language model. Of equal paths the one that entered or moved later wins, and among phones the first. A label's
score is the sum over its frames of ln p + ln 0.5, plus the penalty.

Differences from phnrec: it decides about a frame 40 frames later, before it knows the end, where here the path is the
best of the whole recording (the labels of the golden data are the same). Its first score of a recording under 40 frames
is 1 too high, and a recording under 3 frames gets a meaningless label; here the score is right, and there is no label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.core.arrays import Floats
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.features.interface import Extractor, frame_shift
from swsdist.features.phnrec.weights import STATES, read_recogniser

#: Probabilities are at least so much before their logarithm is taken.
_FLOOR = 1e-45

_HALF = math.log(0.5)


class Label(NamedTuple):
    """A phone of the string.

    Attributes:
        first, stop: its first frame, and the one after its last.
        phone: its name.
        score: natural logarithm, the higher the likelier.
    """

    first: int
    stop: int
    phone: str
    score: float


def decode(
    posteriors: Iterable[NDArray[np.floating]],
    phones: Sequence[str],
    penalty: float,
) -> list[Label]:
    """The best string of phones; empty where there are fewer than 3 frames.

    Args:
        posteriors: blocks of (frames, 3 x phones) in their order, three states a phone; further columns do not count.
        phones: names.
        penalty: added for each phone; the lower, the fewer phones.
    """
    count = len(phones)

    def costs() -> Iterator[Floats]:
        for block in posteriors:
            local = np.log(np.maximum(block[:, : STATES * count].astype(np.float64), _FLOOR)) + _HALF
            yield -local.reshape(-1, count, STATES)

    from swsdist.kernels.phone_loop import best_string  # compiles

    segments = best_string(costs(), (count, STATES), -penalty)
    return [Label(first, stop, phones[phone], -cost) for first, stop, phone, cost in segments]


class SpokenPhone(NamedTuple):
    """A phone of a recording.

    Attributes:
        start, end: s.
        phone: its name.
        score: natural logarithm, the higher the likelier.
    """

    start: float
    end: float
    phone: str
    score: float


class Transcriber(NamedTuple):
    """A recogniser's parts that decode recordings.

    Attributes:
        extractor: of the posteriors of states.
        phones: names, in the order of the states.
        penalty: natural logarithm that the recogniser adds for each phone.
    """

    extractor: Extractor
    phones: tuple[str, ...]
    penalty: float


def transcriber(weights: str) -> Transcriber:
    """Create a transcriber from a recogniser's folder.

    Raises:
        ConfigError: it is not the folder of one.
    """
    recogniser = read_recogniser(weights)
    extractor = create("phnrec", {"weights": weights, "units": "states", "non_speech": "keep"}, where="weights")
    assert isinstance(extractor, Extractor)  # of audio
    return Transcriber(extractor, recogniser.phones, recogniser.penalty)


def transcribe(
    path: str,
    by: Transcriber,
    *,
    channel: int = 1,
    penalty: float | None = None,
    storage: Mapping[str, object] | None = None,
) -> list[SpokenPhone]:
    """The likeliest string of phones of a channel of a recording of any length.

    Args:
        path: local, or `s3://`.
        by: `transcriber(folder)`.
        channel: from 1.
        penalty: natural logarithm that is added for each phone; by default the recogniser's own. The lower, the fewer phones.
        storage: options for s3fs.

    Raises:
        AudioError: the recording cannot be used.
    """
    extractor = by.extractor
    audio = read_blocks(path, channel=channel, rate=extractor.sample_rate, storage=storage)
    labels = decode(in_blocks(extractor, audio), by.phones, by.penalty if penalty is None else penalty)
    shift = frame_shift(extractor)
    return [SpokenPhone(label.first * shift, label.stop * shift, label.phone, label.score) for label in labels]
