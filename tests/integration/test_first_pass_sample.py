"""Runs with a first pass: a sample of documents is searched exactly, and queries are verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swsdist.registry.registries import FIRST_PASSES


def first_pass(name: str, **settings: object) -> str:
    return f"search.first_pass={json.dumps({'name': name, **settings})}"


@pytest.mark.parametrize("name", sorted(FIRST_PASSES))
def test_a_sample_of_everything_is_the_exact_search(scene: Any, name: str) -> None:
    scene.run("index.shards=3", run="exact")
    scene.run("index.shards=2", first_pass(name), run="sampled")
    exact, sampled = scene.digest("exact"), scene.digest("sampled")
    assert {table: sampled[table] for table in exact} == exact


@pytest.mark.until("")
def test_verified_queries_are_in_the_report(scene: Any) -> None:
    windows = {"least": 2, "per_second": 0}
    for run, settings in {"few": {"sample": 0, "windows": windows}, "all": {}}.items():
        scene.run("index.shards=2", first_pass("quantised", verify=3, **settings), run=run)
        counts = json.loads((Path(scene.folder) / run / "report.json").read_text("utf-8"))["counts"]
        assert counts["best"] > 10
        assert (counts["best_found"] == counts["best"]) == (run == "all")
