"""Frames that others made of Kaldi's utterances: times, queries by their place, and no audio that nobody needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lists_of_others as others
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import swsdist
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.store.reading import Store

OPTIONS = {"shift": 0.01, "length": 0.032, "dimension": 39}
QUICK = ("report.exports=[csv]", "report.clips=0")


@pytest.fixture(scope="module")
def made(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A data folder, and a run with `mfcc` of it and of the queries; to be read only."""
    folder = tmp_path_factory.mktemp("utterances")
    others.data_folder(small_corpus, folder / "data")
    corpus = {"documents": str(folder / "data"), "queries": str(small_corpus / "queries.csv")}
    values = {"run": str(folder / "run"), "system": "config", "corpus": corpus, "queries": {"trim": "none"}}
    swsdist.run({**values, "executor": {"kind": "serial"}}, sets=list(QUICK))
    (folder / "frames").mkdir()
    documents, queries = (Store(Folder(str(folder / "run" / name))) for name in ("store", "queries"))
    for name in documents.documents()["doc_id"].to_pylist():
        np.save(folder / "frames" / f"{name}.npy", documents.features(name))
    for row in queries.documents().to_pylist():
        frames = queries.features(row["doc_id"], row["channel"])
        np.save(folder / "frames" / f"{row['doc_id']}-{row['channel']}.npy", frames)
    return folder, folder / "frames"


def config(folder: Path, data: Path, frames: Path, queries: Path, **values: Any) -> dict[str, Any]:
    return {
        "run": str(folder / "run"),
        "system": "config",
        "corpus": {"documents": str(data), "queries": str(queries)},
        "features": {"name": "external", "options": {"path": str(frames), **OPTIONS}},
        "executor": {"kind": "serial"},
        "report": {"exports": ["csv"], "clips": 0},
        **values,
    }


def test_frames_of_utterances_are_those_of_the_run_that_made_them(scene: Any, made: tuple[Path, Path]) -> None:
    """Of recordings that commands would give, which nobody has to run; and the last utterance ends after its recording."""
    folder, frames = made
    others.data_folder(
        scene.corpus, scene.folder / "data", f"echo {{0}} >> {scene.folder}/trace; cat audio/{{0}}.wav |"
    )
    values = config(scene.folder, scene.folder / "data", frames, scene.corpus / "queries.csv")
    result = swsdist.run(values)
    assert not result.rejected()
    wanted = swsdist.digest(str(folder / "run"))
    found = swsdist.digest(result.folder)
    assert all(found[name] == wanted[name] for name in ("features", "detections", "scored"))
    assert not (scene.folder / "trace").exists()
    # With audio beside them, the places are held against it.
    data, segments = folder / "data", (folder / "data" / "segments").read_text()
    copied = scene.folder / "other"
    copied.mkdir()
    for name in ("utt2spk", "reco2dur"):
        (copied / name).write_text((data / name).read_text())
    (copied / "wav.scp").write_text((data / "wav.scp").read_text().replace("audio/", f"{data}/audio/"))
    last = [line.split() for line in segments.splitlines() if line.split()[1] == "rec1"][-1]
    end = float(last[3])
    (copied / "segments").write_text(
        segments.replace(f"{last[3]}\n", f"{end + 0.4}\n", 1) + f"late rec1 {end + 5} {end + 6}\n"
    )
    np.save(scene.folder / "late.npy", np.ones((99, 39)))
    other = scene.folder / "frames"
    other.mkdir()
    for path in [*frames.glob("*.npy"), scene.folder / "late.npy"]:
        (other / path.name).symlink_to(path)
    values = config(scene.folder, copied, other, scene.corpus / "queries.csv") | {"run": str(scene.folder / "audio")}
    result = swsdist.run(values, selection=StepSelection(until="index"))
    rejected = result.outcome.chain_run.rejected().to_pylist()
    assert [(row["id"], row["reason"]) for row in rejected] == [("late", "segment-outside")]
    lengths = {
        row["doc_id"]: row["duration"] for row in Store(Folder(f"{values['run']}/store")).documents().to_pylist()
    }
    assert lengths[last[0]] == pytest.approx(end - float(last[2]), abs=1e-5)


