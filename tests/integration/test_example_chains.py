"""What `examples/` holds runs like anything built in, and nothing else knows of it; many plans in one ledger."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import load_chain_run, status
from swsdist.registry.registries import CHAINS, METHODS

POINTS = """[swsdist.chains]
kmeans = examples.kmeans:CHAIN
pronunciations = examples.pronunciations:CHAIN
joined = examples.joined:CHAIN
reranked = examples.reranked:CHAIN
[swsdist.methods]
pronunciations = examples.pronunciations:METHOD
"""
RAY = ("executor.kind=ray", "executor.workers=2")


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples as another package would have them: by entry points, here and in the processes of a test."""
    place = tmp_path / "plugins"
    info = place / "examples-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1\n")
    (info / "entry_points.txt").write_text(POINTS)
    env["PYTHONPATH"] = f"{place}:{env['PYTHONPATH']}"
    monkeypatch.syspath_prepend(str(place))
    importlib.invalidate_caches()
    for registry in (CHAINS, METHODS):
        registry.__dict__.pop("_added", None)
    yield
    monkeypatch.undo()
    for registry in (CHAINS, METHODS):
        registry.__dict__.pop("_added", None)


def configured(scene: Any, **values: Any) -> Any:
    """The scene with another config."""
    scene.config.write_text(json.dumps({**json.loads(scene.config.read_text()), **values}))
    return scene


def folder(scene: Any, run: str = "run") -> Folder:
    return Folder(str(scene.folder / run))


# -- a step after reduce ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_step_after_reduce(own_corpus: Any) -> None:
    plain = own_corpus.run("calibrate.steps=[]", run="plain").detections()["score"].max()
    again = own_corpus.run("calibrate.steps=[]", "chain=reranked").detections()["score"].max()
    assert again == pytest.approx(plain + 5)


# -- k-means in rounds ------------------------------------------------------------------------------------------------


@pytest.fixture
def kmeans(own_corpus: Any) -> Any:
    """Eight documents, three centres."""
    return configured(own_corpus, chain="kmeans", options={"centres": 3})


def model(scene: Any, run: str = "run") -> list[list[int]]:
    chain_run = load_chain_run(folder(scene, run))
    (part,) = chain_run.table("model").parts
    found: list[list[int]] = json.loads(folder(scene, run).read_bytes(part.name))
    return found


@pytest.mark.slow
def test_any_cut_into_shards_gives_the_same_model(kmeans: Any) -> None:
    kmeans.run("index.shards=1", run="one")
    kmeans.run("index.shards=7", run="seven")
    assert model(kmeans, "one") == model(kmeans, "seven")
    assert kmeans.digest("one") == kmeans.digest("seven")
    assert len({tuple(centre) for centre in model(kmeans, "one")}) == 3
    rounds = Counter(receipt.label for receipt in kmeans.all_receipts("one") if receipt.stage == "proof-kmeans")
    assert len(rounds) > 6, "it took several rounds"
    again = kmeans.run("index.shards=1", run="one")
    assert again.outcome.tasks_done == 0
    assert status(folder(kmeans, "one")).state == "done"


def rounds(scene: Any) -> int:
    """Tasks of rounds that are done."""
    return sum(receipt.stage == "proof-kmeans" for receipt in scene.all_receipts())


@pytest.mark.slow
def test_a_kill_between_rounds_changes_nothing(kmeans: Any) -> None:
    kmeans.run("index.shards=3", run="whole")
    for target in (5, 11):
        process = kmeans.start("index.shards=3")
        kmeans.wait(lambda t=target: rounds(kmeans) >= t, process)
        process.kill()
        process.communicate()
        assert not list((kmeans.folder / "run" / "store").glob("models/kmeans-*")), "nothing is pinned before it stands"
        assert "fit" in {stage.stage for stage in status(folder(kmeans)).stages}
    before = kmeans.receipts()
    last = kmeans.go("index.shards=3")
    assert last.returncode == 0, last.stderr
    assert before.items() <= kmeans.receipts().items(), "a round that was done was done again"
    assert kmeans.digest() == kmeans.digest("whole")


@pytest.mark.ray
def test_rounds_on_ray(kmeans: Any) -> None:
    kmeans.run(run="serial")
    done = kmeans.go(*RAY, "index.shards=7")
    assert done.returncode == 0, done.stderr
    assert kmeans.digest() == kmeans.digest("serial")


# -- text in a store of phones ----------------------------------------------------------------------------------------


@pytest.fixture
def text(scene: Any, tiny: Path) -> Any:
    """Terms in the phones of real speech."""
    corpus = {name: str(tiny / f"{table}.csv") for name, table in
              (("documents", "docs"), ("queries", "queries"), ("references", "refs"))}  # fmt: skip
    corpus["alignments"] = {"words": str(tiny / "align.ctm"), "phones": str(tiny / "phones.ctm")}
    search, calibrate = {"method": "pronunciations"}, {"steps": ["kst"]}
    return configured(scene, chain="pronunciations", corpus=corpus, search=search, calibrate=calibrate)


def test_text_is_found_and_decided_without_references(text: Any) -> None:
    found = text.run("corpus.references=null", run="unscored").detections()
    assert len(found) >= 42
    assert found["decision"].notna().all(), "KST decides by the posteriors alone"
    result = text.run()
    # Every word of the references stands in the alignment that the pronunciations are of.
    assert result.measures()["stwv"] == 1.0
    assert result.measures()["calibration"] == "own"
    assert result.detections()[["score", "decision"]].equals(found[["score", "decision"]])
    assert result.detections()["cost"].min() >= -(1 << 40), "sums of posteriors are clipped at 1"
    queries = load_chain_run(folder(text)).chain.inputs.corpus.queries
    assert "path" in queries.column_names
    page = (text.folder / "run" / "report.html").read_text()
    assert "pronunciations" in page


# -- two runs joined --------------------------------------------------------------------------------------------------


@pytest.fixture
def joined(scene: Any) -> Any:
    """Two searches that differ in distance, buckets and shards, and a chain over both."""
    few = "reduce.nbest={per_second: 0, least: %d}"
    scene.run("reduce.buckets=16", few % 6, run="one")
    scene.run("reduce.buckets=5", "index.shards=3", "search.distance=cosine-squared", few % 3, run="other")
    runs = [str(scene.folder / name) for name in ("one", "other")]
    return configured(scene, chain="joined", options={"runs": runs})


@pytest.mark.slow
def test_two_runs_with_other_buckets_are_one(joined: Any) -> None:
    result = joined.run("reduce.buckets=4")
    chain_run = result.outcome.chain_run
    places = pa.concat_tables(chain_run.read("places")).to_pandas()
    sides = [
        pa.concat_tables(load_chain_run(folder(joined, name)).read("normalised")).to_pandas()
        for name in ("one", "other")
    ]
    key = ["query_id", "doc_id", "channel", "start", "end"]
    assert set(map(tuple, sides[0][key].to_numpy())) <= set(map(tuple, places[key].to_numpy()))
    filled = sum(receipt.result["filled"] for receipt in chain_run.receipts("join"))
    assert 0 < filled < 2 * len(places), "some were missing, and not all"
    # A score that a run has given itself is taken as it is.
    given = {tuple(row[key]): row["score"] for _, row in sides[0].iterrows()}
    assert all(given[tuple(row[key])] == row["one"] for _, row in places.iterrows() if tuple(row[key]) in given)
    assert places[["one", "other"]].notna().sum().sum() > len(places), (
        "what was missing has a score of its method's own"
    )


# -- many plans -------------------------------------------------------------------------------------------------------
