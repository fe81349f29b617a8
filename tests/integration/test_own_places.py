"""Queries that were cut from what is searched: their own places are no hits and no true occurrences, or both are kept."""

from __future__ import annotations

import csv
from typing import Any

import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.reduce.spans import outside_places, source_places
from swsdist.stages.buckets import Measured
from tests.support.coded import raises


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """Queries are the first true occurrence of each, by the name of its document."""
    with (own_corpus.corpus / "refs.csv").open(newline="") as file:
        references = list(csv.DictReader(file))
    first = {row["query_id"]: row for row in reversed(references)}
    for name, key in (("named", "doc_id"), ("filed", "path")):
        with (own_corpus.corpus / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["query_id", "doc_id", "path", "start", "end"], restval="")
            writer.writeheader()
            for query, row in first.items():
                value = row["doc_id"] if key == "doc_id" else f"audio/{row['doc_id']}.flac"
                writer.writerow({"query_id": query, key: value, "start": row["start"], "end": row["end"]})
    own_corpus.first = first
    own_corpus.count = len(references)
    return own_corpus


def at_own(scene: Any, result: Any) -> int:
    """Detections that overlap with their query's own place by more than half."""
    found = 0
    for row in result.detections().to_dict("records"):
        own = scene.first[row["query_id"]]
        start, end = float(own["start"]), float(own["end"])
        common = min(end, row["end"]) - max(start, row["start"])
        found += row["doc_id"] == own["doc_id"] and common > min(end - start, row["end"] - row["start"]) / 2
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "option", "left_out"),
    [("named", None, True), ("named", "keep", False), ("filed", None, False), ("filed", "leave-out", True)],
)
def test_own_places(scene: Any, table: str, option: str | None, left_out: bool) -> None:
    sets = [f"corpus.queries={scene.corpus}/{table}.csv", "calibrate.fit=none", "report.exports=[csv]"]
    result = scene.run(*sets, *([f"corpus.own_places={option}"] if option else []), run=f"{table}-{option}")
    assert at_own(scene, result) == (0 if left_out else len(scene.first))
    (measured,) = result.outcome.chain_run.results("measures", Measured)
    true = measured.point["true"]
    assert true == scene.count - (len(scene.first) if left_out else 0)
    told = [one for one in result.outcome.chain_run.notices() if "cut from" in one]
    summary = [one for one in result.outcome.chain_run.chain.summary(result.outcome.chain_run) if "cut from" in one]
    assert (bool(told), bool(summary)) == (not left_out, left_out)


def test_of_trials_that_are_documents_none_is_left_out(scene: Any) -> None:
    """Which part of the query's own document is meant nobody says."""
    sets = [
        f"corpus.queries={scene.corpus}/named.csv",
        "calibrate.fit=none",
        "report.exports=[]",
        "score.trials=document",
    ]
    assert at_own(scene, scene.run(*sets)) == len(scene.first)
    with raises(families.UNSUPPORTED):
        scene.run(*sets, "corpus.own_places=leave-out")


def test_a_place_is_left_out_on_all_channels() -> None:
    """The other channel has the same sound, softly."""
    documents = pa.table({"doc_id": ["tape", "tape"], "channel": [1, 2], "path": ["tape.wav"] * 2})
    query = {"query_id": "q", "doc_id": "tape", "path": None, "channel": 2, "start": 3.0, "end": 4.0}
    places = source_places([query], documents, by_path=False)
    assert places == {("q", "tape"): [(3.0, 4.0)]}
    found = pa.table(
        {"query_id": ["q", "q", "q", "p"], "doc_id": ["tape"] * 4, "channel": [1, 2, 2, 2]}
        | {"start": [3.1, 2.9, 3.6, 3.0], "end": [4.1, 3.9, 4.6, 4.0]}
    )
    assert outside_places(found, places)["start"].to_pylist() == [3.6, 3.0]
