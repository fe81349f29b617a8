"""Queries: trimmed to their speech, and kept in a store like that of the documents."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process

import swsdist
from swsdist.core.errors import DataError, UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import status
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.reading import Store
from tests.support.tables import read_rows, write_rows

RNG = np.random.default_rng(3)


BEFORE, AFTER = 0.7, 0.5


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def noise(seconds: float, rate: int) -> np.ndarray:
    return RNG.normal(scale=1e-3, size=round(seconds * rate))


@pytest.fixture
def recorded(scene: Any) -> list[dict[str, str]]:
    """The corpus's queries with faint noise around them; as rows."""
    rows = [row for row in read_rows(scene.corpus / "queries.csv") if row["example"] == "1"]
    for row in rows:
        samples, rate = soundfile.read(scene.corpus / row["path"])
        soundfile.write(
            scene.corpus / row["path"], np.concatenate([noise(BEFORE, rate), samples, noise(AFTER, rate)]), rate
        )
    return rows


def ask(scene: Any, rows: list[dict[str, Any]]) -> None:
    names = ("query_id", "example", "path", "start", "end")
    write_rows(scene.corpus / "queries.csv", [{name: row.get(name, "") for name in names} for row in rows])


@pytest.mark.slow
def test_a_report_says_what_was_cut(scene: Any, recorded: list[dict[str, str]]) -> None:
    seconds = {row["query_id"]: soundfile.info(scene.corpus / row["path"]).duration for row in recorded}
    ask(scene, recorded)
    scene.run()
    report = scene.report()
    assert report["counts"]["trimmed"] == len(recorded)
    queries = scene.store("run", "queries")
    kept = dict(zip(*(queries.documents()[name].to_pylist() for name in ("doc_id", "duration")), strict=True))
    for row in report["per_query"]:
        assert row["cut"] == pytest.approx(BEFORE + AFTER, abs=0.35)
        assert row["duration"] == pytest.approx(kept[row["query_id"]])
        assert row["duration"] + row["cut"] == pytest.approx(seconds[row["query_id"]], abs=0.002)
    # SSF is of the queries as they were given.
    cost = report["resources"]
    assert cost["query_seconds"] == pytest.approx(sum(seconds.values()), abs=0.01)
    assert cost["searched_query_seconds"] == pytest.approx(sum(kept.values()))
    assert report["ssf"] * cost["query_seconds"] * cost["audio_seconds"] == pytest.approx(cost["search_cpu_s"])
    page = (scene.folder / "run" / "report.html").read_text()
    assert f"{len(recorded)} trimmed to their speech" in page
    # Without it, all of a recording is the query.
    scene.run("queries.trim=none")
    report = scene.report()
    assert report["counts"]["trimmed"] == 0
    for row in report["per_query"]:
        assert row["cut"] is None
        assert row["duration"] == pytest.approx(seconds[row["query_id"]], abs=0.02)
    assert report["resources"]["query_seconds"] == report["resources"]["searched_query_seconds"]


def test_ends_that_were_given_stay(scene: Any, recorded: list[dict[str, str]]) -> None:
    one = recorded[0]
    whole = soundfile.info(scene.corpus / one["path"]).duration
    places = [("0.1", "0.9"), ("0.1", ""), ("", str(round(whole - 0.1, 3))), ("", "")]
    ask(scene, [{**one, "query_id": f"q{k}", "start": a, "end": b} for k, (a, b) in enumerate(places)])
    scene.run("corpus.references=null", "calibrate.fit=none")
    cut = {row["query_id"]: row["cut"] for row in scene.report()["per_query"]}
    assert cut["q0"] is None
    assert cut["q1"] == pytest.approx(AFTER, abs=0.2)
    assert cut["q2"] == pytest.approx(BEFORE, abs=0.2)
    assert cut["q3"] == pytest.approx(BEFORE + AFTER, abs=0.35)


