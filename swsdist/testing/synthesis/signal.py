"""Synthetic speech: sounds and words of the invented language, voices, control tracks, and sound from these.

**Sound.** Glottal pulses and noise go through filters that change every 5 ms.

The source is cut into Hann windows of 10 ms, 5 ms apart (they add up to one); each piece passes through the filter of
its time as a product of spectra, and the filtered pieces, tails included, are added up. So an utterance needs a few
array operations, and no filter state.

Filters are Klatt's (1980, section I) digital resonators: in cascade for the glottal source, a single one, as a
band-pass, for noise made in the mouth.

**Control tracks** have one point per 5 ms. Each gesture sets targets; the tracks are targets smoothed over about the
time a tongue needs, so sounds that are spoken fast run into each other and vowels miss their targets, as in speech.

**Language.** A phone is one or more gestures, spoken one after the other: a plosive is a closure, a burst and, if it
is voiceless, a puff of breath. Frequencies are in Hz for a grown man (vocal tract of about 17.5 cm), levels in dB
relative to the voicing of a vowel, durations in ms at an unhurried rate. The values are of the order of Klatt's
(1980, tables II and III), rounded; they are of no real language.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Singles

#: Level of silence in dB.
OFF = -80.0

#: Frequency in Hz of the nasal pole, and of the nasal zero when it cancels it (no nasality).
NASAL_POLE = 270.0


@dataclass(frozen=True)
class Gesture:
    """One position of the mouth.

    Attributes:
        duration: ms.
        formants: F1, F2, F3 in Hz; of a consonant, the locus that the neighbouring vowel's formants move towards.
        hold: weight of the gesture's formants, 0 (those of the next vowel) to 1 (a vowel).
        voicing: level in dB of the glottal pulses.
        breath: level in dB of the noise at the glottis, which passes through the formants.
        noise: level in dB of the noise at a narrowing in the mouth.
        band: centre and width in Hz of that noise.
        nasal_zero: Hz; `NASAL_POLE` where the nose is shut.
    """

    duration: float
    formants: tuple[float, float, float]
    hold: float = 1.0
    voicing: float = OFF
    breath: float = OFF
    noise: float = OFF
    band: tuple[float, float] = (3000.0, 3000.0)
    nasal_zero: float = NASAL_POLE


def _vowel(f1: float, f2: float, f3: float) -> tuple[Gesture, ...]:
    return (Gesture(95, (f1, f2, f3), voicing=0.0, breath=-34.0),)


def _nasal(f2: float, f3: float, zero: float) -> tuple[Gesture, ...]:
    return (Gesture(68, (300.0, f2, f3), hold=0.75, voicing=-7.0, nasal_zero=zero),)


def _approximant(f1: float, f2: float, f3: float, hold: float, duration: float = 62) -> tuple[Gesture, ...]:
    return (Gesture(duration, (f1, f2, f3), hold=hold, voicing=-5.0, breath=-36.0),)


_LABIAL, _ALVEOLAR, _VELAR = (250.0, 900.0, 2250.0), (250.0, 1750.0, 2650.0), (250.0, 1850.0, 2200.0)
_PALATAL = (270.0, 2100.0, 2800.0)


def _plosive(
    locus: tuple[float, float, float], band: tuple[float, float], burst: float, voiced: bool, lag: float
) -> tuple[Gesture, ...]:
    closure = Gesture(62 if voiced else 78, locus, hold=0.6, voicing=-17.0 if voiced else OFF)
    release = Gesture(10, locus, hold=0.6, voicing=-17.0 if voiced else OFF, noise=burst, band=band)
    puff = Gesture(lag, locus, hold=0.3, voicing=-12.0 if voiced else OFF, breath=-20.0 if voiced else -12.0)
    return closure, release, puff


def _fricative(
    locus: tuple[float, float, float], band: tuple[float, float], noise: float, voiced: bool = False
) -> tuple[Gesture, ...]:
    voicing = -11.0 if voiced else OFF
    return (Gesture(72 if voiced else 105, locus, hold=0.6, voicing=voicing, noise=noise, band=band),)


VOWELS: dict[str, tuple[Gesture, ...]] = {
    "i": _vowel(290, 2250, 2950),
    "e": _vowel(440, 1980, 2600),
    "ɛ": _vowel(590, 1780, 2500),
    "a": _vowel(740, 1300, 2500),
    "ɔ": _vowel(610, 930, 2450),
    "o": _vowel(450, 860, 2400),
    "u": _vowel(320, 780, 2300),
}

CONSONANTS: dict[str, tuple[Gesture, ...]] = {
    "p": _plosive(_LABIAL, (1200, 2500), -20, voiced=False, lag=30),
    "t": _plosive(_ALVEOLAR, (4300, 2200), -14, voiced=False, lag=40),
    "k": _plosive(_VELAR, (2000, 900), -14, voiced=False, lag=50),
    "b": _plosive(_LABIAL, (1000, 2000), -26, voiced=True, lag=8),
    "d": _plosive(_ALVEOLAR, (4000, 2200), -22, voiced=True, lag=10),
    "g": _plosive(_VELAR, (1900, 900), -21, voiced=True, lag=15),
    "m": _nasal(1050, 2200, 900),
    "n": _nasal(1550, 2550, 1600),
    "f": _fricative(_LABIAL, (4500, 6000), -24),
    "s": _fricative(_ALVEOLAR, (5800, 1700), -13),
    "ʃ": _fricative(_PALATAL, (3100, 1300), -13),
    "v": _fricative(_LABIAL, (4000, 6000), -30, voiced=True),
    "z": _fricative(_ALVEOLAR, (5800, 1700), -20, voiced=True),
    "h": (Gesture(60, (500.0, 1500.0, 2500.0), hold=0.1, breath=-12.0),),
    "l": _approximant(350, 1150, 2750, hold=0.8),
    "r": _approximant(430, 1250, 1700, hold=0.8, duration=55),
    "w": _approximant(300, 680, 2250, hold=0.9),
    "j": _approximant(270, 2200, 3000, hold=0.9),
}

#: Consonants that may close a syllable.
_CODAS = ("n", "m", "s", "l", "r")


def draw_words(
    rng: np.random.Generator, count: int, syllables: tuple[int, ...], avoid: Collection[str] = ()
) -> list[str]:
    """Distinct words, one letter per phone; a syllable is a consonant, a vowel and sometimes a closing consonant.

    Args:
        rng: random generator.
        count: number of words.
        syllables: numbers of syllables, equally likely.
        avoid: words that the new ones must not contain.
    """
    consonants, vowels = list(CONSONANTS), list(VOWELS)
    words: dict[str, None] = {}
    while len(words) < count:
        word = ""
        for _ in range(rng.choice(syllables)):
            word += rng.choice(consonants) + rng.choice(vowels)
            if rng.random() < 0.2:
                word += rng.choice(_CODAS)
        if not any(other in word for other in avoid):
            words[word] = None
    return list(words)


def gestures(phone: str) -> tuple[Gesture, ...]:
    """The gestures of a phone of `VOWELS` or `CONSONANTS`."""
    return VOWELS[phone] if phone in VOWELS else CONSONANTS[phone]


_CORNERS = np.array([0.0, 1000.0, 2000.0, 4000.0, 8000.0])


@dataclass(frozen=True)
class Voice:
    """A speaker.

    Attributes:
        name: for tables.
        tract: factor on all formants: 1 for a man's vocal tract, about 1.17 for a woman's.
        pitch: middle fundamental frequency in Hz.
        range: relative excursion of the fundamental frequency.
        open_quotient: part of the period during which the glottis is open.
        tilt: Hz, corner of the low-pass that softens the voice.
        breathiness: dB added to the noise at the glottis while it sounds.
        jitter: relative deviation of the length of single periods.
        rate: factor on all durations.
        accent: factors on F1, F2 and F3 of each vowel.
        response: the microphone; frequencies in Hz, and the gain in dB at them: (2, 5).
        noise: dB of the background where this speaker is recorded, relative to the speech.
    """

    name: str
    tract: float
    pitch: float
    range: float
    open_quotient: float
    tilt: float
    breathiness: float
    jitter: float
    rate: float
    accent: dict[str, Floats]
    response: Floats
    noise: float


def draw_voice(rng: np.random.Generator, index: int) -> Voice:
    """Draw a speaker; even indices are lower voices, odd ones higher."""
    high = index % 2
    return Voice(
        name=f"voice{index + 1}",
        tract=(0.99, 1.15)[high] * rng.uniform(0.97, 1.04),
        pitch=(112.0, 196.0)[high] * rng.uniform(0.84, 1.2),
        range=rng.uniform(0.08, 0.2),
        open_quotient=(0.52, 0.64)[high] + rng.uniform(-0.06, 0.06),
        tilt=rng.uniform(2200, 6000),
        breathiness=rng.uniform(-5, 5),
        jitter=rng.uniform(0.004, 0.015),
        rate=rng.uniform(0.9, 1.12),
        accent={vowel: np.exp(rng.normal(0, (0.05, 0.035, 0.02))) for vowel in VOWELS},
        response=np.stack([_CORNERS, np.append(0.0, rng.uniform(-5, 5, _CORNERS.size - 1))]),
        noise=rng.uniform(-36, -23),
    )


#: Seconds between two points of a track.
STEP = 0.005

_NEUTRAL = (500.0, 1500.0, 2500.0)


@dataclass(frozen=True)
class Tracks:
    """Control tracks, one point each 5 ms; n points. Hz for frequencies, linear amplitudes.

    `formants` is (n, 3), `band` is (n, 2), the others are (n,).
    """

    pitch: Floats
    voicing: Floats
    breath: Floats
    noise: Floats
    formants: Floats
    band: Floats
    nasal_zero: Floats


@dataclass(frozen=True)
class Speech:
    """Tracks, and the range of each word of the sentence in them: [first, last) point."""

    tracks: Tracks
    words: list[tuple[int, int]]


@dataclass(frozen=True)
class _Targets:
    """A gesture in one utterance: its points, and the relative pitch."""

    gesture: Gesture
    points: int
    height: float


def speak(rng: np.random.Generator, voice: Voice, words: list[str], margin: float, pauses: set[int]) -> Speech:
    """Generate the tracks of words.

    Args:
        rng: variation between utterances.
        voice: the speaker.
        words: one letter per phone.
        margin: seconds of silence before and after.
        pauses: indices of words followed by a pause; the pitch starts high again.
    """
    rate = voice.rate * rng.uniform(0.88, 1.16)
    silence = Gesture(0, _NEUTRAL)
    edge = round(margin / STEP)
    targets = [_Targets(silence, edge, 1.0)]
    places = []
    at, fall = edge, 0.0
    for index, word in enumerate(words):
        last = index == len(words) - 1 or index in pauses
        gestures = _say_word(rng, voice, word, rate * (1.12 if last else 1.0), 1.0 + voice.range * (0.7 - fall))
        points = sum(target.points for target in gestures)
        places.append((at, at + points))
        targets += gestures
        at += points
        fall = 0.0 if index in pauses else min(fall + 0.3, 1.6)
        gap = 0
        if index in pauses:
            gap = round(rng.uniform(0.18, 0.5) / STEP)
        elif not last and rng.random() < 0.2:
            gap = round(rng.uniform(0.02, 0.06) / STEP)
        if gap:
            targets.append(_Targets(silence, gap, 1.0))
            at += gap
    targets.append(_Targets(silence, edge, 1.0))
    return Speech(_tracks(rng, voice, targets), places)


def _say_word(rng: np.random.Generator, voice: Voice, word: str, rate: float, height: float) -> list[_Targets]:
    """The gestures of each phone, with the speaker's accent and random variation."""
    vowels = [phone for phone in word if phone in VOWELS]
    phones_said = []
    stressed = max(len(vowels) - 2, 0)
    loudness = rng.normal(0, 1.5)
    vowel_index = 0
    for place, phone in enumerate(word):
        is_vowel = phone in VOWELS
        stress = is_vowel and vowel_index == stressed
        neighbour = next((p for p in word[place:] if p in VOWELS), vowels[-1])
        near = np.array(VOWELS[neighbour][0].formants) * voice.accent[neighbour]
        slip = np.exp(rng.normal(0, (0.08, 0.055, 0.035)))
        stretch = rate * np.exp(rng.normal(0, 0.2)) * (1.2 if stress else 0.9 if is_vowel else 1.0)
        for gesture in gestures(phone):
            own_formants = np.array(gesture.formants) * (voice.accent[phone] if is_vowel else 1.0)
            formants = (gesture.hold * own_formants + (1 - gesture.hold) * near) * slip * voice.tract
            level = loudness + (2.0 if stress else 0.0)
            target = replace(
                gesture,
                formants=(formants[0], formants[1], formants[2]),
                voicing=gesture.voicing + level,
                breath=gesture.breath + level + (voice.breathiness if gesture.voicing > OFF else 0.0),
                noise=gesture.noise + level + rng.normal(0, 2.0),
                band=(gesture.band[0] * voice.tract * slip[1], gesture.band[1]),
            )
            points = max(round(gesture.duration * 1e-3 * stretch / STEP), 1)
            phones_said.append(_Targets(target, points, height * (1.0 + voice.range * stress)))
        vowel_index += is_vowel
    return phones_said


