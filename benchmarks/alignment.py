"""How far the words of aligned texts lie from where they are said, in the test part of the made English corpus.

A boundary is the start or the end of a word; the texts are those of the corpus, without case and punctuation. The corpus is the
folder ENGLISH, by default `../english`, which `python -m tools.english ../english` makes.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import ROOT
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist import api
from swsdist.config import config_from_dict
from swsdist.io.nist.ctm import read_ctm
from swsdist.pipeline.chain_run import StepSelection

_MODEL = ROOT.parent / "shared" / "models" / "whisper-base" / "ctranslate2-int8"
_RECOGNISERS: dict[str, dict[str, object]] = {
    "whisper": {"model": str(_MODEL), "language": "en"},
    "pocketsphinx": {},
}


def measure(scratch: Path) -> list[Row]:
    """Five figures of each recogniser, three of them with goals."""
    english = Path(os.environ.get("ENGLISH", ROOT.parent / "english"))
    if not (english / "words.ctm").is_file():
        return [Row(f"alignment (no corpus in {english})", None, "")]
    names = set((english / "test.txt").read_text(encoding="utf-8").split()) - {"doc_id"}
    words: Any = read_ctm(str(english / "words.ctm")).to_pandas()
    words = words[words["doc_id"].isin(names)].reset_index(drop=True)
    words.groupby("doc_id")["word"].agg(" ".join).rename("text").to_csv(scratch / "texts.csv")
    with (english / "documents.csv").open(encoding="utf-8") as file:
        documents = [row for row in csv.DictReader(file) if row["doc_id"] in names]
    lines = [f"{row['doc_id']},{english.resolve() / row['path']}\n" for row in documents]
    (scratch / "documents.csv").write_text("doc_id,path\n" + "".join(lines), encoding="utf-8")
    rows: list[Row] = []
    for name, options in _RECOGNISERS.items():
        if name == "whisper" and not _MODEL.is_dir():
            rows.append(Row(f"whisper (no model in {_MODEL})", None, ""))
            continue
        say(f"alignment: {name}")
        before = time.process_time()
        placed = _aligned(scratch, name, options)
        cpu = time.process_time() - before
        errors, lost = _errors(words, placed)
        rows += [
            Row(f"{name}: median error of a boundary", float(np.median(errors)), "s", at_most(0.05)),
            Row(f"{name}: 90 % of boundaries within", float(np.quantile(errors, 0.9)), "s", at_most(0.15)),
            Row(f"{name}: boundaries within 150 ms", float(np.mean(errors <= 0.15)), "", at_least(0.9)),
            Row(f"{name}: words without a place", lost / len(words), ""),
            Row(f"{name}: CPU", cpu / sum(float(row["duration"]) for row in documents), "s a second of audio"),
        ]
    return rows


def _aligned(scratch: Path, name: str, options: dict[str, object]) -> Any:
    """The words of a run, with their places."""
    config = {
        "chain": "lattices",
        "corpus": {"documents": str(scratch / "documents.csv")},
        "run": str(scratch / name),
        "options": {
            "source": "recogniser",
            "texts": str(scratch / "texts.csv"),
            "recogniser": {"name": name, "options": options},
        },
        "search": {"method": "lattice"},
        "executor": {"kind": "serial"},
    }
    api.run(config_from_dict(config), selection=StepSelection(table="documents"))
    return api.words(str(scratch / name))


def _errors(words: Any, placed: Any) -> tuple[Any, int]:
    """Errors of the boundaries, s, of words of which every occurrence in a recording has a place, in order; how many words
    have none.
    """
    for table in (words, placed):
        groups = table.groupby(["doc_id", "word"])
        table["number"], table["times"] = groups.cumcount(), groups["word"].transform("size")
    both = words.merge(placed, on=["doc_id", "word", "number", "times"], suffixes=("", "_placed"))
    starts = (both["start_placed"] - both["start"]).abs()
    ends = (both["end"] - both["start"] - both["duration"]).abs()
    return np.concatenate([starts, ends]), len(words) - len(placed)


if __name__ == "__main__":
    main(measure, __doc__)
