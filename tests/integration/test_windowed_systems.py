"""The systems of the ALBAYZIN evaluation that search in windows, by their configs: the same bytes for any cut."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.tables import read_rows

SYSTEMS = Path(__file__).resolve().parents[2] / "configs" / "systems"


@pytest.fixture
def sets(small_corpus: Path, tmp_path: Path) -> list[str]:
    """The corpus and the weights of a recogniser."""
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    corpus = {table: str(small_corpus / f"{file}.csv") for table, file in tables.items()}
    make_recogniser(str(tmp_path / "weights"), wide=True)
    return [f"corpus={json.dumps(corpus)}", "executor.kind=serial"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mfcc-fingerprint", "phoneme-posteriorgram"])
def test_a_system_runs_and_no_cut_changes_a_byte(sets: list[str], tmp_path: Path, name: str) -> None:
    if name == "phoneme-posteriorgram":
        sets.append(f"features.options.weights={tmp_path / 'weights'}")
    found = []
    for k, more in enumerate([[], ["index.shards=5", "reduce.buckets=3"]]):
        run = str(tmp_path / f"run{k}")
        made = swsdist.run(SYSTEMS / f"{name}.yaml", sets=[f"run={run}", *sets, *more])
        assert made.measures()["mtwv"] is not None
        found.append(swsdist.digest(run))
    assert found[0] == found[1]
    # Of each query and document, what was found ends half a second apart, and more than dtw's two a document are kept.
    ends: dict[tuple[str, str], list[int]] = {}
    for row in pq.read_table(tmp_path / "run0" / "tables" / "candidates").to_pylist():
        ends.setdefault((row["query_id"], row["doc_id"]), []).append(row["last"])
    assert max(map(len, ends.values())) > 2
    assert all(after - before >= 50 for several in ends.values() for before, after in pairwise(sorted(several)))


@pytest.mark.slow
def test_the_papers_fusion_runs_with_its_rules(sets: list[str], tmp_path: Path) -> None:
    few = "reduce.nbest={least: 15, per_second: 0.1}"  # there are 52 trials of a query
    weights = f"features.options.weights={tmp_path / 'weights'}"
    systems = [
        {"name": "fingerprint", "config": str(SYSTEMS / "mfcc-fingerprint.yaml"), "set": [few]},
        {"name": "posteriorgram", "config": str(SYSTEMS / "phoneme-posteriorgram.yaml"), "set": [few, weights]},
    ]
    run = tmp_path / "run"
    made = swsdist.run(
        SYSTEMS / "fusion-paper.yaml", sets=[*sets, f"run={run}", f"options.systems={json.dumps(systems)}"]
    )
    assert made.measures()["mtwv"] is not None
    found = json.loads((run / "report.json").read_text())
    assert [one["system"] for one in found["fusion"]["systems"]] == ["fingerprint", "posteriorgram"]
    assert (found["fusion"]["missing"], found["fusion"]["between_queries"]) == ("average", True)
    assert all(one["mark"] is None for one in found["fusion"]["systems"])
    assert found["looked_at"] == ["own query", "other queries", "references"]
    # Of detections that overlap, one is left, whatever query it is of.
    listed = read_rows(run / "exports" / "detections.csv")
    rows = sorted((row["doc_id"], float(row["start"]), float(row["end"])) for row in listed)
    assert rows
    for (doc_id, start, end), (other, after, last) in pairwise(rows):
        assert doc_id != other or end - after <= 0.5 * min(end - start, last - after) + 1e-6
