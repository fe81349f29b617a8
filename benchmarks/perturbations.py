"""Other channels, rooms and voices for recordings, made the same each time. Sound is float32 of full scale 1.

All but `faster` keep the length, and every time in a recording.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from swsdist.features.librosa import library

Sound = NDArray[np.float32]
#: Given a recording, its rate and random numbers of its own.
Change = Callable[[Sound, int, np.random.Generator], Sound]


def faster(sound: Sound, rate: int, factor: float) -> Sound:
    """Played so many times faster, and so much higher."""
    made: Sound = soxr.resample(sound, rate * factor, rate)
    return made


def noisy(sound: Sound, snr: float, random: np.random.Generator) -> Sound:
    """With white noise, so many dB below the mean power of the whole recording."""
    made: Sound = sound + random.standard_normal(len(sound), np.float32) * np.sqrt(np.mean(sound**2)) * 10 ** (
        -snr / 20
    )
    return made


def warped(sound: Sound, rate: int, factor: float) -> Sound:
    """Another voice: pitch and formants times a factor. It is played faster, then slowed down by a phase vocoder.

    A lower voice leaves the top of the band empty; there the old sound stays, so that only the voice is another.
    """
    slowed = library().effects.time_stretch(faster(sound, rate, factor), rate=1 / factor, n_fft=1024)
    made: Sound = library().util.fix_length(slowed, size=len(sound))
    return made + sound - narrow(sound, rate, factor * rate) if factor < 1 else made


def narrow(sound: Sound, rate: int, other: float) -> Sound:
    """At another rate, and back at its own."""
    made: Sound = library().util.fix_length(
        soxr.resample(soxr.resample(sound, rate, other), other, rate), size=len(sound)
    )
    return made


def mu_law(sound: Sound, rate: int) -> Sound:
    """In the eight bits of G.711, at its own rate."""
    file = io.BytesIO()
    soundfile.write(file, sound, rate, "ULAW", format="WAV")
    file.seek(0)
    made: Sound = soundfile.read(file, dtype="float32")[0]
    return made


def reverberant(sound: Sound, rate: int, seconds: float) -> Sound:
    """In a room, the same for all: the direct sound, and a tail of noise that is as strong and falls by 60 dB in so long."""
    time = np.arange(round(seconds * rate)) / seconds / rate
    response = np.random.default_rng(0).standard_normal(len(time)) * 10 ** (-3 * time)
    response[0] = np.sqrt(np.sum(response[1:] ** 2))
    response /= np.sqrt(np.sum(response**2))
    made: Sound = fftconvolve(sound, response)[: len(sound)].astype(np.float32)
    return made


def changed(rows: Iterable[dict[str, Any]], folder: Path, change: Change, suffix: str = "") -> Iterator[dict[str, Any]]:
    """Rows of documents whose recordings are changed, each a FLAC file; their names get a suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        name = f"{row['doc_id']}{suffix}"
        random = np.random.default_rng(list(hashlib.blake2b(name.encode(), digest_size=8).digest()))
        sound, rate = soundfile.read(row["path"], dtype="float32")
        sound = change(sound, rate, random)
        path = folder.resolve() / f"{name}.flac"
        soundfile.write(path, sound, rate, "PCM_16", format="FLAC")
        yield {**row, "doc_id": name, "path": str(path), "duration": f"{len(sound) / rate:.3f}"}
