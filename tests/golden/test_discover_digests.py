"""Versions of the stages of the chain discover are raised when their bytes change; see `test_stage_digests`.

Frames are integers, and of all of them speech; scores are integers, and what is computed from them is rounded correctly. The
first column of the frames stands for loudness.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.chains.discover import chain as score_discovery
from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import FEATURES
from swsdist.testing.scenes import numbers
from tests.support.reshape import ENTRY, RATE, sound
from tests.support.stage_versions import demand_golden

#: By the way to pairs, of each stage: its version, and the digest of what it makes of the input below.
GOLDEN: dict[str, dict[str, tuple[int, str]]] = {
    "segments": {
        "cut-segments": (2, "7fbd9b16b9a96bc37a007917376e972a141b9c051ec63717ec75470463c518b6"),
        "propose-pairs": (3, "1c895602b6f910e01a0fe5ed7a9d2cbf39ba1aad24c13eff568478f692b8c557"),
        "select-pairs": (2, "98fc7601e6c75dfb5f9ed24e774be6a4c95cc54e90eee786aad9764f5e9b70f9"),
        "align-pairs": (3, "1bc07e35b63a9476f5244a3c270fba1cbe3b9a3240685b78b09bedce9c39765f"),
        "find-boundaries": (1, "223acbc3bdaec7c432080376103852ec316f38bc607db2f101d42c825ef63444"),
        "group-matches": (3, "17519232fc3a8951a0cca202e8c92a6588189cac4f44ce0003e96ee7c3c47890"),
    },
    "diagonals": {
        "propose-pairs": (3, "51df87f2475ed751e1588dba9fb6cbb4ef78d304b5f283c1b0e5056cbb9671f0"),
        "select-pairs": (2, "313a8bfc65af5d8135305020625bc57eb85ad03d7a47e41c8879841fa5bd80a7"),
    },
    "exact": {
        "search-segments": (2, "68969a2fb371bb8de80dcaa1ca359790cacef626fbe99461313c60b163a991ed"),
        "select-pairs": (2, "600993e71979e5a7f3ada182ed4b38a2a569227e965119618704390927e53e4d"),
    },
}

NEIGHBOURS = {
    "segments": {"orders": 3, "beam": 10},
    "diagonals": {"by": "diagonals", "orders": 3, "beam": 10, "window": 3},
    "exact": {"by": "exact", "every": 2},
}
TABLES = ("classes", "parse")
OPTIONS = {
    "segments": {"frames": 16, "hop": 4, "parts": 8, "bits": 128},
    "matching": {"band": 4, "reach": 10, "frames": 14},
    "clustering": {"score": 1.0},
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """By the way to pairs: what is found in eight documents of eight words out of sixteen, each a pattern of 20 frames said
    with a little noise.
    """
    root = tmp_path_factory.mktemp("golden")
    draw, table = numbers(1), ["doc_id,path"]
    for d in range(8):
        words = [next(draw) % 16 for _ in range(8)]
        parts = [sound(1000 + word, 20, 8000) + sound(5000 + 10 * d + k, 20, 3000) for k, word in enumerate(words)]
        soundfile.write(root / f"d{d}.wav", np.concatenate(parts), RATE, subtype="PCM_16")
        table.append(f"d{d},d{d}.wav")
    (root / "docs.csv").write_text("\n".join([*table, ""]))
    values: dict[str, Any] = {
        "chain": "discover",
        "corpus": {"documents": "docs.csv"},
        "features": {"name": "reshape"},
        "index": {"shards": 3, "store": "store"},
        "search": {"normalise": "none"},
        "executor": {"kind": "serial"},
    }

    @cache
    def found(by: str) -> Outcome:
        run = {"run": by, "options": {**OPTIONS, "neighbours": NEIGHBOURS[by]}}
        FEATURES.add("reshape", ENTRY)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(score_discovery, "_loud_track", lambda store: (store.manifest.tracks[0].name, 500.0))
                result = run_stages(config_from_dict({**values, **run}, root), StepSelection(), Progress())
        finally:
            FEATURES.remove("reshape")
        assert not result.failures
        return result

    return found


def made(outcome: Outcome, name: str) -> str:
    """SHA-256 of the rows of a stage's tables, whatever their order."""
    (stage,) = (step.stage for step in outcome.chain_run.steps if step.name == name)
    rows = [
        f"{table} {json.dumps(row, default=bytes.hex)}"
        for table in stage.tables
        for part in outcome.chain_run.read(table)
        for row in part.to_pylist()
    ]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


@pytest.mark.parametrize(("by", "name"), [(by, name) for by, stages in GOLDEN.items() for name in stages])
def test_bytes_change_with_versions_only(outcome: Callable[[str], Outcome], by: str, name: str) -> None:
    demand_golden(outcome(by), name, made(outcome(by), name), GOLDEN[by])


@pytest.mark.parametrize("by", GOLDEN)
def test_the_input_is_worth_it(outcome: Callable[[str], Outcome], by: str) -> None:
    run = outcome(by).chain_run
    members, parse = ([row for part in run.read(name) for row in part.to_pylist()] for name in TABLES)
    assert len({row["class"] for row in members}) > 5
    assert sum(part.num_rows for part in run.read("boundaries")) > 50
    assert {row["class"] is None for row in parse} == {True, False}
