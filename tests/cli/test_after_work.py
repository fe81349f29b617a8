"""What commands say after work: what a store holds and what was new, what was rejected and what helps."""

import csv
import io
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import Command, hits, untold

from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import locked
from swsdist.stages.index import Index
from swsdist.store.reading import Store

CONFIG = "run: run\ncorpus: {documents: audio}\nexecutor: {kind: serial}\nreport: {clips: 1}\n"

SERIAL = ("--set", "executor.kind=serial")
SPOKEN = "1\n00:00:00,000 --> 00:00:02,000\nthe river\n"


@pytest.fixture
def archive(corpus: Path, tmp_path: Path) -> Path:
    """A folder of four recordings, and two files that are none, with a config."""
    (tmp_path / "audio").mkdir()
    for path in sorted((corpus / "corpus" / "audio").glob("*.flac"))[:4]:
        shutil.copy2(path, tmp_path / "audio")
    whole = (tmp_path / "audio" / "d001.flac").read_bytes()
    (tmp_path / "audio" / "cut.flac").write_bytes(whole[:1000])  # nothing can be read of it
    (tmp_path / "audio" / "no.wav").write_text("hello")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def test_index_says_what_was_new(swsdist, archive: Path) -> None:
    first = swsdist("index", "config.yaml", "--events", "events.jsonl", cwd=archive)
    events = [json.loads(line) for line in (archive / "events.jsonl").read_text().splitlines()]
    rejected = {event["id"]: event["reason"] for event in events if event["event"] == "rejected"}
    assert rejected.keys() == {"cut", "no"}
    counts = {"documents": 4, "rejected": 2, "new": 4, "changed": 0, "gone": 0, "moved": 0, "held": 0}
    assert (events[-1]["state"], events[-1]["counts"]) == ("done", counts)
    assert "h of audio; 4 new, 0 changed, 0 gone, 2 rejected" in first.out
    # A signal came after the last task.
    written = archive / "run" / "status.json"
    written.write_text(written.read_text().replace('"done"', '"interrupted"', 1))
    assert swsdist("status", "run", "--check", cwd=archive, code=130).out.startswith("interrupted\n")
    again = swsdist("index", "config.yaml", cwd=archive).out
    assert "nothing to do" in again
    assert "0 new, 0 changed, 0 gone, 2 rejected" in again
    assert "report.html" not in again  # there is none yet
    assert swsdist("status", "run", "--check", cwd=archive).out.startswith("done\n")
    other = ("--set", "chain=discover", "--set", "features.options.n_mfcc=12", "--run", "other")
    told = [swsdist("index", "config.yaml", *options, cwd=archive).err for options in (other[2:], other, other)]
    changed = "other was a run of the chain search, and is now one of discover"
    assert [changed in err for err in told] == [False, True, False]
    of_run, of_store = (swsdist("store", "info", name, cwd=archive).out for name in ("run", "run/store"))
    assert of_run.replace(f"{archive}/", "") == of_store.replace(f"{archive}/", "")
    remedy = f"[wrong-kind]\n  remedy: name its store: {archive}/run/store"
    cases = {f"store {command} run": remedy for command in ("check", "compact", "refit")}
    assert untold(swsdist, cases, archive, code=3) == {}
    os.utime(archive / "audio" / "d002.flac", (1, 1))
    (archive / "audio" / "d003.flac").unlink()
    (archive / "audio" / "no.wav").unlink()
    shutil.copy(archive / "audio" / "d001.flac", archive / "audio" / "d009.flac")
    after = swsdist("index", "config.yaml", cwd=archive).out
    moved = "1 moved or touched (1 renamed or copied: their frames were there)"
    assert f"; 1 new, 0 changed, 1 gone, {moved}, 1 rejected" in after
    assert "1 recording with the bytes of another (first: 'd009' of 'd001')" in after


