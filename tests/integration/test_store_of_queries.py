"""Queries are a store like that of the documents: the same code, recipes and tracks, read by the same functions."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
import soundfile

from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.methods.query.extraction import GROUP_MOST
from swsdist.pipeline.status import status
from swsdist.stages.queries import examples_in
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.reading import Store

LONG = {"name": "mfcc", "track": "long", "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}}
BOTH = f"features={json.dumps([{'name': 'mfcc'}, LONG])}"
STREAMS = f"search.streams={json.dumps([{'track': 'long'}, {'track': 'mfcc', 'columns': [13, 26]}])}"


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def ask(scene: Any, rows: list[dict[str, str]]) -> None:
    """Let these be the queries; there are no references to them."""
    with (scene.corpus / "queries.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "example", "path", "doc_id", "start", "end"], restval="")
        writer.writeheader()
        writer.writerows(rows)
    with (scene.corpus / "refs.csv").open("w") as file:
        file.write("query_id,doc_id,start,end\n")


def stores(scene: Any) -> tuple[Store, Store]:
    """Of the documents, and of the queries."""
    run = scene.folder / "run"
    return Store(Folder(str(run / "store"))), Store(Folder(str(run / "queries")))


@pytest.mark.slow
def test_a_document_and_a_query_of_it_have_the_same_frames(scene: Any) -> None:
    place = {"doc_id": "d002", "start": "1.0", "end": "2.5"}
    ask(
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
    ask(scene, [first])
    scene.run()
    _, before = stores(scene)
    ask(scene, [first, {"query_id": "two", "example": "1", "path": str(path[1])}])
    scene.run()
    _, after = stores(scene)
    assert after.documents()["doc_id"].to_pylist() == ["one", "two"]
    assert before.features("one").tobytes() == after.features("one").tobytes(), "an old state can still be read"
    assert after.manifest.fingerprint != before.manifest.fingerprint


@pytest.mark.until("queries")
def test_what_one_extractor_rejects_is_rejected_once(scene: Any) -> None:
    path = sorted((scene.corpus / "queries").iterdir())[0]
    samples, rate = soundfile.read(path)
    soundfile.write(scene.corpus / "queries" / "short.wav", samples[: round(0.035 * rate)], rate)
    good = {"query_id": "good", "example": "1", "path": str(path.relative_to(scene.corpus))}
    ask(scene, [{"query_id": "bad", "example": "1", "path": "queries/short.wav"}, good])
    outcome = scene.run(BOTH, STREAMS, "queries.trim=none").outcome
    (row,) = scene.rejected()
    assert (row["kind"], row["id"], row["part"], row["reason"]) == ("query", "bad", 1, "too-short")
    _, queries = stores(scene)
    for track in ("mfcc", "long"):
        assert queries.documents(track=track)["doc_id"].to_pylist() == ["good"]
    assert queries.manifest.counts["documents"] == 1
    assert queries.rejected()["id"].to_pylist() == ["bad"]
    (example,) = examples_in(outcome.chain_run).to_pylist()
    lengths = [len(queries.features("good", 1, track)) for track in ("mfcc", "long")]
    assert example["frames"] == min(lengths) < max(lengths)


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


@pytest.mark.slow
def test_a_report_tells_of_the_queries_that_were_asked(scene: Any) -> None:
    """Queries of which none can be used lead to no search: only their own tasks tell two plans apart."""
    path = str(sorted((scene.corpus / "queries").iterdir())[0])
    for turn in ("a", "b", "a", "b"):
        groups = [{"query_id": f"good{k:03d}", "example": "1", "path": path} for k in range(GROUP_MOST)]
        # Ids that sort last are a group of their own.
        ask(scene, [*groups, *({"query_id": f"zz{k}", "example": "1", "path": f"none-{turn}.wav"} for k in range(3))])
        scene.run("calibrate.fit=none", "corpus.references=null", "report.exports=[]", "reduce.nbest.least=2")
        bad = {row["path"].rpartition("/")[2] for row in scene.report()["rejected_inputs"]}
        assert bad == {f"none-{turn}.wav"}
        assert {row["id"] for row in stores(scene)[1].rejected().to_pylist()} == {"zz0", "zz1", "zz2"}


def test_a_run_that_was_moved(scene: Any) -> None:
    scene.run()
    before = {stage.stage: (stage.done, stage.tasks) for stage in status(Folder(str(scene.folder / "run"))).stages}
    digest = scene.digest()
    (scene.folder / "run").rename(scene.folder / "elsewhere")
    moved = Folder(str(scene.folder / "elsewhere"))
    assert {stage.stage: (stage.done, stage.tasks) for stage in status(moved).stages} == before
    assert status(moved).state == "done"
    assert scene.digest("elsewhere") == digest
