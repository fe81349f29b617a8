"""How documents are cut into shards, and queries into slots and buckets."""

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
        ([50], 10, [1]),
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
        ([1] * 7, 7, [1] * 7),
        ([1, 1], 64, [1, 1]),
        ([100, 1, 1, 1], 2, [1, 3]),
        ([1, 1, 1, 100], 2, [3, 1]),
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


def test_slots_are_fixed() -> None:
    """Tables of old runs hold them: they never change."""
    assert [slot_of(key) for key in ("", "q1", "ɔ", "a long name of a query")] == [692, 104, 3630, 1332]


def test_buckets_are_ranges_of_slots() -> None:
    for buckets in (1, 2, 3, 16, 1000, 4095, 4096):
        ranges = [slots_of(bucket, buckets) for bucket in range(buckets)]
        assert [slot for some in ranges for slot in some] == list(range(SLOTS))
        assert all(slot * buckets // SLOTS == k for k, some in enumerate(ranges) for slot in some)
        assert all(slot_of(key) in ranges[bucket_of(key, buckets)] for key in (f"q{k}" for k in range(200)))


def test_there_are_as_many_buckets_as_rows_ask_for() -> None:
    rows = {0: 16, 1 << 24: 16, (1 << 24) + 1: 32, 39_000_000: 64, 1 << 40: SLOTS}
    assert {count: Reduce().buckets_for(count) for count in rows} == rows
    assert Reduce(buckets=5).buckets_for(1 << 40) == 5


def test_there_are_no_more_buckets_than_slots() -> None:
    least = {"run": "r", "corpus": {"documents": "d.csv"}}
    assert config_from_dict({**least, "reduce": {"buckets": SLOTS}}, ".").reduce.buckets == SLOTS
    with pytest.raises(ConfigError, match=r"integer >= 1 and <= 4096"):
        config_from_dict({**least, "reduce": {"buckets": SLOTS + 1}}, ".")