def test_a_store_that_outgrew_its_models_is_fitted_anew(swsdist, archive: Path, corpus: Path) -> None:
    """Statistics alone by `store refit`, which says what else there is; all by `--from fit-transforms`."""
    sets = ("--set", "features={name: mfcc, transforms: [{name: pca, options: {columns: 5}}]}")
    for path in (archive / "audio").glob("*"):
        path.unlink()
    for k in range(1, 11):
        shutil.copy(corpus / "corpus" / "audio" / f"d{(k - 1) % 5 + 1:03d}.flac", archive / "audio" / f"{k}.flac")
        told = swsdist("index", "config.yaml", *sets, cwd=archive).err if k in (1, 9, 10) else ""
        assert ("outgrown-models" in told) == (k == 10)
    model = swsdist("store", "info", "run/store", cwd=archive).out
    refitted = swsdist("store", "refit", "run/store", cwd=archive).out
    assert refitted.startswith("statistics are now from 10 documents\nthese models stay: pca; ")
    assert swsdist("store", "info", "run/store", cwd=archive).out == model
    assert "outgrown-models" in swsdist("index", "config.yaml", *sets, cwd=archive).err
    told = swsdist("index", "config.yaml", *sets, "--from", "fit-transforms", cwd=archive).err
    assert "outgrown-models" not in told
    assert swsdist("store", "info", "run/store", cwd=archive).out != model


