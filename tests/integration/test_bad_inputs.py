"""Bad documents and queries among good ones: recorded with their reason, the others done."""

from __future__ import annotations

import csv
import os
import shutil
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

from swsdist.core.codes import families
from swsdist.core.errors import UserError
from tests.support.coded import says

RATE = 16000


def speech(scene: Any, seconds: float | None = None) -> np.ndarray[Any, Any]:
    """Some of it."""
    sound, _ = soundfile.read(scene.corpus / "audio" / "d001.flac", dtype="float32")
    return sound if seconds is None else sound[: int(seconds * RATE)]


def add(scene: Any, table: str, rows: list[dict[str, str]]) -> None:
    """Rows at the end of a table."""
    path = scene.corpus / f"{table}.csv"
    with path.open(newline="") as file:
        columns = next(csv.reader(file))
    with path.open("a", newline="") as file:
        csv.DictWriter(file, columns, restval="").writerows(rows)


def bad_documents(scene: Any) -> dict[str, str]:
    """Put bad recordings in, by doc_id, each with the reason that must be recorded."""
    audio = scene.corpus / "audio"
    sound = speech(scene)
    (audio / "empty.wav").write_bytes(b"")
    soundfile.write(audio / "whole.wav", sound, RATE)
    (audio / "cutwav.wav").write_bytes((audio / "whole.wav").read_bytes()[:44])  # nothing can be read of either
    (audio / "cutflac.flac").write_bytes((audio / "d001.flac").read_bytes()[:1000])
    (audio / "text.wav").write_text("this is not a recording\n" * 100)
    spoiled = sound.copy()
    spoiled[5000] = np.nan
    soundfile.write(audio / "nan.wav", spoiled, RATE, subtype="FLOAT")
    soundfile.write(audio / "zero.wav", sound[:0], RATE)
    soundfile.write(audio / "short.wav", sound[:100], RATE)
    shutil.copy(audio / "whole.wav", audio / "mono.wav")
    reasons = {
        "empty": "empty-recording",
        "cutwav": "truncated",
        "cutflac": "damaged-stream",
        "text": "not-audio",
        "nan": "not-finite",
        "zero": "no-samples",
        "short": "too-short",
        "missing": "missing",
        "mono": "no-such-channel",
    }
    suffix = {"cutflac": "flac"}
    path = scene.corpus / "docs.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{head},channel", *(f"{row},1" for row in rows)]) + "\n")
    bad = [{"doc_id": d, "path": f"audio/{d}.{suffix.get(d, 'wav')}", "channel": "1"} for d in reasons]
    bad[-1]["channel"] = "2"
    add(scene, "docs", bad)
    return reasons


def test_bad_documents(own_corpus: Any, undisturbed: dict[str, str]) -> None:
    scene = own_corpus
    reasons = bad_documents(scene)
    result = scene.run("index.shards=4", "force=true")
    found = {row["id"]: row for row in scene.rejected()}
    assert {name: row["reason"] for name, row in found.items()} == reasons
    for row in found.values():
        assert row["kind"] == "document"
        assert str(row["path"]).startswith(str(scene.corpus))
    assert scene.report()["counts"]["rejected"] == len(reasons)
    assert not result.outcome.failures
    digests = scene.digest()
    searched = ("features", "documents", "queries", "candidates", "statistics", "detections", "normalised")
    assert {name: digests[name] for name in searched} == {name: undisturbed[name] for name in searched}
    # None of them is tried again until its file changes.
    assert scene.run("index.shards=4", "force=true").outcome.tasks_done == 0
    soundfile.write(scene.corpus / "audio" / "empty.wav", speech(scene, 2.0), RATE)
    os.utime(scene.corpus / "audio" / "text.wav", (1, 1))
    again = scene.run("index.shards=4", "force=true")
    receipts = again.outcome.chain_run.outcomes["index"].receipts
    assert sum(receipt.result["documents"] for receipt in receipts) == 1
    assert sum(len(receipt.rejected) for receipt in receipts) == 1
    assert {row["id"] for row in scene.rejected()} == set(reasons) - {"empty"}
    assert scene.report()["counts"]["documents"] == 9


