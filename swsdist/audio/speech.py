"""Where there is speech in a short recording: by energy and spectrum, in whole numbers.

A frame has three values, in quarters of a dB and rounded, so that the last bits of a Fourier transform decide nothing: the
power between 200 and 4000 Hz, which is what is compared; how far that is below the power of the whole spectrum (hum); and the
flatness of the spectrum in that band (0 dB: every line alike, as in noise; a voice has -6 dB and less).

What is compared is relative to the recording itself: its loud frames (the 97th percentile) and its quiet ones (the 10th). It is
measured on words cut from running speech, and on the same with background around them: docs/concepts/query-trimming.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Raised whenever the same samples give other places.
VERSION = 2

HOP, WINDOW = 0.010, 0.025  # s
_LOW, _HIGH = 200.0, 4000.0  # Hz
LEAST_RATE = 2000  # Hz; below it there is too little of the band to tell a voice
FIRST_BAND = 3000  # Hz; from here on the power of each kHz is taken by itself
_DB = 4  # steps of a dB
_QUIET, _LOUD = 10, 97  # percentiles
#: A frame is strong above the louder of: so far below the loud ones; this part of the way up from the quiet ones (256ths).
_STRONG, _STRONG_PART = 26 * _DB, 128
#: The same of one that belongs to speech if it stands beside a strong one.
_WEAK, _WEAK_PART = 36 * _DB, 77
#: Loud frames at least so far above the quiet ones: else nothing in it tells speech from what is around it.
RANGE = 12 * _DB
#: Loud frames at least at this level (dB of full scale).
AUDIBLE = -70 * _DB
FLAT, HUM = -8 * _DB, -20 * _DB
SHORTEST = 0.25  # s; so much else sounds like less
#: A sound whose strong frames differ by so little is steady: a tone. There must be so many.
_STEADY, _STEADY_FRAMES = 1 * _DB, 20
#: Strong frames of a stretch, and those with a voice's spectrum, at least: a click has fewer.
_STRONG_FRAMES, VOICED_FRAMES = 6, 4
#: Stretches of speech that are no further apart are one phrase; a burst without a voice no further from one is a part of it.
PHRASE, _BURST = 0.6, 0.1  # s
#: An end is cut off if it is at least so long (s); and a shorter one if it is at least so far below the loud frames: else it
#: may be a weak sound of a word that was cut at its edges.
_LONG, _SHORT = 0.30, 0.10
_SILENT = 38 * _DB


class Levels(NamedTuple):
    """Frames of a recording, int32 (frames,) each, in quarters of a dB.

    Attributes:
        power: in the band, of full scale.
        hum: power in the band over that of the whole spectrum.
        flatness: geometric over arithmetic mean of the band's lines.
        bands: power in each kHz from 3 kHz to half the rate, (frames, bands).
    """

    power: NDArray[np.int32]
    hum: NDArray[np.int32]
    flatness: NDArray[np.int32]
    bands: NDArray[np.int32]


class Place(NamedTuple):
    """The speech of a recording, in s from its beginning.

    Attributes:
        start, end: what to keep.
        duration: of the recording.
    """

    start: float
    end: float
    duration: float


def levels(samples: NDArray[np.float32], rate: int) -> Levels:
    """Frames of 25 ms, one each 10 ms, of samples of full scale 1."""
    hop, length = round(HOP * rate), round(WINDOW * rate)
    if len(samples) < length:
        none = np.empty(0, np.int32)
        return Levels(none, none, none, np.empty((0, 0), np.int32))
    size = 1 << (length - 1).bit_length()
    frequencies = np.arange(size // 2 + 1) * rate / size
    band = (frequencies >= _LOW) & (frequencies <= _HIGH)
    edges = np.searchsorted(frequencies, np.arange(FIRST_BAND, rate / 2 - 999, 1000.0))
    window = np.hanning(length)
    scale = 2.0 / (size * float((window**2).sum()))
    stretches = np.lib.stride_tricks.sliding_window_view(samples, length)[::hop]
    parts: list[tuple[NDArray[np.int32], ...]] = []
    for first in range(0, len(stretches), 256):  # so many stay in a cache
        windows = stretches[first : first + 256] * window
        windows -= np.outer(windows.sum(axis=1) / window.sum(), window)  # an offset of the samples is no hum
        spectrum = np.fft.rfft(windows, size, axis=1)
        lines = (spectrum.real**2 + spectrum.imag**2) * scale + 1e-14
        inside = lines[:, band]
        power = inside.sum(axis=1)
        flatness = np.exp(np.log(inside).mean(axis=1)) / inside.mean(axis=1)
        above = np.add.reduceat(lines, edges, axis=1) if len(edges) else lines[:, :0]
        parts.append(tuple(map(_steps, (power, power / lines.sum(axis=1), flatness, above))))
    return Levels(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _steps(ratio: NDArray[np.float64]) -> NDArray[np.int32]:
    steps: NDArray[np.int32] = np.rint(10 * _DB * np.log10(ratio)).astype(np.int32)
    return steps


def find_speech(samples: NDArray[np.float32], rate: int) -> Place | None:
    """The phrase that a recording holds: its strongest one, as a whole.

    A recording whose loud and quiet frames differ little, but which has a voice's spectrum, is a cut, and is kept whole.

    Args:
        samples: float32 (n,), full scale 1.
        rate: Hz.

    Returns:
        None where there is no speech: silence, hum, noise, a tone, or clicks only. Below 2000 Hz it is kept whole.
    """
    duration = len(samples) / rate
    if rate < LEAST_RATE:
        return Place(0.0, duration, duration)
    found = levels(samples, rate)
    if not len(found.power):
        return Place(0.0, duration, duration)
    quiet, loud = quiet_and_loud(found.power)
    voiced = (found.flatness <= FLAT) & (found.hum >= HUM)
    if loud < AUDIBLE or _is_steady(found.power[found.power >= thresholds(quiet, loud)[0]]):
        return None
    if loud - quiet < RANGE:
        enough = np.count_nonzero(voiced) >= min(VOICED_FRAMES, len(voiced))
        return Place(0.0, duration, duration) if enough else None
    strong, weak = (found.power >= least for least in thresholds(quiet, loud))
    above = list(stretches(weak))
    spoken = [stretch for stretch in above if is_spoken(*stretch, strong, voiced)]
    if not spoken:  # a voice in short bursts: nothing that could be cut off with certainty
        return Place(0.0, duration, duration) if np.count_nonzero(strong & voiced) >= VOICED_FRAMES else None
    phrases = list(joined(spoken, round(PHRASE / HOP)))
    first, last = max(
        phrases, key=lambda phrase: int((found.power[slice(*phrase)].astype(np.int64) - quiet).clip(0).sum())
    )
    # A stop's release stands apart from its vowel.
    bursts, near = [item for item in above if strong[slice(*item)].any()], round(_BURST / HOP)
    for begin, end in bursts:
        if 0 <= begin - last <= near:
            last = end
    for begin, end in reversed(bursts):
        if 0 <= first - end <= near:
            first = begin
    # Speech begins and ends in the middle of a frame, on the average.
    start, end_s = round(first * HOP + WINDOW / 2, 3), round((last - 1) * HOP + WINDOW / 2, 3)
    return Place(
        start if _is_cut(found.power[:first], start, loud) else 0.0,
        end_s if _is_cut(found.power[last:], duration - end_s, loud) else duration,
        duration,
    )


def quiet_and_loud(power: NDArray[np.integer]) -> tuple[int, int]:
    """The powers of quiet and of loud frames: their 10th and 97th percentile."""
    order = np.sort(power)
    quiet, loud = (int(order[len(order) * part // 100]) for part in (_QUIET, _LOUD))
    return quiet, loud


def thresholds(quiet: int, loud: int) -> tuple[int, int]:
    """The least power of a strong frame, and of a weak one that stands beside strong ones."""
    way = loud - quiet
    strong = max(loud - _STRONG, quiet + way * _STRONG_PART // 256)
    return strong, max(loud - _WEAK, quiet + way * _WEAK_PART // 256)


def is_spoken(first: int, last: int, strong: NDArray[np.bool_], voiced: NDArray[np.bool_]) -> bool:
    """Whether a stretch has enough strong frames, and of these enough with a voice's spectrum."""
    return bool(
        np.count_nonzero(strong[first:last]) >= _STRONG_FRAMES
        and np.count_nonzero(strong[first:last] & voiced[first:last]) >= VOICED_FRAMES
    )


def _is_steady(power: NDArray[np.int32]) -> bool:
    """Whether strong frames are as loud as each other, as those of a tone are.

    Of 226 cut words the frames between the 5th and the 95th percentile differ by 2.3 dB at least, of tones by less than .6 dB.
    """
    order = np.sort(power)
    last = len(order) - 1
    return len(order) >= _STEADY_FRAMES and int(order[last * 95 // 100] - order[last * 5 // 100]) <= _STEADY


def _is_cut(power: NDArray[np.int32], seconds: float, loud: int) -> bool:
    """Whether an end of a recording is none of its speech."""
    middle = int(np.sort(power)[len(power) // 2]) if len(power) else loud
    return seconds >= _LONG or (seconds >= _SHORT and loud - middle >= _SILENT)


def stretches(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First, and one after the last, of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def joined(stretches: Iterable[tuple[int, int]], gap: int) -> Iterator[tuple[int, int]]:
    """Stretches, those that are at most `gap` frames apart made one."""
    held: tuple[int, int] | None = None
    for first, last in stretches:
        if held is not None and first - held[1] > gap:
            yield held
            held = None
        held = (first if held is None else held[0], last)
    if held is not None:
        yield held
