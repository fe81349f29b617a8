"""SUPERB's query-by-example search: features, and what dtw-python's asymmetric steps score a pair of query and document."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import swsdist
from swsdist.core.errors import DataError
from swsdist.pipeline.chain_run import StepSelection
from tests.support.golden.runner import Case, needed, place, text, values

NAME = "SUPERB search"

_RAW, _NORMALISED = 0.002, 0.02
_DISTANCES = {"cosine_exp": "cosine-exp", "cosine_neg_log": "cosine-neg-log"}
_DOCUMENT, _QUERY = "doc_", "query_"


def handles(folder: Path) -> bool:
    """Do its parameters have the least frames of a query?"""
    return place(folder, "params.json") is not None and "minimum_query_frames" in values(folder, "params.json")


def run(folder: Path) -> Case:
    """Compare raw and normalised scores and decisions of all pairs; short queries have 0 everywhere."""
    case = Case.of(folder)
    params = values(folder, "params.json")
    with tempfile.TemporaryDirectory() as place:
        raw, normalised = _searched(Path(place), needed(folder, "features.npz"), params)
    for row in csv.DictReader(io.StringIO(text(folder, "expected.csv"))):
        key = row["query_id"], row["doc_id"]
        score = normalised.pop(key, 0.0)
        case.close("raw", raw.get(key, 0.0), float(row["raw"]), _RAW, what=f"raw {key}")
        case.close("score", score, float(row["score"]), _NORMALISED, what=f"score {key}")
        if abs(float(row["score"]) - params["threshold"]) > _NORMALISED:
            case.equal(f"decision {key}", "YES" if score > params["threshold"] else "NO", row["decision"])
    case.equal("pairs that the case lacks", sorted(normalised), [])
    return case


def _searched(folder: Path, features: str, params: dict[str, Any]) -> tuple[dict[Any, float], dict[Any, float]]:
    """Scores before and after z-norm of each pair of query and document."""
    with np.load(features) as arrays:
        frames = dict(arrays)
    queries = [name.removeprefix(_QUERY) for name in frames if name.startswith(_QUERY)]
    documents = [name.removeprefix(_DOCUMENT) for name in frames if name.startswith(_DOCUMENT)]
    keyed = {f"{name}-1": frames[_QUERY + name] for name in queries} | {
        name: frames[_DOCUMENT + name] for name in documents
    }
    np.savez(folder / "features.npz", **keyed)
    for kind, column, names in (("documents", "doc_id", documents), ("queries", "query_id", queries)):
        (folder / f"{kind}.csv").write_text("\n".join([column, *names, ""]))
    pooled = {"documents_by": "pooled", "queries_by": "pooled"}
    config = {
        "run": str(folder / "run"),
        "corpus": {kind: str(folder / f"{kind}.csv") for kind in ("documents", "queries")},
        "features": {
            "name": "external",
            "options": {"path": str(folder / "features.npz"), "shift": 0.02, "dimension": params["dimension"]},
        },
        "search": {
            "distance": _DISTANCES.get(params["distance"], params["distance"]),
            "recurrence": params["step_pattern"],
            "row_range": params["minmax_norm"],
            "least_query_frames": params["minimum_query_frames"],
            "candidates": {"least": 1, "per_second": 0},
            **(pooled if params["feature_normalization"] else {"normalise": "none"}),
        },
        "reduce": {"nbest": {"least": len(documents), "per_second": 0}},
        "calibrate": {"steps": ["q-norm"]},
        "executor": {"kind": "serial"},
        "report": {"exports": []},
    }
    failures = swsdist.run(config, selection=StepSelection(until="normalise")).outcome.failures
    if failures:
        raise DataError(str(failures[0]))
    return _scores(folder / "run", "detections"), _scores(folder / "run", "normalised")


def _scores(run: Path, table: str) -> dict[Any, float]:
    """Scores of a table of a run, by query and document."""
    rows = [row for file in (run / "tables" / table).glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    scores = {(row["query_id"], row["doc_id"]): row["score"] for row in rows}
    if len(scores) != len(rows):
        raise DataError("a pair has several detections", where=table)
    return scores
