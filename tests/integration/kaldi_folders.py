"""The small corpus as others keep it: its documents as utterances of a few recordings, in a Kaldi data folder."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

#: s of noise in front of each utterance.
GAP = 0.35


class Utterance(NamedTuple):
    """A document of the small corpus in its recording: where it begins and ends (s), and who speaks."""

    recording: str
    start: float
    end: float
    speaker: str


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def recordings(corpus: Path, folder: Path, together: int = 3) -> dict[str, Utterance]:
    """Write `audio/rec1.wav`, ...: so many documents each, one after the other."""
    (folder / "audio").mkdir(parents=True)
    rng = np.random.default_rng(7)
    found: dict[str, Utterance] = {}
    parts: dict[str, list[np.ndarray]] = {}
    for k, row in enumerate(rows(corpus / "docs.csv")):
        name = f"rec{k // together + 1}"
        samples, rate = soundfile.read(corpus / row["path"], dtype="int16")
        mine = parts.setdefault(name, [])
        mine.append(rng.integers(-40, 40, round(GAP * rate)).astype(np.int16))
        start = sum(map(len, mine)) / rate
        mine.append(samples)
        found[row["doc_id"]] = Utterance(name, start, start + len(samples) / rate, row["speaker"])
    for name, pieces in parts.items():
        soundfile.write(folder / "audio" / f"{name}.wav", np.concatenate(pieces), rate, subtype="PCM_16")
    return found


def data_folder(corpus: Path, folder: Path, entry: str = "audio/{}.wav") -> dict[str, Utterance]:
    """Write wav.scp, segments, utt2spk and reco2dur beside the recordings."""
    found = recordings(corpus, folder)
    names = sorted({one.recording for one in found.values()})
    lengths = {name: soundfile.info(folder / "audio" / f"{name}.wav").duration for name in names}
    (folder / "wav.scp").write_text("".join(f"{name} {entry.format(name)}\n" for name in names))
    lines = [f"{utterance} {one.recording} {one.start!r} {one.end!r}\n" for utterance, one in found.items()]
    (folder / "segments").write_text("".join(lines))
    (folder / "utt2spk").write_text("".join(f"{utterance} {one.speaker}\n" for utterance, one in found.items()))
    (folder / "reco2dur").write_text("".join(f"{name} {length}\n" for name, length in lengths.items()))
    return found


def references(corpus: Path, found: dict[str, Utterance], path: Path) -> None:
    """The references, by recording and in its time."""
    lines = ["query_id,doc_id,channel,start,end"]
    for row in rows(corpus / "refs.csv"):
        one = found[row["doc_id"]]
        start, end = (round(one.start + float(row[name]), 6) for name in ("start", "end"))
        lines.append(f"{row['query_id']},{one.recording},1,{start},{end}")
    path.write_text("\n".join(lines) + "\n")
