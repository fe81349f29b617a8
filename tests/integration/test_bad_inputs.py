"""Recordings that cannot be used, or only by ffmpeg, among good ones: recorded with their reason, the others done."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

import swsdist
from swsdist.audio.formats import ffmpeg
from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.io.notices import FEW
from swsdist.registry.registries import CHAINS
from swsdist.stages.index import Index
from swsdist.store.manifest import load
from tests.integration.test_phones_chain import DECODING, FEATURES
from tests.support.coded import raises, says
from tests.support.english.words import small_corpus as english_corpus
from tests.support.english.words import small_recogniser
from tests.support.tables import read_rows, write_rows

RATE = 16000


def speech(scene: Any, seconds: float | None = None) -> np.ndarray[Any, Any]:
    """Some of it."""
    sound, _ = soundfile.read(scene.corpus / "audio" / "d001.flac", dtype="float32")
    return sound if seconds is None else sound[: int(seconds * RATE)]


def add(scene: Any, table: str, rows: list[dict[str, str]]) -> None:
    """Rows at the end of a table."""
    path = scene.corpus / f"{table}.csv"
    write_rows(path, [*read_rows(path), *rows])


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
    reasons = {"empty": "empty-recording", "cutwav": "truncated", "cutflac": "damaged-stream", "text": "not-audio"}
    reasons |= {"nan": "not-finite", "zero": "no-samples", "short": "too-short", "missing": "missing"}
    reasons |= {"mono": "no-such-channel"}
    suffix = {"cutflac": "flac"}
    path = scene.corpus / "docs.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{head},channel", *(f"{row},1" for row in rows)]) + "\n")
    bad = [{"doc_id": d, "path": f"audio/{d}.{suffix.get(d, 'wav')}", "channel": "1"} for d in reasons]
    bad[-1]["channel"] = "2"
    add(scene, "docs", bad)
    return reasons


def bad_queries(scene: Any) -> dict[str, str]:
    """Put bad recordings in, by query_id, each with the reason that must be recorded."""
    queries = scene.corpus / "queries"
    (queries / "empty.wav").write_bytes(b"")
    (queries / "text.wav").write_text("not a recording\n" * 100)
    for name, samples in (("zero", 0), ("short", 50)):
        soundfile.write(queries / f"{name}.wav", np.zeros(samples, np.float32), RATE)
    spoiled = speech(scene, 0.6)
    spoiled[3] = np.inf
    soundfile.write(queries / "inf.wav", spoiled, RATE, subtype="FLOAT")
    reasons = {"empty": "empty-recording", "text": "not-audio", "zero": "no-samples", "short": "too-short"}
    reasons |= {"inf": "not-finite", "missing": "missing"}
    add(scene, "queries", [{"query_id": name, "example": "1", "path": f"queries/{name}.wav"} for name in reasons])
    return reasons


def test_bad_documents_and_queries(own_corpus: Any, undisturbed: dict[str, str]) -> None:
    scene, four = own_corpus, ("index.shards=4", "force=true")
    reasons = {"document": bad_documents(scene), "query": bad_queries(scene)}
    result = scene.run(*four)
    for kind, wanted in reasons.items():
        assert {row["id"]: row["reason"] for row in scene.rejected() if row["kind"] == kind} == wanted
    assert all(row["message"] and str(row["path"]).startswith(str(scene.corpus)) for row in scene.rejected())
    counts = scene.report()["counts"]
    assert (counts["rejected"], counts["queries"]) == (sum(map(len, reasons.values())), 3)
    assert not result.outcome.failures
    digests = scene.digest()
    searched = ("features", "documents", "queries", "candidates", "statistics", "detections", "normalised", "scored")
    assert {name: digests[name] for name in searched} == {name: undisturbed[name] for name in searched}
    # None of them is tried again until its file changes.
    assert scene.run(*four).outcome.tasks_done == 0
    soundfile.write(scene.corpus / "audio" / "empty.wav", speech(scene, 2.0), RATE)
    os.utime(scene.corpus / "audio" / "text.wav", (1, 1))
    soundfile.write(scene.corpus / "queries" / "missing.wav", speech(scene, 0.7), RATE)
    ended = scene.run(*four).outcome.chain_run.outcomes
    receipts = ended["index"].receipts
    assert sum(receipt.result["documents"] for receipt in receipts) == 1
    assert sum(len(receipt.rejected) for receipt in receipts) == ended["queries"].done == 1
    for kind, mended in (("document", "empty"), ("query", "missing")):
        assert {row["id"] for row in scene.rejected() if row["kind"] == kind} == set(reasons[kind]) - {mended}
    assert scene.report()["counts"]["documents"] == 9


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


#: What may be wrong with a recording.
FAULTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "empty": lambda path: path.write_bytes(b""),
    "no-samples": lambda path: soundfile.write(path, np.zeros(0), 16000),
    "too-short": lambda path: soundfile.write(path, np.zeros(40), 16000),
}


#: A search in each chain; chains without spoken queries are left out.
SEARCHES: dict[str, dict[str, Any]] = {
    "search": {"chain": "search"},
    **{
        f"frames, {method}": {
            "chain": "lattices",
            "features": FEATURES,
            "options": {"source": "frames", "decoding": DECODING},
            "search": {"method": method},
            "calibrate": {"steps": ["q-norm"]},
        }
        for method in ("lattice", "lattice-edits")
    },
    "recogniser": {"chain": "lattices", "search": {"method": "lattice"}, "calibrate": {"steps": ["kst"]}},
}


@pytest.fixture(
    params=[*(name for name in SEARCHES if name != "recogniser"), pytest.param("recogniser", marks=pytest.mark.slow)]
)
def searching(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Config]:
    """Makes the config of a search of good recordings, six or as many as told, and some bad ones."""
    given = dict(SEARCHES[request.param])
    if request.param == "recogniser":
        folder = english_corpus(tmp_path / "english")
        given["options"] = {"source": "recogniser", "recogniser": {"options": small_recogniser(folder)}}
        tables = {"documents": "documents.csv", "queries": "queries.csv"}
    else:
        folder = request.getfixturevalue("small_corpus")
        tables = {"documents": "docs.csv", "queries": "queries.csv"}

    def make(bad: int, good: int = 6) -> Config:
        there = [folder / row["path"] for row in read_rows(folder / tables["queries"])]
        rows = [(f"good{k}", there[k % len(there)]) for k in range(good)]
        for k in range(bad):
            path = tmp_path / f"bad{k}.wav"
            list(FAULTS.values())[k % len(FAULTS)](path)
            rows.append((path.stem, path))
        with (tmp_path / f"{bad}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("query_id", "path"), *rows])
        values = {"run": str(tmp_path / str(bad)), "executor": {"kind": "serial"}, "report": {"clips": 0}}
        corpus = {**tables, "queries": str(tmp_path / f"{bad}.csv")}
        return config_from_dict({"corpus": corpus, **values, **given}, folder)

    return make


def test_every_chain_that_takes_recordings_is_here() -> None:
    assert {given["chain"] for given in SEARCHES.values()} == set(CHAINS) - {"fuse", "sweep", "discover"}


@pytest.mark.slow
def test_what_cannot_be_used_is_rejected_reported_and_limited(searching: Callable[..., Config]) -> None:
    config = searching(FEW)
    rejected = swsdist.run(config).outcome.chain_run.rejected().to_pylist()
    names = {f"bad{k}" for k in range(FEW)}
    assert {(row["kind"], row["id"]) for row in rejected} == {("query", name) for name in names}
    report = json.loads((Path(config.run) / "report.json").read_text())
    assert report["counts"]["rejected"] == FEW
    with raises(codes.MANY_REJECTED, count=len(FAULTS), of=6 + len(FAULTS)) as caught:
        swsdist.run(searching(len(FAULTS)))
    assert caught.value.exit_code == 5
    forced = swsdist.run(searching(len(FAULTS)).model_copy(update={"force": True})).outcome.chain_run
    assert len(forced.rejected()) == len(FAULTS)
    (told,) = (line for line in forced.notices() if "[many-rejected]" in line)
    assert told.startswith(f"{len(FAULTS)} of {6 + len(FAULTS)} examples of queries")
    with raises(families.EMPTY_INPUT, examples=1):
        swsdist.run(searching(1, good=0))


@pytest.fixture
def program() -> str:
    found = ffmpeg.program()
    if found is None:
        pytest.skip("there is no ffmpeg")
    return found


def convert(scene: Any, program: str, table: str, name: str) -> None:
    """Make a recording of a table one in an m4a, without loss."""
    path = scene.corpus / f"{table}.csv"
    rows = read_rows(path)
    for row in rows:
        if name in row["path"]:
            old = scene.corpus / row["path"]
            new = old.with_suffix(".m4a")
            subprocess.run([program, "-v", "error", "-nostdin", "-i", old, "-c:a", "alac", new], check=True)
            row["path"] = str(Path(row["path"]).with_suffix(".m4a"))
            old.unlink()
    write_rows(path, rows)


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
