"""Speech of flite, with the synthesiser's own times of words and phones.

A C program beside this file is compiled against the voices of flite (Debian: `flite1-dev`, and `gcc`) and asked sentence by
sentence. Flite's excitation is noise whose state goes on from sentence to sentence, so samples depend on the sentences before.
Times agree with a forced alignment by pocketsphinx within 0.02 s in the mean, for each voice.

Source: flite's header files; its relations are described in the Festival manual, "Utterances".
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

VOICES = ("kal16", "awb", "rms", "slt")
#: Samples a second.
RATE = 16000

#: A word or phone: its name, start and end.
Span = tuple[str, int, int]


class Speech(NamedTuple):
    """Something said.

    Attributes:
        samples: int16.
        phones: name, first sample and end of each phone; they tile the samples, silences (`pau`) included.
        words: the same of each word.
    """

    samples: NDArray[np.int16]
    phones: list[Span]
    words: list[Span]


class Voices:
    """The running program; see `voices`."""

    def __init__(self, questions: IO[bytes], answers: IO[bytes]) -> None:
        self._questions, self._answers = questions, answers

    def say(self, text: str, voice: str) -> Speech:
        """Say a sentence.

        Raises:
            ValueError: flite read other words than the text has.
        """
        self._questions.write(f"{voice} {text}\n".encode())
        self._questions.flush()
        rate, count, phones, words = (int(field) for field in self._fields())
        if rate != RATE:
            raise ValueError(f"{voice} speaks at {rate} Hz, not {RATE}")
        segments, begin = [], 0
        for k in range(phones):
            name, end = self._fields()
            # The last phone is silence, and the samples of some voices end within it.
            stop = count if k == phones - 1 else round(float(end) * RATE)
            segments.append((name, begin, stop))
            begin = stop
        spans = []
        for _ in range(words):
            name, first, last = self._fields()
            spans.append((name, segments[int(first)][1], segments[int(last)][2]))
        samples = np.frombuffer(self._answers.read(2 * count), np.dtype("<i2"))
        if [name for name, _, _ in spans] != words_of(text) or not all(begin < end for _, begin, end in segments):
            raise ValueError(f"{voice} says {segments} for {text!r}")
        return Speech(samples, segments, spans)

    def _fields(self) -> list[str]:
        return self._answers.readline().decode().split()


def words_of(text: str) -> list[str]:
    """Words of a sentence, without commas and full stops."""
    return text.replace(",", "").replace(".", "").split()


@contextmanager
def voices() -> Iterator[Voices]:
    """Compile and start the program.

    Raises:
        subprocess.CalledProcessError: it does not compile; why is on standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "speak"
        subprocess.run(_command(Path(__file__).with_name("speak.c"), program), check=True)
        with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield Voices(process.stdin, process.stdout)


def lacking() -> str | None:
    """What is missing to speak: a reason to skip tests, or None."""
    if shutil.which("gcc") is None:
        return "needs gcc"
    with tempfile.TemporaryDirectory() as folder:
        command = _command(Path(__file__).with_name("speak.c"), Path(folder) / "speak")
        done = subprocess.run(command, capture_output=True, check=False)
    return "needs flite's voices and headers: apt-get install flite1-dev" if done.returncode else None


def _command(source: Path, program: Path) -> list[str]:
    libraries = (*(f"flite_cmu_us_{voice}" for voice in VOICES), "flite_usenglish", "flite_cmulex", "flite", "m")
    return ["gcc", "-o", str(program), str(source), *(f"-l{library}" for library in libraries)]
