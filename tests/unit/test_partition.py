"""Slots are fixed for ever, and buckets are ranges of them, however many there are."""

from __future__ import annotations

import pytest

from swsdist.config import config_from_dict
from swsdist.config.model import Reduce
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import SLOTS, bucket_of, slot_of, slots_of


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
