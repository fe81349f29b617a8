"""A searcher finds what a run finds in the same store, byte for byte, and again what it found before."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray

import swsdist
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.pipeline.chain_run import StepSelection
from swsdist.searcher.searcher import Hits, Searcher
from swsdist.store.reading import Store
from tests.support.coded import raises

SHARDS, PLAIN = ("index.shards=3",), {"steps": ["q-norm"]}
EXAMPLES = ("corpus.examples=all", "report.exports=[]")
LONG = {"name": "mfcc", "track": "long", "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}}
SOUNDS = {
    "name": "mfcc",
    "track": "sounds",
    "transforms": [{"name": "gmm", "options": {"components": 4, "iterations": 1}}],
}
TRACKS = f"features={json.dumps([{'name': 'mfcc'}, LONG, SOUNDS])}"
STREAMS = [{"track": "long", "distance": "euclidean", "weight": 2}, {"track": "mfcc", "columns": [13, 26]}]
DROP = {"track": "sounds", "columns": [0, 1], "above": 0.5}
COARSE = {"name": "coarse", "factor": 2, "windows": {"least": 3, "per_second": 0}, "sample": 0}
QUANTISED = {"name": "quantised", "factor": 3, "over": "document", "sample": 0}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests of the small corpus share what they index."""
    return tmp_path_factory.mktemp("stores")


def found_by_run(scene: Any, *sets: str, step: str = "normalise", table: str = "normalised") -> tuple[pa.Table, int]:
    """What a run found, as a searcher gives it, and how many detections it keeps of a query."""
    done = scene.run(*EXAMPLES, *sets, selection=StepSelection(until=step))
    parts = list(done.outcome.chain_run.read(table))
    assert len(parts) > 1
    found = pa.concat_tables(parts).sort_by("query_id")  # stable: best first within each
    config = load_config(scene.config, [*EXAMPLES, *sets])
    store = swsdist.open_store(config.index.store or str(scene.folder / "run" / "store"))
    return found.drop_columns(["decision", "system"]), config.reduce.nbest.count(store.manifest.counts["seconds"])


def table_of(searcher: Searcher, scene: Any, top: int) -> tuple[pa.Table, list[Hits]]:
    parts = list(searcher.stream(str(scene.corpus / "queries.csv"), top))
    return parts[-1].table(), parts


def found_together(searcher: Searcher, scene: Any, top: int) -> pa.Table:
    """Each query's, by a thread of its own, all at once."""
    queries: dict[str, list[Any]] = {}
    for row in searcher.query_rows(str(scene.corpus / "queries.csv")):
        queries.setdefault(row["query_id"], []).append({**row, "query_id": "word"})

    def ask(query: str) -> pa.Table:
        *_, last = searcher.stream(queries[query], top)
        table = last.table()
        return table.set_column(0, "query_id", pa.array([query] * table.num_rows, pa.string()))

    with ThreadPoolExecutor(len(queries)) as people:
        return pa.concat_tables(people.map(ask, sorted(queries)))


@pytest.mark.parametrize(
    "sets",
    [
        (),
        ("search.examples=mean", "search.documents_by=speaker", "queries.trim=none", "reduce.overlap=0.2"),
        (
            "search.examples=template",
            TRACKS,
            f"search.streams={json.dumps(STREAMS)}",
            f"search.drop={json.dumps(DROP)}",
        ),
        ("search.method=windows", "search.distance=cosine-squared", "search.documents_by=collection"),
        (f"search.first_pass={json.dumps(COARSE)}", "search.queries_by=collection"),
        (f"search.first_pass={json.dumps(QUANTISED)}", "reduce.nbest.least=3"),
        ("search.recurrence=non-segmental", "search.distance=euclidean", "search.skip_silence=true"),
        ("search.parts=true", "search.parts_gap=0.3", "search.parts_least=0.1", "search.skip_silence=true"),
    ],
    ids=["dtw", "mean", "tracks", "windows", "coarse", "quantised", "non-segmental", "parts"],
)
def test_what_a_run_finds(scene: Any, stores: Path, sets: tuple[str, ...]) -> None:
    found, top = found_by_run(scene, f"index.store={stores}/{'tracks' if TRACKS in sets else 'plain'}", *SHARDS, *sets)
    assert found.num_rows > 10
    for memory in (500_000,) if sets else (1 << 30, 500_000, 0):
        with Searcher(str(scene.folder / "run"), memory=memory) as searcher:
            first, parts = table_of(searcher, scene, top)
            assert first.equals(found)
            assert table_of(searcher, scene, top)[0].equals(found)
            assert (parts[0].part, parts[-1].part) == (0, 1)
            assert len(parts) == (2 if "coarse" in str(sets) else 4)
    with Searcher(str(scene.folder / "run"), shared=True) as searcher:
        assert found_together(searcher, scene, top).cast(found.schema).equals(found)


