"""The sounds and words of the invented language.

A phone is one or more gestures, spoken one after the other: a plosive is a closure, a burst and, if it is voiceless, a
puff of breath. Frequencies are in Hz for a grown man (vocal tract of about 17.5 cm), levels in dB relative to the
voicing of a vowel, durations in ms at an unhurried rate. The values are of the order of Klatt's (1980, tables II and
III), rounded; they are of no real language.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

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
