"""How tables are cut by a key: a key hashes to one of 4096 fixed slots, and a bucket is a range of slots.

Slots do not depend on the number of buckets, so tables that were cut differently meet: bucket k of B holds the slots s with
``s * B // SLOTS == k``.
"""

from __future__ import annotations

from swsdist.fingerprint import stable_hash

#: A power of two, and no fewer than anyone cuts a table into.
SLOTS = 4096


def slot_of(key: str) -> int:
    """The slot of a key, the same on every machine (blake2b)."""
    return stable_hash(key) % SLOTS


def bucket_slots(bucket: int, buckets: int) -> tuple[int, int]:
    """The first and the last slot of a bucket; of more buckets than slots, some are empty (first > last)."""
    first = -(-bucket * SLOTS // buckets)
    return first, -(-(bucket + 1) * SLOTS // buckets) - 1


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key."""
    return slot_of(key) * buckets // SLOTS
