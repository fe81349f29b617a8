"""Speech in recordings: where it is, its bandwidth, and its ratio to the noise.

Features: a frame has three, rounded to quarters of a dB, so that the last bits of a Fourier transform have no effect:
the power between 200 and 4000 Hz; its ratio to the power of the complete spectrum (hum); and the spectral flatness in
that band (0 dB for noise; -6 dB and less for a voice).

Short recordings (`find_speech`): thresholds are relative to the loud (97th percentile) and quiet (10th) frames of the
recording. They are tuned on words cut from running speech, with and without background: docs/concepts/speech-marks.md.

Recordings of any length (`Listener`): a mark per frame. A search may skip frames without speech, so the detector avoids
misses: loudness is relative to a minute around a frame, speech keeps a margin on both sides, and pauses inside a phrase
count as speech. Digital silence does not: samples of one value for longer than any sound of speech stops are an
editor's seam, a blanked name or a gap of a transmission.

Bandwidth: 4 kHz for telephone speech, whatever the sampling rate of the file. The loud frames (97th percentile) of each
band of 1 kHz from 3 kHz up (`levels`) are compared with those of 200 to 4000 Hz: a band more than 55 dB below is empty.
Of 201 recordings and 76 cut words of read speech at 16 kHz, 1 in 100 has less than -38 and -43 dB between 4 and 5 kHz;
through a channel of 8 kHz they have less than -70 dB, and less than -55 dB with a hiss 45 dB below the speech.

Speech-to-noise ratio, as NIST's program `stnr` defines it: 10 log10 (peak speech power / mean noise power), where a
power is the variance of the samples of 20 ms. The leftmost hill of the histogram of powers is noise: a raised cosine is
fitted to its left side, and the middle of the cosine is the noise level. The rest of the histogram is speech, with its
peak at the 95th percentile. The program searches for the best cosine step by step from a first guess; here all middles
within 2 dB of that guess are tried, with all widths, the height being that of least squares. Only the histogram of a
recording is kept; histograms of its parts add.

Source of the ratio: NIST, Speech Quality Assurance Package (SPQA), `stnr`, its documentation and constants. Evaluations
of spoken term detection report it (Tejedor et al. 2016, table 1 and [56]).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints, Singles

#: Raised whenever the same samples give another place.
VERSION = 3

HOP, WINDOW = 0.010, 0.025  # s
_LOW, _HIGH = 200.0, 4000.0  # Hz
LEAST_RATE = 2000  # Hz; below, the band is too narrow to detect a voice
FIRST_BAND = 3000  # Hz; power is taken in bands of 1 kHz from here
_DB = 4  # steps of a dB
_QUIET, _LOUD = 10, 97  # percentiles
#: A strong frame exceeds the higher of two levels: this far below the loud frames; this share of the range above the quiet
#: frames (256ths).
_STRONG, _STRONG_PART = 26 * _DB, 128
#: The same for a weak frame, which is speech beside a strong one.
_WEAK, _WEAK_PART = 36 * _DB, 77
#: Least range between quiet and loud frames for a segmentation.
RANGE = 12 * _DB
#: Least level of loud frames (dB of full scale).
AUDIBLE = -70 * _DB
FLAT, HUM = -8 * _DB, -20 * _DB
SHORTEST = 0.25  # s; shorter speech is ambiguous
#: Largest range of the strong frames of a tone; least number of them.
_STEADY, _STEADY_FRAMES = 1 * _DB, 20
#: Least strong frames of a stretch, and least with the spectrum of a voice: a click has fewer.
_STRONG_FRAMES, VOICED_FRAMES = 6, 4
#: Largest gap inside a phrase; largest gap between a phrase and an unvoiced burst of it.
PHRASE, _BURST = 0.6, 0.1  # s
#: An end is trimmed if it is at least so long (s); a shorter one only if it is at least so far below the loud frames: it may be
#: a weak sound of a word that was cut tightly.
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


def levels(samples: Singles, rate: int) -> Levels:
    """Features of frames of 25 ms every 10 ms, from samples of full scale 1."""
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
    for first in range(0, len(stretches), 256):  # fit in a cache
        windows = stretches[first : first + 256] * window
        windows -= np.outer(windows.sum(axis=1) / window.sum(), window)  # remove the offset, which is no hum
        spectrum = np.fft.rfft(windows, size, axis=1)
        lines = (spectrum.real**2 + spectrum.imag**2) * scale + 1e-14
        inside = lines[:, band]
        power = inside.sum(axis=1)
        flatness = np.exp(np.log(inside).mean(axis=1)) / inside.mean(axis=1)
        above = np.add.reduceat(lines, edges, axis=1) if len(edges) else lines[:, :0]
        parts.append(tuple(map(_steps, (power, power / lines.sum(axis=1), flatness, above))))
    return Levels(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _steps(ratio: Floats) -> NDArray[np.int32]:
    steps: NDArray[np.int32] = np.rint(10 * _DB * np.log10(ratio)).astype(np.int32)
    return steps


def find_speech(samples: Singles, rate: int) -> Place | None:
    """The strongest phrase of a recording.

    A recording with the spectrum of a voice, but little range between loud and quiet frames, is a tight cut and is kept.

    Args:
        samples: float32 (n,), full scale 1.
        rate: Hz.

    Returns:
        None without speech: silence, hum, noise, a tone, or clicks only. All of a recording sampled below 2000 Hz.
    """
    duration = len(samples) / rate
    if rate < LEAST_RATE:
        return Place(0.0, duration, duration)
    features = levels(samples, rate)
    if not len(features.power):
        return Place(0.0, duration, duration)
    quiet, loud = quiet_and_loud(features.power)
    short = min(round(SHORTEST / HOP), len(features.power))
    louder = int(np.partition(features.power, -short)[-short])
    if loud < thresholds(quiet, louder)[0]:  # in a long rest, a word has fewer frames than the percentile leaves
        loud = max(loud, louder)
    hop = round(HOP * rate) / rate
    voiced = (features.flatness <= FLAT) & (features.hum >= HUM)
    if loud < AUDIBLE or _is_steady(features.power[features.power >= thresholds(quiet, loud)[0]]):
        return None
    if loud - quiet < RANGE:
        enough = np.count_nonzero(voiced) >= min(VOICED_FRAMES, len(voiced))
        return Place(0.0, duration, duration) if enough else None
    strong, weak = (features.power >= least for least in thresholds(quiet, loud))
    above = list(stretches(weak))
    spoken = [stretch for stretch in above if is_spoken(*stretch, strong, voiced)]
    if not spoken:  # a voice in short bursts: nothing can be trimmed safely
        return Place(0.0, duration, duration) if np.count_nonzero(strong & voiced) >= VOICED_FRAMES else None
    phrases = list(joined(spoken, round(PHRASE / HOP)))
    first, last = max(
        phrases, key=lambda phrase: int((features.power[slice(*phrase)].astype(np.int64) - quiet).clip(0).sum())
    )
    # The release of a stop is separate from its vowel.
    bursts, near = [item for item in above if strong[slice(*item)].any()], round(_BURST / HOP)
    for begin, end in bursts:
        if 0 <= begin - last <= near:
            last = end
    for begin, end in reversed(bursts):
        if 0 <= first - end <= near:
            first = begin
    # On average, speech begins and ends in the middle of a frame.
    start, end_s = round(first * hop + WINDOW / 2, 3), round((last - 1) * hop + WINDOW / 2, 3)
    return Place(
        start if _is_cut(features.power[:first], start, loud) else 0.0,
        end_s if _is_cut(features.power[last:], duration - end_s, loud) else duration,
        duration,
    )


def quiet_and_loud(power: NDArray[np.integer]) -> tuple[int, int]:
    """Powers of quiet and loud frames: the 10th and 97th percentile."""
    order = np.sort(power)
    quiet, loud = (int(order[len(order) * part // 100]) for part in (_QUIET, _LOUD))
    return quiet, loud


def thresholds(quiet: int, loud: int) -> tuple[int, int]:
    """Least power of a strong and of a weak frame."""
    span = loud - quiet
    strong = max(loud - _STRONG, quiet + span * _STRONG_PART // 256)
    return strong, max(loud - _WEAK, quiet + span * _WEAK_PART // 256)


def is_spoken(first: int, last: int, strong: Bools, voiced: Bools) -> bool:
    """Whether a stretch has enough strong frames, and enough of these with the spectrum of a voice."""
    return bool(
        np.count_nonzero(strong[first:last]) >= _STRONG_FRAMES
        and np.count_nonzero(strong[first:last] & voiced[first:last]) >= VOICED_FRAMES
    )


def _is_steady(power: NDArray[np.int32]) -> bool:
    """Whether strong frames are equally loud, as of a tone.

    Between the 5th and the 95th percentile the frames of 226 cut words range over at least 2.3 dB, of tones less than 0.6 dB.
    """
    order = np.sort(power)
    last = len(order) - 1
    return len(order) >= _STEADY_FRAMES and int(order[last * 95 // 100] - order[last * 5 // 100]) <= _STEADY


def _is_cut(power: NDArray[np.int32], seconds: float, loud: int) -> bool:
    """Whether an end of a recording is trimmed."""
    middle = int(np.sort(power)[len(power) // 2]) if len(power) else loud
    return seconds >= _LONG or (seconds >= _SHORT and loud - middle >= _SILENT)


def stretches(mask: Bools) -> Iterator[tuple[int, int]]:
    """First index, and the one after the last, of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def joined(stretches: Iterable[tuple[int, int]], gap: int) -> Iterator[tuple[int, int]]:
    """Merge stretches that are at most `gap` frames apart."""
    held: tuple[int, int] | None = None
    for first, last in stretches:
        if held is not None and first - held[1] > gap:
            yield held
            held = None
        held = (first if held is None else held[0], last)
    if held is not None:
        yield held