@pytest.mark.until("queries")
def test_a_query_without_speech_is_rejected(scene: Any, recorded: list[dict[str, str]]) -> None:
    rate = soundfile.info(scene.corpus / recorded[0]["path"]).samplerate
    soundfile.write(scene.corpus / "queries" / "empty.wav", noise(1.0, rate), rate)
    ask(scene, [*recorded, {"query_id": "empty", "example": "1", "path": "queries/empty.wav"}])
    scene.run()
    (row,) = scene.rejected()
    assert (row["id"], row["reason"]) == ("empty", "no-speech")
    assert "queries.trim: none" in row["remedy"]
    scene.run("queries.trim=none")
    assert scene.rejected() == []


@pytest.mark.parametrize("kind", ["speech that goes on", "a word in a tape"])
@pytest.mark.until("queries")
def test_a_tape_is_no_query(scene: Any, recorded: list[dict[str, str]], kind: str) -> None:
    """It is rejected with what to do, where some phrase of it would be searched; as it is it may still be asked for."""
    word, rate = soundfile.read(scene.corpus / recorded[0]["path"])
    parts = [noise(20, rate), word, noise(20, rate)]
    if kind == "speech that goes on":  # no pauses, else there is one phrase a word
        speech = word[round(BEFORE * rate) : -round(AFTER * rate)]
        parts = [speech] * (round(35 * rate / len(speech)) + 1)
    soundfile.write(scene.corpus / "queries" / "tape.wav", np.concatenate(parts), rate)
    ask(scene, [*recorded, {"query_id": "tape", "example": "1", "path": "queries/tape.wav"}])
    scene.run()
    (row,) = scene.rejected()
    assert (row["id"], row["reason"]) == ("tape", "too-long")
    assert "mark a place: FILE:START-END" in row["remedy"]
    with pytest.raises(DataError, match="too long for a query"):
        swsdist.search(str(scene.folder / "run" / "store"), str(scene.corpus / "queries" / "tape.wav"))


@pytest.mark.slow
@pytest.mark.until("index")
def test_a_search_by_hand(scene: Any, recorded: list[dict[str, str]]) -> None:
    ask(scene, recorded)
    scene.run()
    store, path = str(scene.folder / "run" / "store"), str(scene.corpus / recorded[0]["path"])
    command = ("search", store, "--query", path, "--csv")
    printed = expecting(in_this_process)(*command)
    assert "s after the speech of" in printed.err
    assert expecting(in_this_process)(*command, "--no-trim").err == ""
    whole = swsdist.search(store, path, trim=False)
    trimmed = swsdist.search(store, path)
    assert trimmed["frames"].max() < whole["frames"].max()
    assert printed.out.splitlines()[1].split(",")[1] == trimmed["doc_id"][0]


