"""Recordings that only ffmpeg reads: the same features, what decoded them is known, one that was lacking is tried again."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import ffmpeg
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.stages.index import Index
from swsdist.store.manifest import load
from tests.support.coded import says


@pytest.fixture
def program() -> str:
    found = ffmpeg.program()
    if found is None:
        pytest.skip("there is no ffmpeg")
    return found


def convert(scene: Any, program: str, table: str, name: str) -> None:
    """Make a recording of a table one in an m4a, without loss."""
    path = scene.corpus / f"{table}.csv"
    with path.open(newline="") as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        if name in row["path"]:
            old = scene.corpus / row["path"]
            new = old.with_suffix(".m4a")
            subprocess.run([program, "-v", "error", "-nostdin", "-i", old, "-c:a", "alac", new], check=True)
            row["path"] = str(Path(row["path"]).with_suffix(".m4a"))
            old.unlink()
    with path.open("w", newline="") as target:
        writer = csv.DictWriter(target, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_a_document_and_a_query(own_corpus: Any, program: str, undisturbed: dict[str, str]) -> None:
    convert(own_corpus, program, "docs", "d003")
    convert(own_corpus, program, "queries", "q001")
    result = own_corpus.run("index.shards=4")
    assert own_corpus.rejected() == []
    digest = own_corpus.digest()
    for table in ("features", "queries", "scored", "measures"):  # that of documents has the SHA-256 of the files
        assert digest[table] == undisturbed[table]
    for store in ("store", "queries"):
        manifest = load(Folder(str(own_corpus.folder / "run" / store)))
        assert manifest is not None
        assert manifest.libraries["ffmpeg"] == (ffmpeg.version(program),)
    assert not result.outcome.chain_run.notices()
    assert own_corpus.run("index.shards=4").outcome.tasks_done == 0


def test_where_it_was_lacking_it_is_tried_again(
    own_corpus: Any, program: str, undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(own_corpus, program, "docs", "d003")
    with monkeypatch.context() as patch:
        patch.setattr(ffmpeg, "program", lambda: None)
        own_corpus.run()
        (row,) = own_corpus.rejected()
        assert (row["id"], row["reason"]) == ("d003", "needs-ffmpeg")
        assert own_corpus.run().outcome.tasks_done == 0
        manifest = load(Folder(str(own_corpus.folder / "run" / "store")))
        assert manifest is not None
        assert "ffmpeg" not in manifest.libraries
    own_corpus.run()
    assert own_corpus.rejected() == []
    assert own_corpus.digest()["features"] == undisturbed["features"]


def test_a_worker_without_it_rejects_nothing(own_corpus: Any, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There was one when the work was planned, so the recording is fine."""
    convert(own_corpus, program, "docs", "d003")
    honest = Index.run

    def run(self: Index, task: Any, context: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(ffmpeg, "program", lambda: None)
            return honest(self, task, context)

    monkeypatch.setattr(Index, "run", run)
    with pytest.raises(UserError, match="has no ffmpeg, although"):
        own_corpus.run()


def test_absurd_and_odd_files_are_one_rejection_each(own_corpus: Any) -> None:
    """A folder as the world leaves it: all else is indexed."""
    folder = own_corpus.corpus / "audio"
    good = len(list(folder.glob("*.flac")))
    soundfile.write(str(folder / "slow.wav"), np.zeros(50_000), 16000)
    slow = bytearray((folder / "slow.wav").read_bytes())
    slow[24:28] = (1).to_bytes(4, "little")
    (folder / "slow.wav").write_bytes(slow)
    (folder / "x.wav").symlink_to("x.wav")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "pipe.wav")
    (folder / "text.mp4").write_text("no film\n" * 100)
    (folder / "- i $(x) 'é'.wav").write_bytes(b"")
    with open(os.fsencode(folder) + b"/\xfcber.flac", "wb") as file:  # noqa: PTH123 (a name that is no text)
        file.write(b"x")
    result = own_corpus.run(
        f"corpus.documents={folder}", "corpus.references=null", "force=true", selection=StepSelection(until="index")
    )
    reasons = {row["id"]: row["reason"] for row in result.outcome.chain_run.rejected().to_pylist()}
    expected = {
        "slow": "impossible-header",
        "text": "not-audio",
        "- i $(x) 'é'": "empty-recording",
        "pipe": "unreadable",
    }
    assert reasons == expected
    store = load(Folder(str(own_corpus.folder / "run" / "store")))
    assert store is not None
    assert store.counts["documents"] == good
    told = " ".join(result.outcome.chain_run.notices())
    assert says(told, corpora_codes.FILE_NAME_NOT_UTF8)
    assert says(told, families.LEFT_OUT)
    assert "x.wav" in told
