"""What `examples/` holds runs like anything built in, and nothing else knows of it."""

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
    scene.config.write_text(json.dumps({**json.loads(scene.config.read_text()), **values}))
    return scene


def folder(scene: Any, run: str = "run") -> Folder:
    return Folder(str(scene.folder / run))


@pytest.mark.slow
def test_a_step_after_reduce(scene: Any) -> None:
    plain = scene.run("calibrate.steps=[]", run="plain").detections()["score"].max()
    again = scene.run("calibrate.steps=[]", "chain=reranked").detections()["score"].max()
    assert again == pytest.approx(plain + 5)


@pytest.mark.slow
def test_any_cut_into_shards_gives_the_same_model(scene: Any) -> None:
    kmeans = configured(scene, chain="kmeans", options={"centres": 3})
    kmeans.run("index.shards=1", run="one")
    kmeans.run("index.shards=7", run="seven")
    assert kmeans.digest("one") == kmeans.digest("seven")
    parts = [(run, part.name) for run in ("one", "seven") for part in kmeans.chain_runs[run].table("model").parts]
    one, seven = (json.loads(folder(kmeans, run).read_bytes(name)) for run, name in parts)
    assert one == seven
    assert len({tuple(centre) for centre in one}) == 3
    rounds = Counter(receipt.label for receipt in kmeans.all_receipts("one") if receipt.stage == "proof-kmeans")
    assert len(rounds) > 6, "it took several rounds"
    again = kmeans.run("index.shards=1", run="one")
    assert again.outcome.tasks_done == 0
    assert status(folder(kmeans, "one")).state == "done"


def test_text_is_found_and_decided_without_references(scene: Any, tiny: Path) -> None:
    """Terms in the phones of real speech."""
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    corpus = {name: str(tiny / f"{table}.csv") for name, table in tables.items()}
    corpus["alignments"] = {"words": str(tiny / "align.ctm"), "phones": str(tiny / "phones.ctm")}
    search, calibrate = {"method": "pronunciations"}, {"steps": ["kst"]}
    text = configured(scene, chain="pronunciations", corpus=corpus, search=search, calibrate=calibrate)
    found = text.run("corpus.references=null", run="unscored", until="decide").detections()
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


@pytest.mark.slow
def test_two_runs_with_other_buckets_are_one(scene: Any) -> None:
    """Two searches that differ in distance, buckets and shards, and a chain over both."""
    few, names = "reduce.nbest={per_second: 0, least: %d}", ("one", "other")
    scene.run("reduce.buckets=16", few % 6, run="one")
    scene.run("reduce.buckets=5", "index.shards=3", "search.distance=cosine-squared", few % 3, run="other")
    joined = configured(scene, chain="joined", options={"runs": [str(scene.folder / name) for name in names]})
    chain_run = joined.run("reduce.buckets=4").outcome.chain_run
    places = pa.concat_tables(chain_run.read("places")).to_pandas()
    one = pa.concat_tables(load_chain_run(folder(joined, "one")).read("normalised")).to_pandas()
    key = ["query_id", "doc_id", "channel", "start", "end"]
    filled = sum(receipt.result["filled"] for receipt in chain_run.receipts("join"))
    assert 0 < filled < 2 * len(places), "some were missing, and not all"
    # A score that a run has given itself is taken as it is.
    given = {tuple(row[key]): row["score"] for _, row in one.iterrows()}
    taken = {tuple(row[key]): row["one"] for _, row in places.iterrows() if tuple(row[key]) in given}
    assert taken == given
    assert places[list(names)].notna().sum().sum() > len(places), "what was missing has a score of its method's own"
