"""Voice activity detection for recordings of any length: a mark a frame, by the features of `swsdist.audio.speech`.

A search may skip frames without speech, so the detector avoids misses: loudness is relative to a minute around a frame, speech
keeps a margin on both sides, and pauses inside a phrase count as speech. Digital silence does not: samples of one value for
longer than any sound of speech stops are an editor's seam, a blanked name or a gap of a transmission.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.audio import speech
from swsdist.audio.speech import HOP, WINDOW, Bandwidth, levels

#: Raised, with `swsdist.store.manifest.SCHEMA`, whenever the same samples give other marks, which a store contains.
VERSION = 3

#: Frames that share their thresholds; frames on either side that the thresholds are taken from, too.
_JUDGED, _AROUND = 3000, 1500
#: Margin on either side of speech (s).
_MARGIN = 0.20
#: Where loud and quiet frames differ little, all frames are speech if this share has the spectrum of a voice.
_VOICED_PART = 0.1
#: Least digital silence that is no pause of speech (s).
_BLANK = 0.2


class Listener:
    """Voice activity detector that takes a recording block by block; it keeps six bytes for 10 ms.

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
        """Add the next samples, float32 (n,), full scale 1."""
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
        """Whether each frame of an extractor contains speech, bool (frames,).

        All frames do in a recording that is too short, or sampled below 2000 Hz.

        Args:
            frames: number of frames; frame t covers samples [t * hop, t * hop + frame_length).
            hop, frame_length: samples.
        """
        if not self._parts:
            return np.ones(frames, np.bool_)
        power, hum, flatness = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        blank = levels(np.zeros(self._length, np.float32), self._rate).power[0]
        matches = _speech(power, hum, flatness, _blanks(power <= blank))
        # The detector's frame with the nearest middle.
        middle = np.arange(frames) * hop + (frame_length - self._length) / 2
        nearest = np.rint(middle / self._hop).astype(np.int64)
        marks: NDArray[np.bool_] = matches[nearest.clip(0, len(matches) - 1)]
        return marks


def _blanks(silent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which frames of the detector lie in a long digital silence, by whether each is silent."""
    least, result = round((_BLANK - WINDOW) / HOP) + 1, np.zeros(len(silent), np.bool_)
    for first, last in speech.stretches(silent):
        result[first:last] = last - first >= least
    return result


def _speech(
    power: NDArray[np.int16], hum: NDArray[np.int16], flatness: NDArray[np.int16], blank: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each frame of the detector is speech; arguments as in `swsdist.audio.speech.Levels`, and from `_blanks`."""
    count = len(power)
    like_a_voice = (flatness <= speech.FLAT) & (hum >= speech.HUM)
    voiced = like_a_voice.copy()
    strong, weak = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for first in range(0, count, _JUDGED):
        # The last frames share the thresholds of a full block.
        part = slice(first, first + _JUDGED)
        around = np.arange(max(0, min(first, count - _JUDGED) - _AROUND), min(first + _JUDGED + _AROUND, count))
        around = around[~blank[around]]
        if not len(around):
            continue
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
    parts = list(speech.stretches(weak))
    spoken = [stretch for stretch in parts if speech.is_spoken(*stretch, strong, voiced)]
    if not spoken:  # a voice in short bursts only: uncertain
        marks[:] = np.count_nonzero(strong & voiced) >= speech.VOICED_FRAMES
    margin = round(_MARGIN / HOP)
    for first, last in speech.joined(spoken, round(speech.PHRASE / HOP)):
        marks[max(0, first - margin) : last + margin] = True
    return marks & ~blank


def pack_marks(marks: NDArray[np.bool_]) -> bytes:
    """Marks as bits, the first in the lowest bit of the first byte."""
    return np.packbits(marks, bitorder="little").tobytes()


def unpack_marks(bits: bytes, frames: int) -> NDArray[np.bool_]:
    """Marks from `pack_marks`, bool (frames,)."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=frames, bitorder="little").astype(np.bool_)