def test_bad_queries(own_corpus: Any, undisturbed: dict[str, str]) -> None:
    scene = own_corpus
    queries = scene.corpus / "queries"
    (queries / "empty.wav").write_bytes(b"")
    (queries / "text.wav").write_text("not a recording\n" * 100)
    soundfile.write(queries / "zero.wav", np.zeros(0, np.float32), RATE)
    soundfile.write(queries / "short.wav", np.zeros(50, np.float32), RATE)
    spoiled = speech(scene, 0.6)
    spoiled[3] = np.inf
    soundfile.write(queries / "inf.wav", spoiled, RATE, subtype="FLOAT")
    reasons = {
        "empty": "empty-recording",
        "text": "not-audio",
        "zero": "no-samples",
        "short": "too-short",
        "inf": "not-finite",
        "missing": "missing",
    }
    add(scene, "queries", [{"query_id": name, "example": "1", "path": f"queries/{name}.wav"} for name in reasons])
    scene.run("force=true")
    rows = scene.rejected()
    assert {row["id"]: row["reason"] for row in rows} == reasons
    assert {row["kind"] for row in rows} == {"query"}
    digests = scene.digest()
    for name in ("queries", "candidates", "detections", "normalised", "scored"):
        assert digests[name] == undisturbed[name]
    assert scene.report()["counts"]["queries"] == 3
    assert scene.run("force=true").outcome.tasks_done == 0
    soundfile.write(queries / "missing.wav", speech(scene, 0.7), RATE)
    again = scene.run("force=true")
    assert again.outcome.chain_run.outcomes["queries"].done == 1
    assert {row["id"] for row in scene.rejected()} == set(reasons) - {"missing"}


def test_a_query_that_is_too_long_for_the_recurrence(own_corpus: Any) -> None:
    """It is rejected alone, and the run comes to its end; a recurrence that holds it takes it up."""
    scene = own_corpus
    soundfile.write(scene.corpus / "queries" / "long.wav", np.tile(speech(scene, 5.0), 33), RATE)  # 165 s
    add(scene, "queries", [{"query_id": "long", "example": "1", "path": "queries/long.wav"}])
    scene.run("queries.trim=none", "search.recurrence=non-segmental")
    (row,) = scene.rejected()
    assert (row["kind"], row["id"], row["reason"]) == ("query", "long", "too-long")
    assert scene.report()["counts"]["queries"] == 3
    scene.run("queries.trim=none")
    assert scene.rejected() == []
    assert scene.report()["counts"]["queries"] == 4


@pytest.mark.parametrize("folder", ["queries", "audio"])
def test_no_query_or_document_can_be_used(own_corpus: Any, folder: str) -> None:
    for path in (own_corpus.corpus / folder).iterdir():
        path.write_bytes(b"")
    done = own_corpus.here()
    assert done.code == 3
    assert says(done.err, families.EMPTY_INPUT)
    assert "Traceback" not in done.err
    assert not (own_corpus.folder / "run" / "lock.json").exists()


def test_one_query_that_occurs_cannot_be_crossfit(own_corpus: Any) -> None:
    """It is told before any work, by `check` too."""
    path = own_corpus.corpus / "refs.csv"
    head, first, *rest = path.read_text().splitlines()
    query = first.split(",")[0]
    assert head.startswith("query_id")
    path.write_text("\n".join([head, first, *(row for row in rest if row.startswith(f"{query},"))]) + "\n")
    for steps in ("[q-norm, llr]", "[q-norm, logistic, kst]"):
        with pytest.raises(UserError, match=r"\[nothing-to-fit\]"):
            own_corpus.run(f"calibrate.steps={steps}")
    assert not own_corpus.all_receipts("run")
    told = in_this_process("check", own_corpus.config, "--set", "calibrate.steps=[q-norm, llr]")
    assert told.code != 0
    assert "[nothing-to-fit]" in told.out
