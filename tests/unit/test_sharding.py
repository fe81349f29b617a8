"""How work is cut into shards, slots and buckets; that planning grows with it, and a worker gives memory back."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config import config_from_dict
from swsdist.config.model import Reduce
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import SLOTS, bucket_of, slot_of, slots_of
from swsdist.store.statistics import MOST_DOCUMENTS, cut

SECONDS = st.lists(st.floats(0, 1000, allow_subnormal=False), max_size=40)


def test_by_length_and_by_number() -> None:
    for seconds, target, expected in (
        ([], 10, []),
        ([5], 10, [1]),
        ([4, 4, 4, 4], 8, [2, 2]),
        ([4, 4, 5, 4], 10, [3, 1]),
        ([1, 20, 1], 10, [2, 1]),
        ([0.1] * 10, 0.3, [3, 3, 3, 1]),  # sums that miss 0.3 by a last bit
        ([0.1] * (2 * MOST_DOCUMENTS + 5), 3600.0, [MOST_DOCUMENTS, MOST_DOCUMENTS, 5]),
    ):
        assert [len(one) for one in cut(seconds, target)] == expected
    for seconds, shards, expected in (
        ([1] * 6, 3, [2, 2, 2]),
        ([1] * 7, 2, [4, 3]),
        ([1, 1], 64, [1, 1]),
        ([100, 1, 1, 1], 2, [1, 3]),
        ([1, 1, 0, 0], 2, [1, 3]),
        ([0] * 5, 2, [1, 4]),  # lengths that nobody could tell
        ([0.1] * 9, 3, [3, 3, 3]),
        ([], 4, []),
    ):
        assert [len(one) for one in cut(seconds, 3600, shards)] == expected


@given(seconds=SECONDS, target=st.floats(0.1, 2000), shards=st.none() | st.integers(1, 64))
def test_every_document_once_in_order(seconds: list[float], target: float, shards: int | None) -> None:
    ranges = cut(seconds, target, shards)
    assert [k for one in ranges for k in one] == list(range(len(seconds)))
    assert all(len(one) > 0 for one in ranges)
    if shards is not None:
        assert len(ranges) == min(shards, len(seconds))


@given(seconds=SECONDS, target=st.floats(0.1, 2000))
def test_a_shard_passes_its_target_by_one_document(seconds: list[float], target: float) -> None:
    for one in cut(seconds, target)[:-1]:
        lengths = [seconds[k] for k in one]
        assert sum(lengths) >= target * (1 - 1e-6)
        assert sum(lengths[:-1]) < target


def test_slots_are_fixed_and_buckets_are_ranges_of_them() -> None:
    """Tables of old runs hold them: they never change."""
    assert [slot_of(key) for key in ("", "q1", "ɔ", "a long name of a query")] == [692, 104, 3630, 1332]
    for buckets in (1, 2, 3, 16, 1000, 4095, 4096):
        ranges = [slots_of(bucket, buckets) for bucket in range(buckets)]
        assert [slot for some in ranges for slot in some] == list(range(SLOTS))
        assert all(slot * buckets // SLOTS == k for k, some in enumerate(ranges) for slot in some)
        assert all(slot_of(key) in ranges[bucket_of(key, buckets)] for key in (f"q{k}" for k in range(200)))
    rows = {0: 16, 1 << 24: 16, (1 << 24) + 1: 32, 39_000_000: 64, 1 << 40: SLOTS}
    assert {count: Reduce().buckets_for(count) for count in rows} == rows
    assert Reduce(buckets=5).buckets_for(1 << 40) == 5
    least = {"run": "r", "corpus": {"documents": "d.csv"}}
    assert config_from_dict({**least, "reduce": {"buckets": SLOTS}}, ".").reduce.buckets == SLOTS
    with pytest.raises(ConfigError, match=r"integer >= 1 and <= 4096"):
        config_from_dict({**least, "reduce": {"buckets": SLOTS + 1}}, ".")


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
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Makes the folder of a finished run of so many shards, with ten documents each."""
    sys.path.insert(0, str(ROOT))
    from benchmarks import plan_scale

    @cache
    def made(shards: int) -> Path:
        folder = tmp_path_factory.mktemp(f"s{shards}")
        plan_scale.make_corpus(folder, 10 * shards, 150, shards)
        plan_scale.plan(plan_scale.config_of(folder, str(folder / "run")), finished=True)
        return folder

    return made


@pytest.mark.slow
@pytest.mark.parametrize("part", ["plan", "resume", "dry-run", "status"])
def test_twice_the_tasks_are_twice_the_work(run_of: Callable[[int], Path], part: str) -> None:
    from benchmarks import plan_scale

    of = plan_scale._PARTS[part]
    work = []
    for shards in (SHARDS[0], *SHARDS):  # the first loads modules
        folder = run_of(shards)
        run = folder / ("another" if part == "plan" else "run")
        work.append(calls(lambda folder=folder, run=run: of(plan_scale.config_of(folder, str(run)))))
    (few, _), (some, counts), (many, _) = work[1:]
    assert counts["search"] > 60
    step = (some - few) / (SHARDS[1] - SHARDS[0])
    assert (many - some) / (SHARDS[2] - SHARDS[1]) <= 1.25 * max(step, 1)


def test_a_finished_run_is_told_to_be_finished(run_of: Callable[[int], Path]) -> None:
    from benchmarks import plan_scale

    config = plan_scale.config_of(run_of(20), str(run_of(20) / "run"))
    planned = plan_scale.look(config)
    assert planned["index left"] == 0
    assert plan_scale.dry_run(config)["search"] == planned["search"]
    assert plan_scale.stand(config)["search"] == planned["search"]


_PROGRAM = """
import psutil
from swsdist.pipeline.execution.executor import release_memory, use_system_memory

use_system_memory()
import pyarrow as pa

class Cycle:
    pass

def resident():
    return psutil.Process().memory_info().rss

release_memory()
before = resident()
cycle = Cycle()
cycle.me, cycle.blocks = cycle, [bytearray(1000) for _ in range(100_000)]
table = pa.table({"x": pa.array(["a name that takes some bytes"] * 2_000_000)}).cast(pa.schema([("x", pa.large_string())]))
last = [bytearray(1000) for _ in range(100)]  # above all that is given back
held = resident() - before
del cycle, table
release_memory()
print(held / 1e6, (resident() - before) / 1e6)
"""


def test_what_a_task_held_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    held, left = map(float, done.stdout.split())
    assert held > 150
    assert left < 0.3 * held  # without it three quarters stay
