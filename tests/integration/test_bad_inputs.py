"""What cannot be used is recorded with its reason, the others are done; what does not fit together is told, or ends the run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

from swsdist.audio.formats import ffmpeg
from swsdist.chains.check import check
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ImplausibleError
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.io.notices import FEW, REJECTED
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.index import Index
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import manifest as libraries
from swsdist.store.maintaining import compact
from tests.integration.test_phones_chain import DECODING, FEATURES
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

RATE = 16000


def speech(scene: Any, seconds: float | None = None) -> np.ndarray[Any, Any]:
    sound, _ = soundfile.read(scene.corpus / "audio" / "d001.flac", dtype="float32")
    return sound if seconds is None else sound[: int(seconds * RATE)]


def add(scene: Any, table: str, rows: list[dict[str, str]]) -> None:
    path = scene.corpus / f"{table}.csv"
    write_rows(path, [*read_rows(path), *rows])


def bad_documents(scene: Any) -> dict[str, str]:
    """Put bad recordings in, by doc_id, each with the reason that must be recorded."""
    audio = scene.corpus / "audio"
    sound = speech(scene)
    (audio / "empty.wav").write_bytes(b"")
    soundfile.write(audio / "mono.wav", sound, RATE)
    (audio / "cutwav.wav").write_bytes((audio / "mono.wav").read_bytes()[:44])  # nothing can be read of either
    (audio / "cutflac.flac").write_bytes((audio / "d001.flac").read_bytes()[:1000])
    (audio / "text.wav").write_text("this is not a recording\n" * 100)
    spoiled = sound.copy()
    spoiled[5000] = np.nan
    soundfile.write(audio / "nan.wav", spoiled, RATE, subtype="FLOAT")
    soundfile.write(audio / "zero.wav", sound[:0], RATE)
    soundfile.write(audio / "short.wav", sound[:100], RATE)
    reasons = {"empty": "empty-recording", "cutwav": "truncated", "cutflac": "damaged-stream", "text": "not-audio"}
    reasons |= {"nan": "not-finite", "zero": "no-samples", "short": "too-short", "missing": "missing-recording"}
    reasons |= {"mono": "no-such-channel"}
    path = scene.corpus / "docs.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{head},channel", *(f"{row},1" for row in rows)]) + "\n")
    bad = [{"doc_id": d, "path": f"audio/{d}.{'flac' if d == 'cutflac' else 'wav'}", "channel": "1"} for d in reasons]
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
    reasons |= {"inf": "not-finite", "missing": "missing-recording"}
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


@pytest.mark.until("queries")
def test_a_query_that_is_too_long_for_the_recurrence(own_corpus: Any) -> None:
    """It is rejected alone; a recurrence that holds it takes it up."""
    scene = own_corpus
    soundfile.write(scene.corpus / "queries" / "long.wav", np.tile(speech(scene, 5.0), 33), RATE)  # 165 s
    add(scene, "queries", [{"query_id": "long", "example": "1", "path": "queries/long.wav"}])
    too_long = [("query", "long", "too-long")]
    for recurrence, rejected in ((["search.recurrence=non-segmental"], too_long), ([], [])):
        scene.run("queries.trim=none", *recurrence)
        assert [(row["kind"], row["id"], row["reason"]) for row in scene.rejected()] == rejected


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
        with raises(families.NOTHING_TO_FIT):
            own_corpus.run(f"calibrate.steps={steps}")
    assert not own_corpus.all_receipts("run")
    told = in_this_process("check", own_corpus.config, "--set", "calibrate.steps=[q-norm, llr]")
    assert told.code != 0
    assert "[nothing-to-fit]" in told.out


@pytest.mark.slow
def test_bad_queries_of_a_search_in_lattices(own_corpus: Any) -> None:
    own_corpus.base = {
        "chain": "lattices",
        "features": FEATURES,
        "options": {"source": "frames", "decoding": DECODING},
        "search": {"method": "lattice"},
    }
    reasons = bad_queries(own_corpus)
    with raises(codes.MANY_REJECTED, count=len(reasons)) as caught:
        own_corpus.run()
    assert caught.value.exit_code == 5
    forced = own_corpus.run("force=true").outcome.chain_run
    assert {row["id"]: row["reason"] for row in own_corpus.rejected()} == reasons
    assert any(says(line, codes.MANY_REJECTED) for line in forced.notices())


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


@pytest.mark.until("queries")
def test_where_ffmpeg_was_lacking_it_is_tried_again(
    own_corpus: Any, program: str, undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(own_corpus, program, "docs", "d003")
    convert(own_corpus, program, "queries", "q001")
    with monkeypatch.context() as patch:
        patch.setattr(ffmpeg, "program", lambda: None)
        own_corpus.run("force=true")
        lacking = {(row["id"], row["reason"]) for row in own_corpus.rejected()}
        assert lacking == {("d003", "needs-ffmpeg"), ("q001", "needs-ffmpeg")}
        assert own_corpus.run("force=true").outcome.tasks_done == 0
        assert "ffmpeg" not in libraries.require(own_corpus.store().folder).libraries
    result = own_corpus.run()
    assert own_corpus.rejected() == result.outcome.chain_run.notices() == []
    digest = own_corpus.digest()
    for table in ("features", "queries"):  # that of documents has the SHA-256 of the files
        assert digest[table] == undisturbed[table]
    for store in ("store", "queries"):
        made = libraries.require(own_corpus.store(name=store).folder)
        assert made.libraries["ffmpeg"] == (ffmpeg.version(program),)
    assert own_corpus.run().outcome.tasks_done == 0


def test_a_worker_without_it_rejects_nothing(own_corpus: Any, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There was one when the work was planned, so the recording is fine."""
    convert(own_corpus, program, "docs", "d003")
    honest = Index.run

    def run(self: Index, task: Any, context: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(ffmpeg, "program", lambda: None)
            return honest(self, task, context)

    monkeypatch.setattr(Index, "run", run)
    with raises(families.NOT_INSTALLED):
        own_corpus.run()


Rows = list[dict[str, str]]


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    return own_corpus


def change(scene: Any, table: str, how: Callable[[Rows], Any]) -> None:
    path: Path = scene.corpus / f"{table}.csv"
    rows = read_rows(path)
    how(rows)
    write_rows(path, rows)


def every(**values: str) -> Callable[[Rows], Any]:
    return lambda rows: [row.update(values) for row in rows]


def warnings(scene: Any, *sets: str) -> list[str]:
    """Of a run, as its report repeats them."""
    result = scene.run("calibrate.fit=none", "report.exports=[]", *sets)
    found: list[str] = scene.report()["warnings"]
    assert found == result.outcome.chain_run.notices()
    return found


@pytest.mark.slow
def test_durations_references_and_queries_that_do_not_fit(scene: Any) -> None:
    def cut(rows: Rows) -> None:
        rows[0].update(path="", doc_id="d002", start="1.0", end="1.6")
        rows[3].update(path="audio/d004.flac", start="1.0", end="1.7")

    change(scene, "docs", lambda rows: [rows[k].update(duration=value) for k, value in ((2, "7200"), (5, "60"))])
    change(scene, "refs", lambda rows: rows[1].update(start="500.0", end="500.7"))
    change(scene, "queries", cut)
    told = warnings(scene, "corpus.examples=all")
    for code, many in (
        (stages_codes.CONTRADICTED_DURATION, "2 of 8 durations "),
        (stages_codes.REFERENCE_AFTER_END, "1 "),
        (stages_codes.QUERY_FINDS_ITSELF, "1 "),  # the other names its document, so its own place is left out
    ):
        (warning,) = (one for one in told if says(one, code))
        assert warning.startswith(many), warning
    done = scene.here("strict=true", run="strict")
    assert done.code == 4
    assert says(done.err, stages_codes.QUERY_FINDS_ITSELF), "the first that a run comes upon"


def test_references_in_milliseconds(scene: Any) -> None:
    def thousandfold(rows: Rows) -> None:
        for row in rows:
            row["start"], row["end"] = (str(1000 * float(row[name])) for name in ("start", "end"))

    change(scene, "refs", thousandfold)
    with raises(stages_codes.REFERENCE_AFTER_END, count=6, of=6):
        scene.run(run="refused")
    assert not (scene.folder / "refused" / "store").exists()  # before any work
    (warning,) = (one for one in warnings(scene, "force=true") if says(one, stages_codes.REFERENCE_AFTER_END))
    assert warning.startswith("6 of 6 references")


@pytest.mark.slow
def test_speakers_that_do_not_match(scene: Any) -> None:
    change(scene, "docs", every(speaker="Anna"))
    change(scene, "queries", every(speaker="anna"))
    (warning,) = warnings(scene)
    assert says(warning, stages_codes.QUERY_SPEAKER_UNKNOWN)
    assert warning.startswith("1 speaker ")
    assert warnings(scene, "search.queries_by=collection") == []
    nobody = ("", "unknown", "<NA>")
    change(scene, "docs", lambda rows: [row.update(speaker=nobody[k % 3]) for k, row in enumerate(rows)])
    assert warnings(scene) == []
    (told,) = warnings(scene, "calibrate.steps=[speaker-norm]")
    assert says(told, codes.MISSING_SPEAKERS)
    assert told.startswith(f"{len(list((scene.corpus / 'audio').iterdir()))} documents without a speaker")


@pytest.mark.slow
def test_libraries_of_another_machine(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of the same sound may differ in their last bits: the store says what made it, and a run compares."""
    assert warnings(scene) == []
    plain = ("calibrate.fit=none", "report.exports=[]")
    assert scene.here(*plain, "strict=true").code == 0
    store = scene.store().folder
    mine = libraries.require(store).libraries
    assert {"numpy", "soxr", "libsndfile"} <= mine.keys()
    real = libraries.versions()
    monkeypatch.setattr(libraries, "versions", lambda: {**real, "soxr": "9.9"})
    again = scene.run(*plain).outcome
    assert again.tasks_done == 0
    (warning,) = again.chain_run.notices()
    assert says(warning, codes.OTHER_LIBRARY)
    assert f"soxr {real['soxr']} made features of this store, and 9.9 is" in warning
    compact(store, 1.0)
    assert libraries.require(store).libraries == mine  # no frame was made
    changed = scene.corpus / "audio" / "d008.flac"
    sound, rate = soundfile.read(changed, dtype="int16")
    soundfile.write(changed, sound[:-rate], rate)
    (warning,) = (one for one in warnings(scene) if says(one, codes.OTHER_LIBRARY))
    assert libraries.require(store).libraries["soxr"] == tuple(sorted([real["soxr"], "9.9"]))
    assert f"soxr {', '.join(sorted([real['soxr'], '9.9']))} made" in warning


@pytest.mark.slow
def test_a_calibration_of_another_system_or_of_these_documents(scene: Any, tmp_path: Path) -> None:
    """Fitted on other documents and this system's scores, nothing is told; else what does not fit is."""
    halves = (1, 2, 3, 4), (5, 6, 7, 8)
    scene.select(*halves[0])
    scene.run(run="first")
    (fitted,) = (scene.folder / "first" / "calibration").iterdir()
    file = tmp_path / "fitted.json"
    file.write_bytes(fitted.read_bytes())

    scene.select(*halves[1])
    same = scene.run(f"calibrate.fit={file}", run="second")
    told = (stages_codes.CALIBRATION_OF_OTHER_SCORES, stages_codes.CALIBRATION_ON_TEST_DATA)
    assert not [one for one in same.report.warnings if any(says(one, code) for code in told)]
    other = scene.run(f"calibrate.fit={file}", "search.distance=cosine-squared", "system=squared", run="second")
    (warning,) = (one for one in other.report.warnings if says(one, stages_codes.CALIBRATION_OF_OTHER_SCORES))
    assert warning.startswith("1 calibration ")
    assert "fitted.json, of system config: search.distance was cosine, here cosine-squared" in warning
    # Nothing is left to do, and it is still told; strictly it is an error.
    again = (f"calibrate.fit={file}", "search.distance=cosine-squared", "system=squared")
    told = scene.run(*again, run="second").outcome
    assert (told.tasks_done, warning in told.chain_run.notices()) == (0, True)
    strict = scene.here(*again, "strict=true", run="second")
    assert (strict.code in (3, 4), says(strict.err, stages_codes.CALIBRATION_OF_OTHER_SCORES)) == (True, True)

    scene.select(*halves[0])
    mixed = scene.run(f"calibrate.fit={file}", run="first")
    (warning,) = (one for one in mixed.report.warnings if says(one, stages_codes.CALIBRATION_ON_TEST_DATA))
    assert warning.startswith("1 calibration ")


def bad_lines(scene: Any, run: str) -> list[str]:
    """What `check` finds that keeps a run from its beginning."""
    config = load_config(str(scene.config), [f"run={scene.folder / run}", "corpus.examples=all"])
    found = check(SearchInputs.of(config, Ledger(Folder(str(scene.folder / run)))))
    return [f"{one.name}: {one.text}" for one in found if one.good is False]


def spoil(scene: Any, table: str, count: int) -> None:
    """Make recordings empty: documents, or examples of queries."""
    for row in read_rows(scene.corpus / f"{table}.csv")[:count]:
        (scene.corpus / row["path"]).write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("table", ["docs", "queries"])
def test_what_is_rejected(scene: Any, table: str) -> None:
    """Up to `FEW` files, or a tenth, are rejections; more end the run, whose work is kept."""
    rows = len(read_rows(scene.corpus / f"{table}.csv"))
    most = max(FEW, int(REJECTED * rows))
    assert most + 1 < rows
    spoil(scene, table, most)
    assert bad_lines(scene, "few") == []
    scene.run("corpus.examples=all", run="few", until="queries")
    assert scene.chain_runs["few"].rejected().num_rows == most
    spoil(scene, table, most + 1)
    (bad,) = bad_lines(scene, "many")
    assert f"{most + 1} of {rows}" in bad
    with raises(codes.MANY_REJECTED, count=most + 1, of=rows) as caught:
        scene.run("corpus.examples=all", run="many")
    assert caught.value.exit_code == 5
    result = scene.run("corpus.examples=all", "force=true", run="many")
    assert "index" not in {name for name, end in result.outcome.chain_run.outcomes.items() if end.done}  # it was kept
    assert any(one.startswith(f"{most + 1} of {rows} ") for one in result.outcome.chain_run.notices())
    with raises(codes.MANY_REJECTED):  # nor does it pass since it was forced once
        scene.run("corpus.examples=all", run="many")


@pytest.mark.slow
def test_durations_of_another_unit(scene: Any, undisturbed: dict[str, str]) -> None:
    real = {path.stem: soundfile.info(path).duration for path in (scene.corpus / "audio").iterdir()}
    change(scene, "docs", lambda rows: [row.update(duration=f"{1000 * real[row['doc_id']]:.0f}") for row in rows])
    assert any(says(line, stages_codes.CONTRADICTED_DURATION) for line in bad_lines(scene, "odd"))
    with raises(stages_codes.CONTRADICTED_DURATION, where="docs.csv, line 2", count=len(real), of=len(real)) as caught:
        scene.run(run="odd")
    assert isinstance(caught.value, ImplausibleError)
    scene.run("force=true", run="odd")
    assert scene.digest("odd")["measures"] == undisturbed["measures"]


def test_an_extractor_with_too_many_frames_is_found_before_the_run(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Mfcc.extract

    def longer(self: Any, samples: Any) -> Any:
        found = plain(self, samples)
        return np.concatenate([found, found[:3]])

    monkeypatch.setattr(Mfcc, "extract", longer)
    (bad,) = bad_lines(scene, "odd")
    assert says(bad, families.EXTENSION)


def test_that_all_is_missed_is_a_warning(scene: Any) -> None:
    """So is a reference behind the end of a recording whose table does not tell its length."""
    change(scene, "docs", lambda rows: [row.pop("duration", None) for row in rows])
    change(scene, "refs", every(start="0.0", end="0.02"))
    change(scene, "refs", lambda rows: rows[1].update(start="500.0", end="500.7"))
    told = warnings(scene)
    for code in (families.ALL_MISSED, stages_codes.REFERENCE_AFTER_END):
        assert any(says(one, code) for one in told)
