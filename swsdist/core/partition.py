"""Slots and buckets of a partitioned table.

A table's partition key (a query, a document, a class) hashes to one of 4096 fixed slots. A bucket is a range of slots:
bucket k of B holds the slots with ``slot * B // 4096 == k``. So tables of runs with different numbers of buckets match
by slot, and a file sorted by slot can be read for any number of buckets.
"""

from __future__ import annotations

from swsdist.core.fingerprint import stable_hash

#: Slots of any partition key; also the largest number of buckets.
SLOTS = 4096
ALL_SLOTS = range(SLOTS)


def slot_of(key: str) -> int:
    """The slot of a key, 0 to 4095: a stable hash (blake2b), the same on every machine."""
    return stable_hash(key) % SLOTS


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key, 0 to `buckets` - 1."""
    return slot_of(key) * buckets // SLOTS


def slots_of(bucket: int, buckets: int) -> range:
    """The slots of a bucket.

    Args:
        bucket: 0 to `buckets` - 1.
        buckets: 1 to `SLOTS`.
    """
    return range(-(-bucket * SLOTS // buckets), -(-(bucket + 1) * SLOTS // buckets))