def test_a_segment_that_is_moved_has_other_times(scene: Any, made: tuple[Path, Path]) -> None:
    found = others.data_folder(scene.corpus, scene.folder / "data")
    values = config(scene.folder, scene.folder / "data", made[1], scene.corpus / "queries.csv")
    first = swsdist.run(values)
    segments = scene.folder / "data" / "segments"
    name, place = next(iter(found.items()))
    moved = f"{name} {place.recording} {place.start - 0.125!r} {place.end - 0.125!r}\n"
    segments.write_text(
        segments.read_text().replace(f"{name} {place.recording} {place.start!r} {place.end!r}\n", moved)
    )
    assert moved in segments.read_text()

    def best(result: Any) -> list[tuple[Any, ...]]:
        frame = result.detections()
        rows = frame[(frame["doc_id"] == place.recording) & (frame["start"] < place.end)]
        return sorted(zip(rows["query_id"], rows["cost"], rows["start"], rows["end"], strict=True))

    before, after = best(first), best(swsdist.run(values))
    assert len(before) > 0
    assert [row[:2] for row in after] == [row[:2] for row in before]
    shifted = [(query, cost, round(start - 0.125, 6), round(end - 0.125, 6)) for query, cost, start, end in before]
    assert after == shifted
    # A recording that is only called otherwise is another one.
    for file in ("segments", "wav.scp", "reco2dur"):
        path = scene.folder / "data" / file
        path.write_text(path.read_text().replace("rec1", "tape1"))
    digest, again = swsdist.digest(first.folder), swsdist.run(values)
    assert {*again.detections()["doc_id"]} <= {"tape1", "rec2", "rec3"}
    changed = swsdist.digest(again.folder)
    assert changed["features"] == digest["features"]
    assert changed["documents"] != digest["documents"]


def test_queries_by_their_place_in_a_recording(scene: Any, made: tuple[Path, Path]) -> None:
    frames = made[1]
    others.data_folder(scene.corpus, scene.folder / "data")
    lines = [line.split() for line in (scene.folder / "data" / "segments").read_text().splitlines()]
    name, recording, start = next((line[0], line[1], float(line[2])) for line in lines[1:] if line[1] == "rec1")
    places = [
        ("utterance", name, start + 0.5, start + 1.0),
        ("recording", recording, start + 0.5, start + 1.0),
        ("whole", name, "", ""),
        ("early", name, start - 0.3, start + 0.2),
        ("between", recording, start - 0.3, start + 0.2),
    ]
    queries = scene.folder / "queries.csv"
    queries.write_text("query_id,doc_id,start,end\n" + "".join(f"{','.join(map(str, row))}\n" for row in places))
    values = config(scene.folder, scene.folder / "data", frames, queries)
    result = swsdist.run(values, sets=["corpus.own_places=keep"])
    store, whole = Store(Folder(f"{result.folder}/queries")), np.load(frames / f"{name}.npy")
    count = 1 + int((0.5 - 0.032) / 0.01 + 1e-9)
    assert np.array_equal(store.features("utterance"), whole[50 : 50 + count])
    assert np.array_equal(store.features("recording"), store.features("utterance"))
    assert np.array_equal(store.features("whole"), whole)
    told = {row["id"]: row["reason"] for row in result.outcome.chain_run.rejected().to_pylist()}
    assert told == {"early": "place-outside-frames", "between": "no-frames"}
    best = result.detections().query("query_id == 'recording'").iloc[0]
    assert (best["doc_id"], best["start"]) == (recording, pytest.approx(start + 0.5, abs=1e-5))


def test_marks_are_of_whichever_track_has_them(scene: Any, made: tuple[Path, Path]) -> None:
    given = {"name": "external", "track": "given", "options": {"path": str(made[1]), **OPTIONS}}
    heard = {"name": "mfcc", "track": "heard"}
    values = config(scene.folder, made[0] / "data", made[1], scene.corpus / "queries.csv")
    values |= {"queries": {"trim": "none"}, "search": {"skip_silence": True, "streams": [{"track": "given"}]}}
    values["index"] = {"store": str(scene.folder / "store")}
    first = swsdist.run({**values, "features": [given, heard]})
    store = Store(Folder(str(scene.folder / "store")))
    nulls = {track.name: store.documents(track=track.name)["speech"].null_count for track in store.manifest.tracks}
    assert nulls == {"given": 8, "heard": 0}
    assert 0 < store.manifest.counts["speech_seconds"] < store.manifest.counts["heard_seconds"]
    # In the other order the same is found.
    other = swsdist.run({**values, "features": [heard, given]}, sets=[f"run={scene.folder}/b"])
    assert other.outcome.chain_run.outcomes["index"].done == 0
    assert swsdist.digest(other.folder)["detections"] == swsdist.digest(first.folder)["detections"]


def test_reduce_depends_on_the_places(scene: Any, made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """On each document's recording and start, whatever shards they are in."""
    values = config(scene.folder, made[0] / "data", made[1], scene.corpus / "queries.csv")
    chain_run = swsdist.run(values).outcome.chain_run
    step, real = chain_run.chain.step("reduce"), Store.documents

    def planned(order: int, later: float) -> list[str]:
        def documents(store: Store, *args: Any, **names: Any) -> pa.Table:
            table = real(store, *args, **names)[::order]
            index = table.schema.get_field_index("start")
            return table.set_column(index, table.schema.field(index), pc.add(table["start"], later))

        monkeypatch.setattr(Store, "documents", documents)
        chain_run.chain.inputs._digests.clear()
        return [task.fingerprint for task in step.stage.plan(chain_run.inputs(step))]

    assert (
        planned(1, 0.0)
        == planned(-1, 0.0)
        == [receipt.fingerprint for receipt in chain_run.outcomes["reduce"].receipts]
    )
    assert not {*planned(1, 0.0)} & {*planned(1, 0.5)}