def _tracks(rng: np.random.Generator, voice: Voice, targets: list[_Targets]) -> Tracks:
    counts = [target.points for target in targets]

    def steps(values: list[float]) -> Floats:
        return np.repeat(np.array(values), counts, axis=0)

    def amplitude(values: list[float], points: int) -> Floats:
        decibels = steps(values)
        return _smooth(np.where(decibels > OFF / 2, 10 ** (decibels / 20), 0.0), points)

    gestures = [target.gesture for target in targets]
    total = sum(counts)
    drift = _smooth(rng.normal(0, 0.15, total), 61)
    return Tracks(
        pitch=voice.pitch * (_smooth(steps([target.height for target in targets]), 25) + drift * voice.range),
        voicing=amplitude([gesture.voicing for gesture in gestures], 7),
        breath=amplitude([gesture.breath for gesture in gestures], 5),
        # Only 15 ms, to preserve bursts.
        noise=amplitude([gesture.noise for gesture in gestures], 3),
        formants=np.stack(
            [_smooth(steps([gesture.formants[k] for gesture in gestures]), 19) for k in range(3)], axis=1
        ),
        band=np.stack([steps([gesture.band[k] for gesture in gestures]) for k in range(2)], axis=1),
        nasal_zero=_smooth(steps([gesture.nasal_zero for gesture in gestures]), 5),
    )


