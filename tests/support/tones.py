"""A recogniser of tones, for what is done with recognisers: half a second of a tone is a word, left out if it is quiet; and
recordings of words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.config.section import IsPath, Section
from swsdist.core.codes import lattices as codes
from swsdist.core.needs import LEAST, Needs
from swsdist.lattices.lattice import Lattice, LeftOut, Word, transcript
from swsdist.registry.entries import RecogniserEntry

RATE, SECONDS = 16_000, 0.5
#: A word a tone: 300 Hz, 400 Hz, ...
WORDS = ("red", "green", "blue", "house", "river", "stone", "apple", "table", "window")


class Tones(Section):
    """Recognises tones."""

    model: IsPath | None = None
    language: str = "xx"

    rate: ClassVar[int] = RATE
    needs: ClassVar[tuple[Needs, ...]] = LEAST
    #: Keys of what was recognised.
    heard: ClassVar[list[str]] = []

    def identity(self) -> list[Any]:
        return [self.language]

    def load(self, granted: Needs) -> None: ...

    def lattice(self, key: str, channel: int, blocks: Iterable[NDArray[np.float32]]) -> Lattice:
        left_out = LeftOut()
        words = list(_words(blocks, left_out))
        self.heard.append(key)
        return replace(
            transcript(key, words, channel, left_out), language=self.language, speech_seconds=SECONDS * len(words)
        )

    def words(self, blocks: Iterable[NDArray[np.float32]]) -> list[str]:
        return [word.text for word in _words(blocks, LeftOut())]


ENTRY = RecogniserEntry(
    "tests.support.tones:Tones", 1, "tests.support.tones:Tones", model_files=("tones.bin", "config.json")
)


def _words(blocks: Iterable[NDArray[np.float32]], left_out: LeftOut) -> Iterable[Word]:
    samples = np.concatenate([*blocks, np.empty(0, np.float32)])
    size = round(SECONDS * RATE)
    for k in itertools.count():
        part = samples[k * size : (k + 1) * size]
        if len(part) < size:
            return
        if np.abs(part).max() > 0.01:
            hertz = np.argmax(np.abs(np.fft.rfft(part))) / SECONDS
            word = Word(WORDS[round(hertz / 100) - 3], k * SECONDS, (k + 1) * SECONDS)
            with left_out:
                if np.abs(part).max() < 0.1:
                    raise codes.UNLIKELY_TEXT(
                        start=word.start, end=word.end, seconds=SECONDS, text=word.text, value=-2.0
                    )
                yield word


def say(path: Path, *channels: Sequence[str], level: float = 0.3) -> None:
    """Write a recording of some words, a sequence a channel; below a level of 0.1 they are hardly said."""
    times = np.arange(round(SECONDS * RATE)) / RATE
    tones = [
        [level * np.sin(2 * np.pi * 100 * (WORDS.index(word) + 3) * times) for word in words] for words in channels
    ]
    soundfile.write(path, np.stack([np.concatenate(tone) for tone in tones], axis=1), RATE)
