"""From words to control tracks, one point per 5 ms.

Each gesture sets targets; the tracks are targets smoothed over about the time a tongue needs, so sounds that are
spoken fast run into each other and vowels miss their targets, as in speech.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from swsdist.testing.synthesis.phonology import OFF, VOWELS, Gesture, gestures
from swsdist.testing.synthesis.voice import Voice

#: Seconds between two points of a track.
STEP = 0.005

_NEUTRAL = (500.0, 1500.0, 2500.0)


@dataclass(frozen=True)
class Tracks:
    """Control tracks, one point each 5 ms; n points. Hz for frequencies, linear amplitudes.

    `formants` is (n, 3), `band` is (n, 2), the others are (n,).
    """

    pitch: NDArray[np.float64]
    voicing: NDArray[np.float64]
    breath: NDArray[np.float64]
    noise: NDArray[np.float64]
    formants: NDArray[np.float64]
    band: NDArray[np.float64]
    nasal_zero: NDArray[np.float64]


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

    def steps(values: list[float]) -> NDArray[np.float64]:
        return np.repeat(np.array(values), counts, axis=0)

    def amplitude(values: list[float], points: int) -> NDArray[np.float64]:
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


def _smooth(track: NDArray[np.float64], points: int) -> NDArray[np.float64]:
    """Running mean under a Hann window of an odd number of points; the ends repeat their values."""
    window = np.hanning(points + 2)[1:-1]
    padded = np.pad(track, points // 2, mode="edge")
    return np.convolve(padded, window / window.sum(), mode="valid")
