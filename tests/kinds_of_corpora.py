"""The small corpus with documents of each kind: files, channels of files, places in recordings. Each comes with an ECF."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import lists_of_others as others
import numpy as np
import pyarrow as pa
import soundfile

import swsdist
from swsdist.core.types import EXCERPTS, LEXEMES, TERMS
from swsdist.io.nist.ecf import write_ecf
from swsdist.io.nist.rttm import write_rttm
from swsdist.io.nist.termlist import write_termlist
from swsdist.pipeline.chain_run import StepSelection

KINDS = ("files", "channels", "places")
#: Protocol and what a trial is.
TRIALS = (("sws2013", "time"), ("kwseval", "time"), ("openkws13", "segment"), ("sws2013", "document"))
#: One coefficient, so that there are false alarms enough for measures to differ.
POOR = {"name": "mfcc", "transforms": [{"name": "columns", "options": {"keep": [3, 5]}}]}


class Made(NamedTuple):
    """A corpus as a config names it, and what scorers of lists take.

    Attributes:
        corpus: the config's section.
        ecf: a file each document.
        references: a table.
        rttm: the same, by their words; a stretch of speech goes with each.
        terms: KWLIST of the queries' terms.
    """

    corpus: dict[str, Any]
    ecf: Path
    references: Path
    rttm: Path
    terms: Path


def make(kind: str, small_corpus: Path, folder: Path) -> Made:
    """Write it below a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    documents, references, spans = {"files": _files, "channels": _channels, "places": _places}[kind](
        small_corpus, folder
    )
    with (folder / "refs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "doc_id", "channel", "start", "end"])
        writer.writeheader()
        writer.writerows(references)
    fixed = {"source_type": "bnews", "language": "x"}
    excerpts = [
        {"file": f"{name}.wav", "channel": channel, "start": start, "duration": round(end - start, 6), **fixed}
        for name, channel, start, end in spans
    ]
    write_ecf(pa.Table.from_pylist(excerpts, EXCERPTS), folder / "ecf.xml", "kwseval")
    texts = {row["query_id"]: row["term"] for row in others.rows(small_corpus / "queries.csv")}
    said, spoken = [], []
    for row in sorted(references, key=lambda row: (row["doc_id"], row["channel"], row["start"])):
        place = {"doc_id": row["doc_id"], "channel": row["channel"], "kind": "lex", "speaker": "a"}
        start, end = row["start"], row["end"]
        said.append({**place, "start": start, "duration": round(end - start, 4), "word": texts[row["query_id"]]})
        spoken.append({**place, "start": start, "duration": round(end - start + 0.01, 4), "word": ""})
    lexemes, speakers = (pa.Table.from_pylist(rows, LEXEMES) for rows in (said, spoken))
    write_rttm(lexemes, folder / "words.rttm", speakers)
    terms = pa.Table.from_pylist([{"query_id": name, "term": term} for name, term in texts.items()], TERMS)
    write_termlist(terms, folder / "terms.xml", "kwlist")
    corpus = {
        "documents": documents,
        "queries": str(small_corpus / "queries.csv"),
        "references": str(folder / "refs.csv"),
    }
    return Made(corpus, folder / "ecf.xml", folder / "refs.csv", folder / "words.rttm", folder / "terms.xml")


Rows = list[dict[str, Any]]
#: Recording, channel, start and end (s).
Spans = list[tuple[str, int, float, float]]


def _references(corpus: Path) -> Rows:
    return [
        {**row, "channel": int(row["channel"]), "start": float(row["start"]), "end": float(row["end"])}
        for row in others.rows(corpus / "refs.csv")
    ]


def _files(corpus: Path, folder: Path) -> tuple[str, Rows, Spans]:
    del folder
    lengths = {row["doc_id"]: soundfile.info(corpus / row["path"]).duration for row in others.rows(corpus / "docs.csv")}
    return str(corpus / "docs.csv"), _references(corpus), [(name, 1, 0.0, end) for name, end in lengths.items()]


def _channels(corpus: Path, folder: Path) -> tuple[str, Rows, Spans]:
    """Two documents a file, on a channel each, of the length of the longer."""
    (folder / "audio").mkdir()
    names = [row["doc_id"] for row in others.rows(corpus / "docs.csv")]
    paths = {row["doc_id"]: corpus / row["path"] for row in others.rows(corpus / "docs.csv")}
    place: dict[str, tuple[str, int]] = {}
    spans: Spans = []
    table = ["doc_id,channel,path"]
    for left, right in zip(names[::2], names[1::2], strict=True):
        pair = [soundfile.read(paths[one], dtype="int16") for one in (left, right)]
        rate = pair[0][1]
        both = np.zeros((max(len(samples) for samples, _ in pair), 2), np.int16)
        for k, (samples, _) in enumerate(pair):
            both[: len(samples), k] = samples
        soundfile.write(folder / "audio" / f"{left}{right}.wav", both, rate, subtype="PCM_16")
        for k, one in enumerate((left, right), 1):
            place[one] = f"{left}{right}", k
            spans.append((f"{left}{right}", k, 0.0, len(both) / rate))
            table.append(f"{left}{right},{k},audio/{left}{right}.wav")
    (folder / "docs.csv").write_text("\n".join(table) + "\n")
    references = [
        {**row, "doc_id": place[row["doc_id"]][0], "channel": place[row["doc_id"]][1]} for row in _references(corpus)
    ]
    return str(folder / "docs.csv"), references, spans


def _places(corpus: Path, folder: Path) -> tuple[str, Rows, Spans]:
    """Utterances of Kaldi's data folder, some a recording."""
    found = others.data_folder(corpus, folder / "data")
    references = []
    for row in _references(corpus):
        one = found[row["doc_id"]]
        start, end = (round(one.start + row[name], 6) for name in ("start", "end"))
        references.append({**row, "doc_id": one.recording, "start": start, "end": end})
    return str(folder / "data"), references, [(one.recording, 1, one.start, one.end) for one in found.values()]


def run(made: Made, folder: Path, protocol: str, trials: str, until: str | None = None, **values: Any) -> Any:
    """As far as a stage; with the references that this kind of trial takes from a list's files, too."""
    by_words = trials == "segment"
    score = {"protocol": protocol, "trials": trials, "beta": 10.0, **({"speech": str(made.rttm)} if by_words else {})}
    return swsdist.run(
        {
            "run": str(folder),
            "corpus": {**made.corpus, **({"references": str(made.rttm)} if by_words else {})},
            "features": POOR,
            "score": score,
            "executor": {"kind": "serial"},
            "report": {"exports": ["csv"], "clips": 0},
            **values,
        },
        selection=StepSelection(until=until),
    )
