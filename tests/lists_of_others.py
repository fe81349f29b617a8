"""The small corpus as others keep it: Kaldi's data folder, whose utterances are its documents, and NIST's lists."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import soundfile

from swsdist.core.types import EXCERPTS, LEXEMES, TERMS
from swsdist.io.nist.ctm import write_ctm
from swsdist.io.nist.ecf import write_ecf
from swsdist.io.nist.rttm import write_rttm
from swsdist.io.nist.termlist import write_termlist

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


def nist_lists(corpus: Path, folder: Path, dialect: Literal["stdeval", "kwseval"]) -> Path:
    """Write ecf.xml, terms.xml, words.rttm and words.ctm beside the recordings.

    The first recording has two excerpts that overlap. The term q900 has no spoken example, and is said once.
    """
    found = recordings(corpus, folder)
    excerpts = []
    for path in sorted((folder / "audio").glob("*.wav")):
        length = round(soundfile.info(path).duration, 3)
        cuts = [(0.0, length)] if path.stem != "rec1" else [(0.0, 2.0), (1.5, round(length - 1.5, 3))]
        fixed = {"file": path.name, "channel": 1, "source_type": "bnews", "language": "x"}
        excerpts += [{**fixed, "start": start, "duration": duration} for start, duration in cuts]
    write_ecf(pa.Table.from_pylist(excerpts, EXCERPTS), folder / "ecf.xml", dialect)
    texts = {row["query_id"]: row["term"] for row in rows(corpus / "queries.csv")}
    words: list[dict[str, Any]] = [{"doc_id": "rec2", "start": 0.0, "duration": 0.1, "word": "unheard"}]
    for row in rows(corpus / "refs.csv"):
        one, start, end = found[row["doc_id"]], float(row["start"]), float(row["end"])
        place = {"start": round(one.start + start, 4), "duration": round(end - start, 4)}
        words.append({"doc_id": one.recording, **place, "word": texts[row["query_id"]]})
    words.sort(key=lambda word: (word["doc_id"], word["start"]))
    lexemes = pa.Table.from_pylist([{**word, "channel": 1, "kind": "lex", "speaker": "a"} for word in words], LEXEMES)
    write_rttm(lexemes, folder / "words.rttm")
    write_ctm(lexemes, folder / "words.ctm")
    terms = [{"query_id": query_id, "term": term} for query_id, term in texts.items()]
    terms.append({"query_id": "q900", "term": "unheard"})
    write_termlist(
        pa.Table.from_pylist(terms, TERMS), folder / "terms.xml", "tlist" if dialect == "stdeval" else "kwlist"
    )
    return folder
