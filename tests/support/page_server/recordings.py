"""Made-up recordings: syllables of buzz and hiss, and in each some tokens of one word. 16 kHz, mono, float32 in -1..1."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

RATE = 16000
SECONDS = 40.0
NAMES = ("bakolo/market_2009.wav", "bakolo/fishing_2011.wav", "mossaka/grandmother_2012.wav")
SPEAKERS = ("Abo", "Kouilou", "Mama Ngala")
DATES = ("2009-05-02", "2011-08-14", "2012-01-30")
#: When the word is said in each recording, s.
WORD_AT = (3.1, 11.4, 19.2, 27.5, 35.0)
WORD_SECONDS = 0.6

Samples = NDArray[np.float32]


def syllable(
    rng: np.random.Generator, seconds: float, first: tuple[float, float], second: tuple[float, float]
) -> Samples:
    """A vowel whose two formants glide (Hz), on a voice of 110 to 180 Hz: [seconds * RATE]."""
    time = np.arange(int(seconds * RATE)) / RATE
    voice = rng.uniform(110, 180)
    part = time / seconds
    sound = np.zeros_like(time)
    for harmonic in range(1, 30):
        pitch = harmonic * voice
        gain = sum(np.exp(-(((pitch - (low + (high - low) * part)) / 160) ** 2)) for low, high in (first, second))
        sound += (gain + 0.02) / harmonic**0.3 * np.sin(2 * np.pi * pitch * time)
    return np.asarray(sound * np.hanning(len(time)), dtype=np.float32)


def word(rng: np.random.Generator) -> Samples:
    """A token of the word: two syllables and a hiss between them: [WORD_SECONDS * RATE]."""
    hiss = rng.normal(0, 0.25, int(0.12 * RATE)).astype(np.float32) * np.hanning(int(0.12 * RATE)).astype(np.float32)
    parts = [syllable(rng, 0.22, (300, 700), (2200, 1200)), hiss, syllable(rng, 0.26, (500, 350), (900, 2300))]
    return np.concatenate(parts)[: int(WORD_SECONDS * RATE)].astype(np.float32)


def recording(seed: int) -> Samples:
    """A recording of SECONDS."""
    rng = np.random.default_rng(seed)
    samples = rng.normal(0, 0.003, int(SECONDS * RATE)).astype(np.float32)
    at = 0.3
    while at < SECONDS - 1:
        seconds = rng.uniform(0.12, 0.35)
        put(
            samples,
            at,
            0.25 * syllable(rng, seconds, tuple(rng.uniform(250, 800, 2)), tuple(rng.uniform(900, 2500, 2))),
        )
        at += seconds + rng.choice([0.02, 0.05, 0.4])
    for at in WORD_AT:
        samples[int((at - 0.05) * RATE) : int((at + WORD_SECONDS + 0.05) * RATE)] *= 0.05
        put(samples, at, 0.35 * word(rng))
    return samples


def put(samples: Samples, at: float, sound: Samples) -> None:
    """Add a sound at a second."""
    start = int(at * RATE)
    samples[start : start + len(sound)] += sound


def wav(samples: Samples) -> bytes:
    """A WAV file of 16 bit."""
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, "PCM_16", format="WAV")
    return file.getvalue()


def documents() -> list[dict[str, Any]]:
    """What is known of each recording."""
    return [
        {"doc_id": f"doc{n}", "channel": 1, "recording": name, "duration": SECONDS, "speaker": speaker, "date": date}
        for n, (name, speaker, date) in enumerate(zip(NAMES, SPEAKERS, DATES, strict=True))
    ]


def hits(seed: int) -> list[dict[str, Any]]:
    """Hits of a search, the best first: the tokens of the word, and some that are none."""
    rng = np.random.default_rng(seed)
    found = []
    for document in documents():
        for at, true in [*((at, True) for at in WORD_AT), *((float(at), False) for at in rng.uniform(6, 33, 4))]:
            likely = float(rng.uniform(0.55, 0.97) if true else rng.uniform(0.05, 0.5))
            place = {"start": round(at, 2), "end": round(at + WORD_SECONDS, 2), "at": round(at, 2), "channels": [1]}
            kept = {key: document[key] for key in ("doc_id", "recording", "speaker", "date")}
            found.append({**kept, **place, "score": round(likely * 3 - 1, 3), "likely": round(likely, 3)})
    return sorted(found, key=lambda hit: -float(hit["score"]))
