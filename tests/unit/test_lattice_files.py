"""Files of lattices in a folder, and lattices of one document in several of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import swsdist
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.recordings import FileSource
from swsdist.config import config_from_dict
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.ledger import Ledger

CTM = "talk 1 0.0 0.5 hello 0.5\nother 1 0.0 0.5 bye\n"
SRT = "1\n00:00:00,000 --> 00:00:00,500\nhello\n"


def test_a_document_has_its_first_lattice(tmp_path: Path) -> None:
    """The second of a document is rejected, and not searched, also where both would be in one shard."""
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "a.ctm").write_text(CTM)
    (folder / "talk.srt").write_text(SRT)
    config: dict[str, Any] = {"run": str(tmp_path / "run"), "chain": "lattices", "corpus": {"documents": str(folder)}}
    config |= {"search": {"method": "lattice"}, "calibrate": {"steps": []}, "executor": {"kind": "serial"}}
    swsdist.run(config, selection=StepSelection(until="index"))
    hits = swsdist.search(str(tmp_path / "run/store"), "hello")
    assert hits[["doc_id", "score"]].to_numpy().tolist() == [["talk", 0.5]]
    rejected = pd.read_parquet(next((tmp_path / "run/store").glob("rejected-*.parquet")))
    assert rejected[["id", "reason"]].to_numpy().tolist() == [["talk", "duplicate-lattice"]]
    assert Path(rejected["path"][0]).name == "talk.srt"


def test_recordings_beside_transcripts_are_not_left_out(tmp_path: Path) -> None:
    for name, content in (("talk.srt", SRT), ("talk.WAV", ""), ("notes.txt", "of June\n")):
        (tmp_path / name).write_text(content)
    config = config_from_dict({"run": "run", "chain": "lattices", "corpus": {"documents": str(tmp_path)}})
    inputs = LatticeInputs(config, Ledger(Folder(config.run)))
    source = inputs.source
    assert isinstance(source, FileSource)
    assert [Path(file.path).name for file in source.files] == ["talk.srt"]
    assert [(Path(item.first).name, item.count) for item in inputs.notices.requested.values()] == [("notes.txt", 1)]
    assert source.table()["path"].to_pylist() == [str(tmp_path / "talk.WAV")]
