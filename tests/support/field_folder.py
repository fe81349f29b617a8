"""A linguist's folder: recordings and annotations beside them, of both some wrong; a copy, equal channels, and an mp3."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import soundfile
from imageio_ffmpeg import get_ffmpeg_exe
from pympi import Eaf, TextGrid

from swsdist.testing.synthesis import make_corpus

#: Words of each recording, from `_FIRST` on, half a second each.
WORDS = {"anna": ["mbote", "nzo", "mbote"], "ben": ["nzo", "mai"], "both": ["mai", "mbote"]}
_FIRST, _LENGTH = 0.4, 0.5


def make_folder(folder: Path) -> Path:
    """Write it, in a folder that is empty: `field` below it."""
    field = folder / "field"
    make_corpus(folder / "corpus", documents=6, queries=1, voices=3)
    sounds = [soundfile.read(path) for path in sorted((folder / "corpus" / "audio").iterdir())]
    (field / "backup").mkdir(parents=True)
    for name, (samples, rate) in zip([*WORDS, "stereo", "plain"], sounds, strict=False):
        if name == "stereo":
            samples = np.stack([samples, samples], axis=1)
        soundfile.write(field / f"{name}.wav", samples, rate)
    (field / "broken.wav").write_bytes(b"RIFF")
    shutil.copy(field / "ben.wav", field / "backup" / "ben.wav")
    mp3(field / "anna.wav", field / "anna.mp3")
    eaf(field / "anna.eaf", {"words": ("Anna", WORDS["anna"]), "notes": ("", ["loud"])})
    eaf(field / "both.eaf", {"A": ("Anna", WORDS["both"][:1]), "B": ("Ben", WORDS["both"][1:])})
    grid = TextGrid(xmax=4.0)
    grid_tier = grid.add_tier("Ben - words")
    for start, end, text in _spans(WORDS["ben"]):
        grid_tier.add_interval(start, end, text)
    grid.to_file(str(field / "ben.TextGrid"))
    eaf(field / "stereo.eaf", {"later": ("", ["nzo"])}, first=400.0)
    (field / "plain.eaf").write_text("<?xml version='1.0'?><ANNOTATION_DOCUMENT><TIER")
    return field


def mp3(source: Path, target: Path, rate: str = "64k") -> None:
    """Write a recording in another format."""
    command = [get_ffmpeg_exe(), "-v", "error", "-y", "-i", str(source), "-b:a", rate, str(target)]
    subprocess.run(command, check=True)


def eaf(path: Path, tiers: dict[str, tuple[str, list[str]]], first: float = _FIRST) -> None:
    """Write annotations: of each tier its participant and its words, from a time on (s)."""
    file = Eaf()
    file.remove_tier("default")
    for name, (speaker, words) in tiers.items():
        file.add_tier(name, part=speaker or None)
        for start, end, text in _spans(words, first):
            file.add_annotation(name, round(1000 * start), round(1000 * end), text)
    file.to_file(str(path))


def _spans(words: list[str], first: float = _FIRST) -> list[tuple[float, float, str]]:
    return [(first + _LENGTH * k, first + _LENGTH * (k + 1), word) for k, word in enumerate(words)]
