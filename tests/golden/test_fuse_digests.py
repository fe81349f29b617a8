"""The version of a stage of the chain fuse is raised when its bytes change: held by constants.

The lists are made of integers alone, and what follows are correctly rounded operations in a fixed order, so the constants are
the same everywhere. When this test fails and you meant to change the numbers, raise `version` of the stage
(swsdist/chains/fuse/) and put what the message prints here; else you have found a bug before it was one. What `rescore` says is
the method's, which has a constant of its own (tests/golden/test_stage_digests.py).
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from swsdist.calibrate.fusion import complete_list, join_systems, without_overlaps
from swsdist.chains.fuse.chain import AlignJoined, FindOverlaps, ImputeScores, MergeLists
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.pipeline.chain import Stage
from swsdist.score.trials import TrialRules, make_trials
from swsdist.store.reading import of_rows

#: Of each stage: its version, and the digest of what it makes of the lists below.
GOLDEN: dict[str, tuple[int, str]] = {
    "merge-lists": (1, "c0b73ad84fe68f945a04f85a92a56ae5fc0ea80b913dece54bd742058744e04d"),
    "impute-scores": (1, "e27f6460123756349067bdb3054b88a620f06790d03269396651090bfad19d6e"),
    "align-joined": (1, "f86687b0d8e7d3199ef71e3647813c59d6748c6ff89875514d6d0be972fc1f38"),
    "find-overlaps": (1, "e2b91ab3ba2db51a8a83d8b7b74460987ad57e61e5ba5c3b1c4eed79e3e9570a"),
}
STAGES: dict[str, type[Stage]] = {one.name: one for one in (MergeLists, ImputeScores, AlignJoined, FindOverlaps)}


def listed(system: int) -> pa.Table:
    """A system's list: 400 detections of five queries in three documents, at steps of 1/32 s."""
    rows = []
    for k in range(400):
        draw = (k * 2654435761 + system * 40503) % 2**32 >> 7
        start = draw % 997 / 32
        row = {
            "query_id": f"q{draw % 5}",
            "doc_id": f"d{draw % 3}",
            "channel": 1,
            "start": start,
            "end": start + (8 + draw % 13) / 32,
            "score": draw % 641 / 128 - 2.5,
        }
        rows.append({**dict.fromkeys(DETECTIONS.names), **row})
    return pa.Table.from_pylist(rows, DETECTIONS)


def references() -> pa.Table:
    rows = [
        {
            "query_id": f"q{k % 5}",
            "doc_id": f"d{k % 3}",
            "channel": 1,
            "start": k * 53 % 30 + 0.25,
            "end": k * 53 % 30 + 0.75,
        }
        for k in range(40)
    ]
    return pa.Table.from_pylist(rows, REFERENCES)


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    lists = {name: listed(k) for k, name in enumerate("abc")}
    places, known = join_systems(lists, standardise=False, meet="overlap", overlap=0.5)
    made = complete_list(places, known, missing="least", overlap=0.5)
    trials = make_trials(made, references(), TrialRules("time", "stdeval", 0.5, -3.0, 3.0))
    return {
        "merge-lists": of_rows(places),
        "impute-scores": of_rows(made),
        "align-joined": of_rows(AlignJoined().kept(trials, made)),
        "find-overlaps": of_rows(without_overlaps(made, 0.5, between_queries=True)),
    }


@pytest.mark.parametrize("name", list(GOLDEN))
def test_stage(name: str, digests: dict[str, str]) -> None:
    found = STAGES[name].version, digests[name]
    assert found == GOLDEN[name], f'"{name}": {found},'
