"""Where there is speech in a recording of any length: a mark a frame, by the values that `swsdist.audio.speech` compares.

It is asked for what is surely none: what is marked as none may be left out of a search. So what is loud is compared with what
is around it (a minute), a margin is kept at either side of speech, and pauses inside a phrase belong to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.audio import speech
from swsdist.audio.bandwidth import Bandwidth
from swsdist.audio.speech import HOP, WINDOW, levels

#: Raised, and `swsdist.store.manifest.SCHEMA` too, whenever the same samples give other marks: they are a part of a store.
VERSION = 2

#: What is loud and quiet is taken from so many frames around those that are judged by it, and these.
_JUDGED, _AROUND = 3000, 1500
#: Kept at either side of speech (s).
_MARGIN = 0.20
#: Where loud and quiet frames differ little, all is speech if this part of the frames has a voice's spectrum.
_VOICED_PART = 0.1


class Listener:
    """Hears a recording block by block, and says at its end where there was speech.

    It holds six bytes each 10 ms, whatever the rate.

    Args:
        rate: Hz.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._hop, self._length = round(HOP * rate), round(WINDOW * rate)
        self._rest = np.empty(0, np.float32)
        self._parts: list[list[NDArray[np.int16]]] = []
        self._bandwidth = Bandwidth(rate)

    def add(self, samples: NDArray[np.float32]) -> None:
        """The next samples, float32 (n,), full scale 1."""
        if self._rate < speech.LEAST_RATE:
            return
        joined = np.concatenate([self._rest, samples])
        frames = max(0, 1 + (len(joined) - self._length) // self._hop)
        if frames:
            last = (frames - 1) * self._hop + self._length
            block = levels(joined[:last], self._rate)
            self._bandwidth.add(block)
            # 16 bits hold 8000 dB.
            self._parts.append([part.astype(np.int16) for part in (block.power, block.hum, block.flatness)])
        self._rest = joined[frames * self._hop :]

    @property
    def bandwidth(self) -> float | None:
        """Hz, as `Bandwidth.hz`."""
        return self._bandwidth.hz

    def marks(self, frames: int, hop: int, frame_length: int) -> NDArray[np.bool_]:
        """Whether there is speech in each frame of an extractor, bool (frames,).

        All are speech in a recording too short to be heard, or of less than 2000 Hz.

        Args:
            frames: how many there are; frame t is of samples [t * hop, t * hop + frame_length).
            hop, frame_length: samples.
        """
        if not self._parts:
            return np.ones(frames, np.bool_)
        power, hum, flatness = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        found = _speech(power, hum, flatness)
        # The heard frame whose middle is nearest to the middle of the extractor's.
        middle = np.arange(frames) * hop + (frame_length - self._length) / 2
        nearest = np.rint(middle / self._hop).astype(np.int64)
        marks: NDArray[np.bool_] = found[nearest.clip(0, len(found) - 1)]
        return marks


def _speech(power: NDArray[np.int16], hum: NDArray[np.int16], flatness: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Whether each heard frame belongs to speech; its values as in `swsdist.audio.speech.Levels`."""
    count = len(power)
    like_a_voice = (flatness <= speech.FLAT) & (hum >= speech.HUM)
    voiced = like_a_voice.copy()
    strong, weak = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for first in range(0, count, _JUDGED):
        # The last ones are judged with those before them.
        part = slice(first, first + _JUDGED)
        around = slice(max(0, min(first, count - _JUDGED) - _AROUND), first + _JUDGED + _AROUND)
        quiet, loud = speech.quiet_and_loud(power[around])
        if loud < speech.AUDIBLE:
            continue
        if loud - quiet < speech.RANGE:
            strong[part] = weak[part] = like_a_voice[around].mean() >= _VOICED_PART
            voiced[part] |= strong[part]
            continue
        least_strong, least_weak = speech.thresholds(quiet, loud)
        strong[part], weak[part] = power[part] >= least_strong, power[part] >= least_weak
    marks = np.zeros(count, np.bool_)
    stretches = list(speech.stretches(weak))
    spoken = [stretch for stretch in stretches if speech.is_spoken(*stretch, strong, voiced)]
    if not spoken:  # a voice in short bursts: it cannot be told apart with certainty
        marks[:] = np.count_nonzero(strong & voiced) >= speech.VOICED_FRAMES
        return marks
    margin = round(_MARGIN / HOP)
    for first, last in speech.joined(spoken, round(speech.PHRASE / HOP)):
        marks[max(0, first - margin) : last + margin] = True
    return marks


def pack_marks(marks: NDArray[np.bool_]) -> bytes:
    """A bit a frame, the first in the lowest bit of the first byte."""
    return np.packbits(marks, bitorder="little").tobytes()


def unpack_marks(bits: bytes, frames: int) -> NDArray[np.bool_]:
    """The marks of so many frames that `packed` made, bool (frames,)."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=frames, bitorder="little").astype(np.bool_)
