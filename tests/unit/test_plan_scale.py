"""Planning, resuming, `--dry-run` and `status` grow with the tasks and not faster: shown in calls, not in seconds."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARDS = (20, 60, 140)


def calls(of: Callable[[], Any]) -> tuple[int, Any]:
    """How many functions are called, Python's and C's, and what comes of it."""
    count = 0

    def seen(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        value = of()
    finally:
        sys.setprofile(None)
    return count, value


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Finished runs of three sizes: shards, with ten documents each."""
    sys.path.insert(0, str(ROOT))
    from benchmarks import plan_scale

    found = []
    for shards in SHARDS:
        folder = tmp_path_factory.mktemp(f"s{shards}")
        plan_scale.make_corpus(folder, 10 * shards, 150, shards)
        plan_scale.plan(plan_scale.config_of(folder, str(folder / "run")), finished=True)
        found.append(folder)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", ["plan", "resume", "dry-run", "status"])
def test_twice_the_tasks_are_twice_the_work(runs: list[Any], part: str) -> None:
    from benchmarks import plan_scale

    of = plan_scale._PARTS[part]
    work = []
    for folder in [runs[0], *runs]:  # the first loads modules
        run = folder / ("another" if part == "plan" else "run")
        work.append(calls(lambda folder=folder, run=run: of(plan_scale.config_of(folder, str(run)))))
    (few, _), (some, counts), (many, _) = work[1:]
    assert counts["search"] > 60
    step = (some - few) / (SHARDS[1] - SHARDS[0])
    assert (many - some) / (SHARDS[2] - SHARDS[1]) <= 1.25 * max(step, 1)


def test_a_finished_run_is_told_to_be_finished(runs: list[Any]) -> None:
    from benchmarks import plan_scale

    config = plan_scale.config_of(runs[0], str(runs[0] / "run"))
    planned = plan_scale.look(config)
    assert planned["index left"] == 0
    assert plan_scale.dry_run(config)["search"] == planned["search"]
    assert plan_scale.stand(config)["search"] == planned["search"]
