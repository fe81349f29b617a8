"""Features that others made: results as with the extractor that made them, without audio; of documents, and of places."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lists_of_others as others
import numpy as np
import pytest

import swsdist
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.store.reading import Store
from tests.support.coded import raises
from tests.support.tables import read_rows, write_rows

OPTIONS = {"shift": 0.01, "length": 0.032, "dimension": 39}


def run_of(folder: Path, corpus: dict[str, str], sets: Sequence[str] = (), **values: Any) -> Any:
    given = {"run": str(folder), "system": "config", "corpus": corpus, "executor": {"kind": "serial"}}
    return swsdist.run({**given, "report": {"clips": 0, "exports": ["csv"]}, **values}, sets=list(sets))


def frames_of(run: Path) -> dict[str, np.ndarray]:
    documents, queries = (Store(Folder(str(run / name))) for name in ("store", "queries"))
    found = {doc_id: documents.features(doc_id) for doc_id in documents.documents()["doc_id"].to_pylist()}
    for row in queries.documents().to_pylist():
        found[f"{row['doc_id']}-{row['channel']}"] = queries.features(row["doc_id"], row["channel"])
    return found


def save(folder: Path, frames: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    for key, each in frames.items():
        np.save(folder / f"{key}.npy", each)
    return folder


@pytest.fixture(scope="session")
def by_mfcc(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with `mfcc` that trims nothing; to be read only."""
    folder = tmp_path_factory.mktemp("by-mfcc")
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    corpus = {name: str(small_corpus / f"{table}.csv") for name, table in tables.items()}
    run_of(folder, corpus, queries={"trim": "none"})
    return folder


@pytest.fixture(scope="session")
def frames(by_mfcc: Path) -> dict[str, np.ndarray]:
    return frames_of(by_mfcc)


@pytest.fixture
def npy(tmp_path: Path, frames: dict[str, np.ndarray]) -> Path:
    return save(tmp_path / "frames", frames)


def features(path: Path | str, **options: Any) -> str:
    return "features=" + json.dumps({"name": "external", "options": {"path": str(path), **OPTIONS, **options}})


def without(rows: list[dict[str, str]], *names: str) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def test_without_audio(scene: Any, npy: Path, by_mfcc: Path) -> None:
    documents, queries = read_rows(scene.corpus / "docs.csv"), read_rows(scene.corpus / "queries.csv")
    asked = write_rows(scene.folder / "queries.csv", without(queries, "path", "duration"))
    known = write_rows(scene.folder / "docs.csv", without(documents, "path"))
    sets = (features(npy), f"corpus.queries={asked}")
    result = scene.run(*sets, f"corpus.documents={known}", "report.clips=5", "report.exports=[csv, clips]")
    digest, wanted = scene.digest(), swsdist.digest(str(by_mfcc))
    assert all(digest[name] == wanted[name] for name in ("features", "queries", "candidates", "scored", "measures"))
    (warning,) = scene.report()["warnings"]
    assert "clips was not exported: corpus.documents: the documents have no recordings" in warning
    assert result.measures()["mtwv"] == pytest.approx(1.0)
    bare = write_rows(scene.folder / "bare.csv", without(documents, "path", "duration", "speaker"))
    scene.run(*sets, f"corpus.documents={bare}", "index.shards=3", run="bare", until="index")
    store = scene.store("bare")
    assert len(store.manifest.shards) == 3  # cut by the sizes of the frames
    for row in store.documents().to_pylist():
        assert row["duration"] == pytest.approx((row["frames"] - 1) * 0.01 + 0.032)
        assert row["path"] == ""
    # What needs audio says so.
    with pytest.raises(DataError, match="path"):
        scene.run(f"corpus.documents={bare}", run="no")