def test_other_steps_before_the_first_that_is_fitted(scene: Any, stores: Path) -> None:
    run, store = str(scene.folder / "run"), f"{stores}/plain"
    for step in ("m-norm", "speaker-norm"):
        found, top = found_by_run(scene, f"index.store={store}", *SHARDS, f"calibrate.steps=[{step}]")
        for searcher in (Searcher(run), Searcher(store, calibrate={"steps": [step]})):
            assert table_of(searcher, scene, top)[0].equals(found)
            assert not searcher.setup.warnings
            assert searcher.scores == f"after {step}"
        normed = [table_of(searcher, scene, top)[0] for searcher in (Searcher(run, calibrate=PLAIN), Searcher(store))]
        assert normed[0].equals(normed[1])
        assert not normed[0].equals(found)


def test_steps_of_a_run_that_only_a_run_has(scene: Any, stores: Path) -> None:
    """Those before them are used, and the others are told, unless the caller names steps."""
    query, store = str(scene.corpus / "queries" / "q001_1.wav"), f"{stores}/plain"
    for steps, used in (
        (["speaker-norm", "logistic", "kst"], ["speaker-norm"]),
        (["zt-norm"], ["q-norm"]),
        (["logistic"], ["q-norm"]),
        ([], []),
    ):
        run = str(scene.folder / "-".join(["run", *steps]))
        scene.run(f"index.store={store}", *SHARDS, f"calibrate.steps={json.dumps(steps)}", run=run, until="index")
        searcher = Searcher(run)
        assert list(searcher.calibrate.steps) == used
        wanted = Searcher(store, calibrate={"steps": used}).search(query)
        left_out = ", ".join(step for step in steps if step not in used)
        with pytest.warns(UserWarning, match=f"run's steps {left_out} need") if steps else nullcontext():
            assert searcher.search(query).equals(wanted)
        assert bool(searcher.setup.warnings) == bool(steps)
        assert not Searcher(run, calibrate={"steps": used}).setup.warnings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "options"),
    [(["q-norm", "logistic"], {}), (["q-norm", "llr"], {"llr": {"covariates": ["duration", "speech", "mean", "gap"]}})],
)
def test_steps_that_a_run_has_fitted(scene: Any, steps: list[str], options: dict[str, Any]) -> None:
    """With what they want to know of the examples, of all candidates, and of the list."""
    sets = (f"calibrate.steps={json.dumps(steps)}", f"calibrate.options={json.dumps(options)}")
    scene.run(*EXAMPLES, *sets, run="fitted")
    fitted = str(scene.folder / "fitted")
    found, top = found_by_run(scene, *sets, f"calibrate.fit={fitted}", step="decide", table="scored")
    searcher = Searcher(str(scene.folder / "run"), calibrate={"steps": steps, "options": options, "fit": fitted})
    assert table_of(searcher, scene, top)[0].equals(found)


