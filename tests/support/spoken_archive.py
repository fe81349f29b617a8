"""A small archive for `swsdist serve`: synthetic speech in two folders, with transcripts and classes of it, all indexed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

import swsdist
from swsdist.pipeline.chain_run import StepSelection
from swsdist.testing.synthesis import make_corpus
from tests.commands import in_this_process

#: Folder and day of recordings, in turns.
_FOLDERS = (("bakolo", "2009-05-02"), ("mossaka", "2012-01-30"))
#: Recordings of which classes are discovered.
_DISCOVERED = 4
#: A word as transcripts write it.
WRITTEN = "mbote"


class SpokenArchive(NamedTuple):
    """What there is of the archive.

    Attributes:
        folder: of the recordings.
        run: they, indexed.
        texts: run of the chain `lattices`; None: there is none.
        classes: run of `discover`.
        recordings: their names.
        word: sound of a word that recordings hold, between silences.
        said_in: names of the recordings that hold it, each once, sorted.
    """

    folder: Path
    run: str
    texts: str | None
    classes: str
    recordings: list[str]
    word: Path
    said_in: list[str]


def make_archive(folder: Path) -> SpokenArchive:
    """Write and index it, in a folder that is empty."""
    corpus = folder / "corpus"
    make_corpus(corpus, documents=12, queries=4, voices=3)
    rows = _rows(corpus / "docs.csv")
    recordings, texts = folder / "archive", folder / "transcripts"
    names = {}
    for number, row in enumerate(rows):
        place, day = _FOLDERS[number % len(_FOLDERS)]
        doc_id = names[row["doc_id"]] = f"{place}/{day}-{row['doc_id']}"
        for root in (recordings, texts):
            (root / doc_id).parent.mkdir(parents=True, exist_ok=True)
        path = (corpus / row["path"]).rename(recordings / f"{doc_id}.flac")
        written = {"word": f" {WRITTEN}", "start": 0.4, "end": 0.9, "probability": 0.9}
        (texts / f"{doc_id}.json").write_text(json.dumps({"segments": [{"words": [written]}]}))
        row |= {"doc_id": doc_id, "path": str(path)}
    run, text_run, classes = (str(folder / name) for name in ("archive-swsdist", "archive-text", "archive-classes"))
    documents = {"documents": _table(folder / "docs.csv", rows)}  # `swsdist index FOLDER` knows no speakers
    config = {"run": run, "corpus": documents, "executor": {"kind": "serial"}}
    swsdist.run(config, selection=StepSelection(until="index"))
    _swsdist("index", str(texts), text_run)
    _swsdist("discover", _table(folder / "some.csv", rows[:_DISCOVERED]), classes)
    word = _between_silences(corpus / "queries/q001_1.wav", folder / "word.wav")
    said_in = sorted(names[row["doc_id"]] for row in _rows(corpus / "refs.csv") if row["query_id"] == "q001")
    return SpokenArchive(recordings, run, text_run, classes, [*names.values()], word, said_in)


def _swsdist(command: str, source: str, run: str) -> None:
    ended = in_this_process(command, source, "--run", run, "--set", "executor.kind=serial")
    assert ended.code == 0, ended.err


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _table(path: Path, rows: list[dict[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def _between_silences(source: Path, target: Path) -> Path:
    samples, rate = soundfile.read(source)
    silence = np.zeros(int(0.4 * rate))
    soundfile.write(target, np.concatenate([silence, samples, silence]), rate, "PCM_16")
    return target