def test_one_searches_while_models_are_fitted(
    swsdist, archive: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interruption, too; and the next night ends as if there had been none."""
    features = "features=[{name: mfcc, track: pca, transforms: [{name: pca, options: {columns: 5}}]}, {name: mfcc}]"
    index = ("index", "config.yaml", "--set", features)
    swsdist(*index, cwd=archive)
    shutil.copy(corpus / "corpus" / "audio" / "d005.flac", archive / "audio")
    swsdist(*index, cwd=archive)
    before = Store(Folder(str(archive / "run" / "store"))).manifest
    shutil.copytree(archive / "run", archive / "undisturbed")
    swsdist(*index, "--run", "undisturbed", "--from", "fit-transforms", cwd=archive)
    with monkeypatch.context() as patch:
        patch.setattr(Index, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        swsdist(*index, "--from", "fit-transforms", cwd=archive, code=130)
    swsdist("search", "run/store", "--query", "audio/d001.flac:0.5-1.1", cwd=archive)
    assert Store(Folder(str(archive / "run" / "store"))).manifest == before
    swsdist(*index, cwd=archive)
    after, other = (Store(Folder(str(archive / name / "store"))).manifest for name in ("run", "undisturbed"))
    assert after.models == other.models
    assert [track.fingerprint for track in after.tracks] == [track.fingerprint for track in other.tracks]
    assert not {*before.models.values()} & {*after.models.values()}


def test_what_was_rejected_comes_with_what_helps(swsdist, archive: Path) -> None:
    short = swsdist("index", "config.yaml", cwd=archive).err
    assert short.count("\nrejected: 1 document(s), ") == 2
    told = swsdist("index", "config.yaml", "--all", cwd=archive).err
    for reason, remedy in (("not-audio", "leave the file out"), ("damaged-stream", "copy the file again")):
        assert f"rejected: 1 document(s), {reason}; the first: " in told
        assert f"\n  remedy: {remedy}" in told
        assert f"; {remedy}" in short
    strict = swsdist("index", "config.yaml", "--strict", cwd=archive, code=4).err
    assert "[strict]\n  remedy: see `swsdist store rejected " in strict
    for place in ("run", "run/store"):
        shown = swsdist("store", "rejected", place, cwd=archive).out
        assert f"  path: {archive}/audio/no.wav\n  remedy: leave the file out" in shown
        assert shown.endswith("2 rejected\n")
        rows = list(csv.DictReader(io.StringIO(swsdist("store", "rejected", place, "--csv", cwd=archive).out)))
        found = [(row["kind"], row["id"], row["reason"]) for row in rows]
        assert found == [("document", "cut", "damaged-stream"), ("document", "no", "not-audio")]


def test_a_damaged_file_of_a_run_is_named_with_what_helps(swsdist, place: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(place / "run", run)
    for name, typed in (
        ("accounts.parquet", f"report {run}"),
        ("report.json", f"compare {place}/run {run} --resamples 9"),
    ):
        (run / name).write_bytes((run / name).read_bytes()[:100])
        assert untold(swsdist, {typed: f"/{name}:  .. [damaged-file]\n  remedy: "}, code=3) == {}


def test_all_prints_every_figure(swsdist, place: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(place / "run", run)
    short, whole = (swsdist("report", run, *more).out.splitlines() for more in ((), ("--all",)))
    assert (len(short), len(whole) > 35) == (8, True)
    report = json.loads((run / "report.json").read_text())
    assert short[-1] == f"result digest {report['digest'][:16]}, report {run}/report.html"
    sets = ("--set", f"run={run}", "--set", "report.exports=[csv]")
    again = swsdist("score", "config.yaml", *sets, "--all", cwd=place).out
    assert [line.split()[0] for line in again.splitlines()] == [line.split()[0] for line in whole]


def test_what_has_no_line_is_counted(swsdist, archive: Path, corpus: Path) -> None:
    """After a run without references, with a report or without; `--all` has all of them, with what helps. Queries, too."""
    (archive / "queries").mkdir()
    shutil.copy(corpus / "corpus/queries/q001_1.wav", archive / "queries")
    (archive / "queries" / "bad.wav").write_text("hello")
    (archive / "audio" / "none.wav").touch()
    documents = sorted((archive / "audio").iterdir())
    rows = ["doc_id,path,channel", *(f"{path.stem},audio/{path.name},1" for path in documents)]
    (archive / "docs.csv").write_text("\n".join([*rows, "gone,audio/gone.wav,1", "second,audio/d001.flac,2", ""]))
    sets = ("--set", "corpus.documents=docs.csv", "--set", "corpus.queries=queries", "--run", "r", "--force")
    for command, where in (("index", "the same command with --all"), ("run", f"swsdist report {archive}/r --all")):
        ended = swsdist(command, "config.yaml", *sets, cwd=archive)
        odd = [line for line in ended.err.splitlines() if line.startswith(("rejected: ", "warning: ", "... and "))]
        assert [line.split(":")[0] for line in odd[:3]] == ["rejected"] * 3
        more = re.fullmatch(r"\.\.\. and (\d) more: .*", odd[3])
        assert more is not None
        assert (len(odd), where in odd[3]) == (4, True)
        every = swsdist(command, "config.yaml", *sets, "--all", cwd=archive).err
        assert len(re.findall("^(?:rejected|warning): ", every, re.MULTILINE)) == 3 + int(more[1])
        assert every.count("\n  remedy: ") >= 3
    assert ended.out.splitlines()[0].split()[0] == "measures"
    assert ended.out.endswith(f"report {archive}/r/report.html\n")
    assert "query bad, example 1: not-audio: " in swsdist("store", "rejected", "r", cwd=archive).out


def test_an_archive_that_is_half_there_does_not_empty_its_index(swsdist, tmp_path: Path) -> None:
    sound = np.random.default_rng(1).normal(0, 0.1, (12, 8000))
    for kind in ("wav", "srt"):
        (tmp_path / kind).mkdir()
        files = [tmp_path / kind / f"{k}.{kind}" for k in range(12)]
        for k, file in enumerate(files):
            file.write_text(SPOKEN) if kind == "srt" else soundfile.write(file, sound[k], 8000)
        plain = ("--set", "features=[{name: mfcc}]") if kind == "wav" else ()
        index = ("index", kind, "--run", f"{kind}-run", *plain, *SERIAL)
        swsdist(*index, cwd=tmp_path)
        for file in files[:10]:
            file.unlink()
        refused = swsdist(*index, cwd=tmp_path, code=5).err
        assert "10 of the 12 documents that the store has are gone" in refused
        store = Folder(str(tmp_path / f"{kind}-run" / "store"))
        assert Store(store).documents().num_rows == 12
        swsdist(*index, "--force", cwd=tmp_path)
        assert Store(store).documents().num_rows == 2


def test_a_night_that_cannot_begin_is_seen(swsdist, archive: Path) -> None:
    """In the run's state and its events; one that found nothing to do, too. Who works there is not disturbed."""
    index = ("index", "audio", "--run", "run", "--set", "features=[{name: mfcc}]", *SERIAL, "--events", "events.jsonl")

    def states() -> list[str]:
        files = [*sorted((archive / "run" / "events").iterdir()), archive / "events.jsonl"]
        ends = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [line["state"] for line in ends if line["event"] == "run-ended"]

    for _ in range(2):
        swsdist(*index, cwd=archive)
    assert states() == ["done"] * 4
    (archive / "audio").rename(archive / "away")
    for count in (1, 2):
        swsdist(*index, cwd=archive, code=2)
        assert states().count("stopped") == 2 * count
        assert swsdist("status", "run", "--check", cwd=archive, code=4).out.startswith("stopped")
        (archive / "audio").mkdir(exist_ok=True)
    (archive / "audio").rmdir()
    (archive / "away").rename(archive / "audio")
    with locked(Folder(str(archive / "run")), print):
        swsdist(*index, cwd=archive, code=2)
        assert (states().count("stopped"), states()[-1]) == (5, "stopped")
    swsdist(*index, cwd=archive)
    assert swsdist("status", "run", "--check", cwd=archive).out.startswith("done")


def test_annotations_that_may_not_be_read_are_told(swsdist, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (archive / "audio" / "d001.eaf").write_text("<x/>")
    monkeypatch.setattr("swsdist.chains.lattices.recordings.is_readable", lambda path: ".eaf" not in path)
    (archive / "audio" / "d002.srt").write_text(SPOKEN)
    ended = swsdist("index", "audio", "--run", "run", "--set", "features=[{name: mfcc}]", *SERIAL, "--all", cwd=archive)
    assert "4 documents" in ended.out
    assert "left-out" in ended.err
    assert f"{archive}/audio/d001.eaf" in ended.err
    assert "of no format of lattices" not in ended.err


@pytest.fixture(scope="module")
def tapes(corpus: Path, tmp_path_factory: pytest.TempPathFactory, swsdist: Command) -> Path:
    """A folder with recordings, indexed; to be read only."""
    folder = tmp_path_factory.mktemp("folder") / "a"
    (folder / "tapes").mkdir(parents=True)
    for file in sorted((corpus / "corpus" / "audio").iterdir())[:4]:
        shutil.copy(file, folder / "tapes")
    swsdist("index", "tapes", "--set", "executor.kind=serial", cwd=folder)
    return folder / "tapes"


@pytest.mark.slow
@pytest.mark.xdist_group("index-of-a-folder")
def test_it_is_asked_at_once_and_after_a_move(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """By a file, a place in one, and a place in a document; the fitted models have moved with the store."""
    asked = ("search", "tapes-swsdist", "--top", "5", "--csv", "--query")
    file = sorted(tapes.iterdir())[2]
    for query in (f"tapes/{file.name}:0.5-1.1", f"{file.stem}:0.5-1.1"):
        answer = swsdist(*asked, query, cwd=tapes.parent)
        (tapes.parent).rename(tmp_path / "b")
        moved = swsdist(*asked, query, cwd=tmp_path / "b")
        (tmp_path / "b").rename(tapes.parent)
        assert moved.out == answer.out.replace(f"{tapes}/", f"{tmp_path}/b/tapes/")
        best = hits(answer)[0]
        assert (best["doc_id"], round(float(best["start"]), 1)) == (file.stem, 0.5)


def test_another_folder_of_that_name(swsdist: Command, corpus: Path, tmp_path: Path) -> None:
    """Its recordings would take the place of the first one's."""
    plain = ("--set", "features=[{name: mfcc}]", "--set", "executor.kind=serial")
    for name in ("a", "b"):
        (tmp_path / name / "tapes").mkdir(parents=True)
        shutil.copy(corpus / "corpus/audio/d001.flac", tmp_path / name / "tapes")
    assert "search it: swsdist search tapes-swsdist --query" in swsdist("index", "a/tapes", *plain, cwd=tmp_path).out
    refused = swsdist("index", "b/tapes", *plain, cwd=tmp_path, code=5).err
    assert f"this is the index of another folder, {tmp_path}/a/tapes" in refused
    assert "--run FOLDER" in refused
    again = ("index", "b/tapes", *plain, "--run", "tapes-swsdist")
    assert "another-index" in swsdist(*again, cwd=tmp_path, code=5).err
    swsdist(*again, "--force", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.xdist_group("index-of-a-folder")
def test_two_seconds_are_enough(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """The mixture that nobody chose has fewer components; one that somebody chose is an error."""
    (tmp_path / "one").mkdir()
    samples, rate = soundfile.read(min(tapes.iterdir()), dtype="int16")
    soundfile.write(tmp_path / "one" / "a.wav", samples[: 2 * rate], rate)
    assert "fewer-components" in swsdist("index", "one", "--set", "executor.kind=serial", cwd=tmp_path).out
    best = hits(swsdist("search", "one-swsdist", "--query", "one/a.wav:0.5-1.1", "--csv", cwd=tmp_path))[0]
    assert abs(float(best["start"]) - 0.5) < 0.1
    chosen = '[{"name": "mfcc", "transforms": [{"name": "gmm", "options": {"components": 128}}]}]'
    refused = swsdist("index", "one", "--run", "chosen", "--set", f"features={chosen}", cwd=tmp_path, code=2)
    assert "nothing-to-fit" in refused.err