def _smooth(track: Floats, points: int) -> Floats:
    """Running mean under a Hann window of an odd number of points; the ends repeat their values."""
    window = np.hanning(points + 2)[1:-1]
    padded = np.pad(track, points // 2, mode="edge")
    return np.convolve(padded, window / window.sum(), mode="valid")


#: Samples per second.
RATE = 16000

_HOP = round(STEP * RATE)
#: Length of the transforms: a window and 22 ms for its tail.
_SIZE = 512
_HIGHER_FORMANTS = (3500.0, 4500.0, 5500.0, 6500.0, 7500.0)


def synthesise(rng: np.random.Generator, voice: Voice, tracks: Tracks) -> Singles:
    """The sound of the tracks, 5 ms a point, 16 kHz, with the noise of the place and through the microphone.

    Returns:
        float32 (80 n,), the largest magnitude a little below 1.
    """
    points = len(tracks.pitch)
    pulses, opening = _glottis(rng, voice, tracks.pitch)
    hiss = rng.standard_normal(pulses.size)
    # Breath is strongest while the glottis is open.
    throat = pulses * _hold(tracks.voicing) + hiss * (0.35 + opening) * _hold(tracks.breath)
    mouth = rng.standard_normal(pulses.size) * _hold(tracks.noise)

    z = np.exp(-2j * np.pi * np.arange(_SIZE // 2 + 1) / _SIZE)
    corners, response = voice.response
    # The position of the speaker varies.
    response = response + rng.normal(0, 1.5, response.size)
    microphone = 10 ** (np.interp(np.arange(z.size) * RATE / _SIZE, corners, response) / 20)
    spectra = _pieces(throat, points) * _vocal_tract(voice, tracks, z)
    spectra += _pieces(mouth, points) * _band(tracks.band, z)
    spectra *= microphone
    sound = _overlap_add(np.fft.irfft(spectra, _SIZE, axis=1), points)

    sound /= np.sqrt(np.mean(sound**2))
    sound += _background(rng, sound.size) * 10 ** ((voice.noise + rng.normal(0, 4)) / 20)
    return np.asarray(sound * (0.9 / np.abs(sound).max()), dtype=np.float32)


def _glottis(rng: np.random.Generator, voice: Voice, pitch: Floats) -> tuple[Floats, Floats]:
    """Derivative of the flow, and the flow itself: KLGLOTT88, flow x^2 - x^3 over the open part of the period."""
    cycles = 1.0 + np.cumsum(_hold(pitch)) / RATE
    last = int(cycles[-1]) + 3
    # Random variation of a period's end (jitter) and strength (shimmer).
    ends = np.arange(last) + rng.normal(0, voice.jitter, last)
    period = np.searchsorted(ends, cycles, side="right") - 1
    phase = (cycles - ends[period]) / (ends[period + 1] - ends[period])
    strength = np.exp(rng.normal(0, 3 * voice.jitter, last))[period]
    x = np.minimum(phase / voice.open_quotient, 1.0)
    flow = (x**2 - x**3) * (27 / 4) * strength
    # The factor makes the peak of a pulse about 1, so that levels of the phones are relative to it.
    return np.diff(flow, prepend=0.0) * 10.0, flow


def _vocal_tract(voice: Voice, tracks: Tracks, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Spectra (points, bins) of the cascade: voice tilt, nasal pair, three moving formants, the fixed higher ones."""
    soften = np.exp(-2 * np.pi * voice.tilt / RATE)
    fixed = (1 - soften) / (1 - soften * z) / _poles(NASAL_POLE, 100.0, z)
    for frequency in _HIGHER_FORMANTS:
        if frequency * voice.tract < 7800:
            fixed = fixed / _poles(frequency * voice.tract, 0.07 * frequency, z)
    # An open nose makes the formants broader.
    widening = np.where(tracks.nasal_zero > NASAL_POLE + 50, 60.0, 0.0)[:, None]
    moving = np.ones((1, 1), dtype=np.complex128)
    for k, width in enumerate((60.0, 90.0, 150.0)):
        moving = moving * _poles(tracks.formants[:, k : k + 1], width + widening, z)
    return np.asarray(fixed * _poles(tracks.nasal_zero[:, None], 100.0, z) / moving)


def _poles(
    frequency: float | NDArray[np.floating], width: float | NDArray[np.floating], z: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """Denominator of a resonator of gain 1 at 0 Hz."""
    radius = np.exp(-np.pi * width / RATE)
    c = -(radius**2)
    b = 2 * radius * np.cos(2 * np.pi * frequency / RATE)
    return np.asarray((1 - b * z - c * z**2) / (1 - b - c))


def _band(band: Floats, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Band-pass spectra (points, bins) of mean power 1: a resonator with zeros at 0 Hz and 8 kHz."""
    response = (1 - z**2) / _poles(np.minimum(band[:, :1], 7500.0), band[:, 1:], z)
    return np.asarray(response / np.sqrt(np.mean(np.abs(response) ** 2, axis=1, keepdims=True)))


def _pieces(source: Floats, points: int) -> NDArray[np.complex128]:
    """Spectra (points, bins) of the windows centred on each point."""
    padded = np.pad(source, (_HOP // 2, _HOP + _HOP // 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _HOP)[::_HOP][:points]
    hann = 0.5 - 0.5 * np.cos(np.pi * (np.arange(2 * _HOP) + 0.5) / _HOP)
    return np.fft.rfft(windows * hann, _SIZE, axis=1)


def _overlap_add(pieces: Floats, points: int) -> Floats:
    hops = -(-_SIZE // _HOP)
    blocks = np.pad(pieces, ((0, 0), (0, hops * _HOP - _SIZE))).reshape(points, hops, _HOP)
    sound = np.zeros((points + hops, _HOP))
    for hop in range(hops):
        sound[hop : hop + points] += blocks[:, hop]
    return sound.ravel()[_HOP // 2 : _HOP // 2 + points * _HOP]


def _hold(track: Floats) -> Floats:
    """A track at each sample: straight lines between the points, which lie in the middle of their 5 ms."""
    at = (np.arange(track.size * _HOP) + 0.5) / _HOP - 0.5
    return np.interp(at, np.arange(track.size), track)


def _background(rng: np.random.Generator, samples: int) -> Floats:
    """Noise of a room, power 1, falling by 3 dB an octave above 60 Hz."""
    spectrum = np.fft.rfft(rng.standard_normal(samples))
    frequency = np.arange(spectrum.size) * RATE / samples
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(frequency, 60.0)), samples)
    return np.asarray(noise / np.sqrt(np.mean(noise**2)))
