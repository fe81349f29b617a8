"""Writes a folder in the form of QUESST 2014's database, of synthetic speech or of any recordings.

Layout and lists are those that `swsdist_recipes.quesst.database` reads.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from swsdist.audio.reader import write_sound
from swsdist.testing.synthesis.corpus import make_corpus

RATE = 8000

#: Language of the database that SUPERB uses, and of the other that is made.
_ENGLISH, _OTHER = "nnenglish", "slovak"


@dataclass(frozen=True)
class Recording:
    """A recording of a database.

    Attributes:
        path: of an audio file with one channel.
        language: as the lists have it.
    """

    path: Path
    language: str


def make_quesst(folder: Path, *, seed: int = 0, documents: int = 12, queries: int = 3) -> None:
    """Write a database of invented words in two languages.

    Args:
        folder: created if absent.
        seed: of all random choices.
        documents: number of documents of each language.
        queries: number of queries of each language and set, dev and eval.
    """
    made: dict[str, Recording] = {}
    spoken: dict[str, dict[str, Recording]] = {"dev": {}, "eval": {}}
    targets: dict[str, list[tuple[str, str]]] = {"dev": [], "eval": []}
    with tempfile.TemporaryDirectory() as scratch:
        for number, language in enumerate((_ENGLISH, _OTHER)):
            corpus = Path(scratch) / language
            make_corpus(corpus, seed=seed + number, documents=documents, queries=2 * queries, voices=3)
            names: dict[str, str] = {}
            for row in _rows(corpus / "docs.csv"):
                names[row["doc_id"]] = f"quesst14_{len(made) + 1:05d}"
                made[names[row["doc_id"]]] = Recording(corpus / row["path"], language)
            splits: dict[str, tuple[str, str]] = {}
            for row in _rows(corpus / "queries.csv"):
                if row["example"] == "1":
                    split = "dev" if len(splits) % 2 == 0 else "eval"
                    splits[row["query_id"]] = split, f"quesst14_{split}_{len(spoken[split]) + 1:04d}"
                    spoken[split][splits[row["query_id"]][1]] = Recording(corpus / row["path"], language)
            for row in _rows(corpus / "refs.csv"):
                split, query = splits[row["query_id"]]
                targets[split].append((query, names[row["doc_id"]]))
        write_quesst(folder, made, spoken, targets)


def write_quesst(
    folder: Path,
    documents: Mapping[str, Recording],
    queries: Mapping[str, Mapping[str, Recording]],
    targets: Mapping[str, Iterable[tuple[str, str]]],
) -> None:
    """Write a database of given recordings, converted to 8 kHz.

    Args:
        folder: created if absent; files of the same names are replaced.
        documents: recordings by id.
        queries: recordings of `dev` and `eval`, by id.
        targets: of each set, pairs of a query and a document that holds it.
    """
    scoring = folder / "scoring"
    _write_recordings(folder, "Audio", documents, scoring / "language_key_utterances.lst")
    for split, some in queries.items():
        _write_recordings(folder, f"{split}_queries", some, scoring / f"language_key_{split}.lst")
        truth = scoring / f"groundtruth_quesst14_{split}"
        truth.mkdir(exist_ok=True)
        excerpts = [
            f'<excerpt audio_filename="{name}.wav" channel="1" tbeg="0.000" dur="1.000" language="x" source_type="bnews"/>'
            for name in documents
        ]
        ecf = ['<ecf source_signal_duration="1.000" language="x" version="1">', *excerpts, "</ecf>"]
        _write(truth / f"quesst14_{split}.ecf.xml", ecf)
        terms = [f'<term termid="{name}"><termtext>{name}</termtext></term>' for name in some]
        head = '<termlist ecf_filename="ecf.xml" language="x" version="1">'
        _write(truth / f"quesst14_{split}.tlist.xml", [head, *terms, "</termlist>"])
        lexemes = [
            f"LEXEME {document} 1 0.000 1.000 {query} lex <NA> <NA>" for query, document in sorted(set(targets[split]))
        ]
        _write(truth / f"quesst14_{split}.rttm", lexemes)


def _write_recordings(folder: Path, place: str, recordings: Mapping[str, Recording], listed: Path) -> None:
    (folder / place).mkdir(parents=True, exist_ok=True)
    listed.parent.mkdir(exist_ok=True)
    for name, recording in recordings.items():
        samples, rate = soundfile.read(recording.path, dtype="float32")
        converted = np.clip(soxr.resample(samples, rate, RATE), -1, 1)
        write_sound(folder / place / f"{name}.wav", converted, RATE)
    _write(listed, [f"quesst14Database/{place}/{name}.wav {each.language}" for name, each in recordings.items()])


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
