"""Versions of the stages of the chain discover are raised when their bytes change; see `test_stage_digests`.

Frames are integers, and of all of them speech; scores are integers, and what is computed from them is rounded correctly. The
frames are no MFCC, so the stage find-boundaries finds nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import FEATURES
from swsdist.testing.scenes import numbers
from tests.support.reshape import ENTRY, RATE, sound
from tests.support.stage_versions import demand_golden

#: Of each stage: its version, and the digest of what it makes of the input below.
GOLDEN: dict[str, tuple[int, str]] = {
    "cut-segments": (1, "c184826c7e2b0af96df14c55efbc9f4f0b5fe59e411ce0d39d219898c0372177"),
    "propose-pairs": (1, "14dffb4c33974d4f3d69b6a3608776669fa353ad6e25a3cd086b301c68e5e718"),
    "select-pairs": (1, "ae08f1a5cb8b554f11db10df52ff006d90270a4783963132ed8918502c3ad379"),
    "align-pairs": (1, "1bc07e35b63a9476f5244a3c270fba1cbe3b9a3240685b78b09bedce9c39765f"),
    "group-matches": (2, "fa81bc9d774ff6708231d981836388dcd2d6dd6b499e194ef98a7d640fc6ea06"),
}

OPTIONS = {
    "segments": {"frames": 16, "hop": 4, "parts": 8, "bits": 128},
    "neighbours": {"orders": 3, "beam": 10},
    "matching": {"band": 4, "reach": 10, "frames": 14},
    "clustering": {"score": 1.0},
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Eight documents of eight words out of sixteen, each a pattern of 20 frames said with a little noise."""
    root = tmp_path_factory.mktemp("golden")
    draw, table = numbers(1), ["doc_id,path"]
    for d in range(8):
        words = [next(draw) % 16 for _ in range(8)]
        parts = [sound(1000 + word, 20, 8000) + sound(5000 + 10 * d + k, 20, 3000) for k, word in enumerate(words)]
        soundfile.write(root / f"d{d}.wav", np.concatenate(parts), RATE, subtype="PCM_16")
        table.append(f"d{d},d{d}.wav")
    (root / "docs.csv").write_text("\n".join([*table, ""]))
    values = {
        "run": "run",
        "chain": "discover",
        "corpus": {"documents": "docs.csv"},
        "features": {"name": "reshape"},
        "index": {"shards": 3},
        "search": {"normalise": "none"},
        "options": OPTIONS,
        "executor": {"kind": "serial"},
    }
    FEATURES.add("reshape", ENTRY)
    try:
        result = run_stages(config_from_dict(values, root), StepSelection(), Progress())
    finally:
        FEATURES.remove("reshape")
    assert not result.failures
    return result


def made(outcome: Outcome, name: str) -> str:
    """SHA-256 of the rows of a stage's tables, whatever their order."""
    (stage,) = (step.stage for step in outcome.chain_run.steps if step.name == name)
    rows = [
        f"{table} {json.dumps(row, default=bytes.hex)}"
        for table in stage.tables
        for part in outcome.chain_run.read(name, table)
        for row in part.to_pylist()
    ]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


@pytest.mark.parametrize("name", list(GOLDEN))
def test_bytes_change_with_versions_only(outcome: Outcome, name: str) -> None:
    demand_golden(outcome, name, made(outcome, name), GOLDEN)


def test_the_input_is_worth_it(outcome: Outcome) -> None:
    members = [row for part in outcome.chain_run.read("group-matches", "classes") for row in part.to_pylist()]
    parse = [row for part in outcome.chain_run.read("group-matches", "parse") for row in part.to_pylist()]
    assert len({row["class"] for row in members}) > 5
    assert {row["class"] is None for row in parse} == {True, False}