LONG = {"name": "mfcc", "track": "long", "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}}


BOTH = f"features={json.dumps([{'name': 'mfcc'}, LONG])}"


STREAMS = f"search.streams={json.dumps([{'track': 'long'}, {'track': 'mfcc', 'columns': [13, 26]}])}"


def ask_of_store_of_queries(scene: Any, rows: list[dict[str, str]]) -> None:
    """Let these be the queries; there are no references to them."""
    write_rows(scene.corpus / "queries.csv", rows)
    with (scene.corpus / "refs.csv").open("w") as file:
        file.write("query_id,doc_id,start,end\n")


def stores(scene: Any) -> tuple[Store, Store]:
    """Of the documents, and of the queries."""
    run = scene.folder / "run"
    return Store(Folder(str(run / "store"))), Store(Folder(str(run / "queries")))


@pytest.mark.slow
def test_a_document_and_a_query_of_it_have_the_same_frames(scene: Any) -> None:
    place = {"doc_id": "d002", "start": "1.0", "end": "2.5"}
    ask_of_store_of_queries(
        scene,
        [
            {"query_id": "whole", "example": "3", "path": "audio/d001.flac"},
            {"query_id": "part", "example": "1", **place},
        ],
    )
    scene.run(BOTH, STREAMS, "queries.trim=none")
    documents, queries = stores(scene)
    assert list(check(queries)) == []
    assert (queries.manifest.kind, queries.manifest.tick) == (documents.manifest.kind, documents.manifest.tick)
    named = [[(t.name, t.recipe, t.columns, t.kind) for t in one.manifest.tracks] for one in (documents, queries)]
    assert named[0] == named[1]
    assert [name for name, *_ in named[0]] == ["mfcc", "long"]
    for track in ("mfcc", "long"):
        asked, spoken = queries.features("whole", 3, track), documents.features("d001", 1, track)
        assert asked.tobytes() == spoken.tobytes()
        # A place is computed with what is around it: its frames are those of the document.
        part = queries.features("part", 1, track)
        assert part.tobytes() == documents.features("d002", 1, track)[100 : 100 + len(part)].tobytes()
    rows = {row["doc_id"]: row for row in queries.documents().to_pylist()}
    assert (rows["whole"]["sha256"], rows["part"]["sha256"]) == (documents.documents()["sha256"][0].as_py(), "")
    assert rows["part"]["duration"] == 1.5
    seconds = {row["query_id"]: row["duration"] for row in scene.report()["per_query"]}
    assert seconds == {name: row["duration"] for name, row in rows.items()}


@pytest.mark.until("queries")
def test_the_store_holds_the_queries_of_the_last_plan(scene: Any) -> None:
    path = sorted(path.relative_to(scene.corpus) for path in (scene.corpus / "queries").iterdir())
    first = {"query_id": "one", "example": "1", "path": str(path[0])}
    ask_of_store_of_queries(scene, [first])
    scene.run()
    _, before = stores(scene)
    ask_of_store_of_queries(scene, [first, {"query_id": "two", "example": "1", "path": str(path[1])}])
    scene.run()
    _, after = stores(scene)
    assert after.documents()["doc_id"].to_pylist() == ["one", "two"]
    assert before.features("one").tobytes() == after.features("one").tobytes(), "an old state can still be read"
    assert after.manifest.fingerprint != before.manifest.fingerprint


@pytest.mark.until("queries")
def test_what_the_run_alone_writes_to(scene: Any) -> None:
    scene.run()
    _, queries = stores(scene)
    for change in (lambda: compact(queries.folder, 1.0), lambda: refit(queries.folder)):
        with pytest.raises(UserError, match="this is a run's store of queries"):
            change()
    with pytest.raises(UserError, match=r"index\.store: .*: this is a run's store of queries"):
        scene.run(f"index.store={scene.folder / 'run' / 'queries'}", run="other")


@pytest.mark.until("queries")
def test_its_manifest_is_made_again_from_the_groups(scene: Any) -> None:
    scene.run()
    digest = scene.digest()
    folder = scene.folder / "run" / "queries"
    for damage in (
        lambda: (folder / "manifest.json").write_text("{"),
        lambda: (folder / "manifest.json").unlink(),
        lambda: [path.unlink() for path in folder.glob("documents-*")],
    ):
        damage()
        assert scene.run().outcome.tasks_done == 0
        assert list(check(stores(scene)[1])) == []
        assert scene.digest() == digest


def test_a_run_that_was_moved(scene: Any) -> None:
    scene.run()
    before = {stage.stage: (stage.done, stage.tasks) for stage in status(Folder(str(scene.folder / "run"))).stages}
    digest = scene.digest()
    (scene.folder / "run").rename(scene.folder / "elsewhere")
    moved = Folder(str(scene.folder / "elsewhere"))
    assert {stage.stage: (stage.done, stage.tasks) for stage in status(moved).stages} == before
    assert status(moved).state == "done"
    assert scene.digest("elsewhere") == digest
