"""Measures are the same whether a document cannot be read, or is searched and yields nothing."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from kinds_of_corpora import KINDS, TRIALS, Made, make, run
from lists_of_others import rows

from swsdist.testing.synthesis import make_corpus

#: s of a document in which no query finds a path: it is much shorter than half of any.
SHORT = 0.05


def add(kind: str, made: Made, folder: Path) -> Callable[[str], None]:
    """Add documents that are read at first, and a true occurrence in one of them; gives what lets them become `broken`, or
    `short`, and then tells how long they are.
    """
    rate = 16000
    noise = np.random.default_rng(5).normal(0, 0.05, (3 * rate, 2)).astype(np.float32)
    place = "rec9" if kind == "places" else "x1"
    documents = Path(made.corpus["documents"])
    audio = documents / "audio" if kind == "places" else folder / "more"
    audio.mkdir(exist_ok=True)
    path = audio / f"{place}.wav"

    def write(how: str) -> None:
        if how == "broken":
            path.write_bytes(b"RIFF" + bytes(40))
        else:
            length = round(SHORT * rate) if how == "short" else len(noise)
            soundfile.write(path, noise[:length] if kind == "channels" else noise[:length, 0], rate, subtype="FLOAT")

    write("whole")
    length = 3.0
    if kind == "places":
        more = {"wav.scp": f"{place} audio/{place}.wav", "segments": f"x1 {place} 0 {length}", "utt2spk": "x1 x1"}
        for name, line in {**more, "reco2dur": f"{place} {length}"}.items():
            with (documents / name).open("a") as file:
                file.write(line + "\n")
    else:
        table = folder / "docs-more.csv"
        listed = [{"channel": "1", **row, "path": str(documents.parent / row["path"])} for row in rows(documents)]
        channels = (1, 2) if kind == "channels" else (1,)
        listed += [{"doc_id": place, "channel": str(channel), "path": str(path)} for channel in channels]
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["doc_id", "channel", "path", "duration"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(listed)
        made.corpus["documents"] = str(table)
    name = first_query(made)
    with made.references.open("a", newline="") as file:
        file.write(f"{name[0]},{place},1,0.0,0.04\n")
    words = made.rttm.read_text()
    made.rttm.write_text(
        f"{words}SPEAKER {place} 1 0.0 0.045 <NA> lex a <NA>\nLEXEME {place} 1 0.0 0.04 {name[1]} lex a <NA>\n"
    )

    def become(how: str) -> None:
        write(how)
        told = SHORT
        if kind == "places":
            for name, said in (("segments", f"x1 {place} 0 "), ("reco2dur", f"{place} ")):
                text = (documents / name).read_text()
                (documents / name).write_text(text.replace(f"{said}{length}\n", f"{said}{told}\n"))
        else:
            table = Path(made.corpus["documents"])
            listed = rows(table)
            with table.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["doc_id", "channel", "path", "duration"])
                writer.writeheader()
                writer.writerows({**row, "duration": told if row["doc_id"] == place else ""} for row in listed)

    return become


def first_query(made: Made) -> tuple[str, str]:
    """A query, and its term."""
    first = rows(Path(made.corpus["queries"]))[0]
    return first["query_id"], first["term"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_read_counts_as_what_is_not_found(kind: str, tmp_path: Path) -> None:
    """Of all trials, the normalisation once pinned."""
    corpus = tmp_path / "corpus"
    make_corpus(corpus, documents=8, queries=4, voices=2)
    found: dict[str, dict[str, Any]] = {}
    for how in ("broken", "short"):
        folder = tmp_path / how
        made = make(kind, corpus, folder)
        become = add(kind, made, folder)
        run(made, folder / "run", *TRIALS[0])
        become(how)
        for protocol, trials in TRIALS:
            result = run(made, folder / "run", protocol, trials)
            rejected = [row["id"] for row in result.outcome.chain_run.rejected().to_pylist()]
            assert set(rejected) == ({"x1"} if how == "broken" else set())
            found.setdefault(f"{protocol}, {trials}", {})[how] = result.measures()
        shutil.rmtree(folder)
    for trials, values in found.items():
        assert values["broken"] == values["short"], trials
        assert values["short"]["mtwv"] > 0
