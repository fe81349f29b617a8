"""Names of speakers in every kind of list: blanks around them do not count, and spellings of a missing value are nobody."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import soundfile

from swsdist.corpora.documents import read_documents
from swsdist.corpora.queries import read_queries
from swsdist.io.tables import NOBODY
from swsdist.searcher.queries import query_rows

#: As lists name speakers, and who they are.
NAMES = {name: None for word in NOBODY if word for name in (word, word.upper(), word.title(), f" {word}\t")}
NAMES |= {" eva ": "eva", "EVA": "EVA", "nana": "nana", "no one": "no one", "unknown 2": "unknown 2"}


def recordings(folder: Path) -> list[str]:
    soundfile.write(folder / "a.wav", np.zeros(1600), 16000)
    return [f"d{k}" for k in range(len(NAMES))]


def of_table(folder: Path) -> Sequence[str | None]:
    rows = "".join(f"{name},a.wav,{who}\n" for name, who in zip(recordings(folder), NAMES, strict=True))
    (folder / "docs.csv").write_text(f"doc_id,path,speaker\n{rows}d,a.wav,\ne,a.wav,  \n")
    *found, empty, blank = read_documents(str(folder / "docs.csv"))["speaker"].to_pylist()
    assert (empty, blank) == (None, None)
    return found


def of_speakers(folder: Path) -> Sequence[str | None]:
    names = recordings(folder)
    (folder / "docs.csv").write_text("doc_id,path\n" + "".join(f"{name},a.wav\n" for name in names))
    rows = "".join(f"{name},{who}\n" for name, who in zip(names, NAMES, strict=True))
    (folder / "who.csv").write_text(f"doc_id,speaker\n{rows}")
    return read_documents(str(folder / "docs.csv"), speakers=str(folder / "who.csv"))["speaker"].to_pylist()


def of_kaldi(folder: Path) -> Sequence[str | None]:
    names = recordings(folder)
    (folder / "wav.scp").write_text("".join(f"{name} {folder}/a.wav\n" for name in names))
    said = [who.strip().replace(" ", "_") for who in NAMES]
    (folder / "utt2spk").write_text("".join(f"{name} {who}\n" for name, who in zip(names, said, strict=True)))
    table = read_documents(str(folder))
    found = dict(zip(table["doc_id"].to_pylist(), table["speaker"].to_pylist(), strict=True))
    return [None if found[name] is None else found[name].replace("_", " ") for name in names]


def of_lhotse(folder: Path) -> Sequence[str | None]:
    names = recordings(folder)
    lines = []
    for name, who in zip(names, NAMES, strict=True):
        recording = {"id": name, "sources": [{"type": "file", "channels": [0], "source": f"{folder}/a.wav"}]}
        recording |= {"sampling_rate": 16000, "num_samples": 1600, "duration": 0.1}
        said = {"id": name, "recording_id": name, "start": 0.0, "duration": 0.1, "channel": 0, "speaker": who}
        cut = {"id": name, "start": 0, "duration": 0.1, "channel": 0, "supervisions": [said], "recording": recording}
        lines.append(json.dumps({**cut, "type": "MonoCut"}))
    (folder / "cuts.jsonl").write_text("\n".join(lines))
    documents = read_documents(str(folder / "cuts.jsonl"))["speaker"].to_pylist()
    queries = read_queries(str(folder / "cuts.jsonl"), pa.table({"doc_id": pa.array([], pa.string())}))
    assert queries["speaker"].to_pylist() == documents
    return documents


def of_frames(folder: Path) -> Sequence[str | None]:
    table = pd.DataFrame({"query_id": recordings(folder), "path": "a.wav", "speaker": list(NAMES)})
    return [row["speaker"] for row in query_rows(table, None)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "listed",
    [of_table, of_speakers, of_kaldi, of_lhotse, of_frames],
    ids=lambda one: one.__name__,
)
def test_who_is_nobody(listed: Callable[[Path], Sequence[str | None]], tmp_path: Path) -> None:
    assert dict(zip(NAMES, listed(tmp_path), strict=True)) == NAMES