@pytest.mark.slow
@pytest.mark.until("search")
def test_one_item_that_changes_is_all_that_is_indexed_again(scene: Any, npy: Path) -> None:
    sets = (features(npy), "search.normalise=none")
    scene.run(*sets, "index.shards=4")
    before = {path.name for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    for name in ("d002", "q001-1"):
        np.save(npy / f"{name}.npy", np.load(npy / f"{name}.npy")[::-1])
    ended = scene.run(*sets, "index.shards=4").outcome.chain_run.outcomes
    assert (ended["index"].done, ended["index"].tasks, ended["queries"].done) == (1, 1, 1)
    assert before < {path.name for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    scene.run(*sets, run="once")
    assert scene.digest() == scene.digest("once")
    # Where they lie does not matter.
    shutil.copytree(npy, scene.folder / "moved")  # with copy2
    assert scene.run(features(scene.folder / "moved"), sets[1]).outcome.chain_run.outcomes["index"].tasks == 0


def test_an_archive_that_is_not_there_ends_the_run(scene: Any, npy: Path) -> None:
    with raises(families.MISSING_FILE):
        scene.run(features(scene.folder / "gone.scp"))
    for path in npy.glob("d*.npy"):
        path.unlink()
    with raises(families.EMPTY_INPUT, documents=8):
        scene.run(features(npy))


def test_a_search_by_hand(scene: Any, npy: Path, by_mfcc: Path) -> None:
    scene.run(features(npy), selection=StepSelection(until="index"))
    store, query = str(scene.folder / "run" / "store"), next(iter(sorted((scene.corpus / "queries").iterdir())))
    found = swsdist.search(store, str(npy / f"{query.stem.replace('_', '-')}.npy"))
    wanted = swsdist.search(str(by_mfcc / "store"), str(query), trim=False)
    assert len(found) == len(wanted) > 0
    assert found.drop(columns="query_id").equals(wanted.drop(columns="query_id"))
    place = swsdist.search(store, f"{npy / 'd001.npy'}:1.0-1.5").iloc[0]
    assert (place["doc_id"], place["start"]) == ("d001", 1.0)
    with raises(families.UNSUPPORTED):
        swsdist.search(store, str(query))
    mixed = [{"name": "mfcc"}, {"name": "external", "options": {"path": str(npy), **OPTIONS}}]
    scene.run(f"features={json.dumps(mixed)}", run="mixed", selection=StepSelection(until="index"))
    with raises(families.UNSUPPORTED, tracks=2):
        swsdist.search(str(scene.folder / "mixed" / "store"), str(query))


@pytest.fixture(scope="module")
def made(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run with `mfcc` of a data folder and of the queries, and its frames; to be read only."""
    folder = tmp_path_factory.mktemp("utterances")
    others.data_folder(small_corpus, folder / "data")
    corpus = {"documents": str(folder / "data"), "queries": str(small_corpus / "queries.csv")}
    run_of(folder / "run", corpus, queries={"trim": "none"})
    return folder / "run", save(folder / "frames", frames_of(folder / "run"))


def given_run(scene: Any, frames: Path, queries: Path | None = None, sets: Sequence[str] = ()) -> Any:
    """A run of the data folder in the scene's, with frames that are given."""
    corpus = {"documents": str(scene.folder / "data"), "queries": str(queries or scene.corpus / "queries.csv")}
    external = {"name": "external", "options": {"path": str(frames), **OPTIONS}}
    return run_of(scene.folder / "run", corpus, sets, features=external)


def test_frames_of_utterances_are_those_of_the_run_that_made_them(scene: Any, made: tuple[Path, Path]) -> None:
    """Of recordings that commands would give, which nobody has to run; and the last utterance ends after its recording."""
    run, frames = made
    command = f"echo {{0}} >> {scene.folder}/trace; cat audio/{{0}}.wav |"
    others.data_folder(scene.corpus, scene.folder / "data", command)
    result = given_run(scene, frames)
    assert not result.rejected()
    wanted = swsdist.digest(str(run))
    found = swsdist.digest(result.folder)
    assert all(found[name] == wanted[name] for name in ("features", "detections", "scored"))
    assert not (scene.folder / "trace").exists()


def test_a_segment_that_is_moved_has_other_times(scene: Any, made: tuple[Path, Path]) -> None:
    found = others.data_folder(scene.corpus, scene.folder / "data")
    first = given_run(scene, made[1])
    segments = scene.folder / "data" / "segments"
    name, place = next(iter(found.items()))
    moved = f"{name} {place.recording} {place.start - 0.125!r} {place.end - 0.125!r}\n"
    before = f"{name} {place.recording} {place.start!r} {place.end!r}\n"
    assert before in segments.read_text()
    segments.write_text(segments.read_text().replace(before, moved))

    def best(result: Any) -> list[tuple[Any, ...]]:
        frame = result.detections()
        rows = frame[(frame["doc_id"] == place.recording) & (frame["start"] < place.end)]
        return sorted(zip(rows["query_id"], rows["cost"], rows["start"], rows["end"], strict=True))

    before, after = best(first), best(given_run(scene, made[1]))
    assert len(before) > 0
    assert [row[:2] for row in after] == [row[:2] for row in before]
    shifted = [(query, cost, round(start - 0.125, 6), round(end - 0.125, 6)) for query, cost, start, end in before]
    assert after == shifted


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
    result = given_run(scene, frames, queries, ["corpus.own_places=keep"])
    store, whole = Store(Folder(f"{result.folder}/queries")), np.load(frames / f"{name}.npy")
    count = 1 + int((0.5 - 0.032) / 0.01 + 1e-9)
    assert np.array_equal(store.features("utterance"), whole[50 : 50 + count])
    assert np.array_equal(store.features("recording"), store.features("utterance"))
    assert np.array_equal(store.features("whole"), whole)
    told = {row["id"]: row["reason"] for row in result.outcome.chain_run.rejected().to_pylist()}
    assert told == {"early": "place-outside-frames", "between": "no-frames"}
    best = result.detections().query("query_id == 'recording'").iloc[0]
    assert (best["doc_id"], best["start"]) == (recording, pytest.approx(start + 0.5, abs=1e-5))