def test_what_is_held_is_read_once(finished: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    blocks = Store.blocks

    def watched(self: Store, shard: str, *arguments: Any) -> Any:
        if self.memory is not None or self.folder.root.endswith("run/store"):  # a query has a store of its own
            read.append(shard)
        return blocks(self, shard, *arguments)

    monkeypatch.setattr(Store, "blocks", watched)
    folder, query = str(finished.folder / "run"), str(finished.corpus / "queries" / "q001_1.wav")
    with Searcher(folder) as searcher:
        shards = len(searcher.store.manifest.shards)
        searcher.search(query)
        assert len(read) == shards
        held = searcher.store.memory
        assert held is not None
        used = 2_000_000_000 - held.room
        searcher.search(query)
        assert len(read) == shards
    assert used > searcher.store.manifest.counts["frames"] * 39 * 4
    for memory, times in ((0, shards), (used // 2, 1)):
        with Searcher(folder, memory=memory) as searcher:
            searcher.search(query)
            read.clear()
            searcher.search(query)
            assert times <= len(read) <= shards
            assert memory == 0 or (searcher.store.memory and searcher.store.memory.room >= 0)


def test_hits_come_while_shards_are_searched(scene: Any) -> None:
    """What is told in between is of the shards so far, and the last is the whole."""
    scene.run("index.shards=4", selection=StepSelection(until="index"))
    query = str(scene.corpus / "queries" / "q001_1.wav")
    for examples in ("best", "mean"):
        with Searcher(str(scene.folder / "run"), options={"examples": examples}) as searcher:
            told = [(hits.part, len(hits.table()["doc_id"].unique()), hits) for hits in searcher.stream(query, 100)]
            searched, documents, (*_, hits) = zip(*told, strict=True)
            assert list(searched) == sorted(searched)
            assert (searched[0], searched[-1]) == (0, 1)
            assert list(documents) == sorted(documents)
            assert documents[0] < documents[-1]
            assert hits.table().to_pandas().equals(searcher.search(query, 100))


def test_a_store_is_marked_as_long_as_it_is_searched(finished: Any) -> None:
    marks = finished.folder / "run" / "store" / "readers"
    searcher = swsdist.Searcher(str(finished.folder / "run"))
    assert len(list(marks.iterdir())) == 1
    searcher.close()
    assert not marks.exists()
    with swsdist.Searcher(str(finished.folder / "run" / "store")):
        assert marks.exists()
    assert not marks.exists()
    searcher = swsdist.Searcher(str(finished.folder / "run"))
    del searcher
    assert not marks.exists()


def test_steps_that_cannot_be(finished: Any) -> None:
    for calibrate, complaint in (
        ({"steps": ["zt-norm"]}, r"step zt-norm .* \[missing-input\]"),
        ({"steps": ["q-norm", "logistic", "kst"], "fit": "x"}, r"step kst .* \[missing-input\]"),
        ({"steps": ["q-norm", "logistic"]}, "unfitted"),
        ({"steps": ["q-norm", "logistic"], "fit": "nowhere"}, "missing-file"),
        ({"steps": ["power"]}, "mismatch"),
        ({"stepz": []}, "unknown-key"),
    ):
        with pytest.raises(ConfigError, match=complaint) as caught:
            Searcher(str(finished.folder / "run"), calibrate=calibrate)
        assert caught.value.remedy
        assert not (finished.folder / "run" / "store" / "readers").exists()


@pytest.mark.ray
def test_on_actors(finished: Any, cluster: Any, tmp_path: Path) -> None:
    """They find the same, again and again, also after one of them has died; what is wrong with a search is told as it is."""
    finished.run(
        "index.shards=5", "index.store=" + str(tmp_path / "store"), selection=StepSelection(until="index"), run="five"
    )
    store, queries = str(tmp_path / "store"), str(finished.corpus / "queries.csv")
    executor = dict(one.removeprefix("executor.").split("=", 1) for one in cluster.sets)
    options = {"examples": "mean"}
    with Searcher(store, options=options) as here, Searcher(store, options=options, executor=executor) as there:
        wanted = here.search(queries)
        assert there.search(queries).equals(wanted)
        parts = [hits.part for hits in there.stream(queries)]
        assert (len(parts), parts[0], parts[-1]) == (6, 0, 1)
        next(iter(there.stream(queries)))  # the rest of it is called off
        assert there._shards is not None
        os.kill(ray.get(there._shards._actors[0].__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
        assert there.search(queries).equals(wanted)
    wrong = {"streams": [{"track": "other"}]}
    with Searcher(store, options=wrong, executor=executor) as there, raises(families.UNKNOWN_NAME, track="other"):
        there.search(queries)
