"""What the benchmarks search in: one hour of Mboshi where it lies beside the checkout, else made-up speech; and bigger ones
made from it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from benchmarks.rows import say
from swsdist.audio.reader import read_blocks
from swsdist.config import Config, config_from_dict
from swsdist.testing.synthesis import make_corpus

ROOT = Path(__file__).resolve().parents[1]
_RATE = 16_000


@dataclass(frozen=True)
class Corpus:
    """Tables of documents, queries and references, with absolute paths in the first two or paths relative to the table."""

    name: str
    documents: Path
    queries: Path
    references: Path | None

    def config(self, run: Path, **sections: dict[str, Any]) -> Config:
        """A run on it.

        Args:
            run: run folder.
            sections: of the config, for example `index={"shard_hours": 0.25}`.
        """
        tables = {"documents": str(self.documents), "queries": str(self.queries)}
        if self.references is not None:
            tables["references"] = str(self.references)
        # Queries as they are: what is measured is the search of them.
        return config_from_dict({"run": str(run), "corpus": tables, "queries": {"trim": "none"}, **sections})

    def rows(self) -> list[dict[str, Any]]:
        """Documents, with absolute paths."""
        return read(self.documents)


def mboshi() -> Corpus | None:
    """One hour of Mboshi with 120 queries, or None where it is not beside the checkout."""
    folder = ROOT.parent / "shared" / "data" / "mboshi" / "dev"
    if not (folder / "docs.csv").is_file():
        return None
    return Corpus("Mboshi dev", folder / "docs.csv", folder / "queries.csv", folder / "refs.csv")


def base(scratch: Path) -> Corpus:
    """Mboshi dev, or as a stand-in 400 documents (about 50 minutes) of made-up speech with 40 queries."""
    found = mboshi()
    if found is not None:
        return found
    folder = scratch / "synthetic"
    say("there is no ../shared/data/mboshi/dev: making speech instead")
    make_corpus(folder, documents=400, queries=40)
    return Corpus("made-up speech", folder / "docs.csv", folder / "queries.csv", folder / "refs.csv")


def repeated(corpus: Corpus, times: int, folder: Path) -> Corpus:
    """The same recordings several times over, each time as other documents; without references."""
    rows = [{**row, "doc_id": f"{row['doc_id']}~{k}"} for k in range(times) for row in corpus.rows()]
    return replace(
        corpus, name=f"{corpus.name} x {times}", documents=write(folder / f"times{times}.csv", rows), references=None
    )


def in_parts(corpus: Corpus, parts: int, folder: Path) -> Corpus:
    """Every recording cut into so many equal ones, each a document and a FLAC file; without references."""
    place = folder / f"parts{parts}"
    place.mkdir(parents=True)
    rows = []
    for row in corpus.rows():
        sound, rate = soundfile.read(row["path"], dtype="int16")
        for k, piece in enumerate(np.array_split(sound, parts)):
            path = place / f"{row['doc_id']}-{k}.flac"
            soundfile.write(path, piece, rate, "PCM_16", format="FLAC")
            rows.append({"doc_id": path.stem, "path": str(path), "duration": f"{len(piece) / rate:.3f}"})
    name = f"{corpus.name} in {parts} parts"
    return replace(corpus, name=name, documents=write(folder / f"parts{parts}.csv", rows), references=None)


def one_recording(corpus: Corpus, seconds: float, folder: Path) -> Corpus:
    """One FLAC file of a given length: the corpus's recordings one after the other, again from the first if they end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"long{seconds:.0f}.flac"
    left = round(seconds * _RATE)
    paths = [row["path"] for row in corpus.rows()]
    with soundfile.SoundFile(path, "w", _RATE, 1, "PCM_16", format="FLAC") as sound:
        while left > 0:
            for source in paths:
                for block in read_blocks(source, channel=1, rate=_RATE):
                    sound.write(np.asarray(block[: max(left, 0)]))
                    left -= len(block)
                if left <= 0:
                    break
    row = {"doc_id": path.stem, "path": str(path), "duration": f"{seconds:.3f}"}
    return replace(
        corpus,
        name=f"one recording of {seconds / 60:.0f} min",
        documents=write(folder / f"{path.stem}.csv", [row]),
        references=None,
    )


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a table in CSV; paths in it become absolute."""
    with path.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    return [{**row, "path": str(path.parent / row["path"])} if "path" in row else row for row in rows]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a table as CSV; gives its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
