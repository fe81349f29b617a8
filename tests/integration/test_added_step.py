"""A step after reduce, by a file and an entry: a run, a search, the server, a sweep and fusion execute it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import swsdist
from examples import reranked
from swsdist.chains.check import assemble
from swsdist.config import Config
from swsdist.core.codes import searcher as codes
from swsdist.pipeline.chain import Chain, Context
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import ChainEntry
from swsdist.registry.registries import CHAINS
from swsdist.searcher.searcher import Searcher
from swsdist.server.archive import Archive
from swsdist.stages.reduce import Reduce
from swsdist.stages.steps import steps
from tests.support.coded import says


class Rerank(reranked.Rerank):
    """Prefers every second document, by more than scores differ."""

    def run(self, task: Task[str], context: Context) -> TaskOutput:
        table = context.read(task.payload)
        queries = set(table["query_id"].to_pylist())
        assert context.cached("queries", task.payload, lambda: queries) == queries
        odd = pa.array([5.0 * (int(name[-1]) % 2) for name in table["doc_id"].to_pylist()], pa.float64())
        place = table.schema.get_field_index("score")
        table = table.set_column(place, table.schema.field(place), pc.add(table["score"], odd))
        order = [("query_id", "ascending"), ("score", "descending"), ("doc_id", "ascending"), ("start", "ascending")]
        return self.done(task, context, table.sort_by(order))


class Judged(Rerank):
    """The same, but it needs references."""

    name = "judged"
    needs_run = "references"


UNFITTED = "calibrate.fit=none", "corpus.examples=all"
ADDED = {"rerank": Rerank(), "judged": Judged()}


def build(config: Config, ledger: Ledger) -> Chain:
    stages = list(steps(config))
    (place,) = (k for k, stage in enumerate(stages) if isinstance(stage, Reduce) and stage.name == Reduce.name)
    stages.insert(place + 1, ADDED[config.chain])
    return assemble(config, ledger, stages)


@pytest.fixture(autouse=True)
def chains() -> Iterator[None]:
    for name in ADDED:
        CHAINS.add(name, ChainEntry(f"{__name__}:build", 1, searches=True))
    yield
    for name in ADDED:
        CHAINS.remove(name)


COLUMNS = ["query_id", "doc_id", "channel", "start", "end", "score"]


def rows(table: Any, top: int) -> list[dict[str, Any]]:
    frame = table if not isinstance(table, pa.Table) else table.to_pandas()
    ordered = frame.sort_values(["query_id", "score"], ascending=[True, False], kind="stable")
    found: list[dict[str, Any]] = ordered.groupby("query_id").head(top)[COLUMNS].sort_values(COLUMNS).to_dict("records")
    return found


@pytest.mark.slow
def test_a_step_after_reduce_is_everywhere(scene: Any) -> None:
    plain = scene.run(*UNFITTED, run="plain")
    done = scene.run("chain=rerank", *UNFITTED)
    run, queries = str(scene.folder / "run"), str(scene.corpus / "queries.csv")
    final = rows(done.detections(), 3)
    assert final != rows(plain.detections(), 3)
    assert rows(swsdist.search(run, queries, top=3), 3) == final
    with Searcher(run) as searcher:
        example = str(scene.corpus / "queries" / "q001_1.wav")
        assert searcher.search([example], top=1).to_dict("records")[0]["score"] > 5
        some = searcher.among(searcher.store.documents(columns=["doc_id", "channel"]).slice(0, 3))
        assert max(row["score"] for row in rows(some.search(queries, top=3), 3)) > 5
    archive = Archive(run, options={"examples": "best"})
    assert rows(archive.searcher.search(queries, top=3), 3) == final
    archive.close()

    sweep = scene.folder / "sweep.yaml"
    points = {"list": [{"reduce.overlap": 0.5}]}
    said = {"chain": "rerank", "corpus.examples": "all"}
    values = {"config": str(scene.config), "run": str(scene.folder / "sweep"), "set": said}
    sweep.write_text(json.dumps({**values, "points": points, "measures": ["mtwv"], "objective": "mtwv"}))
    first = swsdist.sweep(sweep).table.to_pylist()[0]
    assert rows(swsdist.search(str(scene.folder / "sweep"), queries, top=3), 3) == final
    again = scene.run("chain=rerank", "corpus.examples=all")
    assert first["mtwv"] == again.measures()["mtwv"] != plain.measures()["mtwv"]

    systems = [{"name": name, "run": str(scene.folder / name)} for name in ("run", "other")]
    options = json.dumps({"systems": systems, "missing": "rescore", "scores": "normalised"})
    scene.run(*UNFITTED, "search.distance=cosine-squared", run="other")
    fused = scene.run("chain=fuse", f"options={options}", run="fused").outcome.chain_run
    rescored = pa.concat_tables(fused.read("rescored")).to_pandas()
    odd = rescored["doc_id"].str[-1].astype(int) % 2 == 1
    assert ((rescored["score"] > 20) == (odd & (rescored["system"] == "run"))).all()
    assert set(rescored["system"]) == {"run", "other"}


def test_a_step_that_needs_a_run_is_named(scene: Any) -> None:
    scene.run("chain=judged", *UNFITTED, until="decide")
    run, queries = str(scene.folder / "run"), str(scene.corpus / "queries.csv")
    with Searcher(run) as searcher:
        (warning,) = searcher.setup.warnings
        assert "judged" in warning
        assert says(warning, codes.STEPS_LEFT_OUT)
    plain = scene.run(*UNFITTED, run="plain", until="decide")
    with pytest.warns(UserWarning, match="judged"):
        assert rows(swsdist.search(run, queries, top=3), 3) == rows(plain.detections(), 3)