#: Quarters of a dB below the loud frames at which a band is empty; share of frames that are not loud.
_EMPTY, _LOUD_RANK = 55 * 4, 0.97
#: Range of the histogram in quarters of a dB of full scale: -160 to 20 dB.
_LEAST, _MOST = -160 * 4, 20 * 4


class Bandwidth:
    """Histogram of the frame levels of a recording; 3 kB a band.

    Args:
        rate: Hz.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._counts: Ints | None = None

    def add(self, frame_levels: Levels) -> None:
        """Add the levels of the next frames."""
        several = [frame_levels.power, *frame_levels.bands.T]
        if self._counts is None:
            self._counts = np.zeros((len(several), _MOST - _LEAST + 1), np.int64)
        for counts, values in zip(self._counts, several, strict=True):
            counts += np.bincount(np.clip(values, _LEAST, _MOST) - _LEAST, minlength=len(counts))

    @property
    def hz(self) -> float | None:
        """Upper edge of the highest band that is not empty, Hz, at least 4 kHz; None for a near-silent recording."""
        if self._counts is None:
            return None
        ranks = np.cumsum(self._counts, axis=1)
        loud, *bands = (_LEAST + np.argmax(ranks >= _LOUD_RANK * ranks[:, -1:], axis=1)).tolist()
        if loud < AUDIBLE:
            return None
        sounding = [k for k, level in enumerate(bands) if level >= loud - _EMPTY]
        highest = max(sounding, default=-1)
        if highest == len(bands) - 1:
            return self._rate / 2
        return float(max(4000, FIRST_BAND + 1000 * (highest + 1)))


def bandwidth_of(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> float | None:
    """Bandwidth of an example of a query, Hz.

    Args:
        row: of QUERIES.
        rate: Hz.
        storage: options for s3fs.

    Raises:
        AudioError: the recording cannot be read.
    """
    from swsdist.audio.reader import read_blocks  # with soundfile and soxr

    bandwidth = Bandwidth(rate)
    if rate >= LEAST_RATE:
        samples = read_blocks(
            row["path"], channel=row["channel"], rate=rate, start=row["start"], end=row["end"], storage=storage
        )
        bandwidth.add(levels(np.concatenate([np.empty(0, np.float32), *samples]), rate))
    return bandwidth.hz


#: Of the histogram of powers: bins, and their range in dB above a power of one step of 16 bits.
BINS, LOW, HIGH = 500, -28.125, 96.875

_STEP = (HIGH - LOW) / BINS
_HALF = 0.010  # s, from one window to the next; a window is two of it
_FULL_SCALE = 32768.0
#: Bins to either side that a mean of smoothing takes, and that a slope is measured over.
_SMOOTH, _SLOPE = 7, 2
#: A hill begins where the smoothed histogram exceeds this part of its greatest height.
_BEGIN = 0.05
#: Of the fit, in bins: how far from the first guess, and widths of a cosine.
_REACH, _NARROWEST, _WIDEST = 8, 4, 160
#: Of what is not noise, the part that the peak of speech exceeds.
_PEAK = 0.95

Counts = Ints


class Meter:
    """Histogram of the powers of a recording, which is added block by block.

    Args:
        rate: Hz.

    Attributes:
        counts: int64 (500,), windows by power; those without any variance are not counted.
    """

    def __init__(self, rate: int) -> None:
        self._size = max(1, round(_HALF * rate))
        self._rest = np.empty(0, np.float32)
        self.counts: Counts = np.zeros(BINS, np.int64)

    def add(self, samples: Singles) -> None:
        """Add the next samples, float32 (n,), full scale 1."""
        joined = np.concatenate([self._rest, samples])
        halves = len(joined) // self._size
        if halves < 2:
            self._rest = joined
            return
        parts = joined[: halves * self._size].reshape(halves, self._size).astype(np.float64)
        sums, squares = parts.sum(axis=1), np.einsum("ij,ij->i", parts, parts)
        mean = (sums[1:] + sums[:-1]) / (2 * self._size)
        variance = (squares[1:] + squares[:-1]) / (2 * self._size) - mean**2
        sounding = variance[variance * _FULL_SCALE**2 > 10 ** (LOW / 10)]
        bins = np.floor((10 * np.log10(sounding * _FULL_SCALE**2) - LOW) / _STEP).astype(np.int64)
        self.counts += np.bincount(bins.clip(0, BINS - 1), minlength=BINS)
        # Windows overlap by half.
        self._rest = joined[(halves - 1) * self._size :]


def signal_to_noise(counts: Counts) -> float | None:
    """Speech-to-noise ratio in dB; None for silence, or without speech above the noise.

    Args:
        counts: int64 (500,), of a recording, or the sum of several.
    """
    if not counts.any():
        return None
    middle, cosine = _noise(counts.astype(np.float64))
    rest = np.clip(counts - cosine, 0.0, None).cumsum()
    if rest[-1] < 1:
        return None
    peak = int(np.searchsorted(rest, _PEAK * rest[-1]))
    return (peak - middle) * _STEP


def _noise(counts: Floats) -> tuple[int, Floats]:
    """Middle of the noise (bin), and its raised cosine, float64 (500,)."""
    width = 2 * _SMOOTH + 1
    smooth = np.convolve(counts, np.full(width, 1 / width), mode="same")
    begin = int(np.argmax(smooth > _BEGIN * smooth.max()))
    slope = np.zeros(BINS)
    slope[_SLOPE:-_SLOPE] = smooth[2 * _SLOPE :] - smooth[: -2 * _SLOPE]
    falls = np.flatnonzero(slope[begin:] < 0)
    guess = begin + int(falls[0]) if len(falls) else BINS - 1
    shapes, half = _shapes(), _WIDEST // 2
    best = (-1.0, guess, np.zeros(BINS))
    for middle in range(max(0, guess - _REACH), min(BINS, guess + _REACH + 1)):
        first, last = max(0, middle - half), min(guess, middle + half)
        flank = shapes[:, first - middle + half : last - middle + half + 1]
        weight = (flank**2).sum(axis=1)
        common = flank @ counts[first : last + 1]
        # Of least squares: what a cosine of the best height takes from the sum of squares; hardly any of a cosine may be there.
        taken = np.where(weight >= 1, common**2 / np.maximum(weight, 1), -1.0)
        k = int(taken.argmax())
        if taken[k] > best[0]:
            cosine = np.zeros(BINS)
            first, last = max(0, middle - half), min(BINS - 1, middle + half)
            shape = shapes[k, first - middle + half : last - middle + half + 1]
            cosine[first : last + 1] = shape * (common[k] / weight[k])
            best = (float(taken[k]), middle, cosine)
    return best[1], best[2]


@functools.cache
def _shapes() -> Floats:
    """Raised cosines of height 1, float64 (widths, bins around the middle)."""
    widths = np.arange(_NARROWEST, _WIDEST + 1, 2)
    distance = np.abs(np.arange(-(_WIDEST // 2), _WIDEST // 2 + 1)) / widths[:, None]
    return np.where(distance <= 0.5, 0.5 + 0.5 * np.cos(2 * np.pi * distance), 0.0)


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

    def add(self, samples: Singles) -> None:
        """Add the next samples, float32 (n,), full scale 1."""
        if self._rate < LEAST_RATE:
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

    def marks(self, frames: int, hop: int, frame_length: int) -> Bools:
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
        marks: Bools = matches[nearest.clip(0, len(matches) - 1)]
        return marks


def _blanks(silent: Bools) -> Bools:
    """Which frames of the detector lie in a long digital silence, by whether each is silent."""
    least, result = round((_BLANK - WINDOW) / HOP) + 1, np.zeros(len(silent), np.bool_)
    for first, last in stretches(silent):
        result[first:last] = last - first >= least
    return result


def _speech(power: NDArray[np.int16], hum: NDArray[np.int16], flatness: NDArray[np.int16], blank: Bools) -> Bools:
    """Whether each frame of the detector is speech; arguments as in `swsdist.audio.speech.Levels`, and from `_blanks`."""
    count = len(power)
    like_a_voice = (flatness <= FLAT) & (hum >= HUM)
    voiced = like_a_voice.copy()
    strong, weak = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for first in range(0, count, _JUDGED):
        # The last frames share the thresholds of a full block.
        part = slice(first, first + _JUDGED)
        around = np.arange(max(0, min(first, count - _JUDGED) - _AROUND), min(first + _JUDGED + _AROUND, count))
        around = around[~blank[around]]
        if not len(around):
            continue
        quiet, loud = quiet_and_loud(power[around])
        if loud < AUDIBLE:
            continue
        if loud - quiet < RANGE:
            strong[part] = weak[part] = like_a_voice[around].mean() >= _VOICED_PART
            voiced[part] |= strong[part]
            continue
        least_strong, least_weak = thresholds(quiet, loud)
        strong[part], weak[part] = power[part] >= least_strong, power[part] >= least_weak
    marks = np.zeros(count, np.bool_)
    parts = list(stretches(weak))
    spoken = [stretch for stretch in parts if is_spoken(*stretch, strong, voiced)]
    if not spoken:  # a voice in short bursts only: uncertain
        marks[:] = np.count_nonzero(strong & voiced) >= VOICED_FRAMES
    margin = round(_MARGIN / HOP)
    for first, last in joined(spoken, round(PHRASE / HOP)):
        marks[max(0, first - margin) : last + margin] = True
    return marks & ~blank


def pack_marks(marks: Bools) -> bytes:
    """Marks as bits, the first in the lowest bit of the first byte."""
    return np.packbits(marks, bitorder="little").tobytes()


def unpack_marks(bits: bytes, frames: int) -> Bools:
    """Marks from `pack_marks`, bool (frames,)."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=frames, bitorder="little").astype(np.bool_)
