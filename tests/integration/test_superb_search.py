"""The parts of SUPERB's search in a run: row range, pooled statistics, queries that are too short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.config.loader import config_from_dict
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.io.filesystem import Folder
from swsdist.methods.method import SPANS, create
from swsdist.pipeline.chain_run import StepSelection
from swsdist.store.reading import Store
from swsdist.store.statistics import statistics_in
from tests.support.coded import raises

DIMENSION, POOLED = 6, {"documents_by": "pooled", "queries_by": "pooled"}
SUPERB = {"distance": "cosine-exp", "recurrence": "asymmetric", "row_range": True, "least_query_frames": 5, **POOLED}

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def frames() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    lengths = {f"d{k}": 20 + 11 * k for k in range(7)} | {"q0-1": 9, "q1-1": 4, "q2-1": 14, "q3-1": 12}
    scale = 1 + np.arange(DIMENSION)
    return {key: (scale * rng.normal(size=(n, DIMENSION)) + 1).astype(np.float32) for key, n in lengths.items()}


@pytest.fixture(scope="module")
def folder(frames: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("superb")
    np.savez(folder / "features.npz", **frames)
    (folder / "docs.csv").write_text("\n".join(["doc_id", *(key for key in frames if key[0] == "d"), ""]))
    queries = [key.replace("-", ",") for key in frames if key[0] == "q"]
    (folder / "queries.csv").write_text("\n".join(["query_id,example", *queries, ""]))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    def run(name: str, search: dict[str, object], until: str = "search", **index: object) -> Any:
        features = {"path": str(folder / "features.npz"), "shift": 0.02, "dimension": DIMENSION}
        return swsdist.run(
            {
                "run": str(folder / name),
                "corpus": {"documents": str(folder / "docs.csv"), "queries": str(folder / "queries.csv")},
                "features": {"name": "external", "options": features},
                "index": index,
                "search": search,
                "calibrate": {"steps": ["q-norm"]},
                "executor": {"kind": "serial"},
                "report": {"exports": ["csv"]},
            },
            selection=StepSelection(until=until) if until else None,
        )

    return run


def candidates(folder: Path, name: str) -> list[dict[str, Any]]:
    rows = [
        row
        for file in (folder / name / "tables" / "candidates").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]
    return sorted(rows, key=lambda row: [row[key] for key in ("query_id", "example", "doc_id", "last")])


def test_pooled_statistics_are_of_all_frames_whatever_the_shards(
    run: Run, folder: Path, frames: dict[str, Any]
) -> None:
    for shards in (1, 3):
        run(f"of-{shards}", SUPERB, shards=shards)
    of_shards = [candidates(folder, f"of-{shards}") for shards in (1, 3)]
    assert of_shards[0] == of_shards[1]
    assert {row["query_id"] for row in of_shards[0]} == {"q0", "q2", "q3"}  # q1 is too short
    assert all(row["scale"] == 4095 * len(frames[f"{row['query_id']}-{row['example']}"]) for row in of_shards[0])
    (file,) = (folder / "of-3" / "tables" / "pooled_statistics").glob("*.parquet")
    queries = statistics_in(pq.read_table(file))["pooled", ""]
    pooled = Store(Folder(str(folder / "of-3" / "store"))).statistics()["collection", ""].pooled(queries)
    everything = np.concatenate(list(frames.values())).astype(np.float64)
    assert pooled.frames == len(everything)
    assert pooled.mean == pytest.approx(everything.mean(axis=0))
    assert pooled.variance == pytest.approx(everything.var(axis=0, ddof=1))


def test_too_short_queries_are_named(run: Run, folder: Path) -> None:
    ended = run("named", SUPERB, until="")
    warning = "1 query examples have fewer frames than search.least_query_frames, 5: they are not searched"
    assert any(warning in text for text in ended.report.warnings)
    assert set(ended.detections()["query_id"]) == {"q0", "q2", "q3"}
    run("none-left", {**SUPERB, "least_query_frames": 15})
    assert candidates(folder, "none-left") == []


def test_curve_path_and_spans_have_the_range_of_the_document(run: Run, folder: Path, frames: dict[str, Any]) -> None:
    search = {**SUPERB, "documents_by": "collection", "queries_by": "collection", "least_query_frames": 1}
    run("curves", search)
    store, query = str(folder / "curves" / "store"), str(folder / "q0.npy")
    np.save(query, frames["q0-1"])
    rows = [row for row in candidates(folder, "curves") if row["query_id"] == "q0"]
    assert len({row["doc_id"] for row in rows}) == 7
    for row in rows:
        curve = swsdist.curve(store, query, row["doc_id"], options=search)
        assert curve["cost"][row["last"]] == row["cost"]
        assert curve["score"][row["last"]] == pytest.approx(-row["cost"] / row["scale"])
        path = swsdist.warping_path(store, query, row["doc_id"], (row["last"] + 1) * 0.02, options=search)
        assert path["distance"].sum() * 4095 == pytest.approx(row["cost"])
        assert (path["frame"].iloc[0], path["frame"].iloc[-1]) == (row["first"], row["last"])
    opened = Store(Folder(store))
    method = create(config_from_dict({"run": "r", "corpus": {"documents": "d"}, "search": search}).search)
    example = {"query_id": "q0", "example": 1, "duration": 0.18, "frames": 9, "features": frames["q0-1"].tobytes()}
    table = pa.Table.from_pylist([example], swsdist.core.types.EXAMPLES)
    spans = pa.Table.from_pylist([{name: row[name] for name in SPANS.names} for row in rows], SPANS)
    rescored = method.rescore(method.prepare(table, opened), opened, spans).to_pylist()
    assert [(row["cost"], row["scale"]) for row in rescored] == [(row["cost"], row["scale"]) for row in rows]


def test_what_is_refused(run: Run, folder: Path) -> None:
    def config(**search: object) -> object:
        return config_from_dict({"run": "r", "corpus": {"documents": "d"}, "search": search})

    with raises(families.CONFLICTING_OPTIONS, documents_by="pooled", queries_by="speaker"):
        config(documents_by="pooled")
    with raises(config_codes.NOTHING_NORMALISED, key="documents_by"):
        config(**POOLED, normalise="none")
    with raises(config_codes.FIRST_PASS_CONFLICT, setting="row_range: true"):
        config(row_range=True, first_pass={"name": "coarse"})
    with raises(codes.UNUSED_SEARCH_KEY, key="row_range"):
        create(config(method="windows", row_range=True).search)  # type: ignore[attr-defined]
    run("refused", SUPERB, until="index")
    with raises(families.UNSUPPORTED, where="search.documents_by"):
        swsdist.search(str(folder / "refused"), str(folder / "queries.csv"))
